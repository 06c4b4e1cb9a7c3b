//! The guardian's signals as a descriptor that its one wait loop can wait for.
//!
//! They are watched before the command starts, so that no death is missed. Implements K17.

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A descriptor that becomes readable when a signal arrives.
pub(super) struct Signals(SignalDelivery<UnixStream, SignalOnly>);

/// Which signals arrived.
pub(super) struct Arrived {
    /// A child may have died.
    pub children: bool,
    /// The guardian is asked to end.
    pub terminate: bool,
}

impl Signals {
    /// Watches for the signals from now on.
    pub fn watch() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        SignalDelivery::with_pipe(read, write, SignalOnly, [SIGCHLD, SIGTERM, SIGINT, SIGHUP]).map(Self)
    }

    /// Returns which signals arrived since the last call.
    pub fn take(&mut self) -> Arrived {
        let mut arrived = Arrived { children: false, terminate: false };
        for signal in self.0.pending() {
            match signal {
                SIGCHLD => arrived.children = true,
                _ => arrived.terminate = true,
            }
        }
        arrived
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }
}

//! The guardian's signals as readable pipes, for its one wait loop.
//!
//! Watched before the command starts, so that no death is missed. Implements K17.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe::register;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;

/// Two pipes that become readable when signals arrive.
pub(super) struct Signals {
    /// A child may have died.
    pub children: PipeReader,
    /// Somebody wants the guardian to end.
    pub terminate: PipeReader,
}

impl Signals {
    /// Watches from now on.
    pub fn watch() -> io::Result<Self> {
        let (children, child) = io::pipe()?;
        let (terminate, term) = io::pipe()?;
        for pipe in [&children, &terminate] {
            fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        register(SIGCHLD, OwnedFd::from(child))?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            register(signal, OwnedFd::from(term.try_clone()?))?;
        }
        Ok(Self { children, terminate })
    }
}

/// Empties a signal pipe; what it said is known.
pub(super) fn clear(pipe: &PipeReader) {
    let mut bytes = [0; 64];
    while matches!(nix::unistd::read(pipe, &mut bytes), Ok(n) if n == bytes.len()) {}
}

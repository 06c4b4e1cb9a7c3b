//! Requests to stop, which any number of threads can wait for.
//!
//! SIGINT, SIGTERM and SIGHUP write one byte into a socket that is never read, so from then on every wait
//! returns at once. The last steps of a run go on all the same; a second SIGINT ([`ForceStop`]) ends what
//! they wait for. Implements K17 (the runner's own signals).

use super::SupervisorError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The signals that ask a runner to stop.
pub const SIGNALS: [i32; 3] =
    [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP];

/// Tells whether a stop was asked for.
#[derive(Debug)]
pub struct Interrupt {
    arrivals: Arrivals,
    signal: Arc<AtomicUsize>,
    force_stop: ForceStop,
}

/// A socket that gets a byte with each signal.
type Arrivals = SignalDelivery<UnixStream, SignalOnly>;

fn arrivals_of(signals: &[i32]) -> Result<Arrivals, SupervisorError> {
    let (read, write) = UnixStream::pair().map_err(SupervisorError::system("make pipe"))?;
    Arrivals::with_pipe(read, write, SignalOnly, signals).map_err(SupervisorError::system("catch signals"))
}

/// Makes a write beyond the limit on the size of files (`ulimit -f`) an error of that write: by default the system kills
/// the process, which leaves its locks. The programs that this process starts get the default back.
pub fn outlive_file_size_limit() {
    // A system that refuses to catch the signal leaves all as it is.
    let _ = signal_hook::flag::register(nix::libc::SIGXFSZ, Arc::default());
}

impl Interrupt {
    /// Returns an interrupt that listens to the signals of this process.
    pub fn by_signals() -> Result<Self, SupervisorError> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in SIGNALS {
            signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
                .map_err(SupervisorError::system("catch signals"))?;
        }
        let arrivals = arrivals_of(&SIGNALS)?;
        let presses = arrivals_of(&[signal_hook::consts::SIGINT])?;
        let unblocked = presses.get_read().set_nonblocking(true);
        unblocked.map_err(SupervisorError::system("set pipe non-blocking"))?;
        let force_stop = ForceStop::counting(presses, Arc::clone(&signal));
        Ok(Self { arrivals, signal, force_stop })
    }

    /// Returns an interrupt that never comes.
    pub fn never() -> Result<Self, SupervisorError> {
        Ok(Self { arrivals: arrivals_of(&[])?, signal: Arc::default(), force_stop: ForceStop::default() })
    }

    /// Returns the signal that asked for the stop; `None` while none came.
    pub fn signal(&self) -> Option<i32> {
        let number = self.signal.load(Ordering::SeqCst) as i32;
        if number != 0 {
            // The first look after a signal begins the time in which another one is the same key press.
            self.force_stop.asked();
        }
        (number != 0).then_some(number)
    }

    /// Returns what tells whether a second SIGINT came.
    pub fn force_stop(&self) -> ForceStop {
        self.force_stop.clone()
    }

    /// Returns a descriptor that is readable once a stop was asked for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.arrivals.get_read().as_fd()
    }

    /// Waits until a stop is asked for, at most this long, and at most about 65 seconds.
    pub fn wait(&self, how_long: Duration) {
        let millis = u16::try_from(how_long.as_millis().max(1)).unwrap_or(u16::MAX);
        let mut fds = [PollFd::new(self.fd(), PollFlags::POLLIN)];
        let _ = poll(&mut fds, PollTimeout::from(millis));
    }

    /// Waits this long even if a stop was asked for: to learn the verdict of a swap is worth it.
    pub fn pause(&self, how_long: Duration) {
        std::thread::sleep(how_long);
    }
}

/// Tells whether SIGINT came twice: the user at the terminal does not want to wait for what the first one let
/// go on. Other signals do not count, because a terminal that closes sends two by itself. Nor do two SIGINTs
/// at almost the same time: one Ctrl-C arrives from the terminal, and once more from the `git` that started
/// this process.
#[derive(Debug, Clone, Default)]
pub struct ForceStop(Option<Arc<Counter>>);

#[derive(Debug)]
struct Counter {
    presses: Arrivals,
    signal: Arc<AtomicUsize>,
    first: OnceLock<Instant>,
    again: AtomicBool,
}

/// Two presses of a key are further apart than this.
const ONE_PRESS: Duration = Duration::from_millis(150);

impl ForceStop {
    fn counting(presses: Arrivals, signal: Arc<AtomicUsize>) -> Self {
        let (first, again) = (OnceLock::new(), AtomicBool::new(false));
        Self(Some(Arc::new(Counter { presses, signal, first, again })))
    }

    /// True from the first signal on, whichever it was: for work that nothing depends on.
    pub fn stopped(&self) -> bool {
        self.0.as_ref().is_some_and(|counter| counter.signal.load(Ordering::SeqCst) != 0)
    }

    /// True from the second SIGINT on.
    pub fn asked(&self) -> bool {
        let Some(counter) = &self.0 else { return false };
        let mut bytes = [0; 16];
        if counter.presses.get_read().read(&mut bytes).unwrap_or(0) > 0
            && counter.first.get_or_init(Instant::now).elapsed() > ONE_PRESS
        {
            counter.again.store(true, Ordering::SeqCst);
        }
        counter.again.load(Ordering::SeqCst)
    }
}

//! The caller's end of a run: starts a guardian, receives its events, gives it orders.
//!
//! `Supervised::start`, then `next` until [`Event::Exited`]; meanwhile `stop` if need be; then `end` (no
//! process of the run may live on) or `linger` (what the command left behind may). Dropping it ends the run,
//! and so does the caller's death. No threads: `next` is the only place that waits, and it also wakes for a
//! deadline and for a descriptor of the caller's choice. Implements K17, K18, K21.

use super::SupervisorError;
use super::confine::Confinement;
use super::ending::Ending;
use super::exec::{Child, exec};
use super::guardian::options::{Options, ROLE};
use super::hold;
use super::holders;
use super::orphans;
use super::pulse::{Pulse, Sign};
use super::wire::{Event, Frames, Order};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What to run, and how. Paths may be relative to the caller's working directory.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The `git-aynig` binary, which becomes the guardian.
    pub guardian: PathBuf,
    /// The command and its arguments; a command without a `/` is searched for in `env`'s `PATH`.
    pub argv: Vec<OsString>,
    /// The command's whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The file that the command reads as its standard input; `None`: `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// The command's working directory.
    pub cwd: PathBuf,
    /// The log of stdout; appended to, made with mode 0600, never through a symlink.
    pub stdout_log: PathBuf,
    /// The log of stderr, opened as that of stdout is.
    pub stderr_log: PathBuf,
    /// The bytes that each log may take; of longer output, head and tail are kept.
    pub log_max: u64,
    /// How long the command may take, suspended time counted.
    pub timeout: Option<Duration>,
    /// The time from SIGTERM to SIGKILL after a timeout.
    pub kill_grace: Duration,
    /// Stdout lines that begin with this are reported; empty: none.
    pub watch: Vec<u8>,
    /// The length in bytes of the longest line that is reported whole.
    pub line_max: usize,
    /// Whether all output is also reported as it comes.
    pub tee: bool,
    /// A lock file that is held as long as any process of the run lives.
    pub hold: Option<PathBuf>,
    /// What the command is confined to; `None`: it is not confined.
    pub confine: Option<Confinement>,
    /// What [`Supervised::stop_after`] orders, ordered before there is a guardian: a caller that hangs as soon as it
    /// has started one leaves no command behind. `None`: nothing.
    pub stop_after: Option<(Duration, Duration)>,
}

/// Why `next` returned.
#[derive(Debug, PartialEq, Eq)]
pub enum Wake {
    /// Something happened in the run.
    Event(Event),
    /// `until` has come.
    Deadline,
    /// A descriptor of the caller's is readable.
    Interrupted,
}

/// What `end` found out.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Ended {
    /// How the command ended, if `next` had not reported that before.
    pub ending: Option<Ending>,
    /// Logs that failed meanwhile: (true for stderr's, errno).
    pub log_failures: Vec<(bool, i32)>,
    /// Processes of the run that could not be killed.
    pub survivors: u32,
    /// Whether the guardian died or did not answer: then the processes of the run were killed as far as they
    /// could be found.
    pub guardian_lost: bool,
}

/// A command under its guardian.
#[derive(Debug)]
pub struct Supervised {
    /// `None` if nothing could be started.
    guardian: Option<Child>,
    control: Option<PipeWriter>,
    events: Option<PipeReader>,
    frames: Frames,
    /// Events that come from this process, as the guardian could not send them, and one that is to be
    /// returned again.
    own: VecDeque<Event>,
    command: Option<Pid>,
    exited: bool,
    done: Option<u32>,
    lost: bool,
    pub(super) pulse: Pulse,
    /// Whether the guardian was found stopped, or did not answer.
    stopped: bool,
    /// How often the guardian answered, and whether the next answer is to be returned as an event.
    beats: u64,
    awaits_beat: bool,
}

/// The most bytes that are read from the guardian at a time.
const PIECE: usize = 64 << 10;

/// The guardians that were let go before they ended. Each is reaped when a later run starts.
static LET_GO: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// How long `end` waits before it kills the guardian, which itself takes 0.5 s to kill, and 1 s more to find
/// survivors.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// How long a guardian that was killed is waited for in all.
const KILL_PATIENCE: Duration = Duration::from_secs(1);
/// How long it is waited for before what may keep it from dying is killed.
const LOOK: Duration = Duration::from_millis(50);

impl Supervised {
    /// Starts the command. A command that can't be started is no error: its ending says so.
    pub fn start(spec: &Spec) -> Result<Self, SupervisorError> {
        let mut let_go = LET_GO.lock().unwrap_or_else(PoisonError::into_inner);
        let_go.retain_mut(|child| {
            let over = child.is_over();
            if over {
                orphans::waited_for(child.id());
            }
            !over
        });
        drop(let_go);
        orphans::adopt();
        let pipe = || io::pipe().map_err(SupervisorError::system("make pipe"));
        let ((orders, control), (events, reports)) = (pipe()?, pipe()?);
        let mut argv = vec![spec.guardian.clone().into_os_string(), ROLE.into()];
        argv.extend(options(spec)?.to_args());
        let mut this = Self {
            guardian: None,
            control: Some(control),
            events: Some(events),
            frames: Frames::new(spec.line_max.max(spec.watch.len()).max(PIECE)),
            own: VecDeque::new(),
            command: None,
            exited: false,
            done: None,
            lost: false,
            pulse: Pulse::new(),
            stopped: false,
            beats: 0,
            awaits_beat: false,
        };
        if let Some((after, grace)) = spec.stop_after {
            this.stop_after(after, grace);
        }
        // The guardian must not inherit stderr: it may be a pipe whose end is waited for, and a lingering
        // guardian would hold it open.
        let stderr = match spec.hold.as_deref().map(hold::take).transpose() {
            Ok(Some(hold)) => Ok(hold),
            Ok(None) => File::options().write(true).open("/dev/null"),
            Err(error) => {
                this.ended_before(not_held(spec.hold.as_deref(), &error));
                return Ok(this);
            }
        };
        let start = || {
            let stderr = stderr?;
            let descriptors = [orders.as_fd(), reports.as_fd(), stderr.as_fd()];
            Ok(Child::new(exec(&argv, spec.env.iter().cloned(), descriptors, false)?))
        };
        match orphans::started(start, Child::id) {
            Ok(child) => this.guardian = Some(child),
            Err(source) => {
                let errno = not_startable(&source)
                    .ok_or_else(|| SupervisorError::NoGuardian { path: spec.guardian.clone(), source })?;
                let program = spec.argv.first().map(|name| name.to_string_lossy().into_owned());
                let what = format!("arguments and environment of '{}'", program.unwrap_or_default());
                let ending = Ending::NotStarted { errno, what };
                this.ended_before(ending);
            }
        }
        Ok(this)
    }

    /// Queues the events of a run of which nothing was started.
    fn ended_before(&mut self, ending: Ending) {
        self.own = [Event::Exited { ending, leaked: false }, Event::Done { survivors: 0 }].into();
    }

    /// Returns the guardian's process id; 0 if nothing could be started.
    pub fn guardian_pid(&self) -> u32 {
        self.guardian.as_ref().map_or(0, Child::id)
    }

    /// Waits for the next event, at most until `until`, and not while `interrupt` is readable. A deadline
    /// that has come and a readable descriptor take precedence over events, so that a flood of events starves
    /// no duty of the caller's. Therefore the caller must move the deadline on, and drain the descriptor.
    pub fn next(
        &mut self,
        until: Option<Instant>,
        interrupt: Option<BorrowedFd<'_>>,
    ) -> Result<Wake, SupervisorError> {
        self.next_of(until, interrupt.as_slice())
    }

    /// Waits as [`Supervised::next`] does, with any number of descriptors.
    pub fn next_of(
        &mut self,
        until: Option<Instant>,
        watched: &[BorrowedFd<'_>],
    ) -> Result<Wake, SupervisorError> {
        loop {
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(Wake::Deadline);
            }
            let event = match self.own.pop_front() {
                Some(event) => Some(event),
                None => self.frames.next()?,
            };
            let over = event.is_none() && self.events.is_none();
            if over {
                return Err(SupervisorError::Over);
            }
            if event == Some(Event::Beat) {
                self.beats += 1;
                if self.awaits_beat {
                    return Ok(Wake::Event(Event::Beat));
                }
                continue;
            }
            let Some(event) = event else {
                if self.wait(until, watched)? {
                    return Ok(Wake::Interrupted);
                }
                continue;
            };
            if watched.iter().any(|fd| readable_now(*fd)) {
                // The event is returned by the next call.
                self.own.push_front(event);
                return Ok(Wake::Interrupted);
            }
            self.note(&event);
            return Ok(Wake::Event(event));
        }
    }

    /// Waits for more from the guardian and reads it; true if a descriptor of the caller's became readable.
    fn wait(&mut self, until: Option<Instant>, callers: &[BorrowedFd<'_>]) -> Result<bool, SupervisorError> {
        let Some(events) = &self.events else { return Ok(false) };
        let mut fds = vec![PollFd::new(events.as_fd(), PollFlags::POLLIN)];
        fds.extend(callers.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)));
        // The guardian is watched from the start: a command may stop it before it could even report
        // `Started`.
        let watched = !self.exited && !self.stopped;
        let look = watched.then(|| self.pulse.due());
        match poll(&mut fds, patience([until, look].into_iter().flatten().min())) {
            Ok(_) => {}
            // A signal arrived; the caller's descriptor tells which.
            Err(Errno::EINTR) => return Ok(false),
            Err(errno) => return Err(SupervisorError::system("wait for guardian")(errno.into())),
        }
        if fds[1..].iter().any(ready) {
            return Ok(true);
        }
        if ready(&fds[0]) {
            self.pulse.heard();
            let mut piece = [0; PIECE];
            match nix::unistd::read(events, &mut piece) {
                Ok(0) => self.events_ended(),
                Ok(length) => self.frames.push(&piece[..length]),
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(SupervisorError::system("read events")(errno.into())),
            }
        } else if watched {
            match self.pulse.look(self.guardian_pid()) {
                Sign::Wait => {}
                Sign::Ask => self.order(Order::Beat),
                Sign::Gone => {
                    // The event pipe ends with the guardian; events that it sent before are still read first.
                    self.stopped = true;
                    self.kill_guardian();
                }
            }
        }
        Ok(false)
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Started { pid } => self.command = Some(Pid::from_raw(*pid as i32)),
            Event::Exited { .. } => self.exited = true,
            Event::Done { survivors } => self.done = Some(*survivors),
            Event::Line(_)
            | Event::LongLine(_)
            | Event::Output { .. }
            | Event::Chunk { .. }
            | Event::LogFailed { .. }
            | Event::Beat => {}
        }
    }

    /// Handles the end of the event pipe: the guardian is gone. If it had not sent `Done`, the processes of
    /// the run are killed.
    fn events_ended(&mut self) {
        self.events = None;
        if self.done.is_some() {
            return;
        }
        self.lost = true;
        let ending = match self.stopped {
            true => Ending::GuardianStopped,
            false => Ending::GuardianLost,
        };
        self.kill_command();
        if !self.exited {
            self.own.push_back(Event::Exited { ending, leaked: false });
        }
    }

    /// Kills the guardian, the command's own process group, and the orphans that came to this process.
    fn kill_command(&mut self) {
        // The orphans come to this process only once the guardian is dead to the last thread.
        if let Some(guardian) = &mut self.guardian {
            guardian.kill();
            let until = Instant::now() + KILL_PATIENCE;
            while !guardian.is_over_within(LOOK) && Instant::now() < until {
                // Who traces the guardian keeps it from dying, and from being waited for.
                holders::kill_below(guardian.id() as i32);
                orphans::sweep();
            }
        }
        if let Some(command) = self.command
            // The guardian reaped a command that has exited, so a process of that number is another one by
            // now.
            && !(self.exited && Path::new(&format!("/proc/{command}")).exists())
        {
            let _ = killpg(command, Signal::SIGKILL);
        }
        orphans::sweep();
    }

    pub(super) fn order(&mut self, order: Order) {
        if let Some(control) = &mut self.control {
            // A guardian that is gone needs no order, and the end of its event pipe says that it is gone.
            let _ = control.write_all(&order.encode());
        }
    }

    /// Ends the run: when this returns, no process of it lives, or the result says otherwise. A command that
    /// still runs is stopped. Takes 1 s at most if all processes can be killed, and 8 s in any case.
    pub fn end(mut self) -> Result<Ended, SupervisorError> {
        self.order(Order::End);
        let mut ended = Ended::default();
        let until = Instant::now() + END_PATIENCE;
        while self.done.is_none() {
            match self.next(Some(until), None) {
                Ok(Wake::Event(Event::Exited { ending, .. })) => ended.ending = Some(ending),
                Ok(Wake::Event(Event::LogFailed { stderr, errno })) => {
                    ended.log_failures.push((stderr, errno));
                }
                Ok(Wake::Event(_) | Wake::Interrupted) => {}
                Ok(Wake::Deadline) => {
                    self.kill_guardian();
                    break;
                }
                Err(SupervisorError::Over) => break,
                Err(other) => return Err(other),
            }
        }
        ended.survivors = self.done.unwrap_or(0);
        ended.guardian_lost = self.lost;
        if ended.survivors == 0
            && let Some(mut guardian) = self.guardian.take()
        {
            if self.lost && !guardian.is_over_within(KILL_PATIENCE) {
                // A process that is not of the run traces it.
                self.guardian = Some(guardian);
                return Ok(ended);
            }
            // The guardian sent `Done`, or is dead: this takes no time.
            let waited = guardian.wait().map_err(io::Error::from);
            waited.map_err(SupervisorError::system("wait for guardian's end"))?;
            orphans::waited_for(guardian.id());
        }
        Ok(ended)
    }

    /// True if no process of the run is left; to be called once its command has ended. The guardian then ends
    /// by itself; one that still answers has processes to guard.
    pub fn is_deserted(&mut self) -> bool {
        let (before, until) = (self.beats, Instant::now() + END_PATIENCE);
        self.order(Order::Beat);
        self.awaits_beat = true;
        while self.done.is_none() && self.beats == before {
            match self.next(Some(until), None) {
                Ok(Wake::Event(_)) => {}
                Ok(Wake::Deadline | Wake::Interrupted) | Err(_) => break,
            }
        }
        self.awaits_beat = false;
        self.done == Some(0)
    }

    /// Kills a guardian that does not answer, and with it the processes of its run.
    fn kill_guardian(&mut self) {
        self.lost = true;
        self.kill_command();
    }

    /// Lets go of the run: what the command left behind lives on under its guardian, which keeps the logs and
    /// the hold until the last process is gone.
    pub fn linger(mut self) {
        self.order(Order::Linger);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // The guardian sees that the control pipe is closed, and ends the run unless it was ordered to let it
        // linger.
        self.control = None;
        if let Some(guardian) = self.guardian.take() {
            LET_GO.lock().unwrap_or_else(PoisonError::into_inner).push(guardian);
        }
    }
}

fn options(spec: &Spec) -> Result<Options, SupervisorError> {
    // The guardian changes its working directory.
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(SupervisorError::system("find working directory"));
    Ok(Options {
        argv: spec.argv.clone(),
        cwd: absolute(&spec.cwd)?.into(),
        stdin: spec.stdin.as_deref().map(absolute).transpose()?.map(Into::into),
        stdout_log: absolute(&spec.stdout_log)?.into(),
        stderr_log: absolute(&spec.stderr_log)?.into(),
        log_max: spec.log_max,
        timeout: spec.timeout,
        kill_grace: spec.kill_grace,
        watch: spec.watch.clone(),
        line_max: spec.line_max,
        tee: spec.tee,
        hold: spec.hold.is_some(),
        confine: spec.confine.clone(),
    })
}

/// Returns the ending of a run whose hold could not be taken.
fn not_held(hold: Option<&Path>, error: &io::Error) -> Ending {
    let (errno, why) = match error.kind() {
        io::ErrorKind::WouldBlock => (libc::EWOULDBLOCK, ", which another run has"),
        _ => (error.raw_os_error().unwrap_or(0), ""),
    };
    let path = hold.unwrap_or(Path::new("")).display();
    Ending::NotStarted { errno, what: format!("hold '{path}'{why}") }
}

/// Returns the errno if the command's own arguments or environment can't be passed on: they are too large, or
/// contain a NUL.
fn not_startable(error: &io::Error) -> Option<i32> {
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => Some(libc::E2BIG),
        io::ErrorKind::InvalidInput => Some(libc::EINVAL),
        _ => None,
    }
}

pub(super) fn ready(fd: &PollFd<'_>) -> bool {
    fd.any().unwrap_or(true)
}

pub(super) fn readable_now(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok() && ready(&fds[0])
}

/// Returns the time from now to a deadline, rounded up: a wait that ends too early would spin.
pub(super) fn patience(until: Option<Instant>) -> PollTimeout {
    let Some(until) = until else { return PollTimeout::NONE };
    let millis = until.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000);
    PollTimeout::try_from(i32::try_from(millis).unwrap_or(i32::MAX)).unwrap_or(PollTimeout::MAX)
}

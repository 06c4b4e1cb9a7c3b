//! Runs a short helper to its end: input, captured output, a deadline, an interrupt; no guardian.
//!
//! Costs no process but the helper, no thread and no signal handler. Never deadlocks on large input and
//! output together, and never waits for a descendant that keeps the pipes open. At a deadline or an interrupt
//! the helper gets SIGTERM, and SIGKILL after a grace (a `git` that is killed outright leaves locks).
//! `Bounded::new(command)`, set fields, `run`. Implements K17.

use super::SupervisorError;
use super::client::{patience, ready};
use super::confine::Confinement;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What the helper reads.
#[derive(Debug)]
pub enum Input {
    /// Nothing.
    Null,
    /// The caller's own standard input.
    Inherit,
    /// These bytes.
    Bytes(Vec<u8>),
    /// This file. A lock on it is held as long as the helper lives, even if the caller dies first.
    File(File),
}

/// Where one of the helper's output streams goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Nowhere.
    Null,
    /// To the caller's own stream.
    Inherit,
    /// Into memory, at most this many bytes; the rest is read and dropped.
    Capture(usize),
}

/// A helper and its bounds.
pub struct Bounded<'a> {
    /// Program, arguments, environment, working directory. Its stdio is set by the fields below.
    pub command: Command,
    /// Its stdin; nothing by default.
    pub input: Input,
    /// Its stdout; 64 MiB are captured by default.
    pub stdout: Output,
    /// Its stderr; 1 MiB is captured by default.
    pub stderr: Output,
    /// When the helper is ended.
    pub deadline: Option<Instant>,
    /// Most bytes of memory of its own that the helper may have; what maps a file is not counted. `None`: any number, as
    /// everywhere but on Linux.
    pub memory: Option<u64>,
    /// The helper is ended once this returns true; called at least every 20 ms.
    pub interrupt: Option<&'a dyn Fn() -> bool>,
    /// Called with the helper's process id, once it runs.
    pub started: Option<&'a dyn Fn(u32)>,
    /// The time from SIGTERM to SIGKILL; 5 s by default.
    pub term_grace: Duration,
    /// Whether the helper gets a process group of its own, to which signals then go. Without one it shares
    /// the terminal's foreground, so that prompts and Ctrl-C reach it.
    pub own_group: bool,
    /// What the helper is confined to; `None`: it is not confined (K59).
    pub confine: Option<&'a Confinement>,
    /// Whether signals go to the helper alone even if it has a group: some of the processes that it starts
    /// are not the caller's to end.
    pub alone: bool,
}

/// Why a helper ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It exited by itself.
    Ended,
    /// It was ended at its deadline.
    Deadline {
        /// Whether SIGKILL was needed.
        killed: bool,
    },
    /// It was ended because the interrupt asked for that.
    Interrupted {
        /// Whether SIGKILL was needed.
        killed: bool,
    },
}

/// What was captured of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// Its bytes, up to the limit.
    pub bytes: Vec<u8>,
    /// Whether there were more bytes than the limit.
    pub truncated: bool,
}

/// A helper that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its stdout; empty if not captured.
    pub stdout: Captured,
    /// Its stderr; empty if not captured.
    pub stderr: Captured,
    /// Why it ended.
    pub verdict: Verdict,
    /// Whether another process still held its stdout or stderr.
    pub leaked: bool,
}

impl<'a> Bounded<'a> {
    /// Returns this command with the default bounds.
    pub fn new(command: Command) -> Self {
        Self {
            command,
            input: Input::Null,
            stdout: Output::Capture(64 << 20),
            stderr: Output::Capture(1 << 20),
            deadline: None,
            memory: None,
            interrupt: None,
            started: None,
            term_grace: Duration::from_secs(5),
            own_group: false,
            confine: None,
            alone: false,
        }
    }

    /// Returns this program, without arguments, with the default bounds.
    pub fn program(program: &std::path::Path) -> Self {
        Self::new(Command::new(program))
    }

    /// Runs the helper to its end.
    pub fn run(mut self) -> Result<Finished, SupervisorError> {
        let mut input = Vec::new();
        self.command.stdin(match std::mem::replace(&mut self.input, Input::Null) {
            Input::Null => Stdio::null(),
            Input::Inherit => Stdio::inherit(),
            Input::File(file) => Stdio::from(file),
            Input::Bytes(bytes) => {
                input = bytes;
                Stdio::piped()
            }
        });
        self.command.stdout(stdio(self.stdout)).stderr(stdio(self.stderr));
        if self.own_group {
            self.command.process_group(0);
        }
        let spawned = match self.confine {
            None => self.command.spawn(),
            Some(confinement) => confinement.spawn(&mut self.command),
        };
        let child = spawned.map_err(|source| SupervisorError::NoHelper {
            program: PathBuf::from(self.command.get_program()),
            source,
        })?;
        if let Some(bytes) = self.memory {
            limit_memory(child.id(), bytes);
        }
        if let Some(started) = self.started {
            started(child.id());
        }
        let mut running = Running::new(child, input, &self);
        running.set_nonblocking()?;
        let status = running.wait()?;
        let leaked = running.outputs.iter().any(|output| output.pipe.is_some());
        let [stdout, stderr] = std::mem::take(&mut running.outputs).map(|output| output.captured);
        let verdict = running.verdict();
        Ok(Finished { status, stdout, stderr, verdict, leaked })
    }
}

/// Runs a helper to its end, without input; returns its exit status, and what it printed to both streams, in
/// the order in which it was printed. None of the helper's standard streams is the caller's terminal.
pub fn transcript(mut command: Command) -> Result<(ExitStatus, Vec<u8>), SupervisorError> {
    let (mut reader, writer) = io::pipe().map_err(SupervisorError::system("make a pipe"))?;
    let both = writer.try_clone().map_err(SupervisorError::system("make a pipe"))?;
    command.stdin(Stdio::null()).stdout(both).stderr(writer);
    let spawned = command.spawn();
    let mut child = spawned.map_err(|source| SupervisorError::NoHelper {
        program: PathBuf::from(command.get_program()),
        source,
    })?;
    // `command` holds write ends of the pipe; the reader must see the child's copies alone, or it would never
    // end.
    drop(command);
    let mut printed = Vec::new();
    reader.read_to_end(&mut printed).map_err(SupervisorError::system("read from helper"))?;
    let status = child.wait().map_err(SupervisorError::system("wait for helper"))?;
    Ok((status, printed))
}

/// Bounds the memory of a helper that has just begun. The limit is the kernel's (`RLIMIT_DATA`): the helper's next
/// allocation beyond it fails.
#[cfg(target_os = "linux")]
fn limit_memory(pid: u32, bytes: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    // A helper that has ended already needs no limit.
    let _ = prlimit(Pid::from_raw(pid as i32), Resource::Data, limit);
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_pid: u32, _bytes: u64) {}

fn stdio(output: Output) -> Stdio {
    match output {
        Output::Null => Stdio::null(),
        Output::Inherit => Stdio::inherit(),
        Output::Capture(_) => Stdio::piped(),
    }
}

/// The time between two looks for a death that no pipe announced; grows from the first value to the second.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LATER_LOOK: Duration = Duration::from_millis(20);
/// A process that closes its pipes is usually dead some microseconds later. So its death is looked for this
/// often, with such pauses, before the longer looks begin.
const BLINKS: u32 = 20;
const BLINK: Duration = Duration::from_micros(50);
/// How long output of a dead helper is waited for while another process holds the pipe.
const DRAIN: Duration = Duration::from_millis(500);
/// How many pieces of what a dead process left in a pipe are read at most, once there is no time to wait for more: a
/// process elsewhere may have been handed the pipe and go on writing.
pub(super) const LATE_PIECES: u32 = 64;

#[derive(Default)]
struct Capture {
    pipe: Option<OwnedFd>,
    limit: usize,
    captured: Captured,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Deadline,
    Interrupt,
}

struct Running<'a> {
    child: Child,
    stdin: Option<OwnedFd>,
    input: Vec<u8>,
    written: usize,
    outputs: [Capture; 2],
    deadline: Option<Instant>,
    interrupt: Option<&'a dyn Fn() -> bool>,
    term_grace: Duration,
    to_group: bool,
    cause: Option<Cause>,
    kill_at: Option<Instant>,
    killed: bool,
    buffer: Vec<u8>,
}

impl<'a> Running<'a> {
    fn new(mut child: Child, input: Vec<u8>, bounds: &Bounded<'a>) -> Self {
        let capture = |pipe: Option<OwnedFd>, output: Output| match output {
            Output::Capture(limit) => Capture { pipe, limit, captured: Captured::default() },
            Output::Null | Output::Inherit => Capture::default(),
        };
        let outputs = [
            capture(child.stdout.take().map(OwnedFd::from), bounds.stdout),
            capture(child.stderr.take().map(OwnedFd::from), bounds.stderr),
        ];
        Self {
            stdin: child.stdin.take().map(OwnedFd::from),
            child,
            input,
            written: 0,
            outputs,
            deadline: bounds.deadline,
            interrupt: bounds.interrupt,
            term_grace: bounds.term_grace,
            to_group: bounds.own_group && !bounds.alone,
            cause: None,
            kill_at: None,
            killed: false,
            buffer: vec![0; 64 << 10],
        }
    }

    fn set_nonblocking(&self) -> Result<(), SupervisorError> {
        let outputs = self.outputs.iter().filter_map(|output| output.pipe.as_ref());
        for pipe in self.stdin.iter().chain(outputs) {
            fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
                .map_err(|errno| SupervisorError::system("set pipe non-blocking")(errno.into()))?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<ExitStatus, SupervisorError> {
        let mut look = FIRST_LOOK;
        let mut status = None;
        let mut drained_at = None;
        let mut blinks = BLINKS;
        // What a dead helper left is read even where this process was kept from running until the time for that was
        // over; a process that holds the pipe and goes on writing is not listened to for ever.
        let (mut moved, mut late) = (true, 0);
        loop {
            let quiet = self.outputs.iter().all(|output| output.pipe.is_none());
            if status.is_none() {
                status = self.child.try_wait().map_err(SupervisorError::system("wait for helper"))?;
                drained_at = status.map(|_| Instant::now() + DRAIN);
            }
            let is_late = drained_at.is_some_and(|at| at <= Instant::now());
            late += u32::from(is_late);
            if let Some(status) = status
                && (quiet || is_late && (!moved || late > LATE_PIECES))
            {
                return Ok(status);
            }
            if status.is_none() {
                self.enforce();
            }
            if quiet && blinks > 0 {
                blinks -= 1;
                std::thread::sleep(BLINK);
                continue;
            }
            let next = match drained_at {
                Some(at) => at,
                None => self.next_duty(Instant::now() + look),
            };
            moved = self.poll_once(next, status.is_some())?;
            // Output shows that the helper lives; silence may mean that it has ended.
            look = if moved { FIRST_LOOK } else { (look * 2).min(LATER_LOOK) };
        }
    }

    fn next_duty(&self, look: Instant) -> Instant {
        let deadline = self.deadline.filter(|_| self.cause.is_none());
        let kill_at = self.kill_at.filter(|_| !self.killed);
        [deadline, kill_at].into_iter().flatten().fold(look, Instant::min)
    }

    /// Ends the helper if its time is over or the interrupt asks for it.
    fn enforce(&mut self) {
        if self.cause.is_none() {
            let late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
            self.cause = match (self.interrupt.is_some_and(|asked| asked()), late) {
                (true, _) => Some(Cause::Interrupt),
                (false, true) => Some(Cause::Deadline),
                (false, false) => return,
            };
            self.kill_at = Some(Instant::now() + self.term_grace);
            self.signal(Signal::SIGTERM);
        }
        if !self.killed && self.kill_at.is_some_and(|at| at <= Instant::now()) {
            self.killed = true;
            self.signal(Signal::SIGKILL);
        }
    }

    fn signal(&self, signal: Signal) {
        // The helper was not reaped yet, so the process id is still its own.
        let pid = Pid::from_raw(self.child.id() as i32);
        let _ = if self.to_group { killpg(pid, signal) } else { kill(pid, signal) };
    }

    fn verdict(&self) -> Verdict {
        match self.cause {
            None => Verdict::Ended,
            Some(Cause::Deadline) => Verdict::Deadline { killed: self.killed },
            Some(Cause::Interrupt) => Verdict::Interrupted { killed: self.killed },
        }
    }

    /// Waits for a pipe or until `until`, and serves whatever is ready; true if bytes moved or a stream
    /// ended.
    fn poll_once(&mut self, until: Instant, dead: bool) -> Result<bool, SupervisorError> {
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(4);
        let reads = self.outputs.iter().map(|output| output.pipe.as_ref().map(AsFd::as_fd));
        fds.extend(reads.flatten().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let stdin = self.stdin.as_ref().filter(|_| !dead);
        fds.extend(stdin.map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)));
        match poll(&mut fds, patience(Some(until))) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(SupervisorError::system("wait for helper")(errno.into())),
        }
        if !fds.iter().any(ready) {
            return Ok(false);
        }
        drop(fds);
        // Every pipe is non-blocking: serving one that is not ready costs only a system call.
        let wrote = self.write();
        let [stdout, stderr] = &mut self.outputs;
        let read = [stdout, stderr].map(|output| output.read(&mut self.buffer));
        Ok(wrote || read[0] || read[1])
    }

    fn write(&mut self) -> bool {
        let Some(pipe) = &self.stdin else { return false };
        let before = self.written;
        let open = loop {
            let rest = &self.input[self.written..];
            if rest.is_empty() {
                break false;
            }
            match nix::unistd::write(pipe, rest) {
                Ok(n) => self.written += n,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break true,
                // The helper reads no more of its input; that is its own affair.
                Err(_) => break false,
            }
        };
        if !open {
            self.stdin = None;
        }
        self.written > before
    }
}

impl Capture {
    /// Reads one piece, or notices the end of the stream; true for either.
    fn read(&mut self, buffer: &mut [u8]) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        match nix::unistd::read(pipe, buffer) {
            Ok(n) if n > 0 => {
                let room = self.limit - self.captured.bytes.len();
                self.captured.bytes.extend_from_slice(&buffer[..n.min(room)]);
                self.captured.truncated |= n > room;
                true
            }
            Err(Errno::EAGAIN | Errno::EINTR) => false,
            Ok(_) | Err(_) => {
                self.pipe = None;
                true
            }
        }
    }
}

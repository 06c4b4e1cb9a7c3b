//! An agent's program under a guardian of its own: lines come out, bytes go in, and there are three ways to
//! end it.
//!
//! Call `Program::start`, then `next` until [`Step::Ended`]. Meanwhile `say` and `close` serve its standard
//! input, and `interrupt`, then `stop`, end it: SIGINT to its process group, SIGTERM to everything that it
//! started, SIGKILL after the grace. What it started in sessions of its own ends with it. A program that is
//! told everything at once reads a file. A program that is talked to reads a named pipe, which is written
//! without blocking, so that no turn waits for a program to read. Implements N9 (nothing is left).

use crate::agents::ending::Exit;
use crate::agents::lines::{Line, Lines};
use crate::runner::clock::Clock;
use crate::supervisor::confine::Confinement;
use crate::supervisor::{self, Ending, Event, Spec, Supervised, SupervisorError, Wake};
use nix::sys::stat::Mode;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The files in the turn's folder with what the program printed on standard output, and on standard error.
pub const TRANSCRIPT: &str = "transcript.txt";
/// See [`TRANSCRIPT`].
pub const STDERR: &str = "stderr.txt";

/// The time between two tries to write what a program does not read yet.
const NAP: Duration = Duration::from_millis(20);
/// How much of the end of the program's standard error is kept to judge its ending, in bytes.
const STDERR_KEPT: usize = 8 << 10;
/// Most bytes that wait for a program which reads nothing.
const PENDING_MAX: usize = 64 << 20;

/// How a program is started.
pub struct Launch<'a> {
    /// The `git-aynig` binary, which becomes the guardian.
    pub guardian: PathBuf,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The folder that it works in.
    pub cwd: &'a Path,
    /// The turn's own folder.
    pub folder: &'a Path,
    /// What the program reads first.
    pub opening: Vec<u8>,
    /// Whether that is all that the program reads.
    pub closes: bool,
    /// Most bytes that are kept of what it prints.
    pub log_max: u64,
    /// What the program is confined to; `None` where it is confined to nothing.
    pub confine: Option<Confinement>,
}

/// What [`Program::next`] found.
#[derive(Debug)]
pub enum Step {
    /// A line of its standard output.
    Line(Line),
    /// A line of its standard error.
    Complaint(Line),
    /// The program ended.
    Ended(Exit),
    /// `until` has come.
    Deadline,
    /// A descriptor of the caller's is readable.
    Watched,
}

/// A program that runs.
pub struct Program<'a> {
    run: Option<Supervised>,
    clock: &'a dyn Clock,
    name: OsString,
    /// The program's standard input while it is talked to, and what was not written to it yet.
    pipe: Pipe,
    pending: VecDeque<u8>,
    /// Whether the pipe is to be closed once nothing is pending.
    closing: bool,
    out: Lines,
    err: Lines,
    /// The end of the program's standard error.
    pub stderr: Vec<u8>,
    ready: VecDeque<Step>,
}

enum Pipe {
    /// The program reads a file, or nothing any more.
    None,
    /// The program did not begin to read yet: both ends are held open for it.
    Held { _both: File, path: PathBuf },
    /// The program reads.
    Open(File),
}

fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> SupervisorError {
    move |source| SupervisorError::System { what, source }
}

impl<'a> Program<'a> {
    /// Starts the program. It is no error if the program can't be started: [`Program::next`] reports that it
    /// ended.
    ///
    /// # Errors
    /// Where the turn's folder can't be written, or there can be no guardian.
    pub fn start(launch: &Launch<'_>, clock: &'a dyn Clock) -> Result<Self, SupervisorError> {
        let stdin = launch.folder.join("stdin");
        match std::fs::remove_file(&stdin) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed("remove file")(error)),
            Ok(()) | Err(_) => {}
        }
        let (pipe, pending) = if launch.closes {
            let mut options = File::options();
            let file = options.write(true).create_new(true).mode(0o600).open(&stdin);
            file.and_then(|mut file| file.write_all(&launch.opening)).map_err(failed("write prompt"))?;
            (Pipe::None, VecDeque::new())
        } else {
            let made = nix::unistd::mkfifo(&stdin, Mode::S_IRUSR | Mode::S_IWUSR);
            made.map_err(|errno| failed("make named pipe")(errno.into()))?;
            // Both ends are opened, because to open one end alone waits for the other.
            let _both =
                File::options().read(true).write(true).open(&stdin).map_err(failed("open named pipe"))?;
            (Pipe::Held { _both, path: stdin.clone() }, launch.opening.iter().copied().collect())
        };
        let spec = Spec {
            guardian: launch.guardian.clone(),
            argv: launch.argv.clone(),
            env: launch.env.clone(),
            stdin: Some(stdin),
            cwd: launch.cwd.to_owned(),
            stdout_log: launch.folder.join(TRANSCRIPT),
            stderr_log: launch.folder.join(STDERR),
            log_max: launch.log_max,
            timeout: None,
            kill_grace: Duration::ZERO,
            watch: Vec::new(),
            line_max: 0,
            tee: true,
            hold: None,
            confine: launch.confine.clone(),
            stop_after: None,
        };
        Ok(Self {
            run: Some(Supervised::start(&spec)?),
            clock,
            name: launch.argv.first().cloned().unwrap_or_default(),
            pipe,
            pending,
            closing: false,
            out: Lines::default(),
            err: Lines::default(),
            stderr: Vec::new(),
            ready: VecDeque::new(),
        })
    }

    /// Waits for the next thing that happens, at most until `until`, and not while any of `watched` is
    /// readable. Lines that were read are returned before either is looked at, so the caller has to look at
    /// the time itself.
    pub fn next(&mut self, until: Instant, watched: &[BorrowedFd<'_>]) -> Result<Step, SupervisorError> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Ok(step);
            }
            self.flush();
            let now = self.clock.instant();
            let waits = !self.pending.is_empty() || (self.closing && !matches!(self.pipe, Pipe::None));
            let nap = if waits { until.min(now + NAP) } else { until };
            let Some(run) = &mut self.run else { return Err(SupervisorError::Over) };
            match run.next_of(Some(nap), watched)? {
                Wake::Deadline if nap < until => {}
                Wake::Deadline => return Ok(Step::Deadline),
                Wake::Interrupted => return Ok(Step::Watched),
                Wake::Event(event) => self.take(event)?,
            }
        }
    }

    fn take(&mut self, event: Event) -> Result<(), SupervisorError> {
        match event {
            Event::Started { .. } => {
                if let Pipe::Held { path, .. } = &self.pipe {
                    let mut options = File::options();
                    let options = options.write(true).custom_flags(nix::libc::O_NONBLOCK);
                    // The open fails if the program has closed its standard input already, and so reads
                    // nothing.
                    self.pipe = options.open(path).map_or(Pipe::None, Pipe::Open);
                }
            }
            Event::Chunk { stderr: false, bytes } => {
                self.ready.extend(self.out.feed(&bytes).into_iter().map(Step::Line));
            }
            Event::Chunk { stderr: true, bytes } => {
                self.ready.extend(self.err.feed(&bytes).into_iter().map(Step::Complaint));
                self.stderr.extend_from_slice(&bytes);
                let surplus = self.stderr.len().saturating_sub(STDERR_KEPT);
                self.stderr.drain(..surplus);
            }
            Event::Exited { ending, .. } => self.ended(&ending)?,
            Event::Line(_)
            | Event::LongLine(_)
            | Event::Output { .. }
            | Event::LogFailed { .. }
            | Event::Done { .. }
            | Event::Beat => {}
        }
        Ok(())
    }

    fn ended(&mut self, ending: &Ending) -> Result<(), SupervisorError> {
        (self.pipe, self.closing) = (Pipe::None, false);
        self.pending.clear();
        self.ready.extend(std::mem::take(&mut self.out).end().map(Step::Line));
        self.ready.extend(std::mem::take(&mut self.err).end().map(Step::Complaint));
        self.ready.push_back(Step::Ended(self.exit(ending)));
        if let Some(run) = self.run.take() {
            run.end()?;
        }
        Ok(())
    }

    fn exit(&self, ending: &Ending) -> Exit {
        let left = |exit: &supervisor::Exit| match exit {
            supervisor::Exit::Code(code) => Exit::Code(*code),
            supervisor::Exit::Signal { signal, .. } => Exit::Signal(*signal),
        };
        let name = self.name.to_string_lossy();
        match ending {
            Ending::Exited(code) => Exit::Code(*code),
            Ending::Signaled { signal, .. } => Exit::Signal(*signal),
            Ending::TimedOut { exit, .. } | Ending::Stopped { exit } => left(exit),
            Ending::NotStarted { errno, what }
                if *errno == nix::libc::ENOENT && *what == format!("'{name}'") =>
            {
                Exit::Missing(name.into_owned())
            }
            Ending::NotStarted { .. } | Ending::GuardianLost | Ending::GuardianStopped => {
                Exit::NotStarted(ending.to_string())
            }
        }
    }

    /// Writes to the program's standard input, as soon as the program reads. What is said to a program that
    /// reads no more is lost.
    pub fn say(&mut self, bytes: &[u8]) {
        if !matches!(self.pipe, Pipe::None) && !self.closing && self.pending.len() < PENDING_MAX {
            self.pending.extend(bytes);
            self.flush();
        }
    }

    /// Closes the program's standard input once it has read what was said.
    pub fn close(&mut self) {
        self.closing = true;
        self.flush();
    }

    fn flush(&mut self) {
        let Pipe::Open(pipe) = &mut self.pipe else { return };
        while !self.pending.is_empty() {
            match pipe.write(self.pending.make_contiguous()) {
                Ok(written) => drop(self.pending.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The program closed its end.
                Err(_) => {
                    self.pending.clear();
                    self.pipe = Pipe::None;
                    return;
                }
            }
        }
        if self.closing {
            self.pipe = Pipe::None;
        }
    }

    /// Sends SIGINT to the program's process group.
    pub fn interrupt(&mut self) {
        self.run.iter_mut().for_each(Supervised::interrupt);
    }

    /// Sends SIGTERM to everything that the program started, and SIGKILL after the grace.
    pub fn stop(&mut self, grace: Duration) {
        self.run.iter_mut().for_each(|run| run.stop(grace));
    }
}

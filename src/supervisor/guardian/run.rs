//! One run: a single wait loop over the command's death, its output, the caller, signals and deadlines.
//!
//! The run goes Running -> Draining (the command is dead, its output may not have ended) -> Decided
//! (reported), and is over when it is decided and no process of it lives. What ends it early is a cause (time
//! limit or stop), and all causes end it through one [`Killer`]. Nothing in this loop blocks but `poll`.
//! Implements K16-K18, K21.

use super::super::bounded::LATE_PIECES;
use super::super::ending::{Ending, Exit};
use super::super::wire::{Event, Order};
use super::control::{Control, Heard};
use super::kill::Killer;
use super::options::Options;
use super::outbox::Outbox;
use super::pump::{Piece, Stream};
use super::scan::{Scanner, line_event};
use super::signals::Signals;
use super::spawn::errno_of;
use super::{Prepared, clock};
use nix::errno::Errno;
use nix::fcntl::Flock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How long the output of a dead command is waited for while another process holds the pipe.
const DRAIN: Duration = Duration::from_millis(500);
/// The time from SIGTERM to SIGKILL once no caller is interested in the run any more.
const END_GRACE: Duration = Duration::from_millis(500);
/// The least time between two progress events.
const PROGRESS: Duration = Duration::from_millis(250);
/// `poll` does not count suspended time, so no wait for a time limit is longer than this.
const NAP: Duration = Duration::from_secs(2);
/// Where the guardian can't adopt orphans, their deaths are not announced to it, and it looks for them this
/// often.
const LOOK: Duration = Duration::from_millis(100);

const STDOUT: usize = 0;
const STDERR: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Itself,
    TimeLimit,
    Stop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Draining { until: Duration },
    Decided,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    Waiting,
    /// The caller ordered the end of the run, or is gone.
    Finished,
    Lingers,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Signals,
    Control,
    Outbox,
    Output(usize),
}

pub(super) struct Run<'a> {
    options: &'a Options,
    hold: Option<Flock<File>>,
    outbox: Outbox<'a>,
    control: Control<'a>,
    signals: Signals,
    streams: [Stream; 2],
    buffer: Vec<u8>,
    scanner: Scanner,
    command: Pid,
    time_limit: Option<Duration>,
    /// When the command is stopped unless a later order replaces this, and with which grace.
    stop_at: Option<(Duration, Duration)>,
    exit: Option<Exit>,
    cause: Cause,
    phase: Phase,
    caller: Caller,
    killer: Killer,
    /// True while `wait` still knows children, so a process of the run may live.
    children: bool,
    /// True once `Done` was sent although processes survived.
    gave_up: bool,
    /// Which stream printed since the last progress event, and when the next such event may be sent.
    printed: Option<usize>,
    next_progress: Duration,
}

impl<'a> Run<'a> {
    pub fn new(
        options: &'a Options,
        prepared: Prepared,
        control: BorrowedFd<'a>,
        mut outbox: Outbox<'a>,
    ) -> Self {
        let Prepared { hold, logs, signals, spawned } = prepared;
        outbox.send(Event::Started { pid: spawned.command.as_raw() as u32 });
        let [stdout_log, stderr_log] = logs;
        Self {
            options,
            hold,
            outbox,
            control: Control::new(control),
            signals,
            streams: [Stream::new(spawned.stdout, stdout_log), Stream::new(spawned.stderr, stderr_log)],
            buffer: vec![0; Stream::PIECE],
            scanner: Scanner::new(options.watch.clone(), options.line_max),
            command: spawned.command,
            time_limit: options.timeout.map(|timeout| clock::now().saturating_add(timeout)),
            stop_at: None,
            exit: None,
            cause: Cause::Itself,
            phase: Phase::Running,
            caller: Caller::Waiting,
            killer: Killer::new(spawned.command),
            children: true,
            gave_up: false,
            printed: None,
            next_progress: Duration::ZERO,
        }
    }

    /// Runs the run to its end.
    pub fn run(mut self) {
        loop {
            let now = clock::now();
            self.act(now);
            if self.phase == Phase::Decided && !self.anyone_left() {
                break;
            }
            for source in self.wait(now) {
                self.serve(source);
            }
        }
        self.finish();
    }

    #[cfg(target_os = "linux")]
    fn anyone_left(&self) -> bool {
        self.children
    }

    #[cfg(not(target_os = "linux"))]
    fn anyone_left(&self) -> bool {
        self.children || nix::sys::signal::killpg(self.command, None).is_ok()
    }

    /// Does everything that is due by now.
    fn act(&mut self, now: Duration) {
        if self.phase == Phase::Running && self.time_limit.is_some_and(|limit| limit <= now) {
            self.time_limit = None;
            self.end(Cause::TimeLimit, self.options.kill_grace);
        }
        if self.phase == Phase::Running
            && let Some((_, grace)) = self.stop_at.take_if(|(at, _)| *at <= now)
        {
            self.end(Cause::Stop, grace);
        }
        if self.anyone_left() {
            self.killer.tick(now);
        }
        if let Phase::Draining { until } = self.phase
            && (self.streams.iter().all(|s| s.open_pipe().is_none()) || until <= now && !self.outbox.full())
        {
            // Where the guardian itself was kept from running meanwhile, it has not seen yet how the output ends.
            self.pump_what_is_there();
            self.decide();
        }
        if self.printed.is_some() && self.next_progress <= now {
            self.tell_progress(now);
        }
        if self.caller == Caller::Finished
            && !self.gave_up
            && self.anyone_left()
            && let Some(survivors) = self.killer.survivors(now).filter(|n| *n > 0)
        {
            self.gave_up = true;
            self.outbox.send(Event::Done { survivors });
        }
    }

    /// Ends the command for this cause if it still runs, and whatever else of the run lives.
    fn end(&mut self, cause: Cause, grace: Duration) {
        if self.exit.is_none() && self.cause == Cause::Itself {
            self.cause = cause;
        }
        self.killer.ask(clock::now(), grace);
    }

    /// Waits until something happens or becomes due; returns the sources that are ready.
    fn wait(&self, now: Duration) -> Vec<Source> {
        let mut watched = vec![(Source::Signals, self.signals.as_fd(), PollFlags::POLLIN)];
        if let Some(pipe) = self.control.open_pipe() {
            watched.push((Source::Control, pipe, PollFlags::POLLIN));
        }
        if self.outbox.pending() {
            watched.push((Source::Outbox, self.outbox.as_fd(), PollFlags::POLLOUT));
        }
        for (index, stream) in self.streams.iter().enumerate() {
            if let (Some(pipe), false) = (stream.open_pipe(), self.outbox.full()) {
                watched.push((Source::Output(index), pipe, PollFlags::POLLIN));
            }
        }
        let mut fds: Vec<_> = watched.iter().map(|(_, fd, events)| PollFd::new(*fd, *events)).collect();
        // Only EINTR is possible, and then the signal is in its pipe already.
        let _ = poll(&mut fds, self.patience(now));
        let ready = watched.iter().zip(&fds).filter(|(_, fd)| fd.any().unwrap_or(true));
        ready.map(|((source, _, _), _)| *source).collect()
    }

    /// Returns how long nothing becomes due.
    fn patience(&self, now: Duration) -> PollTimeout {
        let draining = match self.phase {
            // With a full outbox the deadline is not what is waited for: the pipe says when it has room.
            Phase::Draining { until } => Some(until).filter(|_| !self.outbox.full()),
            Phase::Running | Phase::Decided => None,
        };
        let limits = [self.time_limit, self.stop_at.map(|(at, _)| at)].into_iter().flatten().min();
        let limit = limits.filter(|_| self.phase == Phase::Running).map(|at| at.min(now + NAP));
        let progress = self.printed.map(|_| self.next_progress);
        let look = (!cfg!(target_os = "linux") && !self.children).then(|| now + LOOK);
        let due = self.killer.due().filter(|_| self.anyone_left());
        let first = [draining, limit, progress, look, due].into_iter().flatten().min();
        let Some(first) = first else { return PollTimeout::NONE };
        // Rounded up: a wait that ends too early would spin.
        let millis = first.saturating_sub(now).as_micros().div_ceil(1000);
        PollTimeout::try_from(i32::try_from(millis).unwrap_or(i32::MAX)).unwrap_or(PollTimeout::MAX)
    }

    fn serve(&mut self, source: Source) {
        match source {
            Source::Signals => {
                let arrived = self.signals.take();
                if arrived.children {
                    self.reap();
                    self.killer.child_died();
                }
                if arrived.terminate {
                    self.caller_finished();
                }
            }
            Source::Control => {
                for heard in self.control.read() {
                    self.obey(heard);
                }
            }
            Source::Outbox => self.outbox.flush(),
            Source::Output(index) => {
                self.pump(index);
            }
        }
    }

    fn caller_finished(&mut self) {
        self.caller = Caller::Finished;
        self.end(Cause::Stop, END_GRACE);
    }

    fn obey(&mut self, heard: Heard) {
        match heard {
            Heard::Order(Order::Stop(grace)) => self.end(Cause::Stop, grace),
            Heard::Order(Order::StopAfter(after, grace)) => {
                self.stop_at = clock::now().checked_add(after).map(|at| (at, grace));
            }
            Heard::Order(Order::Interrupt) => {
                // Once the command was waited for, its process id may belong to another process.
                if self.exit.is_none() {
                    let _ = killpg(self.command, Signal::SIGINT);
                }
            }
            Heard::Order(Order::Beat) => self.outbox.send(Event::Beat),
            Heard::Order(Order::End) => self.caller_finished(),
            Heard::Order(Order::Linger) => {
                self.caller = Caller::Lingers;
                self.outbox.close();
            }
            Heard::Gone if self.caller == Caller::Waiting => {
                self.outbox.close();
                self.caller_finished();
            }
            Heard::Gone => self.outbox.close(),
        }
    }

    /// Reaps dead children: the command, and orphans that came to the guardian.
    fn reap(&mut self) {
        self.peek_nameless_death();
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => self.left(pid, Exit::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, core_dumped)) => {
                    self.left(pid, Exit::Signal { signal: signal as i32, core_dumped });
                }
                Ok(WaitStatus::StillAlive) => return,
                Err(Errno::ECHILD) => {
                    self.children = false;
                    return;
                }
                // EINVAL: the process that was reaped had been killed by a real-time signal.
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Looks, before the command is reaped, whether a real-time signal killed it: nix does not know those
    /// signals, and its `wait` then says neither which process died nor how.
    #[cfg(target_os = "linux")]
    fn peek_nameless_death(&mut self) {
        use nix::sys::wait::{Id, waitid};
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        if self.exit.is_none() && waitid(Id::Pid(self.command), peek) == Err(Errno::EINVAL) {
            let signal = super::kill::zombie_signal(self.command).unwrap_or(0);
            self.left(self.command, Exit::Signal { signal, core_dumped: false });
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn peek_nameless_death(&mut self) {}

    fn left(&mut self, pid: Pid, exit: Exit) {
        if pid == self.command && self.exit.is_none() {
            self.exit = Some(exit);
            self.phase = Phase::Draining { until: clock::now() + DRAIN };
        }
    }

    /// Reads one piece of output; false if there was none.
    fn pump(&mut self, index: usize) -> bool {
        let (bytes, failure) = match self.streams[index].read(&mut self.buffer) {
            Piece::Bytes(bytes, failure) => (bytes, failure),
            Piece::Nothing | Piece::End => return false,
        };
        // Output that comes after the run was decided is logged, but no longer scanned for lines.
        if index == STDOUT && self.phase != Phase::Decided {
            self.scanner.feed(bytes, |found| self.outbox.send(line_event(found)));
        }
        if self.options.tee {
            self.outbox.send(Event::Chunk { stderr: index == STDERR, bytes: bytes.to_vec() });
        }
        self.printed = Some(index);
        self.tell_log_failure(index, failure);
        true
    }

    /// Reads what dead processes left in the pipes.
    fn pump_what_is_there(&mut self) {
        for index in [STDOUT, STDERR] {
            for _ in 0..LATE_PIECES {
                if !self.pump(index) {
                    break;
                }
            }
        }
    }

    fn tell_log_failure(&mut self, index: usize, failure: Option<io::Error>) {
        if let Some(error) = failure {
            let errno = errno_of(&error) as i32;
            self.outbox.send(Event::LogFailed { stderr: index == STDERR, errno });
        }
    }

    fn tell_progress(&mut self, now: Duration) {
        if let Some(index) = self.printed.take() {
            let [stdout, stderr] = [STDOUT, STDERR].map(|i| self.streams[i].taken);
            let last = self.streams[index].last.get();
            self.outbox.send(Event::Output { stdout, stderr, last });
            self.next_progress = now + PROGRESS;
        }
    }

    /// Reports how the command ended: it is dead, and all of its output that counts was read.
    fn decide(&mut self) {
        let Some(exit) = self.exit else { return };
        self.scanner.finish(|found| self.outbox.send(line_event(found)));
        self.tell_progress(clock::now());
        let ending = match (self.cause, self.options.timeout) {
            (Cause::TimeLimit, Some(after)) => Ending::TimedOut { after, exit },
            (Cause::Stop, _) => Ending::Stopped { exit },
            (Cause::Itself | Cause::TimeLimit, _) => exit.into(),
        };
        let leaked = self.streams.iter().any(|s| s.open_pipe().is_some());
        self.outbox.send(Event::Exited { ending, leaked });
        self.phase = Phase::Decided;
    }

    /// Ends the guardian's work once no process of the run lives: completes the logs, releases the hold, and
    /// only then reports `Done`.
    fn finish(mut self) {
        self.pump_what_is_there();
        for index in [STDOUT, STDERR] {
            let failure = self.streams[index].finish().err();
            self.tell_log_failure(index, failure);
        }
        self.tell_progress(clock::now());
        drop(self.hold.take());
        if !self.gave_up {
            self.outbox.send(Event::Done { survivors: 0 });
        }
        self.outbox.drain();
    }
}

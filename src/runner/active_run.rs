//! A run that is under way: the branch that it holds, its slot, its logs, and what is known of its command.
//!
//! `tick` makes one from a claim and a slot and moves it through the rest of the contract's steps:
//! [`ActiveRun::run`] (`run`), [`ActiveRun::check_head`] (`head`), [`ActiveRun::swap`] (`complete`).
//! Filling the slot is part of the run: it has a time limit, the lease is renewed meanwhile, and it is
//! stopped when the run is no longer wanted. Implements K14, K17, K18.

use super::heard;
use super::lease::Claim;
use super::logs::{self, Logs};
use super::report::{Note, Outcome, Ran, Report};
use super::{Runner, RunnerError, io};
use crate::protocol::body_line::body_said;
use crate::protocol::complete::Exit;
use crate::protocol::declaration::Declarations;
use crate::protocol::holding::{Duty, RENEW_AGAIN};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::protocol::usage::Usage;
use crate::store::beneath::{BeneathError, Root};
use crate::store::command_tree::Command;
use crate::store::slots::{Occupant, Slot};
use crate::store::{RefName, StoreError};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often a run's lock is tried for, and how long between.
const HELD_TRIES: u32 = 50;
const HELD_PAUSE: Duration = Duration::from_millis(2);
/// How often the runner checks for a signal while the slot is filled.
const LOOK: Duration = Duration::from_millis(50);

/// The command that is to be started, and the copy of `.aynig/` that it is started from.
pub(super) struct Program {
    pub command: Command,
    pub place: PathBuf,
}

/// A run that is under way.
pub(super) struct ActiveRun<'a> {
    pub runner: &'a Runner<'a>,
    pub branch: &'a RefName,
    pub report: &'a mut Report,
    pub claim: Claim,
    pub slot: Slot,
    pub program: Program,
    /// The private folder of the run.
    pub dir: PathBuf,
    pub logs: Logs,
    pub declared: Declarations,
    /// What the run used, one entry per model; known once its command has ended (K54).
    pub usage: Vec<Usage>,
    pub started: Instant,
    /// The command's own state event, once it was seen on the branch (K22).
    pub own_event: Option<ObjectId>,
    /// True where a process still holds the command's output open after the command has ended.
    pub held_open: bool,
    /// The signal that the runner was asked to stop with.
    pub interrupted: Option<i32>,
    /// The run ended because `.aynig/prepare` failed: its command was not started.
    pub ended_preparing: bool,
    /// The slot's HEAD that was found unfit for the branch, and the lease at that time, so that the same pair
    /// is not judged again (K29).
    pub passed_over: Option<(ObjectId, ObjectId)>,
    /// How many verbs the command has handed over to the runner.
    pub handed: usize,
    /// The target that has what this run checked, and the commit that landed there.
    pub landed: Option<(RefName, ObjectId)>,
    /// The lock that tells other processes that a runner is at work on this run.
    alive: Option<Flock<File>>,
}

fn stopped(why: &str) -> RunnerError {
    StoreError::Gix { what: "fill the worktree", message: why.to_owned() }.into()
}

/// Locks the file by which others see that the run lives. A process that looks whether the run is dead has that
/// lock for a moment. `None` where the file system has no locks.
fn hold(mut lock: File) -> Option<Flock<File>> {
    for _ in 0..HELD_TRIES {
        match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Some(held),
            Err((file, Errno::EWOULDBLOCK)) => lock = file,
            Err(_) => return None,
        }
        std::thread::sleep(HELD_PAUSE);
    }
    None
}

impl<'a> ActiveRun<'a> {
    /// Creates a run that begins now, and names it in the report.
    pub(super) fn new(
        runner: &'a Runner<'a>,
        branch: &'a RefName,
        claim: Claim,
        (slot, program): (Slot, Program),
        report: &'a mut Report,
    ) -> Self {
        report.claimed = Some(claim.run.id.clone());
        let dir = runner.run_dir(&claim.run.id);
        // The names that the log files of a first run have; the files do not exist yet.
        let logs = logs::paths(&logs::folder(runner.repo).0, claim.run.trigger, 1);
        Self {
            runner,
            branch,
            report,
            claim,
            slot,
            program,
            dir,
            logs,
            declared: Declarations::default(),
            usage: Vec::new(),
            started: runner.clock.instant(),
            own_event: None,
            held_open: false,
            interrupted: None,
            ended_preparing: false,
            passed_over: None,
            handed: 0,
            landed: None,
            alive: None,
        }
    }

    pub(super) fn run_id(&self) -> &str {
        &self.claim.run.id
    }

    /// Returns how long the command has been running; before its start, how long its preparation has.
    pub(super) fn took(&self) -> Duration {
        self.runner.clock.instant() - self.started
    }

    /// Returns what the slot's record says of this run.
    pub(super) fn occupant(&self) -> Occupant {
        let remote = self.runner.settings.remote.clone();
        Occupant::new(self.run_id(), self.branch, remote, self.claim.first)
    }

    /// Fills the slot, and creates the run's logs and what the command finds in the run's folder.
    pub(super) fn set_up(&mut self) -> Result<(), RunnerError> {
        self.fill()?;
        let runner = self.runner;
        let failed = |error: BeneathError| io("prepare", &self.dir)(error.into());
        // Others may know the run's id before its folder exists (a pusher, other commands) and may have put
        // something in its place, so no link is followed.
        let root = Root::open(&runner.repo.aynig_dir()).map_err(failed)?;
        let name = Path::new("runs").join(self.run_id());
        root.create_dirs(&name, 0o700).map_err(failed)?;
        let root = root.below(&name).map_err(failed)?;
        let lock = root.lock_file(Path::new("lock"), 0o644).map_err(failed)?;
        self.alive = hold(lock);
        let message = Message::parse(&self.claim.trigger.commit.message);
        root.replace(Path::new("body"), body_said(&message), 0o644).map_err(failed)?;
        if let Some(lines) = runner.told_messages(&self.claim.trigger)? {
            root.replace(Path::new(heard::FILE), &lines, 0o644).map_err(failed)?;
        }
        let (logs, elsewhere) = runner.create_logs(self.claim.run.trigger)?;
        logs::note(&root, &logs).map_err(failed)?;
        if elsewhere {
            self.report.notes.push(Note::LogsElsewhere(logs.stdout.clone()));
        }
        self.logs = logs;
        self.started = runner.clock.instant();
        Ok(())
    }

    /// Brings the slot to the run's first lease. Another thread fills it, while this one keeps the lease
    /// alive.
    fn fill(&mut self) -> Result<(), RunnerError> {
        let (runner, branch) = (self.runner, self.branch);
        let (occupant, keeping) = (self.occupant(), &runner.settings.keeping);
        let Self { claim, slot, .. } = self;
        let (stop, repo, first, tree) = (slot.stopper(), runner.repo, claim.first, claim.tree);
        let filled = std::thread::scope(|scope| {
            let (tell, hear) = channel();
            let work = move || {
                let filled = slot.fill_for(repo, (first, tree), &occupant, keeping).map(drop);
                // A receiver that no longer listens learns from the end of the scope that this thread is
                // done.
                let _ = tell.send(filled);
            };
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                return Err(stopped("the system gives no thread"));
            }
            match runner.wait_filled(branch, claim, &hear) {
                Filling::Ended(filled) => filled.map_err(RunnerError::from),
                Filling::Unwanted(why) => {
                    stop.store(true, Ordering::Relaxed);
                    // Whether the thread reports now that it was stopped or that the slot was filled after
                    // all, it is too late.
                    let _ = hear.recv();
                    Err(stopped(why))
                }
            }
        });
        stop.store(false, Ordering::Relaxed);
        filled
    }

    /// Returns the report of this run, now that this runner is done with it. Removes the command's temporary
    /// folder, unless processes of the run live on in the slot.
    pub(super) fn ran(&self, exit: Option<&Exit>, outcome: Outcome, attempt: Option<RefName>) -> Ran {
        if self.slot.record().run.as_ref().is_none_or(|run| !run.lingering) {
            self.drop_temporary();
        }
        Ran {
            run_id: self.claim.run.id.clone(),
            state: self.claim.run.state.clone(),
            trigger: self.claim.run.trigger,
            exit: exit.map(Exit::to_string),
            took: self.took(),
            stdout_log: self.logs.stdout.clone(),
            stderr_log: self.logs.stderr.clone(),
            outcome,
            attempt,
            interrupted: self.interrupted,
        }
    }
}

/// How waiting for a slot to be filled ended.
enum Filling {
    /// The slot is filled, or filling it failed.
    Ended(Result<(), StoreError>),
    /// The run is not wanted any more, for this reason.
    Unwanted(&'static str),
}

impl Runner<'_> {
    /// Waits for a slot to be filled, and renews the lease meanwhile. A signal, the time limit, and a lease
    /// that is lost or can't be renewed end the wait.
    fn wait_filled(
        &self,
        branch: &RefName,
        claim: &mut Claim,
        hear: &Receiver<Result<(), StoreError>>,
    ) -> Filling {
        let (began, mut not_before) = (self.clock.instant(), Duration::ZERO);
        let poll = self.head_poll_interval(claim.run.lease_seconds);
        let mut look = began + poll;
        loop {
            match hear.recv_timeout(LOOK) {
                Ok(filled) => return Filling::Ended(filled),
                Err(RecvTimeoutError::Disconnected) => return Filling::Unwanted("its thread is gone"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.interrupt.signal().is_some() {
                return Filling::Unwanted("it was interrupted");
            }
            if self.settings.timeout.is_some_and(|limit| self.clock.instant() - began >= limit) {
                return Filling::Unwanted("it took longer than aynig.timeout");
            }
            let (now, deadlines) = (self.clock.elapsed(), self.deadlines(claim));
            if now >= deadlines.ends {
                return Filling::Unwanted("it took longer than its lease");
            }
            // A read or write that fails now may succeed later; the lease's end is the limit.
            match deadlines.duty(now, not_before) {
                Duty::Wait => {}
                Duty::GiveUp => return Filling::Unwanted("its lease could not be renewed"),
                Duty::Renew => {
                    if matches!(self.renew(branch, claim), Ok(false)) {
                        return Filling::Unwanted("its lease was lost");
                    }
                    not_before = self.clock.elapsed() + RENEW_AGAIN;
                }
            }
            if self.clock.instant() >= look {
                look = self.clock.instant() + poll;
                let head = self.fresh_tip(branch);
                if head.is_ok_and(|tip| tip.is_none_or(|tip| tip.id() != claim.lease.id)) {
                    return Filling::Unwanted("its lease was lost");
                }
            }
        }
    }
}

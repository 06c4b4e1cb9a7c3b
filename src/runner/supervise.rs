//! One run from claim to the command's end: fill the slot, start, keep the lease, watch the branch.
//!
//! One loop waits for the guardian's events, the next look at the branch, the next renewal and a request
//! to stop. The lease is given up before it ends, so that the command is dead before another may take the
//! branch. Implements K16-K18, K29.

use super::claim::{Claimed, Lease};
use super::live::Live;
use super::logs::Logs;
use super::relate::Relation;
use super::report::{Note, Ran, Report};
use super::{Progress, Runner, RunnerError, io};
use crate::protocol::body_line::body_said;
use crate::protocol::complete::Exit;
use crate::protocol::declaration::{LINE_MAX, LINE_PREFIX};
use crate::protocol::holding::{AfterLook, BeforeStart, Duty, NEVER, RENEW_AGAIN, after_look};
use crate::protocol::message::Message;
use crate::protocol::swap::{AfterRenewal, after_renewal};
use crate::store::RefName;
use crate::store::beneath::{BeneathError, Root};
use crate::store::command_copy;
use crate::store::command_tree::{Command, FOLDER};
use crate::store::slots::{Occupant, Slot};
use crate::supervisor::{Ending, Event, Spec, Supervised, Wake};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest network call while a command runs; the lease may ask for less.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What is to be started, and the copy of `.aynig/` that it is started from.
pub(super) struct Program {
    pub command: Command,
    pub place: PathBuf,
}

/// How the command ended, with the guardian that still waits for word.
pub(super) struct Ended {
    pub exit: Exit,
    pub guardian: Option<Supervised>,
}

impl Runner<'_> {
    /// Runs a claimed branch's command and completes the run.
    pub(super) fn run(
        &self,
        branch: &RefName,
        mut claimed: Claimed,
        mut slot: Slot,
        program: &Program,
        report: &mut Report,
    ) -> Result<Ran, RunnerError> {
        self.observer
            .told(branch, Progress::Claimed { run_id: &claimed.run.id, state: claimed.run.state.as_str() });
        let remote = self.settings.remote.clone();
        slot.occupy(Some(Occupant::new(&claimed.run.id, branch, remote, claimed.first)))?;
        let prepared = self.prepare(branch, &mut claimed, &mut slot, report);
        let (dir, alive, logs) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return self.finish_unstarted(branch, claimed, slot, &error, report),
        };
        let mut live = Live::new(claimed, slot, dir, logs, alive);
        let ended = match self.execute(branch, &mut live, program, report) {
            Ok(ended) => ended,
            Err(error) => {
                Ended { exit: Exit::NotStarted(super::finish::with_causes(&error)), guardian: None }
            }
        };
        self.observer.told(branch, Progress::Ended { exit: &ended.exit.to_string() });
        let dir = live.dir.clone();
        let ran = self.finish(branch, live, ended, report);
        report.wake = super::pending::read_wake(&dir);
        ran
    }

    #[allow(clippy::type_complexity)]
    fn prepare(
        &self,
        branch: &RefName,
        claimed: &mut Claimed,
        slot: &mut Slot,
        report: &mut Report,
    ) -> Result<(PathBuf, Option<Flock<File>>, Logs), RunnerError> {
        self.fill(branch, claimed, slot)?;
        let dir = self.run_dir(&claimed.run.id);
        let failed = |error: BeneathError| io("prepare", &dir)(error.into());
        // A run's id may be known before its folder is: to a pusher, and to other commands.
        let root = Root::open(&self.repo.aynig_dir()).map_err(failed)?;
        let name = Path::new("runs").join(&claimed.run.id);
        root.create_dirs(&name, 0o700).map_err(failed)?;
        let root = root.below(&name).map_err(failed)?;
        let lock = root.lock_file(Path::new("lock"), 0o644).map_err(failed)?;
        let alive = Flock::lock(lock, FlockArg::LockExclusiveNonblock).ok();
        let message = Message::parse(&claimed.trigger.commit.message);
        root.replace(Path::new("body"), body_said(&message), 0o644).map_err(failed)?;
        let (logs, elsewhere) = self.create_logs(claimed.run.trigger)?;
        super::logs::note(&root, &logs).map_err(failed)?;
        if elsewhere {
            report.notes.push(Note::LogsElsewhere(logs.stdout.clone()));
        }
        Ok((dir, alive, logs))
    }

    /// The private folder of a run.
    pub fn run_dir(&self, run_id: &str) -> PathBuf {
        self.repo.aynig_dir().join("runs").join(run_id)
    }

    fn execute(
        &self,
        branch: &RefName,
        live: &mut Live,
        program: &Program,
        report: &mut Report,
    ) -> Result<Ended, RunnerError> {
        match self.moments(&live.claimed).before_start(self.clock.elapsed()) {
            BeforeStart::Renew if !self.renew(branch, &mut live.claimed)? => {
                return Ok(Ended { exit: Exit::Stopped, guardian: None });
            }
            BeforeStart::Renew | BeforeStart::Start => {}
        }
        let start = self.start_of(branch, live, program, report)?;
        let spec = Spec {
            guardian: self.program.clone(),
            argv: start.argv,
            env: start.env,
            stdin: start.stdin,
            cwd: live.slot.dir().to_owned(),
            stdout_log: live.logs.stdout.clone(),
            stderr_log: live.logs.stderr.clone(),
            log_max: self.settings.log_max,
            timeout: self.settings.timeout,
            kill_grace: self.settings.kill_grace,
            watch: LINE_PREFIX.as_bytes().to_vec(),
            line_max: LINE_MAX,
            tee: self.settings.tee,
            hold: Some(live.slot.hold_path()),
        };
        // Last of all: between here and the start there is as little as can be.
        if command_copy::prove(self.repo, &*self.store, program.command.tree)? {
            report.notes.push(Note::CommandsRestored);
        }
        live.started = Instant::now();
        let guardian = Supervised::start(&spec)?;
        let mut ended = self.watch(branch, live, guardian, report)?;
        if let Exit::NotStarted(why) = &mut ended.exit {
            // As people know it: where the copy is that it was started from mends nothing.
            *why = why.replace(&*program.place.to_string_lossy(), FOLDER);
        }
        Ok(ended)
    }

    /// The one loop of a run.
    fn watch(
        &self,
        branch: &RefName,
        live: &mut Live,
        mut guardian: Supervised,
        report: &mut Report,
    ) -> Result<Ended, RunnerError> {
        let mut stopped: Option<Exit> = None;
        let look_every = self.look_every(live.claimed.run.lease_seconds);
        let mut look = Instant::now() + look_every;
        let mut renew_not_before = Duration::ZERO;
        let mut ordered = NEVER;
        loop {
            let moments = self.moments(&live.claimed);
            // The guardian gives the lease up by itself where a call of ours hangs, or we are stopped.
            let limit = live.own_event.map_or(moments.give_up, |_| NEVER);
            if std::mem::replace(&mut ordered, limit) != limit {
                guardian.stop_after(limit.saturating_sub(self.clock.elapsed()), moments.grace);
            }
            let interrupt = live.interrupted.is_none().then(|| self.interrupt.fd());
            // A run that is over, or has its outcome, has no duty left but to hear how the command ends.
            let duty = stopped.is_none() && live.own_event.is_none();
            let until = duty.then(|| self.wake_at(look, &moments));
            match guardian.next(until, interrupt)? {
                Wake::Event(Event::Exited { ending, leaked }) => {
                    live.held_open = leaked;
                    if leaked {
                        report.notes.push(Note::OutputHeldOpen);
                    }
                    let given_up = self.clock.elapsed() >= limit;
                    let exit = exit_of(ending, stopped.or(given_up.then_some(Exit::Stopped)));
                    return Ok(Ended { exit, guardian: Some(guardian) });
                }
                Wake::Event(Event::Done { .. }) => {
                    return Ok(Ended { exit: Exit::Unsupervised, guardian: None });
                }
                Wake::Event(event) => self.note_event(branch, live, event, report),
                Wake::Interrupted => {
                    live.interrupted = self.interrupt.signal();
                    let patience = self.settings.kill_grace;
                    guardian.stop(match live.own_event {
                        // Its outcome is written: there is no lease to give up in time.
                        Some(_) => patience,
                        None => moments.kill_after(self.clock.elapsed(), patience),
                    });
                    stopped.get_or_insert(Exit::Interrupted);
                }
                Wake::Deadline => {}
            }
            if stopped.is_some() || live.own_event.is_some() {
                continue;
            }
            if Instant::now() >= look {
                look = Instant::now() + look_every;
                // No call may hold up the moment at which the lease is given up.
                self.store.set_patience(PATIENCE.min(moments.give_up.saturating_sub(self.clock.elapsed())));
                match self.still_holds(branch, live, report) {
                    Ok(true) => {}
                    Ok(false) => {
                        guardian.stop(moments.kill_after(self.clock.elapsed(), self.settings.kill_grace));
                        stopped = Some(Exit::Stopped);
                        continue;
                    }
                    // What can't be read now may be readable later; the lease's end is the limit.
                    Err(error) => note_once(report, Note::RenewalFailed(super::finish::with_causes(&error))),
                }
            }
            let now = self.clock.elapsed();
            match moments.duty(now, renew_not_before) {
                Duty::Wait => {}
                Duty::GiveUp => {
                    guardian.stop(moments.grace);
                    stopped = Some(Exit::Stopped);
                }
                Duty::Renew => {
                    match self.renew(branch, &mut live.claimed) {
                        Ok(true) => self.observer.told(branch, Progress::Renewed),
                        Ok(false) => look = Instant::now(),
                        Err(error) => {
                            note_once(report, Note::RenewalFailed(super::finish::with_causes(&error)));
                        }
                    }
                    renew_not_before = self.clock.elapsed() + RENEW_AGAIN;
                }
            }
        }
    }

    fn note_event(&self, branch: &RefName, live: &mut Live, event: Event, report: &mut Report) {
        match event {
            Event::Started { pid } => self.observer.told(branch, Progress::Started { pid }),
            Event::Line(line) => live.declared.line(&line),
            Event::LongLine(length) => live.declared.too_long(length),
            Event::Output { stdout, stderr, last } => {
                self.observer.told(branch, Progress::Output { bytes: stdout + stderr, last: &last });
            }
            Event::Chunk { stderr, bytes } => {
                self.observer.told(branch, Progress::Chunk { stderr, bytes: &bytes });
            }
            Event::LogFailed { stderr, errno } => {
                let path = if stderr { &live.logs.stderr } else { &live.logs.stdout };
                let cause = std::io::Error::from_raw_os_error(errno);
                report.notes.push(Note::LogFailed(format!("'{}': {cause}", path.display())));
            }
            Event::Exited { .. } | Event::Done { .. } | Event::Beat => {}
        }
    }

    /// Looks at the branch; false once it is lost to somebody else.
    fn still_holds(
        &self,
        branch: &RefName,
        live: &mut Live,
        report: &mut Report,
    ) -> Result<bool, RunnerError> {
        let relation = self.look(branch, live, None, report)?;
        Ok(match (after_look(relation.head()), relation) {
            (AfterLook::LetFinish, Relation::OwnEvent(id)) => {
                live.own_event = Some(id);
                true
            }
            (AfterLook::Keep | AfterLook::LetFinish, _) => true,
            (AfterLook::Stop, _) => false,
        })
    }

    /// Swaps a fresh `working` commit in; false where the lease is no longer the head.
    pub(super) fn renew(&self, branch: &RefName, claimed: &mut Claimed) -> Result<bool, RunnerError> {
        let until = self.moments(claimed).give_up;
        let born = self.clock.elapsed();
        let commit = self.write(branch, claimed.tree, vec![claimed.lease.id], &claimed.lease.message)?;
        // Once: the command, and whoever ends us, are heard between two attempts.
        match after_renewal(self.advance_once(branch, claimed.lease.id, commit, "aynig: renew", until)?) {
            AfterRenewal::Held => {
                claimed.lease = Lease { id: commit, message: claimed.lease.message.clone(), born };
                self.follow(&claimed.run.id, commit);
                Ok(true)
            }
            AfterRenewal::Look => Ok(false),
            AfterRenewal::Unknown(cause) => Err(RunnerError::Unknown { branch: branch.clone(), cause }),
        }
    }
}

/// What is tried again and again is said once, in its last words: those of a lock that stands hold its age.
pub(super) fn note_once(report: &mut Report, note: Note) {
    let is_again = |other: &Note| match (other, &note) {
        (Note::RenewalFailed(_), Note::RenewalFailed(_)) => true,
        (other, note) => other == note,
    };
    match report.notes.iter_mut().find(|other| is_again(other)) {
        Some(other) => *other = note,
        None => report.notes.push(note),
    }
}

fn exit_of(ending: Ending, stopped: Option<Exit>) -> Exit {
    match ending {
        Ending::Exited(code) => Exit::Code(code),
        Ending::Signaled { signal, core_dumped } => Exit::Signal { signal, core_dumped },
        Ending::TimedOut { after, .. } => Exit::TimedOut(after),
        Ending::Stopped { .. } => stopped.unwrap_or(Exit::Interrupted),
        Ending::NotStarted { errno, what } => {
            Exit::NotStarted(format!("{what}: {}", Errno::from_raw(errno).desc()))
        }
        Ending::GuardianLost => Exit::Unsupervised,
        Ending::GuardianStopped => Exit::SupervisorStopped,
    }
}

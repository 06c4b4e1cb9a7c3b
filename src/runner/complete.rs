//! Completing a run: what is written, and where work goes that is not on the branch.
//!
//! `protocol::complete` decides how a run ends; this module carries the decision out. A commit of the runner
//! gets onto the branch by a compare-and-swap. If the swap is lost, the caller judges again from the new
//! head. If the remote declines an outcome, the run ends `stalled`. An outcome that could not be brought to
//! the remote while the lease held is kept in this repository, and `git aynig retry` lands it. Implements
//! K20-K29, K51 and K54 (what an outcome says of them), K14 (a slot that can't be filled), K31 (an outcome
//! that is not on its branch).

use super::active_run::ActiveRun;
use super::inbox::Found;
use super::move_branch::{Moved, blocked_notes};
use super::named::left_out_ref;
use super::report::{Note, Outcome, Ran};
use super::run::Ended;
use super::run_events::usage_trailers;
use super::{RunnerError, Tip};
use crate::protocol::complete::{Completion, Exit, HeadIs, Kept, Stall, kept_of_fenced};
use crate::protocol::declaration::{Declaration, Rest};
use crate::protocol::dialect::{Dialect, Writer};
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::protocol::name::StateName;
use crate::protocol::text::{escape, with_causes};
use crate::protocol::waits::NOT_BEFORE;
use crate::store::beneath::apart;
use crate::store::slots::Occupant;
use crate::store::slots::harvest::{Harvest, HarvestError, Stage};
use crate::store::{RefName, StoreError};
use crate::supervisor::Supervised;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How much of the lease must be left for another round of pushes to a remote that declines everything.
const ROUND: Duration = Duration::from_secs(4);

impl ActiveRun<'_> {
    /// Returns what the branch's head is to this run, now that its command has ended.
    pub(super) fn head_at_end(&mut self, ended: &mut Ended) -> Result<HeadIs, RunnerError> {
        let lease = self.claim.lease.id;
        if std::mem::take(&mut ended.head_trusted) && self.runner.store.known_tip(self.branch)? == Some(lease)
        {
            return Ok(HeadIs::Lease(lease));
        }
        let head = match self.check_head(Some(&ended.exit)) {
            // The head can't be read now. The swap expects the lease, so it fails if the head is another.
            Err(RunnerError::Store(StoreError::Remote { failure, .. })) if failure.may_pass() => {
                HeadIs::Lease(self.claim.lease.id)
            }
            found => found?,
        };
        Ok(match (head, self.own_event) {
            (HeadIs::Other, Some(id)) => HeadIs::OwnEvent(id),
            (head, _) => head,
        })
    }

    /// Writes what a run came to, by compare-and-swap. `None`: the swap was lost, or is worth trying again,
    /// and the caller judges again.
    pub(super) fn swap(
        &mut self,
        completion: Completion,
        head: HeadIs,
        ended: &mut Ended,
    ) -> Result<Option<Ran>, RunnerError> {
        let ran = match completion {
            Completion::KeepLease => self.keep_lease(&ended.exit, &mut ended.guardian)?,
            Completion::Outcome(next) => {
                ended.end_guardian()?;
                let done = self.write_outcome(&ended.exit, next, head);
                let ran = self.unless_declined(done)?;
                if let Some((onto, commit)) = self.landed.take().filter(|_| ran.is_some()) {
                    self.report.notes.push(Note::Landed(onto, commit));
                }
                ran
            }
            Completion::Stalled(why) => {
                ended.end_guardian()?;
                let done = self.stall(Some(&ended.exit), why, None);
                self.unless_declined(done)?
            }
            Completion::LeaveLease => {
                ended.end_guardian()?;
                Some(self.leave_lease(Some(&ended.exit))?)
            }
            Completion::AlreadyWritten(id) => {
                ended.end_guardian()?;
                Some(self.accept_own(&ended.exit, id)?)
            }
            Completion::Fenced => {
                ended.end_guardian()?;
                Some(self.fence(ended)?)
            }
        };
        if ran.is_some() {
            self.runner.note_modules(&self.claim.run.id, self.report);
        }
        Ok(ran)
    }

    /// Ends a run whose command was not started, because the slot was not filled or a log not created.
    pub(super) fn end_unstarted(&mut self, why: String) -> Result<Ran, RunnerError> {
        self.interrupted = self.runner.interrupt.signal();
        self.started = self.runner.clock.instant();
        if self.claim.run.dialect.writer() == Writer::Command {
            self.report.notes.push(Note::NotPrepared(why));
            return self.leave_lease(None);
        }
        let done = loop {
            match self.stall(None, Stall::Slot(why.clone()), None) {
                Err(error) if self.is_worth_a_round(&error) => {}
                done => break done?,
            }
        };
        if let Some(ran) = done {
            return Ok(ran);
        }
        self.release()?;
        Ok(self.ran(None, Outcome::Fenced { to: self.runner.lost_to(self.branch) }, None))
    }

    /// True where the remote declines what the runner pushes and there is time for another round: the runner
    /// tries again until the lease ends or a signal comes.
    pub(super) fn is_worth_a_round(&self, error: &RunnerError) -> bool {
        let runner = self.runner;
        error.is_no()
            && runner.interrupt.signal().is_none()
            && runner.clock.elapsed() + ROUND < self.claim.ends()
    }

    fn unless_declined(&self, done: Result<Option<Ran>, RunnerError>) -> Result<Option<Ran>, RunnerError> {
        match done {
            Err(error) if self.is_worth_a_round(&error) => Ok(None),
            done => done,
        }
    }

    /// Returns the state that the command committed in the slot instead of declaring it. Such a commit is no
    /// outcome, and the user is told so (K22).
    fn committed_state(&self) -> Option<(Dialect, StateName)> {
        let runner = self.runner;
        let head = self.slot.head(runner.repo).ok().filter(|head| *head != self.claim.first)?;
        let event = Tip::from(runner.scratch().ok()?.read_commit(head).ok()?).event?;
        let state = event.state_name().filter(|state| !state.is_working())?.clone();
        Some((event.dialect, state))
    }

    /// Renews the lease of a command that declared nothing; the slot and the processes in it live on with it
    /// (K21). `None`: the lease was lost, and the caller judges again.
    fn keep_lease(
        &mut self,
        exit: &Exit,
        guardian: &mut Option<Supervised>,
    ) -> Result<Option<Ran>, RunnerError> {
        let mut why = self.nothing_declared();
        if let Some((dialect, state)) = self.committed_state() {
            why += &format!(
                "\nIt committed '{}state: {state}' itself, which is no outcome: 'git aynig set-state {state}' in the command \
                 writes one.\n",
                dialect.prefix()
            );
            self.report.note_once(Note::StateCommitted(dialect, state));
        }
        let kept = self.keep_of_deserted(guardian);
        if let Some(attempt) = &kept {
            why += "\nNo process of it is left: its worktree is free again.\n";
            if let Some(name) = attempt {
                why += &format!("What it had done is kept in {}.\n", escape(name.as_bytes()));
                self.runner.publish(name, self.report);
            }
        }
        self.claim.lease.message.body = why.trim_end().as_bytes().to_vec();
        if !self.runner.renew(self.branch, &mut self.claim)? {
            return Ok(None);
        }
        append(&self.logs.stderr, &why);
        if let Some(attempt) = kept {
            if let Some(guardian) = guardian.take() {
                guardian.end()?;
            }
            let _ = self.slot.leave(self.runner.repo, self.claim.first);
            self.slot.occupy(None)?;
            return Ok(Some(self.ran(Some(exit), self.kept_lease(), attempt)));
        }
        let guardian_pid = guardian.as_ref().map(Supervised::guardian_pid);
        self.slot.occupy(Some(Occupant { lingering: true, guardian: guardian_pid, ..self.occupant() }))?;
        if let Some(guardian) = guardian.take() {
            guardian.linger();
        }
        Ok(Some(self.ran(Some(exit), self.kept_lease(), None)))
    }

    fn kept_lease(&self) -> Outcome {
        Outcome::KeptLease { commit: self.claim.lease.id, left: self.runner.lease_left(&self.claim) }
    }

    /// If no process of the run is left, keeps what the slot holds, and returns the attempt, if there was
    /// work to keep. The outer `None`: the slot stays the run's, because processes of the run live on in it,
    /// or because its work can't be kept elsewhere.
    fn keep_of_deserted(&mut self, guardian: &mut Option<Supervised>) -> Option<Option<RefName>> {
        let deserted = !self.held_open && guardian.as_mut().is_some_and(Supervised::is_deserted);
        let claim = &self.claim;
        let kept = deserted
            .then(|| self.runner.keep_attempt(&self.slot, &claim.run.id, claim.first, claim.tree, None))?;
        kept.map_err(|error| self.report.notes.push(Note::WorkNotKept(with_causes(&error)))).ok()
    }

    /// Writes the declared state's commit and moves the branch to it. `None`: the swap was lost, and the
    /// caller judges again.
    pub(super) fn write_outcome(
        &mut self,
        exit: &Exit,
        next: Declaration,
        head: HeadIs,
    ) -> Result<Option<Ran>, RunnerError> {
        let found = match self.harvest(&next, head) {
            Ok(found) => found,
            Err(why) => return self.stall(Some(exit), why, None),
        };
        let left_out = self.keep_left_out(&next, &found)?;
        let base = if head == HeadIs::SlotHead { found.head } else { self.claim.lease.id };
        let heard = self.runner.taken_by(&self.dir, self.branch, found.head)?;
        let commit = match self.outcome_commit(&next, &found, base, &heard) {
            Ok(commit) => commit,
            Err(RunnerError::Message { cause }) => {
                return self.stall(Some(exit), Stall::Unrenderable(cause), None);
            }
            Err(error) => return Err(error),
        };
        let others = self.runner.hearing(&heard)?;
        let log = format!("aynig: {} -> {}", self.claim.run.state, next.state);
        // Until the remote has the commit, nothing but this ref names it. If the ref can't be written, the
        // push may succeed all the same.
        let kept = match self.runner.settings.remote {
            Some(_) => self.keep_outcome(commit),
            None => Ok(None),
        };
        match self.runner.move_branch_with(self.branch, (base, commit), &others, &log, self.claim.ends()) {
            // One of the messages was taken away meanwhile: the caller judges again, without it.
            Err(RunnerError::Store(StoreError::Moved { name, .. })) if name != *self.branch => Ok(None),
            Ok(Moved::Won(finished)) => {
                self.report.notes.extend(blocked_notes(finished));
                // The branch has the outcome, so a cleanup that fails is no failure of the run.
                let cleaned = match self.slot.keep_linked(self.runner.repo, &self.claim.run.id, &found) {
                    Ok(()) => self.drop_outcome(kept.unwrap_or(None), commit).and_then(|()| self.release()),
                    // The next runner that takes the slot tries that again.
                    Err(error) => {
                        let outcome = Some(commit.to_string());
                        self.slot.occupy(Some(Occupant { outcome, ..self.occupant() }))?;
                        Err(error.into())
                    }
                };
                if let Err(error) = cleaned {
                    let dir = self.slot.dir().to_owned();
                    self.report.notes.push(Note::SlotLeft(dir, with_causes(&error)));
                }
                Ok(Some(self.ran(Some(exit), Outcome::Advanced { state: next.state, commit }, left_out)))
            }
            Ok(Moved::Lost(left)) => {
                self.report.notes.extend(blocked_notes(left));
                Ok(None)
            }
            Ok(Moved::Blocked(by)) => {
                let done = self.keep_outcome(commit).and_then(|kept| {
                    self.slot.keep_apart(self.runner.repo, &self.claim.run.id, &found)?;
                    self.stall(Some(exit), Stall::Checkout(by.clone()), kept)
                });
                // What a full disk keeps from the branch, such as why, has to be said here.
                if done.is_err() {
                    self.report.note_once(Note::Blocked(by));
                }
                done
            }
            Err(error) => {
                if let Err(why) = self.slot.keep_apart(self.runner.repo, &self.claim.run.id, &found) {
                    self.report.notes.push(Note::WorkNotKept(with_causes(&why)));
                }
                self.not_landed(exit, error, commit, kept)
            }
        }
    }

    /// Reads from the slot what becomes part of the outcome, or says why the run stalls. Notes repositories
    /// that are left out.
    fn harvest(&mut self, next: &Declaration, head: HeadIs) -> Result<Harvest, Stall> {
        match self.taken(next, head) {
            Ok(found) => {
                if !found.nested.is_empty() {
                    let names = found.nested.iter().map(|n| escape(n)).collect();
                    self.report.notes.push(Note::NestedRepositories(names));
                }
                Ok(found)
            }
            Err(HarvestError::ForeignHead(_)) => Err(Stall::ForeignHead),
            Err(HarvestError::Unmerged) => Err(Stall::Unmerged),
            Err(HarvestError::Store(error)) => Err(Stall::Slot(with_causes(&error))),
        }
    }

    /// Reads the part of the slot that the declaration takes. A command may say that only some paths are part
    /// of its outcome ([`Rest::Kept`]): then nothing else that the command or its children left gets onto the
    /// branch, commits included. The paths that it names are taken even where ignore rules exclude them (K19,
    /// K25).
    fn taken(&self, next: &Declaration, head: HeadIs) -> Result<Harvest, HarvestError> {
        let (repo, claim, slot) = (self.runner.repo, &self.claim, &self.slot);
        let stage = match next.take.rest {
            Rest::AsConfigured => self.runner.settings.stage,
            Rest::All => Stage::All,
            Rest::Kept => {
                // If the command advanced the branch itself, the branch is at the slot's HEAD, and the
                // outcome goes on top of that.
                let head = if head == HeadIs::SlotHead { slot.head(repo)? } else { claim.first };
                let tree = slot.with_paths(repo, claim.tree, &next.take.paths)?;
                return Ok(Harvest { tree, head, nested: Vec::new() });
            }
        };
        let mut found = slot.harvest(repo, stage, claim.first, claim.tree)?;
        found.tree = slot.with_paths(repo, found.tree, &next.take.paths)?;
        Ok(found)
    }

    /// Keeps what an outcome leaves out, under `refs/aynig/attempts/<run-id>-rejected`; `None` where it
    /// leaves nothing out.
    fn keep_left_out(&mut self, next: &Declaration, taken: &Harvest) -> Result<Option<RefName>, RunnerError> {
        let (runner, claim) = (self.runner, &self.claim);
        let Some(name) = left_out_ref(&claim.run.id).filter(|_| next.take.rest == Rest::Kept) else {
            return Ok(None);
        };
        let mut all = self.slot.salvage(runner.repo, Stage::All, claim.first, claim.tree)?;
        self.slot.keep_apart(runner.repo, &claim.run.id, &all)?;
        all.tree = self.slot.with_paths(runner.repo, all.tree, &next.take.paths)?;
        if all.tree == taken.tree && all.head == claim.first {
            return Ok(None);
        }
        runner.keep(&name, runner.write_attempt(&claim.run.id, claim.first, &all)?)?;
        runner.publish(&name, self.report);
        Ok(Some(name))
    }

    fn outcome_commit(
        &self,
        next: &Declaration,
        found: &Harvest,
        base: ObjectId,
        heard: &[Found],
    ) -> Result<ObjectId, RunnerError> {
        let claim = &self.claim;
        let mut message = claim.run.outcome(next, &claim.lease.message);
        message.trailers.extend(next.not_before.map(|wait| not_before(wait.from(self.runner.clock.now()))));
        message.trailers.extend(usage_trailers(claim.run.dialect, &self.usage));
        let mut parents = vec![base];
        if found.head != claim.first && found.head != base {
            parents.push(found.head);
        }
        parents.extend(heard.iter().map(|heard| heard.commit));
        self.runner.write(self.branch, found.tree, parents, &message)
    }

    /// Handles an outcome that did not get onto its branch while the lease held: the remote declined or did
    /// not receive it, or it could not be written in this repository (K31).
    fn not_landed(
        &mut self,
        exit: &Exit,
        error: RunnerError,
        commit: ObjectId,
        kept: Result<Option<RefName>, RunnerError>,
    ) -> Result<Option<Ran>, RunnerError> {
        // If the remote refuses the `stalled` commit as well, its refusal said nothing about the outcome, so
        // both are tried again (K31).
        if let RunnerError::Store(StoreError::Remote { message, .. }) = &error
            && error.is_no()
        {
            let why = Stall::Declined(message.clone());
            let name = kept.as_ref().ok().cloned().flatten();
            match self.stall(Some(exit), why, name) {
                Err(error) if error.is_no() && !self.is_worth_a_round(&error) => {}
                done => return done,
            }
        }
        // The branch has moved to the outcome, and only the disk's sync of that failed: there is nothing left to land.
        let is_there = |tip: Option<Tip>| tip.is_some_and(|tip| tip.id() == commit);
        if matches!(&error, RunnerError::Store(inner) if inner.is_unsynced())
            && self.runner.read_tip(self.branch).is_ok_and(is_there)
        {
            self.release()?;
            return Err(error);
        }
        // Finished work is kept, whatever the reason that it is not on its branch.
        let kept = kept.and_then(|kept| match kept {
            None => self.keep_outcome(commit),
            kept => Ok(kept),
        });
        match kept {
            Ok(Some(name)) => {
                self.report.notes.push(Note::OutcomeKept(name));
                self.release()?;
            }
            Ok(None) => {}
            Err(why) => self.report.notes.push(Note::WorkNotKept(with_causes(&why))),
        }
        Err(error)
    }

    /// Accepts an outcome that the command wrote itself; what the slot holds beyond it becomes an attempt
    /// (K22).
    fn accept_own(&mut self, exit: &Exit, id: ObjectId) -> Result<Ran, RunnerError> {
        let commit = self.runner.store.read_commit(id)?;
        let state = Event::in_message(&commit.message).and_then(|e| e.state_name().cloned());
        let attempt = self.keep_rest(Some(&commit))?;
        self.release()?;
        Ok(self.ran(Some(exit), Outcome::Own { commit: id, state }, attempt))
    }

    /// Ends a run that lost its lease: writes nothing to the branch, and keeps the work (K24, K26).
    fn fence(&mut self, ended: &Ended) -> Result<Ran, RunnerError> {
        let lease = self.claim.lease.id;
        let mut attempt = None;
        if let Kept::Outcome(next) = kept_of_fenced(&ended.exit, &ended.declared)
            && let Ok(found) = self.taken(next, HeadIs::Lease(lease))
            && let Ok(commit) = self.outcome_commit(next, &found, lease, &[])
        {
            let left_out = self.keep_left_out(next, &found)?;
            self.report.notes.extend(left_out.map(Note::LeftOutKept));
            attempt = self.keep_outcome(commit)?;
            self.slot.keep_apart(self.runner.repo, &self.claim.run.id, &found)?;
        }
        if attempt.is_none() {
            attempt = self.keep_rest(None)?;
        }
        self.release()?;
        let to = self.runner.lost_to(self.branch);
        Ok(self.ran(Some(&ended.exit), Outcome::Fenced { to }, attempt))
    }

    /// Ends a run whose lease is still the head and whose command renews the lease itself: the lease lives
    /// until it expires (K29).
    fn leave_lease(&mut self, exit: Option<&Exit>) -> Result<Ran, RunnerError> {
        let (runner, claim) = (self.runner, &self.claim);
        let kept = runner.keep_beyond(&self.slot, &claim.run.id, self.branch, claim.first, None);
        let attempt = match kept {
            Ok(attempt) => {
                self.release()?;
                attempt
            }
            // The work stays in the slot: the next run that wants that slot tries to keep it again.
            Err(error) => {
                self.report.notes.push(Note::WorkNotKept(with_causes(&error)));
                None
            }
        };
        let (commit, left) = (self.claim.lease.id, runner.lease_left(&self.claim));
        let outcome = Outcome::LeaseLeft { commit, left, failed: exit != Some(&Exit::Code(0)) };
        Ok(self.ran(exit, outcome, attempt))
    }

    /// Keeps the run's work, unless `kept` names a ref that already does, then writes the `stalled` commit.
    /// `None`: the swap was lost, and the caller judges again.
    pub(super) fn stall(
        &mut self,
        exit: Option<&Exit>,
        why: Stall,
        kept: Option<RefName>,
    ) -> Result<Option<Ran>, RunnerError> {
        let (runner, claim) = (self.runner, &self.claim);
        let found = match kept {
            Some(name) => Ok(Some(name)),
            // Nothing was started, so what is in the slot is no work of this run.
            None if exit.is_none() => Ok(None),
            None => runner.keep_attempt(&self.slot, &claim.run.id, claim.first, claim.tree, None),
        };
        // Work that could not be kept stays in the slot: the next run that wants that slot tries again.
        let saved = found.is_ok();
        let attempt = found.unwrap_or_else(|error| {
            self.report.note_once(Note::WorkNotKept(with_causes(&error)));
            None
        });
        let details = self.details(exit, &why, attempt.as_ref());
        let claim = &self.claim;
        let mut message = claim.run.stalled(&why, &details, &claim.lease.message);
        message.trailers.extend(usage_trailers(claim.run.dialect, &self.usage));
        let commit = runner.write(self.branch, claim.tree, vec![claim.lease.id], &message)?;
        let log = format!("aynig: {} stalled", claim.run.state);
        if let Some(name) = &attempt {
            runner.publish(name, self.report);
        }
        if !runner.end_lease(self.branch, claim.lease.id, commit, &log, claim.ends())? {
            return Ok(None);
        }
        if saved {
            self.release()?;
        }
        Ok(Some(self.ran(exit, Outcome::Stalled { why, commit }, attempt)))
    }

    /// Frees the slot and removes the run's ref: the run is over.
    fn release(&mut self) -> Result<(), RunnerError> {
        let (runner, claim) = (self.runner, &self.claim);
        runner.unfollow(&claim.run.id, &[claim.lease.id, claim.first]);
        // What can't be cleaned up now is found and reported when the slot is filled again.
        let _ = self.slot.leave(runner.repo, claim.first);
        self.bound_events();
        runner.forget_today();
        self.slot.occupy(None)?;
        Ok(())
    }
}

/// Returns the trailer that says when a state may be dispatched at the earliest, as a readable date.
fn not_before(at: i64) -> Trailer {
    let at = Duration::from_secs(u64::try_from(at).unwrap_or(0));
    // From the year 10000 on, which the date format can't express, it is a number of seconds.
    let said = match at.as_secs() < 253_402_300_800 {
        true => humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + at).to_string(),
        false => at.as_secs().to_string(),
    };
    Trailer::new(NOT_BEFORE, said)
}

/// Appends what the run's commit says to one of the run's logs, because a user may look in the log for what
/// went wrong.
fn append(log: &Path, text: &str) {
    let lines =
        text.lines().filter(|line| !line.is_empty()).map(|line| format!("aynig: {}\n", line.trim_start()));
    let opened = apart(log).and_then(|(folder, name)| folder.append(name, 0o600));
    // A log that can't be written is reported elsewhere ([`Note::LogFailed`]).
    let _ = opened.map(|mut log| log.write_all(lines.collect::<String>().as_bytes()));
}

//! Completing a run: what the head is now, what is written, and where work goes that is not on the branch.
//!
//! The judgement is `complete`'s; here it is carried out. A swap that is lost on the way is judged again
//! from the new head. Implements K20-K29.

use super::claim::Claimed;
use super::land::Moved;
use super::live::Live;
use super::relate::Relation;
use super::report::{Note, Outcome, Ran, Report};
use super::slot::attempt_ref;
use super::supervise::{Ended, PATIENCE, note_once};
use super::{Runner, RunnerError, Tip};
use crate::protocol::complete::{Completion, Declared, Exit, HeadIs, Kept, Stall, complete, kept_of_fenced};
use crate::protocol::declaration::Declaration;
use crate::protocol::dialect::Writer;
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::name::StateName;
use crate::protocol::obstacle::Obstacle;
use crate::protocol::swap::{AfterEnd, after_end};
use crate::protocol::text::escape;
use crate::store::beneath::apart;
use crate::store::checkout::Finished;
use crate::store::slots::Occupant;
use crate::store::slots::harvest::{Harvest, HarvestError};
use crate::store::{Commit, RefName, StoreError};
use crate::supervisor::Supervised;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Time that is left for another round with a remote that takes nothing, pushes included.
const ROUND: Duration = Duration::from_secs(4);

/// What was tried with an outcome.
enum Landed {
    Won(ObjectId),
    Lost,
    Blocked(ObjectId, Obstacle),
}

/// An error and what caused it, in one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    escape(text.as_bytes())
}

impl Runner<'_> {
    /// Completes a run whose command has ended.
    pub(super) fn finish(
        &self,
        branch: &RefName,
        mut live: Live,
        ended: Ended,
        report: &mut Report,
    ) -> Result<Ran, RunnerError> {
        let Ended { exit, mut guardian } = ended;
        // The command is dead: what the head is now may be asked for longer than the lease had left.
        self.store.set_patience(PATIENCE);
        let declared = self.declared(&live);
        self.note_declarations(&live, report);
        let mut trusting = self.settings.remote.is_some()
            && matches!((&exit, &declared), (Exit::Code(0), Declared::State(_)));
        loop {
            // A success that nobody was heard to interfere with need not ask a remote: the push will.
            let asks = !std::mem::take(&mut trusting)
                || self.store.known_tip(branch)? != Some(live.claimed.lease.id);
            let looked =
                if asks { self.look(branch, &mut live, Some(&exit), report) } else { Ok(Relation::Lease) };
            let found = match looked {
                // Nobody could say who moved it: the swap names the lease, and finds out.
                Err(RunnerError::Store(StoreError::Remote { failure, .. })) if failure.may_pass() => {
                    Relation::Lease
                }
                found => found?,
            };
            let relation = match (found, live.own_event) {
                (Relation::Other, Some(id)) => Relation::OwnEvent(id),
                (relation, _) => relation,
            };
            let head = relation.head();
            let done = match (complete(live.claimed.run.dialect, &exit, declared.clone(), head), relation) {
                (Completion::KeepLease, _) => {
                    self.note_committed_state(&live, report);
                    self.keep_lease(branch, &mut live, &exit, &mut guardian, report)?
                }
                (Completion::Outcome(next), _) => {
                    end(&mut guardian)?;
                    let done = self.finish_outcome(branch, &mut live, &exit, next, head, report);
                    if self.is_worth_a_round(&done, &live) { None } else { done? }
                }
                (Completion::Stalled(why), _) => {
                    end(&mut guardian)?;
                    let done = self.try_stall(branch, &mut live, Some(&exit), why, None, report);
                    if self.is_worth_a_round(&done, &live) { None } else { done? }
                }
                (Completion::LeaveLease, _) => {
                    end(&mut guardian)?;
                    Some(self.finish_left(branch, &mut live, Some(&exit), report)?)
                }
                (Completion::AlreadyWritten, Relation::OwnEvent(id)) => {
                    end(&mut guardian)?;
                    Some(self.finish_own(branch, &mut live, &exit, id)?)
                }
                (Completion::AlreadyWritten | Completion::Fenced, _) => {
                    end(&mut guardian)?;
                    Some(self.finish_fenced(branch, &mut live, &exit, &declared)?)
                }
            };
            if let Some(ran) = done {
                self.note_modules(&ran.run_id, report);
                return Ok(ran);
            }
        }
    }

    /// True where a remote takes nothing of ours just now: it is asked until the lease ends, or somebody wants to go.
    pub(super) fn is_worth_a_round(&self, done: &Result<Option<Ran>, RunnerError>, live: &Live) -> bool {
        done.as_ref().is_err_and(RunnerError::is_no)
            && self.interrupt.signal().is_none()
            && self.clock.elapsed() + ROUND < live.lease_ends()
    }

    /// A state that the command committed, where it was to declare one: nobody's outcome, and worth a word (K22).
    fn note_committed_state(&self, live: &Live, report: &mut Report) {
        let head = live.slot.head(self.repo).ok().filter(|head| *head != live.claimed.first);
        let commit = head.and_then(|head| self.scratch.read_commit(head).ok()).map(Tip::from);
        if let Some(event) = commit.and_then(|tip| tip.event)
            && let Some(state) = event.state_name().filter(|state| !state.is_working())
        {
            note_once(report, Note::StateCommitted(event.dialect, state.clone()));
        }
    }

    /// The lease lives on, and with it the slot and what runs in it (K21).
    fn keep_lease(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: &Exit,
        guardian: &mut Option<Supervised>,
        report: &mut Report,
    ) -> Result<Option<Ran>, RunnerError> {
        let mut why = self.nothing_declared(live);
        // Its slot is its own for those who live on in it. Work that can't be kept elsewhere stays in it.
        let deserted = !live.held_open && guardian.as_mut().is_some_and(Supervised::is_deserted);
        let Claimed { run, first, tree, .. } = &live.claimed;
        let kept = deserted.then(|| self.keep_attempt(&live.slot, &run.id, *first, *tree, None));
        let kept = kept.and_then(|kept| match kept {
            Ok(attempt) => Some(attempt),
            Err(error) => {
                report.notes.push(Note::WorkNotKept(with_causes(&error)));
                None
            }
        });
        if let Some(attempt) = &kept {
            why += "\nNo process of it is left: its worktree is free again.\n";
            if let Some(name) = attempt {
                why +=
                    &format!("What it had done is kept in {}.\n", String::from_utf8_lossy(name.as_bytes()));
                self.publish(name, report);
            }
        }
        live.claimed.lease.message.body = why.trim_end().as_bytes().to_vec();
        if !self.renew(branch, &mut live.claimed)? {
            return Ok(None);
        }
        append(&live.logs.stderr, &why);
        let claimed = &live.claimed;
        if let Some(attempt) = kept {
            end(guardian)?;
            let _ = live.slot.leave(self.repo, claimed.first);
            live.slot.occupy(None)?;
            let (commit, left) = (claimed.lease.id, self.lease_left(live));
            return Ok(Some(ran(live, Some(exit), Outcome::KeptLease { commit, left }, attempt)));
        }
        let occupant = Occupant::new(&claimed.run.id, branch, self.settings.remote.clone(), claimed.first);
        let guardian_pid = guardian.as_ref().map(Supervised::guardian_pid);
        live.slot.occupy(Some(Occupant { lingering: true, guardian: guardian_pid, ..occupant }))?;
        if let Some(guardian) = guardian.take() {
            guardian.linger();
        }
        let (commit, left) = (claimed.lease.id, self.lease_left(live));
        Ok(Some(ran(live, Some(exit), Outcome::KeptLease { commit, left }, None)))
    }

    /// The declared state's commit. `None`: the swap was lost, judge again.
    fn finish_outcome(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: &Exit,
        next: Declaration,
        head: HeadIs,
        report: &mut Report,
    ) -> Result<Option<Ran>, RunnerError> {
        let found = match self.harvest(live, &next, head, report)? {
            Ok(found) => found,
            Err(why) => return self.try_stall(branch, live, Some(exit), why, None, report),
        };
        let left_out = self.keep_left_out(live, &next, &found, report)?;
        let base = if head == HeadIs::SlotHead { found.head } else { live.claimed.lease.id };
        let commit = match self.outcome_commit(branch, live, &next, &found, base) {
            Ok(commit) => commit,
            Err(RunnerError::Message { cause }) => {
                return self.try_stall(branch, live, Some(exit), Stall::Unrenderable(cause), None, report);
            }
            Err(error) => return Err(error),
        };
        let log = format!("aynig: {} -> {}", live.claimed.run.state, next.state);
        // Before the remote has it nobody else can know of it. What can't be kept may land all the same.
        let kept = match self.settings.remote {
            Some(_) => self.keep_outcome(live, commit),
            None => Ok(None),
        };
        let landed = match self.land(branch, base, commit, &log, live.lease_ends(), report) {
            Ok(landed) => landed,
            Err(error) => return self.not_landed(branch, live, exit, error, (commit, kept), report),
        };
        match landed {
            Landed::Won(commit) => {
                // The branch has it: what can't be cleaned up is no failure of the run.
                if let Err(error) =
                    self.drop_outcome(kept.unwrap_or(None), commit).and_then(|()| self.release(live))
                {
                    let dir = live.slot.dir().to_owned();
                    report.notes.push(Note::SlotLeft(dir, with_causes(&error)));
                }
                let outcome = Outcome::Advanced { state: next.state, commit };
                Ok(Some(ran(live, Some(exit), outcome, left_out)))
            }
            Landed::Lost => Ok(None),
            Landed::Blocked(commit, by) => {
                let kept = self.keep_outcome(live, commit)?;
                self.try_stall(branch, live, Some(exit), Stall::Checkout(by), kept, report)
            }
        }
    }

    fn harvest(
        &self,
        live: &Live,
        next: &Declaration,
        head: HeadIs,
        report: &mut Report,
    ) -> Result<Result<Harvest, Stall>, RunnerError> {
        match self.taken(live, next, head) {
            Ok(found) => {
                if !found.nested.is_empty() {
                    let names = found.nested.iter().map(|n| escape(n)).collect();
                    report.notes.push(Note::NestedRepositories(names));
                }
                Ok(Ok(found))
            }
            Err(HarvestError::ForeignHead(_)) => Ok(Err(Stall::ForeignHead)),
            Err(HarvestError::Unmerged) => Ok(Err(Stall::Unmerged)),
            Err(HarvestError::Store(error)) => Ok(Err(Stall::Slot(with_causes(&error)))),
        }
    }

    fn outcome_commit(
        &self,
        branch: &RefName,
        live: &Live,
        next: &Declaration,
        found: &Harvest,
        base: ObjectId,
    ) -> Result<ObjectId, RunnerError> {
        let claimed = &live.claimed;
        let message = claimed.run.outcome(next, &claimed.lease.message);
        let mut parents = vec![base];
        if found.head != claimed.first && found.head != base {
            parents.push(found.head);
        }
        self.write(branch, found.tree, parents, &message)
    }

    /// Moves the branch, and with it every working tree that has it checked out (K28).
    fn land(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
        log: &str,
        until: Duration,
        report: &mut Report,
    ) -> Result<Landed, RunnerError> {
        match self.move_branch(branch, old, new, log, until)? {
            Moved::Won(finished) => {
                report.notes.extend(blocked_notes(finished));
                Ok(Landed::Won(new))
            }
            Moved::Lost(left) => {
                report.notes.extend(blocked_notes(left));
                Ok(Landed::Lost)
            }
            Moved::Blocked(by) => Ok(Landed::Blocked(new, by)),
        }
    }

    /// The command wrote the outcome itself; what the slot holds beyond it becomes an attempt (K22).
    fn finish_own(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: &Exit,
        id: ObjectId,
    ) -> Result<Ran, RunnerError> {
        let commit = self.store.read_commit(id)?;
        let event = Event::of(crate::protocol::message::Message::parse(&commit.message));
        let state: Option<StateName> = event.and_then(|e| e.state_name().cloned());
        let attempt = self.keep_rest(branch, live, Some(&commit))?;
        self.release(live)?;
        Ok(ran(live, Some(exit), Outcome::Own { commit: id, state }, attempt))
    }

    /// The lease was lost: nothing on the branch, the work is kept (K24, K26).
    fn finish_fenced(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: &Exit,
        declared: &Declared,
    ) -> Result<Ran, RunnerError> {
        let claimed = &live.claimed;
        let mut attempt = None;
        if let Kept::Outcome(next) = kept_of_fenced(exit, declared)
            && let Ok(found) = self.taken(live, next, HeadIs::Lease)
            && let Ok(commit) = self.outcome_commit(branch, live, next, &found, claimed.lease.id)
            && let Some(name) = attempt_ref(&claimed.run.id)
        {
            self.keep(&name, commit)?;
            attempt = Some(name);
        }
        if attempt.is_none() {
            attempt = self.keep_rest(branch, live, None)?;
        }
        self.release(live)?;
        Ok(ran(live, Some(exit), Outcome::Fenced { to: self.lost_to(branch) }, attempt))
    }

    /// Keeps what the slot holds beyond an outcome that its command wrote, or all of it.
    fn keep_rest(
        &self,
        branch: &RefName,
        live: &Live,
        outcome: Option<&Commit>,
    ) -> Result<Option<RefName>, RunnerError> {
        let Claimed { run, first, tree, .. } = &live.claimed;
        match run.dialect.writer() {
            Writer::Runner => {
                self.keep_attempt(&live.slot, &run.id, *first, *tree, outcome.map(|commit| commit.tree))
            }
            Writer::Command => self.keep_beyond(&live.slot, &run.id, branch, *first, outcome),
        }
    }

    /// Ends a run `stalled` whatever its command did.
    pub(super) fn finish_stalled(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: Option<&Exit>,
        why: Stall,
        report: &mut Report,
    ) -> Result<Ran, RunnerError> {
        let mut done = self.try_stall(branch, live, exit, why.clone(), None, report);
        while self.is_worth_a_round(&done, live) {
            done = self.try_stall(branch, live, exit, why.clone(), None, report);
        }
        if let Some(ran) = done? {
            return Ok(ran);
        }
        self.release(live)?;
        Ok(ran(live, exit, Outcome::Fenced { to: self.lost_to(branch) }, None))
    }

    /// Writes `stalled`, its work kept first. `None`: the swap was lost, judge again.
    pub(super) fn try_stall(
        &self,
        branch: &RefName,
        live: &mut Live,
        exit: Option<&Exit>,
        why: Stall,
        kept: Option<RefName>,
        report: &mut Report,
    ) -> Result<Option<Ran>, RunnerError> {
        let claimed = &live.claimed;
        let found = match kept {
            Some(name) => Ok(Some(name)),
            // Nothing was started: what is in the slot is nobody's work.
            None if exit.is_none() => Ok(None),
            None => self.keep_attempt(&live.slot, &claimed.run.id, claimed.first, claimed.tree, None),
        };
        // Work that could not be kept stays in the slot: whoever wants that slot tries again.
        let saved = found.is_ok();
        let attempt = found.unwrap_or_else(|error| {
            note_once(report, Note::WorkNotKept(with_causes(&error)));
            None
        });
        let details = self.details(branch, live, exit, &why, attempt.as_ref());
        let message = claimed.run.stalled(&why, &details);
        let commit = self.write(branch, claimed.tree, vec![claimed.lease.id], &message)?;
        let log = format!("aynig: {} stalled", claimed.run.state);
        if let Some(name) = &attempt {
            self.publish(name, report);
        }
        match after_end(self.advance_until(branch, claimed.lease.id, commit, &log, live.lease_ends())?) {
            AfterEnd::Written => {
                if saved {
                    self.release(live)?;
                }
                Ok(Some(ran(live, exit, Outcome::Stalled { why, commit }, attempt)))
            }
            AfterEnd::JudgeAgain => Ok(None),
            AfterEnd::Unknown(cause) => Err(RunnerError::Unknown { branch: branch.clone(), cause }),
        }
    }

    /// Lets go of slot and run ref: the run is over.
    pub(super) fn release(&self, live: &mut Live) -> Result<(), RunnerError> {
        let claimed = &live.claimed;
        self.unfollow(&claimed.run.id, &[claimed.lease.id, claimed.first]);
        // What can't be cleaned now is met, and reported, where the slot is filled again.
        let _ = live.slot.leave(self.repo, live.claimed.first);
        live.slot.occupy(None)?;
        Ok(())
    }
}

/// What is said of working trees that could not follow yet.
pub(super) fn blocked_notes(finished: Vec<Finished>) -> Vec<Note> {
    finished
        .into_iter()
        .filter_map(|done| match done {
            Finished::Blocked(dir, by) => Some(Note::CheckoutBlocked(dir, by)),
            Finished::Arrived(_) | Finished::Moot(_) => None,
        })
        .collect()
}

/// Says in a log of the run's what its commit says: whoever looks there for what went wrong finds it.
fn append(log: &Path, text: &str) {
    let lines =
        text.lines().filter(|line| !line.is_empty()).map(|line| format!("aynig: {}\n", line.trim_start()));
    let opened = apart(log).and_then(|(folder, name)| folder.append(name, 0o600));
    // A log that can't be written is told of elsewhere.
    let _ = opened.map(|mut log| log.write_all(lines.collect::<String>().as_bytes()));
}

fn end(guardian: &mut Option<Supervised>) -> Result<(), RunnerError> {
    if let Some(guardian) = guardian.take() {
        guardian.end()?;
    }
    Ok(())
}

pub(super) fn ran(live: &Live, exit: Option<&Exit>, outcome: Outcome, attempt: Option<RefName>) -> Ran {
    Ran {
        run_id: live.claimed.run.id.clone(),
        state: live.claimed.run.state.clone(),
        trigger: live.claimed.run.trigger,
        exit: exit.map(Exit::to_string),
        took: live.started.elapsed(),
        stdout_log: live.logs.stdout.clone(),
        stderr_log: live.logs.stderr.clone(),
        outcome,
        attempt,
        interrupted: live.interrupted,
    }
}

//! Taking a branch: the lease commit, and the swap that makes it the head.
//!
//! The swap names the trigger; losing it is no error. An unknown verdict is retried with the same
//! expectation. Also every other swap of a run goes through here. Implements K10, K11.

use super::report::{Refusal, Skip, Verdict};
use super::{Runner, RunnerError, Tip};
use crate::protocol::event::Event;
use crate::protocol::holding::Moments;
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::protocol::name::StateName;
use crate::protocol::swap::{AfterClaim, Patience, after_claim, try_again};
use crate::protocol::transition::Run;
use crate::store::{Expected, RefName, StoreError, Swap, swap};
use std::time::Duration;

/// Longest call to a remote for a commit alone.
const CALL: Duration = Duration::from_secs(30);
/// How long a swap outside of a run is tried again.
const PATIENCE: Duration = Duration::from_secs(10);

/// A lease that is, or was, the branch's head.
#[derive(Debug, Clone)]
pub struct Lease {
    /// Its commit.
    pub id: ObjectId,
    /// Its message.
    pub message: Message,
    /// When building it began, on the clock that counts suspend.
    pub born: Duration,
}

/// A branch that this run holds.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The run.
    pub run: Run,
    /// What it answers.
    pub trigger: Tip,
    /// The lease that the slot is filled with.
    pub first: ObjectId,
    /// The tree of trigger and lease.
    pub tree: ObjectId,
    /// The lease as it is now.
    pub lease: Lease,
}

impl Runner<'_> {
    /// Claims a branch for a run of `state`. The inner error is the verdict of a claim that was not
    /// won; `None`: the head moved, judge again.
    pub(super) fn claim(
        &self,
        branch: &RefName,
        trigger: Tip,
        state: StateName,
    ) -> Result<Result<Claimed, Option<Verdict>>, RunnerError> {
        let born = self.clock.elapsed();
        let run = Run {
            id: self.settings.run_id(branch),
            dialect: trigger.event.as_ref().map(|e| e.dialect).unwrap_or_default(),
            runner_id: self.runner_id.clone(),
            state,
            trigger: trigger.id(),
            hop: trigger.event.as_ref().map_or(0, Event::hop).saturating_add(1),
            lease_seconds: self.settings.lease,
            remote: self.settings.remote.clone(),
        };
        let message = run.lease(&Message::parse(&trigger.commit.message));
        let tree = trigger.commit.tree;
        let commit = match self.write(branch, tree, vec![trigger.id()], &message) {
            Ok(commit) => commit,
            Err(RunnerError::Signing { cause }) => {
                return Ok(Err(Some(Verdict::Refused(Refusal::CannotSign(cause)))));
            }
            Err(error) => return Err(error),
        };
        let log = format!("aynig: claim {}", run.state);
        let until = Moments::claim_until(born, run.lease_seconds);
        match after_claim(self.advance_by(branch, (trigger.id(), commit), &log, until, Patience::Tries)?) {
            AfterClaim::Held => {}
            AfterClaim::Gone => return Ok(Err(Some(Verdict::Skipped(Skip::Missing)))),
            AfterClaim::LostRace => return Ok(Err(Some(Verdict::LostRace))),
            AfterClaim::Unknown(cause) => {
                return Err(RunnerError::Unknown { branch: branch.clone(), cause });
            }
        }
        let lease = Lease { id: commit, message, born };
        self.follow(&run.id, commit);
        Ok(Ok(Claimed { run, trigger, first: commit, tree, lease }))
    }

    /// Moves a branch from `old` to `new`; an unknown verdict is retried with the same expectation.
    pub fn advance(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
        log: &str,
    ) -> Result<Swap, RunnerError> {
        self.advance_by(branch, (old, new), log, self.clock.elapsed() + PATIENCE, Patience::Tries)
    }

    /// The same for what ends a run: what may pass is tried again until that moment on the clock that counts
    /// suspend (K31).
    pub(super) fn advance_until(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
        log: &str,
        until: Duration,
    ) -> Result<Swap, RunnerError> {
        self.advance_by(branch, (old, new), log, until, Patience::Until(until))
    }

    /// An unknown verdict is tried again: a few times where the branch is here, until that moment where it is on a
    /// remote. One that answers, and whose branch is where it was, as often as `unheard` says where its word did not
    /// reach us, and a few times where it was no: a lock there, a full disk and a hook differ in what they say alone,
    /// and no text decides.
    fn advance_by(
        &self,
        branch: &RefName,
        (old, new): (ObjectId, ObjectId),
        log: &str,
        until: Duration,
        unheard: Patience,
    ) -> Result<Swap, RunnerError> {
        let patience = match self.settings.remote {
            Some(_) => Patience::Until(until),
            None => Patience::Tries,
        };
        let mut tries = 0;
        loop {
            let verdict = self.advance_once(branch, old, new, log, until);
            let patience = match &verdict {
                Ok(Swap::Unknown { .. }) => Some(patience),
                Ok(Swap::Won | Swap::Lost { .. }) => None,
                Err(error) if error.is_no() => Some(Patience::Tries),
                Err(RunnerError::Store(StoreError::Remote { failure, .. })) => {
                    failure.may_pass().then_some(unheard)
                }
                Err(_) => None,
            };
            let now = self.clock.elapsed();
            let wait = patience.and_then(|patience| try_again(patience, tries, now));
            let in_time = |wait: &Duration| self.settings.remote.is_none() || now + *wait < until;
            let Some(wait) = wait.filter(in_time) else { return verdict };
            tries += 1;
            self.interrupt.pause(wait);
        }
    }

    /// One attempt at it, no call of which outlasts that moment.
    pub(super) fn advance_once(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
        log: &str,
        until: Duration,
    ) -> Result<Swap, RunnerError> {
        // What moves no file is one small object: a call that takes long for it hangs.
        let small = self.settings.remote.is_some()
            && self.store.read_commit(old)?.tree == self.store.read_commit(new)?.tree;
        let left = until.saturating_sub(self.clock.elapsed());
        self.store.set_patience(if small { left.min(CALL) } else { left });
        let by = self.signature();
        Ok(swap::compare_and_swap(&*self.store, branch, Expected::At(old), new, &by, log)?)
    }
}

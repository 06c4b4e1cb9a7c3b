//! Holding a branch: the lease commit, the swap that makes it the head, and its renewals.
//!
//! Each swap names the head that it replaces, and a lost swap is no error. A swap whose verdict is unknown is
//! tried again with the same expectation. Every move of a run's branch is made by `advance_once`. All of them
//! but renewals go through `advance_by`, which tries again; a renewal is repeated by the run's own loop.
//! Implements K10, K11, K18 (times), K44 (the ref of a run).

use super::report::{Refusal, Skip, Verdict};
use super::{Runner, RunnerError, Tip, is_written};
use crate::protocol::dialect::Dialect;
use crate::protocol::event::Event;
use crate::protocol::holding::LeaseDeadlines;
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::protocol::name::StateName;
use crate::protocol::swap::{AfterClaim, AfterRenewal, Patience};
use crate::protocol::swap::{after_claim, after_renewal, try_again};
use crate::protocol::transition::Run;
use crate::store::{Expected, RefChange, RefName, StoreError, Swap, swap};
use std::time::Duration;

/// Longest call to a remote for a commit that changes no file.
const CALL: Duration = Duration::from_secs(30);
/// How long a swap outside of a run is tried again.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two reads of a local branch's head while its command runs.
const HEAD_POLL: Duration = Duration::from_secs(1);
/// Longest time between two reads of a remote head.
const REMOTE_HEAD_POLL_MAX: Duration = Duration::from_secs(30);

/// A lease that is, or was, the branch's head.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    /// The lease's commit.
    pub id: ObjectId,
    /// The message of that commit.
    pub message: Message,
    /// When the runner began to build that commit, on the clock that counts suspend (it also runs while the
    /// machine is suspended).
    pub born: Duration,
}

/// A branch that a run holds.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    /// The run that holds the branch.
    pub run: Run,
    /// The head that the run answers.
    pub trigger: Tip,
    /// The first lease of the run, whose commit the slot is filled with.
    pub first: ObjectId,
    /// The tree of the trigger, which all leases of the run have too.
    pub tree: ObjectId,
    /// The newest lease: the first one, or its latest renewal.
    pub lease: Lease,
}

/// A move of a branch, with changes of other refs that are made together with it.
#[derive(Clone, Copy)]
struct Swapped<'a> {
    from: ObjectId,
    to: ObjectId,
    others: &'a [RefChange],
}

impl Swapped<'static> {
    /// Returns a move of the branch alone.
    fn of(from: ObjectId, to: ObjectId) -> Self {
        Self { from, to, others: &[] }
    }
}

/// What became of an attempt to claim a branch.
pub(super) enum Claimed {
    /// The branch was claimed.
    Held(Box<Claim>),
    /// The branch was not claimed, for this reason.
    No(Box<Verdict>),
}

impl Claim {
    /// Returns when the lease ends, on the clock that counts suspend.
    pub(super) fn ends(&self) -> Duration {
        self.lease.born + Duration::from_secs(self.run.lease_seconds)
    }
}

impl Runner<'_> {
    /// Claims a branch for a run of `state`.
    pub(super) fn claim(
        &self,
        branch: &RefName,
        trigger: Tip,
        state: StateName,
    ) -> Result<Claimed, RunnerError> {
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
                return Ok(Claimed::No(Box::new(Verdict::Refused(Refusal::CannotSign(cause)))));
            }
            Err(error) => return Err(error),
        };
        let log = format!("aynig: claim {}", run.state);
        let until = LeaseDeadlines::claim_until(born, run.lease_seconds);
        match after_claim(self.advance_by(
            branch,
            Swapped::of(trigger.id(), commit),
            &log,
            until,
            Patience::Tries,
        )?) {
            AfterClaim::Held => {
                let lease = Lease { id: commit, message, born };
                self.follow(&run.id, commit);
                let claim = Claim { run, trigger, first: commit, tree, lease };
                Ok(Claimed::Held(Box::new(claim)))
            }
            AfterClaim::Gone => Ok(Claimed::No(Box::new(Verdict::Skipped(Skip::Missing)))),
            AfterClaim::LostRace => Ok(Claimed::No(Box::new(Verdict::LostRace))),
            AfterClaim::Unknown(cause) => Err(RunnerError::unknown(branch, cause)),
        }
    }

    /// Renews the lease by swapping in a fresh `working` commit; false where the old lease is no longer the
    /// head.
    pub(super) fn renew(&self, branch: &RefName, claim: &mut Claim) -> Result<bool, RunnerError> {
        let until = self.deadlines(claim).give_up;
        let born = self.clock.elapsed();
        let commit = self.write(branch, claim.tree, vec![claim.lease.id], &claim.lease.message)?;
        // Only one attempt: the run's loop attends to the command and to signals before it makes another.
        match after_renewal(self.advance_once(
            branch,
            Swapped::of(claim.lease.id, commit),
            "aynig: renew",
            until,
        )?) {
            AfterRenewal::Held => {
                claim.lease = Lease { id: commit, message: claim.lease.message.clone(), born };
                self.follow(&claim.run.id, commit);
                Ok(true)
            }
            AfterRenewal::Look => Ok(false),
            AfterRenewal::Unknown(cause) => Err(RunnerError::unknown(branch, cause)),
        }
    }

    /// Moves a branch to the commit that ends a run; false where the head is no longer `lease`, so that the
    /// caller has to judge the new head. Failures that may pass are tried again until `until`, on the clock
    /// that counts suspend (K31).
    pub(super) fn end_lease(
        &self,
        branch: &RefName,
        lease: ObjectId,
        end: ObjectId,
        log: &str,
        until: Duration,
    ) -> Result<bool, RunnerError> {
        self.end_with(branch, (lease, end), &[], log, until)
    }

    /// Moves a branch as [`Runner::end_lease`] does, together with changes of other refs.
    pub(super) fn end_with(
        &self,
        branch: &RefName,
        (lease, end): (ObjectId, ObjectId),
        others: &[RefChange],
        log: &str,
        until: Duration,
    ) -> Result<bool, RunnerError> {
        let patience = Patience::Until(until);
        let swap = Swapped { from: lease, to: end, others };
        is_written(branch, self.advance_by(branch, swap, log, until, patience)?)
    }

    /// Returns until when a swap outside of a run is tried, on the clock that counts suspend.
    pub(super) fn soon(&self) -> Duration {
        self.clock.elapsed() + PATIENCE
    }

    /// Moves a branch from `old` to `new` outside of a run; false where the head is another one. An unknown
    /// verdict is tried again: for 10 s on a remote, a few times where the branch is local.
    pub fn advance(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
        log: &str,
    ) -> Result<bool, RunnerError> {
        is_written(branch, self.advance_by(branch, Swapped::of(old, new), log, self.soon(), Patience::Tries)?)
    }

    /// Moves a branch, and tries again after a failure that may pass:
    /// - the verdict is unknown: until `until` on a remote, a few times where the branch is local;
    /// - the branch has not moved, and the call to the remote failed for a reason that may pass: as
    ///   `if_untouched` says;
    /// - the branch has not moved, because the remote declined the push: a few times. A lock on the remote, a
    ///   full disk and a hook differ only in the text of the answer, and no text decides (K11, K31).
    ///
    /// On a remote no further attempt begins after `until`.
    fn advance_by(
        &self,
        branch: &RefName,
        swap: Swapped<'_>,
        log: &str,
        until: Duration,
        if_untouched: Patience,
    ) -> Result<Swap, RunnerError> {
        let if_unknown = match self.settings.remote {
            Some(_) => Patience::Until(until),
            None => Patience::Tries,
        };
        let mut tries = 0;
        loop {
            let verdict = self.advance_once(branch, swap, log, until);
            let patience = match &verdict {
                Ok(Swap::Unknown { .. }) => Some(if_unknown),
                Ok(Swap::Won | Swap::Lost { .. }) => None,
                Err(error) if error.is_no() => Some(Patience::Tries),
                Err(RunnerError::Store(StoreError::Remote { failure, .. })) => {
                    failure.may_pass().then_some(if_untouched)
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

    /// Makes one attempt to move a branch, after finishing a delivery that was cut off. No call to a remote
    /// lasts beyond `until`.
    fn advance_once(
        &self,
        branch: &RefName,
        swapped: Swapped<'_>,
        log: &str,
        until: Duration,
    ) -> Result<Swap, RunnerError> {
        let Swapped { from: old, to: new, others } = swapped;
        self.finish_delivery(branch, old)?;
        // A commit that changes no file is one small object: a call that takes long for it has hung.
        let small = self.settings.remote.is_some()
            && self.store.read_commit(old)?.tree == self.store.read_commit(new)?.tree;
        let left = until.saturating_sub(self.clock.elapsed());
        self.store.set_patience(if small { left.min(CALL) } else { left });
        let by = self.signature();
        Ok(swap::compare_and_swap_with(&*self.store, branch, Expected::At(old), new, others, &by, log)?)
    }

    /// Returns when a run's lease is to be renewed, when it is to be given up, and when it ends.
    pub(super) fn deadlines(&self, claim: &Claim) -> LeaseDeadlines {
        let run = &claim.run;
        let kill_grace = self.settings.kill_grace;
        LeaseDeadlines::of(run.dialect.writer(), claim.lease.born, run.lease_seconds, kill_grace)
    }

    /// Returns how long a runner waits between two reads of a branch's head.
    pub(super) fn head_poll_interval(&self, lease_seconds: u64) -> Duration {
        match self.settings.remote {
            Some(_) => (Duration::from_secs(lease_seconds) / 10).clamp(HEAD_POLL, REMOTE_HEAD_POLL_MAX),
            None => HEAD_POLL,
        }
    }

    /// Returns how long a lease still counts for other runners, grace included.
    pub(super) fn lease_left(&self, claim: &Claim) -> Duration {
        let grace = match claim.run.dialect {
            Dialect::Dwp => self.settings.grace,
            Dialect::Aynig => self.settings.aynig_grace,
        };
        (claim.ends() + Duration::from_secs(grace)).saturating_sub(self.clock.elapsed())
    }
}

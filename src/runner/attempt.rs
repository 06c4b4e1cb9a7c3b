//! Attempts: work of a run that is not on its branch, kept below `refs/aynig/attempts/`.
//!
//! An attempt is a commit of what a slot holds beyond its lease, or a whole outcome that could not be landed
//! and that `git aynig retry` lands. Its age counts from the newest of the commits that it stands on, back to
//! its run's lease: a command that makes its own commits can date them as it likes. A date in the future is
//! ignored. Implements K26, K28 (what `retry` finds), K31 (an outcome is kept before it is pushed).

use super::active_run::ActiveRun;
use super::head::{Step, step};
use super::is_written;
use super::named::{LEFT_OUT, attempt_ref};
use super::report::{Note, Report};
use super::{Runner, RunnerError, Tip};
use crate::protocol::dialect::Writer;
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::text::with_causes;
use crate::store::slots::Slot;
use crate::store::slots::harvest::{Harvest, Stage};
use crate::store::{Commit, NewCommit, RefName, StoreError, swap};
use std::collections::{HashSet, VecDeque};

/// Most commits that are read from an attempt down to its run's lease.
const COMMITS: usize = 1000;

impl Runner<'_> {
    /// Writes what the slot holds beyond its lease, and beyond an outcome that the command wrote itself, under
    /// `refs/aynig/attempts/`; `None` where there is nothing. Repositories inside the slot, which no tree can hold, are
    /// moved away ([`Runner::note_modules`] says where).
    pub(super) fn keep_attempt(
        &self,
        slot: &Slot,
        run_id: &str,
        lease: ObjectId,
        tree: ObjectId,
        outcome: Option<&Commit>,
    ) -> Result<Option<RefName>, RunnerError> {
        let Some(name) = attempt_ref(run_id) else { return Ok(None) };
        let found = slot.salvage(self.repo, Stage::All, lease, tree)?;
        slot.keep_apart(self.repo, run_id, &found)?;
        if found.tree == tree && found.head == lease {
            return Ok(None);
        }
        if let Some(outcome) = outcome {
            let is_head = || self.store.read_commit(found.head).is_ok_and(|head| head.tree == found.tree);
            if outcome.tree == found.tree
                || is_head() && self.descends(found.head, outcome.id).unwrap_or(false)
            {
                return Ok(None);
            }
        }
        let commit = self.write_attempt(run_id, lease, &found)?;
        self.keep(&name, commit)?;
        Ok(Some(name))
    }

    /// Writes the commit that keeps what was found in a slot.
    pub(super) fn write_attempt(
        &self,
        run_id: &str,
        lease: ObjectId,
        found: &Harvest,
    ) -> Result<ObjectId, StoreError> {
        let mut parents = vec![lease];
        if found.head != lease {
            parents.push(found.head);
        }
        let message = format!("aynig: attempt of run {run_id}\n").into_bytes();
        self.store.write_commit(&NewCommit {
            tree: found.tree,
            parents,
            signature: self.signature(),
            message,
        })
    }

    /// Points an attempt's ref at a commit.
    pub(super) fn keep(&self, name: &RefName, commit: ObjectId) -> Result<(), RunnerError> {
        let put = swap::put_ref(&*self.store, name, commit, &self.signature(), "aynig: attempt")?;
        // The caller frees the slot next, so only a ref that was certainly written keeps what is in it.
        match is_written(name, put)? {
            true => Ok(()),
            false => Err(RunnerError::unknown(name, "another process moves it".to_owned())),
        }
    }

    /// Keeps what the slot holds and neither its branch nor the outcome has; `None` where there is nothing.
    /// An outcome that could not be forwarded becomes the attempt as it is, so that `retry` lands it (K26,
    /// K28).
    pub(super) fn keep_beyond(
        &self,
        slot: &Slot,
        run_id: &str,
        branch: &RefName,
        first: ObjectId,
        outcome: Option<&Commit>,
    ) -> Result<Option<RefName>, RunnerError> {
        let Some(name) = attempt_ref(run_id) else { return Ok(None) };
        let lease = Tip::from(self.store.read_commit(first)?);
        let mut found = slot.salvage(self.repo, Stage::All, first, lease.commit.tree)?;
        slot.keep_apart(self.repo, run_id, &found)?;
        let head = self.store.read_commit(found.head).map_or(lease, Tip::from);
        // A HEAD that can't be read can be no parent; the lease takes its place.
        found.head = head.id();
        let clean = found.tree == head.commit.tree;
        let is_at = |id| self.descends(found.head, id);
        let known = found.head == first
            || outcome.map_or(Ok(false), |outcome| is_at(outcome.id))?
            || self.store.tip(branch)?.map_or(Ok(false), is_at)?;
        if known && (clean || outcome.is_some_and(|outcome| outcome.tree == found.tree)) {
            return Ok(None);
        }
        let whole = clean
            && matches!(step(head.event.as_ref(), run_id), Step::Outcome)
            && self.descends(first, found.head)?;
        let commit = if whole { found.head } else { self.write_attempt(run_id, first, &found)? };
        self.keep(&name, commit)?;
        Ok(Some(name))
    }

    /// Pushes an attempt to where the branch is, so that runners elsewhere can fetch it. A failure is only
    /// noted, since the attempt is kept in this repository anyway.
    pub(super) fn publish(&self, name: &RefName, report: &mut Report) {
        let published = self.store.tip(name).and_then(|id| match id {
            Some(id) => self.store.publish(name, id),
            None => Ok(()),
        });
        if let Err(error) = published {
            report.note_once(Note::NotPublished(name.clone(), with_causes(&error)));
        }
    }

    /// Returns the time from which the age of an attempt counts, in seconds since 1970; `None` where no date
    /// tells it, or its lease is too far down.
    pub(super) fn kept_since(&self, name: &RefName, attempt: Commit) -> Result<Option<i64>, StoreError> {
        let (now, run_id) = (self.clock.now(), run_of(name));
        let (mut met, mut next) = (HashSet::from([attempt.id]), VecDeque::from([attempt]));
        let mut newest = None;
        while let Some(commit) = next.pop_front() {
            newest = newest.max(commit.committed.filter(|at| *at <= now));
            let (parents, ends) = (commit.parents.clone(), self.store.history_ends_at(commit.id)?);
            if is_lease(&Tip::from(commit), &run_id) {
                break;
            }
            for parent in parents {
                if !ends && met.insert(parent) {
                    next.push_back(self.store.read_commit(parent)?);
                }
            }
            if met.len() > COMMITS {
                return Ok(None);
            }
        }
        Ok(newest)
    }
}

impl ActiveRun<'_> {
    /// Keeps what the slot holds beyond an outcome that its command wrote; without an outcome, all work in
    /// it.
    pub(super) fn keep_rest(&self, outcome: Option<&Commit>) -> Result<Option<RefName>, RunnerError> {
        let (runner, claim) = (self.runner, &self.claim);
        match claim.run.dialect.writer() {
            Writer::Runner => {
                runner.keep_attempt(&self.slot, &claim.run.id, claim.first, claim.tree, outcome)
            }
            Writer::Command => {
                runner.keep_beyond(&self.slot, &claim.run.id, self.branch, claim.first, outcome)
            }
        }
    }

    /// Keeps a whole outcome as the run's attempt, which `retry` can land.
    pub(super) fn keep_outcome(&self, commit: ObjectId) -> Result<Option<RefName>, RunnerError> {
        let Some(name) = attempt_ref(self.run_id()) else { return Ok(None) };
        self.runner.keep(&name, commit)?;
        Ok(Some(name))
    }

    /// Removes the attempt of an outcome that has landed.
    pub(super) fn drop_outcome(&self, kept: Option<RefName>, commit: ObjectId) -> Result<(), RunnerError> {
        if let Some(name) = kept {
            swap::delete_ref(&*self.runner.store, &name, commit, &self.runner.signature())?;
        }
        Ok(())
    }
}

/// Returns the id of the run whose work an attempt keeps.
pub(crate) fn run_of(name: &RefName) -> String {
    let id = name.as_bytes().strip_prefix(b"refs/aynig/attempts/").unwrap_or_default();
    String::from_utf8_lossy(id.strip_suffix(LEFT_OUT.as_bytes()).unwrap_or(id)).into_owned()
}

/// True for the lease that a run began with. A renewal says the same, but its first parent is not the
/// trigger.
fn is_lease(tip: &Tip, run_id: &str) -> bool {
    let of_run = |e: &&Event| e.is_working() && e.run_id() == Some(run_id);
    let trigger = tip.event.as_ref().filter(of_run).and_then(Event::trigger);
    trigger.is_some() && trigger == tip.commit.parents.first().copied()
}

//! The refs and the folder of a run, and what an id in a commit names, if that belongs to the commit's own branch.
//!
//! A commit may name any run, any attempt and any trigger, but a user who may write to one branch must not
//! move, remove or land what belongs to another. An attempt belongs to a branch that holds the lease on which
//! the attempt stands, a trigger to a branch that has it in its history, and a run's ref is removed only from
//! the lease that it points to. Implements K26, K27, K44, S30.

use super::{Runner, RunnerError, Tip};
use crate::protocol::event::{Event, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::store::beneath::{BeneathError, Root};
use crate::store::repository::Repository;
use crate::store::slots::Occupant;
use crate::store::{RefName, StoreError, swap};
use nix::fcntl::{Flock, FlockArg};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// How many commits below a head may be no state event before the search for a lease ends (K29).
const PLAIN: usize = 1000;

/// Returns the ref that follows a living run's lease; `None` where the id makes no name of a ref of the
/// runner's own.
pub(crate) fn run_ref(run_id: &str) -> Option<RefName> {
    let name = RefName::new(format!("refs/aynig/run/{run_id}"));
    name.is_own().then_some(name)
}

/// Returns the ref that keeps a run's work; `None` where the id makes no name of a ref of the runner's own.
pub(crate) fn attempt_ref(run_id: &str) -> Option<RefName> {
    let name = RefName::new(format!("refs/aynig/attempts/{run_id}"));
    name.is_own().then_some(name)
}

/// The end of the name of a ref that keeps what a run left out of its own outcome.
pub(super) const LEFT_OUT: &str = "-rejected";

/// Returns the ref that keeps what a run's command had left out of its outcome; `None` as for
/// [`attempt_ref`].
pub(crate) fn left_out_ref(run_id: &str) -> Option<RefName> {
    attempt_ref(&format!("{run_id}{LEFT_OUT}"))
}

/// True where no process on this machine holds a run: the lock in the run's folder can be taken, or does not
/// exist.
pub(super) fn is_dead(repo: &Repository, run_id: &str) -> bool {
    // A runner's lock is a plain file; anything else in its place is not held by a runner.
    let lock = Path::new("runs").join(run_id).join("lock");
    match Root::open(&repo.aynig_dir()).and_then(|root| root.file(&lock)) {
        Ok(file) => Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok(),
        Err(BeneathError::Refused { .. }) => true,
        // If the lock can't be checked, the run may live.
        Err(BeneathError::Io { source, .. }) => source.kind() == ErrorKind::NotFound,
    }
}

impl Runner<'_> {
    /// Returns the private folder of a run.
    pub fn run_dir(&self, run_id: &str) -> PathBuf {
        self.repo.aynig_dir().join("runs").join(run_id)
    }

    /// True where no process on this machine holds the run, as [`is_dead`] finds.
    pub fn is_dead(&self, run_id: &str) -> bool {
        is_dead(self.repo, run_id)
    }

    /// Returns the ref and commit that keep the work of a run, if that stands on a lease of the run at or
    /// below this commit.
    pub(super) fn attempt_of(
        &self,
        run_id: &str,
        at: &Tip,
    ) -> Result<Option<(RefName, ObjectId)>, StoreError> {
        let Some(name) = attempt_ref(run_id) else { return Ok(None) };
        let Some(attempt) = self.store.tip(&name)? else { return Ok(None) };
        Ok(self.stands_on_run(attempt, run_id, at)?.then_some((name, attempt)))
    }

    /// Does as [`Runner::attempt_of`], where the runner that kept the work may have been on another machine.
    pub(super) fn attempt_obtained(
        &self,
        run_id: &str,
        at: &Tip,
    ) -> Result<Option<(RefName, ObjectId)>, StoreError> {
        match attempt_ref(run_id) {
            // The remote is asked only for a run that this branch has a lease of.
            Some(name) if self.first_lease(run_id, at)?.is_some() => {
                self.store.obtain(&name)?;
                self.attempt_of(run_id, at)
            }
            Some(_) | None => Ok(None),
        }
    }

    fn stands_on_run(&self, attempt: ObjectId, run_id: &str, at: &Tip) -> Result<bool, StoreError> {
        match self.first_lease(run_id, at)? {
            Some(first) => self.descends(first, attempt),
            None => Ok(false),
        }
    }

    /// Returns the oldest lease of a run at or below a commit, along first parents; plain commits may lie
    /// between (K29).
    fn first_lease(&self, run_id: &str, at: &Tip) -> Result<Option<ObjectId>, StoreError> {
        let (mut found, mut plain) = (None, 0);
        let mut tip = at.clone();
        loop {
            match &tip.event {
                Some(event) if event.is_working() && event.run_id() == Some(run_id) => found = Some(tip.id()),
                None if plain < PLAIN => plain += 1,
                Some(_) if tip.id() == at.id() => {}
                Some(_) | None => return Ok(found),
            }
            let Some(parent) = tip.commit.parents.first().copied() else { return Ok(found) };
            if self.store.history_ends_at(tip.id())? {
                return Ok(found);
            }
            tip = self.store.read_commit(parent)?.into();
        }
    }

    /// True where another branch, such as a copy of this one, stalled in this run too, and may land its
    /// attempt.
    pub(super) fn is_for_others(&self, run_id: &str, branch: &RefName) -> Result<bool, StoreError> {
        for (name, commit) in self.store.read_heads("refs/heads/")?.heads {
            let tip = Tip::from(commit);
            let names = tip.event.as_ref().is_some_and(|event| event.text(STALLED_RUN) == Some(run_id));
            if names && name != *branch && self.attempt_of(run_id, &tip)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Points the run's own ref at its lease, so that no `gc` removes that. Best effort, because the branch
    /// holds the lease too.
    pub(super) fn follow(&self, run_id: &str, lease: ObjectId) {
        if let (Some(name), Ok(scratch)) = (run_ref(run_id), self.scratch()) {
            let _ = swap::put_ref(scratch, &name, lease, &self.signature(), "");
        }
    }

    /// Removes the ref of a run that is over, if it points to one of these leases. A ref that points
    /// elsewhere is another run's, or is left to `gc`.
    pub(super) fn unfollow(&self, run_id: &str, leases: &[ObjectId]) {
        if let Some(name) = run_ref(run_id)
            && let Ok(scratch) = self.scratch()
            && let Ok(Some(at)) = scratch.tip(&name)
            && leases.contains(&at)
        {
            let _ = swap::delete_ref(scratch, &name, at, &self.signature());
        }
    }

    /// True where a slot is noted for this run, but on another branch: this one is a copy of that, and may not
    /// say that the run has lost its own.
    pub(super) fn runs_elsewhere(&self, run_id: &str, branch: &RefName) -> bool {
        let pool = self.known_pool();
        let mut runs = pool.known().into_iter().filter_map(|number| pool.peek(number).run);
        let is_here = |run: &Occupant| run.branch_name() == *branch && run.remote == self.settings.remote;
        runs.any(|run| run.run_id == run_id && !is_here(&run))
    }

    /// Does as [`Runner::unfollow`] for a run that no runner works on any more and whose last lease is not
    /// known. `first`: the run's first lease.
    pub(super) fn unfollow_from(&self, run_id: &str, first: ObjectId) -> Result<(), RunnerError> {
        let Some(name) = run_ref(run_id) else { return Ok(()) };
        if let Some(at) = self.scratch()?.tip(&name)?
            && Tip::from(self.store.read_commit(at)?).event.as_ref().and_then(Event::run_id) == Some(run_id)
            && self.descends(first, at)?
        {
            self.unfollow(run_id, &[at]);
        }
        Ok(())
    }
}

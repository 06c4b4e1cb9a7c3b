//! Moving a branch, and with it the working trees that have it checked out: for an outcome, a forwarded
//! commit, a delivery, a landing.
//!
//! A change of a working tree is tried first, noted on disk and made; then the branch is swapped. If the swap
//! is lost, the change is put back. Implements K28.

use super::report::Note;
use super::{Runner, RunnerError};
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::obstacle::Obstacle;
use crate::protocol::text::with_causes;
use crate::store::checkout::{self, Finished, Fit, Noted};
use crate::store::worktrees::{self, Busy, Worktree};
use crate::store::{RefChange, RefName};
use std::path::PathBuf;
use std::time::Duration;

/// How long another runner that moves the branch is waited for, and how often it is looked at.
const MOVED_MAX: Duration = Duration::from_secs(2);
const MOVED_PAUSE: Duration = Duration::from_millis(20);

/// What became of moving a branch together with its working trees.
pub(super) enum Moved {
    /// The branch moved; what became of each working tree.
    Won(Vec<Finished>),
    /// Another runner was quicker; what became of working trees that had the outcome already.
    Lost(Vec<Finished>),
    /// Something is in the way: nothing moved.
    Blocked(Obstacle),
}

/// Returns the notes about working trees that could not follow yet, or not in all.
pub(super) fn blocked_notes(finished: Vec<Finished>) -> Vec<Note> {
    finished
        .into_iter()
        .filter_map(|done| match done {
            Finished::Blocked(dir, by) => Some(Note::CheckoutBlocked(dir, by)),
            Finished::Arrived(dir, kept) => kept.map(|words| Note::NotRemoved(dir, words)),
            Finished::Moot(_) | Finished::Stands(_) => None,
        })
        .collect()
}

/// What came of bringing an outcome into working trees.
enum Brought {
    /// It is in all of them, each of which is noted and locked.
    All(Vec<Noted>),
    /// It is in none of them: this is in the way in one.
    Blocked(Obstacle),
}

impl Runner<'_> {
    /// Returns the working tree that is rebasing or bisecting a branch, and which of these it does.
    pub(super) fn busy_worktree(&self, branch: &RefName) -> Result<Option<(Busy, PathBuf)>, RunnerError> {
        if self.settings.remote.is_some() {
            return Ok(None);
        }
        let mut all = worktrees::busy_branches(self.repo).into_iter();
        Ok(all.find(|(name, ..)| name == branch).map(|(_, busy, dir)| (busy, dir)))
    }

    /// Returns the obstacle that a rebase of the branch is.
    pub(crate) fn rebased(&self, branch: &RefName) -> Result<Option<Obstacle>, RunnerError> {
        let busy = self.busy_worktree(branch)?;
        Ok(busy.and_then(|(busy, dir)| (busy == Busy::Rebase).then_some(Obstacle::Rebase(dir))))
    }

    /// Moves a branch from `old` to `new`, together with the working trees that have it checked out, which
    /// are tried first. The swap is tried until `until`, on the clock that counts suspend.
    pub(super) fn move_branch(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
        log: &str,
        until: Duration,
    ) -> Result<Moved, RunnerError> {
        self.move_branch_with(branch, (old, new), &[], log, until)
    }

    /// Moves a branch as [`Runner::move_branch`] does, together with changes of other refs.
    pub(super) fn move_branch_with(
        &self,
        branch: &RefName,
        (old, new): (ObjectId, ObjectId),
        others: &[RefChange],
        log: &str,
        until: Duration,
    ) -> Result<Moved, RunnerError> {
        // A remote's branch is checked out in no working tree, and rebased in none.
        let mut follows = false;
        if self.settings.remote.is_none() {
            let to = self.store.read_commit(new)?;
            // A lease goes on while its branch is being rebased.
            let is_lease = Event::in_message(&to.message).is_some_and(|event| event.is_working());
            if !is_lease && let Some(by) = self.rebased(branch)? {
                return Ok(Moved::Blocked(by));
            }
            follows = self.store.read_commit(old)?.tree != to.tree;
        }
        let noted = match follows {
            true => match self.bring(branch, old, new)? {
                Brought::All(noted) => noted,
                Brought::Blocked(by) => return Ok(Moved::Blocked(by)),
            },
            false => Vec::new(),
        };
        let known: Vec<PathBuf> = noted.iter().map(|noted| noted.at().git_dir.clone()).collect();
        match self.end_with(branch, (old, new), others, log, until) {
            Ok(true) => {
                let mut done: Vec<_> = noted.into_iter().map(Noted::arrived).collect();
                if follows {
                    done.extend(self.bring_to_late(branch, &known, old, new));
                }
                Ok(Moved::Won(done))
            }
            Ok(false) => Ok(Moved::Lost(self.put_back(branch, noted))),
            // It is not known what the branch holds. The next verb looks, and does what is left to do.
            Err(error @ RunnerError::Unknown { .. }) => Err(error),
            Err(error) => {
                self.put_back(branch, noted);
                Err(error)
            }
        }
    }

    /// Returns what would be in the way of moving a branch now, in a working tree that has it checked out.
    /// Nothing is changed.
    pub(super) fn in_the_way_of(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
    ) -> Result<Option<Obstacle>, RunnerError> {
        if self.settings.remote.is_some() {
            return Ok(None);
        }
        if let Some(by) = self.rebased(branch)? {
            return Ok(Some(by));
        }
        let here = |w: &Worktree| w.branch.as_ref() == Some(branch);
        for worktree in worktrees::list(self.repo)?.into_iter().filter(here) {
            if let Fit::Blocked(by) = checkout::fit(self.repo, &worktree, old, new)? {
                return Ok(Some(self.told_of_who_writes(&worktree, by).seen_in(&worktree.dir)));
            }
        }
        Ok(None)
    }

    /// Brings an outcome into every working tree that has the branch checked out, before the branch moves; or
    /// into none of them. What another runner changed there because it moves the branch itself is no obstacle:
    /// once it has, the swap is lost to it, and until then it is waited for.
    fn bring(&self, branch: &RefName, old: ObjectId, new: ObjectId) -> Result<Brought, RunnerError> {
        let deadline = self.clock.instant() + MOVED_MAX;
        loop {
            let brought = self.try_to_bring(branch, old, new)?;
            if !matches!(brought, Brought::Blocked(_)) {
                return Ok(brought);
            }
            let here =
                |w: &Worktree| w.branch.as_ref() == Some(branch) && checkout::is_written_by_us(self.repo, w);
            let moves = worktrees::list(self.repo)?.iter().any(here);
            if self.store.tip(branch)? != Some(old) {
                return Ok(Brought::All(Vec::new()));
            }
            if !moves || self.clock.instant() >= deadline {
                return Ok(brought);
            }
            std::thread::sleep(MOVED_PAUSE);
        }
    }

    /// Does once what [`Runner::bring`] does.
    fn try_to_bring(&self, branch: &RefName, old: ObjectId, new: ObjectId) -> Result<Brought, RunnerError> {
        let here = |w: &Worktree| w.branch.as_ref() == Some(branch);
        let at: Vec<Worktree> = worktrees::list(self.repo)?.into_iter().filter(here).collect();
        let (mut fitted, mut noted) = (Vec::new(), Vec::new());
        for worktree in &at {
            match checkout::fit(self.repo, worktree, old, new)? {
                Fit::Fits(found) => fitted.push(found),
                Fit::Blocked(by) => {
                    let by = self.told_of_who_writes(worktree, by).seen_in(&worktree.dir);
                    return Ok(Brought::Blocked(by));
                }
            }
        }
        // The branch has moved meanwhile, so the swap will be lost: nothing is brought anywhere.
        if !fitted.is_empty() && self.store.tip(branch)? != Some(old) {
            return Ok(Brought::All(Vec::new()));
        }
        for found in fitted {
            let brought = checkout::note(self.repo, found, branch)
                .map_err(|error| Obstacle::Failed(with_causes(&error)));
            let failure = match brought {
                Ok(mut found) => {
                    let brought = found.bring(self.repo);
                    let dir = found.at().dir.clone();
                    noted.push(found);
                    brought.err().map(|by| by.seen_in(&dir))
                }
                Err(by) => Some(by),
            };
            if let Some(by) = failure {
                let left = self.put_back(branch, noted);
                return Ok(Brought::Blocked(by.left_behind(left.iter().find_map(Finished::obstacle))));
            }
        }
        if noted.is_empty() {
            return Ok(Brought::All(noted));
        }
        // The working trees are locked now, and no process switches branches there any more. Those that
        // switched before are put back.
        let still = worktrees::list(self.repo)?;
        let (noted, gone): (Vec<_>, Vec<_>) = noted
            .into_iter()
            .partition(|noted| still.iter().any(|w| here(w) && w.git_dir == noted.at().git_dir));
        for noted in gone {
            noted.put_back(self.repo, Some(old));
        }
        Ok(Brought::All(noted))
    }

    /// Returns what is in the way in a working tree. Changes that the child of a killed runner is still
    /// writing there are not the user's, and are reported as a lock; the next verb sees to them.
    fn told_of_who_writes(&self, at: &Worktree, by: Obstacle) -> Obstacle {
        match by {
            Obstacle::Changes(_) if checkout::is_written_by_us(self.repo, at) => {
                Obstacle::Lock(checkout::lock_of(at))
            }
            Obstacle::Changes(_) | Obstacle::Lock(_) | Obstacle::Rebase(_) | Obstacle::Failed(_) => by,
        }
    }

    /// Makes working trees hold again what their branch holds, which did not move. The result says what could
    /// not be put back.
    fn put_back(&self, branch: &RefName, noted: Vec<Noted>) -> Vec<Finished> {
        let tip = match noted.is_empty() {
            true => None,
            false => self.store.tip(branch).ok().flatten(),
        };
        noted.into_iter().map(|noted| noted.put_back(self.repo, tip)).collect()
    }

    /// Brings working trees up to date that switched to the branch while it moved, and so have what it held
    /// before. The branch has moved, so what can't be brought there is only reported.
    fn bring_to_late(
        &self,
        branch: &RefName,
        known: &[PathBuf],
        old: ObjectId,
        new: ObjectId,
    ) -> Vec<Finished> {
        let late = |w: &Worktree| w.branch.as_ref() == Some(branch) && !known.contains(&w.git_dir);
        let all = worktrees::list(self.repo).unwrap_or_default();
        let bring = |at: Worktree| match checkout::follow(self.repo, &at, branch, old, new) {
            Ok(finished) => finished,
            Err(error) => Finished::Blocked(at.dir, Obstacle::Failed(with_causes(&error))),
        };
        all.into_iter().filter(late).map(bring).collect()
    }
}

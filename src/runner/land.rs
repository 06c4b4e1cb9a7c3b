//! Moving a branch, and with it the working trees that have it checked out.
//!
//! Tried first, noted, swapped, done. Implements K28.

use super::finish::with_causes;
use super::{Runner, RunnerError};
use crate::protocol::id::ObjectId;
use crate::protocol::obstacle::Obstacle;
use crate::protocol::swap::{AfterEnd, after_end};
use crate::store::RefName;
use crate::store::checkout::{self, Finished, Fit, Noted};
use crate::store::worktrees::{self, Busy, Worktree};
use std::path::PathBuf;
use std::time::Duration;

/// What became of moving a branch together with its working trees.
pub(super) enum Moved {
    /// It moved; what became of each working tree.
    Won(Vec<Finished>),
    /// Somebody else was quicker.
    Lost,
    /// Something is in the way: nothing moved.
    Blocked(Obstacle),
}

impl Runner<'_> {
    /// The working tree that is in the middle of something with a branch.
    pub(super) fn busy_worktree(&self, branch: &RefName) -> Result<Option<(Busy, PathBuf)>, RunnerError> {
        if self.settings.remote.is_some() {
            return Ok(None);
        }
        let all = worktrees::list(self.repo)?;
        Ok(all.into_iter().find_map(|w| match w.busy {
            Some((busy, name)) if name == *branch => Some((busy, w.dir)),
            Some(_) | None => None,
        }))
    }

    /// Moves a branch from `old` to `new`, tried until that moment on the clock that counts suspend.
    /// Working trees that have it checked out are tried first.
    pub(super) fn move_branch(
        &self,
        branch: &RefName,
        old: ObjectId,
        new: ObjectId,
        log: &str,
        until: Duration,
    ) -> Result<Moved, RunnerError> {
        let (mut noted, mut known): (Vec<Noted>, Vec<PathBuf>) = Default::default();
        let same = self.store.read_commit(old)?.tree == self.store.read_commit(new)?.tree;
        // A remote's branch is checked out nowhere.
        if !same && self.settings.remote.is_none() {
            let here = |w: &Worktree| w.branch.as_ref() == Some(branch);
            let at: Vec<Worktree> = worktrees::list(self.repo)?.into_iter().filter(here).collect();
            let (mut fitted, mut held) = (Vec::new(), Vec::new());
            for worktree in &at {
                match checkout::fit(self.repo, worktree, old, new)? {
                    Fit::Fits(found) => fitted.push((worktree, found)),
                    Fit::Blocked(by) => return Ok(Moved::Blocked(by.seen_in(&worktree.dir))),
                }
            }
            // Under their locks from here on: who commits there has committed, or sees all of the outcome.
            for (worktree, found) in fitted {
                match found.hold(self.repo)? {
                    Fit::Fits(found) => held.push(found),
                    Fit::Blocked(by) => return Ok(Moved::Blocked(by.seen_in(&worktree.dir))),
                }
            }
            let still = match held.is_empty() {
                true => Vec::new(),
                false => worktrees::list(self.repo)?,
            };
            held.retain(|held| still.iter().any(|w| here(w) && w.git_dir == held.at().git_dir));
            for found in held {
                known.push(found.at().git_dir.clone());
                noted.push(checkout::note(self.repo, found, branch)?);
            }
        }
        let verdict = self.advance_until(branch, old, new, log, until);
        match verdict.map(after_end) {
            Ok(AfterEnd::Written) => {
                // The move is made: a working tree that can't follow now is noted, and only said.
                let finish = |noted: Noted| {
                    let dir = noted.dir();
                    noted.finish(self.repo).unwrap_or_else(|error| {
                        let why = with_causes(&RunnerError::from(error));
                        Finished::Blocked(dir, Obstacle::Failed(why))
                    })
                };
                let mut done: Vec<_> = noted.into_iter().map(finish).collect();
                if !same && self.settings.remote.is_none() {
                    done.extend(self.bring_to_late(branch, &known, old, new));
                }
                Ok(Moved::Won(done))
            }
            Ok(AfterEnd::JudgeAgain) => {
                noted.into_iter().for_each(Noted::drop_note);
                Ok(Moved::Lost)
            }
            Ok(AfterEnd::Unknown(cause)) => Err(RunnerError::Unknown { branch: branch.clone(), cause }),
            Err(error) => Err(error),
        }
    }

    /// Working trees that switched to the branch while it moved have what it held before. The move is made:
    /// what can't be brought there is only said.
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

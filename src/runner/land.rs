//! Moving a branch, and with it the working trees that have it checked out.
//!
//! Tried first, noted, swapped, done. Implements K28.

use super::{Runner, RunnerError};
use crate::protocol::id::ObjectId;
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
    /// Local changes are in the way: nothing moved. Git's own words.
    Blocked(String),
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
        let mut noted: Vec<Noted> = Vec::new();
        let same = self.store.read_commit(old)?.tree == self.store.read_commit(new)?.tree;
        // A remote's branch is checked out nowhere.
        if !same && self.settings.remote.is_none() {
            let here = |w: &Worktree| w.branch.as_ref() == Some(branch);
            let at: Vec<Worktree> = worktrees::list(self.repo)?.into_iter().filter(here).collect();
            for worktree in &at {
                if let Fit::Clobbers(words) = checkout::fit(self.repo, worktree, old, new)? {
                    return Ok(Moved::Blocked(words));
                }
            }
            for worktree in &at {
                noted.push(checkout::note(self.repo, worktree, branch, old, new)?);
            }
        }
        let verdict = self.advance_until(branch, old, new, log, until);
        match verdict.map(after_end) {
            Ok(AfterEnd::Written) => {
                let done = noted.into_iter().map(|n| n.finish(self.repo)).collect::<Result<_, _>>()?;
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
}

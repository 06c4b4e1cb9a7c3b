//! The checks before a claim: a runner that could run nothing must not take a branch from others.
//!
//! The head has to be signed where that is required, and no working tree may be rebasing or bisecting the
//! branch. The folders that a run needs are written to, as a run would, and no foreign ref may stand where
//! the refs of runs go. Once a process has found these two in order, it does not check them again while the
//! folder of runs exists. Implements K14, K28, K35, K44, K59.

use super::report::{Skip, Verdict};
use super::{Runner, RunnerError, Tip, logs};
use crate::store::{RefName, StoreError};
use std::path::Path;

/// How often a folder is created anew because an uninstallation removed it meanwhile.
const PROBES: usize = 3;

/// The runner's refs are below these names; a ref that has such a name itself leaves no room for them.
pub(super) const OWN: [&str; 3] = ["refs/aynig", "refs/aynig/run", "refs/aynig/attempts"];
/// Messages, questions, pauses, flows and turns have their refs below these names; a run does without.
pub(super) const TALK: [&str; 6] = [
    "refs/aynig/inbox",
    "refs/aynig/heard",
    "refs/aynig/asked",
    "refs/aynig/paused",
    "refs/aynig/flows",
    "refs/aynig/turns",
];

impl Runner<'_> {
    /// Returns what keeps a head with a command from being dispatched.
    pub(super) fn preflight(&self, branch: &RefName, tip: &Tip) -> Result<Option<Verdict>, RunnerError> {
        if let Some(refusal) = self.not_vouched(branch, tip)? {
            return Ok(Some(Verdict::Refused(refusal)));
        }
        if let Some(refusal) = self.not_confinable() {
            return Ok(Some(Verdict::Refused(refusal)));
        }
        let busy = self.busy_worktree(branch)?;
        Ok(busy.map(|(busy, dir)| Verdict::Skipped(Skip::Busy(busy, dir))))
    }

    /// Finds out whether a run could be prepared and kept in this repository, and fails where it could not.
    pub(super) fn ready(&self) -> Result<(), RunnerError> {
        let runs = self.repo.aynig_dir().join("runs");
        if self.settings.ready.get().is_none() || !runs.is_dir() {
            self.refs_in_the_way(&OWN)?;
            let unready = |what, path: &Path| {
                let path = path.to_owned();
                move |source| RunnerError::Unready { what, path, source }
            };
            let worktrees = &self.settings.worktree_dir;
            probe(worktrees).map_err(unready("worktrees", worktrees))?;
            probe(&runs).map_err(unready("runs", &runs))?;
            self.repo.share(&runs);
            let logs = logs::create_folder(self.repo)?.0;
            probe(&logs).map_err(unready("logs", &logs))?;
            let _ = self.settings.ready.set(());
        }
        Ok(())
    }

    /// Fails where a ref of the user's has one of these names, below which the runner has refs.
    pub(super) fn refs_in_the_way(&self, folders: &[&str]) -> Result<(), RunnerError> {
        for other in folders.iter().copied().map(RefName::new) {
            if self.scratch.tip(&other)?.is_some() {
                let name = RefName::new([other.as_bytes(), b"/*"].concat());
                return Err(StoreError::NameConflict { name, other }.into());
            }
        }
        Ok(())
    }
}

/// Creates a file in the folder and removes it again, creating the folder if needed. Tries anew where another
/// process removes empty folders.
fn probe(folder: &Path) -> std::io::Result<()> {
    let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let file = folder.join(format!(".new-{}", uuid::Uuid::new_v4()));
    let try_file = || std::fs::File::create_new(&file).and_then(|_| std::fs::remove_file(&file));
    // As a rule the folder exists.
    if try_file().is_ok() {
        return Ok(());
    }
    let mut tries = 0;
    loop {
        tries += 1;
        std::fs::DirBuilder::new().recursive(true).create(folder)?;
        match try_file() {
            Err(error) if gone(&error) && tries < PROBES => {}
            done => return done,
        }
    }
}

//! What is tried before a claim: a runner that could run nothing takes nothing from others.
//!
//! The head has to be signed where that is asked for, and no working tree may be in the middle of something with the
//! branch. Folders are written to, as a run would, and no foreign ref stands where the refs of runs go; a process
//! looks at these until it has found all well, and then no more. Implements K14, K28, K35, K44, K59.

use super::report::{Skip, Verdict};
use super::{Runner, RunnerError, Tip, logs};
use crate::store::{RefName, StoreError};
use std::path::Path;

/// How often a folder is made anew that an uninstallation took away meanwhile.
const PROBES: usize = 3;

/// Refs below these are the runner's; one of such a name leaves no room for any.
pub(super) const OWN: [&str; 3] = ["refs/aynig", "refs/aynig/run", "refs/aynig/attempts"];
/// Refs below these are messages', questions', pauses' and flows': a run does without.
pub(super) const TALK: [&str; 6] = [
    "refs/aynig/inbox",
    "refs/aynig/heard",
    "refs/aynig/asked",
    "refs/aynig/paused",
    "refs/aynig/flows",
    "refs/aynig/turns",
];

impl Runner<'_> {
    /// What keeps a head with a command from being dispatched.
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

    /// Finds out whether a run could be prepared and kept here.
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

    /// Refuses where a ref of the user's has the name of a folder of ours.
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

/// Makes the folder, and a file in it, which is removed again. Tried anew where another process removes empty folders.
fn probe(folder: &Path) -> std::io::Result<()> {
    let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let file = folder.join(format!(".new-{}", uuid::Uuid::new_v4()));
    let try_file = || std::fs::File::create_new(&file).and_then(|_| std::fs::remove_file(&file));
    // As a rule it is there.
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

//! What can be tried before a claim is tried before it: a runner that could run nothing takes nothing from others.
//!
//! Folders are written to, as a run would, and nothing of anybody's stands where the refs of runs go. A process looks
//! until it has found all well, and then no more. Implements K14, K44.

use super::{Runner, RunnerError, logs};
use crate::store::{RefName, StoreError};
use std::path::Path;

/// Refs below these are the runner's; one of such a name leaves no room for any.
const OWN: [&str; 3] = ["refs/aynig", "refs/aynig/run", "refs/aynig/attempts"];

impl Runner<'_> {
    /// Finds out whether a run could be prepared and kept here.
    pub(super) fn ready(&self) -> Result<(), RunnerError> {
        if self.settings.ready.get().is_none() {
            self.refs_in_the_way()?;
            let unready = |what, path: &Path| {
                let path = path.to_owned();
                move |source| RunnerError::Unready { what, path, source }
            };
            let worktrees = &self.settings.worktree_dir;
            probe(worktrees).map_err(unready("worktrees", worktrees))?;
            let runs = self.repo.aynig_dir().join("runs");
            probe(&runs).map_err(unready("runs", &runs))?;
            self.repo.share(&runs);
            let logs = logs::folder(self.repo).0;
            logs::create_folder(self.repo)?;
            probe(&logs).map_err(unready("logs", &logs))?;
            let _ = self.settings.ready.set(());
        }
        Ok(())
    }

    /// Refuses where somebody's ref has the name of a folder of ours.
    pub(super) fn refs_in_the_way(&self) -> Result<(), RunnerError> {
        for other in OWN.map(RefName::new) {
            if self.scratch.tip(&other)?.is_some() {
                let name = RefName::new([other.as_bytes(), b"/*"].concat());
                return Err(StoreError::NameConflict { name, other }.into());
            }
        }
        Ok(())
    }
}

/// Makes the folder, and a file in it, which goes again.
fn probe(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).create(folder)?;
    let file = folder.join(format!(".new-{}", uuid::Uuid::new_v4()));
    std::fs::File::create_new(&file)?;
    std::fs::remove_file(&file)
}

//! The repositories of submodules that a command filled in its slot.
//!
//! Git keeps them in the slot's registration, and with it they would go. Those with commits that no remote of
//! theirs is known to have are moved to `aynig/submodules/<run-id>/` first. Implements K14, K26.

use super::super::repository::Repository;
use super::super::{StoreError, remove_tree};
use super::{Slot, io};
use std::path::{Path, PathBuf};

/// How deep a submodule's name, or submodules in submodules, are followed.
const DEPTH: usize = 32;

/// Where all of them are kept.
pub fn kept(repo: &Repository) -> PathBuf {
    repo.aynig_dir().join("submodules")
}

/// Where those of one run are kept: one repository for each submodule, in a folder of its name.
pub fn kept_of(repo: &Repository, run_id: &str) -> PathBuf {
    kept(repo).join(run_id)
}

/// The names of the submodules whose repositories are in a folder, those of submodules in submodules too.
pub fn names(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    repositories(folder, DEPTH, &mut found);
    found.iter().filter_map(|path| path.strip_prefix(folder).ok()).map(Path::to_owned).collect()
}

impl Slot {
    /// Takes the repositories of submodules out of the registration. Those whose commits may be nowhere else are
    /// kept.
    pub(super) fn drop_modules(&self, repo: &Repository) -> Result<(), StoreError> {
        let modules = self.admin.join("modules");
        if modules.symlink_metadata().is_err() {
            return Ok(());
        }
        let run = self.record.run.as_ref().map(|run| run.run_id.clone());
        let place = kept_of(repo, &run.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()));
        for name in names(&modules) {
            let module = modules.join(&name);
            // One that can't be read may hold work. One that is gone went with the one that it is in.
            if !module.exists() || !repo.git.has_unpublished(&module).unwrap_or(true) {
                continue;
            }
            // Its working tree goes: with that in its configuration Git would refuse to read it.
            let _ = repo.git.forget_worktree(&module);
            let mut to = place.join(&name);
            if to.symlink_metadata().is_ok() {
                to = place.join(uuid::Uuid::new_v4().to_string()).join(&name);
            }
            let above = to.parent().unwrap_or(&place);
            std::fs::create_dir_all(above).map_err(io("create", above))?;
            std::fs::rename(&module, &to).map_err(io("move", &module))?;
        }
        remove_tree(&modules).map_err(io("remove", &modules))
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// The repositories below a folder, and those of their own submodules.
fn repositories(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let mut inside: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    inside.sort();
    for path in inside.into_iter().filter(|path| depth > 0 && is_folder(path)) {
        let next = match is_folder(&path.join("objects")) {
            true => {
                found.push(path.clone());
                path.join("modules")
            }
            false => path,
        };
        repositories(&next, depth - 1, found);
    }
}

//! The repositories of submodules that a command filled in its slot.
//!
//! Git keeps these repositories in the slot's registration, and they would be deleted with it. Those with
//! commits that no remote of theirs is known to have are first moved to `aynig/submodules/<run-id>/`, without
//! what starts programs. Implements K14, K26.

use super::Slot;
use crate::protocol::id::ObjectId;
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, make_readable, remove_tree};
use crate::supervisor::beneath::{Kind, Root};
use gix::bstr::BString;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How many levels of folders in a submodule's name, and of submodules in submodules, are followed.
const DEPTH: usize = 32;
/// Most bytes of a `.git` file that leads elsewhere.
const GITFILE_MAX: u64 = 8192;

/// Returns the folder in which the repositories of all runs are kept.
pub(crate) fn kept(repo: &Repository) -> PathBuf {
    repo.aynig_dir().join("submodules")
}

/// Returns the folder in which those of one run are kept: one repository for each submodule, in a folder that
/// has the submodule's name.
pub(crate) fn kept_of(repo: &Repository, run_id: &str) -> PathBuf {
    kept(repo).join(run_id)
}

/// Returns where a repository or file that a run calls `name` is to be kept, and makes the folder above it. The folder
/// of all runs is shared as the repository is, what is below it is the run's.
pub(super) fn room_for(repo: &Repository, run_id: &str, name: &Path) -> Result<PathBuf, StoreError> {
    let place = kept_of(repo, run_id);
    let mut to = place.join(name);
    if to.symlink_metadata().is_ok() {
        to = place.join(uuid::Uuid::new_v4().to_string()).join(name);
    }
    let above = to.parent().unwrap_or(&place);
    repo.make(&kept(repo))?;
    std::fs::create_dir_all(above).map_err(io_error("create", above))?;
    Ok(to)
}

/// Returns the names of the submodules whose repositories are in a folder, those of submodules in submodules
/// included.
pub(crate) fn names(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    repositories(folder, DEPTH, &mut found)?;
    Ok(found.iter().filter_map(|path| path.strip_prefix(folder).ok()).map(Path::to_owned).collect())
}

impl Slot {
    /// Removes the repositories of submodules from the registration. Those with commits that may be nowhere
    /// else are moved away and kept.
    pub(super) fn drop_modules(&self, repo: &Repository) -> Result<(), StoreError> {
        let modules = self.admin.join("modules");
        if modules.symlink_metadata().is_err() {
            return Ok(());
        }
        // Where the command took away access rights, the second try comes after they are restored.
        self.try_drop_modules(repo, &modules).or_else(|_| {
            make_readable(&modules);
            self.try_drop_modules(repo, &modules)
        })
    }

    fn try_drop_modules(&self, repo: &Repository, modules: &Path) -> Result<(), StoreError> {
        let run = self.record.run.as_ref().map(|run| run.run_id.clone());
        let run_id = run.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let (links, mut answers) = (self.gitlinks(repo), true);
        for name in names(modules)? {
            let module = modules.join(&name);
            // It was moved together with the submodule that contains it.
            if !module.exists() {
                continue;
            }
            // A repository that can't be read may hold work, so it is kept. The rest are then kept without a
            // check, as this one may have taken long.
            let unpublished = answers.then(|| repo.git.has_unpublished(&module, &links));
            if let Some(Ok(false)) = unpublished {
                continue;
            }
            answers = matches!(unpublished, Some(Ok(_)));
            let of_its_own = module.join("modules");
            let inside = names(&of_its_own)?.into_iter().map(|name| of_its_own.join(name));
            for inside in inside.chain([module.clone()]) {
                super::tame::tame(repo, &inside, self.folder_of_slots())
                    .map_err(io_error("write", &inside))?;
            }
            let to = room_for(repo, &run_id, &name)?;
            std::fs::rename(&module, &to).map_err(io_error("move", &module))?;
        }
        // The next process would take half of a repository for one with work, so everything is renamed away
        // at once.
        let aside = repo.aynig_dir().join(format!(".old-{}", uuid::Uuid::new_v4()));
        std::fs::rename(modules, &aside).map_err(io_error("move", modules))?;
        remove_tree(&aside).map_err(io_error("remove", &aside))
    }

    /// Returns the submodules of the runner's own index that have a repository in the slot, each with the
    /// commit that is checked out in it, or `None` where that can't be read. The commit is read separately
    /// because `git add` would look for all changes in the repository, and so start programs that its
    /// configuration names.
    pub(super) fn submodules(
        &self,
        repo: &Repository,
    ) -> Result<Vec<(BString, Option<ObjectId>)>, StoreError> {
        let Ok(slot) = Root::open(&self.dir) else { return Ok(Vec::new()) };
        let with = |(path, _): (BString, ObjectId)| {
            let dot_git = Path::new(OsStr::from_bytes(&path)).join(".git");
            // Skips a submodule without a `.git`, or one that is not in a folder of the slot.
            slot.kind(&dot_git).ok()??;
            // The command must not make the runner read another repository, of this account or of any other.
            let own = self.leads_to_own(&slot, &dot_git);
            let head = own.then(|| repo.git.head_of_submodule(&self.dir.join(&dot_git)).ok()).flatten();
            Some((path, head))
        };
        Ok(self.own_links(repo)?.into_iter().filter_map(with).collect())
    }

    /// Returns the folder that contains the slots.
    pub(super) fn folder_of_slots(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// True where a `.git` is a repository itself, or leads to one in the slot or in its registration.
    fn leads_to_own(&self, slot: &Root, dot_git: &Path) -> bool {
        let Ok(Some(Kind::File)) = slot.kind(dot_git) else {
            return matches!(slot.kind(dot_git), Ok(Some(Kind::Folder)));
        };
        let said = slot.read(dot_git, GITFILE_MAX).unwrap_or_default();
        let Some(to) = said.strip_prefix(b"gitdir: ") else { return false };
        let above = self.dir.join(dot_git.parent().unwrap_or(Path::new("")));
        let to = above.join(Path::new(OsStr::from_bytes(to.trim_ascii_end()))).canonicalize();
        let own = [&self.dir, &self.admin].map(|own| own.canonicalize());
        to.is_ok_and(|to| own.iter().flatten().any(|own| to.starts_with(own)))
    }

    /// Removes the repositories that are in the slot; false where that can't be done. Git would read them
    /// before it removes them, and would wait for ever for a fifo in one. What they hold was kept before.
    pub(super) fn remove_repositories(&self, repo: &Repository) -> Result<bool, StoreError> {
        let Ok(slot) = Root::open(&self.dir) else { return Ok(false) };
        for (path, _) in self.own_links(repo)? {
            let place = Path::new(OsStr::from_bytes(&path));
            if matches!(slot.kind(&place.join(".git")), Ok(None)) {
                continue;
            }
            // A link in the place of it, or of a folder above it, leads to what is not the slot's.
            if !matches!(slot.kind(place), Ok(Some(Kind::Folder))) {
                return Ok(false);
            }
            let dir = self.dir.join(place);
            remove_tree(&dir).map_err(io_error("remove", &dir))?;
            std::fs::create_dir(&dir).map_err(io_error("create", &dir))?;
        }
        for path in self.scan(repo.hash)?.nested {
            let dir = self.dir.join(Path::new(OsStr::from_bytes(&path)));
            remove_tree(&dir).map_err(io_error("remove", &dir))?;
        }
        Ok(true)
    }

    /// Returns the submodules of the runner's own index: their paths, and the commits with which the slot was
    /// filled.
    pub(super) fn own_links(&self, repo: &Repository) -> Result<Vec<(BString, ObjectId)>, StoreError> {
        let index = self.index(repo.hash)?;
        let links = index.entries().iter().filter(|entry| entry.mode == gix::index::entry::Mode::COMMIT);
        let named = |entry: &gix::index::Entry| {
            let id = crate::store::backends::gix_store::from_gix(&entry.id).ok()?;
            Some((entry.path(index).to_owned(), id))
        };
        Ok(links.filter_map(named).collect())
    }

    /// Returns the commits of the submodules with which the slot was filled.
    fn gitlinks(&self, repo: &Repository) -> Vec<ObjectId> {
        self.own_links(repo).unwrap_or_default().into_iter().map(|(_, id)| id).collect()
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// Adds the repositories below a folder to `found`, and those of their own submodules. No link is followed,
/// as it may lead to what is not the command's.
fn repositories(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), StoreError> {
    if !is_folder(folder) {
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).map_err(io_error("read", folder))?;
    let mut inside = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<PathBuf>, _>>()
        .map_err(io_error("read", folder))?;
    inside.sort();
    for path in inside.into_iter().filter(|path| is_folder(path)) {
        // A folder deeper than submodules are nested in practice is taken for a repository as it is.
        let whole = depth == 0 || path.join("HEAD").symlink_metadata().is_ok();
        if whole {
            found.push(path.clone());
        }
        if depth > 0 {
            repositories(&if whole { path.join("modules") } else { path }, depth - 1, found)?;
        }
    }
    Ok(())
}

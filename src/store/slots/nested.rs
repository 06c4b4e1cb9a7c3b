//! Repositories that a command made in its slot by a clone or a `git init`, and other files that Git adds to
//! no tree.
//!
//! No tree can hold such a repository, so neither can an outcome or an attempt. Those of a run that stalled
//! or was fenced, and those that an outcome names a new commit of, are moved to
//! `aynig/submodules/<run-id>/` with all their files, under the paths that they had. Of each `.git` folder in
//! them only what starts no programs stays; a `.git` that only leads elsewhere is renamed. Implements K26.

use super::Slot;
use super::harvest::Harvest;
use super::modules::room_for;
use super::tame::{is_repository, tame};
use crate::protocol::id::ObjectId;
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, make_readable, remove_tree};
use crate::supervisor::beneath::{Kind, Root};
use gix::bstr::BString;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The new name of a `.git` that is no folder.
const LEADS_ELSEWHERE: &str = "dot-git";

impl Slot {
    /// Returns the repositories in the slot of which the harvested tree names a new commit that may exist in no other
    /// place: it was made here, and may never have been pushed. The repositories of submodules that Git filled are in
    /// the slot's registration, and not among them.
    fn linked(&self, repo: &Repository, found: &Harvest) -> Vec<BString> {
        let own = self.own_links(repo).unwrap_or_default();
        if own.is_empty() && found.nested.is_empty() {
            return Vec::new();
        }
        let gix = repo.gix();
        let tree = gix.find_tree(gix::ObjectId::from_bytes_or_panic(found.tree.as_bytes())).ok();
        let slot = Root::open(&self.dir).ok();
        let is_new = |path: &BString, before: Option<ObjectId>| {
            let names = path.split(|byte| *byte == b'/');
            let entry = tree.as_ref().and_then(|tree| tree.lookup_entry(names).ok().flatten());
            let now = entry.filter(|entry| entry.mode().is_commit());
            now.is_some_and(|now| before.is_none_or(|before| now.object_id().as_bytes() != before.as_bytes()))
        };
        let is_only_here = |path: &BString| {
            let dot_git = Path::new(OsStr::from_bytes(path)).join(".git");
            let kind = slot.as_ref().and_then(|slot| slot.kind(&dot_git).ok().flatten());
            kind == Some(Kind::Folder)
                && repo.git.has_unpublished(&self.dir.join(&dot_git), &[]).unwrap_or(true)
        };
        let before = own.into_iter().map(|(path, id)| (path, Some(id)));
        let all = before.chain(found.nested.iter().map(|path| (path.clone(), None)));
        let linked = all.filter(|(path, before)| is_new(path, *before) && is_only_here(path));
        linked.map(|(path, _)| path).collect()
    }

    /// Keeps the repositories that an outcome names a new commit of: the branch has no more than its id.
    pub(crate) fn keep_linked(
        &self,
        repo: &Repository,
        run_id: &str,
        found: &Harvest,
    ) -> Result<(), StoreError> {
        self.keep_nested(repo, run_id, &self.linked(repo, found))
    }

    /// Keeps what was found in the slot and is in no tree: all repositories that were left out, and those of which
    /// the tree has no more than a commit's id.
    pub(crate) fn keep_apart(
        &self,
        repo: &Repository,
        run_id: &str,
        found: &Harvest,
    ) -> Result<(), StoreError> {
        let mut all = self.linked(repo, found);
        all.retain(|path| !found.nested.contains(path));
        all.extend(found.nested.iter().cloned());
        self.keep_nested(repo, run_id, &all)
    }

    /// Keeps these repositories and files of the slot; the paths in `nested` are relative to it. Those that
    /// were moved before are skipped.
    fn keep_nested(&self, repo: &Repository, run_id: &str, nested: &[BString]) -> Result<(), StoreError> {
        if nested.is_empty() {
            return Ok(());
        }
        let opened = Root::open(&self.dir);
        let slot = opened.map_err(|error| io_error("open", &self.dir)(error.into()))?;
        for path in nested.iter().map(|path| Path::new(OsStr::from_bytes(path))) {
            // No link is followed, as what it leads to is not the run's. A fifo, a socket or a device holds
            // no work.
            let kind = match slot.kind(path) {
                Ok(Some(kind @ (Kind::Folder | Kind::File | Kind::Link))) => kind,
                Ok(Some(Kind::Other) | None) | Err(_) => continue,
            };
            let to = room_for(repo, run_id, path)?;
            let from = self.dir.join(path);
            // Programs are taken out before the move: whatever interrupts it, nothing in the place that users
            // are directed to can start one. Where the command took away access rights, of a folder above
            // too, the second try comes after they are restored.
            let keep = || {
                if kind == Kind::Folder {
                    tame_all(repo, &from, self.folder_of_slots())?;
                }
                take(&from, &to)
            };
            let moved = keep().or_else(|_| {
                make_readable(&self.dir);
                keep()
            });
            moved.map_err(io_error("keep", &from))?;
            if kind == Kind::Folder {
                make_readable(&to);
            }
        }
        if repo.durable { crate::store::sync_file_system(&repo.common_dir) } else { Ok(()) }
    }
}

/// Moves a file or folder, to another file system too: there the original stays until the copy is complete.
fn take(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(from, to).inspect_err(|_| {
                let _ = remove_tree(to);
            })?;
            remove_tree(from)
        }
        moved => moved,
    }
}

/// Copies a folder, a file or a link. Links stay links; fifos, sockets and devices hold no work.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let kind = from.symlink_metadata()?.file_type();
    if kind.is_dir() {
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if kind.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from)?, to)?;
    } else if kind.is_file() {
        std::fs::copy(from, to)?;
    }
    Ok(())
}

/// Removes what starts programs from every repository in a folder, and from the folder where it is one
/// itself.
fn tame_all(repo: &Repository, folder: &Path, slots: &Path) -> io::Result<()> {
    if is_repository(folder) || folder.file_name().is_some_and(|name| name == ".git") {
        tame(repo, folder, slots)?;
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            tame_all(repo, &path, slots)?;
        } else if entry.file_name() == ".git" {
            // The first free name is taken, so that nothing is overwritten.
            let names =
                (0..).map(|n| if n == 0 { LEADS_ELSEWHERE.into() } else { format!("{LEADS_ELSEWHERE}-{n}") });
            let free = names.map(|name| folder.join(name)).find(|to| to.symlink_metadata().is_err());
            std::fs::rename(&path, free.unwrap_or_else(|| folder.join(LEADS_ELSEWHERE)))?;
        }
    }
    Ok(())
}

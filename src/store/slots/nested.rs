//! Repositories that a command made in its slot, a clone or a `git init`, and what else Git takes into no tree.
//!
//! No tree can hold one, so neither can an outcome or an attempt. What a run that stalled or was fenced has of them is
//! moved to `aynig/submodules/<run-id>/`, files and all, under the path that it had; of each `.git` in it only what starts
//! no programs stays, and one that only leads elsewhere is renamed.
//! Implements K26.

use super::Slot;
use super::modules::kept_of;
use super::tame::{is_repository, tame};
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, make_readable, remove_tree};
use crate::supervisor::beneath::{Kind, Root};
use gix::bstr::BString;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a `.git` is called that is no folder.
const LEADS_ELSEWHERE: &str = "dot-git";

impl Slot {
    /// Keeps these repositories, or files, of the slot, whose paths are relative to it. Those that were moved already are
    /// left out.
    pub(crate) fn keep_nested(
        &self,
        repo: &Repository,
        run_id: &str,
        nested: &[BString],
    ) -> Result<(), StoreError> {
        if nested.is_empty() {
            return Ok(());
        }
        let opened = Root::open(&self.dir);
        let slot = opened.map_err(|error| io_error("open", &self.dir)(error.into()))?;
        let kept = kept_of(repo, run_id);
        for path in nested.iter().map(|path| Path::new(OsStr::from_bytes(path))) {
            // Through no link: what one leads to is not the run's. A fifo, a socket or a device holds no work.
            let kind = match slot.kind(path) {
                Ok(Some(kind @ (Kind::Folder | Kind::File | Kind::Link))) => kind,
                Ok(Some(Kind::Other) | None) | Err(_) => continue,
            };
            let mut to = kept.join(path);
            if to.symlink_metadata().is_ok() {
                to = kept.join(uuid::Uuid::new_v4().to_string()).join(path);
            }
            let above = to.parent().unwrap_or(&kept);
            std::fs::create_dir_all(above).map_err(io_error("create", above))?;
            let from = self.dir.join(path);
            // Before it is moved: what stands where a user is sent to starts nothing, whatever comes between. What a
            // command took the rights away from, in a folder above too, can be read and moved once they are back.
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

/// Moves what is there, to another file system too: then it is where it was until all of it is there.
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

/// Takes what starts programs out of every repository in a folder, and out of the folder where it is one itself.
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
            // In the place of nothing that has that name already.
            let names =
                (0..).map(|n| if n == 0 { LEADS_ELSEWHERE.into() } else { format!("{LEADS_ELSEWHERE}-{n}") });
            let free = names.map(|name| folder.join(name)).find(|to| to.symlink_metadata().is_err());
            std::fs::rename(&path, free.unwrap_or_else(|| folder.join(LEADS_ELSEWHERE)))?;
        }
    }
    Ok(())
}

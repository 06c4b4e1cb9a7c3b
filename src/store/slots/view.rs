//! A Git directory of the runner's own, through which a slot is read once a command has run in it.
//!
//! The content of a slot's registration (its configuration, the repository that it names) may have been
//! written by the command, and Git would obey it: it would start the filters of a repository that the command
//! made, or write there. So nothing is read through the registration. A view is free of all that: it belongs
//! to this repository, and holds only what Git needs, and a bounded copy of the command's index. It is made
//! when it is first asked for, and removed when it is dropped. Implements K14, K25.

use super::{Slot, admin};
use crate::protocol::id::ObjectId;
use crate::store::repository::Repository;
use crate::store::{StoreError, copy_index, io_error, remove_tree};
use crate::supervisor::beneath::{self, BeneathError, Kind, Root};
use std::cell::OnceCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Most bytes of an index that is copied: a longer one would be of some eight million files.
const INDEX_MAX: u64 = 1 << 30;
/// Most names of a registration that are searched for the shared parts of a split index.
const NAMES_MAX: usize = 10_000;
/// Most of these shared parts that are copied: Git keeps the current one, and earlier ones for a while.
const SHARED_MAX: usize = 16;

/// The view of one slot that this process has.
pub(super) struct View<'a> {
    slot: &'a Slot,
    repo: &'a Repository,
    commit: ObjectId,
    dir: OnceCell<PathBuf>,
}

impl<'a> View<'a> {
    /// Returns a view whose HEAD is this commit; no file is made yet.
    pub(super) fn new(slot: &'a Slot, repo: &'a Repository, commit: ObjectId) -> Self {
        Self { slot, repo, commit, dir: OnceCell::new() }
    }

    /// Returns the view's Git directory, which is made at the first call.
    pub(super) fn dir(&self) -> Result<&Path, StoreError> {
        if let Some(dir) = self.dir.get() {
            return Ok(dir);
        }
        let name = format!("{}.staging-{}", self.slot.number, std::process::id());
        let dir = self.slot.notes.join(name);
        // A dead process that had the same id may have left one.
        remove_tree(&dir).map_err(io_error("remove", &dir))?;
        let dir = self.dir.get_or_init(|| dir);
        self.fill(dir)?;
        self.copy_index(dir)?;
        Ok(dir)
    }

    /// Returns the path of the copy of the command's index. The file is missing where the command left no
    /// index that can be read.
    pub(super) fn index(&self) -> Result<PathBuf, StoreError> {
        Ok(self.dir()?.join("index"))
    }

    fn fill(&self, dir: &Path) -> Result<(), StoreError> {
        let make = |path: &Path| std::fs::create_dir_all(path).map_err(io_error("create", path));
        let write = |name: &str, content: &str| {
            let path = dir.join(name);
            std::fs::write(&path, content).map_err(io_error("write", &path))
        };
        make(&dir.join("refs"))?;
        write("commondir", "../../..\n")?;
        if !self.repo.reftable {
            return write("HEAD", &format!("{}\n", self.commit));
        }
        make(&dir.join("reftable"))?;
        write("reftable/tables.list", "")?;
        write("refs/heads", "this repository uses the reftable format\n")?;
        write("HEAD", "ref: refs/heads/.invalid\n")
    }

    fn copy_index(&self, dir: &Path) -> Result<(), StoreError> {
        let Ok(admin) = self.slot.opened_admin() else { return Ok(()) };
        let copy = |name: &Path| {
            let Ok(from) = admin.file(name) else { return Ok(()) };
            let path = self.slot.admin.join(name);
            let cannot = io_error("copy", &path);
            match from.metadata() {
                // Without it what the index alone says would be missing in the outcome.
                Ok(meta) if meta.len() > INDEX_MAX => Err(cannot(ErrorKind::FileTooLarge.into())),
                Ok(_) => copy_index(&from, &dir.join(name)).map_err(cannot),
                Err(_) => Ok(()),
            }
        };
        copy(Path::new("index"))?;
        let entries = admin.list(Path::new(""), NAMES_MAX).unwrap_or_default();
        let rests = entries.iter().filter(|entry| entry.kind == Kind::File && admin::is_shared(&entry.name));
        rests.take(SHARED_MAX).try_for_each(|entry| copy(Path::new(&entry.name)))
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        if let Some(dir) = self.dir.get() {
            let _ = remove_tree(dir);
        }
    }
}

impl Slot {
    /// Opens the slot's registration as a folder, without following a link.
    pub(super) fn opened_admin(&self) -> Result<Root, BeneathError> {
        let (worktrees, name) = beneath::apart(&self.admin)?;
        worktrees.below(name)
    }
}

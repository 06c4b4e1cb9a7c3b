//! A pool that is closed: no runner takes a slot while `uninstall` removes what this program has in the
//! repository.
//!
//! The process that removes takes this module's lock first, and then looks at every slot's lock. A runner
//! takes a slot's lock first, and then looks at this lock. So one of the two always sees the other. A lock
//! whose file was removed under its holder no longer excludes others. Implements K14.

use super::{Pool, Slot, open_lock};
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error};
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of the lock's file, in the repository's `aynig` folder.
pub(crate) const NAME: &str = "uninstall.lock";

/// As long as this value lives, no slot of the repository is taken.
pub(crate) struct Closed {
    _lock: Flock<File>,
    path: PathBuf,
}

impl Closed {
    /// Closes the pool of a repository. Waits while another process has closed it.
    pub(crate) fn close(repo: &Repository) -> Result<Self, StoreError> {
        let aynig = repo.aynig_dir();
        let path = aynig.join(NAME);
        loop {
            repo.make(&aynig)?;
            repo.share_folders();
            let file = match open_lock(&path) {
                // The process that had closed the pool has removed the folder meanwhile.
                Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => continue,
                opened => opened?,
            };
            repo.share(&path);
            let lock = Flock::lock(file, FlockArg::LockExclusive)
                .map_err(|(_, errno)| io_error("lock", &path)(errno.into()))?;
            if is_at(&lock, &path) {
                return Ok(Self { _lock: lock, path });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Pool<'_> {
    /// True where a slot that was locked may be used: the pool is not closed, and the file of the slot's lock
    /// still exists.
    pub(crate) fn is_open(&self, slot: &Slot) -> Result<bool, StoreError> {
        let path = self.repo.aynig_dir().join(NAME);
        let closed = match File::open(&path) {
            Ok(file) => Flock::lock(file, FlockArg::LockSharedNonblock).is_err(),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(io_error("open", &path)(error)),
        };
        let held = slot.lock.as_ref().is_none_or(|lock| is_at(lock, &self.lock_path(slot.number)));
        Ok(!closed && held)
    }
}

/// True where `path` still names this open file.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
    file.metadata().ok().map(id) == path.symlink_metadata().ok().map(id)
}

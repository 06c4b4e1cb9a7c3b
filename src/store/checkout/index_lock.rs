//! The lock of a working tree's index, and the copy that is worked on meanwhile.
//!
//! An outcome is brought into a working tree under the index's own lock, which is taken before the first file
//! changes and held until the branch has moved. So a commit in that tree is either made before, or waits and
//! sees the whole outcome. Git can't hold one lock over two of its children. Therefore this tool holds the
//! lock, which is distinguished from the locks of others as those of refs are (see `locks`), and the children
//! work on a copy that becomes the index at the end. Implements K28, K43.

use crate::store::refs::locks::{self, Owner, OwnerFile};
use crate::store::repository::Repository;
use crate::store::{StoreError, copy_index, io_error};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a lock that is held is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A copy of an index, and which index it is a copy of.
#[derive(Debug)]
pub(crate) struct Copy {
    path: PathBuf,
    index: PathBuf,
    of: Option<(u64, u64, i64, i64)>,
}

/// A held lock of a file that Git locks too.
#[derive(Debug)]
pub(crate) struct FileLock {
    lock: PathBuf,
    /// What marks the lock as this tool's; dropped after the lock itself is removed. `None` where the file
    /// system has no hard links.
    owner_file: Option<OwnerFile>,
    left: bool,
}

/// The held lock of an index.
#[derive(Debug)]
pub(crate) struct IndexLock(FileLock);

/// Returns what distinguishes one version of an index from the next (Git renames a new file into place):
/// inode, size and modification time; `None` where there is no index.
pub(crate) fn identity(index: &Path) -> Option<(u64, u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(index).ok().map(|m| (m.ino(), m.size(), m.mtime(), m.mtime_nsec()))
}

impl Copy {
    /// Copies the index of a working tree whose Git directory this is.
    pub(crate) fn of(repo: &Repository, git_dir: &Path) -> Result<Self, StoreError> {
        let index = git_dir.join("index");
        let path = repo.aynig_dir().join(format!("merge-{}.index", uuid::Uuid::new_v4()));
        let copy = Self { path, of: identity(&index), index };
        repo.make(&repo.aynig_dir())?;
        match fs::File::open(&copy.index).and_then(|index| copy_index(&index, &copy.path)) {
            Ok(()) => Ok(copy),
            // An index that was never written is an empty one.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(copy),
            Err(error) => Err(io_error("copy", &copy.index)(error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True while the index is still what was copied.
    pub(crate) fn is_current(&self) -> bool {
        identity(&self.index) == self.of
    }

    /// Makes the copy the index. The caller holds the lock of the index.
    pub(crate) fn put(self, _held: &IndexLock) -> Result<(), StoreError> {
        fs::rename(&self.path, &self.index).map_err(io_error("write", &self.index))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // The lock of a `git` that was killed while it wrote the copy.
        let _ = fs::remove_file(self.path.with_extension("index.lock"));
    }
}

impl FileLock {
    /// Takes a lock, waiting for at most `patience`; `None` where another process held it all that time.
    pub(crate) fn take(
        repo: &Repository,
        lock: PathBuf,
        patience: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let common_dir = &repo.common_dir;
        let mut owner_file = Some(OwnerFile::plain(common_dir, repo.shared)?);
        let until = Instant::now() + patience;
        loop {
            let taken = match &owner_file {
                Some(owner_file) => fs::hard_link(owner_file.path(), &lock),
                None => fs::OpenOptions::new().write(true).create_new(true).open(&lock).map(drop),
            };
            match taken.map_err(|error| (error.kind(), error)) {
                Ok(()) => return Ok(Some(Self { lock, owner_file, left: false })),
                Err((ErrorKind::AlreadyExists, _)) => {
                    if locks::owner_of(common_dir, &lock)? == Owner::Gone {
                        continue;
                    }
                }
                // The file system has no hard links.
                Err((
                    ErrorKind::Unsupported | ErrorKind::PermissionDenied | ErrorKind::CrossesDevices,
                    _,
                )) if owner_file.is_some() => {
                    owner_file = None;
                    continue;
                }
                Err((_, error)) => return Err(io_error("create", &lock)(error)),
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(locks::jittered(LOOK_EVERY));
        }
    }

    /// Releases the lock. If it can't be removed now, the next sweep, which knows it by its owner file, removes it.
    ///
    /// # Errors
    /// The lock can't be removed now, so Git's next command in that working tree finds it held.
    pub(crate) fn release(mut self) -> Result<(), StoreError> {
        self.left = true;
        locks::give_back(&self.lock, self.owner_file.as_mut())
    }

    fn leave(mut self) {
        if let Some(owner_file) = &mut self.owner_file {
            owner_file.stay();
            self.left = true;
        }
    }
}

impl IndexLock {
    /// Takes the lock of a working tree's index, waiting for at most `patience`; `None` where another
    /// process held it all that time.
    pub(crate) fn take(
        repo: &Repository,
        git_dir: &Path,
        patience: Duration,
    ) -> Result<Option<Self>, StoreError> {
        Ok(FileLock::take(repo, Self::path(git_dir), patience)?.map(Self))
    }

    /// Releases the lock as [`FileLock::release`] does.
    ///
    /// # Errors
    /// The lock can't be removed now.
    pub(crate) fn release(self) -> Result<(), StoreError> {
        self.0.release()
    }

    /// Leaves the lock where it is. The next sweep, which knows it by its owner file, removes it.
    pub(crate) fn leave(self) {
        self.0.leave();
    }

    /// Returns the path of the lock of a working tree's index, be it held or not.
    pub(crate) fn path(git_dir: &Path) -> PathBuf {
        git_dir.join("index.lock")
    }

    /// Returns the file whose `flock` shows that the owner lives; `None` where the file
    /// system has no hard links.
    pub(crate) fn file(&self) -> Option<&fs::File> {
        self.0.owner_file.as_ref().map(OwnerFile::file)
    }

    /// True while a process of this tool, or a child of one, holds the lock of a working tree's index.
    pub(crate) fn is_ours(repo: &Repository, git_dir: &Path) -> Result<bool, StoreError> {
        Ok(locks::owner_of(&repo.common_dir, &Self::path(git_dir))? == Owner::Ours)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if !self.left {
            let _ = locks::give_back(&self.lock, self.owner_file.as_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_could_not_be_removed_goes_with_the_next_sweep() {
        let dir = tempfile::tempdir().unwrap();
        gix::init_bare(dir.path()).unwrap();
        let repo = Repository::discover(dir.path(), None).unwrap();
        let held = IndexLock::take(&repo, dir.path(), Duration::ZERO).unwrap().unwrap();
        // The lock can't be removed as a file while a folder has its place.
        let (lock, away) = (IndexLock::path(dir.path()), dir.path().join("away"));
        fs::rename(&lock, &away).unwrap();
        fs::create_dir(&lock).unwrap();
        drop(held);
        fs::remove_dir(&lock).unwrap();
        fs::rename(&away, &lock).unwrap();
        assert_eq!(locks::sweep_stale_locks(&repo.common_dir).unwrap(), [lock.as_path()]);
        assert!(!lock.exists() && !IndexLock::is_ours(&repo, dir.path()).unwrap());
    }
}

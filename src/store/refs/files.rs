//! The durable swap on Git's files backend. It is our own code, because gix syncs nothing, and Git does not
//! make its last rename durable.
//!
//! The order is this: the new value is written, and synced together with the objects it names; the file is
//! linked to `<ref>.lock` ([`super::locks::RefLock`]); the old value is checked under the lock (loose, then
//! packed); the reflog is appended to; the lock is renamed over the ref; the ref's folder is synced.
//! [`super::transaction`] does that for one ref or for several. A process killed at any point leaves the old
//! value or the new one, and a lock that the next runner recognizes. `packed-refs.lock` is never taken: a
//! packed ref gets a loose file that overrides it. Symbolic refs are refused, never followed and never
//! overwritten. `durable: false` switches all syncing off.
//!
//! Only the runner's own refs are deleted; one that is packed too is deleted by `git`.
//! Implements K42, K11 (the attempt), K44.

use super::locks;
use super::reading::{self, Packed, RefValue, is_absent, path_of};
use super::reflog::LogRefs;
use super::unsynced::Unsynced;
use crate::protocol::id::ObjectId;
use crate::store::disk::{Shared, is_there};
use crate::store::git::command::Git;
use crate::store::{RefName, Scan, StoreError, io_error, sync};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How refs are written in one repository.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// True where a change is synced before it is reported (`aynig.fsync`).
    pub(crate) durable: bool,
    /// Which refs get a log.
    pub(crate) log_refs: LogRefs,
    /// The mode of new files.
    pub(crate) shared: Shared,
    /// How long a held lock is waited for.
    pub(crate) lock_wait: Duration,
}

/// The refs of one repository with the files backend.
#[derive(Debug, Clone)]
pub struct FilesRefs {
    common_dir: PathBuf,
    hex_len: usize,
    policy: Policy,
    git: Git,
    /// The files and folders that are synced together with the content of the next lock.
    pub(crate) unsynced: Unsynced,
}

impl FilesRefs {
    /// Returns the refs below this common Git directory, whose object ids have `hex_len` hexadecimal digits.
    pub(crate) fn new(common_dir: impl Into<PathBuf>, hex_len: usize, policy: Policy, git: Git) -> Self {
        Self { common_dir: common_dir.into(), hex_len, policy, git, unsynced: Unsynced::default() }
    }

    /// Returns the Git directory that all worktrees share.
    pub(crate) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    pub(super) fn hex_len(&self) -> usize {
        self.hex_len
    }

    pub(crate) fn durable(&self) -> bool {
        self.policy.durable
    }

    pub fn lock_wait(&self) -> Duration {
        self.policy.lock_wait
    }

    pub(crate) fn log_refs(&self) -> LogRefs {
        self.policy.log_refs
    }

    /// Returns all refs below a prefix.
    pub(crate) fn scan(&self, prefix: &str) -> Result<Scan, StoreError> {
        reading::scan(&self.common_dir, prefix.as_bytes(), self.hex_len)
    }

    /// Returns what the ref holds now; `None` where it does not exist.
    pub(crate) fn tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        let path = path_of(&self.common_dir, name)?;
        let loose = reading::read_loose(&path, self.hex_len).map_err(io_error("read", &path))?;
        let value = match loose {
            RefValue::Missing => Packed::open(&self.common_dir, self.hex_len)?.find(name)?,
            RefValue::Object(_) | RefValue::Symbolic(_) | RefValue::Unreadable(_) => loose,
        };
        match value {
            RefValue::Missing => Ok(None),
            RefValue::Object(id) => Ok(Some(id)),
            RefValue::Symbolic(target) => Err(StoreError::SymbolicRef { name: name.clone(), target }),
            RefValue::Unreadable(cause) => Err(StoreError::UnreadableRef { name: name.clone(), cause }),
        }
    }

    /// Deletes packed refs through `git`, each only if it still holds the id beside it.
    pub(super) fn delete_packed(&self, refs: &[(&RefName, ObjectId)]) -> Result<(), StoreError> {
        match refs.is_empty() {
            true => Ok(()),
            false => self.git.delete_refs(&self.common_dir, refs, self.policy.durable),
        }
    }

    /// Waits until the present holder of `packed-refs.lock` has let go of it.
    pub(super) fn wait_for_packer(&self, name: &RefName) -> Result<(), StoreError> {
        let path = self.common_dir.join("packed-refs.lock");
        let Some(holder) = locks::identity(&path) else { return Ok(()) };
        let started = Instant::now();
        while locks::identity(&path) == Some(holder) {
            if started.elapsed() > self.policy.lock_wait {
                return Err(StoreError::LockHeld { name: name.clone(), age: locks::age_of(&path), path });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Returns the ref whose name is a folder of this name, if there is one.
    pub(crate) fn ref_above(&self, name: &RefName) -> Option<RefName> {
        name.folders().find(|above| !matches!(self.tip(above), Ok(None)))
    }

    pub(super) fn ref_below(&self, name: &RefName) -> Option<RefName> {
        let prefix = [name.as_bytes(), b"/"].concat();
        let scan = reading::scan(&self.common_dir, &prefix, self.hex_len).ok()?;
        scan.refs.into_iter().map(|(name, _)| name).chain(scan.unreadable.into_iter().map(|(n, _)| n)).next()
    }

    /// Creates the missing folders of a path, with the repository's modes, synced where durable.
    pub(crate) fn make_dirs(&self, folder: &Path) -> Result<(), StoreError> {
        self.create_dirs(folder, true)
    }

    /// Creates folders as [`FilesRefs::make_dirs`] does, without syncing: the caller adds what needs it to
    /// `unsynced`.
    pub(crate) fn make_dirs_unsynced(&self, folder: &Path) -> Result<(), StoreError> {
        self.create_dirs(folder, false)
    }

    fn create_dirs(&self, folder: &Path, sync: bool) -> Result<(), StoreError> {
        if !folder.is_dir() {
            is_there(&self.common_dir)?;
        }
        let made = |made: &Path| if sync { self.sync_folder_of(made) } else { Ok(()) };
        self.policy.shared.make_each(folder, &made)
    }

    /// Returns the setting that gives a new file or folder its mode.
    pub(crate) fn shared(&self) -> Shared {
        self.policy.shared
    }

    /// Syncs the folder that holds this path, where durable.
    pub(crate) fn sync_folder_of(&self, path: &Path) -> Result<(), StoreError> {
        path.parent().map_or(Ok(()), |folder| self.sync_folder(folder))
    }

    /// Syncs a folder, where durable.
    pub(super) fn sync_folder(&self, folder: &Path) -> Result<(), StoreError> {
        if !self.policy.durable {
            return Ok(());
        }
        for folder in folder.ancestors() {
            match sync(folder) {
                // `git pack-refs` packed the ref and removed the folder: that changed its parent, which is
                // synced.
                Err(StoreError::Io { source, .. }) if is_absent(&source) => {}
                synced => return synced,
            }
        }
        Ok(())
    }
}

/// Removes a folder that holds nothing but empty folders. What holds a file stays.
pub(crate) fn remove_empty_dirs(folder: &Path) {
    if let Ok(entries) = fs::read_dir(folder) {
        for entry in entries.filter_map(Result::ok) {
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                remove_empty_dirs(&entry.path());
            }
        }
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests;

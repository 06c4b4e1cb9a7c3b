//! Ref locks that can be told from others', and whose owner's death can be seen.
//!
//! A lock is a file in `$GIT_COMMON_DIR/aynig/locks/`, held under an exclusive `flock` for as long as
//! its owner lives, hard-linked to `<ref>.lock`, which is what Git looks at. So `<ref>.lock` is ours
//! exactly where it is the same file (device and inode) as one in that folder, and its owner is dead
//! exactly where that file's `flock` can be taken. Nothing else is ever removed: no lock of Git's or
//! of another tool, however old; it is reported with its path and age.
//!
//! Calling sequence: [`RefLock::take`], check the old value, then rename it over the ref or
//! [`RefLock::release`]; dropping releases. [`sweep_stale_locks`] cleans up after killed runners.
//! Where the file system has no hard links the lock is a plain one, and stays if its owner is killed.
//! Implements K42, K43.

use super::files::FilesRefs;
use super::reading::{is_absent, path_of};
use crate::store::config::edit;
use crate::store::git::children;
use crate::store::{RefName, StoreError, io_error};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How much longer than for others' a lock of ours is waited for whose owner lives.
const OURS_TIMES: u32 = 20;

/// A held `<ref>.lock`.
#[derive(Debug)]
pub struct RefLock {
    lock: PathBuf,
    twin: Option<Twin>,
    held: bool,
}

/// The file in `aynig/locks` that is the lock.
#[derive(Debug)]
pub(crate) struct Twin {
    path: PathBuf,
    file: Flock<File>,
    stays: bool,
}

impl Drop for Twin {
    fn drop(&mut self) {
        // Left behind, it is one file that the next sweep removes.
        if !self.stays {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if self.held {
            let _ = give_back(&self.lock, self.twin.as_mut());
        }
    }
}

/// Removes a held lock. One that can't be removed now is removed by the next sweep, which knows it by its twin.
pub(crate) fn give_back(lock: &Path, twin: Option<&mut Twin>) -> Result<(), StoreError> {
    let removed = remove(lock);
    if removed.is_err()
        && let Some(twin) = twin
    {
        twin.stays = true;
    }
    removed
}

/// The folder of the twins.
fn locks_dir(common_dir: &Path) -> PathBuf {
    common_dir.join("aynig/locks")
}

impl RefLock {
    /// Takes `<ref>.lock` with this content, trying for the store's lock wait.
    ///
    /// # Errors
    /// [`StoreError::LockHeld`] with the age of the lock where it stays held;
    /// [`StoreError::NameConflict`] where a folder of the name is a ref.
    pub fn take(refs: &FilesRefs, name: &RefName, content: &[u8]) -> Result<Self, StoreError> {
        let twin = Twin::create(refs, content)?;
        twin.sync_with_what_waits(refs)?;
        Self::link(refs, name, twin, content)
    }

    /// Takes `<ref>.lock` by linking this file, whose content is synced, to it; as [`RefLock::take`] does.
    pub(crate) fn link(
        refs: &FilesRefs,
        name: &RefName,
        twin: Twin,
        content: &[u8],
    ) -> Result<Self, StoreError> {
        let mut lock = path_of(refs.common_dir(), name)?.into_os_string();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let mut twin = Some(twin);
        let started = Instant::now();
        let mut pause = Duration::from_millis(1);
        // Another tool's lock, or one whose owner is just giving it back: that is told by how long it stays so.
        let mut others = None;
        loop {
            make_parents(refs, name, &lock)?;
            let error = match &twin {
                Some(twin) => fs::hard_link(&twin.path, &lock),
                None => create_plain(refs, &lock, content),
            };
            let error = match error {
                Ok(()) => return Ok(Self { lock, twin, held: true }),
                Err(error) => error,
            };
            let mut given_up = started.elapsed() >= refs.lock_wait();
            match error.kind() {
                ErrorKind::AlreadyExists => match owner_of(refs.common_dir(), &lock)? {
                    Owner::Gone => {
                        others = None;
                        continue;
                    }
                    // It is about to move the ref: on a busy machine that takes as long as it takes, and who
                    // gave up now would not hear that the race is lost.
                    Owner::Ours => {
                        given_up = started.elapsed() >= refs.lock_wait() * OURS_TIMES;
                        others = None;
                    }
                    Owner::Other => {
                        given_up = others.get_or_insert_with(Instant::now).elapsed() >= refs.lock_wait();
                    }
                },
                // A folder on the way was removed as empty by a process that deleted a ref.
                ErrorKind::NotFound => {}
                ErrorKind::Unsupported | ErrorKind::PermissionDenied | ErrorKind::CrossesDevices
                    if twin.is_some() =>
                {
                    twin = None;
                    continue;
                }
                _ => return Err(io_error("create", &lock)(error)),
            }
            if given_up {
                return Err(StoreError::LockHeld { name: name.clone(), age: age_of(&lock), path: lock });
            }
            std::thread::sleep(jittered(pause));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Makes the lock the ref itself. The folder is not synced yet.
    pub(crate) fn rename_over(mut self, target: &Path) -> Result<(), (Self, std::io::Error)> {
        match fs::rename(&self.lock, target) {
            Ok(()) => {
                self.held = false;
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }

    /// Gives the lock back, the ref unchanged.
    pub fn release(self) {}

    /// Where the lock is.
    pub fn path(&self) -> &Path {
        &self.lock
    }
}

impl Twin {
    /// One for a lock that never becomes the file that it locks.
    pub(crate) fn plain(common_dir: &Path) -> Result<Self, StoreError> {
        let folder = locks_dir(common_dir);
        fs::create_dir_all(&folder).map_err(io_error("create", &folder))?;
        Self::within(&folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// It outlives this value, as one of a dead owner.
    pub(crate) fn stay(&mut self) {
        self.stays = true;
    }

    /// One with this content, which is not synced yet.
    pub(crate) fn create(refs: &FilesRefs, content: &[u8]) -> Result<Self, StoreError> {
        let folder = locks_dir(refs.common_dir());
        refs.make_dirs(&folder)?;
        let mut twin = Self::within(&folder)?;
        refs.adjust_mode(&twin.path)?;
        twin.file.write_all(content).map_err(io_error("write", &twin.path))?;
        Ok(twin)
    }

    /// Syncs it, and what was written before it, where durable.
    pub(crate) fn sync_with_what_waits(&self, refs: &FilesRefs) -> Result<(), StoreError> {
        if !refs.durable() {
            return Ok(());
        }
        refs.unsynced.sync_with(&self.file).map_err(io_error("sync", &self.path))
    }

    fn within(folder: &Path) -> Result<Self, StoreError> {
        loop {
            let path = folder.join(uuid::Uuid::new_v4().to_string());
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)
                .map_err(io_error("create", &path))?;
            let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => file,
                // A sweep is looking at it this very moment, and will remove it.
                Err((_, Errno::EWOULDBLOCK)) => continue,
                Err((_, error)) => return Err(io_error("lock", &path)(error.into())),
            };
            let twin = Self { path, file, stays: false };
            // A sweep may have taken it for a dead one between its creation and the flock.
            let links = twin.file.metadata().map_err(io_error("read", &twin.path))?.nlink();
            if links > 0 {
                return Ok(twin);
            }
        }
    }
}

fn create_plain(refs: &FilesRefs, lock: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(lock)?;
    file.write_all(content)?;
    if refs.durable() {
        refs.unsynced.sync_with(&file)?;
    }
    Ok(())
}

/// Creates the folders of a lock. One that is a file is a ref in the way.
fn make_parents(refs: &FilesRefs, name: &RefName, lock: &Path) -> Result<(), StoreError> {
    let Some(parent) = lock.parent() else { return Ok(()) };
    match refs.make_dirs(parent) {
        Err(StoreError::Io { source, path, .. })
            if matches!(source.kind(), ErrorKind::NotADirectory | ErrorKind::AlreadyExists) =>
        {
            let other = refs
                .ref_above(name)
                .unwrap_or_else(|| RefName::new(path.into_os_string().into_encoded_bytes()));
            Err(StoreError::NameConflict { name: name.clone(), other })
        }
        other => other,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No process any more; trying again is worth it.
    Gone,
    /// A process of this tool, which lives.
    Ours,
    /// Git, or another tool.
    Other,
}

/// Says who holds a lock; one of ours whose owner is dead is removed.
pub(crate) fn owner_of(common_dir: &Path, lock: &Path) -> Result<Owner, StoreError> {
    let Some(identity) = identity(lock) else { return Ok(Owner::Gone) };
    for twin in twins(common_dir)? {
        if self::identity(&twin) != Some(identity) {
            continue;
        }
        let Some(_dead) = flock_of_the_dead(&twin) else { return Ok(Owner::Ours) };
        // No other sweep can be here now; the lock may still have been exchanged before.
        if self::identity(lock) == Some(identity) {
            remove(lock)?;
        }
        remove(&twin)?;
        return Ok(Owner::Gone);
    }
    // Where many wait, the lock is another's by the time that all are looked through.
    Ok(if self::identity(lock) == Some(identity) { Owner::Other } else { Owner::Gone })
}

/// Removes every twin whose owner is dead, with its lock. Returns the locks that were removed.
///
/// Cheap where no runner was killed: one listing of an empty folder.
pub fn sweep_stale_locks(common_dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut removed = Vec::new();
    let mut locks = None;
    for twin in twins(common_dir)? {
        let Some(dead) = flock_of_the_dead(&twin) else { continue };
        let linked = dead.metadata().is_ok_and(|m| m.nlink() > 1);
        if linked {
            let locks = match &mut locks {
                Some(locks) => locks,
                None => {
                    let refs = lock_files(common_dir)?;
                    locks.insert(refs.into_iter().chain(other_locks(common_dir)).collect::<Vec<_>>())
                }
            };
            // The second link may also be the ref itself: then only the twin is left to remove.
            for lock in locks.iter().filter(|lock| identity(lock).is_some_and(|i| Some(i) == identity(&twin)))
            {
                remove(lock)?;
                removed.push(lock.clone());
            }
        }
        remove(&twin)?;
    }
    Ok(removed)
}

/// A ref lock as found, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLock {
    /// The `.lock` file.
    pub path: PathBuf,
    /// Since when it is there.
    pub age: Duration,
    /// True where it is one of this tool's.
    pub ours: bool,
    /// True where it is, and its owner is dead: the next sweep removes it.
    pub stale: bool,
}

/// Every ref lock that is there now, `packed-refs.lock` and `HEAD.lock` included.
pub fn list_locks(common_dir: &Path) -> Result<Vec<FoundLock>, StoreError> {
    let twins = twins(common_dir)?;
    let ours: Vec<_> = twins.iter().filter_map(|twin| Some((identity(twin)?, twin))).collect();
    let mut paths = lock_files(common_dir)?;
    // Git's own are no business of ours, and checked elsewhere.
    let others = other_locks(common_dir).into_iter();
    paths.extend(others.filter(|path| identity(path).is_some_and(|i| ours.iter().any(|o| o.0 == i))));
    paths.extend(
        ["packed-refs.lock", "HEAD.lock"].map(|f| common_dir.join(f)).into_iter().filter(|p| p.exists()),
    );
    Ok(paths
        .into_iter()
        .filter_map(|path| {
            let identity = identity(&path)?;
            let twin = ours.iter().find(|(of, _)| *of == identity).map(|(_, twin)| twin);
            let of_a_child = twin.is_none() && children::left(common_dir, &path);
            let stale = of_a_child && age_of(&path) > children::OLD
                || twin.is_some_and(|twin| flock_of_the_dead(twin).is_some());
            Some(FoundLock { age: age_of(&path), ours: of_a_child || twin.is_some(), stale, path })
        })
        .collect())
}

fn twins(common_dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folder = locks_dir(common_dir);
    match fs::read_dir(&folder) {
        Ok(entries) => Ok(entries.filter_map(|e| Some(e.ok()?.path())).collect()),
        Err(e) if is_absent(&e) => Ok(Vec::new()),
        Err(e) => Err(io_error("list", &folder)(e)),
    }
}

fn lock_files(common_dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    lock_files_below(&common_dir.join("refs"))
}

/// Every `.lock` file below a folder.
pub(crate) fn lock_files_below(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if is_absent(&e) => continue,
            Err(e) => return Err(io_error("list", &folder)(e)),
        };
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "lock") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// The locks of all working trees' indexes, and of the configuration, that are there now.
fn other_locks(common_dir: &Path) -> Vec<PathBuf> {
    let others = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    let all = others.map(|entry| entry.path()).chain([common_dir.to_owned()]);
    let indexes = all.map(|dir| dir.join("index.lock"));
    let mut config = edit::path(common_dir).into_os_string();
    config.push(".lock");
    indexes.chain([PathBuf::from(config)]).filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// The twin's flock, where it can be taken: its owner is dead.
fn flock_of_the_dead(twin: &Path) -> Option<Flock<File>> {
    Flock::lock(File::open(twin).ok()?, FlockArg::LockExclusiveNonblock).ok()
}

pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

/// Since when a lock is there.
pub(crate) fn age(path: &Path) -> Duration {
    age_of(path)
}

pub(crate) fn age_of(path: &Path) -> Duration {
    let changed = fs::symlink_metadata(path).and_then(|m| m.modified()).ok();
    changed.and_then(|t| SystemTime::now().duration_since(t).ok()).unwrap_or_default()
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(io_error("remove", path)(e)),
    }
}

/// Between half and all of a pause, so that contenders do not march in step.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 512;
    pause / 2 + pause * random as u32 / 1024
}
/// True where a lock keeps this ref of that repository from being moved just now.
pub(crate) fn is_ref_locked(git_dir: &Path, name: &RefName) -> bool {
    let Ok(path) = path_of(git_dir, name) else { return false };
    let mut lock = path.into_os_string();
    lock.push(".lock");
    let all = [PathBuf::from(lock), git_dir.join("reftable/tables.list.lock")];
    all.iter().any(|path| path.symlink_metadata().is_ok())
}

/// Most bytes of a file that says where a Git directory is.
const POINTER_MAX: u64 = 16 << 10;

/// The Git directory that a push to this path comes to, by Git's order of looking.
pub(crate) fn git_dir_at(path: &Path) -> Option<PathBuf> {
    ["/.git", "", ".git/.git", ".git"].into_iter().find_map(|suffix| {
        let mut dir = path.as_os_str().to_owned();
        dir.push(suffix);
        let dir = PathBuf::from(dir);
        let dir = pointed_to(&dir).unwrap_or(dir);
        let has = |name: &str| dir.join(name).symlink_metadata().is_ok();
        (has("HEAD") && has("objects") && has("refs")).then_some(dir)
    })
}

/// Where a `.git` file leads.
fn pointed_to(file: &Path) -> Option<PathBuf> {
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut said = String::new();
    std::fs::File::open(file).ok()?.take(POINTER_MAX).read_to_string(&mut said).ok()?;
    Some(file.parent()?.join(said.strip_prefix("gitdir: ")?.trim_end()))
}

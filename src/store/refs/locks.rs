//! Ref locks that can be distinguished from those of other tools, and that show whether their owner is dead.
//!
//! A lock is a file in `$GIT_COMMON_DIR/aynig/locks/` (the owner file), held under an exclusive `flock` for as long
//! as its owner lives, and hard-linked to `<ref>.lock`, which is the file that Git looks for. So `<ref>.lock`
//! is ours exactly where it is the same file (device and inode) as one in that folder, and its owner is dead
//! exactly where that file's `flock` can be taken. No other lock is ever removed: one of Git's or of another
//! tool stays, however old it is, and is reported with its path and age.
//!
//! Calling sequence: [`RefLock::take`], check the old value, then rename the lock over the ref or
//! [`RefLock::release`] it; a dropped lock is released. [`sweep_stale_locks`] cleans up after killed runners.
//! Where the file system has no hard links the lock is a plain file, and stays if its owner is killed.
//! Implements K42, K43.

use super::files::FilesRefs;
use super::reading::{is_absent, path_of};
use crate::store::config::edit;
use crate::store::disk::Shared;
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

/// How many times longer a process waits for a lock of ours whose owner lives than for one of another tool.
const OURS_TIMES: u32 = 20;

/// Locks that refs share. `packed-refs.new` is one by its effect: where a killed `git` left it, no other one packs or
/// deletes a packed ref, and Git removes it never.
pub(crate) const SHARED: [&str; 3] = ["packed-refs.new", "packed-refs.lock", "HEAD.lock"];

/// A held `<ref>.lock`.
#[derive(Debug)]
pub struct RefLock {
    lock: PathBuf,
    owner_file: Option<OwnerFile>,
    held: bool,
}

/// The file in `aynig/locks` to which `<ref>.lock` is a second link.
#[derive(Debug)]
pub(crate) struct OwnerFile {
    path: PathBuf,
    file: Flock<File>,
    stays: bool,
}

impl Drop for OwnerFile {
    fn drop(&mut self) {
        // If this fails, one file stays, which the next sweep removes.
        if !self.stays {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if self.held {
            let _ = give_back(&self.lock, self.owner_file.as_mut());
        }
    }
}

/// Removes a held lock. If that fails, the owner file stays, so that the next sweep knows the lock as
/// this tool's and removes it.
pub(crate) fn give_back(lock: &Path, owner_file: Option<&mut OwnerFile>) -> Result<(), StoreError> {
    let removed = remove(lock);
    if removed.is_err()
        && let Some(owner_file) = owner_file
    {
        owner_file.stays = true;
    }
    removed
}

/// Returns the folder that holds the owner files.
fn locks_dir(common_dir: &Path) -> PathBuf {
    common_dir.join("aynig/locks")
}

impl RefLock {
    /// Takes `<ref>.lock` with this content, and keeps trying for as long as the store's lock wait.
    ///
    /// # Errors
    /// [`StoreError::LockHeld`] with the age of the lock where it stays held;
    /// [`StoreError::NameConflict`] where a folder of the name is a ref.
    pub fn take(refs: &FilesRefs, name: &RefName, content: &[u8]) -> Result<Self, StoreError> {
        let owner_file = OwnerFile::create(refs, content)?;
        owner_file.sync_with_what_waits(refs)?;
        Self::link(refs, name, owner_file, content)
    }

    /// Takes `<ref>.lock` as [`RefLock::take`] does, by linking an owner file to it whose content is already synced.
    pub(crate) fn link(
        refs: &FilesRefs,
        name: &RefName,
        owner_file: OwnerFile,
        content: &[u8],
    ) -> Result<Self, StoreError> {
        let mut lock = path_of(refs.common_dir(), name)?.into_os_string();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let mut owner_file = Some(owner_file);
        let started = Instant::now();
        let mut pause = Duration::from_millis(1);
        // Since when the lock has looked like another tool's. One of ours looks so too while its owner gives
        // it back, but only for a moment.
        let mut others = None;
        loop {
            make_parents(refs, name, &lock)?;
            let error = match &owner_file {
                Some(owner_file) => fs::hard_link(&owner_file.path, &lock),
                None => create_plain(refs, &lock, content),
            };
            let error = match error {
                Ok(()) => return Ok(Self { lock, owner_file, held: true }),
                Err(error) => error,
            };
            let mut given_up = started.elapsed() >= refs.lock_wait();
            match error.kind() {
                ErrorKind::AlreadyExists => match owner_of(refs.common_dir(), &lock)? {
                    Owner::Gone => {
                        others = None;
                        continue;
                    }
                    // The owner is about to move the ref. On a busy machine that may take long, and a process
                    // that gave up early would not find out that it lost the race.
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
                    if owner_file.is_some() =>
                {
                    owner_file = None;
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

    /// Renames the lock over the ref, so that it becomes the ref's file. The folder is not synced yet. A
    /// failed rename returns the lock, which is still held.
    pub(crate) fn rename_over(mut self, target: &Path) -> Result<(), (Self, std::io::Error)> {
        match fs::rename(&self.lock, target) {
            Ok(()) => {
                self.held = false;
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }

    /// Gives the lock back and leaves the ref unchanged.
    pub fn release(self) {}

    /// Returns the path of the lock.
    pub fn path(&self) -> &Path {
        &self.lock
    }
}

impl OwnerFile {
    /// Creates an owner file for a lock that is never renamed over the file that it locks.
    pub(crate) fn plain(common_dir: &Path, shared: Shared) -> Result<Self, StoreError> {
        let folder = locks_dir(common_dir);
        shared.make(&folder)?;
        Self::within(&folder, shared)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Has the owner file stay when this value is dropped. The next sweep then takes it for a dead owner's.
    pub(crate) fn stay(&mut self) {
        self.stays = true;
    }

    /// Creates an owner file with this content, which is not synced yet.
    pub(crate) fn create(refs: &FilesRefs, content: &[u8]) -> Result<Self, StoreError> {
        let folder = locks_dir(refs.common_dir());
        refs.make_dirs(&folder)?;
        let mut owner_file = Self::within(&folder, refs.shared())?;
        owner_file.file.write_all(content).map_err(io_error("write", &owner_file.path))?;
        Ok(owner_file)
    }

    /// Syncs the owner file, and everything that was written before it and is not synced yet, where durable.
    pub(crate) fn sync_with_what_waits(&self, refs: &FilesRefs) -> Result<(), StoreError> {
        if !refs.durable() {
            return Ok(());
        }
        refs.unsynced.sync_with(&self.file).map_err(io_error("sync", &self.path))
    }

    fn within(folder: &Path, shared: Shared) -> Result<Self, StoreError> {
        loop {
            let path = folder.join(uuid::Uuid::new_v4().to_string());
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)
                .map_err(io_error("create", &path))?;
            let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => file,
                // A sweep holds the new file's `flock` at this very moment, and will remove the file.
                Err((_, Errno::EWOULDBLOCK)) => continue,
                Err((_, error)) => return Err(io_error("lock", &path)(error.into())),
            };
            let owner_file = Self { path, file, stays: false };
            shared.give(&owner_file.path);
            // Between the file's creation and its `flock` a sweep may have taken it for a dead owner's, and
            // removed it.
            let links = owner_file.file.metadata().map_err(io_error("read", &owner_file.path))?.nlink();
            if links > 0 {
                return Ok(owner_file);
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

/// Creates the folders that a lock is in. A file in the place of one is a ref that conflicts with the name.
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
    /// No process holds the lock any more: another try may succeed.
    Gone,
    /// A process of this tool that is alive.
    Ours,
    /// Git, or another tool.
    Other,
}

/// Returns who holds a lock. A lock of ours whose owner is dead is removed.
pub(crate) fn owner_of(common_dir: &Path, lock: &Path) -> Result<Owner, StoreError> {
    let Some(identity) = identity(lock) else { return Ok(Owner::Gone) };
    for owner_file in owner_files(common_dir)? {
        if self::identity(&owner_file) != Some(identity) {
            continue;
        }
        let Some(_dead) = flock_of_the_dead(&owner_file) else { return Ok(Owner::Ours) };
        // No other process removes this pair while the owner file's `flock` is held. The lock may have been
        // replaced before that, so it is compared once more.
        if self::identity(lock) == Some(identity) {
            remove(lock)?;
        }
        remove(&owner_file)?;
        return Ok(Owner::Gone);
    }
    // Where many processes wait, the lock may have a new owner by the time that all owner files are compared.
    Ok(if self::identity(lock) == Some(identity) { Owner::Other } else { Owner::Gone })
}

/// Removes every owner file whose owner is dead, with its lock. Returns the locks that were removed.
///
/// Cheap where no runner was killed: one listing of an empty folder.
pub fn sweep_stale_locks(common_dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut removed = Vec::new();
    let mut locks = None;
    for owner_file in owner_files(common_dir)? {
        let Some(dead) = flock_of_the_dead(&owner_file) else { continue };
        let linked = dead.metadata().is_ok_and(|m| m.nlink() > 1);
        if linked {
            let locks = match &mut locks {
                Some(locks) => locks,
                None => {
                    let refs = lock_files(common_dir)?;
                    locks.insert(refs.into_iter().chain(other_locks(common_dir)).collect::<Vec<_>>())
                }
            };
            // The second link may also be the ref itself: then only the owner file is left to remove.
            for lock in
                locks.iter().filter(|lock| identity(lock).is_some_and(|i| Some(i) == identity(&owner_file)))
            {
                remove(lock)?;
                removed.push(lock.clone());
            }
        }
        remove(&owner_file)?;
    }
    Ok(removed)
}

/// A lock that was found, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLock {
    /// The `.lock` file.
    pub path: PathBuf,
    /// How long ago the lock file was last modified.
    pub age: Duration,
    /// True where the lock is one of this tool's, or of a `git` child that this tool started.
    pub ours: bool,
    /// True where the lock is one of those and its owner is dead: the next sweep removes it.
    pub stale: bool,
}

/// Returns every ref lock that exists now, those that refs share included, and our own locks of indexes and of the
/// configuration.
pub fn list_locks(common_dir: &Path) -> Result<Vec<FoundLock>, StoreError> {
    let owner_files = owner_files(common_dir)?;
    let ours: Vec<_> =
        owner_files.iter().filter_map(|owner_file| Some((identity(owner_file)?, owner_file))).collect();
    let mut paths = lock_files(common_dir)?;
    // Of the locks of indexes and of the configuration only ours are listed: Git's own are checked elsewhere.
    let others = other_locks(common_dir).into_iter();
    paths.extend(others.filter(|path| identity(path).is_some_and(|i| ours.iter().any(|o| o.0 == i))));
    paths.extend(
        SHARED.map(|name| common_dir.join(name)).into_iter().filter(|path| path.symlink_metadata().is_ok()),
    );
    Ok(paths
        .into_iter()
        .filter_map(|path| {
            let identity = identity(&path)?;
            let owner_file = ours.iter().find(|(of, _)| *of == identity).map(|(_, owner_file)| owner_file);
            let of_a_child = owner_file.is_none() && children::left(common_dir, &path);
            let stale = of_a_child && age_of(&path) > children::OLD
                || owner_file.is_some_and(|owner_file| flock_of_the_dead(owner_file).is_some());
            Some(FoundLock { age: age_of(&path), ours: of_a_child || owner_file.is_some(), stale, path })
        })
        .collect())
}

fn owner_files(common_dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
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

/// Returns every `.lock` file below a folder.
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

/// Returns the existing locks of all working trees' indexes, and of the configuration.
fn other_locks(common_dir: &Path) -> Vec<PathBuf> {
    let others = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    let all = others.map(|entry| entry.path()).chain([common_dir.to_owned()]);
    let indexes = all.map(|dir| dir.join("index.lock"));
    let mut config = edit::path(common_dir).into_os_string();
    config.push(".lock");
    indexes.chain([PathBuf::from(config)]).filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Takes the owner file's `flock`, which succeeds only where its owner is dead; `None` where that fails.
fn flock_of_the_dead(owner_file: &Path) -> Option<Flock<File>> {
    Flock::lock(File::open(owner_file).ok()?, FlockArg::LockExclusiveNonblock).ok()
}

pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

/// Returns how long ago a lock file was last modified; zero where it is gone.
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

/// Returns between half and all of a pause, at random, so that contenders do not retry in step.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 512;
    pause / 2 + pause * random as u32 / 1024
}
/// True where a lock keeps this ref of that repository from being moved at the moment.
pub(crate) fn is_ref_locked(git_dir: &Path, name: &RefName) -> bool {
    let Ok(path) = path_of(git_dir, name) else { return false };
    let mut lock = path.into_os_string();
    lock.push(".lock");
    let all = [PathBuf::from(lock), git_dir.join("reftable/tables.list.lock")];
    all.iter().any(|path| path.symlink_metadata().is_ok())
}

/// Most bytes of a `.git` file, which says where the Git directory is.
const POINTER_MAX: u64 = 16 << 10;

/// Returns the Git directory that receives a push to this path, by the order in which Git looks for it.
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

/// Returns the path that a `.git` file leads to; `None` where `file` is not such a file.
fn pointed_to(file: &Path) -> Option<PathBuf> {
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut said = String::new();
    std::fs::File::open(file).ok()?.take(POINTER_MAX).read_to_string(&mut said).ok()?;
    Some(file.parent()?.join(said.strip_prefix("gitdir: ")?.trim_end()))
}

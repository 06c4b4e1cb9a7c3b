//! Slots: the detached worktrees in which commands run, pooled and locked.
//!
//! A slot is claimed by an exclusive `flock`, which the system releases when its holder dies. A second
//! `flock` (the `hold`) is held as long as any process lives that may write to the slot: by the guardian of a
//! run, and by a `git` child that fills the slot, as that child may outlive its runner. A record beside the
//! locks says which run the slot was last filled for, so that no work in it is ever overwritten unseen.
//! Calling sequence: [`Pool::lock`], look at [`Slot::record`], [`Slot::fill`], run, [`Slot::harvest`].
//! Implements K14, K57, K58.

pub(crate) mod admin;
pub(crate) mod affinity;
pub(crate) mod attributes;
mod bomb;
pub(crate) mod closing;
pub(crate) mod fill;
pub(crate) mod find;
pub(crate) mod harvest;
pub(crate) mod keep;
mod leads;
pub(crate) mod modules;
mod nested;
pub(crate) mod paths;
pub(crate) mod place;
mod record;
pub(crate) mod scan;
mod tame;
pub(crate) mod turns;
mod view;

use crate::store::disk::{Shared, is_made_by_another, is_of_another_account};
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error};
use crate::supervisor::beneath::{Kind, Root};
use crate::supervisor::confine::Confinement;
use crate::supervisor::hold;
use affinity::{LastRun, Work};
pub(crate) use leads::Leads;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg};
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
pub(crate) use place::is_slot;
use place::{is_foreign, number_of};
use record::read_record;
pub(crate) use record::{Occupant, Record};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The prefix of the names that the administrative folders of slots have under `worktrees/` in the Git
/// directory.
pub(crate) const ADMIN_PREFIX: &str = "aynig-slot-";

/// The slots of one repository.
pub struct Pool<'r> {
    repo: &'r Repository,
    /// The folder with the slots' worktrees.
    root: PathBuf,
    /// The folder with the slots' locks and records.
    notes: PathBuf,
    size: usize,
}

/// A slot that this process holds.
pub(crate) struct Slot {
    number: usize,
    /// Where the slot's worktree is. This is not `home` while the slot holds work of a run that another
    /// environment placed elsewhere.
    dir: PathBuf,
    /// Where the slot's worktree belongs.
    home: PathBuf,
    notes: PathBuf,
    admin: PathBuf,
    record: Record,
    /// The runner's index copy, once it was read: it is needed to verify a slot before a run, and to read it
    /// after.
    index: std::cell::OnceCell<gix::index::File>,
    /// What identifies the index file that we put in place. It includes the change time, which can't be
    /// forged.
    placed: Option<FileId>,
    /// Set by another thread once the slot need not be filled any more.
    stop: Arc<AtomicBool>,
    /// The limits on what Git may read while it stages the slot's content; `None` for no limits.
    reads: Option<Confinement>,
    shared: Shared,
    lock: Option<Flock<File>>,
}

/// What came of the attempt to lock a slot.
pub(crate) enum Locked {
    /// This process holds the slot now.
    Taken(Box<Slot>),
    /// Another process holds it.
    InUse,
    /// A file of the slot's locks is another account's, and this one may not open it.
    Denied(StoreError),
}

/// The prefix of the names of worktrees that were set aside in the folder of slots.
pub(crate) const SET_ASIDE: &str = ".aside-";

/// Identifies one state of a file: any other content that was ever at its path has another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl FileId {
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let meta = path.symlink_metadata().ok().filter(|m| m.is_file())?;
        Some(Self { inode: meta.ino(), size: meta.size(), changed: (meta.ctime(), meta.ctime_nsec()) })
    }
}

fn open_lock(path: &Path) -> Result<File, StoreError> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits());
    options.open(path).map_err(io_error("open", path))
}

impl<'r> Pool<'r> {
    /// Returns the pool of at most `size` slots whose worktrees are below `root`. Makes nothing.
    pub(crate) fn new(repo: &'r Repository, root: PathBuf, size: usize) -> Self {
        Self { repo, root, notes: repo.aynig_dir().join("slots"), size: size.max(1) }
    }

    /// Makes the folder of the slots' locks and records, without which no slot can be locked.
    pub(crate) fn make(&self) -> Result<(), StoreError> {
        self.repo.make(&self.notes)?;
        self.repo.share_folders();
        Ok(())
    }

    /// Changes the number of slots to `size`; true where that is more than before.
    pub(crate) fn resize(&mut self, size: usize) -> bool {
        let before = std::mem::replace(&mut self.size, size.max(1));
        self.size > before
    }

    /// Returns the numbers of the slots, the best one for this work first, without those that the user's own
    /// worktrees have.
    pub(crate) fn order(&self, work: &Work<'_>) -> Vec<usize> {
        let mut numbers = affinity::ordered(self.numbers(), work, |n| read_record(&self.notes, n));
        if self.repo.shared != Shared::Umask {
            // One of another account's has to be given up whole, and can't even be removed.
            numbers.sort_by_cached_key(|n| {
                [self.home(*n), self.admin(*n)].iter().any(|p| is_made_by_another(p))
            });
        }
        numbers
    }

    /// Returns the numbers of the slots in ascending order, without those that the user's own worktrees have.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        (0..).filter(|n| !is_foreign(&self.admin(*n), &self.home(*n))).take(self.size).collect()
    }

    /// True where a process has ever taken the slot of this number.
    pub(crate) fn was_used(&self, number: usize) -> bool {
        self.lock_path(number).symlink_metadata().is_ok()
    }

    pub(crate) fn lock_path(&self, number: usize) -> PathBuf {
        self.notes.join(format!("{number}.lock"))
    }

    /// Returns the administrative folder of a slot, by which Git knows the worktree.
    pub(crate) fn admin(&self, number: usize) -> PathBuf {
        self.repo.common_dir.join("worktrees").join(format!("{ADMIN_PREFIX}{number}"))
    }

    fn home(&self, number: usize) -> PathBuf {
        self.root.join(number.to_string())
    }

    /// Returns the numbers of all slots that were ever taken, whatever size the pool has now.
    pub(crate) fn known(&self) -> Vec<usize> {
        let Ok(entries) = std::fs::read_dir(&self.notes) else { return Vec::new() };
        let names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
        let mut numbers: Vec<usize> =
            names.filter_map(|n| n.strip_suffix(".lock").and_then(|n| n.parse().ok())).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns the numbers of [`Pool::known`], and those of slots that are only in Git's own list of
    /// worktrees.
    pub(crate) fn registered(&self) -> Vec<usize> {
        let mut numbers = self.known();
        if let Ok(entries) = std::fs::read_dir(self.repo.common_dir.join("worktrees")) {
            let numbered = entries.flatten().filter_map(|e| number_of(&e.path()));
            numbers.extend(numbered.filter(|n| !is_foreign(&self.admin(*n), &self.home(*n))));
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Locks the slot of this number.
    pub(crate) fn lock(&self, number: usize) -> Result<Locked, StoreError> {
        let path = self.lock_path(number);
        let denied = |path: &Path, error| match is_of_another_account(path) {
            true => Ok(Locked::Denied(error)),
            false => Err(error),
        };
        let file = match open_lock(&path) {
            Ok(file) => file,
            Err(error) => return denied(&path, error),
        };
        self.repo.share(&path);
        let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => return Ok(Locked::InUse),
            Err((_, errno)) => return Err(io_error("lock", &path)(errno.into())),
        };
        let slot = Slot { lock: Some(lock), ..self.borrow(number) };
        if self.repo.shared != Shared::Umask {
            // The guardian does not know how to share a file with other accounts, so the file is made for it.
            let hold = slot.hold_path();
            if let Err(error) = open_lock(&hold) {
                return denied(&hold, error);
            }
            self.repo.share(&hold);
        }
        Ok(Locked::Taken(Box::new(slot)))
    }

    /// Returns the slot of this number without its lock, only to look at it, from inside the run that holds
    /// it.
    pub(crate) fn borrow(&self, number: usize) -> Slot {
        let (home, admin) = (self.home(number), self.admin(number));
        let record = read_record(&self.notes, number);
        let elsewhere =
            record.place.as_ref().and_then(|place| place.elsewhere(&home, &admin, record.run.is_some()));
        Slot {
            number,
            dir: elsewhere.unwrap_or_else(|| home.clone()),
            home,
            notes: self.notes.clone(),
            admin,
            record,
            index: std::cell::OnceCell::new(),
            placed: None,
            stop: Arc::default(),
            reads: None,
            shared: self.repo.shared,
            lock: None,
        }
    }

    /// Reads the record of a slot without locking it.
    pub(crate) fn peek(&self, number: usize) -> Record {
        read_record(&self.notes, number)
    }
}

/// In [`Record::made`]: the folder was gone when its run was over, or was put aside.
const GONE: u64 = 0;
/// In [`Record::made`]: the file system does not say when a folder was made.
const UNKNOWN: u64 = 1;

/// Returns when a folder was made, in nanoseconds since 1970, or [`UNKNOWN`].
fn made(meta: &std::fs::Metadata) -> u64 {
    let since = meta.created().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(UNKNOWN)
}

impl Slot {
    /// Limits what Git may read of the machine while it stages the slot's content: the command may still be
    /// at work, and put a link in the place of a folder that Git has just listed.
    pub(crate) fn stage_within(&mut self, reads: Option<Confinement>) {
        self.reads = reads;
    }

    /// Returns the slot's administrative folder, by which Git knows the worktree: its registration.
    pub(crate) fn admin_dir(&self) -> &Path {
        &self.admin
    }
    pub(crate) fn number(&self) -> usize {
        self.number
    }
    /// Returns the slot's worktree, in which the command runs.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }
    /// Returns the flag that ends the filling of the slot, once it is set.
    pub(crate) fn stopper(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn unless_stopped(&self) -> Result<(), StoreError> {
        match self.is_stopped() {
            true => Err(StoreError::Gix { what: "fill the worktree", message: "it was stopped".to_owned() }),
            false => Ok(()),
        }
    }

    /// True where the worktree is a folder, and not a link that a command put in its place.
    fn is_folder(&self) -> bool {
        self.is_there().unwrap_or(false)
    }

    /// As [`Slot::is_folder`]; an error where this process can't look there: then nothing is known of what the
    /// folder holds.
    pub(crate) fn is_there(&self) -> Result<bool, StoreError> {
        match self.dir.symlink_metadata() {
            Ok(meta) => Ok(meta.is_dir()),
            Err(error) if place::is_gone(&error) => Ok(false),
            Err(error) => Err(io_error("look at", &self.dir)(error)),
        }
    }

    /// True where the slot's worktree, its registration or its record exists; the record of a worktree that is
    /// gone does not count.
    pub(crate) fn exists(&self) -> bool {
        let has_record = || self.record.made != Some(GONE) && self.record_path().exists();
        self.is_registered() || self.dir.symlink_metadata().is_ok() || has_record()
    }
    /// Returns the file whose lock the guardian holds.
    pub(crate) fn hold_path(&self) -> PathBuf {
        self.notes.join(format!("{}.hold", self.number))
    }
    /// Returns the file with the slot's record.
    pub(crate) fn record_path(&self) -> PathBuf {
        self.notes.join(format!("{}.json", self.number))
    }
    /// Returns the path of the runner's own copy of the index, made when the slot was filled.
    fn index_copy(&self) -> PathBuf {
        self.notes.join(format!("{}.index", self.number))
    }

    /// Returns the runner's own copy of the index, which is read only once.
    fn index(&self, hash: gix::hash::Kind) -> Result<&gix::index::File, StoreError> {
        if self.index.get().is_none() {
            let _ = self.index.set(scan::read_index(&self.index_copy(), hash)?);
        }
        self.index.get().ok_or(StoreError::Gix { what: "read the index", message: "it is gone".into() })
    }

    /// Compares the worktree with what it was filled with. A fifo in the place of a `.gitignore` is removed:
    /// no commit can hold it, and Git would wait for it for ever.
    fn scan(&self, hash: gix::hash::Kind) -> Result<scan::Scan, StoreError> {
        let record = &self.record;
        let when = (record.verified_at, record.folder_mode);
        let found = scan::scan(&self.dir, self.index(hash)?, hash, when, &record.beside);
        if !found.traps.is_empty()
            && let Ok(slot) = Root::open(&self.dir)
        {
            for trap in found.traps.iter().map(|trap| Path::new(std::ffi::OsStr::from_bytes(trap))) {
                // This follows no link that a command put in the place of a folder meanwhile.
                if matches!(slot.kind(trap), Ok(Some(Kind::Other))) {
                    let _ = slot.remove(trap);
                }
            }
        }
        Ok(found)
    }

    /// True while a process of an earlier run lives in the slot.
    pub(crate) fn is_inhabited(&self) -> Result<bool, StoreError> {
        let path = self.hold_path();
        hold::is_taken(&path).map_err(io_error("lock", &path))
    }

    /// Takes the hold and passes it to `child`, which starts a process that writes to the slot and keeps the
    /// hold. The argument is `None` where a process of the run has the hold.
    fn held<T>(&self, child: impl FnOnce(Option<&File>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let path = self.hold_path();
        let hold = match hold::take(&path) {
            Ok(hold) => Some(hold),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            Err(error) => return Err(io_error("lock", &path)(error)),
        };
        let result = child(hold.as_ref());
        // A child that another thread is just starting may have a copy of the file for a moment, so it is
        // unlocked and not only closed.
        let _ = hold.map(|hold| hold.unlock());
        result
    }

    /// Notes whose work is in the slot from now on: that of `run`, or of no run.
    pub(crate) fn occupy(&mut self, run: Option<Occupant>) -> Result<(), StoreError> {
        if self.record.run != run {
            let begins = run
                .as_ref()
                .filter(|run| self.record.last.as_ref().is_none_or(|last| last.run_id != run.run_id));
            if let Some(run) = begins {
                self.record.last = Some(LastRun::of(run));
            }
            if run.is_none() && self.record.made.is_some() && self.is_gone() {
                self.record.made = Some(GONE);
            }
            self.record.run = run;
            self.save()?;
        }
        Ok(())
    }

    fn is_gone(&self) -> bool {
        self.dir.symlink_metadata().is_err_and(|error| place::is_gone(&error))
    }

    /// True where the folder is not the one in which the slot was filled last. Such a folder was gone for a while, as
    /// one on a disk that is not mounted is, and may hold the work of a run that was declared over meanwhile.
    pub(crate) fn is_another(&self) -> bool {
        let Some(noted) = self.record.made.filter(|noted| *noted != UNKNOWN) else { return false };
        let found = self.dir.symlink_metadata().ok().filter(|meta| meta.is_dir()).map(|meta| made(&meta));
        found.is_some_and(|found| found != noted && (found != UNKNOWN || noted == GONE))
    }

    fn save(&self) -> Result<(), StoreError> {
        let path = self.record_path();
        let json =
            serde_json::to_vec(&self.record).map_err(|error| io_error("write", &path)(error.into()))?;
        crate::store::write_aside(&path, &json, self.shared)
    }

    /// Removes the slot's worktree, registration and notes. The lock file stays, and so does the record of a
    /// worktree that is gone: it may come back.
    pub(crate) fn remove(mut self, repo: &Repository) -> Result<(), StoreError> {
        let parent = self.dir.parent().map(Path::to_owned);
        self.retire(repo)?;
        // The repository may have been elsewhere when the slot was made. A folder with other slots stays.
        if let Some(parent) = parent {
            let _ = std::fs::remove_dir(parent);
        }
        if self.record.keeps.is_some() {
            let _ = self.drop_aside();
        }
        let _ = std::fs::remove_file(self.hold_path());
        if self.record.made != Some(GONE) {
            let _ = std::fs::remove_file(self.record_path());
        }
        Ok(())
    }

    /// Moves the worktree aside as it is, whatever it holds, and returns its new path. This is for content
    /// that can be kept in no other way: so the slot can be used again.
    pub(crate) fn set_aside(&mut self, run_id: &str) -> Result<PathBuf, StoreError> {
        let mut aside = self.dir.with_file_name(format!("{SET_ASIDE}{run_id}"));
        if aside.symlink_metadata().is_ok() {
            aside = self.dir.with_file_name(format!("{SET_ASIDE}{}", uuid::Uuid::new_v4()));
        }
        // This needs no rights on the folder itself, as it stays below the same parent.
        std::fs::rename(&self.dir, &aside).map_err(io_error("move aside", &self.dir))?;
        // Its age counts from now, whatever time its command gave it. And it is no worktree any more, since
        // the next run gets the registration.
        let _ = std::fs::remove_file(aside.join(".git"));
        let now = TimeSpec::UTIME_NOW;
        let _ = utimensat(AT_FDCWD, &aside, &now, &now, UtimensatFlags::NoFollowSymlink);
        self.forget_filled();
        self.record.made = Some(GONE);
        self.save()?;
        Ok(aside)
    }

    /// Forgets what the slot was filled with.
    fn forget_filled(&mut self) {
        self.record.tree = None;
        self.index = std::cell::OnceCell::new();
        self.placed = None;
        let _ = std::fs::remove_file(self.index_copy());
    }

    /// Renames what is at a path, beside it, to a name that `gc` knows as a leftover, and returns the new path.
    fn moved_out(&self, path: &Path) -> Result<PathBuf, StoreError> {
        let aside = path.with_file_name(format!(".retired-{}", uuid::Uuid::new_v4()));
        std::fs::rename(path, &aside).map_err(io_error("move aside", path))?;
        Ok(aside)
    }

    /// Gives up the worktree: moves it out of the way, and deletes it as far as possible.
    pub(super) fn retire(&mut self, repo: &Repository) -> Result<(), StoreError> {
        if self.is_registered() {
            self.drop_modules(repo)?;
        }
        self.forget_filled();
        if self.dir.symlink_metadata().is_ok() {
            let aside = self.moved_out(&self.dir)?;
            self.record.made = None;
            // A run that stopped the filling does not wait for the removal either: then `gc` removes it.
            if !self.is_stopped() {
                let _ = crate::store::remove_tree(&aside);
            }
        }
        if self.is_registered() {
            // Where a command put a link there, the link itself is removed, not what it leads to.
            let _ = crate::store::remove_tree(&self.admin);
        }
        self.save()
    }
}

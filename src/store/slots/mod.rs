//! Slots: the detached worktrees in which commands run, pooled and locked.
//!
//! A slot is claimed by an exclusive `flock` that the system drops when its holder dies. A second one (`hold`)
//! is held as long as any process lives that may write to it: by the guardian of a run, and by a `git` child
//! that fills it, which may be slower than the death of its runner. A record beside the
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
pub(crate) mod scan;
mod tame;
pub(crate) mod turns;
mod view;

use crate::protocol::id::ObjectId;
use crate::store::refs::files::Shared;
use crate::store::repository::Repository;
use crate::store::{RefName, StoreError, io_error};
use crate::supervisor::beneath::{Kind, Root};
use crate::supervisor::confine::Confinement;
use crate::supervisor::hold;
use affinity::{LastRun, Work};
pub(crate) use leads::Leads;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg};
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
pub(crate) use place::is_slot;
use place::{Place, is_foreign, number_of};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How the administrative folders of slots begin under `worktrees/` in the Git directory.
pub(crate) const ADMIN_PREFIX: &str = "aynig-slot-";

/// No note of a slot is longer, in bytes.
const RECORD_MAX: u64 = 1 << 20;

/// What is remembered of a slot between processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The tree that the index copy describes, in hex.
    pub(crate) tree: Option<String>,
    /// When the files were last known to be that tree, in nanoseconds since 1970.
    pub(crate) verified_at: u64,
    /// The permissions that its folders were made with.
    #[serde(default)]
    pub(crate) folder_mode: Option<u32>,
    /// Where its folder is; records of earlier versions do not say.
    #[serde(default)]
    pub(crate) place: Option<Place>,
    /// The run whose work may still be in the slot.
    pub(crate) run: Option<Occupant>,
    /// The run that it was taken for last; records of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<LastRun>,
    /// Whose files are kept in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keeps: Option<keep::Keeps>,
    /// What was in it beside the commit when it was filled; folders end in a slash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) beside: Vec<Vec<u8>>,
    /// What of that is never its run's work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) included: Vec<Vec<u8>>,
    /// Why the note that is there could not be read: whose work is in the slot is not known.
    #[serde(skip)]
    pub(crate) unreadable: Option<Unreadable>,
}

/// A note of a slot that is there and can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// A run in a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Occupant {
    pub(crate) run_id: String,
    /// The full name of its branch, for readers.
    pub(crate) branch: String,
    /// The name's bytes, where they are no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch_bytes: Option<Vec<u8>>,
    /// The remote whose branch that is; `None`: the local one.
    #[serde(default)]
    pub(crate) remote: Option<String>,
    /// The lease commit that the slot was filled with, in hex.
    pub(crate) lease: String,
    /// Set once the command has ended without a declaration, so that the lease lives on (K21).
    pub(crate) lingering: bool,
    /// The guardian's process, while the hold is taken.
    pub(crate) guardian: Option<u32>,
    /// The outcome in hex, once a process that outlived the command has written it.
    #[serde(default)]
    pub(crate) outcome: Option<String>,
}

impl Occupant {
    /// A run that begins in a slot which was filled with this lease.
    pub(crate) fn new(run_id: &str, branch: &RefName, remote: Option<String>, lease: ObjectId) -> Self {
        let raw = branch.as_bytes();
        Self {
            run_id: run_id.to_owned(),
            branch: String::from_utf8_lossy(raw).into_owned(),
            branch_bytes: std::str::from_utf8(raw).is_err().then(|| raw.to_vec()),
            remote,
            lease: lease.to_string(),
            lingering: false,
            guardian: None,
            outcome: None,
        }
    }
    /// The commit that the slot was filled with.
    pub(crate) fn lease_id(&self) -> Option<ObjectId> {
        self.lease.parse().ok()
    }
    /// The outcome that was written from inside the slot.
    pub(crate) fn outcome_id(&self) -> Option<ObjectId> {
        self.outcome.as_ref().and_then(|id| id.parse().ok())
    }
    pub(crate) fn branch_name(&self) -> RefName {
        RefName::new(self.branch_bytes.as_deref().unwrap_or(self.branch.as_bytes()))
    }
}

/// The slots of one repository.
pub struct Pool<'r> {
    repo: &'r Repository,
    /// Where the worktrees live.
    root: PathBuf,
    /// Where locks and records live.
    notes: PathBuf,
    size: usize,
}

/// A slot that this process holds.
pub(crate) struct Slot {
    number: usize,
    /// Where it is: with work of a run from another environment in it, not yet at `home`.
    dir: PathBuf,
    /// Where it is to be.
    home: PathBuf,
    notes: PathBuf,
    admin: PathBuf,
    record: Record,
    /// The runner's index copy, once it was read: a slot is verified before a run and read after it.
    index: std::cell::OnceCell<gix::index::File>,
    /// What the index file was when we put it there; a change time can't be forged.
    placed: Option<FileId>,
    /// Set by the thread that no longer wants it to be filled.
    stop: Arc<AtomicBool>,
    /// What Git may read while it stages what is in the slot, where that is not all.
    reads: Option<Confinement>,
    shared: Shared,
    lock: Option<Flock<File>>,
}

/// How the names begin of what was set aside, in the folder of slots.
pub(crate) const SET_ASIDE: &str = ".aside-";

/// Tells a file from any other content that was ever at its place.
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
    /// The pool of at most `size` slots whose worktrees live below `root`.
    pub(crate) fn new(repo: &'r Repository, root: PathBuf, size: usize) -> Result<Self, StoreError> {
        let notes = repo.aynig_dir().join("slots");
        std::fs::create_dir_all(&notes).map_err(io_error("create", &notes))?;
        repo.share_folders();
        Ok(Self { repo, root, notes, size: size.max(1) })
    }

    /// Has so many slots from now on; true where those are more than there were.
    pub(crate) fn resize(&mut self, size: usize) -> bool {
        let before = std::mem::replace(&mut self.size, size.max(1));
        self.size > before
    }

    /// The numbers of the slots, the best for this work first, those that are the user's left out.
    pub(crate) fn order(&self, work: &Work<'_>) -> Vec<usize> {
        affinity::ordered(self.numbers(), work, |n| read_record(&self.notes, n))
    }

    /// The numbers of the slots, ascending.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        (0..).filter(|n| !is_foreign(&self.admin(*n), &self.home(*n))).take(self.size).collect()
    }

    /// True where a process ever took the slot of this number.
    pub(crate) fn was_used(&self, number: usize) -> bool {
        self.lock_path(number).symlink_metadata().is_ok()
    }

    fn lock_path(&self, number: usize) -> PathBuf {
        self.notes.join(format!("{number}.lock"))
    }

    fn admin(&self, number: usize) -> PathBuf {
        self.repo.common_dir.join("worktrees").join(format!("{ADMIN_PREFIX}{number}"))
    }

    fn home(&self, number: usize) -> PathBuf {
        self.root.join(number.to_string())
    }

    /// Numbers of all slots that ever were, whatever the size now.
    pub(crate) fn known(&self) -> Vec<usize> {
        let Ok(entries) = std::fs::read_dir(&self.notes) else { return Vec::new() };
        let names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
        let mut numbers: Vec<usize> =
            names.filter_map(|n| n.strip_suffix(".lock").and_then(|n| n.parse().ok())).collect();
        numbers.sort_unstable();
        numbers
    }

    /// [`Pool::known`], and those that only Git's own list of worktrees has.
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

    /// Takes the slot of this number; `None` where another process has it.
    pub(crate) fn lock(&self, number: usize) -> Result<Option<Slot>, StoreError> {
        let path = self.lock_path(number);
        let file = open_lock(&path)?;
        self.repo.share(&path);
        let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(io_error("lock", &path)(errno.into())),
        };
        let slot = Slot { lock: Some(lock), ..self.borrow(number) };
        if self.repo.shared != Shared::Umask {
            // A guardian knows nothing of accounts.
            open_lock(&slot.hold_path())?;
            self.repo.share(&slot.hold_path());
        }
        Ok(Some(slot))
    }

    /// The slot of this number without its lock: to look at, from inside the run that has it.
    pub(crate) fn borrow(&self, number: usize) -> Slot {
        let (home, admin) = (self.home(number), self.admin(number));
        let record = read_record(&self.notes, number);
        let elsewhere = record.place.as_ref().and_then(|place| place.elsewhere(&home, &admin));
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

    /// What is noted of a slot, without taking it.
    pub(crate) fn peek(&self, number: usize) -> Record {
        read_record(&self.notes, number)
    }
}

fn read_record(notes: &Path, number: usize) -> Record {
    let path = notes.join(format!("{number}.json"));
    let read = match crate::store::read_plain(&path, RECORD_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Record::default(),
        Err(error) => Err(error.to_string()),
        // A loss of power keeps the name of a note that was not yet on the disk, and nothing, or zeros, for what it said.
        // What its run did by then is no more on the disk than that.
        Ok(raw) if raw.iter().all(|byte| *byte == 0) => return Record::default(),
        Ok(raw) => serde_json::from_slice(&raw).map_err(|error| error.to_string()),
    };
    read.unwrap_or_else(|why| Record { unreadable: Some(Unreadable { path, why }), ..Record::default() })
}

impl Slot {
    /// Has Git read no more than this of the machine while it stages what is in the slot: its command may still be at work,
    /// and put a link in the place of a folder that Git has just listed.
    pub(crate) fn stage_within(&mut self, reads: Option<Confinement>) {
        self.reads = reads;
    }

    /// Its registration.
    pub(crate) fn admin_dir(&self) -> &Path {
        &self.admin
    }
    /// Its number.
    pub(crate) fn number(&self) -> usize {
        self.number
    }
    /// Its worktree: where the command runs.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
    /// What is noted of it.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }
    /// What ends its filling, once it is set.
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

    /// True where the worktree is a folder of its own, and no link that a command put there.
    fn is_folder(&self) -> bool {
        self.dir.symlink_metadata().is_ok_and(|m| m.is_dir())
    }

    /// True where anything of it is there, be it only its registration.
    pub(crate) fn exists(&self) -> bool {
        self.is_registered()
            || self.dir.symlink_metadata().is_ok()
            || self.notes.join(format!("{}.json", self.number)).exists()
    }
    /// The file that the guardian holds locked.
    pub(crate) fn hold_path(&self) -> PathBuf {
        self.notes.join(format!("{}.hold", self.number))
    }
    /// The runner's own copy of the index, as it was when the slot was filled.
    fn index_copy(&self) -> PathBuf {
        self.notes.join(format!("{}.index", self.number))
    }

    /// The runner's own copy of the index, read once.
    fn index(&self, hash: gix::hash::Kind) -> Result<&gix::index::File, StoreError> {
        if self.index.get().is_none() {
            let _ = self.index.set(scan::read_index(&self.index_copy(), hash)?);
        }
        self.index.get().ok_or(StoreError::Gix { what: "read the index", message: "it is gone".into() })
    }

    /// Compares the worktree with what it was filled with. A fifo in the place of a `.gitignore` is taken away:
    /// no commit can hold it, and Git would wait for it.
    fn scan(&self, hash: gix::hash::Kind) -> Result<scan::Scan, StoreError> {
        let record = &self.record;
        let when = (record.verified_at, record.folder_mode);
        let found = scan::scan(&self.dir, self.index(hash)?, hash, when, &record.beside);
        if !found.traps.is_empty()
            && let Ok(slot) = Root::open(&self.dir)
        {
            for trap in found.traps.iter().map(|trap| Path::new(std::ffi::OsStr::from_bytes(trap))) {
                // Through no link that a command put in the place of a folder meanwhile.
                if matches!(slot.kind(trap), Ok(Some(Kind::Other))) {
                    let _ = slot.remove(trap);
                }
            }
        }
        Ok(found)
    }

    /// True while processes of an earlier run live in it.
    pub(crate) fn is_inhabited(&self) -> Result<bool, StoreError> {
        let path = self.hold_path();
        hold::is_taken(&path).map_err(io_error("lock", &path))
    }

    /// Runs a child that writes to it, which is to keep the hold. `None`: a process of the run has it.
    fn held<T>(&self, child: impl FnOnce(Option<&File>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let path = self.hold_path();
        let hold = match hold::take(&path) {
            Ok(hold) => Some(hold),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            Err(error) => return Err(io_error("lock", &path)(error)),
        };
        let result = child(hold.as_ref());
        // A child that another thread just starts may have a copy for a moment.
        let _ = hold.map(|hold| hold.unlock());
        result
    }

    /// Notes which run's work is in the slot from now on; `None`: no run's.
    pub(crate) fn occupy(&mut self, run: Option<Occupant>) -> Result<(), StoreError> {
        if self.record.run != run {
            let begins = run
                .as_ref()
                .filter(|run| self.record.last.as_ref().is_none_or(|last| last.run_id != run.run_id));
            if let Some(run) = begins {
                self.record.last = Some(LastRun::of(run));
            }
            self.record.run = run;
            self.save()?;
        }
        Ok(())
    }

    fn save(&self) -> Result<(), StoreError> {
        let path = self.notes.join(format!("{}.json", self.number));
        let json =
            serde_json::to_vec(&self.record).map_err(|error| io_error("write", &path)(error.into()))?;
        crate::store::write_aside(&path, &json)?;
        self.shared.give(&path);
        Ok(())
    }

    /// Removes the slot's worktree, registration and notes. The lock file stays.
    pub(crate) fn remove(mut self, repo: &Repository) -> Result<(), StoreError> {
        self.retire(repo)?;
        if self.record.keeps.is_some() {
            self.drop_aside();
        }
        for path in [self.hold_path(), self.notes.join(format!("{}.json", self.number))] {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }

    /// Puts what is in the slot beside it, as it is and whatever that may be: where no other way keeps it, the slot is not
    /// lost with it. Says where it is.
    pub(crate) fn set_aside(&mut self, run_id: &str) -> Result<PathBuf, StoreError> {
        let mut aside = self.dir.with_file_name(format!("{SET_ASIDE}{run_id}"));
        if aside.symlink_metadata().is_ok() {
            aside = self.dir.with_file_name(format!("{SET_ASIDE}{}", uuid::Uuid::new_v4()));
        }
        // No right of the folder itself is needed: it stays below the same one.
        std::fs::rename(&self.dir, &aside).map_err(io_error("move aside", &self.dir))?;
        // It is as old as this, whatever its command said; and no worktree any more, whose registration the next run has.
        let _ = std::fs::remove_file(aside.join(".git"));
        let now = TimeSpec::UTIME_NOW;
        let _ = utimensat(AT_FDCWD, &aside, &now, &now, UtimensatFlags::NoFollowSymlink);
        self.forget_filled();
        self.save()?;
        Ok(aside)
    }

    /// It is filled with nothing that is known from now on.
    fn forget_filled(&mut self) {
        self.record.tree = None;
        self.index = std::cell::OnceCell::new();
        self.placed = None;
        let _ = std::fs::remove_file(self.index_copy());
    }

    /// Gives up the worktree as it is: moved out of the way and deleted as far as possible.
    pub(super) fn retire(&mut self, repo: &Repository) -> Result<(), StoreError> {
        if self.is_registered() {
            self.drop_modules(repo)?;
        }
        self.forget_filled();
        if self.dir.symlink_metadata().is_ok() {
            let aside = self.dir.with_file_name(format!(".retired-{}", uuid::Uuid::new_v4()));
            std::fs::rename(&self.dir, &aside).map_err(io_error("move aside", &self.dir))?;
            // A run that gave up its filling does not wait for its removal either: `gc` removes it.
            if !self.is_stopped() {
                let _ = crate::store::remove_tree(&aside);
            }
        }
        if self.is_registered() {
            // A link that a command put there goes itself, and not what it leads to.
            let _ = crate::store::remove_tree(&self.admin);
        }
        self.save()
    }
}

//! Compares a slot with an index: every file by its stat data, recently changed ones by content too.
//!
//! The comparison trusts nothing that a command can forge: change time and inode come from the system, and
//! the index is the runner's own copy. A file that changed within the clock's granularity of the last check
//! is read and hashed. One walk finds changed, missing and added files, empty folders and nested
//! repositories. Implements K14 (byte for byte), K25 (what the command left).

use crate::store::StoreError;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::Mode;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, SFlag, fstat, fstatat};
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// File systems take time stamps from the clock of the last timer tick, so a change may be this much later
/// than its stamp says.
const GRANULARITY_NS: u64 = 20_000_000;
/// Below this many files a second thread costs more time than it saves.
const PARALLEL_FROM: usize = 3000;
/// An index shorter than this, in bytes, is read by one thread.
const SMALL_INDEX: u64 = 1 << 20;

/// The flags with which folders are opened: a link to a folder is refused.
const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// True where every file is as the index says and the slot holds nothing else.
    pub(crate) clean: bool,
    /// Repositories inside the slot that the index does not know, as paths relative to the slot.
    pub(crate) nested: Vec<BString>,
    /// Folders that this account can't list, as paths relative to the slot.
    pub(crate) closed: Vec<BString>,
    /// Fifos, sockets and devices in the places of files that Git opens: it would wait for them for ever.
    pub(crate) traps: Vec<BString>,
}

struct Walk<'a> {
    dir: &'a Path,
    root: OwnedFd,
    submodules: bool,
    index: &'a gix::index::State,
    hash: gix::hash::Kind,
    verified_at: u64,
    folder_mode: Option<u32>,
    beside: &'a [Vec<u8>],
    pending: Mutex<(Vec<BString>, usize)>,
    wake: std::sync::Condvar,
    /// True where only one thread walks, so that none waits to be woken.
    alone: bool,
    matched: AtomicUsize,
    dirty: AtomicBool,
    closed: Mutex<Vec<BString>>,
    nested: Mutex<Vec<BString>>,
    traps: Mutex<Vec<BString>>,
}

/// Reads an index file. One thread reads a small one: to count the processors takes 20 calls.
pub(crate) fn read_index(path: &Path, hash: gix::hash::Kind) -> Result<gix::index::File, StoreError> {
    let is_small = path.metadata().is_ok_and(|meta| meta.len() < SMALL_INDEX);
    let options = gix::index::decode::Options { thread_limit: is_small.then_some(1), ..Default::default() };
    gix::index::File::at(path, hash, true, options)
        .map_err(|e| StoreError::Gix { what: "read the index", message: e.to_string() })
}

/// True where an index may hide a changed file from Git, or can't be read.
pub(crate) fn hides(path: &Path, hash: gix::hash::Kind) -> bool {
    use gix::index::entry::{Flags, Mode};
    let hides = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE;
    read_index(path, hash).map_or(true, |index| {
        index.entries().iter().any(|e| e.flags.intersects(hides) || e.mode == Mode::DIR)
    })
}

/// Compares `dir` with `index`, whose entries were true at `verified_at` (nanoseconds since 1970).
/// `folder_mode` is the mode that every folder had then, where that is known. The paths in `beside` are
/// skipped; folders among them end in a slash.
pub(crate) fn scan(
    dir: &Path,
    index: &gix::index::State,
    hash: gix::hash::Kind,
    (verified_at, folder_mode): (u64, Option<u32>),
    beside: &[Vec<u8>],
) -> Scan {
    let opened = nix::fcntl::open(dir, FOLDER, nix::sys::stat::Mode::empty());
    let Ok(root) = opened else { return Scan::default() };
    let walk = Walk {
        dir,
        root,
        submodules: index.entries().iter().any(|e| e.mode == Mode::COMMIT),
        index,
        hash,
        verified_at,
        folder_mode,
        beside,
        pending: Mutex::new((vec![BString::default()], 0)),
        wake: std::sync::Condvar::new(),
        alone: index.entries().len() < PARALLEL_FROM,
        matched: AtomicUsize::new(0),
        dirty: AtomicBool::new(false),
        closed: Mutex::new(Vec::new()),
        nested: Mutex::new(Vec::new()),
        traps: Mutex::new(Vec::new()),
    };
    match fstat(&walk.root) {
        Ok(raw) => walk.mode(Stat::from(&raw).permissions),
        Err(_) => walk.changed(),
    }
    if walk.alone {
        walk.work();
    } else {
        std::thread::scope(|scope| {
            // Where the system gives no thread, this one does all of the work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, || walk.work());
            walk.work();
        });
    }
    let complete = walk.matched.load(Ordering::Relaxed) == index.entries().len();
    let clean = complete && !walk.dirty.load(Ordering::Relaxed);
    let list = |found: Mutex<Vec<BString>>| found.into_inner().unwrap_or_default();
    Scan { clean, nested: list(walk.nested), closed: list(walk.closed), traps: list(walk.traps) }
}

impl Walk<'_> {
    /// Takes folders until none is left and no other thread is in one.
    fn work(&self) {
        let mut seen = Vec::new();
        loop {
            let folder = {
                let Ok(mut pending) = self.pending.lock() else { return };
                loop {
                    if let Some(folder) = pending.0.pop() {
                        pending.1 += 1;
                        break folder;
                    }
                    if pending.1 == 0 {
                        self.wake_others();
                        return;
                    }
                    match self.wake.wait(pending) {
                        Ok(again) => pending = again,
                        Err(_) => return,
                    }
                }
            };
            let below = self.folder(folder.as_bstr(), &mut seen);
            if let Ok(mut pending) = self.pending.lock() {
                pending.0.extend(below);
                pending.1 -= 1;
            }
            self.wake_others();
        }
    }

    fn wake_others(&self) {
        if !self.alone {
            self.wake.notify_all();
        }
    }

    fn changed(&self) {
        self.dirty.store(true, Ordering::Relaxed);
    }

    /// Counts a folder with other permissions (one that can't be written to, say) as changed, like a file.
    fn mode(&self, permissions: u32) {
        if self.folder_mode.is_some_and(|mode| mode != permissions) {
            self.changed();
        }
    }

    /// Compares one folder, and returns the folders directly below it. `seen` is a buffer for the folder's
    /// names.
    ///
    /// Every file is examined relative to the open folder, and in the order of the index. On large slots most
    /// of the time is spent where the system resolves paths, and it stores files together that were made
    /// together.
    fn folder(&self, relative: &BStr, seen: &mut Vec<u8>) -> Vec<BString> {
        let path = if relative.is_empty() { b".".as_bstr() } else { relative };
        let Some(folder) = self.names(path, seen) else { return Vec::new() };
        let mut names: Vec<&CStr> = seen
            .split_inclusive(|byte| *byte == 0)
            .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
            .collect();
        names.sort_unstable();
        if relative.is_empty() {
            names.retain(|name| name.to_bytes() != b".git");
        } else if names.binary_search(&c".git").is_ok() {
            // A repository that the index does not know. Its content is not compared.
            self.changed();
            if let Ok(mut nested) = self.nested.lock() {
                nested.push(relative.to_owned());
            }
            return Vec::new();
        } else if names.is_empty() {
            self.changed();
        }
        let prefix = if relative.is_empty() { 0 } else { relative.len() + 1 };
        let mut known = Known { index: self.index, rest: self.entries_below(relative), prefix };
        let mut below = Vec::new();
        for name in names {
            let full = || {
                let mut full = relative.to_owned();
                full.extend_from_slice(if relative.is_empty() { b"" } else { b"/" });
                full.extend_from_slice(name.to_bytes());
                full
            };
            match fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(|raw| Stat::from(&raw)) {
                Ok(stat) if self.is_beside(&stat, full) => {}
                Ok(stat) if stat.kind == SFlag::S_IFDIR => {
                    self.mode(stat.permissions);
                    if self.submodules && known.find(name).is_some_and(|e| e.mode == Mode::COMMIT) {
                        self.submodule(&folder, name);
                    } else {
                        below.push(full());
                    }
                }
                Ok(stat) if stat.is_trap(name) => {
                    self.changed();
                    if let Ok(mut traps) = self.traps.lock() {
                        traps.push(full());
                    }
                }
                Ok(stat) => self.file(|| self.dir.join(full().to_path_lossy()), known.find(name), &stat),
                Err(_) => self.changed(),
            }
        }
        below
    }

    /// True for a path that was kept or copied into the slot before the run, and is ignored.
    fn is_beside(&self, stat: &Stat, path: impl Fn() -> BString) -> bool {
        !self.beside.is_empty() && {
            let mut path = path();
            if stat.kind == SFlag::S_IFDIR {
                path.push(b'/');
            }
            matches!(stat.kind, SFlag::S_IFDIR | SFlag::S_IFREG) && self.beside.contains(&path)
        }
    }

    /// Opens a folder and lists its names into `seen`, each with a NUL at its end; `None` where it can't be
    /// opened.
    fn names(&self, path: &BStr, seen: &mut Vec<u8>) -> Option<Dir> {
        seen.clear();
        let opened = Dir::openat(&self.root, path.as_bytes(), FOLDER, nix::sys::stat::Mode::empty());
        let cannot = |errno| {
            self.changed();
            // A folder that is gone by now, or is no folder any more, holds nothing. Errors for a lack of
            // resources say nothing about the folder.
            if matches!(errno, Errno::EACCES | Errno::EPERM | Errno::ENAMETOOLONG)
                && let Ok(mut closed) = self.closed.lock()
            {
                closed.push(path.to_owned());
            }
        };
        let mut folder = opened.map_err(cannot).ok()?;
        let mut entries = folder.iter();
        for entry in &mut entries {
            match entry {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => seen.extend_from_slice(entry.file_name().to_bytes_with_nul()),
                Err(_) => self.changed(),
            }
        }
        // The folder is not listed again. To drop the iterator would rewind it for nothing.
        std::mem::forget(entries);
        Some(folder)
    }

    /// Returns the index entries below a folder. They are adjacent, as the index is sorted.
    fn entries_below(&self, relative: &BStr) -> &[gix::index::Entry] {
        let all = self.index.entries();
        if relative.is_empty() {
            return all;
        }
        let mut prefix = relative.to_owned();
        prefix.push(b'/');
        let from = all.partition_point(|e| e.path(self.index) < prefix.as_bstr());
        let length = all[from..].partition_point(|e| e.path(self.index).starts_with(&prefix));
        &all[from..from + length]
    }

    /// Compares a submodule, which must be an empty folder: its repository is not ours to fill.
    fn submodule(&self, parent: &Dir, name: &CStr) {
        self.matched.fetch_add(1, Ordering::Relaxed);
        let empty = Dir::openat(parent, name, FOLDER, nix::sys::stat::Mode::empty()).is_ok_and(|mut d| {
            d.iter().all(|e| e.is_ok_and(|e| matches!(e.file_name().to_bytes(), b"." | b"..")))
        });
        if !empty {
            self.changed();
        }
    }

    fn file(&self, path: impl Fn() -> PathBuf, known: Option<&gix::index::Entry>, stat: &Stat) {
        match known {
            Some(entry) if stat.is_of(entry) => {
                self.matched.fetch_add(1, Ordering::Relaxed);
                let changed_at = i128::from(stat.ctime.0) * 1_000_000_000 + i128::from(stat.ctime.1);
                let is_recent = changed_at + i128::from(GRANULARITY_NS) >= i128::from(self.verified_at);
                if is_recent && !self.same_content(&path(), entry, stat) {
                    self.changed();
                }
            }
            Some(_) | None => self.changed(),
        }
    }

    fn same_content(&self, path: &Path, entry: &gix::index::Entry, stat: &Stat) -> bool {
        let content = if stat.kind == SFlag::S_IFLNK {
            std::fs::read_link(path).map(|target| PathBuf::into_os_string(target).as_bytes().to_vec())
        } else {
            std::fs::read(path)
        };
        let Ok(content) = content else { return false };
        gix::objs::compute_hash(self.hash, gix::objs::Kind::Blob, &content).is_ok_and(|id| id == entry.id)
    }
}

/// The index entries of one folder, which are looked up in ascending order.
struct Known<'a> {
    index: &'a gix::index::State,
    rest: &'a [gix::index::Entry],
    /// The length of the part of the path that the entries share.
    prefix: usize,
}

impl<'a> Known<'a> {
    fn find(&mut self, name: &CStr) -> Option<&'a gix::index::Entry> {
        let order = |e: &gix::index::Entry| e.path(self.index)[self.prefix..].as_bytes().cmp(name.to_bytes());
        // Usually the wanted entry is the next one.
        if self.rest.first().is_some_and(|e| order(e).is_lt()) {
            let skipped = self.rest.partition_point(|e| order(e).is_lt());
            self.rest = &self.rest[skipped..];
        }
        self.rest.first().filter(|e| order(e).is_eq())
    }
}

/// Returns the permissions of a folder, special bits included.
pub(crate) fn folder_mode(meta: &std::fs::Metadata) -> u32 {
    meta.mode() & 0o7777
}

/// The metadata of a file that is compared, in types that are the same on all systems.
struct Stat {
    kind: SFlag,
    permissions: u32,
    size: u64,
    ino: u64,
    mtime: (i64, i64),
    ctime: (i64, i64),
}

#[allow(clippy::unnecessary_cast)]
impl From<&FileStat> for Stat {
    fn from(raw: &FileStat) -> Self {
        Self {
            kind: SFlag::from_bits_truncate(raw.st_mode & SFlag::S_IFMT.bits()),
            permissions: raw.st_mode as u32 & 0o7777,
            size: raw.st_size as u64,
            ino: raw.st_ino as u64,
            mtime: (raw.st_mtime as i64, raw.st_mtime_nsec as i64),
            ctime: (raw.st_ctime as i64, raw.st_ctime_nsec as i64),
        }
    }
}

impl Stat {
    /// True for a file with a name that Git would open (`.gitignore`, `.gitattributes`), and whose kind would
    /// make it wait for ever.
    fn is_trap(&self, name: &CStr) -> bool {
        !matches!(self.kind, SFlag::S_IFREG | SFlag::S_IFLNK) && name.to_bytes().starts_with(b".git")
    }

    /// True where the metadata is what the index noted. The index keeps only the low 32 bits of each number.
    fn is_of(&self, entry: &gix::index::Entry) -> bool {
        let kind = match self.kind {
            SFlag::S_IFLNK => entry.mode == Mode::SYMLINK,
            SFlag::S_IFREG if self.permissions & 0o100 != 0 => entry.mode == Mode::FILE_EXECUTABLE,
            SFlag::S_IFREG => entry.mode == Mode::FILE,
            _ => false,
        };
        let stat = &entry.stat;
        kind && stat.size == self.size as u32
            && stat.ino == self.ino as u32
            && (stat.mtime.secs, stat.mtime.nsecs) == (self.mtime.0 as u32, self.mtime.1 as u32)
            && (stat.ctime.secs, stat.ctime.nsecs) == (self.ctime.0 as u32, self.ctime.1 as u32)
    }
}

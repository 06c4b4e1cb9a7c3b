//! Compares a slot with an index: every file by its stat data, the recent ones by content too.
//!
//! Trusts nothing that a command can forge: change time and inode come from the system, and the index is
//! the runner's own copy. A file that changed within the clock's granularity of the last check is read
//! and hashed. One walk finds changed, missing and added files, empty folders and nested repositories.
//! Implements K14 (byte for byte), K25 (what the command left).

use super::super::StoreError;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::Mode;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// File systems stamp with the clock of the last timer tick: this old a stamp may hide a later change.
const GRANULARITY_NS: u64 = 20_000_000;
/// Below this many files a second thread costs more than it brings.
const PARALLEL_FROM: usize = 3000;

/// What a walk found.
#[derive(Debug, Default)]
pub struct Scan {
    /// True where every file is as the index says and nothing else is there.
    pub clean: bool,
    /// Repositories inside the slot that the index does not know, relative to it.
    pub nested: Vec<BString>,
}

struct Walk<'a> {
    dir: &'a Path,
    index: &'a gix::index::State,
    hash: gix::hash::Kind,
    verified_at: u64,
    pending: Mutex<(Vec<BString>, usize)>,
    wake: std::sync::Condvar,
    matched: AtomicUsize,
    dirty: AtomicBool,
    nested: Mutex<Vec<BString>>,
}

/// Reads the runner's index copy.
pub fn read_index(path: &Path, hash: gix::hash::Kind) -> Result<gix::index::File, StoreError> {
    gix::index::File::at(path, hash, true, Default::default())
        .map_err(|e| StoreError::Gix { what: "read the index", message: e.to_string() })
}

/// Compares `dir` with `index`, whose entries were true at `verified_at` (nanoseconds since 1970).
pub fn scan(dir: &Path, index: &gix::index::State, hash: gix::hash::Kind, verified_at: u64) -> Scan {
    let walk = Walk {
        dir,
        index,
        hash,
        verified_at,
        pending: Mutex::new((vec![BString::default()], 0)),
        wake: std::sync::Condvar::new(),
        matched: AtomicUsize::new(0),
        dirty: AtomicBool::new(false),
        nested: Mutex::new(Vec::new()),
    };
    if index.entries().len() < PARALLEL_FROM {
        walk.work();
    } else {
        std::thread::scope(|scope| {
            scope.spawn(|| walk.work());
            walk.work();
        });
    }
    let complete = walk.matched.load(Ordering::Relaxed) == index.entries().len();
    let clean = complete && !walk.dirty.load(Ordering::Relaxed);
    Scan { clean, nested: walk.nested.into_inner().unwrap_or_default() }
}

impl Walk<'_> {
    /// Takes folders until none is left and nobody else is in one.
    fn work(&self) {
        loop {
            let folder = {
                let Ok(mut pending) = self.pending.lock() else { return };
                loop {
                    if let Some(folder) = pending.0.pop() {
                        pending.1 += 1;
                        break folder;
                    }
                    if pending.1 == 0 {
                        self.wake.notify_all();
                        return;
                    }
                    match self.wake.wait(pending) {
                        Ok(again) => pending = again,
                        Err(_) => return,
                    }
                }
            };
            let below = self.folder(folder.as_bstr());
            if let Ok(mut pending) = self.pending.lock() {
                pending.0.extend(below);
                pending.1 -= 1;
            }
            self.wake.notify_all();
        }
    }

    fn changed(&self) {
        self.dirty.store(true, Ordering::Relaxed);
    }

    /// Looks at one folder; says which folders are below it.
    fn folder(&self, relative: &BStr) -> Vec<BString> {
        let path = self.dir.join(std::ffi::OsStr::from_bytes(relative));
        let Ok(entries) = std::fs::read_dir(&path) else {
            self.changed();
            return Vec::new();
        };
        let known = self.entries_below(relative);
        let (mut below, mut count) = (Vec::new(), 0);
        let mut name = BString::default();
        for entry in entries {
            let Ok(entry) = entry else {
                self.changed();
                continue;
            };
            let file_name = entry.file_name();
            if relative.is_empty() && file_name == ".git" {
                continue;
            }
            count += 1;
            name.clear();
            if !relative.is_empty() {
                name.extend_from_slice(relative);
                name.push(b'/');
            }
            name.extend_from_slice(file_name.as_bytes());
            // In the folder's own few entries, by the part of the path that they do not share.
            let prefix = name.len() - file_name.len();
            let found =
                known.binary_search_by(|e| e.path(self.index)[prefix..].as_bytes().cmp(&name[prefix..]));
            let found = found.ok().map(|i| &known[i]);
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => self.subfolder(&entry.path(), &name, found, &mut below),
                Ok(meta) => self.file(|| entry.path(), found, &meta),
                Err(_) => self.changed(),
            }
        }
        if count == 0 && !relative.is_empty() {
            self.changed();
        }
        below
    }

    /// The index entries whose path begins with a folder's: they stand together, sorted.
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

    fn subfolder(
        &self,
        path: &Path,
        name: &BString,
        known: Option<&gix::index::Entry>,
        below: &mut Vec<BString>,
    ) {
        if known.is_some_and(|e| e.mode == Mode::COMMIT) {
            self.matched.fetch_add(1, Ordering::Relaxed);
            let empty = std::fs::read_dir(path).is_ok_and(|mut d| d.next().is_none());
            if !empty {
                self.changed();
            }
        } else if path.join(".git").symlink_metadata().is_ok() {
            self.changed();
            if let Ok(mut nested) = self.nested.lock() {
                nested.push(name.clone());
            }
        } else {
            below.push(name.clone());
        }
    }

    fn file(&self, path: impl Fn() -> PathBuf, known: Option<&gix::index::Entry>, meta: &std::fs::Metadata) {
        match known {
            Some(entry) if same_stat(entry, meta) => {
                self.matched.fetch_add(1, Ordering::Relaxed);
                let changed_at = meta.ctime() as u64 * 1_000_000_000 + meta.ctime_nsec() as u64;
                if changed_at + GRANULARITY_NS >= self.verified_at && !self.same_content(&path(), entry, meta)
                {
                    self.changed();
                }
            }
            Some(_) | None => self.changed(),
        }
    }

    fn same_content(&self, path: &Path, entry: &gix::index::Entry, meta: &std::fs::Metadata) -> bool {
        let content = if meta.is_symlink() {
            std::fs::read_link(path).map(|target| PathBuf::into_os_string(target).as_bytes().to_vec())
        } else {
            std::fs::read(path)
        };
        let Ok(content) = content else { return false };
        gix::objs::compute_hash(self.hash, gix::objs::Kind::Blob, &content).is_ok_and(|id| id == entry.id)
    }
}

fn same_stat(entry: &gix::index::Entry, meta: &std::fs::Metadata) -> bool {
    let stat = &entry.stat;
    let kind = if meta.is_symlink() {
        entry.mode == Mode::SYMLINK
    } else if meta.is_file() {
        let executable = meta.mode() & 0o100 != 0;
        entry.mode == if executable { Mode::FILE_EXECUTABLE } else { Mode::FILE }
    } else {
        false
    };
    kind && stat.size == meta.size() as u32
        && stat.ino == meta.ino() as u32
        && stat.mtime.secs == meta.mtime() as u32
        && stat.mtime.nsecs == meta.mtime_nsec() as u32
        && stat.ctime.secs == meta.ctime() as u32
        && stat.ctime.nsecs == meta.ctime_nsec() as u32
}

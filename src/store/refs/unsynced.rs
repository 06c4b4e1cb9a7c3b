//! Collects what is written and not synced yet, so that one wait for the disk serves all of it.
//!
//! Calling sequence: [`Unsynced::add`] after each write; [`Unsynced::sync_with`] when a ref that names what
//! was written is about to be moved, or [`Unsynced::sync`] where that ref is another machine's. Many files
//! are synced several at a time: the file system then serves them by one write of its journal. One after the
//! other, each would wait for a write of its own, behind those of all other processes that sync. Implements
//! K42.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// From this many paths on several are synced at a time.
const MANY: usize = 9;
/// How many are synced at a time then.
const AT_A_TIME: usize = 8;

/// Files and folders to sync. Their order does not matter, as no ref names them before all of them are
/// synced.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unsynced(RefCell<Vec<PathBuf>>);

impl Unsynced {
    /// Has these paths synced before the next ref is moved.
    pub(crate) fn add(&self, paths: impl IntoIterator<Item = PathBuf>) {
        self.0.borrow_mut().extend(paths);
    }

    /// Syncs all that waits. On an error all of it waits on.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.all(sync)
    }

    /// Syncs all that waits, and `lock` at the same time. On an error all of it waits on.
    pub(crate) fn sync_with(&self, lock: &File) -> io::Result<()> {
        self.all(|waiting| {
            if waiting.is_empty() {
                return lock.sync_all();
            }
            std::thread::scope(|scope| {
                let others = std::thread::Builder::new().spawn_scoped(scope, || sync(waiting));
                let own = lock.sync_all();
                match others {
                    Ok(others) => {
                        others.join().unwrap_or_else(|_| Err(io::Error::other("a sync panicked"))).and(own)
                    }
                    // The system gives no thread, so the paths are synced after the lock.
                    Err(_) => sync(waiting).and(own),
                }
            })
        })
    }

    fn all(&self, sync: impl FnOnce(&[PathBuf]) -> io::Result<()>) -> io::Result<()> {
        let waiting = std::mem::take(&mut *self.0.borrow_mut());
        let result = sync(&waiting);
        if result.is_err() {
            self.add(waiting);
        }
        result
    }
}

fn sync(paths: &[PathBuf]) -> io::Result<()> {
    if paths.len() < MANY {
        return paths.iter().try_for_each(sync_one);
    }
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = sync_one(path) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..AT_A_TIME {
            // Where the system gives no thread, the others do its share.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn sync_one(path: &PathBuf) -> io::Result<()> {
    match File::open(path) {
        Ok(file) => file.sync_all(),
        // A `git gc` has moved the object into a pack, which Git syncs.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_meanwhile_holds_nobody_up_and_what_fails_waits_on() {
        let folder = tempfile::tempdir().unwrap();
        let (gone, kept) = (folder.path().join("gone"), folder.path().join("kept"));
        std::fs::write(&kept, "").unwrap();
        let unsynced = Unsynced::default();
        unsynced.add([gone, kept.clone()]);
        unsynced.sync().unwrap();
        unsynced.add([kept.join("below a file")]);
        unsynced.sync().unwrap_err();
        unsynced.sync_with(&File::open(&kept).unwrap()).unwrap_err();
        assert_eq!(unsynced.0.borrow().len(), 1);
    }

    /// K42: of many paths each is synced before success is reported, and one failure makes the whole sync
    /// fail.
    #[test]
    fn of_many_none_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..100).map(|n| folder.path().join(format!("f{n}"))).collect();
        paths.iter().for_each(|path| std::fs::write(path, "").unwrap());
        let unsynced = Unsynced::default();
        unsynced.add(paths.clone());
        unsynced.sync().unwrap();
        assert_eq!(unsynced.0.borrow().len(), 0);
        for bad in [0, 57, 99] {
            let mut all = paths.clone();
            all[bad] = paths[bad].join("below a file");
            unsynced.add(all);
            unsynced.sync().unwrap_err();
            assert_eq!(unsynced.0.take().len(), 100);
        }
    }
}

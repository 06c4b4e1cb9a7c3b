//! One lock around every operation that changes a project: an `flock`, which the kernel releases when its
//! holder dies.
//!
//! The file is `.agentxchain/locks/accept-turn.lock`; its JSON (`owner_pid`, `acquired_at`) is for readers,
//! and for tools that lock by the file's content alone: such a tool's lock is respected while its owner lives
//! and the lock is younger than 30 seconds. The first process that gets the lock finishes what a killed
//! process left ([`super::redo`]). The lock is re-entrant on the thread that holds it: after `acquire_lock`,
//! any operation works. The file is removed on release, under the lock; a process that waited for the removed
//! file opens the new one. Implements G2.

use super::root::Root;
use super::{GovernedError, disk, io, json, redo, time};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::kill;
use nix::unistd::{Pid, getpid};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

pub(super) const LOCK: &str = ".agentxchain/locks/accept-turn.lock";
/// The age up to which a lock by content alone is respected.
const FOREIGN_MAX: Duration = Duration::from_secs(30);
/// The most bytes that are read of a lock file.
const OWNER_MAX: u64 = 64 << 10;
/// The pause between two attempts to take a lock that another process holds.
const LOOK: Duration = Duration::from_millis(3);

thread_local! {
    static HELD: RefCell<Vec<(PathBuf, Weak<Held>)>> = const { RefCell::new(Vec::new()) };
}

/// The lock of a project, held until this value and its copies inside running operations are gone.
///
/// The guard is not `Send`: on another thread, operations wait for this lock as for one of another process.
#[derive(Debug)]
pub struct LockGuard {
    held: Rc<Held>,
}

impl LockGuard {
    /// Returns the path of the lock file.
    pub fn path(&self) -> &Path {
        &self.held.path
    }
}

#[derive(Debug)]
struct Held {
    root: Root,
    path: PathBuf,
    file: Flock<File>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // The file is removed only while its path still names the file that this guard has locked.
        if disk::is_same(&self.root, &self.path, &self.file) {
            let _ = disk::let_go(&self.root, &self.path);
        }
    }
}

/// Takes the lock, or says at once that another process holds it.
///
/// # Errors
/// [`GovernedError::Locked`] (code `lock_timeout`) where another process or thread holds the lock; the errors
/// of finishing a killed process's operation.
pub fn acquire_lock(root: &Root) -> Result<LockGuard, GovernedError> {
    enter_within(root, Duration::ZERO)
}

/// Gives the lock back; dropping the guard does the same.
pub fn release_lock(guard: LockGuard) {
    drop(guard);
}

/// Takes the lock for an operation; waits as long as the root says.
pub(crate) fn enter(root: &Root) -> Result<LockGuard, GovernedError> {
    enter_within(root, root.lock_wait())
}

fn enter_within(root: &Root, wait: Duration) -> Result<LockGuard, GovernedError> {
    // The canonical path: the lock is the same by whatever path the folder is named.
    let folder = fs::canonicalize(root.folder()).map_err(io("find", root.folder()))?;
    let (path, root) = (folder.join(LOCK), &root.at(folder));
    let held = HELD.with_borrow_mut(|all| {
        all.retain(|(_, held)| held.strong_count() > 0);
        all.iter().find(|(of, _)| *of == path).and_then(|(_, held)| held.upgrade())
    });
    if let Some(held) = held {
        return Ok(LockGuard { held });
    }
    let started = Instant::now();
    let file = loop {
        if let Some(file) = take(root, &path)? {
            break file;
        }
        if started.elapsed() >= wait {
            return Err(GovernedError::Locked { owner: owner(root, &path), path });
        }
        std::thread::sleep(LOOK);
    };
    let held = Rc::new(Held { root: root.clone(), path: path.clone(), file });
    write_owner(root, &held)?;
    redo::recover(root)?;
    HELD.with_borrow_mut(|all| all.push((path, Rc::downgrade(&held))));
    Ok(LockGuard { held })
}

/// Tries to take the lock once; `None` where another process or tool has it.
fn take(root: &Root, path: &Path) -> Result<Option<Flock<File>>, GovernedError> {
    loop {
        if let Some(folder) = path.parent() {
            disk::make_dirs(root, folder)?;
        }
        let file = disk::open_lock(root, path)?;
        let mut file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(io("lock", path)(errno.into())),
        };
        // The previous holder may have removed the file between the opening and the lock.
        if !disk::is_same(root, path, &file) {
            continue;
        }
        let mut text = String::new();
        // Content that is not text is not the lock of another tool.
        let _ = (&mut *file).take(OWNER_MAX).read_to_string(&mut text);
        return Ok((!is_foreign(root, &text)).then_some(file));
    }
}

/// True if this is the content of another tool's lock by content alone, and that lock still holds.
fn is_foreign(root: &Root, text: &str) -> bool {
    let Ok(Value::Object(content)) = serde_json::from_str(text) else { return false };
    if content.contains_key("lock") {
        return false;
    }
    let pid =
        json::count(&content, "owner_pid").and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0);
    let since = json::text(&content, "acquired_at").and_then(time::parse);
    let (Some(pid), Some(since)) = (pid.map(Pid::from_raw), since) else { return false };
    let is_young = root.moment().duration_since(since).map_or(true, |age| age < FOREIGN_MAX);
    let is_alive = !matches!(kill(pid, None), Err(Errno::ESRCH));
    pid != getpid() && is_young && is_alive
}

fn write_owner(root: &Root, held: &Held) -> Result<(), GovernedError> {
    let content = json!({ "owner_pid": getpid().as_raw(), "acquired_at": root.now(), "lock": "flock" });
    let mut file = &*held.file;
    let written = file.set_len(0).and_then(|()| file.rewind());
    written.and_then(|()| file.write_all(json::page(&content).as_bytes())).map_err(io("write", &held.path))
}

/// Returns the process that the lock file names as its owner.
fn owner(root: &Root, path: &Path) -> Option<u64> {
    let bytes = disk::read_within(root, path, OWNER_MAX).ok()??;
    let Ok(Value::Object(content)) = serde_json::from_slice(&bytes) else { return None };
    json::count(&content, "owner_pid")
}

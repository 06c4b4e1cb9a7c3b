//! One lock around every operation that changes a project: `flock`, dropped by the kernel on death.
//!
//! The file is `.agentxchain/locks/accept-turn.lock`; its JSON (`owner_pid`, `acquired_at`) is for readers and
//! for tools that lock by content alone: a lock of theirs whose owner lives and that is younger than 30
//! seconds is respected. The first process that gets in finishes what a killed one left ([`super::redo`]).
//! Re-entrant on the thread that holds it: `acquire_lock`, then any operation, works. The file is removed
//! on release, under the lock; who waited for the removed file opens the new one. Implements G2.

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
/// How long a lock by content alone holds.
const FOREIGN_MAX: Duration = Duration::from_secs(30);
/// Most bytes of what a lock says.
const OWNER_MAX: u64 = 64 << 10;
/// Between two looks at a lock that another process holds.
const LOOK: Duration = Duration::from_millis(3);

thread_local! {
    static HELD: RefCell<Vec<(PathBuf, Weak<Held>)>> = const { RefCell::new(Vec::new()) };
}

/// The lock of a project, held until this value and its copies inside running operations are gone.
///
/// Not to be sent to another thread: there, operations wait for it as another process's do.
#[derive(Debug)]
pub struct LockGuard {
    held: Rc<Held>,
}

impl LockGuard {
    /// The lock file.
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
        // Ours alone to remove: the path is still the file that is locked.
        if disk::is_same(&self.root, &self.path, &self.file) {
            let _ = disk::let_go(&self.root, &self.path);
        }
    }
}

/// Takes the lock, or says at once that another process holds it.
///
/// # Errors
/// [`GovernedError::Locked`] (code `lock_timeout`) where it is held by another process or thread; what goes
/// wrong while a killed process's operation is finished.
pub fn acquire_lock(root: &Root) -> Result<LockGuard, GovernedError> {
    enter_within(root, Duration::ZERO)
}

/// Gives the lock back; dropping the guard does the same.
pub fn release_lock(guard: LockGuard) {
    drop(guard);
}

/// Takes the lock for an operation: waits as long as the root says.
pub(crate) fn enter(root: &Root) -> Result<LockGuard, GovernedError> {
    enter_within(root, root.lock_wait())
}

fn enter_within(root: &Root, wait: Duration) -> Result<LockGuard, GovernedError> {
    // However the folder is called, it is one lock.
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

/// One attempt; `None` where another process has it.
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
        // Its holder may have removed it between the opening and the lock.
        if !disk::is_same(root, path, &file) {
            continue;
        }
        let mut text = String::new();
        // What is not text is no lock of the format's.
        let _ = (&mut *file).take(OWNER_MAX).read_to_string(&mut text);
        return Ok((!is_foreign(root, &text)).then_some(file));
    }
}

/// True for the content of a tool that locks by content alone and is at work now.
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

/// Who says to hold it.
fn owner(root: &Root, path: &Path) -> Option<u64> {
    let bytes = disk::read_within(root, path, OWNER_MAX).ok()??;
    let Ok(Value::Object(content)) = serde_json::from_slice(&bytes) else { return None };
    json::count(&content, "owner_pid")
}

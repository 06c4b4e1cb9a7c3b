//! Ends what a command leaves behind when its guardian was killed.
//!
//! A command may send SIGKILL to its guardian, and so may the system when memory is short. Then no process is
//! left that knows the command's processes. So the caller is a child subreaper itself, and adopts them. An
//! orphan is a child of this process in another session that this process did not start: its helpers stay in
//! its session, and what it did start in other sessions is on a list. The daemon of a helper (a credential
//! cache) can look the same, and is ended with the orphans in this one case. Call `adopt` before the first
//! start, [`started`] around each start, and `sweep` once a guardian is lost. Works only with `/proc`.
//! Implements K17.

use super::guardian::kill::{parse_stat, signal_groups};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getsid};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The process ids of the children that were started in a session of their own. The lock is held around each
/// start, so that no sweep takes a new child for an orphan.
static OURS: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

/// The longest time that a sweep takes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes this process adopt orphans from now on.
#[cfg(target_os = "linux")]
pub(super) fn adopt() {
    // Fails only on a kernel without this call, where orphans go to init as ever.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Does nothing: on other systems orphans always go to init.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() {}

/// Starts a child that will have a session of its own, and remembers it by its process id.
pub(super) fn started<C>(start: impl FnOnce() -> io::Result<C>, id: impl FnOnce(&C) -> u32) -> io::Result<C> {
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    let child = start()?;
    ours.get_or_insert_with(HashSet::new).insert(id(&child));
    Ok(child)
}

/// Forgets a child that was waited for: its process id may soon belong to another process.
pub(super) fn waited_for(pid: u32) {
    if let Some(ours) = OURS.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        ours.remove(&pid);
    }
}

/// Kills every orphan that this process adopted, and all processes below them.
pub(super) fn sweep() {
    let ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    let until = Instant::now() + PATIENCE;
    // Two looks without orphans are needed: the kernel may not have handed them all over before the first.
    let mut quiet = 0;
    while quiet < 2 && Instant::now() < until {
        let orphans = orphans(ours.as_ref());
        quiet = if orphans.is_empty() { quiet + 1 } else { 0 };
        signal_groups(orphans.iter().map(|(pid, group)| (*pid, *group)), Signal::SIGKILL);
        for (pid, _) in &orphans {
            // Only some of them are children of this process; for the others this call does nothing.
            let _ = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the process id and process group of each orphan and of all processes below the orphans.
fn orphans(ours: Option<&HashSet<u32>>) -> Vec<(i32, i32)> {
    let mut children: HashMap<i32, Vec<(i32, i32)>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { continue };
        if let Some((parent, group)) = parse_stat(&stat) {
            children.entry(parent).or_default().push((pid, group));
        }
    }
    let own = getsid(None).ok();
    let known = |pid: i32| ours.is_some_and(|ours| ours.contains(&(pid as u32)));
    let ours = children.remove(&(std::process::id() as i32)).unwrap_or_default();
    let strange = |(pid, _): &(i32, i32)| getsid(Some(Pid::from_raw(*pid))).ok() != own && !known(*pid);
    let mut found: Vec<(i32, i32)> = ours.into_iter().filter(strange).collect();
    let mut at = 0;
    while at < found.len() {
        found.extend(children.remove(&found[at].0).unwrap_or_default());
        at += 1;
    }
    found
}

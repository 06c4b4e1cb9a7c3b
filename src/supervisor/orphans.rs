//! What a command leaves behind where its guardian was killed.
//!
//! A command may send its guardian SIGKILL, and so may the system when memory is short. No process is left then that
//! knows the command's processes; so the caller is a child subreaper itself, and they come to it. Those are the
//! children of ours in another session than ours which we did not start: helpers stay in our session, and whom
//! we started is on a list. A helper's daemon (a credential cache) can look the same; it is ended with them, in
//! this one case. `adopt` before the first start, [`started`] around each, `sweep` once a guardian is lost.
//! Only where there is a `/proc`. Implements K17.

use super::guardian::kill::{parse_stat, signal_groups};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getsid};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Those whom we started in a session of their own. The lock is held around each start, so that no sweep takes
/// one for an orphan.
static OURS: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

/// Longest sweep.
const PATIENCE: Duration = Duration::from_secs(1);

/// Has orphans come to this process.
#[cfg(target_os = "linux")]
pub(super) fn adopt() {
    // Fails on no kernel that has this system call, and then orphans go where they always went.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Elsewhere orphans go to init.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() {}

/// Starts a child that will have a session of its own, and remembers it by its process id.
pub(super) fn started<C>(start: impl FnOnce() -> io::Result<C>, id: impl FnOnce(&C) -> u32) -> io::Result<C> {
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    let child = start()?;
    ours.get_or_insert_with(HashSet::new).insert(id(&child));
    Ok(child)
}

/// Forgets a child that was waited for: its number may be another process's soon.
pub(super) fn waited_for(pid: u32) {
    if let Some(ours) = OURS.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        ours.remove(&pid);
    }
}

/// Ends every orphan that came to us, and what is below it.
pub(super) fn sweep() {
    let ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    let until = Instant::now() + PATIENCE;
    // None twice: the first look may have been quicker than the kernel's own clearing up.
    let mut quiet = 0;
    while quiet < 2 && Instant::now() < until {
        let orphans = orphans(ours.as_ref());
        quiet = if orphans.is_empty() { quiet + 1 } else { 0 };
        signal_groups(orphans.iter().map(|(pid, group)| (*pid, *group)), Signal::SIGKILL);
        for (pid, _) in &orphans {
            // Not every one is our own child, and none of the others is waited for by this.
            let _ = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Process and group of each orphan and of all below it.
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

//! Locks in a remote that is a path on this machine: only the owner of that repository removes them.
//!
//! A lock that a killed `git receive-pack` left makes every push to it fail. The finding names the lock with
//! the command that removes it; if processes are seen whose lock it may be, it names these too. Implements
//! K43.

use super::Level::{Error, Warning};
use super::places::LOCK_OLD;
use super::{Finding, Findings, Mend, shown};
use crate::runner::{Runner, RunnerError};
use crate::store::locks::{self, FoundLock};
use crate::supervisor::holders::{self, AtWork};
use std::path::Path;

/// Locks of refs that are no files (reftable), and of what a push from a shallow repository changes.
const OTHERS: [&str; 2] = ["reftable/tables.list.lock", "shallow.lock"];

impl Runner<'_> {
    /// Looks at the locks of the repository at this path, as `git receive-pack` would find it.
    pub(super) fn check_far_locks(&self, at: &Path, found: &mut Findings) -> Result<(), RunnerError> {
        let Some(dir) = locks::git_dir_at(at).and_then(|dir| std::fs::canonicalize(dir).ok()) else {
            return Ok(());
        };
        // The locks of this repository have a check of their own.
        if dir == self.repo.common_dir {
            return Ok(());
        }
        let mut all = locks::list_locks(&dir)?;
        let others = OTHERS.iter().map(|name| dir.join(name)).filter(|path| path.symlink_metadata().is_ok());
        all.extend(others.map(|path| FoundLock { age: locks::age(&path), ours: false, stale: false, path }));
        let mut whose = None;
        for lock in all {
            let (path, age) = (shown(&lock.path), lock.age.as_secs());
            if lock.stale {
                let text = format!("'{path}' was left by a runner of that repository that was killed");
                found.push(Finding::new(Warning, "locks", text).mend(Mend::Gc(Some(dir.clone()))));
            } else if !lock.ours && lock.age >= LOCK_OLD {
                let whose = whose.get_or_insert_with(|| whose_may_it_be(&dir));
                let mend = Mend::RemoveLock { path: lock.path, unless_used: whose.is_some() };
                let whose = whose.as_deref().unwrap_or("by a process that is gone");
                let text = format!("'{path}' keeps pushes out; it was left {whose} (age {age}s)");
                found.push(Finding::new(Error, "locks", text).mend(mend));
            }
        }
        Ok(())
    }
}

/// Returns the processes whose lock this may be, in words; `None` if no process is at work in this Git
/// directory.
fn whose_may_it_be(dir: &Path) -> Option<String> {
    let list = |pids: &[u32]| pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let top = dir.parent().filter(|_| dir.ends_with(".git")).unwrap_or(dir);
    if is_shared_by_machines(dir) {
        return Some("perhaps by a git process on another machine".to_owned());
    }
    let Some(AtWork { seen, hidden }) = holders::at_work("git", top) else {
        return Some("perhaps by a git process that lives".to_owned());
    };
    match (&*seen, &*hidden) {
        ([], []) => None,
        ([], hidden) => Some(format!("perhaps by a git of another account (process {})", list(hidden))),
        (seen, _) => Some(format!("perhaps by a git that is at work there (process {})", list(seen))),
    }
}

/// True on a file system that other machines may use too, whose processes are not seen on this one.
#[cfg(target_os = "linux")]
fn is_shared_by_machines(dir: &Path) -> bool {
    use nix::sys::statfs::{FUSE_SUPER_MAGIC, FsType, NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, statfs};
    // The library has no names for cifs, smb2, ceph and 9p.
    let others = [0xff53_4d42_u32, 0xfe53_4d42, 0x00c3_6400, 0x0102_1997];
    let known = [NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, FUSE_SUPER_MAGIC];
    statfs(dir).map_or(true, |stat| {
        let FsType(magic) = stat.filesystem_type();
        known.contains(&stat.filesystem_type()) || others.contains(&(magic as u32))
    })
}

#[cfg(not(target_os = "linux"))]
fn is_shared_by_machines(_dir: &Path) -> bool {
    true
}

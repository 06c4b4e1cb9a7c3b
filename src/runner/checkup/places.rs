//! Worktrees, disks, ref locks, checkouts that wait, the clock.

use super::Level::{Error, Ok as Fine, Warning};
use super::{Finding, Findings, existing, name, quoted, shown};
use crate::protocol::text::escape;
use crate::runner::{Runner, RunnerError, logs};
use crate::store::{checkout, locks};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, access};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// A foreign ref lock this old was probably left behind.
const LOCK_OLD: Duration = Duration::from_secs(10);
/// Less free space than this stops a tick sooner or later; less than ten times of it is worth saying.
const FREE_MIN: u64 = 50 << 20;
/// How far a commit may lie ahead of our clock without a word, in seconds.
const AHEAD: i64 = 30;

impl Runner<'_> {
    pub(super) fn check_worktrees(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let root = &self.settings.worktree_dir;
        let Some(parent) = existing(root) else { return Ok(()) };
        if access(&parent, AccessFlags::W_OK | AccessFlags::X_OK).is_err() {
            let text = format!("'{}' cannot be written: no worktree can be made in it", shown(&parent));
            let hint = "git config --global aynig.worktreeDir <folder>";
            found.push(Finding::new(Error, "worktrees", text).hint(hint));
            return Ok(());
        }
        let device = |path: &Path| path.metadata().map(|m| m.dev()).ok();
        let same = device(&parent) == device(&self.repo.common_dir);
        let disk = if same { "the repository's disk" } else { "another disk than the repository" };
        let text = format!("at most {} in '{}', on {disk}", self.settings.jobs, shown(root));
        found.push(Finding::new(Fine, "worktrees", text));
        if !self.repo.aynig_dir().join("slots").exists() {
            return Ok(());
        }
        let pool = self.pool()?;
        for number in pool.known() {
            let run = pool.peek(number).run;
            let id = run.as_ref().map(|r| escape(r.run_id.as_bytes())).unwrap_or_default();
            let Some(slot) = pool.lock(number)? else {
                found.push(Finding::new(Fine, "worktrees", format!("{number} is in use by run {id}")));
                continue;
            };
            let lingers = run.as_ref().is_some_and(|r| r.lingering);
            match (run, slot.is_inhabited()?) {
                (Some(_), _) if lingers => {
                    let text = format!("{number} is kept by run {id}, whose command has ended");
                    found.push(Finding::new(Fine, "worktrees", text));
                }
                (_, true) => {
                    let text = format!("{number} has processes in it that no runner knows");
                    let hint = format!("fuser -k {}", quoted(&slot.hold_path()));
                    found.push(Finding::new(Warning, "worktrees", text).hint(hint));
                }
                (Some(_), false) => {
                    let text =
                        format!("{number} holds work of run {id}, which was cut short: it will be kept");
                    found.push(Finding::new(Warning, "worktrees", text).hint("git aynig gc"));
                }
                (None, false) => {}
            }
        }
        Ok(())
    }

    pub(super) fn check_disks(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let logs = logs::folder(self.repo).0;
        let places = [self.repo.common_dir.clone(), self.settings.worktree_dir.clone(), logs];
        let mut devices = Vec::new();
        for place in places.iter().filter_map(|p| existing(p)) {
            let Ok(meta) = place.metadata() else { continue };
            if devices.contains(&meta.dev()) {
                continue;
            }
            devices.push(meta.dev());
            let Ok(stat) = statvfs(&place) else { continue };
            // Their types differ from system to system.
            #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
            let free = (stat.blocks_available() as u64).saturating_mul(stat.fragment_size() as u64);
            let level = match free {
                n if n < FREE_MIN => Error,
                n if n < FREE_MIN * 10 => Warning,
                _ => Fine,
            };
            let text = format!("{} MiB free where '{}' is", free >> 20, shown(&place));
            let finding = Finding::new(level, "disk", text);
            found.push(if level == Fine { finding } else { finding.hint("git aynig gc") });
            if devices.len() == 1 && stat.flags().contains(FsFlags::ST_NOEXEC) {
                let text = format!("'{}' is on a disk from which nothing may be started", shown(&place));
                found.push(Finding::new(Error, "disk", text).hint("mount it without 'noexec'"));
            }
        }
        Ok(())
    }

    pub(super) fn check_locks(&self, found: &mut Findings) -> Result<(), RunnerError> {
        for lock in locks::list_locks(&self.repo.common_dir)? {
            let (path, age) = (shown(&lock.path), lock.age.as_secs());
            if lock.stale {
                let text = format!("'{path}' was left by a runner that was killed; the next tick removes it");
                found.push(Finding::new(Warning, "locks", text).hint("git aynig gc"));
            } else if !lock.ours && lock.age >= LOCK_OLD {
                let text = format!("'{path}' is held by somebody else (age {age}s)");
                let hint = format!("if no git process is at work: rm {}", quoted(&lock.path));
                found.push(Finding::new(Error, "locks", text).hint(hint));
            }
        }
        Ok(())
    }

    pub(super) fn check_checkouts(&self, found: &mut Findings) -> Result<(), RunnerError> {
        for (dir, branch) in checkout::pending(self.repo) {
            let text = format!("'{}' does not yet have what {} holds", shown(&dir), name(&branch));
            found.push(Finding::new(Warning, "checkouts", text).hint("commit or stash, then git aynig tick"));
        }
        Ok(())
    }

    pub(super) fn check_clock(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let heads = self.store.read_heads("refs/heads/")?.heads;
        let newest = heads.iter().filter_map(|(name, commit)| Some((commit.committed?, name))).max();
        let now = self.clock.now();
        found.push(match newest {
            Some((at, branch)) if at > now.saturating_add(AHEAD) => {
                let text =
                    format!("{} is {}s ahead of this machine's clock", name(branch), at.saturating_sub(now));
                Finding::new(Warning, "clock", text).hint("date; timedatectl status")
            }
            Some(_) | None => Finding::new(Fine, "clock", "no branch is ahead of it"),
        });
        Ok(())
    }
}

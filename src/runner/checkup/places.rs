//! Checks of worktrees and what is kept in them (K58), the sandbox, disks, locks, checkouts that wait, and
//! the clock.

use super::Level::{Error, Ok as Fine, Warning};
use super::{Finding, Findings, Mend, existing, name, shown};
use crate::protocol::text::{escape, with_causes};
use crate::runner::{Runner, RunnerError, logs, sandbox};
use crate::store::slots::{self, Locked};
use crate::store::{RefName, checkout, forbids_programs, locks};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// A lock of another program that is this old was probably left behind.
pub(super) const LOCK_OLD: Duration = Duration::from_secs(10);
/// With less free space than this, in bytes, ticks will fail sooner or later; less than ten times of it is
/// worth a warning.
const FREE_MIN: u64 = 50 << 20;
/// The same limit for the number of files that may still be created.
const FILES_MIN: u64 = 1_000;
/// How far a commit's date may be ahead of this machine's clock without a warning, in seconds.
const AHEAD: i64 = 30;

impl Runner<'_> {
    pub(super) fn check_worktrees(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let root = &self.settings.worktree_dir;
        let Some(parent) = existing(root) else { return Ok(()) };
        if access(&parent, AccessFlags::W_OK | AccessFlags::X_OK).is_err() {
            let text = format!("'{}' cannot be written: no worktree can be made in it", shown(&parent));
            found.push(Finding::new(Error, "worktrees", text).mend(Mend::MoveWorktrees));
            return Ok(());
        }
        let device = |path: &Path| path.metadata().map(|m| m.dev()).ok();
        let same = device(&parent) == device(&self.repo.common_dir);
        let disk = if same { "the repository's disk" } else { "another disk than the repository" };
        let text = format!("at most {} in '{}', on {disk}", self.settings.jobs.get(), shown(root));
        found.push(Finding::new(Fine, "worktrees", text));
        if !self.repo.aynig_dir().join("slots").exists() {
            return Ok(());
        }
        let pool = self.known_pool();
        let mut kept = Vec::new();
        for number in pool.known() {
            let run = pool.peek(number).run;
            let id = run.as_ref().map(|r| escape(r.run_id.as_bytes())).unwrap_or_default();
            let slot = match pool.lock(number) {
                Ok(Locked::Taken(slot)) => slot,
                Ok(Locked::InUse) => {
                    // A runner that holds the slot between two runs has not yet noted the next run.
                    let by = if id.is_empty() { String::new() } else { format!(" by run {id}") };
                    found.push(Finding::new(Fine, "worktrees", format!("{number} is in use{by}")));
                    continue;
                }
                Ok(Locked::Denied(error)) => {
                    let text = format!("{number} is not used: {}", with_causes(&error));
                    let mend = Mend::TakeOver(pool.lock_path(number));
                    found.push(Finding::new(Warning, "worktrees", text).mend(mend));
                    continue;
                }
                Err(error) => {
                    let text = format!("{number} is not used: {}", with_causes(&error));
                    found.push(Finding::new(Error, "worktrees", text));
                    continue;
                }
            };
            if let Some(note) = slot.record().unreadable.clone() {
                let (path, dir) = (note.path, slot.dir().to_owned());
                let text = format!("{number} is not used: '{}' cannot be read: {}", shown(&path), note.why);
                let mend = Mend::MoveSlotAside { note: path, dir };
                found.push(Finding::new(Error, "worktrees", text).mend(mend));
                continue;
            }
            if let (Some(run), Err(error)) = (&run, slot.is_there()) {
                let on = name(&run.branch_name());
                let text =
                    format!("{number} holds work of run {id} on {on}, out of sight: {}", with_causes(&error));
                let mend = Mend::MoveSlotAside { note: slot.record_path(), dir: slot.dir().to_owned() };
                found.push(Finding::new(Warning, "worktrees", text).mend(mend));
                continue;
            }
            let lingers = run.as_ref().is_some_and(|r| r.lingering);
            match (run, self.is_inhabited(&slot)?) {
                (Some(run), false) if lingers => {
                    let on = name(&run.branch_name());
                    let text =
                        format!("{number} holds work of run {id} on {on}, which has ended: it will be kept");
                    found.push(Finding::new(Fine, "worktrees", text));
                }
                (Some(run), true) if lingers => {
                    let on = run.branch_name();
                    let text =
                        format!("{number} is kept by run {id} on {}, whose command has ended", name(&on));
                    found.push(Finding::new(Fine, "worktrees", text));
                    kept.push(on);
                }
                (Some(_), true) if !slot.is_inhabited()? => {
                    let text = format!(
                        "{number} has processes of run {id} in it, whose runner and guardian are gone"
                    );
                    found.push(Finding::new(Warning, "worktrees", text).mend(Mend::Gc(None)));
                }
                (_, true) => {
                    let text = format!("{number} has processes in it that no runner knows");
                    let mend = Mend::EndHolders(slot.hold_path());
                    found.push(Finding::new(Warning, "worktrees", text).mend(mend));
                }
                (Some(run), false) => {
                    let on = name(&run.branch_name());
                    let text = format!(
                        "{number} holds work of run {id} on {on}, which was cut short: it will be kept"
                    );
                    found.push(Finding::new(Warning, "worktrees", text).mend(Mend::Gc(None)));
                }
                (None, false) => {}
            }
            if let Some((branch, paths, bytes)) = slot.kept(&self.settings.keeping.keep) {
                let on = name(&RefName::new(branch));
                let (what, size) = (paths.len(), bytes >> 20);
                let text = format!("{number} keeps {what} files or folders of {on}, {size} MiB");
                found.push(Finding::new(Fine, "worktrees", text));
            }
        }
        if let Some(on) = kept.first().filter(|_| kept.len() >= self.settings.jobs.get()) {
            let text =
                "all of them are kept by runs whose commands have ended: a tick waits for a lease to end";
            found.push(Finding::new(Warning, "worktrees", text).mend(Mend::Cancel(on.clone())));
        }
        Ok(())
    }

    /// Reports whether the kernel can confine commands, and whether the settings ask for it.
    pub(super) fn check_sandbox(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let (has, needs) = (sandbox::version(), self.settings.sandbox.needs());
        let here = match has {
            0 => "this kernel has no Landlock".to_owned(),
            // Nothing newer is asked for.
            6.. => "this kernel has Landlock 6 or newer".to_owned(),
            has => format!("this kernel has Landlock {has}"),
        };
        found.push(match self.settings.sandbox.name() {
            None => Finding::new(Fine, "sandbox", format!("off; {here}")),
            Some(name) if has >= needs => Finding::new(Fine, "sandbox", format!("{name}; {here}")),
            Some(name) => {
                let text = format!("'{name}' needs Landlock {needs}, and {here}: every run is refused");
                Finding::new(Error, "sandbox", text)
            }
        });
        Ok(())
    }

    pub(super) fn check_disks(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let logs = logs::folder(self.repo).0;
        // Objects may be on a disk of their own, behind a symbolic link.
        let objects = self.repo.common_dir.join("objects");
        let places = [self.repo.common_dir.clone(), objects, self.settings.worktree_dir.clone(), logs];
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
            found.push(room(free, FREE_MIN, format!("{} MiB free where '{}' is", free >> 20, shown(&place))));
            #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
            let (files, left) = (stat.files() as u64, stat.files_available() as u64);
            // Some file systems have no limit on files, and report 0.
            if files > 0 && left < FILES_MIN * 10 {
                let text = format!("only {left} files may still be made where '{}' is", shown(&place));
                found.push(room(left, FILES_MIN, text));
            }
            if devices.len() == 1 && forbids_programs(&place) {
                let text = format!("'{}' is on a disk from which nothing may be started", shown(&place));
                found.push(Finding::new(Error, "disk", text).mend(Mend::AllowExec));
            }
        }
        Ok(())
    }

    /// Warns of Git's own locks that no tick waits for, but that keep something from being finished.
    fn check_other_locks(&self, found: &mut Findings) {
        let common = &self.repo.common_dir;
        let worktrees = std::fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
        // The lock in a slot is replaced together with the slot.
        let others = worktrees.filter(|e| !slots::is_slot(&e.path()));
        let indexes = others.map(|e| e.path().join("index.lock")).chain([common.join("index.lock")]);
        let all = indexes
            .map(|path| (path, "outcomes cannot be brought into that working tree"))
            .chain([(common.join("config.lock"), "the configuration cannot be changed")])
            .chain([(common.join("shallow.lock"), "nothing can be fetched")])
            // A command's own Git leaves it where it is killed, and Git passes over it without a word.
            .chain([(
                common.join("objects/maintenance.lock"),
                "'git maintenance' does nothing, gc included",
            )]);
        for (path, why) in all {
            let changed = path.symlink_metadata().and_then(|m| m.modified());
            let age = changed.ok().and_then(|t| t.elapsed().ok()).unwrap_or_default();
            if age >= LOCK_OLD {
                let text = format!("'{}' is held (age {}s): {why}", shown(&path), age.as_secs());
                let mend = Mend::RemoveLock { path, unless_used: true };
                found.push(Finding::new(Warning, "locks", text).mend(mend));
            }
        }
    }

    pub(super) fn check_locks(&self, found: &mut Findings) -> Result<(), RunnerError> {
        for lock in locks::list_locks(&self.repo.common_dir)? {
            let (path, age) = (shown(&lock.path), lock.age.as_secs());
            if lock.stale {
                let text = format!(
                    "'{path}' was left by a runner that was killed; the next tick removes it, as any verb does"
                );
                found.push(Finding::new(Warning, "locks", text).mend(Mend::Gc(None)));
            } else if !lock.ours && lock.age >= LOCK_OLD {
                let text = format!("'{path}' is held by another process (age {age}s)");
                let mend = Mend::RemoveLock { path: lock.path, unless_used: true };
                found.push(Finding::new(Error, "locks", text).mend(mend));
            }
        }
        self.check_other_locks(found);
        Ok(())
    }

    pub(super) fn check_checkouts(&self, found: &mut Findings) -> Result<(), RunnerError> {
        for (dir, branch) in checkout::pending(self.repo) {
            let (dir, branch) = (shown(&dir), name(&branch));
            let text =
                format!("what a run brought to '{dir}' ({branch}) is not all there, or not on the branch");
            found.push(Finding::new(Warning, "checkouts", text).mend(Mend::FinishCheckout));
        }
        Ok(())
    }

    pub(super) fn check_clock(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let now = self.clock.now();
        // A difference within the grace does no harm.
        let allowed = AHEAD.max(i64::try_from(self.settings.grace).unwrap_or(i64::MAX));
        // Branches of a remote carry the clocks of other machines.
        for (prefix, theirs) in
            [("refs/heads/", false), ("refs/remotes/", true), ("refs/aynig/remote/", true)]
        {
            let heads = self.store.read_heads(prefix)?.heads;
            let newest = heads.iter().filter_map(|(name, commit)| Some((commit.committed?, name))).max();
            if let Some((at, branch)) = newest
                && at > now.saturating_add(allowed)
            {
                let ahead = at.saturating_sub(now);
                let text = format!("{} is {ahead}s ahead of this machine's clock", name(branch));
                let mend = Mend::SetClock(theirs.then_some(ahead));
                found.push(Finding::new(Warning, "clock", text).mend(mend));
            }
        }
        if !found.iter().any(|f| f.subject == "clock") {
            found.push(Finding::new(Fine, "clock", "no branch is ahead of it"));
        }
        Ok(())
    }
}

/// Returns how much room there is, as a finding: with less than `min` ticks will fail sooner or later; less
/// than ten times of it is worth a warning.
fn room(left: u64, min: u64, text: String) -> Finding {
    match left {
        n if n < min => Finding::new(Error, "disk", text).mend(Mend::Gc(None)),
        n if n < min * 10 => Finding::new(Warning, "disk", text).mend(Mend::Gc(None)),
        _ => Finding::new(Fine, "disk", text),
    }
}

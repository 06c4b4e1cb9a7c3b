//! What git-aynig keeps in a repository outside of its commits, and how `uninstall` removes it.
//!
//! Nothing is removed while a run lives, and no run begins meanwhile. Work is never removed unasked: what a
//! slot holds is salvaged first, and attempts, and commits of submodules, go only on request. Hooks go first,
//! so that nothing new starts; then what `gc` removes, whatever its age; then refs, logs and the folder. If a
//! process is killed on the way, the next call removes what is left. Implements K14, K26, K41, K44 (how these
//! end).

use super::gc::{Collected, Collector, Expiry, Kind};
use super::slot::unreadable_note;
use super::{Runner, RunnerError, io, logs};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{HEARD_REFS, INBOX};
use crate::store::checkout;
use crate::store::disk::is_of_another_account;
use crate::store::hooks::Hooks;
use crate::store::slots::closing::Closed;
use crate::store::slots::{Locked, modules};
use crate::store::{RefName, Unread, remove_tree};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is to be removed.
#[derive(Debug, Default)]
pub struct Belongings {
    /// Files and folders of the hooks.
    pub hooks: Vec<PathBuf>,
    /// Hooks with lines that the user put there, which stay.
    pub by_hand: Vec<PathBuf>,
    /// Slots: worktrees of the pool.
    pub slots: Vec<PathBuf>,
    /// All other refs of git-aynig: of runs, messages, questions, pauses and flows, and of what was fetched
    /// of remotes.
    pub refs: Vec<RefName>,
    /// Folders, the logs among them.
    pub folders: Vec<PathBuf>,
    /// Work that is on no branch, as refs.
    pub attempts: Vec<RefName>,
    /// Commits of submodules, as folders.
    pub submodules: Vec<PathBuf>,
}

/// How often to look whether a slot that another process holds is free, and how long to wait between looks.
const LOOKS: usize = 40;
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// What came of a removal.
#[derive(Debug)]
pub enum Uninstalled {
    /// This was removed, and this could not be.
    Done(Collected),
    /// Nothing was removed: this has come to stand in the way.
    InUse(InUse),
}

/// Why nothing was removed.
#[derive(Debug)]
pub enum InUse {
    /// A run lives.
    Run,
    /// This working tree is yet to follow its branch.
    Checkout(PathBuf),
    /// This worktree of the pool, or its lock, is another account's, which alone can remove it.
    Another(PathBuf),
}

impl Belongings {
    /// True where there is nothing to remove; work counts where it is to be removed too.
    pub fn is_empty(&self, work: bool) -> bool {
        let has_work = !self.attempts.is_empty() || !self.submodules.is_empty();
        let rest =
            [self.hooks.is_empty(), self.slots.is_empty(), self.refs.is_empty(), self.folders.is_empty()];
        rest.iter().all(|is_empty| *is_empty) && !(work && has_work)
    }
}

impl Runner<'_> {
    /// Returns what stands in the way of an uninstallation, if anything does.
    pub fn in_use(&self) -> Result<Option<InUse>, RunnerError> {
        if self.repo.aynig_dir().join("slots").exists() && self.any_run_lives()? {
            let pool = self.pool()?;
            for number in pool.known() {
                match pool.lock(number)? {
                    Locked::Denied(_) => return Ok(Some(InUse::Another(pool.lock_path(number)))),
                    Locked::Taken(slot) => unreadable_note(&slot).map_or(Ok(()), Err)?,
                    Locked::InUse => {}
                }
            }
            return Ok(Some(InUse::Run));
        }
        // What another account's folder holds can't be removed by this one.
        let aynig = self.repo.aynig_dir();
        let own = ["commands", "runs"].iter().flat_map(|folder| children_of(&aynig.join(folder)));
        let own = own.filter(|path| path.is_dir() && !path.is_symlink());
        if let Some(dir) = self.slots()?.into_iter().chain(own).find(|dir| is_of_another_account(dir)) {
            return Ok(Some(InUse::Another(dir)));
        }
        Ok(checkout::pending(self.repo).into_iter().next().map(|(dir, _)| InUse::Checkout(dir)))
    }

    /// Returns everything that git-aynig keeps in this repository.
    pub fn belongings(&self) -> Result<Belongings, RunnerError> {
        let mut all = Belongings::default();
        let hooks = Hooks::of(self.repo)?;
        all.hooks = hooks.files()?;
        all.by_hand.extend(hooks.by_hand()?.into_iter().map(|(path, _)| path));
        all.slots = self.slots()?;
        for (name, id) in self.store.scan("refs/aynig/")? {
            match self.holds_work(&name, id)? {
                true => all.attempts.push(name),
                false => all.refs.push(name),
            }
        }
        all.refs.extend(self.symbolic_refs()?);
        all.submodules = children_of(&modules::kept(self.repo));
        let aynig = self.repo.aynig_dir();
        // A folder of logs in which only files of the user's are stays, with these.
        let own = logs::own_files(self.repo);
        let is_left = |folder: &PathBuf| {
            !own.iter().any(|file| file.starts_with(folder)) && !children_of(folder).is_empty()
        };
        let logs = logs::folders(self.repo).into_iter();
        let logs = logs.filter(|folder| !folder.starts_with(&aynig) && !is_left(folder));
        let folders = logs.chain([self.settings.worktree_dir.clone(), aynig.clone()]);
        all.folders.extend(folders.filter(|folder| folder.exists()));
        Ok(all)
    }

    /// Returns those of our names that are symbolic refs, made by another program. They hold nothing themselves.
    fn symbolic_refs(&self) -> Result<Vec<RefName>, RunnerError> {
        let unreadable = self.store.scan_all("refs/aynig/")?.unreadable;
        let is_symbolic = |why: &Unread| matches!(why, Unread::Symbolic(_));
        Ok(unreadable.into_iter().filter(|(_, why)| is_symbolic(why)).map(|(name, _)| name).collect())
    }

    /// True where a ref holds work that is on no branch: an attempt, or a message that hands over work that
    /// no branch has taken in.
    fn holds_work(&self, name: &RefName, id: ObjectId) -> Result<bool, RunnerError> {
        let is_below = |folder: &[u8]| name.as_bytes().starts_with(folder);
        if is_below(b"refs/aynig/attempts/") {
            return Ok(true);
        }
        if !is_below(INBOX) && !is_below(HEARD_REFS) {
            return Ok(false);
        }
        // A message that can't be read hands nothing over.
        let work = self.store.read_commit(id).ok().and_then(|commit| commit.parents.first().copied());
        // Where it can't be told, what may be the only copy of something stays.
        Ok(work.is_some_and(|work| !self.repo.git.is_on_a_branch(work).unwrap_or(false)))
    }

    /// Removes everything that git-aynig keeps in this repository; attempts and commits of submodules only
    /// with `work`. What can't be removed is listed in the result.
    pub fn remove_belongings(&self, work: bool) -> Result<Uninstalled, RunnerError> {
        let closed = Closed::close(self.repo)?;
        if let Some(why) = self.in_use()? {
            let _ = std::fs::remove_file(closed.path());
            return Ok(Uninstalled::InUse(why));
        }
        Hooks::of(self.repo)?.uninstall()?;
        let logs = Duration::ZERO;
        let attempts = if work { Duration::ZERO } else { Duration::MAX };
        let collect = || Collector::new(self, Expiry { logs, attempts }, false).collect();
        let mut out = collect();
        // A runner that locked a slot just now lets go of it as soon as it sees that an uninstallation is at
        // work.
        for _ in 0..LOOKS {
            if !out.failed.is_empty() || self.slots()?.is_empty() {
                break;
            }
            self.interrupt.wait(LOOK_EVERY);
            let more = collect();
            out.removed.extend(more.removed);
            out.failed.extend(more.failed);
        }
        // A slot that is left may be the user's, or hold the only copy of something.
        let left = self.slots()?;
        out.failed.extend(left.into_iter().map(|dir| io("remove", &dir)(ErrorKind::ResourceBusy.into())));
        if !out.failed.is_empty() {
            let _ = std::fs::remove_file(closed.path());
            return Ok(Uninstalled::Done(out));
        }
        let mut refs = Vec::new();
        for (name, id) in self.store.scan("refs/aynig/")? {
            if work || !self.holds_work(&name, id)? {
                refs.push((name, id));
            }
        }
        if !refs.is_empty() {
            self.repo.git.delete_refs(&self.repo.common_dir, &refs)?;
        }
        for name in self.symbolic_refs()? {
            self.repo.git.delete_symbolic_ref(&name)?;
        }
        let keep = (!work).then(|| modules::kept(self.repo));
        let aynig = self.repo.aynig_dir();
        // A folder may be in the user's working tree, so only files of git-aynig are removed.
        for path in logs::own_files(self.repo) {
            self.remove_path(&path, Kind::Log, &mut out);
        }
        for folder in logs::folders(self.repo) {
            let _ = std::fs::remove_dir(folder);
        }
        let _ = std::fs::remove_dir(&self.settings.worktree_dir);
        for path in children_of(&aynig) {
            let kept = keep.as_ref().is_some_and(|keep| *keep == path && !children_of(keep).is_empty());
            // The lock goes last: without it a run could begin beside what is left.
            if !kept && path != closed.path() {
                self.remove_path(&path, Kind::Leftover, &mut out);
            }
        }
        let _ = std::fs::remove_file(closed.path());
        let _ = std::fs::remove_dir(&aynig);
        // Git removes this folder, too, with its last worktree.
        let _ = std::fs::remove_dir(self.repo.common_dir.join("worktrees"));
        Ok(Uninstalled::Done(out))
    }

    /// Returns the folders of the slots that exist.
    fn slots(&self) -> Result<Vec<PathBuf>, RunnerError> {
        if !self.repo.aynig_dir().exists() && !self.repo.common_dir.join("worktrees").exists() {
            return Ok(Vec::new());
        }
        let pool = self.known_pool();
        let all = pool.registered().into_iter().map(|number| pool.borrow(number));
        Ok(all.filter(|slot| slot.exists()).map(|slot| slot.dir().to_owned()).collect())
    }

    fn remove_path(&self, path: &Path, kind: Kind, out: &mut Collected) {
        match remove_tree(path) {
            Ok(()) => out.removed(kind, path.to_owned()),
            Err(error) => out.failed.push(io("remove", path)(error)),
        }
    }
}

fn children_of(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

//! Brings an outcome into a working tree that has the branch checked out.
//!
//! The checkout is tried first, noted on disk, and done; only then does the caller swap the branch, as
//! `git merge` does it. So at no moment does the branch have an outcome that the next commit in the
//! working tree would take back. Where the runner loses the swap, or dies before it, the checkout is put
//! back, at once or by the next verb. Local changes that the outcome does not touch stay; where one would
//! be overwritten, no file of the user's changes. The work is done on a copy of the index. The index
//! itself is locked from before the first file changes until the branch has moved, so that no commit takes
//! half of the outcome. Calling sequence: [`fit`], [`note`], [`Noted::bring`], swap, [`Noted::arrived`] or
//! [`Noted::put_back`]. Implements K28.

pub(crate) mod half_done;
pub(crate) mod in_the_way;
pub(crate) mod index_lock;
pub(crate) mod sparse;
mod stage;
pub(crate) mod workspace;
pub(crate) mod worktrees;

use crate::protocol::id::ObjectId;
use crate::protocol::obstacle::Obstacle;
use crate::store::git::merge::CheckedOut;
use crate::store::repository::Repository;
use crate::store::{RefName, StoreError, io_error};
use index_lock::{Copy, IndexLock};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use stage::{Held, Stage};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use worktrees::Worktree;

/// Longest wait for another process at work in the index.
const HELD_MAX: Duration = Duration::from_secs(5);
/// The longest such wait where nothing depends on it, because the next tick tries again.
const HELD_LATER: Duration = Duration::from_millis(500);

/// A trial that is younger than this is believed without a second look.
const JUST_NOW: Duration = Duration::from_millis(100);

/// Whether an outcome can be brought into a working tree.
#[derive(Debug)]
pub(crate) enum Fit<T> {
    /// The outcome can be brought there.
    Fits(Box<T>),
    /// Something is in the way.
    Blocked(Obstacle),
}

/// A working tree in which an outcome was tried, and fits.
#[derive(Debug)]
pub(crate) struct Fitted {
    at: Worktree,
    copy: Copy,
    old: ObjectId,
    /// What the merge starts from: `old`, and what an earlier process brought.
    start: ObjectId,
    new: ObjectId,
    tried: Instant,
}

/// Tries a two-tree merge in a working tree without changing a file, nor the index.
pub(crate) fn fit(
    repo: &Repository,
    at: &Worktree,
    old: ObjectId,
    new: ObjectId,
) -> Result<Fit<Fitted>, StoreError> {
    match away(at) {
        Some(by) => Ok(Fit::Blocked(by)),
        None => try_on(repo, at, (old, new), Stage::Waits),
    }
}

/// Returns the obstacle of a working tree whose folder is away: its index would keep what the branch held
/// before, and the next commit there would take the outcome back. `None` where the folder is there.
fn away(at: &Worktree) -> Option<Obstacle> {
    let git_dir = at.git_dir.display();
    let why = || format!("the working tree of '{git_dir}' has the branch checked out, and is not here");
    at.away.then(why).map(Obstacle::Failed)
}

/// Tries as [`fit`] does, where an earlier process may have been killed in this stage of the checkout: what that
/// process wrote is no obstacle.
fn try_on(
    repo: &Repository,
    at: &Worktree,
    (old, new): (ObjectId, ObjectId),
    stage: Stage,
) -> Result<Fit<Fitted>, StoreError> {
    repo.git.with_plain_files(&at.git_dir)?;
    let copy = Copy::of(repo, &at.git_dir)?;
    repo.git.refresh_index(&at.git_dir, &at.dir, copy.path())?;
    let place = (&*at.git_dir, &*at.dir, copy.path());
    let merge = |start| repo.git.two_tree_merge(place, (start, new), None);
    let (mut start, mut merged) = (old, merge(old)?);
    let is_half_done = match stage {
        Stage::Waits => false,
        Stage::Begun => !matches!(merged, CheckedOut::Done(_)),
        // Files may be as before although the index has the outcome, where Git sees nothing to do.
        Stage::Back => true,
    };
    if is_half_done {
        let taken = repo.git.take_on(place, (old, new), old, stage)?;
        if taken.is_any() {
            start = repo.git.start(place, (old, new))?;
            merged = merge(start)?;
        }
    }
    Ok(match merged {
        CheckedOut::Done(_) => {
            Fit::Fits(Box::new(Fitted { at: at.clone(), copy, old, start, new, tried: Instant::now() }))
        }
        CheckedOut::InTheWay(words) => Fit::Blocked(Obstacle::Changes(words)),
        CheckedOut::Failed(words) => Fit::Blocked(Obstacle::Failed(words)),
    })
}

impl Fitted {
    /// Locks the index, unless its lock is passed in, and tries again where the index
    /// has changed since the trial.
    fn hold(
        self,
        repo: &Repository,
        locked: Option<IndexLock>,
        patience: Duration,
    ) -> Result<Fit<(Self, IndexLock)>, StoreError> {
        let lock = match locked {
            Some(lock) => Some(lock),
            None => IndexLock::take(repo, &self.at.git_dir, patience)?,
        };
        let Some(lock) = lock else {
            return Ok(Fit::Blocked(Obstacle::Lock(IndexLock::path(&self.at.git_dir))));
        };
        if self.copy.is_current() {
            return Ok(Fit::Fits(Box::new((self, lock))));
        }
        match fit(repo, &self.at, self.old, self.new)? {
            Fit::Fits(fitted) => Ok(Fit::Fits(Box::new((*fitted, lock)))),
            Fit::Blocked(by) => Ok(Fit::Blocked(by)),
        }
    }

    /// Changes the files, and then the index, whose lock the caller holds.
    fn bring(self, repo: &Repository, lock: &IndexLock) -> Result<CheckedOut, StoreError> {
        let Self { at, copy, start, new, tried, .. } = self;
        let place = (&*at.git_dir, &*at.dir, copy.path());
        // As little as possible is done under the lock: untracked files that were looked at just
        // now are not looked at again.
        let merged = match tried.elapsed() < JUST_NOW {
            true => repo.git.merge_tracked(place, (start, new), Some(lock))?,
            false => repo.git.two_tree_merge(place, (start, new), Some(lock))?,
        };
        if let CheckedOut::Done(_) = merged {
            copy.put(lock)?;
        }
        Ok(merged)
    }
}

/// The content of a note: a working tree that is about to follow its branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    dir: Vec<u8>,
    git_dir: Vec<u8>,
    branch: Vec<u8>,
    old: String,
    new: String,
}

/// A working tree whose checkout is noted on disk.
pub(crate) struct Noted {
    held: Held,
    at: Worktree,
    old: ObjectId,
    new: ObjectId,
    fitted: Option<Fitted>,
    lock: Option<IndexLock>,
    /// True where the index has the outcome.
    brought: bool,
    /// Git's warning where a file that the outcome removes could not be removed.
    kept: Option<String>,
}

/// How the checkout in a working tree ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finished {
    /// The working tree has the outcome now; Git's warning where a file that the outcome removes could not be
    /// removed.
    Arrived(PathBuf, Option<String>),
    /// There was nothing to bring, or it was put back.
    Moot(PathBuf),
    /// Something is in the way there.
    Blocked(PathBuf, Obstacle),
    /// Files of the outcome may stand there that can't be told from the user's changes any more, and so stay.
    Stands(PathBuf),
}

impl Finished {
    /// Returns the working tree's folder and what is in the way there.
    pub(crate) fn obstacle(&self) -> Option<(&Path, &Obstacle)> {
        match self {
            Finished::Blocked(dir, by) => Some((dir, by)),
            Finished::Arrived(..) | Finished::Moot(_) | Finished::Stands(_) => None,
        }
    }
}

/// Turns an error, with its cause, into an obstacle.
fn failed(error: &StoreError) -> Obstacle {
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    Obstacle::Failed(format!("{error}{}", source.unwrap_or_default()))
}

/// Notes that a working tree is to follow its branch.
pub(crate) fn note(repo: &Repository, fitted: Box<Fitted>, branch: &RefName) -> Result<Noted, StoreError> {
    let (at, old, new) = (fitted.at.clone(), fitted.old, fitted.new);
    Ok(Noted { fitted: Some(*fitted), ..noted(repo, at, branch, (old, new))? })
}

/// Writes the note as [`note`] does, for a checkout that was not tried yet.
fn noted(
    repo: &Repository,
    at: Worktree,
    branch: &RefName,
    (old, new): (ObjectId, ObjectId),
) -> Result<Noted, StoreError> {
    let folder = repo.aynig_dir().join("checkouts");
    repo.make(&folder)?;
    let note = Note {
        dir: at.dir.as_os_str().as_bytes().to_vec(),
        git_dir: at.git_dir.as_os_str().as_bytes().to_vec(),
        branch: branch.as_bytes().to_vec(),
        old: old.to_string(),
        new: new.to_string(),
    };
    let path = folder.join(format!("{}{}", uuid::Uuid::new_v4(), Stage::Waits.end()));
    let aside = path.with_extension(format!("json.{}", std::process::id()));
    let write = || {
        let file = File::options().write(true).create_new(true).open(&aside)?;
        let mut alive = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(file, _)| file);
        let file = match &mut alive {
            Ok(locked) => &mut **locked,
            Err(file) => file,
        };
        file.write_all(&serde_json::to_vec(&note)?)?;
        repo.share(&aside);
        std::fs::rename(&aside, &path)?;
        Ok(alive.ok())
    };
    let alive = write().map_err(|error| {
        let _ = std::fs::remove_file(&aside);
        io_error("write", &path)(error)
    })?;
    let held = Held { path, _alive: alive };
    Ok(Noted { held, at, old, new, fitted: None, lock: None, brought: false, kept: None })
}

/// Brings a working tree to what its branch holds, where the branch has moved already. The note is written,
/// and the index locked, before the first look at the working tree, which takes a while: an ordinary commit
/// there would take the outcome back. Where the working tree can't follow, the note stays for the next verb.
/// Where this tool itself failed, the lock stays too, until that verb has seen to it.
pub(crate) fn follow(
    repo: &Repository,
    at: &Worktree,
    branch: &RefName,
    old: ObjectId,
    new: ObjectId,
) -> Result<Finished, StoreError> {
    let blocked = |by| Ok(Finished::Blocked(at.dir.clone(), by));
    if let Some(by) = away(at) {
        return blocked(by);
    }
    let mut noted = noted(repo, at.clone(), branch, (old, new))?;
    let Some(lock) = IndexLock::take(repo, &at.git_dir, HELD_MAX)? else {
        return blocked(Obstacle::Lock(lock_of(at)));
    };
    match try_on(repo, at, (old, new), Stage::Waits) {
        Ok(Fit::Fits(fitted)) => noted.fitted = Some(*fitted),
        // The lock is released: the user has to get the obstacle out of the way, and
        // needs the index for that.
        Ok(Fit::Blocked(by)) => return blocked(by),
        Err(error) => {
            lock.leave();
            return Err(error);
        }
    }
    noted.lock = Some(lock);
    match noted.bring(repo) {
        Ok(()) => Ok(noted.arrived()),
        Err(by) => {
            noted.lock.take().into_iter().for_each(IndexLock::leave);
            blocked(by)
        }
    }
}

impl Noted {
    /// Returns the working tree as it was found.
    pub(crate) fn at(&self) -> &Worktree {
        &self.at
    }

    /// Locks the index, unless it is locked already, and brings the outcome into the working tree. Where that
    /// fails, the caller goes on with [`Noted::put_back`].
    pub(crate) fn bring(&mut self, repo: &Repository) -> Result<(), Obstacle> {
        let Some(fitted) = self.fitted.take() else { return Ok(()) };
        let held = fitted.hold(repo, self.lock.take(), HELD_MAX).map_err(|error| failed(&error))?;
        let (fitted, lock) = match held {
            Fit::Fits(held) => *held,
            Fit::Blocked(by) => return Err(by),
        };
        let lock = self.lock.insert(lock);
        self.held.enter(Stage::Begun).map_err(|error| failed(&error))?;
        match fitted.bring(repo, lock).map_err(|error| failed(&error))? {
            CheckedOut::Done(kept) => (self.brought, self.kept) = (true, kept),
            CheckedOut::InTheWay(words) => {
                self.lock = None;
                let _ = self.held.enter(Stage::Waits);
                return Err(Obstacle::Changes(words));
            }
            CheckedOut::Failed(words) => return Err(Obstacle::Failed(words)),
        }
        Ok(())
    }

    /// Ends the checkout, because the branch has moved: releases the index and removes the note. If the index
    /// can't be unlocked, which would stop the user's next command, the note stays, and the next verb of this
    /// tool tries again.
    pub(crate) fn arrived(mut self) -> Finished {
        if let Some(Err(error)) = self.lock.take().map(IndexLock::release) {
            return Finished::Blocked(self.at.dir, failed(&error));
        }
        let _ = std::fs::remove_file(self.held.path);
        Finished::Arrived(self.at.dir, self.kept)
    }

    /// Puts the working tree back to `tip`, which the branch holds because it did not move to the outcome
    /// (`None`: to the old commit). What can't be put back now stays noted. Where the index has the outcome then,
    /// which the user's next commit would take for the user's own, its lock stays until the next verb has seen to it.
    pub(crate) fn put_back(mut self, repo: &Repository, tip: Option<ObjectId>) -> Finished {
        let (dir, mut kept) = (self.at.dir, None);
        let begun = self.held.stage() != Stage::Waits;
        if let Some(lock) = self.lock.filter(|_| begun) {
            let to = tip.unwrap_or(self.old);
            let outcome = (self.old, self.new);
            let undone = Copy::of(repo, &self.at.git_dir).and_then(|copy| {
                repo.git.put_back((&self.at.git_dir, &dir, copy), outcome, to, &mut self.held, &lock)
            });
            let by = match undone {
                Ok(CheckedOut::Done(words)) => {
                    kept = words;
                    None
                }
                Ok(CheckedOut::InTheWay(words)) => return Finished::Blocked(dir, Obstacle::Changes(words)),
                Ok(CheckedOut::Failed(words)) => Some(Obstacle::Failed(words)),
                Err(error) => Some(failed(&error)),
            };
            if let Some(by) = by {
                if self.brought {
                    lock.leave();
                }
                return Finished::Blocked(dir, by);
            }
        }
        let _ = std::fs::remove_file(self.held.path);
        put(dir, kept)
    }
}

/// Returns how a checkout ended that was put back, with Git's warning where a file could not be removed.
fn put(dir: PathBuf, kept: Option<String>) -> Finished {
    if kept.is_some() { Finished::Arrived(dir, kept) } else { Finished::Moot(dir) }
}

/// A checkout that an earlier process noted and did not finish.
struct Left {
    held: Held,
    note: Note,
}

impl Left {
    /// Reads the note in a file; `None` where its writer lives, or where it can't be read.
    fn read(path: PathBuf) -> Option<Self> {
        let alive = match Flock::lock(File::open(&path).ok()?, FlockArg::LockExclusiveNonblock) {
            Ok(alive) => Some(alive),
            Err((_, Errno::EWOULDBLOCK)) => return None,
            Err(_) => None,
        };
        let note = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        Some(Self { held: Held { path, _alive: alive }, note })
    }

    fn branch(&self) -> RefName {
        RefName::new(self.note.branch.clone())
    }

    fn dir(&self) -> PathBuf {
        folder(&self.note.dir)
    }

    /// Brings the working tree to what its branch holds. Safe to repeat.
    fn finish(mut self, repo: &Repository, tip: Option<ObjectId>) -> Result<Finished, StoreError> {
        let finished = match (self.note.old.parse(), self.note.new.parse()) {
            (Ok(old), Ok(new)) => self.go_on(repo, (old, new), tip)?,
            (Err(_), _) | (_, Err(_)) => Finished::Moot(self.dir()),
        };
        if !matches!(finished, Finished::Blocked(..)) {
            let _ = std::fs::remove_file(self.held.path);
        }
        Ok(finished)
    }

    fn go_on(
        &mut self,
        repo: &Repository,
        (old, new): (ObjectId, ObjectId),
        tip: Option<ObjectId>,
    ) -> Result<Finished, StoreError> {
        let (dir, git_dir) = (self.dir(), folder(&self.note.git_dir));
        let (branch, stage) = (Some(self.branch()), self.held.stage());
        let tree = |id: ObjectId| repo.git.rev_parse(&repo.git_dir, &format!("{id}^{{tree}}"));
        // A working tree may have been moved since.
        let here = worktrees::list(repo)?.into_iter().find(|w| w.git_dir == git_dir);
        let Some(at) = here else { return Ok(Finished::Moot(dir)) };
        let dir = at.dir.clone();
        // Nothing can be told of an outcome whose object is gone, or where another branch was checked out over it.
        let is_known = repo.is_commit(new);
        if !is_known || at.branch != branch {
            let landed = is_known && tip.map_or(Ok(false), |tip| repo.git.is_ancestor(new, tip))?;
            let is_nothing = landed || stage == Stage::Waits;
            return Ok(if is_nothing { Finished::Moot(dir) } else { Finished::Stands(dir) });
        }
        let wanted = tree(new)?;
        let moved = match tip {
            Some(tip) => tree(tip)? == wanted,
            None => false,
        };
        if !moved && tip.map_or(Ok(false), |tip| repo.git.is_ancestor(new, tip))? {
            // The outcome had arrived, and the branch has moved on from there.
            return Ok(Finished::Moot(dir));
        }
        // A half-done checkout is left to the process that still works on it: a `git` may outlive its runner.
        let held = || Finished::Blocked(dir.clone(), Obstacle::Lock(IndexLock::path(&git_dir)));
        if IndexLock::is_ours(repo, &git_dir)? {
            return Ok(held());
        }
        if !moved && stage == Stage::Waits {
            return Ok(Finished::Moot(dir));
        }
        if let Some(by) = away(&at) {
            return Ok(Finished::Blocked(dir, by));
        }
        if !moved {
            let Some(lock) = IndexLock::take(repo, &git_dir, HELD_LATER)? else { return Ok(held()) };
            let to = tip.unwrap_or(old);
            let copy = Copy::of(repo, &git_dir)?;
            let undone = repo.git.put_back((&git_dir, &dir, copy), (old, new), to, &mut self.held, &lock)?;
            return Ok(match undone {
                CheckedOut::Done(kept) => put(dir, kept),
                CheckedOut::InTheWay(words) => Finished::Blocked(dir, Obstacle::Changes(words)),
                CheckedOut::Failed(words) => Finished::Blocked(dir, Obstacle::Failed(words)),
            });
        }
        let fitted = match try_on(repo, &at, (old, new), stage)? {
            Fit::Blocked(by) => return Ok(Finished::Blocked(dir, by)),
            Fit::Fits(fitted) => fitted,
        };
        match fitted.hold(repo, None, HELD_LATER)? {
            Fit::Blocked(by) => Ok(Finished::Blocked(dir, by)),
            Fit::Fits(held) => {
                let (fitted, lock) = *held;
                self.held.enter(Stage::Begun)?;
                Ok(match fitted.bring(repo, &lock)? {
                    CheckedOut::Done(kept) => {
                        lock.release()?;
                        Finished::Arrived(dir, kept)
                    }
                    CheckedOut::InTheWay(words) => {
                        self.held.enter(stage)?;
                        Finished::Blocked(dir, Obstacle::Changes(words))
                    }
                    CheckedOut::Failed(words) => Finished::Blocked(dir, Obstacle::Failed(words)),
                })
            }
        }
    }
}

fn folder(raw: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(raw.to_vec()))
}

/// Returns what earlier processes noted and did not finish. A note that is being written now is left out.
fn left(repo: &Repository) -> impl Iterator<Item = Left> {
    // The folder is read to its end first, since a note may be renamed while it is seen to.
    let entries = std::fs::read_dir(repo.aynig_dir().join("checkouts")).into_iter().flatten().flatten();
    let entries: Vec<_> = entries.collect();
    entries.into_iter().filter_map(|entry| {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "json") {
            return Left::read(path);
        }
        if is_old(&entry) {
            // The process was killed while it wrote this note, so that its checkout had not begun.
            let _ = std::fs::remove_file(path);
        }
        None
    })
}

/// Finishes what earlier processes noted and did not finish. `tip` reads a branch.
pub(crate) fn finish_all(
    repo: &Repository,
    tip: &dyn Fn(&RefName) -> Result<Option<ObjectId>, StoreError>,
) -> Vec<Finished> {
    let finish = |left: Left| {
        let dir = left.dir();
        let finished = tip(&left.branch()).and_then(|tip| left.finish(repo, tip));
        // A failed checkout does not keep the others back.
        finished.unwrap_or_else(|error| Finished::Blocked(dir, failed(&error)))
    };
    left(repo).map(finish).collect()
}

/// True while a process of this tool, or a child of one, is at work in a working tree.
pub(crate) fn is_written_by_us(repo: &Repository, at: &Worktree) -> bool {
    IndexLock::is_ours(repo, &at.git_dir).unwrap_or(false)
}

/// Returns the path of the lock of a working tree's index, be it held or not.
pub(crate) fn lock_of(at: &Worktree) -> PathBuf {
    IndexLock::path(&at.git_dir)
}

/// Returns the working trees that do not yet have what their branch holds, each with the branch.
pub(crate) fn pending(repo: &Repository) -> Vec<(PathBuf, RefName)> {
    left(repo).map(|left| (left.dir(), left.branch())).collect()
}

/// True for a file older than 2 s: a process may still be writing a younger one.
fn is_old(entry: &std::fs::DirEntry) -> bool {
    let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
    age.is_some_and(|age| age > Duration::from_secs(2))
}

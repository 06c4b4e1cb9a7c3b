//! Brings an outcome into a working tree that has the branch checked out.
//!
//! Tried first, noted, then swapped by the caller, then done; a later tick finishes what was noted and
//! not done. Local changes that the outcome does not touch stay; where one would be clobbered nothing
//! of the user's moves. All of it is done on a copy of the index; the index itself is locked from before the swap
//! until the copy has taken its place, so that nobody commits what the branch held before over what it holds now.
//! Calling sequence: [`fit`], [`Fitted::hold`], [`note`], swap, [`Noted::finish`] or [`Noted::drop_note`].
//! Implements K28.

use super::index_lock::{Copy, IndexLock};
use super::repository::Repository;
use super::worktrees::Worktree;
use super::{RefName, StoreError, write_aside};
use crate::protocol::id::ObjectId;
use crate::protocol::obstacle::Obstacle;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// Longest wait for somebody who is at work in the index.
const HELD_MAX: Duration = Duration::from_secs(5);
/// The same where nothing depends on it: the next tick tries again.
const HELD_LATER: Duration = Duration::from_millis(500);

/// Whether an outcome can be brought into a working tree.
#[derive(Debug)]
pub enum Fit<T> {
    /// It can.
    Fits(Box<T>),
    /// Something is in the way.
    Blocked(Obstacle),
}

/// A working tree that an outcome was tried in.
#[derive(Debug)]
pub struct Fitted {
    at: Worktree,
    copy: Copy,
    old: ObjectId,
    new: ObjectId,
}

/// The same, with its index locked.
#[derive(Debug)]
pub struct Held {
    fitted: Fitted,
    lock: IndexLock,
}

/// Tries a two-tree merge in a working tree without changing a file, nor the index.
pub fn fit(
    repo: &Repository,
    at: &Worktree,
    old: ObjectId,
    new: ObjectId,
) -> Result<Fit<Fitted>, StoreError> {
    if at.away {
        // Its index would say what the branch held before, and the next commit there take the outcome back.
        let git_dir = at.git_dir.display();
        let why = format!("the working tree of '{git_dir}' has the branch checked out, and is not here");
        return Ok(Fit::Blocked(Obstacle::Failed(why)));
    }
    try_on(repo, at, (old, new), false)
}

/// The same where an earlier process may have been killed on the way.
fn fit_again(
    repo: &Repository,
    at: &Worktree,
    old: ObjectId,
    new: ObjectId,
) -> Result<Fit<Fitted>, StoreError> {
    try_on(repo, at, (old, new), true)
}

fn try_on(
    repo: &Repository,
    at: &Worktree,
    (old, new): (ObjectId, ObjectId),
    again: bool,
) -> Result<Fit<Fitted>, StoreError> {
    let copy = Copy::of(repo, &at.git_dir)?;
    repo.git.refresh_index(&at.git_dir, &at.dir, copy.path())?;
    let merge = || repo.git.two_tree_merge(&at.git_dir, &at.dir, copy.path(), (old, new), None);
    let mut refusal = merge()?;
    if again && refusal.is_some() && repo.git.take_on(&at.git_dir, &at.dir, copy.path(), (old, new))? {
        refusal = merge()?;
    }
    Ok(match refusal {
        None => Fit::Fits(Box::new(Fitted { at: at.clone(), copy, old, new })),
        Some(words) => Fit::Blocked(Obstacle::Changes(words)),
    })
}

impl Fitted {
    /// Locks the index; what changed meanwhile is tried again.
    pub fn hold(self, repo: &Repository) -> Result<Fit<Held>, StoreError> {
        self.hold_within(repo, HELD_MAX)
    }

    fn hold_within(self, repo: &Repository, patience: Duration) -> Result<Fit<Held>, StoreError> {
        let Some(lock) = IndexLock::take(repo, &self.at.git_dir, patience)? else {
            return Ok(Fit::Blocked(Obstacle::Lock(IndexLock::path(&self.at.git_dir))));
        };
        if self.copy.is_current() {
            return Ok(Fit::Fits(Box::new(Held { fitted: self, lock })));
        }
        match fit(repo, &self.at, self.old, self.new)? {
            Fit::Fits(fitted) => Ok(Fit::Fits(Box::new(Held { fitted: *fitted, lock }))),
            Fit::Blocked(by) => Ok(Fit::Blocked(by)),
        }
    }
}

impl Held {
    /// The working tree as it was found.
    pub fn at(&self) -> &Worktree {
        &self.fitted.at
    }

    /// Brings the outcome into the working tree, and lets go of its index.
    fn bring(self, repo: &Repository) -> Result<Finished, StoreError> {
        let Fitted { at, copy, old, new } = self.fitted;
        let (git, lock) = (&repo.git, Some(&self.lock));
        let refusal = git.two_tree_merge(&at.git_dir, &at.dir, copy.path(), (old, new), lock)?;
        if let Some(words) = refusal {
            // It was tried before: only what was edited since is a local change.
            let edited = ["not uptodate", "would be overwritten", "would be removed"];
            let by = match edited.iter().any(|said| words.contains(said)) {
                true => Obstacle::Changes(words),
                false => Obstacle::Failed(words),
            };
            return Ok(Finished::Blocked(at.dir, by));
        }
        copy.put(&self.lock)?;
        Ok(Finished::Arrived(at.dir))
    }
}

/// A working tree that is about to follow its branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    dir: Vec<u8>,
    git_dir: Vec<u8>,
    branch: Vec<u8>,
    old: String,
    new: String,
}

/// A note on disk.
pub struct Noted {
    path: PathBuf,
    note: Note,
    /// By whoever wrote it; a later process has to take the index first.
    held: Option<Box<Held>>,
}

/// What became of a note of an earlier process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// The working tree has the outcome now.
    Arrived(PathBuf),
    /// The branch went elsewhere meanwhile: there is nothing to bring.
    Moot(PathBuf),
    /// Something is in the way there.
    Blocked(PathBuf, Obstacle),
}

/// Notes that a working tree is to follow its branch.
pub fn note(repo: &Repository, held: Box<Held>, branch: &RefName) -> Result<Noted, StoreError> {
    let Fitted { at, old, new, .. } = &held.fitted;
    let folder = repo.aynig_dir().join("checkouts");
    std::fs::create_dir_all(&folder).map_err(|source| StoreError::Io {
        what: "create",
        path: folder.clone(),
        source,
    })?;
    let note = Note {
        dir: at.dir.as_os_str().as_bytes().to_vec(),
        git_dir: at.git_dir.as_os_str().as_bytes().to_vec(),
        branch: branch.as_bytes().to_vec(),
        old: old.to_string(),
        new: new.to_string(),
    };
    let path = folder.join(format!("{}.json", uuid::Uuid::new_v4()));
    write_aside(&path, &serde_json::to_vec(&note).unwrap_or_default())?;
    Ok(Noted { path, note, held: Some(held) })
}

/// Has a working tree follow its branch, which has moved already.
pub fn follow(
    repo: &Repository,
    at: &Worktree,
    branch: &RefName,
    old: ObjectId,
    new: ObjectId,
) -> Result<Finished, StoreError> {
    match fit(repo, at, old, new)? {
        Fit::Blocked(by) => Ok(Finished::Blocked(at.dir.clone(), by)),
        Fit::Fits(fitted) => match fitted.hold(repo)? {
            Fit::Blocked(by) => Ok(Finished::Blocked(at.dir.clone(), by)),
            Fit::Fits(held) => note(repo, held, branch)?.finish(repo),
        },
    }
}

impl Noted {
    /// Brings the outcome into the working tree. Safe to repeat.
    pub fn finish(self, repo: &Repository) -> Result<Finished, StoreError> {
        let Noted { path, note, held } = self;
        let folder = |raw: Vec<u8>| PathBuf::from(std::ffi::OsString::from_vec(raw));
        let (dir, git_dir) = (folder(note.dir), folder(note.git_dir));
        let finished = match (held, note.old.parse(), note.new.parse()) {
            (Some(held), _, _) => held.bring(repo)?,
            (None, Ok(old), Ok(new)) => {
                // What is half done is left to whoever still does it: a `git` may outlive its runner.
                if IndexLock::is_ours(repo, &git_dir)? {
                    return Ok(Finished::Blocked(dir, Obstacle::Lock(IndexLock::path(&git_dir))));
                }
                let at = Worktree { dir: dir.clone(), git_dir, branch: None, busy: None, away: false };
                match fit_again(repo, &at, old, new)? {
                    Fit::Blocked(by) => Finished::Blocked(dir, by),
                    Fit::Fits(fitted) => match fitted.hold_within(repo, HELD_LATER)? {
                        Fit::Blocked(by) => Finished::Blocked(dir, by),
                        Fit::Fits(held) => held.bring(repo)?,
                    },
                }
            }
            (None, _, _) => Finished::Moot(dir),
        };
        if !matches!(finished, Finished::Blocked(..)) {
            let _ = std::fs::remove_file(path);
        }
        Ok(finished)
    }

    /// The working tree.
    pub fn dir(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(self.note.dir.clone()))
    }

    /// Forgets the note: the swap did not happen.
    pub fn drop_note(self) {
        let _ = std::fs::remove_file(self.path);
    }

    fn is_moot(&self, repo: &Repository, tip: Option<ObjectId>) -> bool {
        let path = PathBuf::from(std::ffi::OsString::from_vec(self.note.git_dir.clone()));
        let branch = RefName::new(self.note.branch.clone());
        let here = super::worktrees::list(repo)
            .is_ok_and(|all| all.iter().any(|w| w.git_dir == path && w.branch.as_ref() == Some(&branch)));
        tip.map(|tip| tip.to_string()).as_deref() != Some(&*self.note.new) || !here
    }
}

/// Finishes what earlier processes noted and did not do. `tip` reads a branch.
pub fn finish_all(
    repo: &Repository,
    tip: &dyn Fn(&RefName) -> Result<Option<ObjectId>, StoreError>,
) -> Result<Vec<Finished>, StoreError> {
    let Ok(entries) = std::fs::read_dir(repo.aynig_dir().join("checkouts")) else {
        return Ok(Vec::new());
    };
    let mut done = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if !is_old(&entry) {
            continue;
        }
        if path.extension().is_none_or(|e| e != "json") {
            // What somebody was writing who was killed there: no swap had begun.
            let _ = std::fs::remove_file(path);
            continue;
        }
        let Some(note) = std::fs::read(&path).ok().and_then(|raw| serde_json::from_slice::<Note>(&raw).ok())
        else {
            continue;
        };
        let noted = Noted { path, note, held: None };
        if noted.is_moot(repo, tip(&RefName::new(noted.note.branch.clone()))?) {
            let dir = PathBuf::from(std::ffi::OsString::from_vec(noted.note.dir.clone()));
            noted.drop_note();
            done.push(Finished::Moot(dir));
        } else {
            done.push(noted.finish(repo)?);
        }
    }
    Ok(done)
}

/// Working trees that do not yet have what their branch holds, and the branch.
pub fn pending(repo: &Repository) -> Vec<(PathBuf, RefName)> {
    let Ok(entries) = std::fs::read_dir(repo.aynig_dir().join("checkouts")) else { return Vec::new() };
    let old = entries.flatten().filter(is_old).filter_map(|entry| std::fs::read(entry.path()).ok());
    let notes = old.filter_map(|raw| serde_json::from_slice::<Note>(&raw).ok());
    let path = |raw| PathBuf::from(std::ffi::OsString::from_vec(raw));
    notes.map(|note| (path(note.dir), RefName::new(note.branch))).collect()
}

/// A note younger than this may belong to a swap that is under way.
fn is_old(entry: &std::fs::DirEntry) -> bool {
    let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
    age.is_some_and(|age| age > Duration::from_secs(2))
}

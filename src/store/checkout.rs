//! Brings an outcome into a working tree that has the branch checked out.
//!
//! Tried first, noted, then swapped by the caller, then done; a later tick finishes what was noted and
//! not done. Local changes that the outcome does not touch stay; where one would be clobbered nothing
//! of the user's moves. Calling sequence: [`fit`], [`note`], swap, [`Noted::finish`] or [`Noted::drop_note`].
//! Implements K28.

use super::repository::Repository;
use super::worktrees::Worktree;
use super::{RefName, StoreError, write_aside};
use crate::protocol::id::ObjectId;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Whether an outcome can be brought into a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It can.
    Fits,
    /// Local changes are in the way; Git's own words.
    Clobbers(String),
}

/// Tries a two-tree merge in a working tree without changing a file.
pub fn fit(repo: &Repository, at: &Worktree, old: ObjectId, new: ObjectId) -> Result<Fit, StoreError> {
    repo.git.refresh_index(&at.git_dir, &at.dir)?;
    repo.git.two_tree_merge(&at.git_dir, &at.dir, old, new, true).map(|refusal| match refusal {
        None => Fit::Fits,
        Some(words) => Fit::Clobbers(words),
    })
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
}

/// What became of a note of an earlier process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// The working tree has the outcome now.
    Arrived(PathBuf),
    /// The branch went elsewhere meanwhile: there is nothing to bring.
    Moot(PathBuf),
    /// Local changes are in the way; Git's own words.
    Blocked(PathBuf, String),
}

/// Notes that `at` is to go from `old` to `new`.
pub fn note(
    repo: &Repository,
    at: &Worktree,
    branch: &RefName,
    old: ObjectId,
    new: ObjectId,
) -> Result<Noted, StoreError> {
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
    Ok(Noted { path, note })
}

impl Noted {
    /// Brings the outcome into the working tree. Safe to repeat.
    pub fn finish(self, repo: &Repository) -> Result<Finished, StoreError> {
        self.bring(repo, false)
    }

    fn bring(self, repo: &Repository, again: bool) -> Result<Finished, StoreError> {
        let path = |raw: &Vec<u8>| PathBuf::from(std::ffi::OsString::from_vec(raw.clone()));
        let (dir, git_dir) = (path(&self.note.dir), path(&self.note.git_dir));
        let (Ok(old), Ok(new)) = (self.note.old.parse(), self.note.new.parse()) else {
            self.drop_note();
            return Ok(Finished::Moot(dir));
        };
        repo.git.refresh_index(&git_dir, &dir)?;
        let merge = || repo.git.two_tree_merge(&git_dir, &dir, old, new, false);
        let mut refusal = merge()?;
        // Whoever tried before may have been killed on the way.
        if again && refusal.is_some() && repo.git.take_on(&git_dir, &dir, old, new)? {
            refusal = merge()?;
        }
        match refusal {
            None => {
                self.drop_note();
                Ok(Finished::Arrived(dir))
            }
            Some(words) => Ok(Finished::Blocked(dir, words)),
        }
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
        if path.extension().is_none_or(|e| e != "json") || !is_old(&entry) {
            continue;
        }
        let Some(note) = std::fs::read(&path).ok().and_then(|raw| serde_json::from_slice::<Note>(&raw).ok())
        else {
            continue;
        };
        let noted = Noted { path, note };
        if noted.is_moot(repo, tip(&RefName::new(noted.note.branch.clone()))?) {
            let dir = PathBuf::from(std::ffi::OsString::from_vec(noted.note.dir.clone()));
            noted.drop_note();
            done.push(Finished::Moot(dir));
        } else {
            done.push(noted.bring(repo, true)?);
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
    age.is_some_and(|age| age > std::time::Duration::from_secs(2))
}

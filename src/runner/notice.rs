//! Notices that are owed: runs and commits of which a person may have to be notified.
//!
//! Where `aynig.notify` is set, a file says of each run, from its claim on, that its end was not looked at
//! yet, and of each commit that says why a branch does not land, that it was not reported yet. The runner
//! holds a lock on the file, and hands the lock to the process that gives the notice. That process removes
//! the file when the program has ended. A file that no process holds was left by a killed one: the next verb
//! looks, once, at what the branch came to. Where the file can't be written, no notice is owed: a run never
//! waits for a notice. Implements K53 (each once).

use super::Runner;
use crate::protocol::id::ObjectId;
use crate::store::RefName;
use crate::store::beneath::Root;
use crate::store::repository::Repository;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder of these files, in `aynig/`.
const FOLDER: &str = "notices";
/// The end of the name of a file that was taken over from a killed runner.
const AGAIN: &str = ".again";
/// The beginning of the name of a file that is being written; `gc` removes what is left of these.
const BEGUN: &str = ".new-";
/// Most notes that are looked at, and most bytes of one.
const NOTES_MAX: usize = 10_000;
const NOTE_MAX: u64 = 16 << 10;

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Due {
    /// What the run with this id ended in.
    Run(String),
    Commit(ObjectId),
}

/// A notice that may be owed, with the lock on its file.
#[derive(Debug)]
pub(crate) struct Owed {
    /// What is to be looked at.
    pub due: Due,
    /// The branch to look at.
    pub branch: RefName,
    /// The remote whose branch that is.
    pub remote: Option<String>,
    name: String,
    path: PathBuf,
    /// The locked file. No other process looks at it while a copy of this is open.
    held: File,
}

impl Owed {
    /// Returns the branch, and its remote.
    pub(crate) fn at(&self) -> (&RefName, Option<&str>) {
        (&self.branch, self.remote.as_deref())
    }

    /// Returns the run's id, where the notice is about a run.
    pub(crate) fn run_id(&self) -> Option<&str> {
        match &self.due {
            Due::Run(id) => Some(id),
            Due::Commit(_) => None,
        }
    }

    /// Removes the file: nothing is owed any more.
    pub(crate) fn settle(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Returns the name under which another process settles the notice ([`settle`]), and the locked file that
    /// it holds meanwhile.
    pub(crate) fn hand_over(&self) -> io::Result<(&str, File)> {
        Ok((&self.name, self.held.try_clone()?))
    }
}

/// Settles the notice that was handed over under this name.
pub(crate) fn settle(repo: &Repository, name: &str) {
    if uuid::Uuid::try_parse(name.strip_suffix(AGAIN).unwrap_or(name)).is_ok()
        && let Ok(root) = Root::open(&repo.aynig_dir())
    {
        let _ = root.remove(&Path::new(FOLDER).join(name));
    }
}

#[derive(Serialize, Deserialize)]
struct Note {
    branch: Vec<u8>,
    remote: Option<String>,
    /// The commit to report, where the notice is not about a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
}

impl Runner<'_> {
    /// Notes that this run's end is to be looked at, where a notice program is set.
    pub(super) fn owe(&self, run_id: &str, branch: &RefName) -> Option<Owed> {
        uuid::Uuid::try_parse(run_id).ok()?;
        self.owe_as(run_id, Due::Run(run_id.to_owned()), branch)
    }

    /// Notes that this commit is to be reported, where a notice program is set.
    pub(super) fn owe_commit(&self, commit: ObjectId, branch: &RefName) -> Option<Owed> {
        self.owe_as(&uuid::Uuid::new_v4().to_string(), Due::Commit(commit), branch)
    }

    fn owe_as(&self, name: &str, due: Due, branch: &RefName) -> Option<Owed> {
        if self.settings.notify.is_empty() {
            return None;
        }
        let root = Root::open(&self.repo.aynig_dir()).ok()?;
        root.create_dirs(Path::new(FOLDER), 0o700).ok()?;
        let remote = self.settings.remote.clone();
        let commit = match &due {
            Due::Run(_) => None,
            Due::Commit(commit) => Some(commit.to_string()),
        };
        let note = Note { branch: branch.as_bytes().to_vec(), remote: remote.clone(), commit };
        let held = noted(&root, name, &serde_json::to_vec(&note).ok()?)?;
        let path = self.repo.aynig_dir().join(FOLDER).join(name);
        Some(Owed { due, branch: branch.clone(), remote, name: name.to_owned(), path, held })
    }
}

/// Writes the file of this name, and holds its lock. A new file gets its name once it is whole and locked:
/// another process that looks for what killed runners left would take it for half written, and remove it.
fn noted(root: &Root, name: &str, note: &[u8]) -> Option<File> {
    let path = Path::new(FOLDER).join(name);
    let is_new = root.file(&path).is_err();
    let begun = if is_new { Path::new(FOLDER).join(format!("{BEGUN}{name}")) } else { path.clone() };
    let mut held = root.lock_file(&begun, 0o600).ok()?;
    held.try_lock().ok()?;
    held.write_all(note).ok()?;
    if is_new {
        root.rename(&begun, &path).ok()?;
    }
    Some(held)
}

/// Locks the file of this name, if no other process holds it, and returns it with what it says.
fn unheld(root: &Root, name: &str) -> Option<(File, Option<Note>)> {
    let path = Path::new(FOLDER).join(name);
    let held = root.file(&path).ok()?;
    held.try_lock().ok()?;
    let note = root.read(&path, NOTE_MAX).ok();
    Some((held, note.and_then(|raw| serde_json::from_slice(&raw).ok())))
}

/// Returns the notices that killed processes still owed. Each is returned once; where its run may still end,
/// it is left.
pub(crate) fn left(repo: &Repository, may_still_end: &dyn Fn(&Owed) -> bool) -> Vec<Owed> {
    let Ok(root) = Root::open(&repo.aynig_dir()) else { return Vec::new() };
    let entries = root.list(Path::new(FOLDER), NOTES_MAX).unwrap_or_default();
    let take = |name: &str| {
        if name.starts_with(BEGUN) {
            return None;
        }
        let path = Path::new(FOLDER).join(name);
        let (held, note) = unheld(&root, name)?;
        let branch = note.as_ref().map(|note| RefName::new(note.branch.clone())).filter(RefName::is_valid);
        let due = |note: &Note| match &note.commit {
            None => Some(Due::Run(name.to_owned())),
            Some(commit) => commit.parse().ok().map(Due::Commit),
        };
        let due = note.as_ref().and_then(due);
        let (Some(note), Some(branch), Some(due), false) = (note, branch, due, name.ends_with(AGAIN)) else {
            // The file is half written, foreign, or was given out before to a process that was killed in
            // turn.
            let _ = root.remove(&path);
            return None;
        };
        let (again, path_now) = (format!("{name}{AGAIN}"), PathBuf::new());
        let mut owed = Owed { due, branch, remote: note.remote, name: again, path: path_now, held };
        if may_still_end(&owed) {
            return None;
        }
        let again = Path::new(FOLDER).join(&owed.name);
        root.rename(&path, &again).ok()?;
        owed.path = repo.aynig_dir().join(again);
        Some(owed)
    };
    entries.iter().filter_map(|entry| take(entry.name.to_str()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// K53: a look for what killed runners left, at whatever moment, takes nothing that is being noted.
    #[test]
    fn a_look_for_what_is_owed_takes_no_note_from_a_living_runner() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        root.create_dirs(Path::new(FOLDER), 0o700).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for entry in root.list(Path::new(FOLDER), NOTES_MAX).unwrap() {
                        let name = entry.name.to_str().unwrap();
                        if !name.starts_with(BEGUN)
                            && unheld(&root, name).is_some_and(|(_, note)| note.is_none())
                        {
                            let _ = root.remove(&Path::new(FOLDER).join(name));
                        }
                    }
                }
            });
            let note =
                serde_json::to_vec(&Note { branch: b"refs/heads/x".to_vec(), remote: None, commit: None })
                    .unwrap();
            let ids = (0..3000).map(|_| uuid::Uuid::new_v4().to_string());
            let lost = ids.filter(|id| {
                let held = noted(&root, id, &note);
                let path = Path::new(FOLDER).join(id);
                let is_lost = held.is_none() || root.read(&path, NOTE_MAX).ok().as_ref() != Some(&note);
                let _ = root.remove(&path);
                is_lost
            });
            let lost = lost.count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(lost, 0);
        });
    }
}

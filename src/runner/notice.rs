//! Notices that are owed: which run may end in something that a person should hear of.
//!
//! Where `aynig.notify` is set, a file says of each run, from its claim on, that its end was not looked at yet; its
//! runner holds a lock on it. A file without a holder is of a runner that was killed: the next verb looks at what the branch
//! came to, once. What can't be noted is not owed: a run never waits for a notice. Implements K53 (each once).

use super::Runner;
use crate::store::RefName;
use crate::store::beneath::Root;
use crate::store::repository::Repository;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder in `aynig/`.
const FOLDER: &str = "notices";
/// How the name ends of one that was taken over from a runner that was killed.
const AGAIN: &str = ".again";
/// How the name of one begins that is being written; `gc` removes what is left of these.
const BEGUN: &str = ".new-";
/// Most notes that are looked at, and most bytes of one.
const NOTES_MAX: usize = 10_000;
const NOTE_MAX: u64 = 16 << 10;

/// That a run's end is to be looked at.
#[derive(Debug)]
pub(crate) struct Owed {
    /// The run.
    pub run_id: String,
    /// Its branch.
    pub branch: RefName,
    /// The remote whose branch that is.
    pub remote: Option<String>,
    path: PathBuf,
    /// No other tick looks at it while this is held.
    _held: Flock<File>,
}

impl Owed {
    /// Whose end it is.
    pub(crate) fn at(&self) -> (&RefName, Option<&str>) {
        (&self.branch, self.remote.as_deref())
    }
}

#[derive(Serialize, Deserialize)]
struct Note {
    branch: Vec<u8>,
    remote: Option<String>,
}

impl Owed {
    /// Nothing is owed any more.
    pub(crate) fn settle(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Runner<'_> {
    /// Notes that this run's end is to be looked at, where a notice program is set.
    pub(super) fn owe(&self, run_id: &str, branch: &RefName) -> Option<Owed> {
        if self.settings.notify.is_empty() || uuid::Uuid::try_parse(run_id).is_err() {
            return None;
        }
        let root = Root::open(&self.repo.aynig_dir()).ok()?;
        root.create_dirs(Path::new(FOLDER), 0o700).ok()?;
        let name = Path::new(FOLDER).join(run_id);
        let remote = self.settings.remote.clone();
        let note = Note { branch: branch.as_bytes().to_vec(), remote: remote.clone() };
        let _held = noted(&root, run_id, &serde_json::to_vec(&note).ok()?)?;
        let path = self.repo.aynig_dir().join(name);
        Some(Owed { run_id: run_id.to_owned(), branch: branch.clone(), remote, path, _held })
    }
}

/// Holds the file that notes a run, with this in it. A new one gets its name once it is whole and held: another process
/// that looks for what killed runners left would take it for half written, and remove it.
fn noted(root: &Root, run_id: &str, note: &[u8]) -> Option<Flock<File>> {
    let name = Path::new(FOLDER).join(run_id);
    let is_new = root.file(&name).is_err();
    let begun = if is_new { Path::new(FOLDER).join(format!("{BEGUN}{run_id}")) } else { name.clone() };
    let mut held = Flock::lock(root.lock_file(&begun, 0o600).ok()?, FlockArg::LockExclusiveNonblock).ok()?;
    held.write_all(note).ok()?;
    if is_new {
        root.rename(&begun, &name).ok()?;
    }
    Some(held)
}

/// The file that notes a run, and what it says, where no runner holds it.
fn unheld(root: &Root, name: &str) -> Option<(Flock<File>, Option<Note>)> {
    let path = Path::new(FOLDER).join(name);
    let held = Flock::lock(root.file(&path).ok()?, FlockArg::LockExclusiveNonblock).ok()?;
    let note = root.read(&path, NOTE_MAX).ok();
    Some((held, note.and_then(|raw| serde_json::from_slice(&raw).ok())))
}

/// What runners that were killed still owed. Each is given out once, and left where its run may still end.
pub(crate) fn left(repo: &Repository, may_still_end: &dyn Fn(&Owed) -> bool) -> Vec<Owed> {
    let Ok(root) = Root::open(&repo.aynig_dir()) else { return Vec::new() };
    let entries = root.list(Path::new(FOLDER), NOTES_MAX).unwrap_or_default();
    let take = |name: &str| {
        if name.starts_with(BEGUN) {
            return None;
        }
        let path = Path::new(FOLDER).join(name);
        let (_held, note) = unheld(&root, name)?;
        let branch = note.as_ref().map(|note| RefName::new(note.branch.clone())).filter(RefName::is_valid);
        let (Some(note), Some(branch), false) = (note, branch, name.ends_with(AGAIN)) else {
            // Half written, foreign, or given out before by a tick that was killed in turn.
            let _ = root.remove(&path);
            return None;
        };
        let mut owed =
            Owed { run_id: name.to_owned(), branch, remote: note.remote, path: PathBuf::new(), _held };
        if may_still_end(&owed) {
            return None;
        }
        let again = Path::new(FOLDER).join(format!("{name}{AGAIN}"));
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

    /// K53: who looks for what killed runners left, at whatever moment, takes nothing that is being noted.
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
            let note = serde_json::to_vec(&Note { branch: b"refs/heads/x".to_vec(), remote: None }).unwrap();
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

//! Branches that wait for a slot, and those that a run wants to be looked at.
//!
//! A chain that finds no slot for a branch notes it ([`note`]), and the process that finds a free slot takes
//! the note on ([`Backlog::take`]). The note is removed once the branch was looked at ([`Taken::done`]), so that
//! no process's death loses it. `queue` decides which process looks, and when. A run notes in its private
//! folder which branches it set. Implements K14 (pending), K40.

use super::{RunnerError, io};
use crate::store::beneath::apart;
use crate::store::repository::Repository;
use crate::store::{RefName, name_for, read_plain};
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A branch of a repository that is to be looked at. A command may have written this, so none of it is
/// trusted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Woken {
    /// The Git directory that all worktrees of the repository share; in a note by an older version, a
    /// worktree's.
    pub git_dir: PathBuf,
    pub branch: RefName,
}

/// Most that is read of what a run noted, in bytes.
const WAKE_MAX: u64 = 1 << 20;
/// The longest note, in bytes.
const NOTE_MAX: u64 = 64 << 10;

/// Notes that a branch waits for a slot, or for the next process that looks. `run_id` is the id that the run
/// will have, as its pusher was told.
pub(crate) fn note(repo: &Repository, branch: &RefName, run_id: Option<&str>) -> Result<(), RunnerError> {
    let folder = folder(repo);
    repo.make(&folder)?;
    let told = run_id.map(|id| [b"\0", id.as_bytes()].concat()).unwrap_or_default();
    let note = folder.join(name_for(branch.as_bytes()));
    Ok(repo.write(&note, &[branch.as_bytes(), &told].concat())?)
}

fn folder(repo: &Repository) -> PathBuf {
    repo.aynig_dir().join("pending")
}

/// A branch that is noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub branch: RefName,
    /// When it was noted.
    pub since: SystemTime,
}

/// A note that this process has in hand. No other process takes the note, which is free again once this
/// process dies.
#[derive(Debug)]
pub struct Taken {
    pub branch: RefName,
    /// The id that its run was promised.
    pub run_id: Option<String>,
    path: PathBuf,
    file: Flock<File>,
}

/// Returns all notes, the oldest first, whether a process has taken them on or not.
pub(crate) fn notes(repo: &Repository) -> Vec<Note> {
    let read = |(since, path): (SystemTime, PathBuf)| Some(Note { branch: read_at(&path)?.0, since });
    listed(repo).into_iter().filter_map(read).collect()
}

/// Takes the note of this branch on; `None` where there is none, or another process has it.
pub(crate) fn take(repo: &Repository, branch: &RefName) -> Option<Taken> {
    take_at(&folder(repo).join(name_for(branch.as_bytes())))
}

/// True if there is a note that no process has taken on. Nothing is listed to its end for that.
pub(crate) fn any_free(repo: &Repository) -> bool {
    repo.pending().any(|entry| lock_at(&entry.path()).is_some() && read_at(&entry.path()).is_some())
}

/// The notes as a process works them off, the oldest first. The folder is listed again only when all notes of
/// the last listing are gone or taken: where many branches wait, a listing for each run would take longer
/// than the runs.
#[derive(Debug, Default)]
pub struct Backlog {
    listed: VecDeque<PathBuf>,
    /// The lock by which this process is one of those that work notes off.
    place: Option<File>,
}

impl Backlog {
    /// True if there is a note that no process has taken on; the oldest is the first of the listing then. The
    /// note is locked for a moment, so only a process that may take it on is to call this.
    pub(crate) fn has_first(&mut self, repo: &Repository) -> bool {
        if self.skip_taken() {
            return true;
        }
        self.listed = listed(repo).into_iter().map(|(_, path)| path).collect();
        self.skip_taken()
    }

    /// Takes one of so many places for processes that work notes off, unless this process has one. False where
    /// other processes have all of them.
    pub(crate) fn take_place(&mut self, repo: &Repository, places: usize) -> bool {
        for number in 0..places {
            if self.place.is_some() {
                return true;
            }
            let path = repo.aynig_dir().join(format!("pending.{number}.lock"));
            match try_lock(repo, &path) {
                Ok(locked) => self.place = locked,
                // Where no lock can be made, the work matters more than the limit.
                Err(_) => return true,
            }
        }
        self.place.is_some()
    }

    /// Leaves the place to other processes.
    pub(crate) fn leave_place(&mut self) {
        // Closing the file is not enough: a child that another thread forks at this moment would keep the
        // lock a little longer.
        if let Some(file) = self.place.take() {
            let _ = file.unlock();
        }
    }

    /// Drops from the front what is gone, is taken, or is no note. Returns true if a free note is in front
    /// then.
    fn skip_taken(&mut self) -> bool {
        while let Some(path) = self.listed.front() {
            if lock_at(path).is_some() && read_at(path).is_some() {
                return true;
            }
            self.listed.pop_front();
        }
        false
    }

    /// Takes on at most `most` of the notes of the last listing, the oldest first.
    pub(crate) fn take(&mut self, most: usize) -> Vec<Taken> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(path) = self.listed.pop_front()
        {
            taken.extend(take_at(&path));
        }
        taken
    }

    /// True where there are notes besides the `taken` ones, whether other processes have them in hand or not.
    pub(crate) fn has_more(&mut self, repo: &Repository, taken: usize) -> bool {
        !self.listed.is_empty() || repo.pending().nth(taken).is_some()
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.leave_place();
    }
}

/// Returns what is in the folder of notes, each entry with the time of its last change, the oldest first.
fn listed(repo: &Repository) -> Vec<(SystemTime, PathBuf)> {
    let entries = std::fs::read_dir(folder(repo)).into_iter().flatten().flatten();
    let dated =
        |entry: std::fs::DirEntry| Some((entry.metadata().and_then(|m| m.modified()).ok()?, entry.path()));
    let mut all: Vec<_> = entries.filter_map(dated).collect();
    all.sort();
    all
}

/// Locks a file of this repository, which is made if it is missing; `None` where another process has the lock.
pub(crate) fn try_lock(repo: &Repository, path: &Path) -> Result<Option<File>, RunnerError> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    let file = options.open(path).map_err(io("open", path))?;
    repo.share(path);
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(io("lock", path)(error)),
    }
}

fn lock_at(path: &Path) -> Option<Flock<File>> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = File::options().read(true).write(true).custom_flags(flags).open(path).ok()?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

fn read_at(path: &Path) -> Option<(RefName, Option<String>)> {
    parse(path, &read_plain(path, NOTE_MAX).ok()?)
}

/// Takes on the note at this path; `None` where the note is gone, or another process has taken it on.
fn take_at(path: &Path) -> Option<Taken> {
    let file = lock_at(path)?;
    let (branch, run_id) = read_at(path).filter(|_| is_at(&file, path))?;
    // A promised id is used only once, so it is cut off the note. If this process dies now, the id is lost.
    let _ = file.set_len(branch.as_bytes().len() as u64);
    Some(Taken { branch, run_id, path: path.to_owned(), file })
}

/// Returns the branch and the promised id of a note; `None` for an incomplete one. A process that was killed
/// while it removed a note may have left a complete one under its name with a suffix.
fn parse(path: &Path, content: &[u8]) -> Option<(RefName, Option<String>)> {
    let mut fields = content.splitn(2, |byte| *byte == 0);
    let branch = RefName::new(fields.next()?);
    let id = fields.next().and_then(|id| std::str::from_utf8(id).ok());
    let id = id.filter(|id| uuid::Uuid::parse_str(id).is_ok()).map(str::to_owned);
    let name = path.file_name()?.to_str()?.split('.').next()?;
    // An older version made the end of a long name in another way, so only the beginning is compared.
    let begin = |name: &str| name.split('-').next().map(str::to_owned);
    (branch.is_valid() && begin(name) == begin(&name_for(branch.as_bytes()))).then_some((branch, id))
}

impl Taken {
    /// Removes the note, because the branch waits no more. A note that was written since then stays.
    pub fn done(self) {
        let mut aside = self.path.clone().into_os_string();
        aside.push(format!(".done{}", nix::unistd::getpid()));
        let aside = PathBuf::from(aside);
        if !is_at(&self.file, &self.path) {
            return;
        }
        if std::fs::rename(&self.path, &aside).is_err() {
            // The longer name may be too long, the disk full, or the folder not writable. A file that can't be
            // removed is emptied, and is no note any more: otherwise it would be taken on again and again.
            if std::fs::remove_file(&self.path).is_err() {
                let _ = self.file.set_len(0);
            }
            return;
        }
        if !is_at(&self.file, &aside) {
            // A newer note came between the check and the rename, and is put back. If a still newer one is in
            // its place, that is enough.
            let _ = std::fs::hard_link(&aside, &self.path);
        }
        let _ = std::fs::remove_file(&aside);
    }
}

/// By how much a word of [`say_unready`] may be older than the process that reads it, and still count: the writer may
/// have found out that nothing can run while the reader was being started.
const UNREADY: Duration = Duration::from_secs(5);

fn unready_path(repo: &Repository) -> PathBuf {
    repo.aynig_dir().join("pending.unready")
}

/// Tells the watcher that nothing can run on this machine, so that it leaves the waiting branches noted. Otherwise each
/// watcher would take a branch on, find that nothing can run, and leave the watch to a new process that does the same.
pub(crate) fn say_unready(repo: &Repository) {
    let _ = repo.write(&unready_path(repo), b"");
}

/// True where a process said, since that moment, that nothing can run on this machine.
pub(crate) fn is_unready_since(repo: &Repository, began: SystemTime) -> bool {
    let said = unready_path(repo).symlink_metadata().and_then(|meta| meta.modified());
    said.is_ok_and(|said| said + UNREADY > began)
}

/// True where the open file is the one at this path.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |meta: std::io::Result<std::fs::Metadata>| meta.ok().map(|m| (m.dev(), m.ino()));
    id(file.metadata()).is_some_and(|own| id(path.symlink_metadata()) == Some(own))
}

/// True while a runner is at work on the run of this folder. Processes that the command left running may
/// outlive it (K21).
pub(crate) fn has_runner(run_dir: &Path) -> bool {
    is_held(&run_dir.join("lock"))
}

fn is_held(lock: &Path) -> bool {
    let Ok(file) = apart(lock).and_then(|(folder, name)| folder.file(name)) else { return false };
    Flock::lock(file, FlockArg::LockSharedNonblock).is_err()
}

/// The name of the file in a run's folder that is held while its command waits for an answer.
const ASKING: &str = "asking";

/// True while a command of the run of this folder waits for an answer (K49).
pub(crate) fn is_asking(run_dir: &Path) -> bool {
    is_held(&run_dir.join(ASKING))
}

/// Says that a command of the run of this folder waits for an answer, for as long as the returned lock lives.
/// `None`: another process of the run says so already.
pub(crate) fn begin_asking(run_dir: &Path) -> std::io::Result<Option<Flock<File>>> {
    let path = run_dir.join(ASKING);
    let (folder, name) = apart(&path)?;
    let file = folder.lock_file(name, 0o600)?;
    Ok(Flock::lock(file, FlockArg::LockExclusiveNonblock).ok())
}

/// Notes in a run's folder that a branch is to be looked at once the run is over.
pub(crate) fn note_wake(run_dir: &Path, woken: &Woken) -> std::io::Result<()> {
    let mut line = woken.git_dir.as_os_str().as_bytes().to_vec();
    line.push(0);
    line.extend_from_slice(woken.branch.as_bytes());
    line.push(0);
    // The command can write to the folder, and this process may run outside of the command's sandbox, so no
    // link is followed.
    let path = run_dir.join("wake");
    let (folder, name) = apart(&path)?;
    // Each note is one write, so that two processes that note at once don't mix.
    folder.append(name, 0o644)?.write_all(&line)
}

/// Reads which branches a run noted, each branch once, of the first [`WAKE_MAX`] bytes of its notes.
pub(crate) fn read_wake(run_dir: &Path) -> Vec<Woken> {
    let path = run_dir.join("wake");
    let raw = apart(&path).and_then(|(folder, name)| folder.read_from(name, 0, WAKE_MAX)).unwrap_or_default();
    // What has no final NUL was cut off.
    let whole = raw.split_inclusive(|b| *b == 0).filter_map(|field| field.strip_suffix(b"\0"));
    let (fields, mut seen): (Vec<&[u8]>, _) = (whole.collect(), HashSet::new());
    let pairs = fields.chunks_exact(2).filter(|pair| seen.insert([pair[0], pair[1]]));
    let woken = pairs.map(|pair| Woken {
        git_dir: PathBuf::from(OsString::from_vec(pair[0].to_vec())),
        branch: RefName::new(pair[1]),
    });
    woken.filter(|woken| woken.git_dir.is_absolute() && woken.branch.is_valid()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K40
    #[test]
    fn of_more_notes_than_are_read_the_first_count() {
        let folder = tempfile::tempdir().unwrap();
        let woken = |n: usize| Woken {
            git_dir: "/repositories/one/.git".into(),
            branch: RefName::branch(format!("node-{n:0100}").as_bytes()),
        };
        for n in 0..12_000 {
            note_wake(folder.path(), &woken(n)).unwrap();
            note_wake(folder.path(), &woken(0)).unwrap();
        }
        let read = read_wake(folder.path());
        assert!(read.len() > 3000 && read.len() < 12_000, "{}", read.len());
        assert!(read.iter().enumerate().all(|(n, one)| *one == woken(n)));
    }
}

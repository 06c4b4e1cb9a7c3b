//! The data folder of a flow: `events.jsonl`, which only grows, `state.json`, which is replaced whole, and a lock.
//!
//! One process at a time projects, under the lock, in which it says which one it is; a reader needs none. Who waits for
//! the lock waits as long as the log grows, and so long after that: one that was stopped keeps no other from ending. What a
//! process that was killed left (a torn line, events beyond what the state covers) is cut or read back before anything is
//! appended, so no event is lost or there twice. Both files may be removed: they are made anew. Implements N13 (the files).

use super::ProjectError;
use super::position::{self, Position};
use crate::contract::event::Event;
use crate::contract::id::RunId;
use crate::contract::projection::{Log, Projection};
use crate::store::beneath::{BeneathError, Root, found};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The log.
pub const EVENTS: &str = "events.jsonl";
/// The state.
pub const STATE: &str = "state.json";
/// Held by the process that appends.
const LOCK: &str = "lock";
/// How often a lock that another process holds is tried.
const TRY_EVERY: Duration = Duration::from_millis(10);
/// The folder of what came of turns.
pub const ARTIFACTS: &str = "artifacts";
/// Longest state that is read, in bytes.
const STATE_MAX: u64 = 1 << 30;
/// How much of a log is read at once, in bytes.
const PIECE: usize = 1 << 20;
/// The mode of files and folders: what a repository's conversations say is its owner's.
const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;

/// A flow's folder, which this process alone appends to.
pub struct Folder {
    root: Root,
    /// Its path.
    pub path: PathBuf,
    log: File,
    /// Lines that are not written yet.
    held: Vec<u8>,
    _lock: Flock<File>,
}

/// The folder of a flow below the data folder.
pub fn path(data: &Path, run: RunId) -> PathBuf {
    data.join("runs").join(run.to_string())
}

impl Folder {
    /// Opens a flow's folder, which is made where there is none, and waits until no other process projects: so long at
    /// most after the log has grown.
    pub fn open(data: &Path, run: RunId, patience: Duration) -> Result<Self, ProjectError> {
        let path = path(data, run);
        make(data)?;
        let above = Root::open(data)?;
        let below = Path::new("runs").join(run.to_string());
        above.create_dirs(&below, FOLDER)?;
        let root = above.below(&below)?;
        let lock = root.lock_file(Path::new(LOCK), FILE)?;
        let log = root.append_and_read(Path::new(EVENTS), FILE)?;
        let lock = locked(lock, &path, &log, patience)?;
        Ok(Self { root, path, log, held: Vec::new(), _lock: lock })
    }

    /// What was projected before, and what the log has: the state that goes on, and the log with what it does not cover.
    /// Where one does not fit the other all is projected anew.
    pub fn begun(&mut self, run: RunId) -> Result<(Projection, Position, Log), ProjectError> {
        let kept = found(self.root.read(Path::new(STATE), STATE_MAX))?;
        let kept = kept.and_then(|raw| position::read(&raw));
        let kept = kept.filter(|(projection, _)| projection.run().is_some_and(|state| state.id == run));
        let length = self.log.metadata().map_err(self.failed("read"))?.len();
        match kept.filter(|(_, position)| self.covers(position, length)) {
            Some((projection, position)) => {
                let log = self.rest(position::log(&position))?;
                Ok((projection, position, log))
            }
            None => Ok((Projection::new(run), Position::default(), self.rest(Log::default())?)),
        }
    }

    /// The whole log, whatever was projected before.
    pub fn all(&mut self) -> Result<Log, ProjectError> {
        self.rest(Log::default())
    }

    /// True where the log goes at least as far as a position says, and a line ends there.
    fn covers(&self, position: &Position, length: u64) -> bool {
        let mut last = [0];
        match position.log {
            0 => true,
            to if to > length => false,
            to => {
                let at = self.log.read_exact_at(&mut last, to - 1);
                at.is_ok() && last == *b"\n"
            }
        }
    }

    /// Reads what the log has beyond its beginning, and cuts what is torn.
    fn rest(&mut self, mut log: Log) -> Result<Log, ProjectError> {
        let failed = self.failed("read");
        self.log.seek(SeekFrom::Start(log.len())).map_err(&failed)?;
        let (mut piece, mut held) = (vec![0; PIECE], Vec::new());
        loop {
            let n = self.log.read(&mut piece).map_err(&failed)?;
            if n == 0 {
                break;
            }
            held.extend_from_slice(&piece[..n]);
            let taken = usize::try_from(log.read(&held)).unwrap_or(held.len());
            held.drain(..taken);
        }
        if !held.is_empty() {
            self.log.set_len(log.len()).map_err(self.failed("cut"))?;
        }
        Ok(log)
    }

    /// Appends the events that are not in the log yet; they are there once [`Folder::flush`] was called.
    pub fn append(&mut self, log: &mut Log, events: Vec<Event>) -> Result<(), ProjectError> {
        let new = log.append(events);
        self.held.extend_from_slice(&log.lines(&new));
        if self.held.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    /// Writes what was appended.
    pub fn flush(&mut self) -> Result<(), ProjectError> {
        let failed = self.failed("write");
        self.log.write_all(&self.held).map_err(failed)?;
        self.held.clear();
        Ok(())
    }

    /// Replaces the state.
    pub fn keep(&self, projection: &Projection, position: &Position) -> Result<(), ProjectError> {
        if let Some(state) = position::write(projection, position) {
            self.root.replace(Path::new(STATE), &state, FILE)?;
        }
        Ok(())
    }

    /// Writes an artifact that is not there; `content` is asked only then.
    pub fn artifact(
        &self,
        name: &str,
        content: impl FnOnce() -> Result<Option<Vec<u8>>, ProjectError>,
    ) -> Result<(), ProjectError> {
        let at = Path::new(ARTIFACTS).join(name);
        match self.root.kind(&at) {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
        let Some(content) = content()? else { return Ok(()) };
        self.root.create_dirs(Path::new(ARTIFACTS), FOLDER)?;
        self.root.replace(&at, &content, FILE)?;
        Ok(())
    }

    fn failed(&self, what: &'static str) -> impl Fn(std::io::Error) -> ProjectError + use<> {
        let path = self.path.clone();
        move |source| ProjectError::Io { what, path: path.clone(), source }
    }
}

/// Waits for the lock, and says in it who has it now.
fn locked(mut file: File, path: &Path, log: &File, patience: Duration) -> Result<Flock<File>, ProjectError> {
    let length = || log.metadata().map(|meta| meta.len()).unwrap_or(0);
    // By how often it was tried: a process that was stopped itself meanwhile counts on from there.
    let (mut seen, mut waited) = (length(), Duration::ZERO);
    loop {
        let errno = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => {
                // For a process that waits in vain: what can't be written is not named.
                let own = format!("{}\n", std::process::id());
                let _ = lock.set_len(0).and_then(|()| lock.write_all_at(own.as_bytes(), 0));
                return Ok(lock);
            }
            Err((held, errno)) => {
                file = held;
                errno
            }
        };
        match errno {
            Errno::EWOULDBLOCK | Errno::EINTR => {}
            errno => {
                let source = errno.into();
                return Err(ProjectError::Io { what: "lock", path: path.join(LOCK), source });
            }
        }
        if length() != seen {
            (seen, waited) = (length(), Duration::ZERO);
        }
        if waited >= patience {
            let holder = holder(&file);
            return Err(ProjectError::Held { path: path.join(LOCK), holder, patience });
        }
        std::thread::sleep(TRY_EVERY);
        waited += TRY_EVERY;
    }
}

/// The process that has the lock, as it says.
fn holder(lock: &File) -> Option<u32> {
    let mut said = [0; 16];
    let length = lock.read_at(&mut said, 0).ok()?;
    std::str::from_utf8(&said[..length]).ok()?.trim_end().parse().ok()
}

/// Makes the data folder, which may be anywhere.
fn make(data: &Path) -> Result<(), ProjectError> {
    let failed = |source| ProjectError::Io { what: "make", path: data.to_owned(), source };
    std::fs::create_dir_all(data).map_err(failed)
}

impl From<BeneathError> for ProjectError {
    fn from(error: BeneathError) -> Self {
        Self::Folder(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{Folder, ProjectError};
    use std::io::Write;
    use std::time::{Duration, Instant};

    /// N13: one that gets on is waited for, however long that takes; one that does not is not.
    #[test]
    fn a_process_that_gets_on_is_waited_for() {
        let data = tempfile::tempdir().unwrap();
        let run = "6d0f2f6c-0000-4000-8000-000000000001".parse().unwrap();
        let patience = Duration::from_secs(2);
        let first = Folder::open(data.path(), run, patience).unwrap();
        let refused = Folder::open(data.path(), run, Duration::ZERO).err().unwrap();
        assert!(matches!(refused, ProjectError::Held { holder: Some(pid), .. } if pid == std::process::id()));
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // All of it, so that its lock ends with this thread.
                let mut first = first;
                while began.elapsed() < patience * 2 {
                    first.log.write_all(b"{}\n").unwrap();
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
            Folder::open(data.path(), run, patience).unwrap();
        });
        assert!(began.elapsed() >= patience * 2);
    }
}

//! The data folder of a flow: `events.jsonl`, which only grows, `state.json`, which is replaced as a whole,
//! and a lock.
//!
//! One process at a time projects. It holds the lock, in which it writes its process id; a reader needs no
//! lock. A process that waits for the lock waits as long as the log grows, and for a limited time after that,
//! so that a holder that was stopped keeps no other process from ending. What a killed process left (a torn
//! line, events beyond what the state covers) is cut or read back before anything is appended, so no event is
//! lost or written twice. Both files may be removed: they are made anew. Implements N13 (the files).

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

/// The file name of the log.
pub const EVENTS: &str = "events.jsonl";
/// The file name of the state.
pub const STATE: &str = "state.json";
/// The name of the file that the process that appends holds locked.
const LOCK: &str = "lock";
/// The time between two tries for a lock that another process holds.
const TRY_EVERY: Duration = Duration::from_millis(10);
/// The folder with the artifacts of turns.
pub const ARTIFACTS: &str = "artifacts";
/// Longest state that is read, in bytes.
const STATE_MAX: u64 = 1 << 30;
/// How much of a log is read at once, in bytes.
const PIECE: usize = 1 << 20;
/// The modes of files and folders: only their owner may read what a repository's conversations say.
const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;

/// A flow's folder, held so that only this process appends to it.
pub struct Folder {
    root: Root,
    pub path: PathBuf,
    log: File,
    /// Lines that are not written yet.
    held: Vec<u8>,
    _lock: Flock<File>,
}

/// Returns the folder of a flow below the data folder.
pub fn path(data: &Path, run: RunId) -> PathBuf {
    data.join("runs").join(run.to_string())
}

impl Folder {
    /// Opens a flow's folder, which is made if there is none, once no other process projects. Waits while the
    /// log grows, and at most `patience` after it last did.
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

    /// Returns what was projected before, together with the part of the log that it does not cover. If the
    /// state does not fit the log, returns an empty projection and the whole log, so that everything is
    /// projected anew.
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

    /// Reads the whole log, whatever was projected before.
    pub fn all(&mut self) -> Result<Log, ProjectError> {
        self.rest(Log::default())
    }

    /// True where the log is at least as long as a position says, and a line ends at that point.
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

    /// Reads the part of the log that is beyond `log`, and cuts off a torn last line.
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

    /// Appends the events that are not in the log yet; they are sure to be in the file once [`Folder::flush`]
    /// was called.
    pub fn append(&mut self, log: &mut Log, events: Vec<Event>) -> Result<(), ProjectError> {
        let new = log.append(events);
        self.held.extend_from_slice(&log.lines(&new));
        if self.held.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    /// Writes the lines that are held.
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

    /// Writes an artifact if it does not exist; `content` is called only then.
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

/// Waits for the lock, and writes in it which process has it now.
fn locked(mut file: File, path: &Path, log: &File, patience: Duration) -> Result<Flock<File>, ProjectError> {
    let length = || log.metadata().map(|meta| meta.len()).unwrap_or(0);
    // The wait is counted by tries and not by the clock, so that the time during which this process is itself
    // stopped does not count.
    let (mut seen, mut waited) = (length(), Duration::ZERO);
    loop {
        let errno = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => {
                // A process that waits in vain reports this id; if it can't be written, that process reports
                // none.
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

/// Returns the id of the process that has the lock, as the lock says; `None` where it says none.
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

    /// N13: a process that makes progress is waited for, however long that takes; one that makes none is not.
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
                // The whole folder moves into this thread, so that its lock ends with the thread.
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

//! Single flight for fetches: one process fetches at a time, and none fetches what another has just fetched.
//!
//! Of two simultaneous fetches into the same refs Git fails one at once, and a tick would miss news of a
//! branch because of that lock. So `aynig/fetching` is locked around each fetch. The file says how many
//! fetches have begun in this repository, which of them was the last that succeeded, and which remote that
//! one asked. A process that waits is answered once a fetch of its remote that began after the process asked
//! has succeeded. A process that has waited too long fetches without the lock: Git's own locks still hold.
//! Calling sequence: [`SingleFlight::join`], then [`SingleFlight::wait`], as often as needed. Implements K30.

use crate::store::disk::Shared;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for another process of this repository that fetches.
const LONGEST: Duration = Duration::from_secs(30);
/// Pause between two looks at the lock.
const LOOK: Duration = Duration::from_millis(10);

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Ledger {
    /// How many fetches have ever begun in this repository.
    begun: u64,
    /// The number of the last fetch that succeeded.
    ended: u64,
    /// The remote that this fetch asked.
    remote: String,
}

impl Ledger {
    fn read(file: &File) -> Option<Self> {
        let mut bytes = [0; 4096];
        let length = file.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..length]).ok()?;
        if text.is_empty() {
            return Some(Self::default());
        }
        let mut words = text.strip_suffix('\n')?.splitn(3, ' ');
        let (begun, ended) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { begun, ended, remote: words.next()?.to_owned() })
    }

    /// Reads the file while another process may be writing it: returns what two readings in a row agree
    /// about.
    fn read_unlocked(file: &File) -> Option<Self> {
        (0..8).find_map(|_| Self::read(file).filter(|ledger| Self::read(file).as_ref() == Some(ledger)))
    }
}

/// A process that wants news of a remote's branches, and what the file said when it asked.
pub(crate) struct SingleFlight<'a> {
    path: PathBuf,
    remote: &'a str,
    seen: Option<Ledger>,
}

/// The result of waiting.
pub(crate) enum Flight {
    /// A fetch of the same remote that began after this process asked has succeeded.
    Answered,
    /// This process fetches, and no other process of this repository does meanwhile.
    Leads(Lead),
    /// The wait took too long or was stopped, or the file can't be locked: this process fetches beside
    /// others.
    Alone,
}

/// The lock around one fetch, released when it is dropped.
pub(crate) struct Lead {
    file: Flock<File>,
    remote: String,
    ledger: Ledger,
}

impl<'a> SingleFlight<'a> {
    /// Notes what the file says now, before the wait for news begins.
    pub(crate) fn join(common_dir: &Path, remote: &'a str, shared: Shared) -> Self {
        let folder = common_dir.join("aynig");
        let _ = shared.make(&folder);
        let path = folder.join("fetching");
        let seen = open(&path).and_then(|file| Ledger::read_unlocked(&file));
        shared.give(&path);
        Self { path, remote, seen }
    }

    fn is_answered_by(&self, now: Option<&Ledger>) -> bool {
        let both = self.seen.as_ref().zip(now);
        both.is_some_and(|(then, now)| now.ended > then.begun && now.remote == self.remote)
    }

    /// Waits for an answer, or for the lock. An answer counts also while another process holds the lock, so
    /// that most of many waiting processes need no lock. Gives up as soon as `stopped` says so.
    pub(crate) fn wait(&self, stopped: &dyn Fn() -> bool) -> Flight {
        let Some(mut file) = open(&self.path) else { return Flight::Alone };
        let until = Instant::now() + LONGEST;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => {
                    let ledger = Ledger::read(&file);
                    if self.is_answered_by(ledger.as_ref()) {
                        return Flight::Answered;
                    }
                    // A file that can't be read is begun anew, with numbers above any that a waiting process
                    // may have seen.
                    let ledger = ledger.unwrap_or(Ledger { begun: u64::MAX / 2, ..Ledger::default() });
                    return Flight::Leads(Lead { file, remote: self.remote.to_owned(), ledger });
                }
                Err((held, nix::errno::Errno::EWOULDBLOCK)) => {
                    if self.is_answered_by(Ledger::read_unlocked(&held).as_ref()) {
                        return Flight::Answered;
                    }
                    if Instant::now() >= until || stopped() {
                        return Flight::Alone;
                    }
                    file = held;
                }
                Err(_) => return Flight::Alone,
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn open(path: &Path) -> Option<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path).ok()
}

impl Lead {
    /// Notes that a fetch begins.
    pub(crate) fn begin(&mut self) {
        self.ledger.begun += 1;
        self.write();
    }

    /// Notes that the fetch succeeded.
    pub(crate) fn done(&mut self) {
        self.ledger.ended = self.ledger.begun;
        self.ledger.remote.clone_from(&self.remote);
        self.write();
    }

    /// Writes the ledger. Where that fails no process is answered by this fetch.
    fn write(&self) {
        let text = format!("{} {} {}\n", self.ledger.begun, self.ledger.ended, self.ledger.remote);
        if self.file.write_all_at(text.as_bytes(), 0).is_ok() {
            let _ = self.file.set_len(text.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lock, for a process that is not answered.
    fn lead(dir: &Path, remote: &str) -> Lead {
        match SingleFlight::join(dir, remote, Shared::Umask).wait(&|| false) {
            Flight::Leads(lead) => lead,
            Flight::Answered => panic!("answered"),
            Flight::Alone => panic!("alone"),
        }
    }

    fn is_answered(asked: &SingleFlight<'_>) -> bool {
        matches!(asked.wait(&|| false), Flight::Answered)
    }

    #[test]
    fn a_process_that_asked_before_a_fetch_began_is_answered_by_it() {
        let dir = tempfile::tempdir().unwrap();
        let before = ["origin", "other"].map(|remote| SingleFlight::join(dir.path(), remote, Shared::Umask));
        let mut first = lead(dir.path(), "origin");
        let [origin, other] = &before;
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| is_answered(origin));
            first.begin();
            first.done();
            drop(first);
            assert!(waits.join().unwrap());
        });
        assert!(!is_answered(other), "another remote");
        assert!(
            !is_answered(&SingleFlight::join(dir.path(), "origin", Shared::Umask)),
            "it began before this was asked"
        );
    }

    #[test]
    fn a_process_that_is_answered_waits_for_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = lead(dir.path(), "origin");
        let asked = SingleFlight::join(dir.path(), "origin", Shared::Umask);
        first.begin();
        first.done();
        // The next one begins, and holds the lock.
        first.begin();
        assert!(matches!(asked.wait(&|| panic!("it waits")), Flight::Answered));
    }

    #[test]
    fn a_fetch_that_failed_or_had_begun_answers_no_process() {
        let dir = tempfile::tempdir().unwrap();
        let mut failing = lead(dir.path(), "origin");
        let asked = SingleFlight::join(dir.path(), "origin", Shared::Umask);
        failing.begin();
        drop(failing);
        assert!(!is_answered(&asked));
        // Asked while a fetch went on, which may have read the remote's refs before.
        let mut begun = lead(dir.path(), "origin");
        begun.begin();
        let asked = SingleFlight::join(dir.path(), "origin", Shared::Umask);
        begun.done();
        drop(begun);
        assert!(!is_answered(&asked));
    }

    #[test]
    fn what_cannot_be_read_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("aynig")).unwrap();
        std::fs::write(dir.path().join("aynig/fetching"), "nonsense").unwrap();
        let mut first = lead(dir.path(), "origin");
        first.begin();
        first.done();
        drop(first);
        assert!(!is_answered(&SingleFlight::join(dir.path(), "origin", Shared::Umask)));
        let said = std::fs::read_to_string(dir.path().join("aynig/fetching")).unwrap();
        assert!(said.ends_with(" origin\n"), "{said}");
    }
}

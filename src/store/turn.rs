//! Whose turn it is to fetch: one process at a time, and none for what another has just fetched.
//!
//! Of two fetches into the same refs at once Git fails one, and for the sake of a lock a tick would not hear who
//! has its branch. So `aynig/fetching` is locked around each; it says how many fetches began here, which of them
//! was the last that ended well, and of which remote. Who waited while a later one than he had seen begin ended
//! well has his answer. Who waits long goes on without a turn: Git's own locks hold. [`Asked::now`], then
//! [`Asked::wait`], as often as it takes. Implements K30.

use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for another process here that fetches, and how often it is looked for.
const LONGEST: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Told {
    /// How many fetches began here, ever.
    begun: u64,
    /// Which was the last that ended well.
    ended: u64,
    /// The remote that it asked.
    remote: String,
}

impl Told {
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

    /// While somebody may be writing: what two readings agree about.
    fn read_unlocked(file: &File) -> Option<Self> {
        (0..8).find_map(|_| Self::read(file).filter(|told| Self::read(file).as_ref() == Some(told)))
    }
}

/// Somebody who wants to hear of a remote's branches, and what had been heard when he asked.
pub(super) struct Asked<'a> {
    path: PathBuf,
    remote: &'a str,
    told: Option<Told>,
}

/// What came of waiting for a turn.
pub(super) enum Turn {
    /// A fetch of the same remote that began after this was asked for has ended well.
    Answered,
    /// Nobody else here fetches meanwhile.
    Ours(Held),
    /// It took too long, or can't be had at all.
    Missed,
}

/// The right to fetch; let go when it is dropped.
pub(super) struct Held {
    file: Flock<File>,
    remote: String,
    told: Told,
}

impl<'a> Asked<'a> {
    /// Asks now.
    pub fn now(common_dir: &Path, remote: &'a str) -> Self {
        let folder = common_dir.join("aynig");
        let _ = std::fs::create_dir_all(&folder);
        let path = folder.join("fetching");
        let told = open(&path).and_then(|file| Told::read_unlocked(&file));
        Self { path, remote, told }
    }

    fn is_answered_by(&self, now: Option<&Told>) -> bool {
        let both = self.told.as_ref().zip(now);
        both.is_some_and(|(then, now)| now.ended > then.begun && now.remote == self.remote)
    }

    /// Waits for an answer, or for the turn. An answer is looked for while another holds the lock too: of many
    /// who wait, most need none. Gives up as soon as `stopped` says so.
    pub fn wait(&self, stopped: &dyn Fn() -> bool) -> Turn {
        let Some(mut file) = open(&self.path) else { return Turn::Missed };
        let until = Instant::now() + LONGEST;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => {
                    let told = Told::read(&file);
                    if self.is_answered_by(told.as_ref()) {
                        return Turn::Answered;
                    }
                    // What can't be read is begun anew, above every number that somebody may have seen.
                    let told = told.unwrap_or(Told { begun: u64::MAX / 2, ..Told::default() });
                    return Turn::Ours(Held { file, remote: self.remote.to_owned(), told });
                }
                Err((held, nix::errno::Errno::EWOULDBLOCK)) => {
                    if self.is_answered_by(Told::read_unlocked(&held).as_ref()) {
                        return Turn::Answered;
                    }
                    if Instant::now() >= until || stopped() {
                        return Turn::Missed;
                    }
                    file = held;
                }
                Err(_) => return Turn::Missed,
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn open(path: &Path) -> Option<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path).ok()
}

impl Held {
    /// Says that a fetch begins.
    pub fn begin(&mut self) {
        self.told.begun += 1;
        self.write();
    }

    /// Says that it ended well.
    pub fn done(&mut self) {
        self.told.ended = self.told.begun;
        self.told.remote.clone_from(&self.remote);
        self.write();
    }

    /// Where it can't be written nobody is answered by it.
    fn write(&self) {
        let text = format!("{} {} {}\n", self.told.begun, self.told.ended, self.told.remote);
        if self.file.write_all_at(text.as_bytes(), 0).is_ok() {
            let _ = self.file.set_len(text.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turn of somebody who is not answered.
    fn turn(dir: &Path, remote: &str) -> Held {
        match Asked::now(dir, remote).wait(&|| false) {
            Turn::Ours(held) => held,
            Turn::Answered => panic!("answered"),
            Turn::Missed => panic!("missed"),
        }
    }

    fn answered(dir: &Path, remote: &str) -> bool {
        matches!(Asked::now(dir, remote).wait(&|| false), Turn::Answered)
    }

    /// Asks, and gets the turn once `between` is over.
    fn asked_before(dir: &Path, remote: &str, between: impl FnOnce()) -> bool {
        let first = turn(dir, "elsewhere");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| answered(dir, remote));
            // It has looked once the file was opened and read: long before this.
            std::thread::sleep(Duration::from_millis(200));
            let mut first = first;
            first.remote = "origin".to_owned();
            first.begin();
            between();
            first.done();
            drop(first);
            waits.join().unwrap()
        })
    }

    #[test]
    fn who_asked_before_a_fetch_began_is_answered_by_it() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!answered(dir.path(), "origin"), "nobody has fetched");
        assert!(asked_before(dir.path(), "origin", || ()));
        assert!(!asked_before(dir.path(), "other", || ()), "another remote");
        assert!(!answered(dir.path(), "origin"), "it began before this was asked");
    }

    #[test]
    fn who_is_answered_waits_for_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = turn(dir.path(), "origin");
        let asked = Asked::now(dir.path(), "origin");
        first.begin();
        first.done();
        // The next one begins, and holds the lock.
        first.begin();
        let since = Instant::now();
        assert!(matches!(asked.wait(&|| false), Turn::Answered));
        assert!(since.elapsed() < LONGEST / 2);
    }

    #[test]
    fn a_fetch_that_failed_or_had_begun_answers_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let mut failing = turn(dir.path(), "origin");
        failing.begin();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| answered(dir.path(), "origin"));
            std::thread::sleep(Duration::from_millis(100));
            drop(failing);
            assert!(!waits.join().unwrap());
        });
        // Asked while it went on: it may have looked before.
        let mut begun = turn(dir.path(), "origin");
        begun.begin();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| answered(dir.path(), "origin"));
            std::thread::sleep(Duration::from_millis(200));
            begun.done();
            drop(begun);
            assert!(!waits.join().unwrap());
        });
    }

    #[test]
    fn what_cannot_be_read_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("aynig")).unwrap();
        std::fs::write(dir.path().join("aynig/fetching"), "nonsense").unwrap();
        let mut first = turn(dir.path(), "origin");
        first.begin();
        first.done();
        drop(first);
        assert!(!answered(dir.path(), "origin"));
        let said = std::fs::read_to_string(dir.path().join("aynig/fetching")).unwrap();
        assert!(said.ends_with(" origin\n"), "{said}");
    }
}

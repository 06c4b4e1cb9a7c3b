//! Notes about `git` children that take locks of Git's own, so that a lock that a killed
//! child left is recognized.
//!
//! A note is a file in `aynig/children/` that names the locks which the child may take. It is written before
//! the child starts, and removed once the child ended by itself. Its `flock` is held by the process that
//! waits for the child. The next sweep removes what a killed child left, and only this: a lock that the note
//! names, made in the child's noted life, once the child is dead and the lock is older than 10 s. Where only
//! children of this tool take locks, the lock is removed at once. Implements K43 (children of ours).

use crate::store::disk::Shared;
use crate::store::refs::locks::{Owner, SHARED, age_of, lock_files_below, owner_of};
use crate::supervisor::SupervisorError;
use crate::supervisor::bounded::{Bounded, Finished};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A younger lock may belong to a process at work.
pub(crate) const OLD: Duration = Duration::from_secs(10);
/// How far a file's time may be behind, because it comes from a coarser clock than the system's.
const COARSE: Duration = Duration::from_millis(50);
/// How long after its start a child is taken to have made locks, where its end was not seen.
const LIFE: Duration = Duration::from_secs(3600);

/// Locks that a child may take.
#[derive(Debug, Clone)]
pub(crate) struct MayLock {
    common_dir: PathBuf,
    /// Lock files, and folders with locks anywhere below.
    places: Vec<PathBuf>,
}

impl MayLock {
    /// Returns the locks of refs: these files, all locks below these folders, and the locks that refs share.
    /// On reftable all refs share one lock. `packed-refs.new` comes before the lock that Git writes it under, so that
    /// no process can have begun another one when it is removed.
    pub(crate) fn refs(common_dir: &Path, places: impl IntoIterator<Item = PathBuf>) -> Self {
        let shared = ["reftable"].into_iter().chain(SHARED).chain(["shallow.lock"]);
        let shared = shared.map(|name| common_dir.join(name));
        let places = places.into_iter().chain(shared).collect();
        Self { common_dir: common_dir.to_owned(), places }
    }

    /// Returns these lock files alone; they may be outside of the repository.
    pub(crate) fn files(common_dir: &Path, places: Vec<PathBuf>) -> Self {
        Self { common_dir: common_dir.to_owned(), places }
    }

    /// Returns the locks of these refs, and the other ones that moving them may take.
    pub(crate) fn these_refs<'a>(common_dir: &Path, names: impl Iterator<Item = &'a [u8]>) -> Self {
        let lock = |name| {
            let mut lock = common_dir.join(OsStr::from_bytes(name)).into_os_string();
            lock.push(".lock");
            PathBuf::from(lock)
        };
        Self::refs(common_dir, names.map(lock).collect::<Vec<_>>())
    }
}

/// A note whose `flock` this process holds.
pub(crate) struct Noted {
    path: PathBuf,
    file: Flock<File>,
}

fn folder(common_dir: &Path) -> PathBuf {
    common_dir.join("aynig/children")
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

impl Noted {
    /// Writes the note of a child that is about to start. `None` where that fails: then a lock that the
    /// child leaves is never removed.
    pub(crate) fn begin(may: &MayLock, shared: Shared) -> Option<Self> {
        let folder = folder(&may.common_dir);
        let path = folder.join(uuid::Uuid::new_v4().to_string());
        let open = || OpenOptions::new().append(true).create_new(true).open(&path);
        let file = open().ok().or_else(|| shared.make(&folder).ok().and_then(|()| open().ok()))?;
        shared.give(&path);
        let file = Flock::lock(file, FlockArg::LockExclusive).ok()?;
        let mut noted = Self { path, file };
        let mut text =
            format!("begun {}\nlife {}\n", seconds(SystemTime::now()), LIFE.as_secs()).into_bytes();
        for place in &may.places {
            text.extend_from_slice(b"lock ");
            text.extend_from_slice(place.as_os_str().as_bytes());
            text.push(b'\0');
        }
        text.push(b'\n');
        match noted.file.write_all(&text) {
            Ok(()) => Some(noted),
            Err(_) => {
                noted.forget();
                None
            }
        }
    }

    /// Notes the process of the child, which runs now.
    pub(crate) fn started(&self, pid: u32) {
        let _ = (&*self.file).write_all(format!("pid {pid}\n").as_bytes());
    }

    /// Notes that the child is dead, and had no time to clean up.
    pub(crate) fn killed(mut self) {
        let _ = self.file.write_all(format!("ended {}\n", seconds(SystemTime::now())).as_bytes());
    }

    /// Removes the note of a child that ended by itself, and so left nothing.
    pub(crate) fn forget(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Runs a child with a note of the locks that it may take. The note stays only where the child was
/// killed, or its end was not seen.
pub(crate) fn noted(
    may: Option<&MayLock>,
    shared: Shared,
    child: Bounded<'_>,
) -> Result<Finished, SupervisorError> {
    let note = may.and_then(|may| Noted::begin(may, shared));
    let tell = |pid| note.iter().for_each(|note| note.started(pid));
    let ended = Bounded { started: Some(&tell), ..child }.run();
    if let Some(note) = note {
        match &ended {
            Ok(ended) if ended.status.code().is_none() => note.killed(),
            Ok(_) | Err(SupervisorError::NoHelper { .. }) => note.forget(),
            Err(_) => {}
        }
    }
    ended
}

/// True for a path that a child of this program may have locked. What a repository brings along may name any other one.
fn may_be_ours(common_dir: &Path, of_account: &dyn Fn() -> Vec<PathBuf>, lock: &Path) -> bool {
    let is_lock = lock.extension().is_some_and(|end| end == "lock") || lock.ends_with("packed-refs.new");
    let goes_up = lock.components().any(|part| part == Component::ParentDir);
    is_lock && !goes_up && (lock.starts_with(common_dir) || of_account().iter().any(|other| other == lock))
}

struct Told {
    begun: SystemTime,
    ended: SystemTime,
    pid: Option<i32>,
    places: Vec<PathBuf>,
}

fn read(path: &Path) -> Option<Told> {
    let raw = fs::read(path).ok()?;
    let value = |key: &[u8]| {
        let line = raw.split(|b| *b == b'\n' || *b == b'\0').find_map(|line| line.strip_prefix(key))?;
        std::str::from_utf8(line).ok()?.parse::<f64>().ok()
    };
    let at = |key| {
        let since = Duration::try_from_secs_f64(value(key)?).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(since)
    };
    let begun = at(b"begun ")?;
    let life = Duration::try_from_secs_f64(value(b"life ")?).ok()?;
    let places = raw
        .split(|b| *b == b'\n' || *b == b'\0')
        .filter_map(|line| line.strip_prefix(b"lock "))
        .map(|path| PathBuf::from(OsString::from_vec(path.to_vec())))
        .collect();
    let ended = at(b"ended ").unwrap_or(begun + life);
    Some(Told { begun: begun - COARSE, ended, pid: value(b"pid ").map(|pid| pid as i32), places })
}

#[derive(Debug, Default)]
pub(crate) struct Swept {
    /// The locks that were removed.
    pub(crate) removed: Vec<PathBuf>,
    /// Locks of dead children that are left as they are, because the lock, or the child's
    /// start, is less than 10 s old.
    pub(crate) young: Vec<PathBuf>,
}

/// Removes the locks of children that are dead, and their notes: locks in the repository, and those of the account,
/// which are looked for only where a note names another one.
///
/// Cheap where no child was killed: one listing of an empty folder.
pub(crate) fn sweep(common_dir: &Path, of_account: &dyn Fn() -> Vec<PathBuf>) -> Swept {
    let mut swept = Swept::default();
    for entry in fs::read_dir(folder(common_dir)).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(file) = OpenOptions::new().read(true).append(true).open(&path) else { continue };
        // A process lives that waits for the child.
        let Ok(alone) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { continue };
        let Some(mut told) = read(&path) else {
            if age_of(&path) > OLD {
                let _ = fs::remove_file(&path);
            }
            continue;
        };
        if lives(&told) {
            continue;
        }
        // No runner saw the child end, but it is dead now: a later lock is another process's.
        let now = SystemTime::now();
        if told.ended > now {
            let _ = (&*alone).write_all(format!("ended {}\n", seconds(now)).as_bytes());
            told.ended = now;
        }
        let since = now.duration_since(told.begun).unwrap_or_default();
        let mut all_old = since > OLD;
        for lock in told.places.iter().flat_map(|place| locks_at(place)) {
            if !may_be_ours(common_dir, of_account, &lock) {
                // A lock of the account's may be looked for by the next sweep.
                all_old &= lock.starts_with(common_dir);
                continue;
            }
            if !made(&lock).is_some_and(|made| told.begun <= made && made <= told.ended) {
                continue;
            }
            let young = since <= OLD || age_of(&lock) <= OLD;
            if young && !is_nobody_elses(common_dir, &lock, &told, &path) {
                all_old = false;
                swept.young.push(lock);
            } else if fs::remove_file(&lock).is_ok() {
                swept.removed.push(lock);
            }
        }
        if all_old {
            let _ = fs::remove_file(&path);
        }
    }
    swept
}

/// True where a child that lives may hold this lock, or be about to take it. A lock that was there before the
/// child began is not the child's.
pub(crate) fn at_work(common_dir: &Path, lock: &Path) -> bool {
    is_another_at_work(common_dir, lock, None)
}

/// Decides as [`at_work`] does, with the note `but` left out.
fn is_another_at_work(common_dir: &Path, lock: &Path, but: Option<&Path>) -> bool {
    let made = made(lock);
    told_of(common_dir, lock, but).any(|(file, told)| {
        made.is_none_or(|made| told.begun <= made) && (is_waited_for(file) || lives(&told))
    })
}

/// True for a lock that only this dead child can have made: it is below the refs that keep the heads of
/// remotes, where only this program writes, and no other child of this program is at work there. What those
/// refs hold can be fetched again.
fn is_nobody_elses(common_dir: &Path, lock: &Path, told: &Told, note: &Path) -> bool {
    // A child whose process could not be noted may live.
    told.pid.is_some()
        && ["refs/aynig/remote", "refs/aynig/shared"]
            .iter()
            .any(|refs| lock.starts_with(common_dir.join(refs)))
        && !is_another_at_work(common_dir, lock, Some(note))
        && matches!(owner_of(common_dir, lock), Ok(Owner::Other))
}

/// True for a lock that a dead child of this tool left: [`sweep`] removes it, now or soon.
pub(crate) fn left(common_dir: &Path, lock: &Path) -> bool {
    let Some(made) = made(lock) else { return false };
    told_of(common_dir, lock, None)
        .any(|(file, told)| told.begun <= made && made <= told.ended && !is_waited_for(file) && !lives(&told))
}

/// Returns the notes of children that may take this lock, except the note `but`.
fn told_of(common_dir: &Path, lock: &Path, but: Option<&Path>) -> impl Iterator<Item = (File, Told)> {
    fs::read_dir(folder(common_dir)).into_iter().flatten().flatten().filter_map(move |entry| {
        if Some(&*entry.path()) == but {
            return None;
        }
        let file = File::open(entry.path()).ok()?;
        let told = read(&entry.path())?;
        told.places.iter().any(|place| lock.starts_with(place)).then_some((file, told))
    })
}

fn made(lock: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(lock).and_then(|m| m.modified()).ok()
}

fn is_waited_for(note: File) -> bool {
    Flock::lock(note, FlockArg::LockSharedNonblock).is_err()
}

fn lives(told: &Told) -> bool {
    told.pid.is_some_and(|pid| kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH) && !is_zombie(pid))
}

/// True for a dead process that was not waited for. It stays like that where its runner died too and process
/// 1 is no init. A process that `/proc` does not show is taken to live.
fn is_zombie(pid: i32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program comes before the state, and may hold anything, brackets too.
    let after_name = stat.iter().rposition(|b| *b == b')').map_or(stat.len(), |at| at + 1);
    matches!(stat.get(after_name..), Some([b' ', b'Z' | b'X', ..]))
}

fn locks_at(place: &Path) -> Vec<PathBuf> {
    match place.symlink_metadata() {
        Ok(meta) if meta.is_dir() => lock_files_below(place).unwrap_or_default(),
        Ok(_) => vec![place.to_owned()],
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the note of a child that began 60 s and ended 50 s ago and may lock
    /// `refs/`, and locks of these ages.
    fn left(pid: Option<u32>, ages: &[u64]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let ago = |s: u64| now - Duration::from_secs(s);
        fs::create_dir_all(dir.path().join("refs/heads")).unwrap();
        fs::create_dir_all(folder(dir.path())).unwrap();
        let pid = pid.map(|pid| format!("pid {pid}\n")).unwrap_or_default();
        let (refs, begun, ended) = (dir.path().join("refs"), seconds(ago(60)), seconds(ago(50)));
        let note = format!("begun {begun}\nlife 3600\nlock {}\0\n{pid}ended {ended}\n", refs.display());
        fs::write(folder(dir.path()).join("note"), note).unwrap();
        let lock = |age: &u64| {
            let path = refs.join(format!("heads/{age}.lock"));
            File::create(&path).unwrap().set_modified(ago(*age)).unwrap();
            path
        };
        let locks = ages.iter().map(lock).collect();
        (dir, locks)
    }

    /// What an unpacked archive has in `aynig/children` may name any file.
    #[test]
    fn a_note_has_nothing_removed_that_no_child_locks() {
        let (dir, _) = left(None, &[]);
        let outside = tempfile::tempdir().unwrap();
        let ago = |s: u64| SystemTime::now() - Duration::from_secs(s);
        let (begun, ended) = (seconds(ago(60)), seconds(ago(50)));
        let account = outside.path().join("gitconfig.lock");
        let config = dir.path().join("config");
        let up = dir.path().join("../").join(outside.path().file_name().unwrap()).join("up.lock");
        for file in [&outside.path().join("mine"), &outside.path().join("mine.lock"), &account, &config, &up]
        {
            File::create(file).unwrap().set_modified(ago(55)).unwrap();
        }
        for (n, place) in [outside.path(), &account, &config, &up].iter().enumerate() {
            let note = format!("begun {begun}\nlife 3600\nlock {}\0\nended {ended}\n", place.display());
            fs::write(folder(dir.path()).join(format!("note{n}")), note).unwrap();
        }
        assert_eq!(sweep(dir.path(), &Vec::new).removed, Vec::<PathBuf>::new());
        assert_eq!(sweep(dir.path(), &|| vec![account.clone()]).removed, std::slice::from_ref(&account));
        assert!(config.exists() && up.exists() && fs::read_dir(outside.path()).unwrap().count() == 3);
    }

    #[test]
    fn only_locks_of_the_childs_own_time_go() {
        let (dir, locks) = left(None, &[100, 55, 30, 1]);
        let swept = sweep(dir.path(), &Vec::new);
        assert_eq!((swept.removed, swept.young), (vec![locks[1].clone()], vec![]));
        assert_eq!(locks.iter().map(|l| l.exists()).collect::<Vec<_>>(), [true, false, true, true]);
        assert_eq!(fs::read_dir(folder(dir.path())).unwrap().count(), 0);
        assert!(sweep(dir.path(), &Vec::new).removed.is_empty());
    }

    #[test]
    fn a_child_that_nobody_saw_end_is_over_when_it_is_found_dead() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder(dir.path())).unwrap();
        fs::create_dir_all(dir.path().join("refs")).unwrap();
        let lock = |name: &str| {
            let path = dir.path().join("refs").join(name);
            File::create(&path).unwrap();
            path
        };
        let begun = seconds(SystemTime::now() - Duration::from_secs(20));
        let note = format!("begun {begun}\nlife 3600\nlock {}\0\n", dir.path().join("refs").display());
        fs::write(folder(dir.path()).join("note"), note).unwrap();
        let before = lock("before.lock");
        assert_eq!(sweep(dir.path(), &Vec::new).young, std::slice::from_ref(&before));
        std::thread::sleep(Duration::from_millis(20));
        lock("after.lock");
        assert_eq!(sweep(dir.path(), &Vec::new).young, [before]);
    }

    #[test]
    fn nothing_of_a_child_that_lives_or_is_waited_for_goes() {
        let (dir, locks) = left(Some(std::process::id()), &[55]);
        assert!(sweep(dir.path(), &Vec::new).removed.is_empty() && locks[0].exists());
        let (dir, locks) = left(None, &[55]);
        let note = File::open(folder(dir.path()).join("note")).unwrap();
        let held = Flock::lock(note, FlockArg::LockExclusive).unwrap();
        assert!(sweep(dir.path(), &Vec::new).removed.is_empty() && locks[0].exists());
        drop(held);
        assert_eq!(sweep(dir.path(), &Vec::new).removed.len(), 1);
    }

    #[test]
    fn where_only_our_children_lock_a_dead_ones_lock_goes_at_once() {
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        let pid = dead.id();
        dead.wait().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let heads = dir.path().join("refs/aynig/remote/origin");
        let locks = [heads.join("w.lock"), dir.path().join("refs/aynig/run.lock")];
        let leave = |pid: Option<u32>| {
            let note =
                Noted::begin(&MayLock::refs(dir.path(), [dir.path().join("refs/aynig")]), Shared::Umask)
                    .unwrap();
            pid.into_iter().for_each(|pid| note.started(pid));
            fs::create_dir_all(&heads).unwrap();
            locks.iter().for_each(|lock| fs::write(lock, "").unwrap());
            note.killed();
        };
        // A child that may live keeps what may be its own; so does one that is at work beside a dead one.
        leave(None);
        assert!(sweep(dir.path(), &Vec::new).removed.is_empty());
        fs::remove_dir_all(folder(dir.path())).unwrap();
        leave(Some(pid));
        let beside = Noted::begin(&MayLock::refs(dir.path(), [heads.clone()]), Shared::Umask).unwrap();
        // The lock is made again, so that `beside` began before it was made, as far as clocks tell.
        fs::write(&locks[0], "").unwrap();
        assert!(sweep(dir.path(), &Vec::new).removed.is_empty());
        beside.forget();
        leave(Some(pid));
        let swept = sweep(dir.path(), &Vec::new);
        assert_eq!((swept.removed, swept.young.first()), (vec![locks[0].clone()], Some(&locks[1])));
    }

    #[test]
    fn a_dead_child_that_nobody_waited_for_holds_nothing() {
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        let pid = dead.id();
        while !is_zombie(pid as i32) {
            std::thread::yield_now();
        }
        let (dir, locks) = left(Some(pid), &[55]);
        assert!(!super::at_work(dir.path(), &locks[0]));
        assert_eq!(sweep(dir.path(), &Vec::new).removed, locks);
        dead.wait().unwrap();
        assert!(!is_zombie(std::process::id() as i32));
    }

    #[test]
    fn what_a_living_child_locked_since_it_began_is_at_work() {
        for (pid, age, at_work) in
            [(Some(std::process::id()), 55, true), (Some(std::process::id()), 100, false), (None, 55, false)]
        {
            let (dir, locks) = left(pid, &[age]);
            assert_eq!(super::at_work(dir.path(), &locks[0]), at_work, "{pid:?} {age}");
            assert!(
                !super::at_work(dir.path(), &dir.path().join("packed-refs.lock")),
                "it may not lock that"
            );
        }
        let (dir, locks) = left(None, &[55]);
        let note = File::open(folder(dir.path()).join("note")).unwrap();
        let _held = Flock::lock(note, FlockArg::LockExclusive).unwrap();
        assert!(super::at_work(dir.path(), &locks[0]), "its runner waits for it");
    }

    #[test]
    fn a_child_is_noted_while_it_runs_and_judged_only_later() {
        let dir = tempfile::tempdir().unwrap();
        let may = MayLock::refs(dir.path(), []);
        let notes = || fs::read_dir(folder(dir.path())).unwrap().count();
        let noted = Noted::begin(&may, Shared::Umask).unwrap();
        noted.started(1);
        assert_eq!(notes(), 1);
        noted.forget();
        assert_eq!(notes(), 0);
        let noted = Noted::begin(&may, Shared::Umask).unwrap();
        let locks = ["packed-refs.new", "packed-refs.lock"].map(|name| dir.path().join(name));
        locks.iter().for_each(|lock| fs::write(lock, "").unwrap());
        noted.killed();
        let swept = sweep(dir.path(), &Vec::new);
        assert!(swept.removed.is_empty() && locks.iter().all(|lock| lock.exists()), "{swept:?}");
        assert_eq!((swept.young, notes()), (locks.to_vec(), 1));
    }
}

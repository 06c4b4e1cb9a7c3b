//! A governed project's folder, and what operations there may know of the world.
//!
//! The room asks nothing by itself: the clock, the source of ids, the environment, how long a lock is waited
//! for and whether what is written is synced are values of a [`Root`]. The defaults are what a program
//! wants: the system's clock, random ids, the process's environment for child processes, five seconds,
//! synced. Cloning one is cheap. Implements G1, G2.

use super::time;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;
type Ids = Arc<dyn Fn() -> [u8; 8] + Send + Sync>;

/// The folder that holds `agentxchain.json`, with the surroundings of every operation on it.
#[derive(Clone)]
pub struct Root {
    folder: PathBuf,
    clock: Clock,
    ids: Ids,
    environment: Option<Arc<Vec<(OsString, OsString)>>>,
    lock_wait: Duration,
    sync: bool,
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Root {
    /// This folder, with the default surroundings.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            clock: Arc::new(SystemTime::now),
            ids: Arc::new(random),
            environment: None,
            lock_wait: Duration::from_secs(5),
            sync: true,
        }
    }

    /// Gives another folder the same surroundings.
    pub fn at(&self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..self.clone() }
    }

    /// Takes the time from here.
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Takes the eight bytes of each new id from here; none may come twice.
    pub fn with_ids(mut self, ids: impl Fn() -> [u8; 8] + Send + Sync + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Gives hooks and `git` this environment and no other, and reads `${NAME}` in headers from it.
    ///
    /// Without it children inherit the process's, and `${NAME}` is found in the hook's own `env` alone.
    pub fn with_environment(mut self, all: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.environment = Some(Arc::new(all.into_iter().collect()));
        self
    }

    /// Waits this long for a lock that another process holds; [`acquire_lock`](super::acquire_lock) never waits.
    pub fn with_lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// Syncs what is written before it is reported, or leaves that to the caller.
    pub fn with_sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.folder.join(relative)
    }

    pub(super) fn moment(&self) -> SystemTime {
        (self.clock)()
    }

    pub(crate) fn now(&self) -> String {
        time::iso(self.moment())
    }

    /// A new id: the prefix, `_`, 16 hex digits.
    pub(crate) fn id(&self, prefix: &str) -> String {
        (self.ids)().iter().fold(format!("{prefix}_"), |id, byte| format!("{id}{byte:02x}"))
    }

    pub(super) fn lock_wait(&self) -> Duration {
        self.lock_wait
    }

    pub(super) fn syncs(&self) -> bool {
        self.sync
    }

    /// The environment that was given.
    pub(super) fn environment(&self) -> Option<&[(OsString, OsString)]> {
        self.environment.as_ref().map(|all| all.as_slice())
    }

    /// A variable as a child process would be given it: of the environment that was given, else of the process's.
    pub(super) fn inherited(&self, name: &str) -> Option<OsString> {
        match self.environment() {
            Some(_) => self.variable(name).map(OsStr::to_owned),
            None => crate::supervisor::inherited(name),
        }
    }

    /// A variable of the environment that was given.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment()?.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }
}

/// Eight bytes that can't be guessed: those of a random UUID that are random.
fn random() -> [u8; 8] {
    let all = uuid::Uuid::new_v4().into_bytes();
    [all[0], all[1], all[2], all[3], all[4], all[5], all[9], all[10]]
}

//! A governed project's folder, and the surroundings that its operations depend on.
//!
//! Operations take nothing from the outside by themselves: the clock, the source of ids, the environment, how
//! long they wait for a lock, and whether they sync what they write are values of a [`Root`]. The defaults
//! are what a program wants: the system's clock, random ids, the process's environment for child processes, a
//! wait of five seconds, everything synced. Cloning a root is cheap. Implements G1, G2.

use super::time;
use crate::store::workspace::KnownTree;
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
    tree: Option<Arc<KnownTree>>,
    lock_wait: Duration,
    sync: bool,
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Root {
    /// Makes the root of this folder, with the default surroundings.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            clock: Arc::new(SystemTime::now),
            ids: Arc::new(random),
            environment: None,
            tree: None,
            lock_wait: Duration::from_secs(5),
            sync: true,
        }
    }

    /// Makes the root of another folder, with the same surroundings.
    pub fn at(&self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..self.clone() }
    }

    /// Sets the clock that operations take the time from.
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of the eight bytes of each new id; it must not return the same bytes twice.
    pub fn with_ids(mut self, ids: impl Fn() -> [u8; 8] + Send + Sync + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Gives hooks and `git` this environment and no other, and reads `${NAME}` in headers from it.
    ///
    /// Without it, child processes inherit the environment of this process, and `${NAME}` is looked up in the
    /// `env` of the hook or webhook alone.
    pub fn with_environment(mut self, all: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.environment = Some(Arc::new(all.into_iter().collect()));
        self
    }

    /// Names the working tree that the folder lies in. Without it the `.git` there is asked, which whoever writes into
    /// the folder may have replaced.
    pub(crate) fn with_tree(mut self, tree: Option<KnownTree>) -> Self {
        self.tree = tree.map(Arc::new);
        self
    }

    /// Sets how long operations wait for a lock that another process holds;
    /// [`acquire_lock`](super::acquire_lock) never waits.
    pub fn with_lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// Sets whether operations sync what they write before they return; if not, syncing is left to the
    /// caller.
    pub fn with_sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// Returns the folder that holds `agentxchain.json`.
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

    /// Returns a new id: the prefix, `_`, 16 hex digits.
    pub(crate) fn id(&self, prefix: &str) -> String {
        (self.ids)().iter().fold(format!("{prefix}_"), |id, byte| format!("{id}{byte:02x}"))
    }

    /// Returns the working tree that [`Root::with_tree`] was given, if any.
    pub(super) fn tree(&self) -> Option<&KnownTree> {
        self.tree.as_deref()
    }

    pub(super) fn lock_wait(&self) -> Duration {
        self.lock_wait
    }

    pub(super) fn syncs(&self) -> bool {
        self.sync
    }

    /// Returns the environment that [`Root::with_environment`] was given, if any.
    pub(super) fn environment(&self) -> Option<&[(OsString, OsString)]> {
        self.environment.as_ref().map(|all| all.as_slice())
    }

    /// Returns a variable as a child process would inherit it: from the environment that was given, else from
    /// this process's.
    pub(super) fn inherited(&self, name: &str) -> Option<OsString> {
        match self.environment() {
            Some(_) => self.variable(name).map(OsStr::to_owned),
            None => crate::supervisor::inherited(name),
        }
    }

    /// Returns a variable of the environment that was given; never one of this process's.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment()?.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }
}

/// Returns eight bytes that can't be guessed: those bytes of a random UUID that hold no fixed bits.
fn random() -> [u8; 8] {
    let all = uuid::Uuid::new_v4().into_bytes();
    [all[0], all[1], all[2], all[3], all[4], all[5], all[9], all[10]]
}

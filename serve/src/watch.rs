//! Changes of a repository, noticed as they happen and by a look every second for what the system does not tell of
//! (network file systems).
//!
//! What counts is where refs and logs lie: `refs/`, `packed-refs`, `reftable/`, `HEAD`, and the folder of logs. A change
//! is told at once; what follows within a moment is one more. A remote is asked every few seconds while a page looks on.
//! Implements W2 (noticing).

use crate::state::State;
use notify::event::EventKind;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// What follows one change within so long is told with it.
const MOMENT: Duration = Duration::from_millis(40);
/// How often there is a look.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a remote is asked, while there is a page that looks on.
const HEAR_EVERY: Duration = Duration::from_secs(5);

/// A change of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Which place.
    pub repo: usize,
    /// Refs may be others.
    pub heads: bool,
    /// Logs may be longer.
    pub logs: bool,
}

/// What was heard of a place, until it is told.
#[derive(Default)]
struct Heard {
    heads: std::sync::atomic::AtomicBool,
    logs: std::sync::atomic::AtomicBool,
    any: Notify,
}

/// The watches; they end with the value.
pub struct Watches {
    _watchers: Vec<Arc<Mutex<System>>>,
}

/// What the system tells of a place.
struct System {
    watcher: Option<RecommendedWatcher>,
    /// The folder of logs that is watched, by its number: it may be made after the start, and made anew.
    logs: Option<u64>,
}

impl System {
    /// Watches the folder of logs that is there now; true where the system tells of what grows in it.
    fn follow(&mut self, logs: &Path) -> bool {
        let there = std::fs::metadata(logs).ok().filter(std::fs::Metadata::is_dir).map(|meta| meta.ino());
        let Some(watcher) = &mut self.watcher else { return false };
        if self.logs != there {
            let _ = watcher.unwatch(logs);
            self.logs = there.filter(|_| watcher.watch(logs, RecursiveMode::NonRecursive).is_ok());
        }
        self.logs.is_some()
    }
}

/// Begins to watch every place.
pub fn begin(state: &Arc<State>) -> Watches {
    let one = |(repo, place): (usize, &aynig::served::Place)| {
        let heard = Arc::new(Heard::default());
        let (common_dir, logs) = (place.common_dir.clone(), place.logs.clone());
        let watched = Watched { common_dir, logs };
        tokio::spawn(tell(Arc::downgrade(state), repo, Arc::clone(&heard)));
        tokio::spawn(hear(Arc::downgrade(state), repo));
        let system = Arc::new(Mutex::new(System { watcher: watched.by_the_system(heard), logs: None }));
        tokio::spawn(look(Arc::downgrade(state), repo, watched, Arc::clone(&system)));
        system
    };
    Watches { _watchers: state.served.places.iter().enumerate().map(one).collect() }
}

/// Tells what is heard at once, and what comes within a moment after that together.
async fn tell(state: Weak<State>, repo: usize, heard: Arc<Heard>) {
    use std::sync::atomic::Ordering::SeqCst;
    loop {
        heard.any.notified().await;
        let change =
            Change { repo, heads: heard.heads.swap(false, SeqCst), logs: heard.logs.swap(false, SeqCst) };
        let Some(state) = state.upgrade() else { return };
        if change.heads || change.logs {
            state.changed(change);
        }
        drop(state);
        tokio::time::sleep(MOMENT).await;
    }
}

/// Hears what a remote has while a page looks on: what is new is a change of refs here.
async fn hear(state: Weak<State>, repo: usize) {
    loop {
        tokio::time::sleep(HEAR_EVERY).await;
        let Some(state) = state.upgrade() else { return };
        if state.looks_on() {
            let place = state.served.places[repo].clone();
            // What failed is told to those who ask.
            let _ = tokio::task::spawn_blocking(move || place.hear()).await;
        }
    }
}

/// Looks again and again, on a thread that may wait.
async fn look(state: Weak<State>, repo: usize, watched: Watched, system: Arc<Mutex<System>>) {
    let mut seen = Seen::default();
    let mut is_first = true;
    loop {
        let (watched, system) = (watched.clone(), Arc::clone(&system));
        let looked = tokio::task::spawn_blocking(move || {
            let is_told = system.lock().unwrap_or_else(PoisonError::into_inner).follow(&watched.logs);
            let changed = seen.look(&watched, !is_told);
            (seen, changed)
        });
        let Ok((now, (heads, logs))) = looked.await else { return };
        seen = now;
        let Some(state) = state.upgrade() else { return };
        if (heads || logs) && !is_first {
            state.changed(Change { repo, heads, logs });
        }
        drop(state);
        is_first = false;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Where a place's refs and logs lie.
#[derive(Clone)]
struct Watched {
    common_dir: PathBuf,
    logs: PathBuf,
}

impl Watched {
    /// Asks the system to tell; `None` where it can't.
    fn by_the_system(&self, heard: Arc<Heard>) -> Option<RecommendedWatcher> {
        use std::sync::atomic::Ordering::SeqCst;
        let own = self.clone();
        let told = move |event: notify::Result<notify::Event>| {
            // What failed was lost: it counts as a change.
            let (heads, logs) = match &event {
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
                Ok(event) => event.paths.iter().fold((false, false), |(heads, logs), path| {
                    (heads || own.is_of_heads(path), logs || path.starts_with(&own.logs))
                }),
                Err(_) => (true, true),
            };
            if heads {
                heard.heads.store(true, SeqCst);
            }
            if logs {
                heard.logs.store(true, SeqCst);
            }
            if heads || logs {
                heard.any.notify_one();
            }
        };
        let mut watcher = notify::recommended_watcher(told).ok()?;
        let places = [
            (self.common_dir.clone(), RecursiveMode::NonRecursive),
            (self.common_dir.join("refs"), RecursiveMode::Recursive),
            (self.common_dir.join("reftable"), RecursiveMode::NonRecursive),
        ];
        for (path, mode) in places {
            // One that is not there yet is found by looking.
            let _ = watcher.watch(&path, mode);
        }
        Some(watcher)
    }

    fn is_of_heads(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.common_dir) else { return false };
        // A lock is no change: what it becomes is.
        if path.extension().is_some_and(|end| end == "lock") {
            return false;
        }
        let first = below.components().next().map(|first| first.as_os_str().to_owned());
        first.is_some_and(|first| {
            first == "refs" || first == "packed-refs" || first == "reftable" || first == "HEAD"
        })
    }
}

/// What a look saw: when each folder of refs, and each file beside them, was changed. A ref that moves is renamed
/// into its folder, which changes that.
#[derive(Default)]
struct Seen {
    folders: Vec<(PathBuf, Option<SystemTime>)>,
    files: Vec<Option<SystemTime>>,
    logs: Option<(SystemTime, u64)>,
}

fn changed_at(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata().ok()?.modified().ok()
}

impl Seen {
    /// Whether refs, and logs, are others than at the last look; sizes of logs are looked at where the system does not
    /// tell of them.
    fn look(&mut self, watched: &Watched, sizes: bool) -> (bool, bool) {
        let names = ["packed-refs", "HEAD", "reftable", "reftable/tables.list"];
        let files = names.map(|name| changed_at(&watched.common_dir.join(name))).to_vec();
        let stale = self.folders.is_empty() || self.folders.iter().any(|(path, at)| changed_at(path) != *at);
        let heads = stale || files != self.files;
        self.files = files;
        if stale {
            self.folders.clear();
            let mut open = vec![watched.common_dir.join("refs")];
            while let Some(folder) = open.pop() {
                let at = changed_at(&folder);
                let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
                let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
                open.extend(folders.map(|entry| entry.path()));
                self.folders.push((folder, at));
            }
        }
        let logs = log_sizes(&watched.logs, sizes);
        let longer = logs != self.logs;
        self.logs = logs;
        (heads, longer)
    }
}

/// When the folder was changed, and how long its newest files are together: one that grows does not change its folder.
fn log_sizes(folder: &Path, sizes: bool) -> Option<(SystemTime, u64)> {
    let at = changed_at(folder)?;
    if !sizes {
        return Some((at, 0));
    }
    let sizes = std::fs::read_dir(folder).ok()?.flatten().take(4096);
    Some((at, sizes.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()))
}

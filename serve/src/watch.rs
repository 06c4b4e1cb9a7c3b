//! Changes of a repository, noticed as the system reports them, and by a check every second for what it does
//! not report (on network file systems).
//!
//! Watched are the places of refs and logs: `refs/`, `packed-refs`, `reftable/`, `HEAD`, and the folder of
//! logs. A change is passed on at once; what follows within a moment is passed on as one more. If the folder
//! of logs does not exist yet, the folders above it are watched for it. A remote is asked every few seconds
//! while a page is open. Implements W2 (noticing).

use crate::state::State;
use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// How long changes are collected after one was passed on.
const MOMENT: Duration = Duration::from_millis(40);
/// How often a repository is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a remote is asked while a page is open.
const HEAR_EVERY: Duration = Duration::from_secs(5);
/// The number of folders from the folder of logs up to the working tree or the Git directory, two above it.
const LEADING: usize = 3;

/// A change of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The number of the repository.
    pub repo: usize,
    /// Whether refs may have changed.
    pub heads: bool,
    /// Whether logs may have grown.
    pub logs: bool,
}

/// What the system reported of a repository and was not passed on yet.
#[derive(Default)]
struct Heard {
    heads: AtomicBool,
    logs: AtomicBool,
    any: Notify,
    /// Notified when a folder that leads to the folder of logs, or that folder itself, was made or removed.
    way: Notify,
    gone: AtomicBool,
}

/// The watches of all repositories; they end with the value.
pub struct Watches {
    _watchers: Vec<Arc<Mutex<System>>>,
}

/// The watch of one repository by the system.
struct System {
    watcher: Option<RecommendedWatcher>,
    /// The watched folder with its inode number: the folder of logs, or the nearest one above it while that
    /// does not exist. The folder of logs may be made after the start, and made anew.
    logs: Option<(PathBuf, u64)>,
}

impl System {
    /// Watches the folder of logs, or the nearest existing one above it; true if it is the folder of logs, so
    /// that the system reports what grows in it. If `is_gone`, the folder is watched anew: one that was
    /// removed and made again may have its old number.
    fn follow(&mut self, watched: &Watched, is_gone: bool) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let mut is_gone = is_gone;
        // A folder that is made just before the one above it is watched is not reported, so it is looked for
        // again.
        for _ in 0..=LEADING {
            let there = watched.nearest();
            if there == self.logs && !std::mem::take(&mut is_gone) {
                break;
            }
            // The Git directory stays watched for its refs.
            let of_logs = |(path, _): &(PathBuf, u64)| *path != watched.common_dir;
            if let Some((path, _)) = self.logs.take().filter(of_logs) {
                let _ = watcher.unwatch(&path);
            }
            self.logs = there.filter(|there| {
                !of_logs(there) || watcher.watch(&there.0, RecursiveMode::NonRecursive).is_ok()
            });
        }
        self.logs.as_ref().is_some_and(|(path, _)| *path == watched.logs)
    }
}

/// Starts to watch every repository.
pub fn begin(state: &Arc<State>) -> Watches {
    let one = |(repo, place): (usize, &aynig::served::Place)| {
        let heard = Arc::new(Heard::default());
        let (common_dir, logs) = (place.common_dir.clone(), place.logs.clone());
        let watched = Watched { common_dir, logs };
        tokio::spawn(tell(Arc::downgrade(state), repo, Arc::clone(&heard)));
        tokio::spawn(hear(Arc::downgrade(state), repo));
        let by_the_system = watched.by_the_system(Arc::clone(&heard));
        let system = Arc::new(Mutex::new(System { watcher: by_the_system, logs: None }));
        tokio::spawn(look(Arc::downgrade(state), repo, watched, (Arc::clone(&system), heard)));
        system
    };
    Watches { _watchers: state.served.places.iter().enumerate().map(one).collect() }
}

/// Passes changes on: the first at once, and those within a moment after it together.
async fn tell(state: Weak<State>, repo: usize, heard: Arc<Heard>) {
    loop {
        heard.any.notified().await;
        let change = Change {
            repo,
            heads: heard.heads.swap(false, Ordering::SeqCst),
            logs: heard.logs.swap(false, Ordering::SeqCst),
        };
        let Some(state) = state.upgrade() else { return };
        if change.heads || change.logs {
            state.changed(change);
        }
        drop(state);
        tokio::time::sleep(MOMENT).await;
    }
}

/// Asks the remote while a page is open. What is new there changes refs in this repository, which is noticed
/// like any change.
async fn hear(state: Weak<State>, repo: usize) {
    loop {
        tokio::time::sleep(HEAR_EVERY).await;
        let Some(state) = state.upgrade() else { return };
        if state.looks_on() {
            let place = state.served.places[repo].clone();
            // A failure is reported to the requests that need the remote.
            let _ = tokio::task::spawn_blocking(move || place.hear()).await;
        }
    }
}

/// Checks a repository again and again, on a thread that may block; at once if the folder of logs may have
/// changed.
async fn look(
    state: Weak<State>,
    repo: usize,
    watched: Watched,
    (system, heard): (Arc<Mutex<System>>, Arc<Heard>),
) {
    let mut seen = Seen::default();
    let mut is_first = true;
    loop {
        let (watched, system) = (watched.clone(), Arc::clone(&system));
        let is_gone = heard.gone.swap(false, Ordering::SeqCst);
        let looked = tokio::task::spawn_blocking(move || {
            let is_told = system.lock().unwrap_or_else(PoisonError::into_inner).follow(&watched, is_gone);
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
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = heard.way.notified() => {}
        }
    }
}

/// The places of a repository's refs and logs.
#[derive(Clone)]
struct Watched {
    common_dir: PathBuf,
    logs: PathBuf,
}

impl Watched {
    /// Returns the folder of logs, or the nearest existing one above it, with its inode number; `None` if not
    /// even the repository exists.
    fn nearest(&self) -> Option<(PathBuf, u64)> {
        self.logs.ancestors().take(LEADING).find_map(|folder| {
            let meta = folder.metadata().ok().filter(std::fs::Metadata::is_dir)?;
            Some((folder.to_owned(), meta.ino()))
        })
    }

    /// Starts a watcher of the system; `None` if there is none.
    fn by_the_system(&self, heard: Arc<Heard>) -> Option<RecommendedWatcher> {
        let own = self.clone();
        let told = move |event: notify::Result<notify::Event>| {
            let leads = |event: &notify::Event| event.paths.iter().any(|path| own.logs.starts_with(path));
            if event.as_ref().map_or(true, |event| is_of_names(event.kind) && leads(event)) {
                heard.gone.fetch_or(!matches!(&event, Ok(event) if event.kind.is_create()), Ordering::SeqCst);
                heard.way.notify_one();
            }
            // An error means that events were lost: it counts as a change.
            let (heads, logs) = match &event {
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
                Ok(event) => event.paths.iter().fold((false, false), |(heads, logs), path| {
                    (heads || own.is_of_heads(path), logs || path.starts_with(&own.logs))
                }),
                Err(_) => (true, true),
            };
            if heads {
                heard.heads.store(true, Ordering::SeqCst);
            }
            if logs {
                heard.logs.store(true, Ordering::SeqCst);
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
            // A folder that does not exist yet is covered by the checks.
            let _ = watcher.watch(&path, mode);
        }
        Some(watcher)
    }

    fn is_of_heads(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.common_dir) else { return false };
        // A lock file is no change: what it is renamed to is one.
        if path.extension().is_some_and(|end| end == "lock") {
            return false;
        }
        let first = below.components().next().map(|first| first.as_os_str().to_owned());
        first.is_some_and(|first| {
            first == "refs" || first == "packed-refs" || first == "reftable" || first == "HEAD"
        })
    }
}

/// True if a name was made, removed, or renamed.
fn is_of_names(kind: EventKind) -> bool {
    matches!(kind, EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)))
}

/// What a check saw: when each folder of refs, and each file beside them, was modified. A ref that moves is
/// renamed into its folder, which modifies the folder.
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
    /// Returns whether refs, and whether logs, differ from the last check. The sizes of logs are read only if
    /// the system does not report what grows.
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

/// Returns when the folder was modified, and the size of its files together, as a file that grows does not
/// modify its folder; the size is 0 unless asked for, and counts 4096 files at most.
fn log_sizes(folder: &Path, sizes: bool) -> Option<(SystemTime, u64)> {
    let at = changed_at(folder)?;
    if !sizes {
        return Some((at, 0));
    }
    let sizes = std::fs::read_dir(folder).ok()?.flatten().take(4096);
    Some((at, sizes.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()))
}

#[cfg(test)]
mod tests {
    use super::{Heard, MOMENT, System, Watched};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::sync::Notify;

    /// True if the system reports a change soon; what it reports within a moment after that belongs to the
    /// same change.
    async fn is_told(of: &Notify) -> bool {
        let told = tokio::time::timeout(Duration::from_secs(20), of.notified()).await.is_ok();
        while tokio::time::timeout(MOMENT, of.notified()).await.is_ok() {}
        told
    }

    async fn tells_of_logs(logs: &Path, git: &Path) {
        let watched = Watched { common_dir: git.to_owned(), logs: logs.to_owned() };
        let heard = Arc::new(Heard::default());
        let mut system = System { watcher: watched.by_the_system(Arc::clone(&heard)), logs: None };
        assert!(!system.follow(&watched, false), "there is none");
        for round in ["the first run", "another, after it was removed"] {
            std::fs::create_dir_all(logs.parent().unwrap()).unwrap();
            assert!(is_told(&heard.way).await, "{round}: the folder above");
            assert!(!system.follow(&watched, true));
            std::fs::create_dir(logs).unwrap();
            assert!(is_told(&heard.way).await, "{round}: the folder");
            assert!(system.follow(&watched, false));
            // What was reported of the folder itself is not what is tested.
            let _ = tokio::time::timeout(MOMENT, heard.any.notified()).await;
            std::fs::write(logs.join("job.stdout.log"), "a line\n").unwrap();
            assert!(is_told(&heard.any).await, "{round}: a line");
            std::fs::remove_dir_all(logs.parent().unwrap()).unwrap();
            assert!(is_told(&heard.way).await, "{round}: it is gone");
            assert!(!system.follow(&watched, true));
        }
    }

    /// W2: the folder of logs is watched from the moment at which the first run makes it, not only from the
    /// next check on, both in the working tree and in the Git directory.
    #[test]
    fn w2_a_folder_of_logs_is_noticed_as_it_is_made() {
        let top = tempfile::tempdir().unwrap();
        let git = top.path().join(".git");
        std::fs::create_dir_all(git.join("refs")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(tells_of_logs(&top.path().join(".aynig/logs"), &git));
        runtime.block_on(tells_of_logs(&git.join("aynig/logs"), &git));
    }
}

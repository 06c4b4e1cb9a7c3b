//! What a server has while it runs: the repositories, the keys, and the receivers of changes.

use crate::keys::Keys;
use crate::live::Live;
use crate::paging::Known;
use crate::ui::Ui;
use crate::watch::Change;
use aynig::contract::id::RunId;
use aynig::served::{AllBranches, Place, Unanswered};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, broadcast, oneshot, watch};
use tokio_rustls::TlsAcceptor;

/// How long what was read of the branches is good if nothing changed; not for longer, as leases run out by
/// the clock.
const FRESH: Duration = Duration::from_secs(10);
/// A socket that is this many changes behind is told to read everything again.
const BEHIND_MAX: usize = 64;
/// Most runs of whose logs something is remembered.
const KNOWN_MAX: usize = 32;

/// What was asked for at the start of the server.
pub struct Served {
    pub places: Vec<Place>,
    /// Where flows' logs are stored, if that was given.
    pub data: Option<PathBuf>,
    /// The program that writes (`git-aynig`).
    pub program: PathBuf,
    pub read_only: bool,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    /// A page that others wrote, if one is shown.
    pub ui: Option<Ui>,
    /// What encrypts connections, if TLS is used.
    pub tls: Option<TlsAcceptor>,
}

impl Served {
    /// Returns the schemes of the server's addresses, and of its sockets.
    pub fn schemes(&self) -> (&'static str, &'static str) {
        if self.tls.is_some() { ("https", "wss") } else { ("http", "ws") }
    }
}

/// The branches of a repository, and when they were read.
#[derive(Default)]
struct Read {
    at: Option<(u64, Instant)>,
    branches: Arc<AllBranches>,
}

/// A reading of all branches of a repository.
type Look = Box<dyn FnOnce() + Send>;

/// The state that all requests share.
pub struct State {
    pub served: Served,
    pub keys: Keys,
    /// The clients of `/ws`.
    pub live: Live,
    /// Sends every change to every socket.
    pub changes: broadcast::Sender<Change>,
    /// True once the server ends.
    pub closing: watch::Sender<bool>,
    /// How often each repository changed.
    generations: Vec<AtomicU64>,
    read: Vec<Mutex<Read>>,
    /// Sends readings to the thread that does them.
    looks: Sender<Look>,
    /// What is known of the logs of runs that were paged through.
    known: std::sync::Mutex<HashMap<RunId, Arc<std::sync::Mutex<Known>>>>,
}

impl State {
    pub fn new(served: Served, keys: Keys) -> Self {
        let generations = served.places.iter().map(|_| AtomicU64::new(1)).collect();
        let read = served.places.iter().map(|_| Mutex::default()).collect();
        let changes = broadcast::channel(BEHIND_MAX).0;
        let (live, closing, known) = (Live::new(), watch::channel(false).0, Default::default());
        Self { served, keys, live, changes, closing, generations, read, looks: looker(), known }
    }

    /// Notes a change of a repository: what was read of it is out of date, and every open page is told.
    pub fn changed(&self, change: Change) {
        self.generations[change.repo].fetch_add(1, Ordering::SeqCst);
        let _ = self.changes.send(change);
    }

    /// True while a page is open. One receiver of changes does not count: the task that reads the runs for
    /// all clients.
    pub fn looks_on(&self) -> bool {
        self.changes.receiver_count() > 1 || self.live.has_clients()
    }

    /// Returns what is known of a run's log. Nothing is remembered for long if there are many runs.
    pub fn known(&self, run: RunId) -> Arc<std::sync::Mutex<Known>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX && !known.contains_key(&run) {
            known.clear();
        }
        Arc::clone(known.entry(run).or_default())
    }

    /// Returns the branches of a repository as they are now. Many requests at once are answered by one
    /// reading.
    pub async fn branches(&self, repo: usize) -> Result<Arc<AllBranches>, Unanswered> {
        let mut read = self.read[repo].lock().await;
        // Loaded before the reading: a change during it makes the result out of date.
        let now = self.generations[repo].load(Ordering::SeqCst);
        if read.at.is_some_and(|(generation, at)| generation == now && at.elapsed() < FRESH) {
            return Ok(Arc::clone(&read.branches));
        }
        // The old value is dropped first, so that both are never in memory at once.
        *read = Read::default();
        let place = self.served.places[repo].clone();
        let (told, looked) = oneshot::channel();
        let _ = self.looks.send(Box::new(move || _ = told.send(place.all_branches())));
        let branches = Arc::new(looked.await.map_err(|_| broken())??);
        *read = Read { at: Some((now, Instant::now())), branches: Arc::clone(&branches) };
        Ok(branches)
    }
}

/// Runs work that takes time on a thread that may block.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Unanswered> {
    tokio::task::spawn_blocking(work).await.map_err(|_| broken())
}

fn broken() -> Unanswered {
    let message = "the question was not answered to its end".to_owned();
    Unanswered { cause: aynig::served::Cause::Failed, message }
}

/// Starts the thread that reads all branches of a repository: one for all readings, as the memory that a
/// reading takes stays with its thread.
fn looker() -> Sender<Look> {
    let (looks, asked) = std::sync::mpsc::channel::<Look>();
    std::thread::spawn(move || {
        // A reading that panics is reported to its caller, and does not end the thread.
        asked.into_iter().for_each(|look| _ = std::panic::catch_unwind(AssertUnwindSafe(look)));
    });
    looks
}

/// Returns once the server ends.
pub async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

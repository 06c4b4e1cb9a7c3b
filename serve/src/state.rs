//! What a server has while it runs: places, keys, and who is told of changes.

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

/// So long what was read of the branches is good where nothing changed: leases run on by the clock.
const FRESH: Duration = Duration::from_secs(10);
/// A reader who is so many changes behind is told to look at everything.
const BEHIND_MAX: usize = 64;
/// Most runs whose logs are known.
const KNOWN_MAX: usize = 32;

/// What was asked for at the start.
pub struct Served {
    pub places: Vec<Place>,
    /// Where flows' logs are kept, where that was said.
    pub data: Option<PathBuf>,
    /// The program that writes.
    pub program: PathBuf,
    pub read_only: bool,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    /// A page that others wrote.
    pub ui: Option<Ui>,
    /// How connections are made private, where they are.
    pub tls: Option<TlsAcceptor>,
}

impl Served {
    /// What its addresses, and those of its sockets, begin with.
    pub fn schemes(&self) -> (&'static str, &'static str) {
        if self.tls.is_some() { ("https", "wss") } else { ("http", "ws") }
    }
}

/// How the branches of a place stood when they were last read.
#[derive(Default)]
struct Read {
    at: Option<(u64, Instant)>,
    branches: Arc<AllBranches>,
}

/// A look at all branches of a place.
type Look = Box<dyn FnOnce() + Send>;

/// All of it.
pub struct State {
    pub served: Served,
    pub keys: Keys,
    /// Clients that are told of runs.
    pub live: Live,
    /// Changes, to every socket.
    pub changes: broadcast::Sender<Change>,
    /// True once the server ends.
    pub closing: watch::Sender<bool>,
    /// How often each place changed.
    generations: Vec<AtomicU64>,
    read: Vec<Mutex<Read>>,
    /// To the thread that looks at branches.
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

    /// Something changed in a place: what was read of it is old, and every page that looks is told.
    pub fn changed(&self, change: Change) {
        self.generations[change.repo].fetch_add(1, Ordering::SeqCst);
        let _ = self.changes.send(change);
    }

    /// True while a page looks on: what looks at runs for all of them listens too.
    pub fn looks_on(&self) -> bool {
        self.changes.receiver_count() > 1 || self.live.has_clients()
    }

    /// What is known of a run's log. Of many runs none is kept for long.
    pub fn known(&self, run: RunId) -> Arc<std::sync::Mutex<Known>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX && !known.contains_key(&run) {
            known.clear();
        }
        Arc::clone(known.entry(run).or_default())
    }

    /// How the branches of a place stand. Many who ask at once are answered by one look.
    pub async fn branches(&self, repo: usize) -> Result<Arc<AllBranches>, Unanswered> {
        let mut read = self.read[repo].lock().await;
        // Before the look: what changes during it is looked at again.
        let now = self.generations[repo].load(Ordering::SeqCst);
        if read.at.is_some_and(|(generation, at)| generation == now && at.elapsed() < FRESH) {
            return Ok(Arc::clone(&read.branches));
        }
        // What is old is not held beside what is new.
        *read = Read::default();
        let place = self.served.places[repo].clone();
        let (told, looked) = oneshot::channel();
        let _ = self.looks.send(Box::new(move || _ = told.send(place.all_branches())));
        let branches = Arc::new(looked.await.map_err(|_| broken())??);
        *read = Read { at: Some((now, Instant::now())), branches: Arc::clone(&branches) };
        Ok(branches)
    }
}

/// Does what takes time, on a thread that may wait.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Unanswered> {
    tokio::task::spawn_blocking(work).await.map_err(|_| broken())
}

fn broken() -> Unanswered {
    let message = "the question was not answered to its end".to_owned();
    Unanswered { cause: aynig::served::Cause::Failed, message }
}

/// The thread that looks at all branches of a place: one for all looks, as what a look takes of memory stays its thread's.
fn looker() -> Sender<Look> {
    let (looks, asked) = std::sync::mpsc::channel::<Look>();
    std::thread::spawn(move || {
        // One that breaks off is told as such to who asked, and ends no other.
        asked.into_iter().for_each(|look| _ = std::panic::catch_unwind(AssertUnwindSafe(look)));
    });
    looks
}

/// Returns once the server ends.
pub async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

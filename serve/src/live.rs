//! `/ws`: the events of runs as they come, one per text frame.
//!
//! A new client is told only what it asks for: with `since`, first the events after that place, with their
//! own ids, then the run's state. The logs are read once for all clients, and the end of each log is stored
//! as frames that all of them share. A client that is further behind reads the log itself, a piece at a time,
//! so nothing is stored for it. A flow that another process holds for too long stays as it was, and is read
//! again soon. Which nodes are alive is told every 2 s, and never logged. `client.rs` has the part of a
//! single client. Implements W6.

use crate::client::{Asked, Client};
use crate::fail::Failed;
use crate::guard::PROTOCOL;
use crate::paging::with_seq;
use crate::runs::id;
use crate::socket::{UpgradeOf, upgrade};
use crate::state::{State, blocking, closed};
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::Utf8Bytes;
use axum::extract::{Query, State as Of};
use axum::response::{IntoResponse, Response};
use aynig::contract::id::{NodeId, RunId};
use aynig::contract::words::NodeStatus;
use aynig::served::{Cause, Place, Unanswered};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// A client that does not read is closed once it is more than this many frames, or bytes, behind.
pub const FRAMES_MAX: usize = 1000;
pub const BEHIND_MAX: u64 = 8 << 20;
/// How long the reading for all clients waits for a process that holds a flow; not at all if the flow was
/// held the last time too.
const PATIENCE: Duration = Duration::from_secs(1);
/// How soon a flow that was held is read again.
const AGAIN: Duration = Duration::from_secs(1);
/// Most connections of which it is remembered that they were closed for not reading.
const CLOSED_MAX: usize = 64;

/// The end of a log, as frames for all clients.
#[derive(Debug, Default)]
pub struct Tail {
    /// The place in the log at which the frames begin.
    pub from: u64,
    /// The frames, each with the place after it.
    pub frames: Vec<(u64, Utf8Bytes)>,
}

/// A run as it was when it was last read.
#[derive(Debug, Clone)]
pub struct Head {
    pub repo: usize,
    pub log: u64,
    pub running: Vec<NodeId>,
    pub tail: Arc<Tail>,
}

pub type Heads = HashMap<RunId, Head>;

/// What is told to all clients, and what is remembered of them.
pub struct Live {
    heads: watch::Sender<Arc<Heads>>,
    /// Events that are in no log, such as a layout that was stored.
    said: broadcast::Sender<(RunId, Value)>,
    /// Lets one reading run at a time; `looks` counts how many began.
    looking: tokio::sync::Mutex<()>,
    looks: AtomicU64,
    /// Runs that could not be read the last time, as another process held them.
    held: Mutex<HashSet<RunId>>,
    /// The lengths of logs when clients were closed for not reading, until these come back.
    closed: Mutex<VecDeque<(RunId, u64)>>,
}

impl Live {
    pub fn new() -> Self {
        Self {
            heads: watch::channel(Arc::default()).0,
            said: broadcast::channel(256).0,
            looking: tokio::sync::Mutex::default(),
            looks: AtomicU64::new(0),
            held: Mutex::default(),
            closed: Mutex::default(),
        }
    }

    /// True while there are clients.
    pub fn has_clients(&self) -> bool {
        self.heads.receiver_count() > 0
    }

    fn held(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the clients of a run an event that is in no log.
    pub fn say(&self, run: RunId, event: &Value) {
        let _ = self.said.send((run, event.clone()));
    }

    /// Returns a receiver of the events that [`Self::say`] sends from then on.
    pub fn listen(&self) -> broadcast::Receiver<(RunId, Value)> {
        self.said.subscribe()
    }

    /// Remembers that a client of this run was closed for not reading, when its log had this length.
    pub fn closed_behind(&self, run: RunId, log: u64) {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if closed.len() >= CLOSED_MAX {
            closed.pop_front();
        }
        closed.push_back((run, log));
    }

    /// True if a client that was told up to this place may be one that was closed for not reading. A closing
    /// is reported once.
    pub fn was_closed(&self, run: RunId, since: u64) -> bool {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let found = closed.iter().position(|(of, log)| *of == run && since < *log);
        found.is_some_and(|at| closed.remove(at).is_some())
    }
}

/// Reads the runs whenever something changed, while there are clients.
pub async fn look(state: Arc<State>) {
    let mut changes = state.changes.subscribe();
    let mut closing = state.closing.subscribe();
    loop {
        let is_held = !state.live.held().is_empty();
        tokio::select! {
            change = changes.recv() => if let Err(broadcast::error::RecvError::Closed) = change { return },
            () = tokio::time::sleep(AGAIN), if is_held => {}
            () = closed(&mut closing) => return,
        }
        if state.live.has_clients() {
            refresh(&state).await;
        }
    }
}

/// Reads all runs. Of many callers at once one reads for all, and no reading replaces a later one.
async fn refresh(state: &Arc<State>) {
    let live = &state.live;
    let asked = live.looks.load(Ordering::SeqCst);
    let _turn = live.looking.lock().await;
    if live.looks.load(Ordering::SeqCst) > asked {
        return;
    }
    live.looks.fetch_add(1, Ordering::SeqCst);
    let before = Arc::clone(&live.heads.borrow());
    let of = Arc::clone(state);
    // What could not be read is read at the next change.
    if let Ok((heads, held)) = blocking(move || looked(&of, &before)).await {
        live.heads.send_replace(Arc::new(heads));
        *live.held() = held;
    }
}

/// Returns all heads, and the runs that another process holds. A run or a place that can't be read stays as
/// it was, and does not keep the others back.
fn looked(state: &State, before: &Heads) -> (Heads, HashSet<RunId>) {
    let (mut heads, mut held) = (HashMap::new(), HashSet::new());
    let were_held = state.live.held().clone();
    let data = state.served.data.as_deref();
    for (repo, place) in state.served.places.iter().enumerate() {
        let known = before.iter().filter(|(_, head)| head.repo == repo);
        let Ok(runs) = place.flows() else {
            heads.extend(known.map(|(run, head)| (*run, head.clone())));
            continue;
        };
        for run in runs {
            let known = before.get(&run).filter(|head| head.repo == repo);
            let patience = if were_held.contains(&run) { Duration::ZERO } else { PATIENCE };
            match head(&place.within(patience), repo, run, data, known) {
                Ok(head) => _ = heads.insert(run, head),
                Err(error) if error.cause == Cause::Unknown => {}
                Err(error) => {
                    held.extend((error.cause == Cause::Later).then_some(run));
                    heads.extend(known.map(|head| (run, head.clone())));
                }
            }
        }
    }
    (heads, held)
}

fn head(
    place: &Place,
    repo: usize,
    run: RunId,
    data: Option<&Path>,
    known: Option<&Head>,
) -> Result<Head, Unanswered> {
    let found = place.flow(run, data)?;
    let nodes = found.run.nodes.values();
    let running = nodes.filter(|node| node.status == NodeStatus::Running).map(|node| node.id).collect();
    let tail = match known.filter(|head| head.log <= found.log) {
        Some(head) if head.log == found.log => Arc::clone(&head.tail),
        Some(head) => Arc::new(longer(place, run, data, head, found.log)?),
        None => Arc::new(Tail { from: found.log, frames: Vec::new() }),
    };
    Ok(Head { repo, log: found.log, running, tail })
}

/// Returns the end of a log that has grown to this length.
fn longer(
    place: &Place,
    run: RunId,
    data: Option<&Path>,
    before: &Head,
    log: u64,
) -> Result<Tail, Unanswered> {
    let lines = place.flow_log(run, data, before.log, (log - before.log).min(BEHIND_MAX))?;
    if lines.len() as u64 != log - before.log {
        return Ok(Tail { from: log, frames: Vec::new() });
    }
    let mut frames = before.tail.frames.clone();
    frames.extend(framed(&lines, before.log));
    // One frame more than a client may be behind shows that a client is too far behind.
    let surplus = frames.len().saturating_sub(FRAMES_MAX + 1);
    let from = frames[..surplus].last().map_or(before.tail.from, |(end, _)| *end);
    frames.drain(..surplus);
    Ok(Tail { from, frames })
}

/// Returns the frames of lines that begin at this place of the log.
pub fn framed(lines: &[u8], mut at: u64) -> Vec<(u64, Utf8Bytes)> {
    let lines = lines.split_inclusive(|byte| *byte == b'\n');
    let framed = lines.filter_map(|line| {
        at += line.len() as u64;
        let frame = std::str::from_utf8(line).ok().and_then(|line| with_seq(line, at))?;
        Some((at, Utf8Bytes::from(frame)))
    });
    framed.collect()
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfLive {
    run_id: Option<String>,
    since: Option<String>,
}

/// Opens a connection.
pub async fn open(
    Of(state): Of<Arc<State>>,
    asked: Result<Query<OfLive>, QueryRejection>,
    upgraded: UpgradeOf,
) -> Result<Response, Failed> {
    let Query(asked) = asked?;
    let run = asked.run_id.as_deref().map(|run| id::<RunId>(run, "run")).transpose()?;
    let since = asked.since.as_deref().map(|since| {
        since.parse::<u64>().map_err(|_| Failed::invalid("'since' is no place: it is a number, as it came"))
    });
    let asked = match (run, since.transpose()?) {
        (None, Some(_)) => return Err(Failed::invalid("'since' needs 'runId'")),
        (None, None) => Asked::All,
        (Some(run), None) => Asked::Of(run),
        (Some(run), Some(since)) => Asked::Since(run, since),
    };
    let (upgrade, seat) = upgrade(upgraded)?;
    // Subscribed before the reading, so that nothing in between is missed.
    let heads = state.live.heads.subscribe();
    refresh(&state).await;
    Ok(upgrade
        .protocols([PROTOCOL])
        .on_upgrade(move |socket| Client::serve(state, socket, seat, heads, asked))
        .into_response())
}

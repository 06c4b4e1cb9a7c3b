//! `/ws`: events of runs as they come, one a text frame.
//!
//! Who comes is told nothing that is not asked for; with `since` the events after that place come first, with their own
//! ids, then the run's state. The logs are looked at once for all clients, and the end of each is kept as frames that
//! all of them share; a client that is further behind reads the log itself, a piece at a time, so nothing is kept for
//! it. A flow that another process holds and does not get on with is left as it was, and looked at again soon. What is alive
//! is told every 2 s, on the wire alone. A client's side is `client.rs`. Implements W6.

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

/// A client that is so many frames, or so many bytes, behind and does not read is closed.
pub const FRAMES_MAX: usize = 1000;
pub const BEHIND_MAX: u64 = 8 << 20;
/// How long the look for all waits for a process that holds a flow; for one that was held the last time too, not at all.
const PATIENCE: Duration = Duration::from_secs(1);
/// When a flow that was held is looked at again.
const AGAIN: Duration = Duration::from_secs(1);
/// Most connections of which it is kept that they were closed so.
const CLOSED_MAX: usize = 64;

/// The end of a log, as frames.
#[derive(Debug, Default)]
pub struct Tail {
    /// Where it begins.
    pub from: u64,
    /// Each with the place after it.
    pub frames: Vec<(u64, Utf8Bytes)>,
}

/// A run, as it was last looked at.
#[derive(Debug, Clone)]
pub struct Head {
    pub repo: usize,
    pub log: u64,
    pub running: Vec<NodeId>,
    pub tail: Arc<Tail>,
}

pub type Heads = HashMap<RunId, Head>;

/// What is told to all clients.
pub struct Live {
    heads: watch::Sender<Arc<Heads>>,
    /// What is in no log: a layout that was put.
    said: broadcast::Sender<(RunId, Value)>,
    /// One look at a time, and how many began.
    looking: tokio::sync::Mutex<()>,
    looks: AtomicU64,
    /// Runs that could not be looked at the last time, as another process holds them.
    held: Mutex<HashSet<RunId>>,
    /// How long logs were when clients were closed that did not read, until they come back.
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

    /// Tells clients of a run what is in no log.
    pub fn say(&self, run: RunId, event: &Value) {
        let _ = self.said.send((run, event.clone()));
    }

    /// What is said from now on.
    pub fn listen(&self) -> broadcast::Receiver<(RunId, Value)> {
        self.said.subscribe()
    }

    /// Keeps that a client of this run was closed for not reading, when its log was so long.
    pub fn closed_behind(&self, run: RunId, log: u64) {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if closed.len() >= CLOSED_MAX {
            closed.pop_front();
        }
        closed.push_back((run, log));
    }

    /// True, once, where a client that has seen so much may be one that was closed for not reading.
    pub fn was_closed(&self, run: RunId, since: u64) -> bool {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let found = closed.iter().position(|(of, log)| *of == run && since < *log);
        found.is_some_and(|at| closed.remove(at).is_some())
    }
}

/// Looks at the runs whenever something changed, while there are clients.
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

/// Looks at all runs. Of many who ask at once one looks, and no look is laid over a later one.
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
    // What could not be read now is read with the next change.
    if let Ok((heads, held)) = blocking(move || looked(&of, &before)).await {
        live.heads.send_replace(Arc::new(heads));
        *live.held() = held;
    }
}

/// All heads, and the runs that another process holds. A run, or a place, that can't be read now stays as it was, and keeps
/// no other back.
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

/// The end of a log that has grown to so many bytes.
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
    // One more than a client may be behind shows that it is.
    let surplus = frames.len().saturating_sub(FRAMES_MAX + 1);
    let from = frames[..surplus].last().map_or(before.tail.from, |(end, _)| *end);
    frames.drain(..surplus);
    Ok(Tail { from, frames })
}

/// The frames of lines that begin at this place.
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

/// Opens one.
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
    // From before the first look on.
    let heads = state.live.heads.subscribe();
    refresh(&state).await;
    Ok(upgrade
        .protocols([PROTOCOL])
        .on_upgrade(move |socket| Client::serve(state, socket, seat, heads, asked))
        .into_response())
}

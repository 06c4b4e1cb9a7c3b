//! `/ws`: events of runs as they come, one a text frame.
//!
//! Who comes is told nothing that is not asked for; with `since` the events after that place come first, with their own
//! ids, then the run's state. Each client reads the logs at its own pace, from its own place, so no event is lost or
//! doubled and nothing is kept for who is slow; one that is too far behind is closed, and comes back with `since`.
//! What is alive is told every 2 s, on the wire alone. Implements W6.

use crate::fail::Failed;
use crate::guard::PROTOCOL;
use crate::paging::with_seq;
use crate::runs::id;
use crate::socket::{PING_EVERY, Place as Seat, SEND_WITHIN, UpgradeOf, closing_frame, sent, upgrade};
use crate::state::{State, blocking, closed};
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use axum::extract::{Query, State as Of};
use axum::response::{IntoResponse, Response};
use aynig::contract::id::{NodeId, RunId};
use aynig::contract::words::NodeStatus;
use aynig::served::Cause;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// A client that is so many bytes behind is closed.
const BEHIND_MAX: u64 = 8 << 20;
/// How often what is alive is told.
const ALIVE_EVERY: Duration = Duration::from_secs(2);

/// A run, as it was last looked at.
#[derive(Debug, Clone)]
struct Head {
    repo: usize,
    log: u64,
    running: Vec<NodeId>,
}

/// What is told to all clients.
pub struct Live {
    heads: watch::Sender<Arc<HashMap<RunId, Head>>>,
    /// What is in no log: a layout that was put.
    said: broadcast::Sender<(RunId, Value)>,
}

impl Live {
    pub fn new() -> Self {
        Self { heads: watch::channel(Arc::default()).0, said: broadcast::channel(256).0 }
    }

    /// Tells clients of a run what is in no log.
    pub fn say(&self, run: RunId, event: &Value) {
        let _ = self.said.send((run, event.clone()));
    }
}

/// A new id of the contract's form.
fn fresh() -> String {
    let mut raw = [0; 16];
    getrandom::fill(&mut raw).expect("the system has no random numbers");
    raw[6] = raw[6] & 0x0f | 0x40;
    raw[8] = raw[8] & 0x3f | 0x80;
    let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Looks at the runs whenever something changed, while there are clients.
pub async fn look(state: Arc<State>) {
    let mut changes = state.changes.subscribe();
    let mut closing = state.closing.subscribe();
    loop {
        tokio::select! {
            change = changes.recv() => if let Err(broadcast::error::RecvError::Closed) = change { return },
            () = closed(&mut closing) => return,
        }
        if state.live.heads.receiver_count() > 0 {
            refresh(&state).await;
        }
    }
}

/// Looks at all runs.
async fn refresh(state: &Arc<State>) {
    let of = Arc::clone(state);
    let heads = blocking(move || {
        let mut heads = HashMap::new();
        for (repo, place) in of.served.places.iter().enumerate() {
            for run in place.flows()? {
                let found = match place.flow(run, of.served.data.as_deref()) {
                    Ok(found) => found,
                    Err(error) if error.cause == Cause::Unknown => continue,
                    Err(error) => return Err(error),
                };
                let nodes = found.run.nodes.values();
                let running =
                    nodes.filter(|node| node.status == NodeStatus::Running).map(|node| node.id).collect();
                heads.insert(run, Head { repo, log: found.log, running });
            }
        }
        Ok(heads)
    });
    // What could not be read now is read with the next change.
    if let Ok(Ok(heads)) = heads.await {
        state.live.heads.send_replace(Arc::new(heads));
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfLive {
    run_id: Option<String>,
    since: Option<String>,
}

/// One client.
struct Client {
    state: Arc<State>,
    run: Option<RunId>,
    /// How far it was told of each run.
    told: HashMap<RunId, u64>,
    /// The last time that it was told of each run: none that comes later is earlier.
    last: HashMap<RunId, String>,
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
    let since = since.transpose()?;
    if since.is_some() && run.is_none() {
        return Err(Failed::invalid("'since' needs 'runId'"));
    }
    let (upgrade, seat) = upgrade(upgraded)?;
    // From before the first look on.
    let heads = state.live.heads.subscribe();
    refresh(&state).await;
    Ok(upgrade
        .protocols([PROTOCOL])
        .on_upgrade(move |socket| serve(state, socket, seat, heads, run, since))
        .into_response())
}

async fn serve(
    state: Arc<State>,
    mut socket: WebSocket,
    _seat: Seat,
    mut heads: watch::Receiver<Arc<HashMap<RunId, Head>>>,
    run: Option<RunId>,
    since: Option<u64>,
) {
    let mut said = state.live.said.subscribe();
    let mut closing = state.closing.subscribe();
    let now = Arc::clone(&heads.borrow_and_update());
    let mut told: HashMap<RunId, u64> = now.iter().map(|(run, head)| (*run, head.log)).collect();
    if let (Some(run), Some(since)) = (run, since) {
        told.insert(run, since.min(now.get(&run).map_or(0, |head| head.log)));
    }
    let mut client = Client { state, run, told, last: HashMap::new() };
    if since.is_some() {
        let caught_up = client.catch_up(&mut socket, &now, true).await;
        if !caught_up || !client.snapshot(&mut socket).await {
            return;
        }
    }
    let mut ping = tokio::time::interval(PING_EVERY);
    let mut alive = tokio::time::interval(ALIVE_EVERY);
    ping.tick().await;
    let mut is_there = true;
    loop {
        let goes_on = tokio::select! {
            changed = heads.changed() => {
                let now = Arc::clone(&heads.borrow_and_update());
                changed.is_ok() && client.catch_up(&mut socket, &now, false).await
            }
            event = said.recv() => match event {
                Ok((run, event)) if client.wants(run) => client.say(&mut socket, run, event).await,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => true,
                Err(broadcast::error::RecvError::Closed) => false,
            },
            _ = alive.tick() => {
                let now = Arc::clone(&heads.borrow());
                client.alive(&mut socket, &now).await
            }
            _ = ping.tick() => {
                std::mem::take(&mut is_there) && sent(&mut socket, Message::Ping(Default::default())).await
            }
            () = closed(&mut closing) => {
                let _ = tokio::time::timeout(SEND_WITHIN / 100, socket.send(closing_frame())).await;
                false
            }
            // What it says is of no interest, but that it is there.
            received = socket.recv() => match received {
                Some(Ok(_)) => {
                    is_there = true;
                    true
                }
                Some(Err(_)) | None => false,
            },
        };
        if !goes_on {
            return;
        }
    }
}

impl Client {
    fn wants(&self, run: RunId) -> bool {
        self.run.is_none_or(|own| own == run)
    }

    /// Tells what is new in the logs.
    async fn catch_up(
        &mut self,
        socket: &mut WebSocket,
        heads: &HashMap<RunId, Head>,
        is_first: bool,
    ) -> bool {
        let own = self.run;
        for (run, head) in heads.iter().filter(|(run, _)| own.is_none_or(|own| own == **run)) {
            let from = self.told.get(run).copied().unwrap_or(0);
            if head.log < from {
                // It was made anew; what there is was told already.
                self.told.insert(*run, head.log);
                continue;
            }
            if head.log == from {
                continue;
            }
            if !is_first && head.log - from > BEHIND_MAX {
                let reason = Utf8Bytes::from_static("too far behind: come back with since");
                let _ = sent(socket, Message::Close(Some(CloseFrame { code: 1013, reason }))).await;
                return false;
            }
            let (state, run, repo) = (Arc::clone(&self.state), *run, head.repo);
            // One byte more shows whether the place is where a line begins.
            let read = blocking(move || {
                state.served.places[repo].flow_log(run, state.served.data.as_deref(), from.saturating_sub(1))
            });
            let Ok(Ok(lines)) = read.await else { return false };
            if !self.lines(socket, run, &lines, from).await {
                return false;
            }
        }
        true
    }

    async fn lines(&mut self, socket: &mut WebSocket, run: RunId, lines: &[u8], from: u64) -> bool {
        let mut at = from.saturating_sub(1);
        let mut is_first = from > 0;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            at += line.len() as u64;
            // The end of the line before, or what is left of the one that the place stands in.
            if std::mem::take(&mut is_first) {
                self.told.insert(run, at);
                continue;
            }
            self.told.insert(run, at);
            let Some(frame) = std::str::from_utf8(line).ok().and_then(|line| with_seq(line, at)) else {
                continue;
            };
            if let Some(ts) = ts_of(&frame) {
                self.last.insert(run, ts);
            }
            if !sent(socket, Message::Text(Utf8Bytes::from(frame))).await {
                return false;
            }
        }
        true
    }

    /// Tells what is in no log, at the time of what was told last.
    async fn say(&mut self, socket: &mut WebSocket, run: RunId, event: Value) -> bool {
        let ts = match self.last.get(&run) {
            Some(ts) => ts.clone(),
            None => {
                let state = Arc::clone(&self.state);
                let Ok(Ok(found)) = blocking(move || state.run(run)).await else { return true };
                let ts = json!(found.run.updated_at).as_str().unwrap_or_default().to_owned();
                self.last.insert(run, ts.clone());
                ts
            }
        };
        let mut whole = json!({"id": fresh(), "runId": run, "ts": ts});
        if let (Some(whole), Value::Object(event)) = (whole.as_object_mut(), event) {
            whole.extend(event);
        }
        sent(socket, Message::Text(Utf8Bytes::from(whole.to_string()))).await
    }

    async fn alive(&mut self, socket: &mut WebSocket, heads: &HashMap<RunId, Head>) -> bool {
        let own = self.run;
        for (run, head) in heads.iter().filter(|(run, _)| own.is_none_or(|own| own == **run)) {
            for node in &head.running {
                if !self.say(socket, *run, json!({"type": "node.heartbeat", "nodeId": node})).await {
                    return false;
                }
            }
        }
        true
    }

    /// Tells all of a run, as a patch; never with its id, by which a page would take it for another one to show.
    async fn snapshot(&mut self, socket: &mut WebSocket) -> bool {
        let Some(run) = self.run else { return true };
        let state = Arc::clone(&self.state);
        let Ok(Ok(found)) = blocking(move || state.run(run)).await else { return true };
        let mut patch = json!(found.run);
        if let Some(patch) = patch.as_object_mut() {
            patch.remove("id");
        }
        self.say(socket, run, json!({"type": "run.patch", "patch": patch})).await
    }
}

fn ts_of(frame: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Timed {
        ts: String,
    }
    serde_json::from_str::<Timed>(frame).ok().map(|timed| timed.ts)
}

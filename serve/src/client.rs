//! One client of `/ws`: how far it was told of each run, and what it is told next.
//!
//! Each client is told at its own pace, from its own place in each log, so no event is lost, doubled or out
//! of order. A client that does not read is closed as soon as too much waits for it, and is told so when it
//! comes back with `since`. Implements W6.

use crate::live::{BEHIND_MAX, FRAMES_MAX, Head, Heads, framed};
use crate::socket::{PING_EVERY, Place as Seat, SEND_WITHIN, closing_frame};
use crate::state::{State, blocking, closed};
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use aynig::contract::id::RunId;
use futures_util::SinkExt;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// How often a client is told which nodes are alive.
const ALIVE_EVERY: Duration = Duration::from_secs(2);
/// A client that takes nothing for this long is not reading.
const STALLED: Duration = Duration::from_secs(1);
/// Most frames that are written in one go.
const AT_ONCE: usize = 256;
/// Most bytes of a log that are read at once for one client, and the most for a line that is longer than
/// that.
const PIECE: u64 = 4 << 20;
const LINE_MAX: u64 = 128 << 20;

/// What a client asked for.
#[derive(Debug, Clone, Copy)]
pub enum Asked {
    /// All runs.
    All,
    /// One run.
    Of(RunId),
    /// One run, from this place in its log on.
    Since(RunId, u64),
}

/// What a client was told last of a run. What follows gets no earlier time.
enum Last {
    Frame(Utf8Bytes),
    Time(String),
}

/// One client. An `Err` of its functions means that it is gone.
pub struct Client {
    state: Arc<State>,
    socket: WebSocket,
    heads: watch::Receiver<Arc<Heads>>,
    run: Option<RunId>,
    /// How far it was told of each run: places in the logs.
    told: HashMap<RunId, u64>,
    last: HashMap<RunId, Last>,
}

/// The client is gone, or was closed.
struct Gone;

/// Returns a new random id, in the form that the contract gives ids.
fn fresh() -> String {
    let mut raw = [0; 16];
    getrandom::fill(&mut raw).expect("the system has no random numbers");
    raw[6] = raw[6] & 0x0f | 0x40;
    raw[8] = raw[8] & 0x3f | 0x80;
    let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

impl Client {
    /// Serves a client until it goes, or the server ends.
    pub async fn serve(
        state: Arc<State>,
        socket: WebSocket,
        _seat: Seat,
        mut heads: watch::Receiver<Arc<Heads>>,
        asked: Asked,
    ) {
        let now = Arc::clone(&heads.borrow_and_update());
        let told = now.iter().map(|(run, head)| (*run, head.log)).collect();
        let run = match asked {
            Asked::All => None,
            Asked::Of(run) | Asked::Since(run, _) => Some(run),
        };
        let mut client = Self { state, socket, heads, run, told, last: HashMap::new() };
        let began = match asked {
            Asked::Since(run, since) => client.come_back(run, since, &now).await,
            Asked::All | Asked::Of(_) => Ok(()),
        };
        if began.is_ok() {
            let _ = client.goes_on().await;
        }
    }

    async fn goes_on(&mut self) -> Result<(), Gone> {
        let mut said = self.state.live.listen();
        let mut closing = self.state.closing.subscribe();
        let mut ping = tokio::time::interval(PING_EVERY);
        let mut alive = tokio::time::interval(ALIVE_EVERY);
        // The first tick of each interval comes at once and is skipped: nothing unasked is sent at the start.
        ping.tick().await;
        alive.tick().await;
        let mut is_there = true;
        loop {
            tokio::select! {
                changed = self.heads.changed() => {
                    changed.map_err(|_| Gone)?;
                    self.catch_up().await?;
                }
                event = said.recv() => match event {
                    Ok((run, event)) if self.wants(run) => self.say(run, event).await?,
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return Err(Gone),
                },
                _ = alive.tick() => self.alive().await?,
                _ = ping.tick() => {
                    if !std::mem::take(&mut is_there) {
                        return Err(Gone);
                    }
                    self.send(vec![Message::Ping(Default::default())]).await?;
                }
                () = closed(&mut closing) => {
                    let _ = tokio::time::timeout(SEND_WITHIN / 100, self.socket.send(closing_frame())).await;
                    return Err(Gone);
                }
                // What the client says is ignored; only that it is there counts.
                received = self.socket.recv() => match received {
                    Some(Ok(_)) => is_there = true,
                    Some(Err(_)) | None => return Err(Gone),
                },
            }
        }
    }

    fn wants(&self, run: RunId) -> bool {
        self.run.is_none_or(|own| own == run)
    }

    /// Tells the client what it missed, then that it was closed, if it was, and then the run's state.
    async fn come_back(&mut self, run: RunId, since: u64, now: &Heads) -> Result<(), Gone> {
        if let Some(head) = now.get(&run) {
            self.told.insert(run, since.min(head.log));
            self.read_up(run, head).await?;
        }
        if self.state.live.was_closed(run, since) {
            let reason = "the last connection did not read: it was closed at 1,000 frames or 8 MiB";
            self.say(run, json!({"type": "stream.behind", "reason": reason})).await?;
        }
        self.snapshot(run).await
    }

    /// Tells the client what is new in the logs, until nothing is.
    async fn catch_up(&mut self) -> Result<(), Gone> {
        loop {
            let now = Arc::clone(&self.heads.borrow_and_update());
            let wanted: Vec<RunId> = now.keys().copied().filter(|run| self.wants(*run)).collect();
            for run in wanted {
                let head = &now[&run];
                let told = self.told.get(&run).copied().unwrap_or(0);
                // A log that is shorter than before was made anew; what it holds was told already.
                if head.log < told {
                    self.told.insert(run, head.log);
                } else if told < head.tail.from {
                    self.read_up(run, head).await?;
                } else {
                    let first = head.tail.frames.partition_point(|(end, _)| *end <= told);
                    self.tell(run, &head.tail.frames[first..]).await?;
                    self.told.insert(run, head.log);
                }
            }
            // A change may have been noticed while a frame was sent.
            if Arc::ptr_eq(&now, &self.heads.borrow()) {
                return Ok(());
            }
        }
    }

    /// Tells the client what the log holds from its place on, a piece at a time.
    async fn read_up(&mut self, run: RunId, head: &Head) -> Result<(), Gone> {
        let mut piece = PIECE;
        loop {
            let told = self.told.get(&run).copied().unwrap_or(0);
            if told >= head.log {
                return Ok(());
            }
            // The byte before the place shows whether a line begins there.
            let (from, most) = (told.saturating_sub(1), piece.min(head.log - told.saturating_sub(1)));
            let (state, repo) = (Arc::clone(&self.state), head.repo);
            let read = blocking(move || {
                state.served.places[repo].flow_log(run, state.served.data.as_deref(), from, most)
            });
            let Ok(Ok(lines)) = read.await else { return Err(Gone) };
            // Skips the end of the line before, or the rest of the line in which the place is.
            let begun = match told {
                0 => 0,
                _ => lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |end| end + 1),
            };
            let frames = framed(&lines[begun..], from + begun as u64);
            self.tell(run, &frames).await?;
            let end = from + lines.len() as u64;
            match end <= told {
                false => {
                    self.told.insert(run, end);
                    piece = PIECE;
                }
                // The line does not end within the piece, so a longer piece is read.
                true if piece < LINE_MAX => piece *= 4,
                true => return Err(Gone),
            }
        }
    }

    /// Sends frames of a run, and remembers how far the client was told.
    async fn tell(&mut self, run: RunId, frames: &[(u64, Utf8Bytes)]) -> Result<(), Gone> {
        for some in frames.chunks(AT_ONCE) {
            let messages = some.iter().map(|(_, frame)| Message::Text(frame.clone())).collect();
            self.send(messages).await?;
            if let Some((end, frame)) = some.last() {
                self.told.insert(run, *end);
                self.last.insert(run, Last::Frame(frame.clone()));
            }
        }
        Ok(())
    }

    /// Sends messages, and gives up if the client does not take them in time, or as soon as too much else
    /// waits for it.
    async fn send(&mut self, messages: Vec<Message>) -> Result<(), Gone> {
        let Self { socket, heads, run, told, state, .. } = self;
        let all = async {
            for message in messages {
                socket.feed(message).await?;
            }
            socket.flush().await
        };
        let mut all = std::pin::pin!(all);
        if let Ok(sent) = tokio::time::timeout(STALLED, all.as_mut()).await {
            return sent.map_err(|_| Gone);
        }
        let mut given_up = std::pin::pin!(tokio::time::sleep(SEND_WITHIN));
        let mut noticed = heads.clone();
        loop {
            // A receiver of its own is used, so that what it notices is still new to `catch_up` once this is
            // sent.
            let now = Arc::clone(&noticed.borrow_and_update());
            if behind(&now, *run, told) {
                break;
            }
            tokio::select! {
                sent = all.as_mut() => return sent.map_err(|_| Gone),
                changed = noticed.changed() => changed.map_err(|_| Gone)?,
                () = given_up.as_mut() => break,
            }
        }
        let now = Arc::clone(&heads.borrow());
        let of = now.iter().filter(|(of, _)| run.is_none_or(|own| own == **of));
        of.for_each(|(of, head)| state.live.closed_behind(*of, head.log));
        Err(Gone)
    }

    /// Sends an event that is in no log, with the time of what the client was told last of the run.
    async fn say(&mut self, run: RunId, event: Value) -> Result<(), Gone> {
        let ts = match self.last.get(&run) {
            Some(Last::Time(ts)) => ts.clone(),
            Some(Last::Frame(frame)) => ts_of(frame).unwrap_or_default(),
            None => {
                let state = Arc::clone(&self.state);
                let Ok(Ok(found)) = blocking(move || state.run(run)).await else { return Ok(()) };
                json!(found.run.updated_at).as_str().unwrap_or_default().to_owned()
            }
        };
        self.last.insert(run, Last::Time(ts.clone()));
        let mut whole = json!({"id": fresh(), "runId": run, "ts": ts});
        if let (Some(whole), Value::Object(event)) = (whole.as_object_mut(), event) {
            whole.extend(event);
        }
        self.send(vec![Message::Text(Utf8Bytes::from(whole.to_string()))]).await
    }

    async fn alive(&mut self) -> Result<(), Gone> {
        let now = Arc::clone(&self.heads.borrow());
        for (run, head) in now.iter() {
            for node in &head.running {
                if !self.wants(*run) {
                    continue;
                }
                self.say(*run, json!({"type": "node.heartbeat", "nodeId": node})).await?;
            }
        }
        Ok(())
    }

    /// Sends the whole state of a run, as a patch without the run's id: a page takes a patch with an id for
    /// another run to show.
    async fn snapshot(&mut self, run: RunId) -> Result<(), Gone> {
        let state = Arc::clone(&self.state);
        let Ok(Ok(found)) = blocking(move || state.run(run)).await else { return Ok(()) };
        let mut patch = json!(found.run);
        if let Some(patch) = patch.as_object_mut() {
            patch.remove("id");
        }
        self.say(run, json!({"type": "run.patch", "patch": patch})).await
    }
}

/// True if too much waits for a client, in its run, or in any run if it asked for all.
fn behind(now: &Heads, run: Option<RunId>, told: &HashMap<RunId, u64>) -> bool {
    let mut of = now.iter().filter(|(of, _)| run.is_none_or(|own| own == **of));
    of.any(|(of, head)| is_behind(told.get(of).copied().unwrap_or(0), head))
}

/// True if too much of a run waits for a client that was told up to this place.
fn is_behind(told: u64, head: &Head) -> bool {
    let waits = head.log.saturating_sub(told);
    // Frames before the stored ones are not counted: either more than enough are stored, or the log had them
    // before the client came.
    let frames = head.tail.frames.len() - head.tail.frames.partition_point(|(end, _)| *end <= told);
    waits > BEHIND_MAX || frames > FRAMES_MAX
}

fn ts_of(frame: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Timed {
        ts: String,
    }
    serde_json::from_str::<Timed>(frame).ok().map(|timed| timed.ts)
}

#[cfg(test)]
mod tests {
    use super::is_behind;
    use crate::live::{BEHIND_MAX, Head, Tail};
    use axum::extract::ws::Utf8Bytes;
    use std::sync::Arc;

    /// W6: more than 1,000 frames or 8 MiB are too much; exactly that many are not.
    #[test]
    fn w6_too_much_is_a_thousand_frames_or_eight_mebibytes() {
        let head = |frames: u64, each: u64| {
            let frames = (1..=frames).map(|n| (n * each, Utf8Bytes::from_static("{}"))).collect::<Vec<_>>();
            let log = frames.last().map_or(0, |(end, _)| *end);
            Head { repo: 0, log, running: Vec::new(), tail: Arc::new(Tail { from: 0, frames }) }
        };
        assert!(!is_behind(0, &head(1000, 10)) && is_behind(0, &head(1001, 10)));
        assert!(!is_behind(10, &head(1001, 10)), "one was told");
        assert!(!is_behind(0, &head(8, BEHIND_MAX / 8)) && is_behind(0, &head(8, BEHIND_MAX / 8 + 1)));
        assert!(!is_behind(9999, &head(3, 10)), "a log that was made anew");
    }
}

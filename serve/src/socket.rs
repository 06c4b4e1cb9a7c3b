//! The socket that tells a page of changes: `{"type":"changed","repo":n,"heads":bool,"logs":bool}`, and
//! nothing unasked at the start. A client that falls behind is told to read everything again.
//!
//! What a client sends is read and dropped, up to a limit. Implements W2 (to the page), W14 (frames).

use crate::fail::Failed;
use crate::guard::PROTOCOL;
use crate::state::{State, closed};
use crate::watch::Change;
use axum::extract::State as Of;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// Most bytes of a frame.
const FRAME_MAX: usize = 1 << 20;
/// Most sockets at a time.
const SOCKETS_MAX: usize = 64;
/// How often the server checks that a page is still there.
pub const PING_EVERY: Duration = Duration::from_secs(20);
/// How long a page may take to read a message before it counts as gone.
pub const SEND_WITHIN: Duration = Duration::from_secs(10);

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The right to one of the limited number of open sockets; it ends with the value.
pub struct Place;

impl Place {
    fn take() -> Option<Self> {
        let place = Place;
        (OPEN.fetch_add(1, Ordering::SeqCst) < SOCKETS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A request to become a socket.
pub type UpgradeOf = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// Takes a place for a socket, and sets limits to its frames.
pub fn upgrade(asked: UpgradeOf) -> Result<(WebSocketUpgrade, Place), Failed> {
    let upgrade = asked.map_err(|why| Failed::invalid(why.body_text()))?;
    let place = Place::take().ok_or_else(|| Failed::later("too many pages are open"))?;
    Ok((upgrade.max_message_size(FRAME_MAX).max_frame_size(FRAME_MAX), place))
}

/// Returns the frame that says that the server ends.
pub fn closing_frame() -> Message {
    Message::Close(None)
}

/// Opens a socket.
pub async fn open(Of(state): Of<Arc<State>>, asked: UpgradeOf) -> Result<Response, Failed> {
    let (upgrade, place) = upgrade(asked)?;
    Ok(upgrade.protocols([PROTOCOL]).on_upgrade(move |socket| tell(state, socket, place)).into_response())
}

async fn tell(state: Arc<State>, mut socket: WebSocket, _place: Place) {
    let mut changes = state.changes.subscribe();
    let mut closing = state.closing.subscribe();
    let mut ping = tokio::time::interval(PING_EVERY);
    ping.tick().await;
    let mut is_there = true;
    loop {
        let message = tokio::select! {
            change = changes.recv() => match change {
                Ok(change) => text(&change),
                Err(RecvError::Lagged(_)) => {
                    let all = (0..state.served.places.len()).map(|repo| Change { repo, heads: true, logs: true });
                    // One frame for each repository stands for what was lost.
                    for change in all.skip(1) {
                        if !sent(&mut socket, text(&change)).await {
                            return;
                        }
                    }
                    text(&Change { repo: 0, heads: true, logs: true })
                }
                Err(RecvError::Closed) => return,
            },
            _ = ping.tick() => {
                if !std::mem::take(&mut is_there) {
                    return;
                }
                Message::Ping(Default::default())
            }
            () = closed(&mut closing) => {
                let _ = tokio::time::timeout(SEND_WITHIN / 100, socket.send(closing_frame())).await;
                return;
            }
            received = socket.recv() => match received {
                Some(Ok(_)) => {
                    is_there = true;
                    continue;
                }
                Some(Err(_)) | None => return,
            },
        };
        if !sent(&mut socket, message).await {
            return;
        }
    }
}

pub async fn sent(socket: &mut WebSocket, message: Message) -> bool {
    matches!(tokio::time::timeout(SEND_WITHIN, socket.send(message)).await, Ok(Ok(())))
}

fn text(change: &Change) -> Message {
    let Change { repo, heads, logs } = change;
    let object = json!({"type": "changed", "repo": repo, "heads": heads, "logs": logs});
    Message::Text(Utf8Bytes::from(object.to_string()))
}

//! Notifications: events posted to webhooks, each with a deadline; they never change an outcome.
//!
//! Each webhook that asked for the event gets one POST, and each POST one line in the audit. A webhook that
//! fails, hangs or is not there changes no outcome and delays nothing beyond its own deadline: operations
//! notify after their commit, once they have released the lock. Implements G5.

use super::config::NOTIFIED;
use super::config::model::Webhook;
use super::json;
use super::root::Root;
use super::state::{RunStatus, State, Turn};
use super::{Config, GovernedError, disk, hooks, http};
use serde::Serialize;
use serde_json::Value;
use std::time::Instant;

const AUDIT: &str = ".agentxchain/notification-audit.jsonl";

/// What came of posting an event.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Notified {
    /// The event's id; `None` where the configuration has no webhooks.
    pub event_id: Option<String>,
    /// The audit's entries, as written.
    pub results: Vec<Value>,
}

/// The body that is posted to a webhook; the order of the fields is the order on the wire.
#[derive(Serialize)]
struct Envelope<'a> {
    schema_version: &'static str,
    event_id: &'a str,
    event_type: &'a str,
    emitted_at: &'a str,
    project: OfProject<'a>,
    run: OfRun<'a>,
    turn: Option<OfTurn<'a>>,
    payload: &'a Value,
}

#[derive(Serialize)]
struct OfProject<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
    root: &'a str,
}

#[derive(Serialize)]
struct OfRun<'a> {
    run_id: Option<&'a str>,
    status: Option<RunStatus>,
    phase: Option<&'a str>,
}

#[derive(Serialize)]
struct OfTurn<'a> {
    turn_id: &'a str,
    role_id: &'a str,
    attempt: u64,
    assigned_sequence: u64,
}

/// A line of the audit, for one POST.
#[derive(Serialize)]
struct Entry<'a> {
    event_id: &'a str,
    event_type: &'a str,
    notification_name: Option<&'a str>,
    transport: &'static str,
    delivered: bool,
    status_code: Option<u16>,
    timed_out: bool,
    duration_ms: u64,
    message: Option<String>,
    emitted_at: &'a str,
}

/// The payload of the notification that a run is blocked, taken from the state's reason.
#[derive(Serialize)]
struct BlockedBecause<'a> {
    category: Option<&'a Value>,
    blocked_on: Option<&'a str>,
    typed_reason: Option<&'a Value>,
    owner: Option<&'a Value>,
    recovery_action: Option<&'a Value>,
    detail: Option<&'a Value>,
}

/// Posts an event to every webhook that asked for it.
///
/// Without webhooks nothing happens, whatever the event.
///
/// # Errors
/// [`GovernedError::UnknownNotification`] alone: a webhook or an audit file that fails is not an error.
pub fn emit_notifications(
    root: &Root,
    config: &Config,
    state: &State,
    event: &str,
    payload: &Value,
    turn: Option<&Turn>,
) -> Result<Notified, GovernedError> {
    let webhooks = &config.model().notifications.webhooks;
    if webhooks.is_empty() {
        return Ok(Notified::default());
    }
    if !NOTIFIED.contains(&event) {
        return Err(GovernedError::UnknownNotification { event: event.to_owned() });
    }
    let asked: Vec<&Webhook> =
        webhooks.iter().filter(|webhook| webhook.events.iter().any(|name| name == event)).collect();
    let (id, at) = (root.id("notif"), root.now());
    let envelope = Envelope {
        schema_version: "0.1",
        event_id: &id,
        event_type: event,
        emitted_at: &at,
        project: OfProject {
            id: config.model().project.id.as_deref(),
            name: config.model().project.name.as_deref(),
            root: &root.folder().to_string_lossy(),
        },
        run: OfRun { run_id: state.run_id(), status: state.status(), phase: state.phase() },
        turn: turn.map(|turn| OfTurn {
            turn_id: turn.id(),
            role_id: turn.role(),
            attempt: turn.attempt(),
            assigned_sequence: turn.assigned_sequence(),
        }),
        payload,
    };
    let mut results = Vec::new();
    for webhook in asked {
        let entry = deliver(root, webhook, &envelope);
        // Like the notification itself, its line in the audit never changes an outcome.
        let path = root.join(AUDIT);
        let torn = disk::end(root, &path).is_ok_and(|(_, torn)| torn);
        let line = json::line(&entry);
        let _ = disk::append(root, &path, &if torn { format!("\n{line}") } else { line });
        results.push(json::value(&entry));
    }
    Ok(Notified { event_id: Some(id), results })
}

fn deliver<'a>(root: &Root, webhook: &'a Webhook, envelope: &Envelope<'a>) -> Entry<'a> {
    let (post, timeout) = (&webhook.post, webhook.post.timeout());
    let url = post.url.as_deref().unwrap_or_default();
    let started = Instant::now();
    let sent = match hooks::headers(root, post) {
        Ok(headers) => {
            http::post(root, url, &headers, json::line(envelope).trim_end().as_bytes(), timeout, 64 << 10)
        }
        Err(name) => {
            Err(http::Failure::Failed(format!("the environment has no '{name}', which a header needs")))
        }
    };
    let (delivered, status, timed_out, message) = match sent {
        Ok(answer) => {
            let delivered = (200..300).contains(&answer.status);
            let message = (!delivered).then(|| format!("'{url}' answered {}", answer.status));
            (delivered, Some(answer.status), false, message)
        }
        Err(http::Failure::TimedOut) => (false, None, true, Some("the webhook took too long".to_owned())),
        Err(http::Failure::Failed(message)) => (false, None, false, Some(message)),
    };
    Entry {
        event_id: envelope.event_id,
        event_type: envelope.event_type,
        notification_name: webhook.name.as_deref(),
        transport: "webhook",
        delivered,
        status_code: status,
        timed_out,
        duration_ms: started.elapsed().as_millis() as u64,
        message,
        emitted_at: envelope.emitted_at,
    }
}

/// A notification that an operation has to send once it has released the lock.
#[derive(Debug, Clone)]
pub(super) struct Owed {
    pub event: &'static str,
    pub state: State,
    pub payload: Value,
    pub turn: Option<Turn>,
}

/// Sends the notifications that are owed; what comes of them is in the audit.
pub(super) fn send(root: &Root, config: &Config, owed: &[Owed]) {
    for owed in owed {
        let _ = emit_notifications(root, config, &owed.state, owed.event, &owed.payload, owed.turn.as_ref());
    }
}

/// Makes the notification that a run is blocked.
pub(super) fn blocked(state: &State, turn: Option<Turn>) -> Owed {
    let reason = state.blocked_reason().and_then(Value::as_object);
    let recovery = reason.and_then(|reason| json::object(reason, "recovery"));
    let of = |key: &str| recovery.and_then(|recovery| recovery.get(key));
    let payload = json::value(&BlockedBecause {
        category: reason.and_then(|reason| reason.get("category")),
        blocked_on: state.blocked_on(),
        typed_reason: of("typed_reason"),
        owner: of("owner"),
        recovery_action: of("recovery_action"),
        detail: of("detail"),
    });
    Owed { event: "run_blocked", state: state.clone(), payload, turn }
}

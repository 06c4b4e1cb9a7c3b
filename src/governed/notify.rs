//! Notifications: events posted to webhooks, each with a deadline; never more than a notice.
//!
//! One POST for each webhook that asked for the event, one audit line for each POST. A webhook that fails,
//! hangs or is not there changes no outcome and delays nothing beyond its own deadline: operations notify
//! after their commit, with the lock given back. Implements G5.

use super::config::NOTIFIED;
use super::json::{self, Object};
use super::root::Root;
use super::state::{RunStatus, State, Turn};
use super::{Config, GovernedError, disk, hooks, http};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const AUDIT: &str = ".agentxchain/notification-audit.jsonl";

/// What was posted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Notified {
    /// The event's id; `None` where no webhook asked for it.
    pub event_id: Option<String>,
    /// The audit's entries, as written.
    pub results: Vec<Value>,
}

/// Posts an event to every webhook that asked for it.
///
/// Without webhooks nothing happens, whatever the event.
///
/// # Errors
/// [`GovernedError::UnknownNotification`] alone: what a webhook or the audit's file does is no error.
pub fn emit_notifications(
    root: &Root,
    config: &Config,
    state: &State,
    event: &str,
    payload: &Value,
    turn: Option<&Turn>,
) -> Result<Notified, GovernedError> {
    let webhooks = config.part("notifications").map_or(&[][..], |part| json::list(part, "webhooks"));
    if webhooks.is_empty() {
        return Ok(Notified::default());
    }
    if !NOTIFIED.contains(&event) {
        return Err(GovernedError::UnknownNotification { event: event.to_owned() });
    }
    let asked = |webhook: &&Object| json::texts(webhook, "events").contains(&event);
    let asked: Vec<&Object> = webhooks.iter().filter_map(Value::as_object).filter(asked).collect();
    let (id, at) = (root.id("notif"), root.now());
    let turn = turn.map(|turn| {
        json!({
            "turn_id": turn.id(),
            "role_id": turn.role(),
            "attempt": turn.attempt(),
            "assigned_sequence": turn.assigned_sequence(),
        })
    });
    let envelope = json!({
        "schema_version": "0.1",
        "event_id": id,
        "event_type": event,
        "emitted_at": at,
        "project": {
            "id": json::or_null(config.project("id")),
            "name": json::or_null(config.project("name")),
            "root": root.folder().to_string_lossy(),
        },
        "run": {
            "run_id": json::or_null(state.run_id()),
            "status": state.status().map(RunStatus::name),
            "phase": json::or_null(state.phase()),
        },
        "turn": turn,
        "payload": payload,
    });
    let mut results = Vec::new();
    for webhook in asked {
        let entry = deliver(root, webhook, &envelope);
        // The audit is as much a notice as the notification.
        let path = root.join(AUDIT);
        let torn = disk::end(root, &path).is_ok_and(|(_, torn)| torn);
        let line = json::line(&entry);
        let _ = disk::append(root, &path, &if torn { format!("\n{line}") } else { line });
        results.push(entry);
    }
    Ok(Notified { event_id: Some(id), results })
}

fn deliver(root: &Root, webhook: &Object, envelope: &Value) -> Value {
    let timeout = Duration::from_millis(json::count(webhook, "timeout_ms").unwrap_or(5000));
    let url = json::text(webhook, "url").unwrap_or_default();
    let started = Instant::now();
    let sent = match hooks::headers(root, webhook) {
        Ok(headers) => http::post(root, url, &headers, envelope.to_string().as_bytes(), timeout, 64 << 10),
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
    json!({
        "event_id": envelope["event_id"],
        "event_type": envelope["event_type"],
        "notification_name": json::text(webhook, "name"),
        "transport": "webhook",
        "delivered": delivered,
        "status_code": status,
        "timed_out": timed_out,
        "duration_ms": started.elapsed().as_millis() as u64,
        "message": message,
        "emitted_at": envelope["emitted_at"],
    })
}

/// A notification that an operation owes once it has given the lock back.
#[derive(Debug, Clone)]
pub(super) struct Owed {
    pub event: &'static str,
    pub state: State,
    pub payload: Value,
    pub turn: Option<Turn>,
}

/// Sends what is owed; what comes of it is in the audit.
pub(super) fn send(root: &Root, config: &Config, owed: &[Owed]) {
    for owed in owed {
        let _ = emit_notifications(root, config, &owed.state, owed.event, &owed.payload, owed.turn.as_ref());
    }
}

/// The notification that a run is blocked.
pub(super) fn blocked(state: &State, turn: Option<Turn>) -> Owed {
    let reason = state.blocked_reason().and_then(Value::as_object);
    let recovery = reason.and_then(|reason| json::object(reason, "recovery"));
    let of = |key: &str| recovery.and_then(|recovery| recovery.get(key)).cloned();
    let payload = json!({
        "category": reason.and_then(|reason| reason.get("category")),
        "blocked_on": json::or_null(state.blocked_on()),
        "typed_reason": of("typed_reason"),
        "owner": of("owner"),
        "recovery_action": of("recovery_action"),
        "detail": of("detail"),
    });
    Owed { event: "run_blocked", state: state.clone(), payload, turn }
}

//! Shapes of a state that older tools wrote, brought into today's shape in memory.
//!
//! They have one `current_turn` instead of `active_turns`, and `paused` for what is now `blocked`. A read
//! changes no file: the next operation that changes the state writes it in today's shape.

use super::{Object, json};
use serde_json::Value;

/// Returns the state in today's shape.
pub(super) fn migrated(mut state: Object) -> Object {
    if !state.get("active_turns").is_some_and(Value::is_object) {
        let turn = json::object(&state, "current_turn").cloned();
        let turns: Object = turn.into_iter().filter_map(with_id).collect();
        state.insert("active_turns".to_owned(), Value::Object(turns));
    }
    state.shift_remove("current_turn");
    let waits_for = json::text(&state, "blocked_on").unwrap_or_default().to_owned();
    let is_paused = json::text(&state, "status") == Some("paused");
    if is_paused && (waits_for.starts_with("human:") || waits_for.starts_with("escalation:")) {
        state.insert("status".to_owned(), json!("blocked"));
    }
    let is_blocked = json::text(&state, "status") == Some("blocked");
    let has_reason = state.get("blocked_reason").is_some_and(Value::is_object);
    if is_blocked && !has_reason && !waits_for.is_empty() {
        state.insert("blocked_reason".to_owned(), inferred(&waits_for));
    }
    state
}

/// Returns a turn with its id, and with the members that older turns lacked; `None` where it has no id.
fn with_id(mut turn: Object) -> Option<(String, Value)> {
    let id = json::filled(&turn, "turn_id")?.to_owned();
    for (key, value) in [("attempt", json!(1)), ("assigned_sequence", json!(1)), ("status", json!("running"))]
    {
        turn.entry(key).or_insert(value);
    }
    Some((id, Value::Object(turn)))
}

/// Makes the reason that a blocked run must have had, from what the run waits for.
fn inferred(waits_for: &str) -> Value {
    let category = match waits_for.split(':').next().unwrap_or_default() {
        "human" if waits_for.starts_with("human:conflict_loop:") => "conflict_loop",
        "human" => "needs_human",
        "escalation" if waits_for.starts_with("escalation:operator:") => "operator_escalation",
        "escalation" => "retries_exhausted",
        "hook" => "hook_block",
        "budget" => "budget_exhausted",
        "policy" => "policy_escalation",
        _ => "dispatch_error",
    };
    json!({
        "category": category,
        "recovery": {
            "typed_reason": category,
            "owner": "human",
            "recovery_action": "resolve what the run is blocked on, then reactivate it",
            "turn_retained": true,
            "detail": waits_for,
        },
        "blocked_at": null,
        "turn_id": null,
    })
}

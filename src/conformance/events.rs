//! Checks whether events are valid, and stand in the order of a run.

use crate::governed::json::{self, Object};
use crate::governed::time;
use serde_json::Value;

/// Every type that an event may have.
const TYPES: [&str; 42] = [
    "run_started",
    "phase_entered",
    "intents_migrated",
    "intents_superseded",
    "intent_retired_by_phase_advance",
    "turn_dispatched",
    "turn_accepted",
    "turn_rejected",
    "turn_conflicted",
    "conflict_resolved",
    "acceptance_failed",
    "turn_reissued",
    "turn_stalled",
    "turn_start_failed",
    "runtime_spawn_failed",
    "stdout_attach_failed",
    "turn_checkpointed",
    "coordinator_retry",
    "coordinator_retry_projection_warning",
    "run_blocked",
    "run_completed",
    "escalation_raised",
    "escalation_resolved",
    "gate_pending",
    "gate_approved",
    "gate_failed",
    "phase_cleanup",
    "budget_exceeded_warn",
    "human_escalation_raised",
    "human_escalation_resolved",
    "dispatch_progress",
    "session_continuation",
    "auto_retried_ghost",
    "ghost_retry_exhausted",
    "auto_retried_productive_timeout",
    "productive_timeout_retry_exhausted",
    "retained_claude_auth_escalation_reclassified",
    "state_reconciled_operator_commits",
    "operator_commit_reconcile_refused",
    "charter_materialization_required",
    "artifact_type_auto_normalized",
    "staged_result_auto_normalized",
];

/// Returns what is wrong with an event; nothing where it is valid.
pub(super) fn validate(event: &Value) -> Vec<String> {
    let Some(event) = event.as_object() else { return vec!["the event must be an object".to_owned()] };
    let mut errors = Vec::new();
    if !json::is_filled(event.get("event_id")) {
        errors.push("event_id must be a string that is not blank".to_owned());
    }
    let kind = json::text(event, "event_type").unwrap_or_default();
    if !TYPES.contains(&kind) {
        errors.push(format!("event_type '{kind}' is none"));
    }
    if moment(event).is_none() {
        errors.push("timestamp must be a moment".to_owned());
    }
    let needs_turn = ["turn_dispatched", "turn_accepted", "turn_rejected"].contains(&kind);
    if needs_turn && turn_of(event).is_none() {
        errors.push(format!("'{kind}' must name its turn in turn.turn_id"));
    }
    errors
}

fn turn_of(event: &Object) -> Option<&str> {
    json::filled(json::object(event, "turn")?, "turn_id")
}

fn moment(event: &Object) -> Option<impl Ord + Copy + use<>> {
    json::text(event, "timestamp").and_then(time::parse)
}

/// Returns what is wrong with the order of events; nothing where it is the order of a run.
pub(super) fn validate_ordering(events: &[Value]) -> Vec<String> {
    let mut errors = Vec::new();
    let events: Vec<&Object> = events.iter().filter_map(Value::as_object).collect();
    let kind = |event: &&Object| json::text(event, "event_type").unwrap_or_default().to_owned();
    if events.first().is_some_and(|first| kind(first) != "run_started") {
        errors.push("the first event must be run_started".to_owned());
    }
    if let Some(at) = events.iter().position(|event| kind(event) == "run_completed")
        && at + 1 != events.len()
    {
        errors.push("nothing may follow run_completed".to_owned());
    }
    let mut dispatched = Vec::new();
    let mut last = None;
    for event in &events {
        let turn = turn_of(event);
        match kind(event).as_str() {
            "turn_dispatched" => dispatched.extend(turn),
            "turn_accepted" if !turn.is_some_and(|turn| dispatched.contains(&turn)) => {
                errors.push(format!("turn '{}' was accepted and never dispatched", turn.unwrap_or_default()));
            }
            _ => {}
        }
        let now = moment(event);
        if now.is_some() && now < last {
            errors.push("timestamps must not decrease".to_owned());
        }
        last = now.or(last);
    }
    errors
}

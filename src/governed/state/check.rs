//! The invariants of a state that is loaded; each breach is said in words.

use super::{Config, Object, RunStatus, State, json};
use serde_json::Value;

/// Returns a message for every invariant that the state breaks.
pub(super) fn errors(state: &State, config: &Config) -> Vec<String> {
    let object = state.object();
    let mut errors = Vec::new();
    let mut demand = |holds: bool, what: &str| {
        if !holds {
            errors.push(what.to_owned());
        }
    };
    demand(json::is_filled(object.get("project_id")), "project_id must be a string that is not blank");
    demand(json::is_filled(object.get("phase")), "phase must be a string that is not blank");
    demand(
        json::whole(object.get("turn_sequence").unwrap_or(&Value::from(0))).is_some(),
        "turn_sequence must be a whole number",
    );
    demand(!has(object, "current_turn"), "current_turn must not be stored");
    if let Some(phase) = state.phase().filter(|phase| is_under_way(state) && !config.knows_phase(phase)) {
        demand(false, &format!("phase '{phase}' must be one of the configuration's routing"));
    }
    let has_turns = super::get_active_turn_count(state) > 0;
    match state.status() {
        None => demand(false, "status must be idle, active, paused, blocked, completed or failed"),
        Some(RunStatus::Idle) => {}
        Some(RunStatus::Active) => {
            demand(!has(object, "blocked_on"), "an active run must have no blocked_on")
        }
        // Paused with nothing pending is odd, but such a run is reactivated like any other, and must be
        // loadable for that.
        Some(RunStatus::Paused) => {}
        Some(RunStatus::Blocked) => {
            demand(json::is_filled(object.get("blocked_on")), "a blocked run must have blocked_on");
            demand(is_reason(object), "a blocked run must have a full blocked_reason");
        }
        Some(RunStatus::Completed | RunStatus::Failed) => {}
    }
    let may_have_no_run = match state.status() {
        Some(RunStatus::Idle | RunStatus::Blocked) => !has_turns,
        Some(RunStatus::Active | RunStatus::Paused | RunStatus::Completed | RunStatus::Failed) | None => {
            false
        }
    };
    demand(
        may_have_no_run || json::is_filled(object.get("run_id")),
        "run_id must be set once a run has begun",
    );
    for (id, turn) in state.turns().into_iter().flatten() {
        errors.extend(turn_errors(id, turn));
    }
    errors
}

fn is_under_way(state: &State) -> bool {
    match state.status() {
        Some(RunStatus::Active | RunStatus::Paused | RunStatus::Blocked) => true,
        Some(RunStatus::Idle | RunStatus::Completed | RunStatus::Failed) | None => false,
    }
}

fn has(object: &Object, key: &str) -> bool {
    object.get(key).is_some_and(|value| !value.is_null())
}

fn is_reason(object: &Object) -> bool {
    let Some(reason) = json::object(object, "blocked_reason") else { return false };
    let recovery = json::object(reason, "recovery");
    json::is_filled(reason.get("category"))
        && recovery.is_some_and(|r| ["typed_reason", "owner"].iter().all(|key| json::is_filled(r.get(*key))))
}

fn turn_errors(id: &str, turn: &Value) -> Vec<String> {
    let Some(turn) = turn.as_object() else { return vec![format!("active_turns.{id} must be an object")] };
    let texts = ["turn_id", "assigned_role", "status", "runtime_id"].into_iter();
    let missing = texts.filter(|key| !json::is_filled(turn.get(*key)));
    let mut errors: Vec<String> = missing.map(|key| format!("active_turns.{id}.{key} is missing")).collect();
    if json::text(turn, "turn_id").is_some_and(|own| own != id) {
        errors.push(format!("active_turns.{id}.turn_id is another turn's"));
    }
    for key in ["attempt", "assigned_sequence"] {
        if json::count(turn, key).is_none_or(|n| n < 1) {
            errors.push(format!("active_turns.{id}.{key} must be a whole number of at least 1"));
        }
    }
    errors
}

//! Rejecting a result, and the conflict that makes a person reject or merge it.

use super::super::conflict::Conflict;
use super::super::json;
use super::{Refusal, State, TurnStatus, block, reason, target};
use serde_json::{Value, json};

/// A result that is rejected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rejection {
    pub turn_id: String,
    pub reason: String,
    pub stage: Option<String>,
    pub errors: Vec<String>,
    pub at: String,
    /// How many attempts a turn has.
    pub attempts: u64,
    pub deadline_at: String,
    /// The baseline that the changes of the next attempt are counted from.
    pub baseline: Value,
}

/// A conflict that was found at acceptance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConflictFound {
    pub turn_id: String,
    pub conflict: Conflict,
    pub at: String,
}

/// The number of conflicts of one turn at which the run is blocked until a person acts.
const CONFLICTS_MAX: u64 = 3;

pub(super) fn conflicted(state: &State, new: &ConflictFound) -> Result<State, Refusal> {
    let mut turn = target(state, Some(&new.turn_id))?;
    let earlier = json::object(turn.object(), "conflict_state");
    let count = earlier.and_then(|earlier| json::count(earlier, "detection_count")).unwrap_or(0) + 1;
    turn.set("status", TurnStatus::Conflicted.name());
    turn.set(
        "conflict_state",
        json!({
            "detected_at": new.at,
            "detection_count": count,
            "status": "pending_operator",
            "conflict_error": new.conflict,
        }),
    );
    let mut next = state.clone();
    next.put_turn(&turn);
    if count >= CONFLICTS_MAX {
        let action = "reject the turn, or merge it by hand and accept it with human_merge";
        let detail = format!("turn '{}' conflicted {count} times", new.turn_id);
        let reason = reason("conflict_loop", "human", action, Some(&detail), Some(&new.turn_id), &new.at);
        block(&mut next, &format!("human:conflict_loop:{}", new.turn_id), reason);
    }
    Ok(next)
}

pub(super) fn rejected(state: &State, new: &Rejection) -> Result<State, Refusal> {
    let mut turn = target(state, Some(&new.turn_id))?;
    let mut next = state.clone();
    let context = turn.conflict().map(|conflict| conflict_context(&new.turn_id, turn.attempt(), conflict));
    let mut rejection = json!({
        "turn_id": new.turn_id,
        "attempt": turn.attempt(),
        "rejected_at": new.at,
        "reason": new.reason,
        "validation_errors": new.errors,
        "failed_stage": new.stage,
    });
    if let (Some(context), Some(object)) = (&context, rejection.as_object_mut()) {
        object.insert("conflict_context".to_owned(), context.clone());
    }
    turn.set("last_rejection", rejection);
    if turn.attempt() >= new.attempts {
        return Ok(exhausted(next, turn, new));
    }
    turn.set("attempt", turn.attempt().saturating_add(1));
    turn.set("status", TurnStatus::Retrying.name());
    turn.set("started_at", new.at.as_str());
    turn.set("deadline_at", new.deadline_at.as_str());
    turn.set("baseline", new.baseline.clone());
    if let Some(context) = context {
        // After a conflict, the turn begins again behind everything that was accepted since.
        turn.set("conflict_state", Value::Null);
        turn.set("conflict_context", context);
        turn.set("assigned_sequence", state.turn_sequence().max(turn.assigned_sequence()));
        let others = state.active_turns();
        let others: Vec<&str> = others.iter().map(super::Turn::id).filter(|id| *id != new.turn_id).collect();
        turn.set("concurrent_with", json!(others));
        for key in ["queued_phase_transition", "queued_run_completion"] {
            let queued = json::object(state.object(), key);
            let by = queued.and_then(|queued| json::text(queued, "requested_by_turn"));
            if by == Some(new.turn_id.as_str()) {
                next.set(key, Value::Null);
            }
        }
    }
    next.put_turn(&turn);
    Ok(next)
}

/// Returns the state after the rejection of the last attempt: the turn stays, and the run waits for a person.
fn exhausted(mut next: State, mut turn: super::Turn, new: &Rejection) -> State {
    turn.set("status", TurnStatus::Failed.name());
    next.put_turn(&turn);
    let role = turn.role().to_owned();
    let action = "look at the rejected results, then reactivate the run";
    let detail = Some(new.reason.as_str());
    let reason = reason("retries_exhausted", "human", action, detail, Some(&new.turn_id), &new.at);
    block(&mut next, &format!("escalation:retries-exhausted:{role}"), reason);
    next.set(
        "escalation",
        json!({
            "from_role": role,
            "from_turn_id": new.turn_id,
            "reason": new.reason,
            "validation_errors": new.errors,
            "escalated_at": new.at,
        }),
    );
    next
}

/// Makes what the next attempt is told about the conflict.
fn conflict_context(turn_id: &str, attempt: u64, conflict: &Value) -> Value {
    let of = |key: &str| conflict.get(key).cloned().unwrap_or_else(|| json!([]));
    let since = of("accepted_since");
    let since: Vec<Value> = since.as_array().into_iter().flatten().map(|turn| {
        let field = |key: &str| turn.get(key).cloned().unwrap_or(Value::Null);
        json!({ "turn_id": field("turn_id"), "role": field("role"), "files_changed": field("files_changed") })
    }).collect();
    json!({
        "prior_attempt_turn_id": turn_id,
        "prior_attempt_number": attempt,
        "conflict_type": conflict.get("type").cloned().unwrap_or(Value::Null),
        "conflicting_files": of("conflicting_files"),
        "accepted_turns_since": since,
        "non_conflicting_files_preserved": of("non_conflicting_files"),
        "guidance": "start from the workspace as it is now: others have changed the conflicting files",
    })
}

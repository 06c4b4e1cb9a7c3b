//! What follows from the gates' answers, and from a person's approval.

use super::super::gate::{GateAction, GateKind, GateResult};
use super::super::json;
use super::{Acceptance, RunStatus, State, clear};
use serde_json::{Value, json};

/// Applies the gates' answers: on completion first, and on a phase only where the run is still active.
pub(super) fn answered(next: &mut State, new: &Acceptance) {
    let queued = [next.get("queued_run_completion"), next.get("queued_phase_transition")];
    let [by_queue, exit_by_queue] = queued.map(|queued| queued.is_some_and(|value| !value.is_null()));
    next.set("queued_run_completion", Value::Null);
    next.set("queued_phase_transition", Value::Null);
    if let Some(gate) = &new.completion {
        answer(next, gate, &new.at, by_queue && gate.requested_by != new.turn_id);
    }
    if next.status() == Some(RunStatus::Active)
        && let Some(gate) = &new.exit
    {
        answer(next, gate, &new.at, exit_by_queue && gate.requested_by != new.turn_id);
    }
}

fn answer(next: &mut State, gate: &GateResult, at: &str, was_queued: bool) {
    let id = gate.gate_id.as_deref();
    match gate.action {
        GateAction::Advance => {
            passed(next, id);
            enter(next, gate.next_phase.as_deref().unwrap_or_default(), at);
        }
        GateAction::Complete => {
            passed(next, id);
            complete(next, at);
        }
        GateAction::AwaitingHumanApproval => {
            let (phase, by) = (next.phase().map(str::to_owned), gate.requested_by.as_str());
            // A run that is blocked for another reason stays so; the approval is pending all the same.
            if next.status() == Some(RunStatus::Active) {
                next.set("status", RunStatus::Paused.name());
                next.set("blocked_on", format!("human_approval:{}", id.unwrap_or_default()));
            }
            match gate.kind {
                GateKind::PhaseTransition => next.set(
                    "pending_phase_transition",
                    json!({ "from": phase, "to": gate.next_phase, "gate": id, "requested_by_turn": by }),
                ),
                GateKind::RunCompletion => next.set(
                    "pending_run_completion",
                    json!({ "gate": id, "requested_by_turn": by, "requested_at": at }),
                ),
            }
        }
        GateAction::GateFailed | GateAction::UnknownPhase | GateAction::NotFinalPhase => {
            let phase = next.phase().unwrap_or_default().to_owned();
            next.set("last_gate_failure", json::value(&gate.failure(&phase, at, was_queued)));
            if let Some(id) = id {
                mark(next, id, "failed");
            }
        }
    }
}

fn mark(next: &mut State, gate: &str, status: &str) {
    next.edit("phase_gate_status", |all| {
        all.insert(gate.to_owned(), json!(status));
    });
}

fn passed(next: &mut State, gate: Option<&str>) {
    mark(next, gate.unwrap_or("no_gate"), "passed");
    if next.get("last_gate_failure").is_some() {
        next.set("last_gate_failure", Value::Null);
    }
}

fn enter(next: &mut State, phase: &str, at: &str) {
    next.set("phase", phase);
    next.set("phase_entered_at", at);
}

fn complete(next: &mut State, at: &str) {
    next.set("status", RunStatus::Completed.name());
    clear(next);
    next.set("completed_at", at);
    next.set("next_recommended_role", Value::Null);
}

pub(super) fn phase_approved(state: &State, at: &str) -> State {
    let mut next = state.clone();
    let pending = state.pending_phase_transition().unwrap_or_default();
    passed(&mut next, filled(pending.gate()));
    next.set("status", RunStatus::Active.name());
    clear(&mut next);
    next.set("pending_phase_transition", Value::Null);
    if let Some(to) = filled(pending.to()) {
        enter(&mut next, to, at);
    }
    next
}

pub(super) fn completion_approved(state: &State, at: &str) -> State {
    let mut next = state.clone();
    let pending = state.pending_run_completion().unwrap_or_default();
    passed(&mut next, filled(pending.gate()));
    next.set("pending_run_completion", Value::Null);
    complete(&mut next, at);
    next
}

fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.trim().is_empty())
}

//! What an acceptance records: lines of the ledger, events, notifications; and what a conflict or a policy
//! records.

use super::super::conflict::{Conflict, Summary};
use super::super::events::{self, Completed, GateAsked, Happened, Line};
use super::super::gate::{GateAction, GateResult};
use super::super::journal::Change;
use super::super::ledger::{self, Conflicted, GateFailed, PolicyEscalated};
use super::super::next::{self, Event, Verb};
use super::super::notify::{self, Owed};
use super::super::policy::Broken;
use super::super::root::Root;
use super::super::state::{RunStatus, State, Turn};
use super::super::{GovernedError, json};
use serde_json::Value;

/// Makes the ledger's lines besides the decisions: gates that failed, a conflict that was merged.
pub(super) fn ledger(
    next: &State,
    turn: &Turn,
    gates: &[&GateResult],
    merged: Option<&Conflict>,
    at: &str,
) -> Vec<ledger::Line> {
    let mut lines = Vec::new();
    for gate in gates.iter().filter(|gate| is_failure(gate)) {
        let was_queued = gate.requested_by != turn.id();
        lines.push(ledger::Line::GateFailed(GateFailed {
            kind: "gate_failure",
            timestamp: at.to_owned(),
            run_id: next.run_id().map(str::to_owned),
            failure: gate.failure(next.phase().unwrap_or_default(), at, was_queued),
        }));
    }
    if let Some(merged) = merged {
        for decision in ["conflict_resolution_selected", "conflict_resolved"] {
            let line = Conflicted::of(decision, next, turn, at, Summary::of(merged));
            lines.push(ledger::Line::Conflict(Conflicted { resolution: Some("human_merge"), ..line }));
        }
    }
    lines
}

fn is_failure(gate: &GateResult) -> bool {
    match gate.action {
        GateAction::GateFailed | GateAction::UnknownPhase | GateAction::NotFinalPhase => true,
        GateAction::Advance | GateAction::Complete | GateAction::AwaitingHumanApproval => false,
    }
}

/// Makes the events of an acceptance, in the order in which things happened.
pub(super) fn accepted(
    root: &Root,
    before: &State,
    next: &State,
    turn: &Turn,
    gates: &[&GateResult],
    merged: bool,
) -> Vec<Line> {
    let mut all = Vec::new();
    let mut tell = |happened: Happened| all.push(events::event(root, happened, next, Some(turn)));
    if merged {
        tell(Happened::ConflictResolved { resolution: "human_merge" });
    }
    tell(Happened::TurnAccepted { attempt: turn.attempt(), accepted_sequence: next.turn_sequence() });
    for gate in gates {
        let asked = GateAsked {
            gate_type: gate.kind.name(),
            gate: gate.gate_id.clone(),
            reasons: gate.reasons.clone(),
        };
        match gate.action {
            GateAction::AwaitingHumanApproval => tell(Happened::GatePending(asked)),
            GateAction::GateFailed | GateAction::UnknownPhase | GateAction::NotFinalPhase => {
                tell(Happened::GateFailed(asked));
            }
            GateAction::Advance | GateAction::Complete => {}
        }
    }
    if before.phase() != next.phase() {
        let of = |state: &State| state.phase().map(str::to_owned);
        tell(Happened::PhaseEntered { from: of(before), to: of(next) });
    }
    let of = |state: &State, key: &str| json::object(state.object(), "budget_status")?.get(key).cloned();
    if of(next, "warn_mode").is_some() && of(before, "warn_mode").is_none() {
        tell(Happened::BudgetExceededWarn { budget_status: next.get("budget_status").cloned() });
    }
    match next.status() {
        Some(RunStatus::Blocked) if before.blocked_on() != next.blocked_on() => {
            tell(Happened::blocked(next));
        }
        Some(RunStatus::Completed) => tell(Happened::RunCompleted(completed(next, turn))),
        Some(
            RunStatus::Idle | RunStatus::Active | RunStatus::Paused | RunStatus::Blocked | RunStatus::Failed,
        )
        | None => {}
    }
    all
}

fn completed(next: &State, turn: &Turn) -> Completed {
    Completed {
        completed_at: next.get("completed_at").and_then(Value::as_str).map(str::to_owned),
        completed_via: "accept_turn",
        requested_by_turn: Some(turn.id().to_owned()),
        gate: None,
    }
}

/// Adds the notifications that an acceptance owes.
pub(super) fn owed(before: &State, next: &State, turn: &Turn, owed: &mut Vec<Owed>) {
    let mut owe = |event: &'static str, payload: Value| {
        owed.push(Owed { event, state: next.clone(), payload, turn: Some(turn.clone()) });
    };
    if let Some(pending) =
        next.pending_phase_transition().filter(|_| before.pending_phase_transition().is_none())
    {
        owe("phase_transition_pending", pending.to_value());
    }
    if let Some(pending) = next.pending_run_completion().filter(|_| before.pending_run_completion().is_none())
    {
        owe("run_completion_pending", pending.to_value());
    }
    match next.status() {
        Some(RunStatus::Completed) => owe("run_completed", json::value(&completed(next, turn))),
        Some(RunStatus::Blocked) if before.blocked_on() != next.blocked_on() => {
            owed.push(notify::blocked(next, Some(turn.clone())));
        }
        Some(
            RunStatus::Idle | RunStatus::Active | RunStatus::Paused | RunStatus::Blocked | RunStatus::Failed,
        )
        | None => {}
    }
}

/// Commits a conflict: the turn's mark, the ledger's line, the events.
pub(super) fn conflict(
    root: &Root,
    before: &State,
    next: &State,
    turn: &Turn,
    conflict: &Conflict,
    entry: ledger::Line,
    owed: &mut Vec<Owed>,
) -> Result<(), GovernedError> {
    let conflicted = Happened::TurnConflicted { conflict: Summary::of(conflict) };
    let mut lines = vec![events::event(root, conflicted, next, Some(turn))];
    if next.blocked_on() != before.blocked_on() {
        lines.push(events::event(root, Happened::blocked(next), next, Some(turn)));
        owed.push(notify::blocked(next, Some(turn.clone())));
    }
    Change::new("conflict", before, next.clone())
        .turn(turn.id())
        .ledger(vec![entry])
        .events(&lines)
        .commit(root)?;
    Ok(())
}

/// Blocks the run for a policy that escalates, and returns the state after that.
pub(super) fn policy(
    root: &Root,
    state: &State,
    turn: &Turn,
    broken: &Broken,
    at: &str,
    owed: &mut Vec<Owed>,
) -> Result<State, GovernedError> {
    let (id, message) = (broken.id.as_str(), broken.message.as_str());
    let action = "see what the policy wants, then reactivate the run";
    let blocked_on = format!("policy:{id}");
    let event = Event::Block {
        by: Verb::Hook,
        blocked_on: blocked_on.clone(),
        reason: next::reason("policy_escalation", "human", action, Some(message), Some(turn.id()), at),
        escalation: None,
    };
    let entry = ledger::Line::PolicyEscalation(PolicyEscalated {
        timestamp: at.to_owned(),
        decision: "policy_escalation",
        run_id: state.run_id().map(str::to_owned),
        phase: state.phase().map(str::to_owned),
        turn_id: turn.id().to_owned(),
        role: turn.role().to_owned(),
        policy_id: id.to_owned(),
        message: message.to_owned(),
        blocked_on,
    });
    super::blocked(root, "policy_escalation", state, &event, vec![entry], owed)
}

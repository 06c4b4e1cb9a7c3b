//! The corpus's operations on the run: its state machine and its gates.

use super::fixture::{Fixture, filled_config};
use super::{Actual, NoVerdict};
use crate::governed::config::check;
use crate::governed::gate::{self, Asked};
use crate::governed::json::{self, Object};
use crate::governed::next::{Acceptance, Event, next_state};
use crate::governed::outcome::TurnResult;
use crate::governed::{
    Block, Config, GateAction, GateKind, GateResult, GovernedError, Reactivation, Refusal, Rejection,
    RunStatus, State, Turn, approve_completion_gate, approve_phase_gate, assign_turn, init_run,
    mark_run_blocked, reactivate_run, reject_turn,
};
use serde_json::{Value, json};

/// What the corpus calls an operation that the state did not allow.
const INVALID: &str = "invalid_state_transition";

fn refused(fixture: &Fixture, before: &[u8], error_type: &str, message: String) -> Value {
    json!({
        "result": "error",
        "error_type": error_type,
        "message": message,
        "state_unchanged": fixture.state_bytes() == before,
    })
}

/// Returns an operation's answer: the state, or that the operation was refused.
fn answer(fixture: &Fixture, before: &[u8], done: Result<State, GovernedError>) -> Actual {
    match done {
        Ok(state) => {
            let state = state.to_value();
            Ok(json!({ "result": "ok", "state_assertions": state, "state": state }))
        }
        Err(GovernedError::Refused(refusal)) => Ok(refused(fixture, before, INVALID, refusal.to_string())),
        Err(error @ (GovernedError::Hook { .. } | GovernedError::DirtyWorkspace { .. })) => {
            Ok(refused(fixture, before, INVALID, error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn initialize(fixture: &Fixture) -> Actual {
    let before = fixture.state_bytes();
    let problems = check::problems(&fixture.config.to_value(), None);
    let may = crate::governed::next::admit(&fixture.state()?, crate::governed::Verb::Initialize).is_ok();
    if let (Some(problem), true) = (problems.first(), may) {
        return Ok(refused(fixture, &before, "invalid_config", problem.to_string()));
    }
    answer(fixture, &before, init_run(&fixture.root(), &fixture.config).map(|done| done.state))
}

pub(super) fn assign(fixture: &Fixture) -> Actual {
    let before = fixture.state_bytes();
    let role = fixture.arg("role_id").unwrap_or_default();
    answer(fixture, &before, assign_turn(&fixture.root(), &fixture.config, role).map(|done| done.state))
}

pub(super) fn approve_transition(fixture: &Fixture) -> Actual {
    let before = fixture.state_bytes();
    answer(fixture, &before, approve_phase_gate(&fixture.root(), &fixture.config).map(|done| done.state))
}

pub(super) fn approve_completion(fixture: &Fixture) -> Actual {
    let before = fixture.state_bytes();
    answer(fixture, &before, approve_completion_gate(&fixture.root(), &fixture.config).map(|done| done.state))
}

pub(super) fn resolve_blocked(fixture: &Fixture) -> Actual {
    let (before, state) = (fixture.state_bytes(), fixture.state()?);
    if state.status() != Some(RunStatus::Blocked) {
        return Ok(refused(fixture, &before, INVALID, "the run is not blocked".to_owned()));
    }
    let done = reactivate_run(&fixture.root(), &state, &Reactivation::default());
    answer(fixture, &before, done.map(|done| done.state))
}

pub(super) fn transition(fixture: &Fixture) -> Actual {
    let (before, state) = (fixture.state_bytes(), fixture.state()?);
    let wanted_run =
        json::object(&fixture.args, "candidate_overrides").and_then(|overrides| overrides.get("run_id"));
    if wanted_run.is_some_and(|run| run.as_str() != state.run_id()) {
        let message = "the run's id is set once and for all".to_owned();
        let mut refused = refused(fixture, &before, "immutable_field", message);
        refused["error_field"] = json!("run_id");
        return Ok(refused);
    }
    if let Some(target) = fixture.arg("target_status") {
        return directly(fixture, &before, &state, target);
    }
    match fixture.arg("trigger") {
        Some("gate_requires_human_approval") => {
            let done = awaiting(&state, json::object(&fixture.args, "gate").unwrap_or(&Object::new()));
            answer(fixture, &before, done.map_err(GovernedError::from))
        }
        Some("escalation") => escalation(fixture, &before, &state),
        other => Err(NoVerdict::NotImplemented(format!("trigger {other:?} is not known"))),
    }
}

/// Performs the operation that leads to a status, if one does.
fn directly(fixture: &Fixture, before: &[u8], state: &State, target: &str) -> Actual {
    let (root, config) = (fixture.root(), &fixture.config);
    match target {
        "completed" => answer(fixture, before, approve_completion_gate(&root, config).map(|done| done.state)),
        "active" if state.status() == Some(RunStatus::Idle) => {
            answer(fixture, before, init_run(&root, config).map(|done| done.state))
        }
        "active" => {
            let done = reactivate_run(&root, state, &Reactivation::default());
            answer(fixture, before, done.map(|done| done.state))
        }
        "blocked" => {
            let reason = fixture.arg("reason").unwrap_or("unspecified");
            let blocked_on = format!("human:{reason}");
            let details = Block { blocked_on: &blocked_on, category: "needs_human", ..Block::default() };
            answer(fixture, before, mark_run_blocked(&root, &details).map(|done| done.state))
        }
        // Only a gate pauses a run.
        _ => Ok(refused(fixture, before, INVALID, format!("nothing leads to '{target}' from here"))),
    }
}

/// Performs the transition of a gate that wants a person: accepts a turn whose request the gate holds.
fn awaiting(state: &State, gate: &Object) -> Result<State, Refusal> {
    let turn = state.active_turns().into_iter().next();
    let mut state = state.clone();
    let id = turn.as_ref().map_or("turn_0000000000000000", Turn::id).to_owned();
    if turn.is_none() {
        let asking = json!({ "turn_id": id, "assigned_role": "role", "attempt": 1, "assigned_sequence": 1 });
        let mut value = state.to_value();
        value["active_turns"] = json!({ id.as_str(): asking });
        state = State::from_value(value).unwrap_or(state);
    }
    let to = json::filled(gate, "to").map(str::to_owned);
    let kind = if to.is_some() { GateKind::PhaseTransition } else { GateKind::RunCompletion };
    let held = GateResult {
        kind,
        gate_id: json::filled(gate, "gate").map(str::to_owned),
        action: GateAction::AwaitingHumanApproval,
        next_phase: to,
        reasons: Vec::new(),
        missing_files: Vec::new(),
        failing_files: Vec::new(),
        missing_verification: false,
        requested_by: id.clone(),
    };
    let (completion, exit) = match kind {
        GateKind::PhaseTransition => (None, Some(held)),
        GateKind::RunCompletion => (Some(held), None),
    };
    let acceptance = Acceptance {
        turn_id: id,
        result: TurnResult::default(),
        at: "1970-01-01T00:00:00.000Z".to_owned(),
        integration_ref: "unknown".to_owned(),
        allowed_next: Vec::new(),
        entry_role: None,
        only_warns: true,
        completion,
        exit,
    };
    next_state(&state, &Event::Accept(Box::new(acceptance)))
}

/// Escalates: rejects a last attempt, or blocks the run for the reason that is given.
fn escalation(fixture: &Fixture, before: &[u8], state: &State) -> Actual {
    let (root, role) = (fixture.root(), fixture.arg("role_id").unwrap_or_default());
    let reason = fixture.arg("reason").unwrap_or("operator");
    let turn = state.active_turns().into_iter().find(|turn| turn.role() == role);
    if let ("retries_exhausted", Some(turn)) = (reason, turn) {
        let mut config = fixture.config.to_value();
        config["rules"]["max_turn_retries"] = json!(turn.attempt());
        let config = Config::from_value(config).or_else(|| Config::from_value(filled_config(None)));
        let config = config.ok_or_else(|| NoVerdict::Error("cannot configure the fixture".to_owned()))?;
        let rejection = Rejection { turn_id: Some(turn.id().to_owned()), ..Rejection::default() };
        let done = reject_turn(&root, &config, &rejection, reason).map(|done| done.state);
        return answer(fixture, before, done);
    }
    let blocked_on = format!("escalation:{}:{role}", reason.replace('_', "-"));
    let details = Block { blocked_on: &blocked_on, category: reason, ..Block::default() };
    answer(fixture, before, mark_run_blocked(&root, &details).map(|done| done.state))
}

fn verification(fixture: &Fixture) -> Option<String> {
    let Some(result) = json::object(&fixture.setup, "turn_result") else { return Some("pass".to_owned()) };
    match json::object(result, "verification") {
        Some(verification) => json::text(verification, "status").map(str::to_owned),
        None => Some("pass".to_owned()),
    }
}

pub(super) fn phase_exit(fixture: &Fixture) -> Actual {
    let state = fixture.state()?;
    let (phase, target) =
        (state.phase().unwrap_or_default(), fixture.arg("requested_phase").unwrap_or_default());
    let verification = verification(fixture);
    let asked = Asked { phase, run: None, by: "turn", verification: verification.as_deref() };
    let gate = gate::phase_exit(&fixture.config, &fixture.root(), asked, target);
    let name = gate.action.name();
    Ok(match gate.action {
        GateAction::Advance => json!({ "result": "success", "action": name, "new_phase": gate.next_phase }),
        GateAction::AwaitingHumanApproval => json!({
            "result": "success",
            "action": name,
            "new_status": "paused",
            "pending_phase_transition": { "from": phase, "to": gate.next_phase, "gate": gate.gate_id },
        }),
        GateAction::UnknownPhase => json!({
            "result": "error",
            "action": "gate_error",
            "error_type": "unknown_phase",
            "state_unchanged": true,
        }),
        GateAction::GateFailed | GateAction::Complete | GateAction::NotFinalPhase => json!({
            "result": "success",
            "action": name,
            "phase_unchanged": true,
            "state_unchanged": true,
            "reason": reason(&gate),
        }),
    })
}

pub(super) fn run_completion(fixture: &Fixture) -> Actual {
    let state = fixture.state()?;
    let phase = state.phase().unwrap_or_default();
    let asks = json::object(&fixture.setup, "turn_result")
        .and_then(|result| result.get("run_completion_request"))
        .is_none_or(|request| request == &Value::Bool(true));
    if !asks {
        return Ok(
            json!({ "result": "success", "action": "no_request", "state_unchanged": true, "reason": "" }),
        );
    }
    let verification = verification(fixture);
    let asked = Asked { phase, run: None, by: "turn", verification: verification.as_deref() };
    let gate = gate::run_completion(&fixture.config, &fixture.root(), asked);
    let name = gate.action.name();
    Ok(match gate.action {
        GateAction::Complete => json!({ "result": "success", "action": name, "new_status": "completed" }),
        GateAction::AwaitingHumanApproval => json!({
            "result": "success",
            "action": name,
            "new_status": "paused",
            "pending_run_completion": { "phase": phase, "gate": gate.gate_id },
        }),
        GateAction::Advance
        | GateAction::GateFailed
        | GateAction::UnknownPhase
        | GateAction::NotFinalPhase => json!({
            "result": "success",
            "action": name,
            "state_unchanged": true,
            "reason": reason(&gate),
        }),
    })
}

/// Returns the one reason that the corpus has room for.
fn reason(gate: &GateResult) -> &str {
    if !gate.missing_files.is_empty() {
        "requires_files predicate failed"
    } else if gate.missing_verification {
        "requires_verification_pass predicate failed"
    } else {
        gate.reasons.first().map_or("", String::as_str)
    }
}

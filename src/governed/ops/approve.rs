//! A person's approval of what is pending: a phase transition, or the run's completion.

use super::super::events::{self, Completed, Happened};
use super::super::hooks::HookPhase;
use super::super::journal::{Change, HISTORY};
use super::super::next::{Event, Verb, admit, next_state};
use super::super::notify::Owed;
use super::super::records::{PendingCompletion, PendingTransition};
use super::super::root::Root;
use super::super::state::{self, State};
use super::super::{Config, GovernedError, hooks, json, lines};
use super::{Place, locked};
use serde_json::{Value, json};

/// A phase transition that was approved.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseApproved {
    /// The state, active in the next phase.
    pub state: State,
    /// The transition that was pending.
    pub transition: PendingTransition,
}

/// A completion that was approved.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionApproved {
    /// The state, completed.
    pub state: State,
    /// The completion that was pending.
    pub completion: PendingCompletion,
}

/// Approves the pending phase transition. The gate is not judged again.
///
/// # Errors
/// [`Refusal::NothingPending`](super::super::Refusal::NothingPending),
/// [`Refusal::NotAllowed`](super::super::Refusal::NotAllowed) unless the run is paused or blocked;
/// [`GovernedError::Hook`] where a hook of `before_gate` stops it: the run is blocked then, and the transition
/// still pending; [`GovernedError::Locked`].
pub fn approve_phase_gate(root: &Root, config: &Config) -> Result<PhaseApproved, GovernedError> {
    locked(root, Some(config), |owed| {
        let state = state::require(root)?;
        admit(&state, Verb::ApprovePhase)?;
        let transition = state.pending_phase_transition().unwrap_or_default();
        if !config.knows_phase(transition.to()) {
            let errors =
                vec![format!("phase '{}' must be one of the configuration's routing", transition.to())];
            return Err(GovernedError::InvalidState { path: root.join(state::STATE), errors });
        }
        before_gate(root, config, &state, "phase_transition", &transition.to_value(), owed)?;
        let next = next_state(&state, &Event::ApprovePhase { at: root.now() })?;
        let of = |key: &str| transition.get(key).and_then(Value::as_str).map(str::to_owned);
        let lines = [
            Happened::GateApproved { gate_type: "phase_transition", gate: of("gate") },
            Happened::PhaseEntered { from: of("from"), to: of("to") },
        ]
        .map(|happened| events::event(root, happened, &next, None));
        Change::new("approve_phase_gate", &state, next.clone()).events(&lines).commit(root)?;
        Ok(PhaseApproved { state: next, transition })
    })
}

/// Approves the pending completion. The gate is not judged again.
///
/// # Errors
/// The same as those of [`approve_phase_gate`].
pub fn approve_completion_gate(root: &Root, config: &Config) -> Result<CompletionApproved, GovernedError> {
    locked(root, Some(config), |owed| {
        let state = state::require(root)?;
        admit(&state, Verb::ApproveCompletion)?;
        let completion = state.pending_run_completion().unwrap_or_default();
        before_gate(root, config, &state, "run_completion", &completion.to_value(), owed)?;
        let at = root.now();
        let next = next_state(&state, &Event::ApproveCompletion { at: at.clone() })?;
        let of = |key: &str| completion.get(key).and_then(Value::as_str).map(str::to_owned);
        let completed = Completed {
            completed_at: Some(at),
            completed_via: "approve_run_completion",
            requested_by_turn: of("requested_by_turn"),
            gate: Some(of("gate")),
        };
        let payload = json::value(&completed);
        let lines = [
            Happened::GateApproved { gate_type: "run_completion", gate: of("gate") },
            Happened::RunCompleted(completed),
        ]
        .map(|happened| events::event(root, happened, &next, None));
        Change::new("approve_completion_gate", &state, next.clone()).events(&lines).commit(root)?;
        owed.push(Owed { event: "run_completed", state: next.clone(), payload, turn: None });
        Ok(CompletionApproved { state: next, completion })
    })
}

fn before_gate(
    root: &Root,
    config: &Config,
    state: &State,
    kind: &str,
    pending: &Value,
    owed: &mut Vec<Owed>,
) -> Result<(), GovernedError> {
    if !hooks::has_any(config, HookPhase::BeforeGate) {
        return Ok(());
    }
    let gate = pending.as_object().and_then(|pending| json::text(pending, "gate"));
    let payload = json!({
        "gate_type": kind,
        "current_phase": state.phase(),
        "target_phase": pending.get("to"),
        "gate_config": gate.and_then(|gate| config.whole("gates", gate)),
        "history_length": lines::count(root, &root.join(HISTORY))?,
    });
    let place = Place { root, config, state, turn_id: None };
    place.hooks(HookPhase::BeforeGate, &payload, owed).map(drop)
}

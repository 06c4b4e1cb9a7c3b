//! The log of what happened, `events.jsonl`: a closed set of types, written with the change they tell of.

use super::json;
use super::root::Root;
use super::state::{State, Turn};
use serde_json::{Value, json};

/// The types that this room writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    RunStarted,
    PhaseEntered,
    TurnDispatched,
    TurnAccepted,
    TurnRejected,
    TurnConflicted,
    ConflictResolved,
    RunBlocked,
    RunCompleted,
    EscalationRaised,
    EscalationResolved,
    GatePending,
    GateApproved,
    GateFailed,
    BudgetExceededWarn,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RunStarted => "run_started",
            Self::PhaseEntered => "phase_entered",
            Self::TurnDispatched => "turn_dispatched",
            Self::TurnAccepted => "turn_accepted",
            Self::TurnRejected => "turn_rejected",
            Self::TurnConflicted => "turn_conflicted",
            Self::ConflictResolved => "conflict_resolved",
            Self::RunBlocked => "run_blocked",
            Self::RunCompleted => "run_completed",
            Self::EscalationRaised => "escalation_raised",
            Self::EscalationResolved => "escalation_resolved",
            Self::GatePending => "gate_pending",
            Self::GateApproved => "gate_approved",
            Self::GateFailed => "gate_failed",
            Self::BudgetExceededWarn => "budget_exceeded_warn",
        }
    }
}

/// An event's line, with the state after it.
pub(super) fn event(root: &Root, kind: Kind, state: &State, turn: Option<&Turn>, payload: Value) -> Value {
    let turn = turn.map(|turn| json!({ "turn_id": turn.id(), "role_id": turn.role() }));
    json!({
        "event_id": root.id("evt"),
        "event_type": kind.name(),
        "timestamp": root.now(),
        "run_id": json::or_null(state.run_id()),
        "phase": json::or_null(state.phase()),
        "status": state.status().map(super::RunStatus::name),
        "turn": turn,
        "intent_id": null,
        "payload": payload,
    })
}

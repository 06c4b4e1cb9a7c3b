//! The event log, `events.jsonl`: a closed set of types, each event written together with the change that it
//! reports.
//!
//! The order of the fields in these types is the order of the keys on disk. Implements G1.

use super::conflict::Summary;
use super::root::Root;
use super::state::{RunStatus, State, Turn};
use serde::Serialize;
use serde_json::Value;

/// A line of the log.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    event_id: String,
    event_type: &'static str,
    timestamp: String,
    run_id: Option<String>,
    phase: Option<String>,
    status: Option<RunStatus>,
    turn: Option<TurnOf>,
    /// Always null: this program has no intents, but readers of the format expect the key.
    intent_id: (),
    payload: Happened,
}

/// The turn that an event is about.
#[derive(Debug, Clone, Serialize)]
struct TurnOf {
    turn_id: String,
    role_id: String,
}

/// What happened, with the payload of the event.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum Happened {
    RunStarted {},
    /// A run began in a project whose previous run was completed.
    NextRunStarted {
        after: Option<String>,
    },
    PhaseEntered {
        from: Option<String>,
        to: Option<String>,
    },
    TurnDispatched {
        attempt: u64,
        bundle_path: String,
    },
    TurnAccepted {
        attempt: u64,
        accepted_sequence: u64,
    },
    TurnRejected {
        attempt: u64,
        retrying: bool,
        reason: String,
        failed_stage: Option<String>,
        validation_errors: Vec<String>,
        escalated: bool,
    },
    TurnConflicted {
        conflict: Summary,
    },
    ConflictResolved {
        resolution: &'static str,
    },
    RunBlocked {
        blocked_on: Option<String>,
    },
    /// The run is blocked; the event says for what reason.
    RunBlockedFor {
        blocked_on: Option<String>,
        blocked_reason: Option<Value>,
    },
    RunCompleted(Completed),
    EscalationRaised(Raised),
    EscalationResolved(Resolved),
    GatePending(GateAsked),
    GateFailed(GateAsked),
    GateApproved {
        gate_type: &'static str,
        gate: Option<String>,
    },
    BudgetExceededWarn {
        budget_status: Option<Value>,
    },
}

/// How a run came to its end.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Completed {
    pub completed_at: Option<String>,
    pub completed_via: &'static str,
    pub requested_by_turn: Option<String>,
    /// The gate that a person approved; left out where no approval completed the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Option<String>>,
}

/// An operator's escalation.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Raised {
    pub source: &'static str,
    pub blocked_on: String,
    pub reason: String,
    pub detail: Option<String>,
    pub recovery_action: String,
}

/// The end of an escalation.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Resolved {
    pub blocked_on: Option<String>,
    pub resolved_via: String,
    /// The state's record as it was, untyped because other tools write escalations too.
    pub previous_escalation: Value,
}

/// A gate that was asked and did not open.
#[derive(Debug, Clone, Serialize)]
pub(super) struct GateAsked {
    pub gate_type: &'static str,
    pub gate: Option<String>,
    pub reasons: Vec<String>,
}

impl Happened {
    /// Returns the event's type on disk.
    fn name(&self) -> &'static str {
        match self {
            Self::RunStarted {} | Self::NextRunStarted { .. } => "run_started",
            Self::PhaseEntered { .. } => "phase_entered",
            Self::TurnDispatched { .. } => "turn_dispatched",
            Self::TurnAccepted { .. } => "turn_accepted",
            Self::TurnRejected { .. } => "turn_rejected",
            Self::TurnConflicted { .. } => "turn_conflicted",
            Self::ConflictResolved { .. } => "conflict_resolved",
            Self::RunBlocked { .. } | Self::RunBlockedFor { .. } => "run_blocked",
            Self::RunCompleted(_) => "run_completed",
            Self::EscalationRaised(_) => "escalation_raised",
            Self::EscalationResolved(_) => "escalation_resolved",
            Self::GatePending(_) => "gate_pending",
            Self::GateApproved { .. } => "gate_approved",
            Self::GateFailed(_) => "gate_failed",
            Self::BudgetExceededWarn { .. } => "budget_exceeded_warn",
        }
    }

    /// Makes the event that the run is blocked, as `state` says.
    pub(super) fn blocked(state: &State) -> Self {
        Self::RunBlocked { blocked_on: state.blocked_on().map(str::to_owned) }
    }

    /// Makes the event that the run is blocked, as `state` says, with the reason.
    pub(super) fn blocked_for(state: &State) -> Self {
        let blocked_on = state.blocked_on().map(str::to_owned);
        Self::RunBlockedFor { blocked_on, blocked_reason: state.blocked_reason().cloned() }
    }
}

/// Makes the line of an event; `state` is the state after it.
pub(super) fn event(root: &Root, happened: Happened, state: &State, turn: Option<&Turn>) -> Line {
    let turn = turn.map(|turn| TurnOf { turn_id: turn.id().to_owned(), role_id: turn.role().to_owned() });
    Line {
        event_id: root.id("evt"),
        event_type: happened.name(),
        timestamp: root.now(),
        run_id: state.run_id().map(str::to_owned),
        phase: state.phase().map(str::to_owned),
        status: state.status(),
        turn,
        intent_id: (),
        payload: happened,
    }
}

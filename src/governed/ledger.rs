//! The lines of the decision ledger: agents' decisions, and what operations record beside them.
//!
//! The order of the fields is the order on disk. Values of a worker or of another tool are kept as they are.

use super::conflict::Summary;
use super::gate::Failure;
use super::state::{State, Turn};
use serde::Serialize;
use serde_json::Value;

/// One line of `decision-ledger.jsonl`.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum Line {
    Decision(Decided),
    GateFailed(GateFailed),
    TimedOut(TimedOut),
    Conflict(Conflicted),
    PolicyEscalation(PolicyEscalated),
    Escalated(Escalated),
    EscalationResolved(EscalationResolved),
}

/// A decision of an accepted turn.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Decided {
    pub id: Option<Value>,
    pub turn_id: String,
    pub role: String,
    pub phase: Option<String>,
    pub runtime_id: String,
    pub category: Option<Value>,
    pub statement: Option<Value>,
    pub rationale: Option<Value>,
    pub objections_against: [(); 0],
    pub status: &'static str,
    pub overridden_by: (),
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Value>,
}

/// A gate that did not open.
#[derive(Debug, Clone, Serialize)]
pub(super) struct GateFailed {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub timestamp: String,
    pub run_id: Option<String>,
    #[serde(flatten)]
    pub failure: Failure,
}

/// A time limit that was passed, and that escalates.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TimedOut {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub timestamp: String,
    pub run_id: Option<String>,
    pub phase: Option<String>,
    pub turn_id: Option<String>,
    pub scope: String,
    pub limit_minutes: Value,
    pub action: &'static str,
}

/// A step in the life of a conflict; `decision` says which one.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Conflicted {
    pub timestamp: String,
    pub decision: &'static str,
    pub run_id: Option<String>,
    pub phase: Option<String>,
    pub turn_id: String,
    pub role: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<&'static str>,
    pub conflict: Summary,
}

impl Conflicted {
    /// Makes the line about a turn's conflict, with the run and the phase of `state`.
    pub(super) fn of(
        decision: &'static str,
        state: &State,
        turn: &Turn,
        at: &str,
        conflict: Summary,
    ) -> Self {
        Self {
            timestamp: at.to_owned(),
            decision,
            run_id: state.run_id().map(str::to_owned),
            phase: state.phase().map(str::to_owned),
            turn_id: turn.id().to_owned(),
            role: turn.role().to_owned(),
            resolution: None,
            conflict,
        }
    }
}

/// A policy that blocked the run until a person acts.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PolicyEscalated {
    pub timestamp: String,
    pub decision: &'static str,
    pub run_id: Option<String>,
    pub phase: Option<String>,
    pub turn_id: String,
    pub role: String,
    pub policy_id: String,
    pub message: String,
    pub blocked_on: String,
}

/// An escalation, which called an operator.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Escalated {
    pub timestamp: String,
    pub decision: &'static str,
    pub run_id: Option<String>,
    pub phase: Option<String>,
    pub blocked_on: String,
    pub escalation: Value,
    pub turn_id: Option<String>,
    pub role: Option<String>,
}

/// An escalation that is over.
#[derive(Debug, Clone, Serialize)]
pub(super) struct EscalationResolved {
    pub timestamp: String,
    pub decision: &'static str,
    pub run_id: Option<String>,
    pub phase: Option<String>,
    pub resolved_via: String,
    pub note: Option<String>,
    pub blocked_on: Option<String>,
    /// The state's record as it was, untyped because other tools write escalations too.
    pub escalation: Value,
    pub turn_id: Option<Value>,
    pub role: Option<Value>,
}

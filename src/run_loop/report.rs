//! What a loop reports: why it stopped, what was done, and what happened on the way.

use crate::governed::{GateKind, State, Turn};
use serde::Serialize;

/// Why a loop stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The run is completed.
    Completed,
    /// The run is blocked, an operation refused to go on, or `approve_gate` failed.
    Blocked,
    /// A gate was not approved.
    GateHeld,
    /// The caller selected no role to go next.
    CallerStopped,
    /// As many turns were accepted as the loop may have.
    MaxTurnsReached,
    /// A turn was rejected once too often, and the run waits for a person.
    RejectExhausted,
    /// `select_role` or `dispatch` failed, or a result could not be staged; a turn that is assigned stays so.
    DispatchError,
    /// The run could not be initialized.
    InitFailed,
    /// A turn conflicted once too often, and the run waits for a person.
    ConflictLoop,
}

impl StopReason {
    /// Returns the reason's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Blocked => "blocked",
            Self::GateHeld => "gate_held",
            Self::CallerStopped => "caller_stopped",
            Self::MaxTurnsReached => "max_turns_reached",
            Self::RejectExhausted => "reject_exhausted",
            Self::DispatchError => "dispatch_error",
            Self::InitFailed => "init_failed",
            Self::ConflictLoop => "conflict_loop",
        }
    }
}

/// Something that happened in a loop.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopEvent {
    /// A turn was assigned.
    TurnAssigned {
        /// The turn.
        turn: Turn,
    },
    /// A turn was accepted.
    TurnAccepted {
        /// The turn, as it was when it was dispatched.
        turn: Turn,
    },
    /// A turn was rejected.
    TurnRejected {
        /// The turn, as it is now.
        turn: Turn,
        /// Whether it was rejected once too often.
        escalated: bool,
    },
    /// A turn conflicted with others.
    TurnConflicted {
        /// The turn, as it was when it was dispatched.
        turn: Turn,
    },
    /// A gate awaits approval.
    GatePaused {
        /// The kind of the gate.
        kind: GateKind,
    },
    /// A gate was approved.
    GateApproved {
        /// The kind of the gate.
        kind: GateKind,
    },
    /// A gate was not approved.
    GateHeld {
        /// The kind of the gate.
        kind: GateKind,
    },
    /// The loop ends with the run blocked, or because an operation refused to go on.
    Blocked,
    /// The loop ends with the run completed.
    Completed,
    /// The loop ends because no role goes next.
    CallerStopped,
}

impl LoopEvent {
    /// Returns the event's name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TurnAssigned { .. } => "turn_assigned",
            Self::TurnAccepted { .. } => "turn_accepted",
            Self::TurnRejected { .. } => "turn_rejected",
            Self::TurnConflicted { .. } => "turn_conflicted",
            Self::GatePaused { .. } => "gate_paused",
            Self::GateApproved { .. } => "gate_approved",
            Self::GateHeld { .. } => "gate_held",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::CallerStopped => "caller_stopped",
        }
    }
}

/// One attempt at a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnRecord {
    /// The role that had the turn.
    pub role: String,
    /// The turn's id; the same for each of its attempts.
    pub turn_id: String,
    /// The attempt, from 1.
    pub attempt: u64,
    /// Whether the attempt was accepted.
    pub accepted: bool,
    /// Why the attempt was not accepted.
    pub reason: Option<String>,
}

/// What a loop did.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopReport {
    /// Why the loop stopped.
    pub stop_reason: StopReason,
    /// The state when the loop ended; `None` where it can't be read.
    pub state: Option<State>,
    /// How many turns were accepted.
    pub turns_executed: u64,
    /// Every attempt, the last one included.
    pub turn_history: Vec<TurnRecord>,
    /// How many gates were approved.
    pub gates_approved: u64,
    /// What went wrong, in words.
    pub errors: Vec<String>,
}

impl LoopReport {
    pub(super) fn new() -> Self {
        Self {
            stop_reason: StopReason::Blocked,
            state: None,
            turns_executed: 0,
            turn_history: Vec::new(),
            gates_approved: 0,
            errors: Vec::new(),
        }
    }

    /// True where the run is completed.
    pub fn ok(&self) -> bool {
        self.stop_reason == StopReason::Completed
    }
}

//! Why a transition is refused, and the names of the operations.

use super::RunStatus;
use std::fmt;

/// What a caller wants to do with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Begin the run.
    Initialize,
    /// Let a blocked or paused run go on.
    Reactivate,
    /// Assign a turn.
    Assign,
    /// Accept a turn.
    Accept,
    /// Reject a turn.
    Reject,
    /// Approve the pending phase transition.
    ApprovePhase,
    /// Approve the pending completion.
    ApproveCompletion,
    /// Block the run.
    Block,
    /// Escalate to a person.
    Escalate,
    /// Block the run for a hook, a policy or a time limit.
    Hook,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initialize => "initialize run",
            Self::Reactivate => "reactivate run",
            Self::Assign => "assign turn",
            Self::Accept => "accept turn",
            Self::Reject => "reject turn",
            Self::ApprovePhase => "approve phase transition",
            Self::ApproveCompletion => "approve completion",
            Self::Block | Self::Hook => "block run",
            Self::Escalate => "escalate",
        })
    }
}

fn shown(status: Option<RunStatus>) -> &'static str {
    status.map_or("unknown", RunStatus::name)
}

/// Why the state stays as it is.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The run's status does not allow the operation.
    #[error("cannot {verb}: run is {}", shown(*status))]
    NotAllowed {
        /// The operation that was tried.
        verb: Verb,
        /// The run's status; `None` where its name is none of the six.
        status: Option<RunStatus>,
    },
    /// A person's approval comes first.
    #[error("cannot reactivate run: it awaits approval")]
    AwaitingApproval,
    /// There is nothing to approve.
    #[error("cannot {verb}: none is pending")]
    NothingPending {
        /// The operation that was tried.
        verb: Verb,
    },
    /// The role is not declared.
    #[error("cannot assign turn: role '{role}' is not declared")]
    UnknownRole {
        /// The role.
        role: String,
    },
    /// The role has no runtime.
    #[error("cannot assign turn: role '{role}' has no runtime")]
    NoRuntime {
        /// The role.
        role: String,
    },
    /// The phase allows one turn at a time, and one is active.
    #[error("cannot assign turn: turn '{turn_id}' is active")]
    TurnActive {
        /// The turn.
        turn_id: String,
    },
    /// The role has an active turn already.
    #[error("cannot assign turn: role '{role}' has turn '{turn_id}'")]
    RoleBusy {
        /// The role.
        role: String,
        /// The role's active turn.
        turn_id: String,
    },
    /// As many turns are active as the phase allows.
    #[error("cannot assign turn: {limit} turns are active, and the phase allows no more")]
    LimitReached {
        /// How many turns the phase may have.
        limit: usize,
    },
    /// The budget is spent.
    #[error("cannot assign turn: the budget is spent")]
    BudgetExhausted,
    /// The run waits for a larger budget, and has none.
    #[error(
        "cannot reactivate run: its budget is spent, and budget.per_run_max_usd of agentxchain.json is not raised"
    )]
    StillSpent,
    /// What is left of the budget, less what other turns reserved, is less than a turn may cost.
    #[error("cannot assign turn: {left} USD are left, and a turn may cost {wanted} USD")]
    BudgetReserved {
        /// What is left, in USD.
        left: f64,
        /// What a turn may cost, in USD.
        wanted: f64,
    },
    /// There is no such active turn.
    #[error("cannot find turn{}", turn_id.as_ref().map_or_else(|| ": none is active".to_owned(), |id| format!(" '{id}': it is not active")))]
    TurnNotFound {
        /// The turn that was named; `None` where none was named, and none is active.
        turn_id: Option<String>,
    },
    /// The history has the turn already, whatever the state says.
    #[error("cannot accept turn '{turn_id}': it was accepted")]
    AlreadyAccepted {
        /// The turn.
        turn_id: String,
    },
    /// Several turns are active, and none was named.
    #[error("cannot choose a turn: several are active, name one")]
    TargetRequired,
    /// The turn is not conflicted: only a conflict is merged by hand.
    #[error("cannot merge turn '{turn_id}': it is not conflicted")]
    NotConflicted {
        /// The turn.
        turn_id: String,
    },
}

impl Refusal {
    /// Returns the original tool's `error_code`, where it has one for this refusal.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::TurnNotFound { .. } => Some("not_found"),
            Self::AlreadyAccepted { .. } => Some("turn_already_accepted"),
            Self::TargetRequired => Some("target_required"),
            Self::NotConflicted { .. } => Some("protocol_error"),
            Self::NotAllowed { .. }
            | Self::AwaitingApproval
            | Self::NothingPending { .. }
            | Self::UnknownRole { .. }
            | Self::NoRuntime { .. }
            | Self::TurnActive { .. }
            | Self::RoleBusy { .. }
            | Self::LimitReached { .. }
            | Self::BudgetExhausted
            | Self::StillSpent
            | Self::BudgetReserved { .. } => None,
        }
    }
}

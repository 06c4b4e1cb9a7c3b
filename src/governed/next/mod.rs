//! Every transition of a governed run, as one total function of values.
//!
//! `next_state(state, event)` returns what the state becomes, or why the event is refused. The function reads
//! and writes nothing, and asks nothing of the outside: an event carries what it needs to know (moments, ids,
//! limits, gates' answers). Operations load a state, call the function, and commit its result; models and
//! tests call the same function. Implements G4.

mod accept;
mod assign;
mod delegate;
mod gates;
mod refusal;
mod reject;

pub(crate) use accept::{Acceptance, wanted};
pub(crate) use assign::Assignment;
pub use refusal::{Refusal, Verb};
pub(crate) use reject::{ConflictFound, Rejection};

use super::json;
use super::state::{RunStatus, State, Turn, TurnStatus};
use serde_json::{Value, json};

/// What happens to a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// A run begins.
    Initialize { run_id: String, at: String, run_budget: Option<f64>, first_phase: Option<String> },
    /// A blocked run goes on.
    Reactivate { run_budget: Option<f64>, only_warns: bool },
    /// A role gets a turn.
    Assign(Box<Assignment>),
    /// A turn's result is accepted.
    Accept(Box<Acceptance>),
    /// A turn's result conflicts with what was accepted since.
    Conflict(Box<ConflictFound>),
    /// A turn's result is rejected.
    Reject(Box<Rejection>),
    /// A person approves the pending phase transition.
    ApprovePhase { at: String },
    /// A person approves the pending completion.
    ApproveCompletion { at: String },
    /// The run is blocked: by its caller, by an escalation, by a hook, a policy or a time limit.
    Block { by: Verb, blocked_on: String, reason: Value, escalation: Option<Value> },
}

impl Event {
    fn verb(&self) -> Verb {
        match self {
            Self::Initialize { .. } => Verb::Initialize,
            Self::Reactivate { .. } => Verb::Reactivate,
            Self::Assign(_) => Verb::Assign,
            Self::Accept(_) | Self::Conflict(_) => Verb::Accept,
            Self::Reject(_) => Verb::Reject,
            Self::ApprovePhase { .. } => Verb::ApprovePhase,
            Self::ApproveCompletion { .. } => Verb::ApproveCompletion,
            Self::Block { by, .. } => *by,
        }
    }
}

/// Returns what the state becomes.
///
/// # Errors
/// The reason why the state stays as it is.
pub(crate) fn next_state(state: &State, event: &Event) -> Result<State, Refusal> {
    admit(state, event.verb())?;
    match event {
        Event::Initialize { run_id, at, run_budget, first_phase } => {
            Ok(initialized(state, run_id, at, *run_budget, first_phase.as_deref()))
        }
        Event::Reactivate { run_budget, only_warns } => reactivated(state, *run_budget, *only_warns),
        Event::Assign(assignment) => assign::assigned(state, assignment),
        Event::Accept(acceptance) => accept::accepted(state, acceptance),
        Event::Conflict(conflict) => reject::conflicted(state, conflict),
        Event::Reject(rejection) => reject::rejected(state, rejection),
        Event::ApprovePhase { at } => Ok(gates::phase_approved(state, at)),
        Event::ApproveCompletion { at } => Ok(gates::completion_approved(state, at)),
        Event::Block { blocked_on, reason, escalation, .. } => {
            let mut next = state.clone();
            block(&mut next, blocked_on, reason.clone());
            if let Some(escalation) = escalation {
                next.set("escalation", escalation.clone());
            }
            Ok(next)
        }
    }
}

/// Checks whether the run's status and its pending requests allow this operation at all.
///
/// # Errors
/// The reason why they do not.
pub(crate) fn admit(state: &State, verb: Verb) -> Result<(), Refusal> {
    let status = state.status();
    let refused = || Err(Refusal::NotAllowed { verb, status });
    let Some(status) = status else { return refused() };
    let may = match verb {
        Verb::Initialize => match status {
            RunStatus::Idle => state.active_turns().is_empty(),
            // The run was blocked before it began.
            RunStatus::Blocked => state.run_id().is_none() && state.active_turns().is_empty(),
            RunStatus::Active | RunStatus::Paused | RunStatus::Completed | RunStatus::Failed => false,
        },
        Verb::Assign | Verb::Escalate => is(status, &[RunStatus::Active]),
        Verb::Accept | Verb::Reject => is(status, &[RunStatus::Active, RunStatus::Blocked]),
        Verb::Reactivate | Verb::ApprovePhase | Verb::ApproveCompletion => {
            is(status, &[RunStatus::Paused, RunStatus::Blocked])
        }
        Verb::Block | Verb::Hook => is(status, &[RunStatus::Active, RunStatus::Paused, RunStatus::Blocked]),
    };
    if !may {
        return refused();
    }
    let (phase, completion) = (state.pending_phase_transition(), state.pending_run_completion());
    match verb {
        Verb::Reactivate if phase.is_some() || completion.is_some() => Err(Refusal::AwaitingApproval),
        Verb::ApprovePhase if phase.is_none() => Err(Refusal::NothingPending { verb }),
        Verb::ApproveCompletion if completion.is_none() => Err(Refusal::NothingPending { verb }),
        Verb::Initialize
        | Verb::Reactivate
        | Verb::Assign
        | Verb::Accept
        | Verb::Reject
        | Verb::ApprovePhase
        | Verb::ApproveCompletion
        | Verb::Block
        | Verb::Escalate
        | Verb::Hook => Ok(()),
    }
}

fn is(status: RunStatus, any: &[RunStatus]) -> bool {
    any.contains(&status)
}

fn initialized(
    state: &State,
    run_id: &str,
    at: &str,
    run_budget: Option<f64>,
    first_phase: Option<&str>,
) -> State {
    let mut next = state.clone();
    next.set("schema_version", "1.1");
    next.set("run_id", run_id);
    next.set("status", RunStatus::Active.name());
    if next.phase().is_none() {
        next.set("phase", super::json::or_null(first_phase));
    }
    clear(&mut next);
    for key in [
        "pending_phase_transition",
        "pending_run_completion",
        "queued_phase_transition",
        "queued_run_completion",
    ] {
        next.set(key, Value::Null);
    }
    next.set("turn_sequence", next.turn_sequence());
    next.set("active_turns", json!({}));
    next.set("created_at", at);
    next.set("phase_entered_at", at);
    next.set(
        "budget_status",
        json!({ "spent_usd": 0, "remaining_usd": run_budget.map_or(Value::Null, super::json::number) }),
    );
    next.set("budget_reservations", json!({}));
    next
}

/// Returns the state of a run that goes on: a turn that had got stuck is tried once more, because otherwise
/// it would be lost, and would count as active for ever.
/// Lets a run go on. What is left of its budget is what the configuration gives it now, less what it has spent: a person
/// may have raised it.
fn reactivated(state: &State, run_budget: Option<f64>, only_warns: bool) -> Result<State, Refusal> {
    let mut next = state.clone();
    if let Some(given) = run_budget {
        next.edit("budget_status", |budget| {
            let left =
                accept::rounded(given - budget.get("spent_usd").and_then(Value::as_f64).unwrap_or(0.0));
            budget.insert("remaining_usd".to_owned(), json::number(left));
            if left > 0.0 {
                EXHAUSTED.iter().for_each(|key| drop(budget.shift_remove(*key)));
            }
        });
    }
    if state.blocked_on() == Some(accept::SPENT)
        && !only_warns
        && next.budget_left().is_some_and(|left| left <= 0.0)
    {
        return Err(Refusal::StillSpent);
    }
    next.set("status", RunStatus::Active.name());
    clear(&mut next);
    for mut turn in state.active_turns() {
        if turn.status().is_some_and(TurnStatus::is_stuck) {
            turn.set("attempt", turn.attempt().saturating_add(1));
            turn.set("status", TurnStatus::Retrying.name());
            next.put_turn(&turn);
        }
    }
    Ok(next)
}

/// The keys of a budget that say when it was spent.
const EXHAUSTED: [&str; 4] = ["exhausted", "exhausted_at", "exhausted_after_turn", "warn_mode"];

/// Clears what the run waits for.
fn clear(state: &mut State) {
    for key in ["blocked_on", "blocked_reason", "escalation"] {
        state.set(key, Value::Null);
    }
}

fn block(state: &mut State, blocked_on: &str, reason: Value) {
    state.set("status", RunStatus::Blocked.name());
    state.set("blocked_on", blocked_on);
    state.set("blocked_reason", reason);
}

/// Makes a `blocked_reason`, with what recovers from the block.
pub(crate) fn reason(
    category: &str,
    owner: &str,
    action: &str,
    detail: Option<&str>,
    turn: Option<&str>,
    at: &str,
) -> Value {
    json!({
        "category": category,
        "recovery": {
            "typed_reason": category,
            "owner": owner,
            "recovery_action": action,
            "turn_retained": turn.is_some(),
            "detail": detail,
        },
        "blocked_at": at,
        "turn_id": turn,
    })
}

/// Returns the turn that is meant: the named one, else the only active one.
///
/// # Errors
/// No turn of that id is active, no turn is active at all, or several are and none is named.
pub(crate) fn target(state: &State, turn_id: Option<&str>) -> Result<Turn, Refusal> {
    match turn_id {
        Some(id) => state.turn(id).ok_or_else(|| Refusal::TurnNotFound { turn_id: Some(id.to_owned()) }),
        None => {
            let mut turns = state.active_turns();
            match (turns.pop(), turns.len()) {
                (Some(turn), 0) => Ok(turn),
                (Some(_), _) => Err(Refusal::TargetRequired),
                (None, _) => Err(Refusal::TurnNotFound { turn_id: None }),
            }
        }
    }
}

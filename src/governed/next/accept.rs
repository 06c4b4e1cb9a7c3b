//! Accepting a result: what it changes in the state, with its requests and the gates' answers.

use super::super::gate::GateResult;
use super::super::json::{self, Object};
use super::super::outcome::TurnResult;
use super::{Refusal, RunStatus, State, block, clear, delegate, gates, reason};
use super::{TurnStatus, target};
use serde_json::{Value, json};

/// What a run is blocked on whose budget is spent.
pub(super) const SPENT: &str = "budget:exhausted";

/// An accepted result, and what the transition needs to know besides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Acceptance {
    pub turn_id: String,
    /// The validated result.
    pub result: TurnResult,
    pub at: String,
    /// The ref of what the workspace is at now, such as `git:<commit>`.
    pub integration_ref: String,
    /// The roles that may go next in this phase, and the role that begins it.
    pub allowed_next: Vec<String>,
    pub entry_role: Option<String>,
    /// True where a spent budget is a warning only.
    pub only_warns: bool,
    /// The gates' answers to the requests that [`wanted`] names.
    pub completion: Option<GateResult>,
    pub exit: Option<GateResult>,
}

/// What the gates are asked, and in which turn's name.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Wanted {
    /// The turn that asked for completion.
    pub completion: Option<String>,
    /// The phase that is asked for, and the turn that asked.
    pub exit: Option<(String, String)>,
}

fn has_others(state: &State, turn_id: &str) -> bool {
    state.active_turns().iter().any(|turn| turn.id() != turn_id)
}

/// Returns what the gates are asked when this result is accepted: nothing while other turns are active, or
/// where the turn needs a human.
pub(crate) fn wanted(state: &State, turn_id: &str, result: &TurnResult) -> Wanted {
    if result.needs_human() || has_others(state, turn_id) {
        return Wanted::default();
    }
    let queued = |key: &str, field: &str| {
        let queued = json::object(state.object(), key)?;
        Some(json::text(queued, field)?.to_owned())
    };
    let own = || turn_id.to_owned();
    let completion = match result.wants_completion() {
        true => Some(own()),
        false => queued("queued_run_completion", "requested_by_turn"),
    };
    let exit = match result.wants_phase() {
        Some(phase) => Some((phase.to_owned(), own())),
        None => queued("queued_phase_transition", "to")
            .zip(queued("queued_phase_transition", "requested_by_turn")),
    };
    Wanted { completion, exit }
}

pub(super) fn accepted(state: &State, new: &Acceptance) -> Result<State, Refusal> {
    let turn = target(state, Some(&new.turn_id))?;
    let (result, mut next) = (&new.result, state.clone());
    next.edit("active_turns", |turns| {
        turns.shift_remove(&new.turn_id);
    });
    if state.object().contains_key("budget_reservations") {
        next.edit("budget_reservations", |all| {
            all.shift_remove(&new.turn_id);
        });
    }
    next.set("turn_sequence", state.turn_sequence().saturating_add(1));
    next.set("last_completed_turn_id", new.turn_id.as_str());
    next.set("accepted_integration_ref", new.integration_ref.as_str());
    next.set("next_recommended_role", json::or_null(recommended(new)));
    next.leave_to_human(&new.turn_id, false);
    spend(&mut next, result, &new.turn_id, &new.at, new.only_warns);
    delegate::settle(&mut next, &turn, new);
    let is_stuck =
        |turn: &super::Turn| turn.status().is_some_and(|s| s.is_stuck() || s == TurnStatus::Conflicted);
    if !next.active_turns().iter().any(is_stuck) {
        next.set("status", RunStatus::Active.name());
        clear(&mut next);
    }
    if result.needs_human() {
        let detail = result.needs_human_reason().unwrap_or("unspecified");
        let action = "do what the turn asks for, then reactivate the run";
        let reason = reason("needs_human", "human", action, Some(detail), None, &new.at);
        block(&mut next, &format!("human:{detail}"), reason);
        return Ok(next);
    }
    if !new.only_warns && next.budget_left().is_some_and(|left| left <= 0.0) {
        let action = "raise the budget, then reactivate the run";
        let reason = reason("budget_exhausted", "human", action, None, None, &new.at);
        block(&mut next, SPENT, reason);
    }
    if has_others(state, &new.turn_id) {
        queue(&mut next, new);
    } else {
        gates::answered(&mut next, new);
    }
    let is_left = is_left_to_human(state, &next, new);
    next.leave_to_human(&new.turn_id, is_left);
    Ok(next)
}

/// True where nothing but the turn's proposal says who goes next, and that says `human`: no other turn is active,
/// no phase begins, no approval is pending, and no delegated work waits.
fn is_left_to_human(state: &State, next: &State, new: &Acceptance) -> bool {
    new.result.proposed_next_role() == Some("human")
        && next.next_recommended_role().is_none()
        && !has_others(state, &new.turn_id)
        && next.phase() == state.phase()
        && next.pending_phase_transition().is_none()
        && next.pending_run_completion().is_none()
        && next.status() != Some(RunStatus::Completed)
}

/// Returns the role that should go next: the proposed one, or the phase's entry role where the phase does not
/// allow it.
fn recommended(new: &Acceptance) -> Option<&str> {
    let proposed = new.result.proposed_next_role().filter(|role| *role != "human")?;
    if new.result.needs_human() || new.result.status() == "blocked" {
        return None;
    }
    if new.allowed_next.is_empty() || new.allowed_next.iter().any(|role| role == proposed) {
        return Some(proposed);
    }
    new.entry_role.as_deref()
}

fn spend(next: &mut State, result: &TurnResult, turn_id: &str, at: &str, only_warns: bool) {
    let cost = result.cost().filter(|cost| cost.is_finite() && *cost > 0.0).unwrap_or(0.0);
    next.edit("budget_status", |budget| {
        let of = |budget: &Object, key: &str| budget.get(key).and_then(Value::as_f64);
        let spent = of(budget, "spent_usd").unwrap_or(0.0) + cost;
        budget.insert("spent_usd".to_owned(), json::number(rounded(spent)));
        let left = of(budget, "remaining_usd").map(|left| rounded(left - cost));
        budget.insert("remaining_usd".to_owned(), left.map_or(Value::Null, json::number));
        if left.is_some_and(|left| left <= 0.0) && budget.get("exhausted") != Some(&Value::Bool(true)) {
            budget.insert("exhausted".to_owned(), json!(true));
            budget.insert("exhausted_at".to_owned(), json!(at));
            budget.insert("exhausted_after_turn".to_owned(), json!(turn_id));
            if only_warns {
                budget.insert("warn_mode".to_owned(), json!(true));
            }
        }
    });
}

/// Rounds an amount to nine decimals, so that it has no rounding errors of binary fractions. One that has no such
/// decimals stays as it is.
pub(super) fn rounded(amount: f64) -> f64 {
    Some((amount * 1e9).round() / 1e9).filter(|rounded| rounded.is_finite()).unwrap_or(amount)
}

/// Queues the result's requests until the other turns are done; a request that is queued already stays.
fn queue(next: &mut State, new: &Acceptance) {
    let is_free = |next: &State, key: &str| next.get(key).is_none_or(Value::is_null);
    let (result, by) = (&new.result, new.turn_id.as_str());
    if let Some(to) = result.wants_phase()
        && is_free(next, "queued_phase_transition")
    {
        let from = next.phase().map(str::to_owned);
        next.set(
            "queued_phase_transition",
            json!({ "from": from, "to": to, "requested_by_turn": by, "requested_at": new.at }),
        );
    }
    if result.wants_completion() && is_free(next, "queued_run_completion") {
        next.set("queued_run_completion", json!({ "requested_by_turn": by, "requested_at": new.at }));
    }
}

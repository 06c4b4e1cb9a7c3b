//! Assigning a turn: the guards, in the order in which they are reported, then the turn itself.

use super::super::json;
use super::{Refusal, State, Turn, delegate};
use serde_json::{Value, json};

/// A turn to be assigned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment {
    pub turn_id: String,
    pub role: String,
    /// True where the configuration declares the role.
    pub is_known: bool,
    pub runtime: Option<String>,
    /// How many turns the phase may have at once.
    pub limit: usize,
    pub at: String,
    pub deadline_at: String,
    pub baseline: Value,
    /// What a turn may cost, in USD.
    pub turn_budget: Option<f64>,
    /// True where a spent budget is a warning only.
    pub only_warns: bool,
}

pub(super) fn assigned(state: &State, new: &Assignment) -> Result<State, Refusal> {
    let runtime = guard(state, new)?;
    let mut next = state.clone();
    let active: Vec<String> = state.active_turns().iter().map(|turn| turn.id().to_owned()).collect();
    let sequence = state.turn_sequence().saturating_add(1);
    let turn = json!({
        "turn_id": new.turn_id,
        "run_id": state.run_id(),
        "assigned_role": new.role,
        "status": "running",
        "attempt": 1,
        "started_at": new.at,
        "assigned_at": new.at,
        "deadline_at": new.deadline_at,
        "runtime_id": runtime,
        "baseline": new.baseline,
        "assigned_sequence": sequence,
        "concurrent_with": active,
    });
    let mut turn = Turn::from_object(turn.as_object().cloned().unwrap_or_default());
    delegate::attach(state, &mut turn);
    next.put_turn(&turn);
    next.set("turn_sequence", sequence);
    let has_run_budget = state.budget_left().is_some();
    if let Some(reserved) = new.turn_budget.filter(|_| has_run_budget) {
        let entry =
            json!({ "reserved_usd": json::number(reserved), "role_id": new.role, "created_at": new.at });
        next.edit("budget_reservations", |all| {
            all.insert(new.turn_id.clone(), entry);
        });
    }
    Ok(next)
}

fn guard<'a>(state: &State, new: &'a Assignment) -> Result<&'a str, Refusal> {
    if !new.is_known {
        return Err(Refusal::UnknownRole { role: new.role.clone() });
    }
    let Some(runtime) = &new.runtime else {
        return Err(Refusal::NoRuntime { role: new.role.clone() });
    };
    let turns = state.active_turns();
    if let (1, Some(turn)) = (new.limit, turns.first()) {
        return Err(Refusal::TurnActive { turn_id: turn.id().to_owned() });
    }
    if let Some(turn) = turns.iter().find(|turn| turn.role() == new.role) {
        return Err(Refusal::RoleBusy { role: new.role.clone(), turn_id: turn.id().to_owned() });
    }
    if turns.len() >= new.limit {
        return Err(Refusal::LimitReached { limit: new.limit });
    }
    if let Some(left) = state.budget_left().filter(|_| !new.only_warns) {
        if left <= 0.0 {
            return Err(Refusal::BudgetExhausted);
        }
        let reserved = state.all_reserved();
        if let Some(wanted) = new.turn_budget.filter(|wanted| *wanted > left - reserved) {
            return Err(Refusal::BudgetReserved { left: left - reserved, wanted });
        }
    }
    Ok(runtime)
}

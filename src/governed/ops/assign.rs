//! Assigning a turn.

use super::super::config::Authority;
use super::super::hooks::HookPhase;
use super::super::journal::{Change, HISTORY};
use super::super::next::{Assignment, Event, Verb, admit, next_state};
use super::super::root::Root;
use super::super::state::{self, State, Turn};
use super::super::{Config, GovernedError, get_max_concurrent_turns, hooks, lines, observe, time};
use super::{Place, in_time, locked};
use serde_json::{Value, json};
use std::time::Duration;

/// A turn that was assigned.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned {
    /// The state, with the turn in it.
    pub state: State,
    /// The turn.
    pub turn: Turn,
    /// What is doubtful about the assignment, such as a spent budget.
    pub warnings: Vec<String>,
}

/// Returns when a turn that begins now should be done; 120 minutes from now by default.
pub(super) fn deadline(root: &Root, config: &Config) -> String {
    let minutes = config.model().timeouts.per_turn_minutes;
    let minutes = minutes.filter(|minutes| (1.0..=1e7).contains(minutes)).unwrap_or(120.0);
    time::iso(root.moment() + Duration::from_secs_f64(minutes * 60.0))
}

/// Assigns the next turn to a role.
///
/// # Errors
/// [`Refusal`](super::super::Refusal) for the first guard that says no: status, role, runtime, active turns,
/// budget; [`GovernedError::DirtyWorkspace`] where a role that writes would find changes that no turn made;
/// [`GovernedError::Hook`], which leaves the run active unless the hook tampered;
/// [`GovernedError::TimedOut`], which leaves the run blocked; [`GovernedError::Locked`].
pub fn assign_turn(root: &Root, config: &Config, role: &str) -> Result<Assigned, GovernedError> {
    locked(root, Some(config), |owed| {
        let state = state::require(root)?;
        admit(&state, Verb::Assign)?;
        let phase = state.phase().unwrap_or_default();
        let mut assignment = Assignment {
            turn_id: root.id("turn"),
            role: role.to_owned(),
            is_known: config.role(role).is_some(),
            runtime: config.runtime_of(role).map(str::to_owned),
            limit: get_max_concurrent_turns(config, phase),
            at: root.now(),
            deadline_at: deadline(root, config),
            baseline: Value::Null,
            turn_budget: config.model().budget.per_turn_max_usd.filter(|amount| *amount > 0.0),
            only_warns: config.only_warns_of_budget(),
        };
        // The guards come first: they cost nothing, and the look at the workspace does.
        next_state(&state, &Event::Assign(Box::new(assignment.clone())))?;
        let mut late = in_time(root, config, &state, None, owed)?;
        let snapshot = observe::look(root)?;
        let files = observe::unclean(&snapshot);
        if !files.is_empty() && state.active_turns().is_empty() && writes(config, role) {
            return Err(GovernedError::DirtyWorkspace { files });
        }
        if hooks::has_any(config, HookPhase::BeforeAssignment) {
            let payload = payload(root, config, &state, role)?;
            let place = Place { root, config, state: &state, turn_id: None };
            place.hooks(HookPhase::BeforeAssignment, &payload, owed)?;
        }
        assignment.baseline = observe::baseline(root, &snapshot);
        let id = assignment.turn_id.clone();
        let next = next_state(&state, &Event::Assign(Box::new(assignment)))?;
        Change::new("assign_turn", &state, next.clone()).turn(&id).commit(root)?;
        let turn = super::super::next::target(&next, Some(&id))?;
        late.extend(warnings(config, &next));
        Ok(Assigned { warnings: late, state: next, turn })
    })
}

fn writes(config: &Config, role: &str) -> bool {
    match config.authority(role) {
        Authority::Authoritative | Authority::Proposed => true,
        Authority::ReviewOnly => false,
    }
}

fn warnings(config: &Config, state: &State) -> Vec<String> {
    let is_spent = config.only_warns_of_budget() && state.budget_left().is_some_and(|left| left <= 0.0);
    is_spent.then(|| "the budget is spent".to_owned()).into_iter().collect()
}

fn payload(root: &Root, config: &Config, state: &State, role: &str) -> Result<Value, GovernedError> {
    let turns: Vec<Value> = state
        .active_turns()
        .iter()
        .map(|turn| {
            json!({
                "turn_id": turn.id(),
                "role_id": turn.role(),
                "status": turn.status_name(),
                "attempt": turn.attempt(),
            })
        })
        .collect();
    Ok(json!({
        "role_id": role,
        "role_config": config.whole("roles", role),
        "phase": state.phase(),
        "active_turns": turns,
        "history_length": lines::count(root, &root.join(HISTORY))?,
    }))
}

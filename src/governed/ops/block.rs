//! Blocking a run, and escalating it to a person.

use super::super::events::{self, Happened, Raised};
use super::super::journal::Change;
use super::super::ledger::{self, Line};
use super::super::next::{self, Event, Verb, admit, next_state};
use super::super::notify::{self, Owed};
use super::super::root::Root;
use super::super::state::{self, State, get_active_turn};
use super::super::{Config, GovernedError, Refusal, json};
use super::{Place, blocked, locked};
use serde_json::{Value, json};

/// Why a run is blocked, and how it recovers.
#[derive(Debug, Clone, Default)]
pub struct Block<'a> {
    /// What the run waits for, such as `human:<reason>` or `dispatch:<detail>`.
    pub blocked_on: &'a str,
    /// The category, such as `needs_human` or `dispatch_error`.
    pub category: &'a str,
    /// How the run recovers: `{typed_reason, owner, recovery_action, turn_retained, detail}`; what is not
    /// given is made of the category.
    pub recovery: Option<Value>,
    /// The id of the turn; without one, that of the active turn, where there is exactly one.
    pub turn_id: Option<&'a str>,
    /// The moment, as it is to be written; now by default.
    pub blocked_at: Option<&'a str>,
    /// The record of an escalation, for the state.
    pub escalation: Option<Value>,
    /// The configuration whose hooks and webhooks are notified; without it, none are.
    pub config: Option<&'a Config>,
}

/// A run that is blocked.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocked {
    /// The state, blocked.
    pub state: State,
}

/// Blocks a run.
///
/// # Errors
/// [`Refusal::NotAllowed`] where the run is over or has not begun; [`GovernedError::Blank`] without what the
/// run waits for or a category; [`GovernedError::NoState`], [`GovernedError::Locked`].
pub fn mark_run_blocked(root: &Root, details: &Block<'_>) -> Result<Blocked, GovernedError> {
    for (what, text) in [("what it is blocked on", details.blocked_on), ("the category", details.category)] {
        if text.trim().is_empty() {
            return Err(GovernedError::Blank { verb: "block run", what });
        }
    }
    locked(root, details.config, |owed| {
        let state = state::require(root)?;
        let at = details.blocked_at.map_or_else(|| root.now(), str::to_owned);
        let turn = details.turn_id.map(str::to_owned);
        let turn = turn.or_else(|| get_active_turn(&state).map(|turn| turn.id().to_owned()));
        let action = "resolve what the run is blocked on, then reactivate it";
        let mut reason =
            next::reason(details.category, "human", action, Some(details.blocked_on), turn.as_deref(), &at);
        if let (Some(given), Some(own)) =
            (&details.recovery, reason.get_mut("recovery").and_then(Value::as_object_mut))
        {
            own.extend(given.as_object().cloned().unwrap_or_default());
        }
        let event = Event::Block {
            by: Verb::Block,
            blocked_on: details.blocked_on.to_owned(),
            reason,
            escalation: details.escalation.clone(),
        };
        let state = blocked(root, "mark_run_blocked", &state, &event, Vec::new(), owed)?;
        Ok(Blocked { state: tell(root, details.config, state, turn.as_deref(), owed)? })
    })
}

fn tell(
    root: &Root,
    config: Option<&Config>,
    state: State,
    turn_id: Option<&str>,
    owed: &mut Vec<Owed>,
) -> Result<State, GovernedError> {
    match config {
        Some(config) => Place { root, config, state: &state, turn_id }.escalated(owed),
        None => Ok(state),
    }
}

/// Why an operator is called.
#[derive(Debug, Clone, Copy, Default)]
pub struct Escalation<'a> {
    /// The reason; not blank.
    pub reason: &'a str,
    /// More about the reason.
    pub detail: Option<&'a str>,
    /// What the operator is to do.
    pub action: Option<&'a str>,
    /// The id of the turn that the escalation is about; without one, the only active turn is meant.
    pub turn_id: Option<&'a str>,
}

/// An escalation that was raised.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalated {
    /// The state, blocked.
    pub state: State,
    /// The record of the escalation, as the state and the ledger have it.
    pub escalation: Value,
}

/// Returns the reason in the form that is a part of `blocked_on`.
fn slug(reason: &str) -> String {
    let lower = reason.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit())
        .filter(|w| !w.is_empty())
        .collect();
    if words.is_empty() { "operator".to_owned() } else { words.join("-") }
}

/// Blocks an active run until an operator has acted.
///
/// # Errors
/// [`Refusal::NotAllowed`] unless the run is active; [`Refusal::TurnNotFound`] for a turn that is not active;
/// [`Refusal::TargetRequired`] where several turns are active and none is named; [`GovernedError::Blank`]
/// without a reason; [`GovernedError::NoState`], [`GovernedError::Locked`].
pub fn escalate(root: &Root, config: &Config, details: &Escalation<'_>) -> Result<Escalated, GovernedError> {
    if details.reason.trim().is_empty() {
        return Err(GovernedError::Blank { verb: "escalate", what: "the reason" });
    }
    locked(root, Some(config), |owed| {
        let state = state::require(root)?;
        admit(&state, Verb::Escalate)?;
        let turns = state.active_turns();
        let turn = match details.turn_id {
            Some(id) => Some(next::target(&state, Some(id))?),
            None if turns.len() > 1 => return Err(Refusal::TargetRequired.into()),
            None => turns.into_iter().next(),
        };
        let at = root.now();
        let action = details.action.unwrap_or("do what the escalation asks for, then reactivate the run");
        let escalation = json!({
            "source": "operator",
            "raised_by": "human",
            "from_role": turn.as_ref().map(|turn| turn.role()),
            "from_turn_id": turn.as_ref().map(|turn| turn.id()),
            "reason": details.reason,
            "detail": details.detail,
            "recovery_action": action,
            "escalated_at": at,
        });
        let id = turn.as_ref().map(|turn| turn.id());
        let detail = details.detail.unwrap_or(details.reason);
        let blocked_on = format!("escalation:operator:{}", slug(details.reason));
        let event = Event::Block {
            by: Verb::Escalate,
            blocked_on: blocked_on.clone(),
            reason: next::reason("operator_escalation", "human", action, Some(detail), id, &at),
            escalation: Some(escalation.clone()),
        };
        let next = next_state(&state, &event)?;
        let entry = Line::Escalated(ledger::Escalated {
            timestamp: at,
            decision: "operator_escalated",
            run_id: next.run_id().map(str::to_owned),
            phase: next.phase().map(str::to_owned),
            blocked_on: blocked_on.clone(),
            escalation: escalation.clone(),
            turn_id: id.map(str::to_owned),
            role: turn.as_ref().map(|turn| turn.role().to_owned()),
        });
        let raised = Raised {
            source: "operator",
            blocked_on: blocked_on.clone(),
            reason: details.reason.to_owned(),
            detail: details.detail.map(str::to_owned),
            recovery_action: action.to_owned(),
        };
        let payload = json::value(&raised);
        let lines =
            [Happened::RunBlocked { blocked_on: Some(blocked_on) }, Happened::EscalationRaised(raised)]
                .map(|happened| events::event(root, happened, &next, turn.as_ref()));
        Change::new("escalate", &state, next.clone()).ledger(vec![entry]).events(&lines).commit(root)?;
        owed.push(notify::blocked(&next, turn.clone()));
        owed.push(Owed {
            event: "operator_escalation_raised",
            state: next.clone(),
            payload,
            turn: turn.clone(),
        });
        let state = tell(root, Some(config), next, id, owed)?;
        Ok(Escalated { state, escalation })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reason_becomes_a_slug() {
        assert_eq!(super::slug("  DB is down: call Ops! "), "db-is-down-call-ops");
        assert_eq!(super::slug("…"), "operator");
    }
}

//! The operations: each loads the state, runs hooks where there are some, calls `next_state`, makes a
//! journaled commit, and then notifies.
//!
//! Each operation, or pair of them, has a file of its own. This file has what they share: a run that is
//! blocked for a hook or a limit, and the order of lock, commit and notification. Implements G2, G5.

pub(super) mod accept;
pub(super) mod approve;
mod asked;
pub(super) mod assign;
pub(super) mod block;
mod carryover;
mod facts;
pub(super) mod init;
mod record;
pub(super) mod reject;

use super::events::{self, Happened};
use super::hooks::{self, HookOptions, HookPhase, HookReport};
use super::journal::Change;
use super::ledger::{Line, TimedOut};
use super::next::{self, Event, Verb, next_state};
use super::notify::{self, Owed};
use super::root::Root;
use super::state::{self, State, Turn, get_active_turn};
use super::{Config, GovernedError, json, limits, lock};
use serde_json::{Value, json};

/// Runs an operation under the lock, and notifies once the lock is released.
fn locked<T>(
    root: &Root,
    config: Option<&Config>,
    work: impl FnOnce(&mut Vec<Owed>) -> Result<T, GovernedError>,
) -> Result<T, GovernedError> {
    let guard = lock::enter(root)?;
    let mut owed = Vec::new();
    let result = work(&mut owed);
    drop(guard);
    if let Some(config) = config {
        notify::send(root, config, &owed);
    }
    result
}

/// The project, the state and the turn that hooks run for.
struct Place<'a> {
    root: &'a Root,
    config: &'a Config,
    state: &'a State,
    turn_id: Option<&'a str>,
}

impl Place<'_> {
    /// Runs a phase's hooks; `None` where there are none.
    ///
    /// # Errors
    /// [`GovernedError::Hook`] where a hook stops the phase: the run is blocked then, except that a hook of
    /// `before_assignment` that only says no leaves it active.
    fn hooks(
        &self,
        phase: HookPhase,
        payload: &Value,
        owed: &mut Vec<Owed>,
    ) -> Result<Option<HookReport>, GovernedError> {
        let Some(report) = self.run(phase, payload)? else { return Ok(None) };
        let Some(stop) = report.stop.clone() else { return Ok(Some(report)) };
        let tampered = stop.tamper.is_some();
        let state = if tampered || phase != HookPhase::BeforeAssignment {
            self.block(phase, &report, owed)?
        } else {
            self.state.clone()
        };
        Err(GovernedError::Hook {
            hook: stop.hook_name,
            phase: phase.name(),
            role: payload.get("role_id").and_then(Value::as_str).map(str::to_owned),
            tampered,
            code: stop.tamper.unwrap_or("hook_blocked"),
            report: Box::new(report),
            state: Box::new(state),
        })
    }

    fn run(&self, phase: HookPhase, payload: &Value) -> Result<Option<HookReport>, GovernedError> {
        if !hooks::has_any(self.config, phase) {
            return Ok(None);
        }
        let options = HookOptions {
            run_id: self.state.run_id().map(str::to_owned),
            turn_id: self.turn_id.map(str::to_owned),
            ..HookOptions::default()
        };
        hooks::run_locked(self.root, self.config.get("hooks"), phase, payload, &options).map(Some)
    }

    /// Blocks the run for the hook that stopped a phase.
    fn block(
        &self,
        phase: HookPhase,
        report: &HookReport,
        owed: &mut Vec<Owed>,
    ) -> Result<State, GovernedError> {
        let Some(stop) = &report.stop else { return Ok(self.state.clone()) };
        let category = if stop.tamper.is_some() { "hook_tamper" } else { "hook_block" };
        let action = "see what the hook wants, then reactivate the run";
        let at = self.root.now();
        let detail = Some(stop.message.as_str());
        let event = Event::Block {
            by: Verb::Hook,
            blocked_on: format!("hook:{}:{}", phase.name(), stop.hook_name),
            reason: next::reason(category, "human", action, detail, self.turn_id, &at),
            escalation: None,
        };
        blocked(self.root, "hook_block", self.state, &event, Vec::new(), owed)
    }

    /// Runs the advisory hooks of an escalation; what they say is in the audit. Returns the state after them.
    fn escalated(&self, owed: &mut Vec<Owed>) -> Result<State, GovernedError> {
        let state = self.state;
        let reason = state.blocked_reason().cloned().unwrap_or(Value::Null);
        let turn = self.turn_id.and_then(|id| state.turn(id)).or_else(|| get_active_turn(state));
        let rejection = turn.as_ref().and_then(|turn| turn.last_rejection()?.get("reason").cloned());
        let payload = json!({
            "blocked_reason": reason,
            "recovery_action": reason.get("recovery").and_then(|recovery| recovery.get("recovery_action")),
            "failed_turn_id": turn.as_ref().map(|turn| turn.id()),
            "failed_role": turn.as_ref().map(|turn| turn.role()),
            "attempt_count": turn.as_ref().map(|turn| turn.attempt()),
            "last_error": rejection,
            "run_id": state.run_id(),
        });
        match self.run(HookPhase::OnEscalation, &payload)? {
            Some(report) if !report.ok => self.block(HookPhase::OnEscalation, &report, owed),
            Some(_) | None => Ok(state.clone()),
        }
    }
}

/// Checks the time limits, and returns the warnings of those that only warn.
///
/// # Errors
/// [`GovernedError::TimedOut`] where a limit that escalates is passed: the run is blocked then.
fn in_time(
    root: &Root,
    config: &Config,
    state: &State,
    turn: Option<&Turn>,
    owed: &mut Vec<Owed>,
) -> Result<Vec<String>, GovernedError> {
    let mut warnings = Vec::new();
    for passed in limits::passed(config, state, turn, root.moment()) {
        let message = passed.told();
        if passed.warns {
            warnings.push(message);
            continue;
        }
        return Err(timed_out(root, state, turn, &passed, message, owed)?);
    }
    Ok(warnings)
}

/// Blocks the run for a limit that was passed, and returns the error that says so.
fn timed_out(
    root: &Root,
    state: &State,
    turn: Option<&Turn>,
    passed: &limits::Passed,
    message: String,
    owed: &mut Vec<Owed>,
) -> Result<GovernedError, GovernedError> {
    let at = root.now();
    let action = "give it more time in the configuration, or reactivate the run to give it as much again";
    let event = Event::Block {
        by: Verb::Hook,
        blocked_on: format!("{}{}", limits::BLOCKED, passed.scope),
        reason: next::reason("timeout", "human", action, Some(&message), turn.map(Turn::id), &at),
        escalation: None,
    };
    let entry = Line::TimedOut(TimedOut {
        kind: "timeout",
        timestamp: at,
        run_id: state.run_id().map(str::to_owned),
        phase: state.phase().map(str::to_owned),
        turn_id: turn.map(|turn| turn.id().to_owned()),
        scope: passed.scope.to_string(),
        limit_minutes: json::number(passed.minutes),
        action: "escalate",
    });
    let state = blocked(root, "timeout", state, &event, vec![entry], owed)?;
    Ok(GovernedError::TimedOut { message, state: Box::new(state) })
}

/// Blocks the run because the worker of a turn was ended at a limit, whatever the clock says by now.
///
/// # Errors
/// Always: [`GovernedError::TimedOut`] with the state after the block, else what kept the block from being
/// written.
pub(crate) fn out_of_time(
    root: &Root,
    config: &Config,
    turn_id: &str,
    left: &limits::TimeLeft,
) -> GovernedError {
    let done = locked(root, Some(config), |owed| {
        let state = state::require(root)?;
        let turn = next::target(&state, Some(turn_id))?;
        let message = format!("{}: its worker was ended", left.limit.told());
        timed_out(root, &state, Some(&turn), &left.limit, message, owed)
    });
    done.unwrap_or_else(|error| error)
}

/// Commits a transition that blocks the run, together with its event.
fn blocked(
    root: &Root,
    kind: &'static str,
    state: &State,
    event: &Event,
    ledger: Vec<Line>,
    owed: &mut Vec<Owed>,
) -> Result<State, GovernedError> {
    let next = next_state(state, event)?;
    let turn = get_active_turn(&next);
    let line = events::event(root, Happened::blocked_for(&next), &next, turn.as_ref());
    Change::new(kind, state, next.clone()).ledger(ledger).events(&[line]).commit(root)?;
    owed.push(notify::blocked(&next, turn));
    Ok(next)
}

//! Beginning a run, also after one that is over, and letting a blocked one go on. Implements G15.

use super::super::events::{self, Happened, Resolved};
use super::super::journal::{Change, RUN_HISTORY};
use super::super::json;
use super::super::ledger::{EscalationResolved, Line};
use super::super::next::{Event, Refusal, Verb, admit, next_state};
use super::super::notify::Owed;
use super::super::root::Root;
use super::super::state::{self, RunStatus, State};
use super::super::{Config, GovernedError, history, limits};
use super::locked;
use serde_json::{Value, json};

/// A run that began.
#[derive(Debug, Clone, PartialEq)]
pub struct Initialized {
    /// The state, active.
    pub state: State,
}

/// Begins a run: a new `run_id`, status active. A project without a state gets one.
///
/// # Errors
/// [`Refusal::NotAllowed`] unless the run is idle, or was blocked before
/// it began; [`GovernedError::Locked`].
pub fn init_run(root: &Root, config: &Config) -> Result<Initialized, GovernedError> {
    locked(root, Some(config), |_| {
        let found = state::read(root)?;
        let project = config.model().project.id.as_deref();
        let phase = config.first_phase().unwrap_or("planning");
        let state =
            found.unwrap_or_else(|| State::idle(project.unwrap_or("project"), phase, &config.gates()));
        let event = Event::Initialize {
            run_id: root.id("run"),
            at: root.now(),
            run_budget: config.model().budget.per_run_max_usd,
            first_phase: config.first_phase().map(str::to_owned),
        };
        let mut next = next_state(&state, &event)?;
        if let Some(project) = project.filter(|_| next.get("project_id").is_none_or(Value::is_null)) {
            next.set("project_id", project);
        }
        let line = events::event(root, Happened::RunStarted {}, &next, None);
        Change::new("init_run", &state, next.clone()).events(&[line]).commit(root)?;
        Ok(Initialized { state: next })
    })
}

/// Begins a run after one that is over: completed, or left as failed by another tool. The old run is a line of `run-history.jsonl`; history, ledger and
/// decisions stay.
///
/// # Errors
/// [`Refusal::NotAllowed`] unless the run is over;
/// [`GovernedError::Locked`].
pub(crate) fn init_next_run(root: &Root, config: &Config) -> Result<Initialized, GovernedError> {
    locked(root, Some(config), |_| {
        let old = state::require(root)?;
        let status = old.status();
        if !status.is_some_and(RunStatus::is_over) {
            return Err(Refusal::NotAllowed { verb: Verb::Initialize, status }.into());
        }
        let phase = config.first_phase().unwrap_or("planning");
        let project = config.model().project.id.as_deref().unwrap_or("project");
        let fresh = State::idle(project, phase, &config.gates());
        let event = Event::Initialize {
            run_id: root.id("run"),
            at: root.now(),
            run_budget: config.model().budget.per_run_max_usd,
            first_phase: config.first_phase().map(str::to_owned),
        };
        let next = next_state(&fresh, &event)?;
        let started = Happened::NextRunStarted { after: old.run_id().map(str::to_owned) };
        let line = events::event(root, started, &next, None);
        let mut change = Change::new("init_run", &old, next.clone());
        // A run that an older version or another tool completed may have no line yet.
        if !history::has_run(root, &old)? {
            change = change.append(RUN_HISTORY, json::line(&history::run(root, &old)));
        }
        change.events(&[line]).commit(root)?;
        Ok(Initialized { state: next })
    })
}

/// How a run is reactivated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reactivation<'a> {
    /// By what means the run goes on, for the ledger; `reactivate_run` by default.
    pub via: Option<&'a str>,
    /// A note, for the ledger.
    pub note: Option<&'a str>,
    /// The configuration whose webhooks are notified; without it, none are.
    pub config: Option<&'a Config>,
}

/// A run that goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Reactivated {
    /// The state, active.
    pub state: State,
}

/// Lets a blocked run go on, or a paused one that awaits nothing.
///
/// The state on disk counts; `state` is what the caller has seen of it. Turns that had got stuck (failed,
/// stalled and the like) are retried, with one more attempt.
///
/// # Errors
/// [`Refusal::NotAllowed`],
/// [`Refusal::AwaitingApproval`], [`GovernedError::StaleState`]
/// where the run was changed since the caller saw it, [`GovernedError::NoState`], [`GovernedError::Locked`].
pub fn reactivate_run(
    root: &Root,
    state: &State,
    details: &Reactivation<'_>,
) -> Result<Reactivated, GovernedError> {
    locked(root, details.config, |owed| {
        let seen = state;
        let state = state::require(root)?;
        admit(&state, Verb::Reactivate)?;
        let of = |s: &State| {
            (s.run_id().map(str::to_owned), s.status(), s.blocked_on().map(str::to_owned), s.turn_sequence())
        };
        if of(seen) != of(&state) {
            return Err(GovernedError::StaleState);
        }
        let event = Event::Reactivate {
            run_budget: details.config.and_then(|config| config.model().budget.per_run_max_usd),
            only_warns: details.config.is_some_and(Config::only_warns_of_budget),
        };
        let mut next = next_state(&state, &event)?;
        if let Some(scope) = state.blocked_on().and_then(|on| on.strip_prefix(limits::BLOCKED)) {
            let at = root.now();
            next.edit(limits::EXTENDED, |extended| drop(extended.insert(scope.to_owned(), json!(at))));
        }
        let mut change = Change::new("reactivate_run", &state, next.clone());
        let was_escalated = state.blocked_on().is_some_and(|on| on.starts_with("escalation:"));
        if was_escalated {
            let via = details.via.unwrap_or("reactivate_run");
            let escalation = state.get("escalation").cloned().unwrap_or(Value::Null);
            let entry = Line::EscalationResolved(EscalationResolved {
                timestamp: root.now(),
                decision: "escalation_resolved",
                run_id: next.run_id().map(str::to_owned),
                phase: next.phase().map(str::to_owned),
                resolved_via: via.to_owned(),
                note: details.note.map(str::to_owned),
                blocked_on: state.blocked_on().map(str::to_owned),
                turn_id: escalation.get("from_turn_id").cloned(),
                role: escalation.get("from_role").cloned(),
                escalation: escalation.clone(),
            });
            let resolved = Resolved {
                blocked_on: state.blocked_on().map(str::to_owned),
                resolved_via: via.to_owned(),
                previous_escalation: escalation,
            };
            let payload = json::value(&resolved);
            let line = events::event(root, Happened::EscalationResolved(resolved), &next, None);
            change = change.ledger(vec![entry]).events(&[line]);
            owed.push(Owed { event: "escalation_resolved", state: next.clone(), payload, turn: None });
        }
        change.commit(root)?;
        Ok(Reactivated { state: next })
    })
}

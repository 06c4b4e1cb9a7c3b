//! Rejecting a staged result: the turn is done again, or the run waits for a person.

use super::super::conflict::Summary;
use super::super::events::{self, Happened, Line};
use super::super::journal::Change;
use super::super::ledger::{self, Conflicted};
use super::super::next::{self, Event, Verb, admit, next_state};
use super::super::root::Root;
use super::super::state::{self, RunStatus, State, Turn};
use super::super::{Config, GovernedError, notify, observe};
use super::assign::deadline;
use super::facts::staged;
use super::{Place, locked};

/// Why a result is rejected.
#[derive(Debug, Clone, Default)]
pub struct Rejection {
    /// The stage that failed, in the words of the caller that judged.
    pub stage: Option<String>,
    /// What is wrong.
    pub errors: Vec<String>,
    /// The turn's id; without one, the only active turn is meant.
    pub turn_id: Option<String>,
}

/// A result that was rejected.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejected {
    /// The state: active with a retrying turn, or blocked with a failed one.
    pub state: State,
    /// True where the attempts are used up, and the run is blocked.
    pub escalated: bool,
    /// The turn, retrying or failed.
    pub turn: Turn,
}

/// Rejects a turn's result. What was staged is kept below `.agentxchain/dispatch/rejected/`.
///
/// The turn keeps its id and its baseline, and gets one more attempt, until `rules.max_turn_retries` attempts
/// were made. What a rejected attempt changed in the workspace, the next one has to declare or to undo.
///
/// # Errors
/// [`Refusal`](super::super::Refusal) where no such turn is active, several are active and none is named, or
/// the run takes no rejection; [`GovernedError::Blank`] without a reason; [`GovernedError::Locked`].
pub fn reject_turn(
    root: &Root,
    config: &Config,
    rejection: &Rejection,
    reason: &str,
) -> Result<Rejected, GovernedError> {
    if reason.trim().is_empty() {
        return Err(GovernedError::Blank { verb: "reject turn", what: "the reason" });
    }
    locked(root, Some(config), |owed| {
        let state = state::require(root)?;
        let turn = next::target(&state, rejection.turn_id.as_deref())?;
        admit(&state, Verb::Reject)?;
        if !state::is_safe_id(turn.id()) {
            return Err(GovernedError::UnsafeTurnId { turn_id: turn.id().to_owned() });
        }
        let at = root.now();
        let baseline = match observe::own_baseline(root, &state, &turn)? {
            Some(own) => own,
            None => observe::baseline(root, &observe::look(root)?),
        };
        let event = Event::Reject(Box::new(next::Rejection {
            turn_id: turn.id().to_owned(),
            reason: reason.to_owned(),
            stage: rejection.stage.clone(),
            errors: rejection.errors.clone(),
            at: at.clone(),
            attempts: config.attempts(),
            deadline_at: deadline(root, config),
            baseline,
        }));
        let after = next_state(&state, &event)?;
        let escalated = after.status() == Some(RunStatus::Blocked)
            && state.status() != Some(RunStatus::Blocked)
            || after.get("escalation") != state.get("escalation");
        let mut change = Change::new("reject_turn", &state, after.clone()).turn(turn.id());
        if let Some(from) = staged(root, &turn)?.filter(|found| found.is_of(&turn)) {
            let stamp = at.replace([':', '.'], "-");
            let to = format!(
                ".agentxchain/dispatch/rejected/{}-attempt-{}-{stamp}.json",
                turn.id(),
                turn.attempt()
            );
            change = change.replace(from.path, to);
        }
        change = change
            .ledger(ledger(&state, &turn, &at))
            .events(&events(root, &after, &turn, rejection, reason, escalated));
        change.commit(root)?;
        let mut state = after;
        if escalated {
            owed.push(notify::blocked(&state, state.turn(turn.id())));
            let place = Place { root, config, state: &state, turn_id: Some(turn.id()) };
            state = place.escalated(owed)?;
        }
        let turn = next::target(&state, Some(turn.id()))?;
        Ok(Rejected { state, escalated, turn })
    })
}

fn ledger(state: &State, turn: &Turn, at: &str) -> Vec<ledger::Line> {
    let Some(conflict) = turn.conflict() else { return Vec::new() };
    let line = Conflicted::of("conflict_rejected", state, turn, at, Summary::of_state(conflict));
    vec![ledger::Line::Conflict(line)]
}

fn events(
    root: &Root,
    after: &State,
    turn: &Turn,
    rejection: &Rejection,
    reason: &str,
    escalated: bool,
) -> Vec<Line> {
    let rejected = Happened::TurnRejected {
        attempt: turn.attempt(),
        retrying: !escalated,
        reason: reason.to_owned(),
        failed_stage: rejection.stage.clone(),
        validation_errors: rejection.errors.clone(),
        escalated,
    };
    let mut all = vec![events::event(root, rejected, after, Some(turn))];
    if escalated {
        all.push(events::event(root, Happened::blocked_for(after), after, Some(turn)));
    }
    all
}

//! What an acceptance asks of others: the gates, for what a result wants or what waits in the queue; and the
//! history, whether the turn is in it.

use super::super::gate::{self, Asked, GateResult};
use super::super::journal::HISTORY;
use super::super::json::{self, Object};
use super::super::next::wanted;
use super::super::root::Root;
use super::super::state::{State, Turn};
use super::super::{Config, GovernedError, lines};

/// The answers to a request for completion and to one for a phase, where there are such requests.
pub(super) fn gates(
    root: &Root,
    config: &Config,
    state: &State,
    turn_id: &str,
    result: &Object,
) -> Result<[Option<GateResult>; 2], GovernedError> {
    let wanted = wanted(state, turn_id, result);
    let phase = state.phase().unwrap_or_default();
    let declared = |by: &str| if by == turn_id { Ok(verification(result)) } else { of_accepted(root, by) };
    let completion = match &wanted.completion {
        Some(by) => {
            let verification = declared(by)?;
            let asked = Asked { phase, by, verification: verification.as_deref() };
            Some(gate::run_completion(config, root, asked))
        }
        None => None,
    };
    let exit = match &wanted.exit {
        Some((to, by)) => {
            let verification = declared(by)?;
            let asked = Asked { phase, by, verification: verification.as_deref() };
            Some(gate::phase_exit(config, root, asked, to))
        }
        None => None,
    };
    Ok([completion, exit])
}

fn verification(result: &Object) -> Option<String> {
    json::object(result, "verification").and_then(|v| json::text(v, "status")).map(str::to_owned)
}

/// What an accepted turn declared of its verification.
fn of_accepted(root: &Root, turn_id: &str) -> Result<Option<String>, GovernedError> {
    let mut status = None;
    lines::backwards(root, &root.join(HISTORY), |entry| {
        let is_it = json::text(&entry, "turn_id") == Some(turn_id);
        if is_it {
            status = verification(&entry);
        }
        !is_it
    })?;
    Ok(status)
}

/// True where the history has the turn already: it looks no further back than the turn's assignment.
pub(super) fn was_accepted(root: &Root, turn: &Turn) -> Result<bool, GovernedError> {
    let mut found = false;
    lines::backwards(root, &root.join(HISTORY), |entry| {
        found = json::text(&entry, "turn_id") == Some(turn.id())
            && json::text(&entry, "status") != Some("reissued");
        !found && json::count(&entry, "accepted_sequence").is_none_or(|at| at > turn.assigned_sequence())
    })?;
    Ok(found)
}

//! The questions of an acceptance: to the gates, about what a result requests or what waits in the queue; and
//! to the history, whether the turn is in it.

use super::super::gate::{self, Asked, GateResult};
use super::super::journal::HISTORY;
use super::super::next::wanted;
use super::super::outcome::TurnResult;
use super::super::records::HistoryEntry;
use super::super::root::Root;
use super::super::state::{State, Turn};
use super::super::{Config, GovernedError, lines};

/// Returns the answers to a request for completion and to one for a phase, each where there is such a
/// request.
pub(super) fn gates(
    root: &Root,
    config: &Config,
    state: &State,
    turn_id: &str,
    result: &TurnResult,
) -> Result<[Option<GateResult>; 2], GovernedError> {
    let wanted = wanted(state, turn_id, result);
    let phase = state.phase().unwrap_or_default();
    let declared = |by: &str| {
        if by == turn_id {
            Ok(result.verification_status().map(str::to_owned))
        } else {
            of_accepted(root, by)
        }
    };
    let completion = match &wanted.completion {
        Some(by) => {
            let verification = declared(by)?;
            let asked = Asked { phase, run: state.run_id(), by, verification: verification.as_deref() };
            Some(gate::run_completion(config, root, asked))
        }
        None => None,
    };
    let exit = match &wanted.exit {
        Some((to, by)) => {
            let verification = declared(by)?;
            let asked = Asked { phase, run: state.run_id(), by, verification: verification.as_deref() };
            Some(gate::phase_exit(config, root, asked, to))
        }
        None => None,
    };
    Ok([completion, exit])
}

/// Returns the verification status that an accepted turn declared.
fn of_accepted(root: &Root, turn_id: &str) -> Result<Option<String>, GovernedError> {
    let mut status = None;
    lines::backwards(root, &root.join(HISTORY), |entry| {
        let entry = HistoryEntry::from_object(entry);
        let is_it = entry.turn_id() == turn_id;
        if is_it {
            status = entry.verification_status().map(str::to_owned);
        }
        !is_it
    })?;
    Ok(status)
}

/// True where the history has the turn already. The history is read back to the turn's assignment, and no
/// further.
pub(super) fn was_accepted(root: &Root, turn: &Turn) -> Result<bool, GovernedError> {
    let mut found = false;
    lines::backwards(root, &root.join(HISTORY), |entry| {
        let entry = HistoryEntry::from_object(entry);
        found = entry.turn_id() == turn.id() && !entry.is_reissued();
        !found && entry.sequence().is_none_or(|at| at > turn.assigned_sequence())
    })?;
    Ok(found)
}

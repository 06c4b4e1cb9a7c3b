//! The acts of people on a governed run: each is one operation of the boundary. Implements G8.

use super::next::role_after;
use super::{Done, Facts, hooks};
use crate::governed::disk::{self, Kind};
use crate::governed::{
    self, AcceptOptions, Accepted, Block, BundleOptions, Config, Escalation, GateAction, GovernedError,
    HookPhase, Reactivation, Rejected, Rejection, Resolution, Root, get_active_turn,
    get_turn_staging_result_path, load_state, observe, stage_again, stage_result, write_dispatch_bundle,
};
use crate::protocol::declaration::is_inside;

/// The result of an act, before a failure that was written to the state is told from one that changed
/// nothing.
type Acted = Result<Done, GovernedError>;

/// Gives the next turn to a role; `None` for the recommended one.
pub(crate) fn assign(root: &Root, config: &Config, role: Option<&str>) -> Acted {
    let state = load_state(root, config)?;
    let role = match role.map(str::to_owned).or_else(|| role_after(&state, config)) {
        None if state.is_left_to_human() => return Err(GovernedError::LeftToHuman),
        role => role.unwrap_or_default(),
    };
    let assigned = governed::assign_turn(root, config, &role)?;
    let options = BundleOptions { turn_id: Some(assigned.turn.id().to_owned()), warnings: assigned.warnings };
    let bundle = write_dispatch_bundle(root, &assigned.state, config, &options)?;
    let turn = bundle.turn;
    if let Some(stop) = hooks::stopped(root, config, assigned.state.run_id(), &turn, &bundle.path)? {
        return hooks::blocked_by(root, config, HookPhase::AfterDispatch, &stop, Some(&turn));
    }
    let mut done = Done::new(load_state(root, config)?, format!("{role}: turn {} assigned", turn.id()));
    done.facts = Facts::Assigned {
        dispatch: governed::dispatch_folder(turn.id()),
        staging: get_turn_staging_result_path(turn.id()),
        turn,
    };
    Ok(done)
}

/// Accepts the result of a turn, or of the only active one. A given `result` is staged first; if the
/// acceptance then changes nothing, what was staged before is staged again.
pub(crate) fn accept(
    root: &Root,
    config: &Config,
    turn: Option<&str>,
    result: Option<&[u8]>,
    resolution: Resolution,
) -> Acted {
    let staged = match result {
        Some(result) => stage(root, config, turn, result)?,
        None => None,
    };
    let options = AcceptOptions { turn_id: turn.map(str::to_owned), resolution };
    let accepted = governed::accept_turn(root, config, &options);
    if let (Err(error), Some((id, before))) = (&accepted, staged)
        && error.state().is_none()
    {
        // The refusal is returned, whatever comes of that.
        let _ = stage_again(root, &id, before.as_deref());
    }
    accepted_as(root, config, accepted?)
}

/// Describes a turn that was accepted. What the turn declares as changed, and what a gate looked at, is committed even where
/// ignore rules hide it: a gate that saw the file, and a commit without it, would be a promise that does not hold.
pub(super) fn accepted_as(root: &Root, config: &Config, accepted: Accepted) -> Acted {
    let was_asked = accepted.gate_result.is_some() || accepted.completion_result.is_some();
    let Accepted { accepted, state, validation, gate_result, completion_result, .. } = accepted;
    let mut done = Done::new(state, format!("{}: turn {} accepted", accepted.role(), accepted.turn_id()));
    done.warnings = validation.warnings;
    for gate in [gate_result, completion_result].into_iter().flatten() {
        if gate.action == GateAction::GateFailed {
            let id = gate.gate_id.unwrap_or_default();
            done.warnings.extend(gate.reasons.iter().map(|why| format!("gate '{id}' failed: {why}")));
        }
    }
    let judged = if was_asked { config.files_of_gate(accepted.phase()) } else { Vec::new() };
    let promised: Vec<&str> = accepted.files_changed().into_iter().chain(judged).collect();
    let hidden = observe::hidden(root, &promised)?.into_iter().filter(|path| is_inside(path));
    let is_link = |path: &String| matches!(disk::kind(root, &root.join(path)), Ok(Some(Kind::Link)));
    let (links, files): (Vec<String>, Vec<String>) = hidden.partition(is_link);
    done.paths = files;
    let why = "it is a symbolic link that rules for ignoring hide";
    done.warnings.extend(links.iter().map(|link| format!("'{link}' is not committed: {why}")));
    let warnings: Vec<String> = done.warnings.iter().map(|warning| warned(warning)).collect();
    let said = [accepted.summary().to_owned(), warnings.join("\n")];
    done.body = said.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join("\n\n");
    done.facts = Facts::Accepted { accepted };
    Ok(done)
}

/// Says a warning in one line, since a policy's own words may have several.
pub(crate) fn warned(warning: &str) -> String {
    format!("warning: {}", warning.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A turn's id, and what was staged for it before.
type Replaced = (String, Option<Vec<u8>>);

/// Stages the result of a turn. A result without a turn is left to the acceptance to refuse.
fn stage(
    root: &Root,
    config: &Config,
    turn: Option<&str>,
    result: &[u8],
) -> Result<Option<Replaced>, GovernedError> {
    let state = load_state(root, config)?;
    let id = turn.map(str::to_owned).or_else(|| get_active_turn(&state).map(|turn| turn.id().to_owned()));
    let Some(id) = id.filter(|id| state.turn(id).is_some()) else { return Ok(None) };
    let before = stage_result(root, &id, result)?;
    Ok(Some((id, before)))
}

/// Rejects the result of a turn, or of the only active one.
pub(crate) fn reject(root: &Root, config: &Config, turn: Option<&str>, reason: &str) -> Acted {
    let rejection = Rejection {
        stage: Some("human".to_owned()),
        errors: vec![reason.to_owned()],
        turn_id: turn.map(str::to_owned),
    };
    let Rejected { state, turn, escalated } = governed::reject_turn(root, config, &rejection, reason)?;
    let mut done = Done::new(state, rejected(turn.role(), turn.id(), escalated));
    done.body = reason.to_owned();
    done.facts = Facts::Rejected { turn, escalated };
    Ok(done)
}

/// Says in one line that a turn was rejected.
pub(super) fn rejected(role: &str, turn: &str, escalated: bool) -> String {
    format!("{role}: turn {turn} {}", if escalated { "rejected for good" } else { "rejected" })
}

/// Lets the run enter the next phase.
pub(crate) fn approve_phase(root: &Root, config: &Config) -> Acted {
    let approved = governed::approve_phase_gate(root, config)?;
    let transition = approved.transition;
    let happened = format!("phase {} approved: {} is over", transition.to(), transition.from());
    let mut done = Done::new(approved.state, happened);
    done.facts = Facts::PhaseApproved { transition };
    Ok(done)
}

/// Lets the run end.
pub(crate) fn approve_completion(root: &Root, config: &Config) -> Acted {
    let approved = governed::approve_completion_gate(root, config)?;
    let mut done = Done::new(approved.state, "completion approved: the run is over");
    done.facts = Facts::CompletionApproved { completion: approved.completion };
    Ok(done)
}

/// Stops the run until a person unblocks it.
pub(crate) fn block(root: &Root, config: &Config, reason: &str) -> Acted {
    if reason.trim().is_empty() {
        return Err(GovernedError::Blank { verb: "block run", what: "the reason" });
    }
    let on = format!("human:{reason}");
    let details =
        Block { blocked_on: &on, category: "needs_human", config: Some(config), ..Block::default() };
    let blocked = governed::mark_run_blocked(root, &details)?;
    Ok(Done::new(blocked.state, format!("blocked: {reason}")))
}

/// Lets a blocked run go on; `note` is for the decision ledger.
pub(crate) fn unblock(root: &Root, config: &Config, note: Option<&str>) -> Acted {
    let state = load_state(root, config)?;
    let details = Reactivation { via: Some("git aynig govern unblock"), note, config: Some(config) };
    let mut done = Done::new(governed::reactivate_run(root, &state, &details)?.state, "unblocked");
    done.body = note.unwrap_or_default().to_owned();
    Ok(done)
}

/// Stops the run for a person's decision, about this turn or the only active one.
pub(crate) fn escalate(root: &Root, config: &Config, turn: Option<&str>, reason: &str) -> Acted {
    let details = Escalation { reason, turn_id: turn, ..Escalation::default() };
    let escalated = governed::escalate(root, config, &details)?;
    Ok(Done::new(escalated.state, format!("escalated: {reason}")))
}

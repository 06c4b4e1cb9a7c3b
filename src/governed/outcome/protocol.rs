//! The last stage of validation: who goes next, what the result requests, and what it must say.

use super::super::config::Authority;
use super::super::config::model::Route;
use super::super::json;
use super::{Fault, TurnResult, ValidationInput, Wrongs, wrong};
use serde_json::Value;

/// The most delegations of one turn.
const DELEGATIONS_MAX: usize = 5;

pub(super) fn check(result: &TurnResult, input: ValidationInput<'_>, warnings: &mut Vec<String>) -> Wrongs {
    let mut wrongs = Wrongs::new();
    let role = result.role();
    let phase = input.state.phase().unwrap_or_default();
    let has_objection = result.objections().next().is_some();
    if input.config.is_challenged() && input.config.authority(role) == Authority::ReviewOnly && !has_objection
    {
        let text = "review_only role must raise at least one objection";
        wrongs.push(wrong(Fault::NoObjection, "objections", text));
    }
    if let Some(route) = input.config.route(phase) {
        let next = result.proposed_next_role().unwrap_or_default();
        let may = |allowed: &Vec<String>| next == "human" || allowed.iter().any(|role| role == next);
        if !route.allowed_next_roles.as_ref().is_none_or(may) {
            let text = format!("proposed_next_role '{next}' may not follow in phase '{phase}'");
            wrongs.push(wrong(Fault::NextRole, "proposed_next_role", text));
        }
    }
    let (transition, completion) = (result.wants_phase(), result.wants_completion());
    if let Some(target) = transition {
        wrongs.extend(transition_to(target, phase, input));
    }
    if transition.is_some() && completion {
        let text = "phase_transition_request and run_completion_request cannot both be present";
        wrongs.push(wrong(Fault::Exclusive, "phase_transition_request", text));
    }
    if result.needs_human() && result.needs_human_reason().is_none() {
        warnings.push("the turn needs a human and does not say why".to_owned());
    }
    delegations(result, input, role, completion, &mut wrongs);
    review(input, transition.is_some() || completion, &mut wrongs);
    wrongs
}

fn transition_to(target: &str, phase: &str, input: ValidationInput<'_>) -> Option<super::Wrong> {
    let phases = input.config.phases();
    let place = "phase_transition_request";
    if !phases.contains(&target) {
        let text = format!("{place} names the unknown phase '{target}'");
        return Some(wrong(Fault::UnknownPhase, place, text));
    }
    let at = phases.iter().position(|name| *name == phase)?;
    match phases.get(at + 1) {
        Some(next) if *next == target => None,
        Some(next) => {
            let text = format!("{place} is '{target}', and phase '{phase}' is followed by '{next}'");
            Some(wrong(Fault::UnknownPhase, place, text))
        }
        None => {
            let text = format!("{place} is '{target}', and phase '{phase}' is the last one");
            Some(wrong(Fault::UnknownPhase, place, text))
        }
    }
}

fn delegations(
    result: &TurnResult,
    input: ValidationInput<'_>,
    role: &str,
    completion: bool,
    wrongs: &mut Wrongs,
) {
    let all = result.delegations();
    if all.is_empty() {
        return;
    }
    let mut tell = |place: String, text: String| wrongs.push(wrong(Fault::Delegation, place, text));
    if all.len() > DELEGATIONS_MAX {
        tell("delegations".to_owned(), format!("a turn delegates at most {DELEGATIONS_MAX} times"));
    }
    if completion {
        tell("delegations".to_owned(), "a turn that delegates may not request completion".to_owned());
    }
    if input.turn.is_some_and(|turn| turn.delegation_context().is_some()) {
        tell("delegations".to_owned(), "a delegated turn may not delegate".to_owned());
    }
    let route = input.config.route(input.state.phase().unwrap_or_default());
    let allowed = route.map(Route::allowed).unwrap_or_default();
    for (at, delegation) in all.iter().enumerate() {
        let place = format!("delegations[{at}]");
        let id = json::text(delegation, "id").unwrap_or_default();
        let to = json::text(delegation, "to_role").unwrap_or_default();
        if all[..at].iter().any(|other| json::text(other, "id") == Some(id)) {
            tell(format!("{place}.id"), format!("delegation '{id}' is there twice"));
        }
        if to == role {
            tell(format!("{place}.to_role"), format!("role '{role}' may not delegate to itself"));
        } else if input.config.role(to).is_none() {
            tell(format!("{place}.to_role"), format!("role '{to}' is not declared"));
        } else if !allowed.is_empty() && !allowed.iter().any(|role| role == to) {
            tell(format!("{place}.to_role"), format!("role '{to}' may not follow in this phase"));
        }
    }
}

/// Checks that a review of delegated work requests nothing while decisions that were demanded of that work
/// are missing.
fn review(input: ValidationInput<'_>, asks: bool, wrongs: &mut Wrongs) {
    let Some(review) = input.turn.and_then(|turn| turn.delegation_review()) else { return };
    for entry in json::list(review, "delegation_results").iter().filter_map(Value::as_object) {
        let mut made = json::texts(entry, "decision_ids");
        made.extend(json::texts(entry, "satisfied_decision_ids"));
        let required = json::texts(entry, "required_decision_ids").into_iter().find(|id| !made.contains(id));
        // A decision that another tool has recorded as missing is missing.
        let missing = json::texts(entry, "missing_decision_ids").into_iter().next().or(required);
        if let Some(missing) = missing.filter(|_| asks) {
            let text = format!(
                "decision '{missing}' was demanded of a delegation and not made: nothing can be requested yet"
            );
            wrongs.push(wrong(Fault::Delegation, "delegation_review", text));
        }
    }
}

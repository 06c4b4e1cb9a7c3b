//! The corpus's operations on records: results, decisions, the history, events.

use super::fixture::Fixture;
use super::ledger::{self, NoDecision};
use super::{Actual, NoVerdict, events};
use crate::governed::json;
use crate::governed::outcome::{CATEGORIES, Fault, Validation, ValidationInput, validate_text};
use crate::governed::{AcceptOptions, GovernedError, Refusal, Stage, accept_turn, lines};
use serde_json::{Value, json};

pub(super) fn validate(fixture: &Fixture) -> Actual {
    let state = fixture.state()?;
    let staged = std::fs::read(fixture.folder().join(".agentxchain/staging/turn-result.json")).ok();
    let named = staged.as_deref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let named = named.as_ref().and_then(|result| result.get("turn_id")?.as_str());
    let turns = state.active_turns();
    let turn = turns.iter().find(|turn| Some(turn.id()) == named).or(turns.first());
    let bench = ValidationInput { state: &state, config: &fixture.config, turn };
    Ok(shown(&validate_text(staged.as_deref(), bench)))
}

fn shown(validation: &Validation) -> Value {
    let Some(stage) = validation.stage else {
        let passed: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
        return json!({
            "result": "success",
            "stages_passed": passed,
            "errors": [],
            "warnings": validation.warnings,
        });
    };
    // If two requests exclude each other, that error is reported, wherever it stands among the errors.
    let wrongs = &validation.wrongs;
    let told = wrongs.iter().find(|wrong| wrong.fault == Fault::Exclusive).or(wrongs.first());
    let mut actual = json!({
        "result": "error",
        "failed_stage": stage.name(),
        "errors": validation.errors,
        "warnings": validation.warnings,
    });
    let Some(told) = told else { return actual };
    actual["error_detail"] = json!(told.text);
    let place = json!(told.place);
    actual["error_type"] = match told.fault {
        Fault::ReservedPath => {
            actual["error_path"] = place;
            json!("reserved_path_violation")
        }
        Fault::Exclusive => json!("mutually_exclusive_requests"),
        Fault::NoObjection => json!("challenge_requirement_violated"),
        Fault::UnknownPhase => json!("unknown_phase"),
        Fault::MissingField => {
            actual["error_field"] = place;
            json!("missing_required_field")
        }
        Fault::DecisionId => {
            actual["error_field"] = place;
            json!("invalid_decision_id_format")
        }
        Fault::Mismatch => {
            actual["error_field"] = place;
            json!(format!("{}_mismatch", told.place))
        }
        Fault::InvalidValue | Fault::Authority | Fault::Evidence | Fault::NextRole | Fault::Delegation => {
            actual["error_field"] = place;
            json!(stage.error_class())
        }
    };
    actual
}

pub(super) fn accept(fixture: &Fixture) -> Actual {
    let (root, before) = (fixture.root(), fixture.state_bytes());
    let id = fixture.arg("turn_id").unwrap_or_default().to_owned();
    let history = root.folder().join(".agentxchain/history.jsonl");
    let known = lines::all(&root, &history)?;
    let is_known = known.iter().any(|entry| json::text(entry, "turn_id") == Some(id.as_str()));
    let refused = |error_type: &str| -> Actual {
        Ok(json!({
            "result": "error",
            "error_type": error_type,
            "history_length": lines::all(&root, &history)?.len(),
            "state_unchanged": fixture.state_bytes() == before,
        }))
    };
    let options = AcceptOptions { turn_id: Some(id), ..AcceptOptions::default() };
    match accept_turn(&root, &fixture.config, &options) {
        Ok(accepted) => {
            let mut state = accepted.state.to_value();
            state["accepted_sequence"] = json!(accepted.state.turn_sequence());
            Ok(json!({
                "result": "success",
                "state": state,
                "history_length": lines::all(&root, &history)?.len(),
                "history_last_entry": accepted.accepted.to_value(),
            }))
        }
        Err(GovernedError::Refused(Refusal::AlreadyAccepted { .. })) => refused("turn_already_accepted"),
        Err(GovernedError::Refused(Refusal::TurnNotFound { .. })) if is_known => {
            refused("turn_already_accepted")
        }
        Err(GovernedError::Refused(_)) => refused("turn_not_active"),
        Err(GovernedError::InvalidResult(validation)) => {
            let mut actual = shown(&validation);
            actual["history_length"] = json!(lines::all(&root, &history)?.len());
            actual["state_unchanged"] = json!(fixture.state_bytes() == before);
            Ok(actual)
        }
        Err(error) => Err(NoVerdict::from(error)),
    }
}

pub(super) fn append_decision(fixture: &Fixture) -> Actual {
    let entry = fixture.args.get("entry").cloned().unwrap_or(Value::Null);
    let (why, length) = match ledger::append_decision(&fixture.root(), &entry)? {
        Ok(all) => {
            return Ok(json!({
                "result": "success",
                "ledger_length": all.len(),
                "ledger_last_entry": all.last(),
            }));
        }
        Err(refused) => refused,
    };
    let mut actual = json!({ "result": "error", "ledger_length": length });
    match why {
        NoDecision::Id => {
            actual["error_type"] = json!("invalid_decision_id_format");
            actual["error_field"] = json!("id");
        }
        NoDecision::Empty { field } => {
            actual["error_type"] = json!("empty_required_field");
            actual["error_field"] = json!(field);
        }
        NoDecision::Category => {
            actual["error_type"] = json!("invalid_enum_value");
            actual["error_field"] = json!("category");
            actual["valid_values"] = json!(CATEGORIES);
        }
        NoDecision::Duplicate { id } => {
            actual["error_type"] = json!("duplicate_decision_id");
            actual["duplicate_id"] = json!(id);
        }
    }
    Ok(actual)
}

fn judged(errors: Vec<String>, error_type: &str) -> Value {
    if errors.is_empty() {
        return json!({ "result": "success", "errors": [] });
    }
    json!({ "result": "error", "error_type": error_type, "errors": errors })
}

pub(super) fn event(fixture: &Fixture) -> Value {
    judged(events::validate(fixture.args.get("event").unwrap_or(&Value::Null)), "invalid_event")
}

pub(super) fn ordering(fixture: &Fixture) -> Value {
    judged(events::validate_ordering(json::list(&fixture.args, "events")), "ordering_violation")
}

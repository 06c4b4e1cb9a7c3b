//! The two mistakes of workers that are corrected instead of refused, because only one thing can have been
//! meant.

use super::super::json;
use super::{Object, ValidationInput};
use serde_json::{Value, json};

pub(super) fn mend(result: &mut Object, input: ValidationInput<'_>, warnings: &mut Vec<String>) {
    run_id(result, input, warnings);
    decision_ids(result, warnings);
}

/// Corrects the run's id where the turn is the right one: then the run is the right one too, whatever the
/// result says.
fn run_id(result: &mut Object, input: ValidationInput<'_>, warnings: &mut Vec<String>) {
    let (Some(turn), Some(run)) = (input.turn, input.state.run_id()) else { return };
    let is_of_run = turn.get("run_id").and_then(Value::as_str).is_none_or(|own| own == run);
    if json::text(result, "turn_id") != Some(turn.id()) || !is_of_run {
        return;
    }
    let said = result.get("run_id");
    if said.and_then(Value::as_str) == Some(run) {
        return;
    }
    warnings.push(match said {
        Some(said) => format!("run_id {said} was corrected to '{run}', the turn's"),
        None => format!("run_id was missing and taken from the turn: '{run}'"),
    });
    result.insert("run_id".to_owned(), json!(run));
}

fn decision_ids(result: &mut Object, warnings: &mut Vec<String>) {
    let Some(Value::Array(decisions)) = result.get_mut("decisions") else { return };
    for (at, decision) in decisions.iter_mut().enumerate() {
        let Some(decision) = decision.as_object_mut() else { continue };
        if json::text(decision, "id").is_some_and(|id| json::is_numbered(id, "DEC-")) {
            continue;
        }
        let id = format!("DEC-{:03}", at + 1);
        let was = decision.get("id").map_or_else(|| "missing".to_owned(), Value::to_string);
        warnings.push(format!("decisions[{at}].id was {was} and is now '{id}'"));
        decision.insert("id".to_owned(), json!(id));
    }
}

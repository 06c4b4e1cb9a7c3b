//! The first stage of validation: keys, types, forms. If required keys are missing, only those are reported.

use super::super::json;
use super::{Fault, Object, Wrongs, wrong};
use serde_json::Value;

const REQUIRED: [&str; 13] = [
    "schema_version",
    "run_id",
    "turn_id",
    "role",
    "runtime_id",
    "status",
    "summary",
    "decisions",
    "objections",
    "files_changed",
    "verification",
    "artifact",
    "proposed_next_role",
];
pub(crate) const STATUSES: [&str; 4] = ["completed", "blocked", "needs_human", "failed"];
/// The most that a turn may say it cost, in USD: no sum of such amounts is too large to be written.
const COST_MAX: f64 = 1e9;
/// What a decision may be about.
pub(crate) const CATEGORIES: [&str; 6] =
    ["implementation", "architecture", "scope", "process", "quality", "release"];
const SEVERITIES: [&str; 4] = ["low", "medium", "high", "blocking"];
const OBJECTION_STATUSES: [&str; 6] =
    ["raised", "acknowledged", "resolved", "escalated", "resolved_by_human", "resolved_by_director"];
const ARTIFACTS: [&str; 4] = ["workspace", "patch", "commit", "review"];

/// Collects what is wrong.
struct Checks(Wrongs);

impl Checks {
    fn demand(&mut self, holds: bool, place: impl Into<String>, must: &str) {
        if !holds {
            let place = place.into();
            let text = format!("{place} must {must}");
            self.0.push(wrong(Fault::InvalidValue, place, text));
        }
    }

    fn filled(&mut self, object: &Object, key: &str, place: &str) {
        self.demand(
            json::is_filled(object.get(key)),
            format!("{place}{key}"),
            "be a string that is not blank",
        );
        let slot = json::text(object, key).is_some_and(is_slot);
        self.demand(!slot, format!("{place}{key}"), "be filled in: it is the template's placeholder");
    }

    fn one_of(&mut self, value: Option<&Value>, place: impl Into<String>, all: &[&str]) {
        let is_one = value.and_then(Value::as_str).is_some_and(|text| all.contains(&text));
        self.demand(is_one, place, &format!("be one of {}", all.join(", ")));
    }

    /// Checks a key that may be left out or null.
    fn optional(&mut self, object: &Object, key: &str, place: &str, is: impl Fn(&Value) -> bool, must: &str) {
        let value = object.get(key).filter(|value| !value.is_null());
        self.demand(value.is_none_or(is), format!("{place}{key}"), must);
    }
}

/// True for `<...>`: a slot of the template that was not filled in.
fn is_slot(text: &str) -> bool {
    let text = text.trim();
    text.len() > 2
        && text.starts_with('<')
        && text.ends_with('>')
        && !text[1..text.len() - 1].contains(['<', '>'])
}

pub(super) fn check(result: &Object) -> Wrongs {
    let missing = REQUIRED.iter().filter(|key| !result.contains_key(**key));
    let missing: Wrongs =
        missing.map(|key| wrong(Fault::MissingField, *key, format!("{key} is missing"))).collect();
    if !missing.is_empty() {
        return missing;
    }
    let mut checks = Checks(Wrongs::new());
    checks.demand(result["schema_version"] == "1.0", "schema_version", "be \"1.0\"");
    for key in ["run_id", "turn_id", "runtime_id", "summary"] {
        checks.filled(result, key, "");
    }
    let role = json::text(result, "role").unwrap_or_default();
    checks.demand(json::is_name(role), "role", "be a role's name");
    checks.one_of(result.get("status"), "status", &STATUSES);
    let next = json::text(result, "proposed_next_role").unwrap_or_default();
    checks.demand(json::is_name(next), "proposed_next_role", "be a role's name or human");
    each(&mut checks, result, "decisions", decision);
    each(&mut checks, result, "objections", objection);
    files(&mut checks, result);
    verification(&mut checks, result);
    match result["artifact"].as_object() {
        None => checks.demand(false, "artifact", "be an object"),
        Some(artifact) => {
            checks.one_of(artifact.get("type"), "artifact.type", &ARTIFACTS);
            checks.optional(artifact, "ref", "artifact.", Value::is_string, "be a string or null");
        }
    }
    checks.optional(result, "phase_transition_request", "", Value::is_string, "be a string or null");
    checks.optional(result, "run_completion_request", "", Value::is_boolean, "be true, false or null");
    checks.optional(result, "needs_human_reason", "", Value::is_string, "be a string or null");
    checks.optional(result, "cost", "", Value::is_object, "be an object");
    let usd = json::object(result, "cost").and_then(|cost| cost.get("usd")).filter(|usd| !usd.is_null());
    let is_amount = usd.is_none_or(|usd| usd.as_f64().is_some_and(|usd| (0.0..=COST_MAX).contains(&usd)));
    checks.demand(is_amount, "cost.usd", "be a number from 0 to a billion");
    if result.get("delegations").is_some_and(|value| !value.is_null()) {
        each(&mut checks, result, "delegations", delegation);
    }
    checks.0
}

fn each(checks: &mut Checks, result: &Object, key: &str, check: fn(&mut Checks, &Object, &str)) {
    let Some(all) = result.get(key).and_then(Value::as_array) else {
        return checks.demand(false, key, "be a list");
    };
    for (at, entry) in all.iter().enumerate() {
        match entry.as_object() {
            Some(entry) => check(checks, entry, &format!("{key}[{at}].")),
            None => checks.demand(false, format!("{key}[{at}]"), "be an object"),
        }
    }
}

fn decision(checks: &mut Checks, decision: &Object, place: &str) {
    let id = json::text(decision, "id").unwrap_or_default();
    if !json::is_numbered(id, "DEC-") {
        let text = format!("{place}id must be DEC- and a number");
        checks.0.push(wrong(Fault::DecisionId, format!("{place}id"), text));
    }
    checks.one_of(decision.get("category"), format!("{place}category"), &CATEGORIES);
    checks.filled(decision, "statement", place);
    checks.filled(decision, "rationale", place);
    let is_durability = |value: &Value| value == "run" || value == "repo";
    checks.optional(decision, "durability", place, is_durability, "be run or repo");
    let overrides =
        |value: &Value| value.as_str().is_some_and(|other| json::is_numbered(other, "DEC-") && other != id);
    checks.optional(decision, "overrides", place, overrides, "be the DEC- and number of another decision");
}

fn objection(checks: &mut Checks, objection: &Object, place: &str) {
    let id = json::text(objection, "id").unwrap_or_default();
    checks.demand(json::is_numbered(id, "OBJ-"), format!("{place}id"), "be OBJ- and a number");
    checks.one_of(objection.get("severity"), format!("{place}severity"), &SEVERITIES);
    checks.filled(objection, "statement", place);
    if objection.get("status").is_some_and(|status| !status.is_null()) {
        checks.one_of(objection.get("status"), format!("{place}status"), &OBJECTION_STATUSES);
    }
}

fn files(checks: &mut Checks, result: &Object) {
    for key in ["files_changed", "artifacts_created"] {
        match result.get(key) {
            None => {}
            Some(Value::Array(all)) => {
                let is_path =
                    |file: &Value| file.as_str().is_some_and(|f| !f.trim().is_empty() && !is_slot(f));
                checks.demand(all.iter().all(is_path), key, "hold paths");
            }
            Some(value) => {
                checks.demand(value.is_null() && key != "files_changed", key, "be a list of paths")
            }
        }
    }
}

fn verification(checks: &mut Checks, result: &Object) {
    let Some(verification) = result["verification"].as_object() else {
        return checks.demand(false, "verification", "be an object");
    };
    checks.one_of(verification.get("status"), "verification.status", &["pass", "fail", "skipped"]);
    let lists = ["commands", "machine_evidence", "produced_files"];
    for key in lists {
        checks.optional(verification, key, "verification.", Value::is_array, "be a list");
    }
    let is_text = Value::is_string;
    checks.optional(verification, "evidence_summary", "verification.", is_text, "be a string");
}

fn delegation(checks: &mut Checks, delegation: &Object, place: &str) {
    let id = json::text(delegation, "id").unwrap_or_default();
    let is_id = json::is_numbered(id, "del-") && id.len() == "del-000".len();
    checks.demand(is_id, format!("{place}id"), "be del- and three digits");
    let role = json::text(delegation, "to_role").unwrap_or_default();
    checks.demand(json::is_name(role), format!("{place}to_role"), "be a role's name");
    checks.filled(delegation, "charter", place);
    let contract = json::list(delegation, "acceptance_contract");
    let is_contract = !contract.is_empty() && contract.iter().all(|line| json::is_filled(Some(line)));
    checks.demand(
        is_contract,
        format!("{place}acceptance_contract"),
        "be a list of strings that are not blank",
    );
    let is_required = |value: &Value| {
        let ids = value.as_array().map_or(&[][..], Vec::as_slice);
        let is_id = |id: &Value| id.as_str().is_some_and(|id| json::is_numbered(id, "DEC-"));
        !ids.is_empty() && ids.iter().all(is_id) && (1..ids.len()).all(|at| !ids[..at].contains(&ids[at]))
    };
    let must = "be a list of different DEC- numbers";
    checks.optional(delegation, "required_decision_ids", place, is_required, must);
}

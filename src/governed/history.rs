//! What an accepted turn leaves behind: its line in the history, its decisions, its section in the talk.

use super::journal::RUN_HISTORY;
use super::json::{self, Object};
use super::observe::Changes;
use super::root::Root;
use super::state::{State, Turn};
use super::{Config, GovernedError, lines, time};
use serde_json::{Value, json};

/// What an acceptance knows of a turn.
pub(super) struct Facts<'a> {
    pub state: &'a State,
    pub config: &'a Config,
    pub turn: &'a Turn,
    pub result: &'a Object,
    pub at: &'a str,
    pub accepted_sequence: u64,
    pub changes: &'a Changes,
    pub accepted_ref: &'a str,
    pub conflict_resolution: Option<Value>,
}

/// The line in the history. What the result does not say is not there.
pub(super) fn entry(facts: &Facts<'_>) -> Object {
    let (turn, result) = (facts.turn, facts.result);
    let mut entry = Object::new();
    let mut put = |key: &str, value: Value| entry.insert(key.to_owned(), value);
    put("turn_id", json!(turn.id()));
    put("run_id", json::or_null(facts.state.run_id()));
    put("role", json!(turn.role()));
    put("runtime_id", json!(turn.runtime()));
    put("phase", json::or_null(facts.state.phase()));
    for key in
        ["status", "summary", "decisions", "objections", "files_changed", "artifacts_created", "verification"]
    {
        if let Some(value) = result.get(key) {
            put(key, value.clone());
        }
    }
    put("normalized_verification", normalized_verification(facts));
    put("artifact", result.get("artifact").cloned().unwrap_or(Value::Null));
    put("observed_artifact", observed(facts));
    for key in ["proposed_next_role", "phase_transition_request"] {
        if let Some(value) = result.get(key) {
            put(key, value.clone());
        }
    }
    let completion = result.get("run_completion_request") == Some(&Value::Bool(true));
    put("run_completion_request", json!(completion));
    put("assigned_sequence", json!(turn.assigned_sequence()));
    put("accepted_sequence", json!(facts.accepted_sequence));
    put("concurrent_with", turn.get("concurrent_with").cloned().unwrap_or_else(|| json!([])));
    put("cost", result.get("cost").cloned().unwrap_or(Value::Null));
    put("accepted_at", json!(facts.at));
    if let Some(started) = turn.get("started_at").and_then(Value::as_str) {
        put("started_at", json!(started));
        let lasted = time::parse(facts.at)
            .zip(time::parse(started))
            .and_then(|(to, from)| to.duration_since(from).ok());
        put("duration_ms", lasted.map_or(Value::Null, |lasted| json!(lasted.as_millis() as u64)));
    }
    for (from, to) in [("delegations", "delegations_issued")] {
        if !json::list(result, from).is_empty() {
            put(to, result[from].clone());
        }
    }
    for key in ["delegation_context", "delegation_review"] {
        if let Some(value) = turn.get(key).filter(|value| value.is_object()) {
            put(key, value.clone());
        }
    }
    if let Some(resolution) = &facts.conflict_resolution {
        put("conflict_resolution", resolution.clone());
    }
    entry
}

/// The line that sums up a run that is over.
pub(super) fn run(root: &Root, over: &State) -> Value {
    let of = |key: &str| over.get(key).cloned().unwrap_or(Value::Null);
    json!({
        "schema_version": "0.1",
        "run_id": of("run_id"),
        "project_id": of("project_id"),
        "status": of("status"),
        "phase": of("phase"),
        "created_at": of("created_at"),
        "completed_at": of("completed_at"),
        "last_completed_turn_id": of("last_completed_turn_id"),
        "budget_status": of("budget_status"),
        "phase_gate_status": of("phase_gate_status"),
        "recorded_at": root.now(),
    })
}

/// True where a run has its line.
pub(super) fn has_run(root: &Root, over: &State) -> Result<bool, GovernedError> {
    let mut found = false;
    lines::backwards(root, &root.join(RUN_HISTORY), |record| {
        found = json::text(&record, "run_id") == over.run_id();
        !found
    })?;
    Ok(found)
}

fn observed(facts: &Facts<'_>) -> Value {
    let count = facts.changes.files.len();
    let summary = facts.changes.available.then(|| format!("{count} files changed"));
    let baseline =
        facts.turn.get("baseline").and_then(|baseline| baseline.get("head_ref")).and_then(Value::as_str);
    json!({
        "derived_by": "orchestrator",
        "baseline_ref": baseline.map(|head| format!("git:{head}")),
        "accepted_ref": facts.accepted_ref,
        "files_changed": facts.changes.files,
        "file_markers": facts.changes.markers,
        "diff_summary": summary,
    })
}

/// What a declared verification is worth, given who declares it and with which evidence.
pub(super) fn normalized_verification(facts: &Facts<'_>) -> Value {
    let verification = json::object(facts.result, "verification");
    let declared = verification.and_then(|v| json::text(v, "status")).unwrap_or("skipped");
    let is = |status: &str, reason: &str, reproducible: bool| json!({ "status": status, "reason": reason, "reproducible": reproducible });
    if declared != "pass" {
        return is(declared, "as declared", false);
    }
    if ["manual", "api_proxy"].contains(&facts.config.runtime_type_of(facts.turn.role())) {
        return is("attested_pass", "the runtime's word", false);
    }
    let evidence = verification.map_or(&[][..], |v| json::list(v, "machine_evidence"));
    let is_zero = |entry: &Value| entry.get("exit_code").and_then(Value::as_f64) == Some(0.0);
    if !evidence.is_empty() && evidence.iter().all(is_zero) {
        return is("pass", "every command exited with 0", true);
    }
    is("not_reproducible", "a pass without commands that exited with 0", false)
}

/// The decisions' lines in the ledger.
pub(super) fn decisions(facts: &Facts<'_>) -> Vec<Value> {
    let decisions = json::list(facts.result, "decisions").iter().filter_map(Value::as_object);
    let line = |decision: &Object| {
        let of = |key: &str| decision.get(key).cloned().unwrap_or(Value::Null);
        let mut line = json!({
            "id": of("id"),
            "turn_id": facts.turn.id(),
            "role": facts.turn.role(),
            "phase": json::or_null(facts.state.phase()),
            "runtime_id": facts.turn.runtime(),
            "category": of("category"),
            "statement": of("statement"),
            "rationale": of("rationale"),
            "objections_against": [],
            "status": "accepted",
            "overridden_by": null,
            "created_at": facts.at,
        });
        for key in ["durability", "overrides"] {
            if let (Some(value), Some(line)) = (decision.get(key), line.as_object_mut()) {
                line.insert(key.to_owned(), value.clone());
            }
        }
        line
    };
    decisions.map(line).collect()
}

/// The section in the talk.
pub(super) fn talk(facts: &Facts<'_>) -> String {
    let (turn, result) = (facts.turn, facts.result);
    let of = |object: &Object, key: &str| one_line(json::text(object, key).unwrap_or_default());
    let id = turn.id();
    let short: String = id.strip_prefix("turn_").unwrap_or(id).chars().take(8).collect();
    let phase = facts.state.phase().unwrap_or("none");
    let mut section = format!("## Turn {short} — {} ({phase})\n\n", turn.role());
    section.push_str(&format!("- **Status:** {}\n", of(result, "status")));
    section.push_str(&format!("- **Summary:** {}\n", of(result, "summary")));
    for decision in json::list(result, "decisions").iter().filter_map(Value::as_object) {
        section.push_str(&format!("- **Decision {}:** {}\n", of(decision, "id"), of(decision, "statement")));
    }
    for objection in json::list(result, "objections").iter().filter_map(Value::as_object) {
        let (id, severity) = (of(objection, "id"), of(objection, "severity"));
        section.push_str(&format!("- **Objection {id} ({severity}):** {}\n", of(objection, "statement")));
    }
    let next = json::filled(result, "proposed_next_role").unwrap_or("human");
    // Sections are told apart by the turn and its place in the run, whatever they say.
    let sequence = facts.accepted_sequence;
    section.push_str(&format!(
        "- **Proposed next:** {next}\n- **Accepted:** {} ({id}, {sequence})\n\n---\n\n",
        facts.at
    ));
    section
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

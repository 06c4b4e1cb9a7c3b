//! What an accepted turn leaves behind: its line in the history, its decisions, its section in the talk.

use super::conflict::{Conflict, Summary};
use super::journal::RUN_HISTORY;
use super::json::{self, Object};
use super::observe::{Changes, Sight};
use super::outcome::TurnResult;
use super::records::Decision;
use super::root::Root;
use super::state::{State, Turn};
use super::{Config, GovernedError, ledger, lines, time};
use serde::Serialize;
use serde_json::{Value, json};

/// What an acceptance knows of a turn.
pub(super) struct Facts<'a> {
    pub state: &'a State,
    pub config: &'a Config,
    pub turn: &'a Turn,
    pub result: &'a TurnResult,
    pub at: &'a str,
    pub accepted_sequence: u64,
    pub changes: &'a Changes,
    pub accepted_ref: &'a str,
    pub conflict_resolution: Option<Merged>,
}

/// A line of `history.jsonl`; the order of the fields is the order on disk.
///
/// The worker's values are kept as they are, and left out where the result has none.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Entry {
    turn_id: String,
    run_id: Option<String>,
    role: String,
    runtime_id: String,
    phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objections: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files_changed: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts_created: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verification: Option<Value>,
    normalized_verification: Normalized,
    artifact: Option<Value>,
    observed_artifact: Observed,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposed_next_role: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase_transition_request: Option<Value>,
    run_completion_request: bool,
    assigned_sequence: u64,
    pub accepted_sequence: u64,
    concurrent_with: Value,
    cost: Option<Value>,
    accepted_at: String,
    #[serde(flatten)]
    lasted: Option<Lasted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegations_issued: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegation_context: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegation_review: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict_resolution: Option<Merged>,
}

/// How long a turn took whose beginning is known.
#[derive(Debug, Clone, Serialize)]
struct Lasted {
    started_at: String,
    duration_ms: Option<u64>,
}

/// What a declared verification is worth.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Normalized {
    status: String,
    reason: &'static str,
    pub reproducible: bool,
}

/// What was observed of a turn's work, whatever the turn declared.
#[derive(Debug, Clone, Serialize)]
struct Observed {
    derived_by: &'static str,
    baseline_ref: Option<String>,
    accepted_ref: String,
    files_changed: Vec<String>,
    file_markers: Object,
    diff_summary: Option<String>,
}

/// A conflict that a person merged by hand.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Merged {
    mode: &'static str,
    merge_strategy: &'static str,
    #[serde(flatten)]
    conflict: Summary,
}

impl Merged {
    /// Makes the record of a conflict that was merged by hand.
    pub(super) fn of(conflict: &Conflict) -> Self {
        let conflict = Summary::of(conflict);
        Self { mode: "human_merge", merge_strategy: "operator_resolved", conflict }
    }
}

/// Makes the history line of an accepted turn.
pub(super) fn entry(facts: &Facts<'_>) -> Entry {
    let (turn, result) = (facts.turn, facts.result);
    let said = |key: &str| result.said(key);
    let context = |key: &str| turn.get(key).filter(|value| value.is_object()).cloned();
    Entry {
        turn_id: turn.id().to_owned(),
        run_id: facts.state.run_id().map(str::to_owned),
        role: turn.role().to_owned(),
        runtime_id: turn.runtime().to_owned(),
        phase: facts.state.phase().map(str::to_owned),
        status: said("status"),
        summary: said("summary"),
        decisions: said("decisions"),
        objections: said("objections"),
        files_changed: said("files_changed"),
        artifacts_created: said("artifacts_created"),
        verification: said("verification"),
        normalized_verification: normalized_verification(facts),
        artifact: said("artifact"),
        observed_artifact: observed(facts),
        proposed_next_role: said("proposed_next_role"),
        phase_transition_request: said("phase_transition_request"),
        run_completion_request: result.wants_completion(),
        assigned_sequence: turn.assigned_sequence(),
        accepted_sequence: facts.accepted_sequence,
        concurrent_with: turn.concurrent_with().cloned().unwrap_or_else(|| json!([])),
        cost: said("cost"),
        accepted_at: facts.at.to_owned(),
        lasted: turn.started_at().map(|started| lasted(started, facts.at)),
        delegations_issued: said("delegations")
            .filter(|all| all.as_array().is_some_and(|all| !all.is_empty())),
        delegation_context: context("delegation_context"),
        delegation_review: context("delegation_review"),
        conflict_resolution: facts.conflict_resolution.clone(),
    }
}

fn lasted(started: &str, accepted: &str) -> Lasted {
    let lasted =
        time::parse(accepted).zip(time::parse(started)).and_then(|(to, from)| to.duration_since(from).ok());
    Lasted { started_at: started.to_owned(), duration_ms: lasted.map(|lasted| lasted.as_millis() as u64) }
}

/// A line of `run-history.jsonl`: a run that is over, its values as its state had them.
#[derive(Serialize)]
pub(super) struct RunOver<'a> {
    schema_version: &'static str,
    run_id: Option<&'a Value>,
    project_id: Option<&'a Value>,
    status: Option<&'a Value>,
    phase: Option<&'a Value>,
    created_at: Option<&'a Value>,
    completed_at: Option<&'a Value>,
    last_completed_turn_id: Option<&'a Value>,
    budget_status: Option<&'a Value>,
    phase_gate_status: Option<&'a Value>,
    recorded_at: String,
}

/// Makes the line that sums up a run that is over.
pub(super) fn run<'a>(root: &Root, over: &'a State) -> RunOver<'a> {
    RunOver {
        schema_version: "0.1",
        run_id: over.get("run_id"),
        project_id: over.get("project_id"),
        status: over.get("status"),
        phase: over.get("phase"),
        created_at: over.get("created_at"),
        completed_at: over.get("completed_at"),
        last_completed_turn_id: over.get("last_completed_turn_id"),
        budget_status: over.get("budget_status"),
        phase_gate_status: over.get("phase_gate_status"),
        recorded_at: root.now(),
    }
}

/// True where `run-history.jsonl` has a line of this run.
pub(super) fn has_run(root: &Root, over: &State) -> Result<bool, GovernedError> {
    let mut found = false;
    lines::backwards(root, &root.join(RUN_HISTORY), |record| {
        found = json::text(&record, "run_id") == over.run_id();
        !found
    })?;
    Ok(found)
}

fn observed(facts: &Facts<'_>) -> Observed {
    let count = facts.changes.files.len();
    let summary = (facts.changes.sight == Sight::Clear).then(|| format!("{count} files changed"));
    Observed {
        derived_by: "orchestrator",
        baseline_ref: facts.turn.baseline_head().map(|head| format!("git:{head}")),
        accepted_ref: facts.accepted_ref.to_owned(),
        files_changed: facts.changes.files.clone(),
        file_markers: facts.changes.markers.clone(),
        diff_summary: summary,
    }
}

/// Judges what a declared verification is worth, by who declares it and with which evidence.
pub(super) fn normalized_verification(facts: &Facts<'_>) -> Normalized {
    let declared = facts.result.verification_status().unwrap_or("skipped");
    let is = |status: &str, reason: &'static str, reproducible: bool| Normalized {
        status: status.to_owned(),
        reason,
        reproducible,
    };
    if declared != "pass" {
        return is(declared, "as declared", false);
    }
    if is_attested(facts.config.runtime_type_of(facts.turn.role())) {
        return is("attested_pass", "the runtime's word", false);
    }
    let evidence = facts.result.evidence();
    let is_zero = |entry: &Value| entry.get("exit_code").and_then(Value::as_f64) == Some(0.0);
    if !evidence.is_empty() && evidence.iter().all(is_zero) {
        return is("pass", "every command exited with 0", true);
    }
    is("not_reproducible", "a pass without commands that exited with 0", false)
}

/// True for a type of runtime whose word is all that there is for a verification.
pub(super) fn is_attested(runtime_type: &str) -> bool {
    ["manual", "api_proxy"].contains(&runtime_type)
}

/// Makes the ledger's lines of the turn's decisions.
pub(super) fn decisions(facts: &Facts<'_>) -> Vec<ledger::Line> {
    let line = |decision: &Decision| {
        let of = |key: &str| decision.get(key).cloned();
        ledger::Line::Decision(ledger::Decided {
            id: of("id"),
            turn_id: facts.turn.id().to_owned(),
            role: facts.turn.role().to_owned(),
            phase: facts.state.phase().map(str::to_owned),
            runtime_id: facts.turn.runtime().to_owned(),
            category: of("category"),
            statement: of("statement"),
            rationale: of("rationale"),
            objections_against: [],
            status: "accepted",
            overridden_by: (),
            created_at: facts.at.to_owned(),
            durability: of("durability"),
            overrides: of("overrides"),
        })
    };
    facts.result.decisions().iter().map(line).collect()
}

/// Makes the turn's section in the talk.
pub(super) fn talk(facts: &Facts<'_>) -> String {
    let (turn, result) = (facts.turn, facts.result);
    let of = |object: &Object, key: &str| one_line(json::text(object, key).unwrap_or_default());
    let id = turn.id();
    let short: String = id.strip_prefix("turn_").unwrap_or(id).chars().take(8).collect();
    let phase = facts.state.phase().unwrap_or("none");
    let mut section = format!("## Turn {short} — {} ({phase})\n\n", turn.role());
    section.push_str(&format!("- **Status:** {}\n", one_line(result.status())));
    section.push_str(&format!("- **Summary:** {}\n", one_line(result.summary())));
    for decision in result.decisions() {
        let (id, statement) = (one_line(decision.id()), one_line(decision.statement()));
        section.push_str(&format!("- **Decision {id}:** {statement}\n"));
    }
    for objection in result.objections() {
        let (id, severity) = (of(objection, "id"), of(objection, "severity"));
        section.push_str(&format!("- **Objection {id} ({severity}):** {}\n", of(objection, "statement")));
    }
    let next = result.proposed_next_role().unwrap_or("human");
    // The turn and its sequence make each section unique, whatever else it says: a redo looks for the text as
    // a whole.
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

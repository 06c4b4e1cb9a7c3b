//! What a worker reads: who it is, what it may do, where the run stands, and what its result must look like.
//!
//! The texts are plain Markdown, made of the state and the configuration. Their wording is no contract, but a
//! worker that does what they say, and takes names and values from nowhere else, gets its result accepted.
//! Implements G14.

use super::config::Authority;
use super::config::model::{Role, Route};
use super::journal::{HISTORY, LEDGER};
use super::json::{self, Object};
use super::root::Root;
use super::state::{State, Turn, get_turn_staging_result_path};
use super::{Config, GovernedError, gate, lines, observe, policy};
use serde_json::{Value, json};
use std::fmt::Write;

/// The most decisions that are shown.
const DECISIONS_MAX: usize = 50;
/// The most lines that are shown of a file that a gate requires.
const GATE_LINES_MAX: usize = 60;

/// Returns the text of `PROMPT.md`.
pub(super) fn prompt(
    root: &Root,
    state: &State,
    config: &Config,
    turn: &Turn,
) -> Result<String, GovernedError> {
    let role = config.role(turn.role());
    let said =
        |of: fn(&Role) -> &Option<String>| role.and_then(|role| of(role).as_deref()).unwrap_or(turn.role());
    let (title, mandate) = (said(|role| &role.title), said(|role| &role.mandate));
    let phase = state.phase().unwrap_or("none");
    let mut text = format!("# {title} ({})\n\n{mandate}\n\n", turn.role());
    let _ = writeln!(text, "- run: {}", state.run_id().unwrap_or("none"));
    let _ = writeln!(text, "- turn: {}, attempt {}", turn.id(), turn.attempt());
    let _ = writeln!(text, "- phase: {phase}");
    if let Some(until) = turn.deadline_at().and_then(Value::as_str) {
        let _ = writeln!(text, "- until: {until}");
    }
    text.push('\n');
    text.push_str("## What you may change\n\n");
    text.push_str(match config.authority(turn.role()) {
        Authority::Authoritative => {
            "You change the workspace yourself. List every file that you changed, made or removed in `files_changed`; \
             `artifact.type` is `workspace` then. Where you changed none, it is `review`.\n"
        }
        Authority::Proposed => {
            "You propose changes: put them below `.agentxchain/proposed/` or `.planning/`. Any other file that you change \
             has to be in `files_changed`, and so has a file below `.planning/` that `.gitignore` hides. `artifact.type` is `patch`, or `commit` or `review`.\n"
        }
        Authority::ReviewOnly => {
            "You review. Write below `.planning/` or `.agentxchain/reviews/` only, and list those files in \
             `files_changed`. `artifact.type` is `review`.\n"
        }
    });
    text.push_str(
        "In `files_changed` stand files, each by its path from the top of the project (`src/a.txt`, not `./src/a.txt`).\n\n\
         Never change the run's own files: what is below `.agentxchain/` (but for `reviews/`, `reports/`, `proposed/` \
         and your result), and `TALK.md`.\n\n",
    );
    gate(&mut text, state, config, phase);
    policies(&mut text, config, turn, phase);
    rejection(&mut text, turn);
    changed(&mut text, root, turn)?;
    for (key, title) in [
        ("conflict_context", "What your last attempt conflicted with"),
        ("delegation_context", "What was delegated to you"),
        ("delegation_review", "What came of your delegations"),
    ] {
        if let Some(context) = turn.get(key).filter(|context| context.is_object()) {
            let _ = writeln!(text, "## {title}\n\n```json\n{context:#}\n```\n");
        }
    }
    demanded(&mut text, &owed(turn));
    let path = get_turn_staging_result_path(turn.id());
    let _ = writeln!(text, "## Your result\n\nWrite one JSON object to `{}`:\n", path.display());
    let _ = writeln!(text, "```json\n{:#}\n```\n", template(state, config, turn));
    text.push_str("Put words of yours into the place of what stands in angle brackets.\n\n");
    status(&mut text, &policy::statuses(config, phase, turn.role()));
    text.push_str(FIELDS);
    next(&mut text, config, turn, phase);
    Ok(text)
}

const FIELDS: &str = "\
- `decisions[]`: `id` (`DEC-001`), `category` (implementation, architecture, scope, process, quality, release), `statement`, `rationale`.
- `objections[]`: `id` (`OBJ-001`), `severity` (low, medium, high, blocking), `statement`.
- `verification.status`: `pass`, `fail` or `skipped`; put what you ran into `machine_evidence` (`command`, `exit_code`; beside `pass` each is 0).
";

/// Adds the statuses that the result may have.
fn status(text: &mut String, offered: &[&str]) {
    let told = |status: &&str| match *status {
        "needs_human" => "`needs_human` (say why in `needs_human_reason`)".to_owned(),
        status => format!("`{status}`"),
    };
    let mut told: Vec<String> = offered.iter().map(told).collect();
    let last = told.pop().unwrap_or_default();
    let all = if told.is_empty() { last } else { format!("{} or {last}", told.join(", ")) };
    let _ = writeln!(text, "- `status`: {all}.");
}

/// Adds what the policies of the configuration ask of the result.
fn policies(text: &mut String, config: &Config, turn: &Turn, phase: &str) {
    let told = policy::told(config, phase, turn.role());
    if told.is_empty() {
        return;
    }
    text.push_str("## The policies that judge your result\n\n");
    for told in told {
        let _ = writeln!(text, "- {told}");
    }
    text.push('\n');
}

/// Adds the decisions that are demanded of the turn, by their ids.
fn demanded(text: &mut String, ids: &[&str]) {
    if ids.is_empty() {
        return;
    }
    let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    let all = ids.join(", ");
    let _ = writeln!(
        text,
        "These decisions are demanded of you. List in `decisions`, each under its own id: {all}.\n"
    );
}

/// Returns the ids of the decisions that are demanded of a turn to which work was delegated.
fn owed(turn: &Turn) -> Vec<&str> {
    turn.delegation_context().map(|context| json::texts(context, "required_decision_ids")).unwrap_or_default()
}

/// Adds what may follow the turn, by name: the phase or the completion, and the roles.
fn next(text: &mut String, config: &Config, turn: &Turn, phase: &str) {
    if must_object(config, turn) {
        text.push_str("- Raise at least one objection: a review without one is rejected.\n");
    }
    match config.phase_after(phase) {
        Some(after) => {
            let _ = writeln!(
                text,
                "- `phase_transition_request`: `{after}`, when this phase is done, else null. It is the phase that \
                 follows; no other may be named. `run_completion_request` stays null."
            );
        }
        None => text.push_str(
            "- `run_completion_request`: true, when all is done, else null. This is the last phase: \
             `phase_transition_request` stays null.\n",
        ),
    }
    let roles = config.route(phase).map(Route::allowed).unwrap_or_default();
    let roles: Vec<String> =
        roles.iter().filter(|role| *role != "human").map(|role| format!("`{role}`")).collect();
    let any = if roles.is_empty() { String::new() } else { format!("one of {}, or ", roles.join(", ")) };
    let _ = writeln!(text, "- `proposed_next_role`: {any}`human`.");
}

/// True where the turn's role reviews, and its reviews must object to something.
fn must_object(config: &Config, turn: &Turn) -> bool {
    config.is_challenged() && config.authority(turn.role()) == Authority::ReviewOnly
}

fn template(state: &State, config: &Config, turn: &Turn) -> Value {
    let kind = match config.authority(turn.role()) {
        Authority::Authoritative => "workspace",
        Authority::Proposed => "patch",
        Authority::ReviewOnly => "review",
    };
    let phase = state.phase().unwrap_or("none");
    let status = policy::statuses(config, phase, turn.role()).first().copied().unwrap_or("completed");
    let needs_human = (status == "needs_human").then_some("<why a person is needed>");
    let decision = |id: &str| {
        json!({
            "id": id, "category": "implementation", "statement": "<what you decided>", "rationale": "<why>",
        })
    };
    let decisions: Vec<Value> = owed(turn).into_iter().map(decision).collect();
    let (verified, evidence) = match policy::wants_evidence(config, phase, turn.role()) {
        true => ("pass", json!([{ "command": "<what you ran>", "exit_code": 0 }])),
        false => ("skipped", json!([])),
    };
    let objection = json!({ "id": "OBJ-001", "severity": "low", "statement": "<what you object to>" });
    let objections = if must_object(config, turn) { json!([objection]) } else { json!([]) };
    json!({
        "schema_version": "1.0",
        "run_id": json::or_null(state.run_id()),
        "turn_id": turn.id(),
        "role": turn.role(),
        "runtime_id": turn.runtime(),
        "status": status,
        "summary": "<what you did>",
        "decisions": decisions,
        "objections": objections,
        "files_changed": [],
        "artifacts_created": [],
        "verification": { "status": verified, "commands": [], "evidence_summary": "", "machine_evidence": evidence },
        "artifact": { "type": kind, "ref": null },
        "proposed_next_role": "human",
        "phase_transition_request": null,
        "run_completion_request": null,
        "needs_human_reason": json::or_null(needs_human),
        "cost": { "usd": 0 },
    })
}

/// Adds the files that earlier attempts of the turn changed, and that this attempt answers for.
fn changed(text: &mut String, root: &Root, turn: &Turn) -> Result<(), GovernedError> {
    if turn.attempt() < 2 {
        return Ok(());
    }
    let changes = observe::changes(root, &observe::look(root)?, turn.baseline())?;
    if changes.files.is_empty() {
        return Ok(());
    }
    text.push_str(
        "## Changed already since this turn began\n\nDeclare those that stay as `files_changed`; undo the others.\n\n",
    );
    for file in &changes.files {
        let _ = writeln!(text, "- `{file}`");
    }
    text.push('\n');
    Ok(())
}

fn gate(text: &mut String, state: &State, config: &Config, phase: &str) {
    let Some(id) = config.exit_gate(phase) else { return };
    let _ = writeln!(text, "## The gate of this phase, `{id}`\n");
    let Some(gate) = config.gate(id) else { return text.push_str("It is open.\n\n") };
    let begins = text.len();
    let mut asks = |path: &str, demand: Option<String>| {
        let _ = match demand {
            Some(demand) => writeln!(text, "- requires `{path}`: {demand}"),
            None => writeln!(text, "- requires `{path}`"),
        };
    };
    for file in &gate.requires_files {
        asks(file, gate::demand(file, phase));
    }
    let kit = config.model().workflow_kit.phases.get(phase).and_then(Option::as_ref);
    for artifact in kit.iter().flat_map(|kit| &kit.artifacts).filter(|one| one.required != Some(false)) {
        let Some(path) = &artifact.path else { continue };
        let demand = gate::demand_of(artifact, phase);
        if !gate.requires_files.contains(path) || demand.is_some() && demand != gate::demand(path, phase) {
            asks(path, demand);
        }
    }
    if gate.requires_verification_pass {
        text.push_str("- requires a verification that passes\n");
    }
    if gate.requires_human_approval {
        text.push_str("- requires a person's approval\n");
    }
    for why in state.gate_failure() {
        let _ = writeln!(text, "- it was asked, and failed: {why}");
    }
    if text.len() == begins {
        text.push_str("It asks nothing.\n");
    }
    text.push('\n');
}

fn rejection(text: &mut String, turn: &Turn) {
    let Some(rejection) = turn.last_rejection() else { return };
    let reason = json::text(rejection, "reason").unwrap_or_default();
    let _ = writeln!(text, "## Why the last attempt was rejected\n\n{reason}\n");
    for error in json::texts(rejection, "validation_errors") {
        let _ = writeln!(text, "- {error}");
    }
    text.push('\n');
}

/// Returns the text of `CONTEXT.md`.
pub(super) fn context(root: &Root, state: &State, config: &Config) -> Result<String, GovernedError> {
    let mut text = String::from("# Where the run stands\n\n");
    let status = state.status().map_or("unknown", super::RunStatus::name);
    let _ = writeln!(text, "- run: {}", state.run_id().unwrap_or("none"));
    let _ = writeln!(text, "- status: {status}\n- phase: {}", state.phase().unwrap_or("none"));
    if let Some(goal) = &config.model().project.goal {
        let _ = writeln!(text, "- goal: {goal}");
    }
    if let Some(waits) = state.blocked_on() {
        let _ = writeln!(text, "- blocked on: {waits}");
    }
    text.push('\n');
    last_turn(&mut text, root)?;
    decisions(&mut text, root)?;
    gate_files(&mut text, root, state, config);
    Ok(text)
}

fn last_turn(text: &mut String, root: &Root) -> Result<(), GovernedError> {
    let mut last: Option<Object> = None;
    lines::backwards(root, &root.join(HISTORY), |entry| {
        last = Some(entry);
        false
    })?;
    let Some(last) = last else { return Ok(()) };
    let of = |key: &str| json::text(&last, key).unwrap_or("none");
    let _ = writeln!(
        text,
        "## The last accepted turn\n\n- {} ({})\n- {}",
        of("turn_id"),
        of("role"),
        of("summary")
    );
    for file in json::texts(&last, "files_changed") {
        let _ = writeln!(text, "- changed `{file}`");
    }
    for objection in json::list(&last, "objections").iter().filter_map(Value::as_object) {
        let of = |key: &str| json::text(objection, key).unwrap_or("none");
        let _ = writeln!(text, "- objected, {} ({}): {}", of("severity"), of("id"), of("statement"));
    }
    let verification = json::object(&last, "normalized_verification").and_then(|v| json::text(v, "status"));
    let _ = writeln!(text, "- verification: {}\n", verification.unwrap_or("none"));
    Ok(())
}

fn decisions(text: &mut String, root: &Root) -> Result<(), GovernedError> {
    let mut last: Vec<Object> = Vec::new();
    lines::backwards(root, &root.join(LEDGER), |entry| {
        if entry.contains_key("id") {
            last.push(entry);
        }
        last.len() < DECISIONS_MAX
    })?;
    if last.is_empty() {
        return Ok(());
    }
    text.push_str("## Decisions\n\n| id | role | phase | statement |\n| --- | --- | --- | --- |\n");
    for decision in last.iter().rev() {
        let of = |key: &str| json::text(decision, key).unwrap_or("").replace(['|', '\n'], " ");
        let _ = writeln!(text, "| {} | {} | {} | {} |", of("id"), of("role"), of("phase"), of("statement"));
    }
    text.push('\n');
    Ok(())
}

fn gate_files(text: &mut String, root: &Root, state: &State, config: &Config) {
    let gate = state.phase().and_then(|phase| config.gate(config.exit_gate(phase)?));
    let Some(gate) = gate else { return };
    for file in &gate.requires_files {
        let there = gate::read(root, file);
        let Some(bytes) = there else {
            let _ = writeln!(text, "## `{file}`: missing\n");
            continue;
        };
        let content = String::from_utf8_lossy(&bytes).into_owned();
        let shown: Vec<&str> = content.lines().take(GATE_LINES_MAX).collect();
        let _ = writeln!(text, "## `{file}`\n\n````\n{}\n````\n", shown.join("\n"));
    }
}

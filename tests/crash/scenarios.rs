//! What is killed: every operation, with what comes before it.

use super::super::root::Root;
use super::super::*;
use crate::conformance::manifest;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

pub(super) fn config() -> Config {
    let role = |authority: &str| json!({ "title": "R", "mandate": "M", "write_authority": authority, "runtime_id": "m" });
    let config = json!({
        "schema_version": 4,
        "project": { "id": "crash", "name": "Crash" },
        "roles": { "pm": role("review_only"), "dev": role("authoritative") },
        "runtimes": { "m": { "type": "manual" } },
        "routing": {
            "plan": { "entry_role": "pm", "allowed_next_roles": ["pm", "dev"], "exit_gate": "g", "max_concurrent_turns": 2 },
            "build": { "entry_role": "dev", "allowed_next_roles": ["pm", "dev"], "exit_gate": "g" },
        },
        "gates": { "g": { "requires_human_approval": true } },
        "budget": { "per_turn_max_usd": 1, "per_run_max_usd": 10 },
    });
    Config::from_value(config).unwrap()
}

/// A root whose clock and ids are the same in every process, from a given id on.
pub(super) fn root(folder: &Path, first: u64) -> Root {
    let next = AtomicU64::new(first);
    Root::new(folder)
        .with_clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000))
        .with_ids(move || next.fetch_add(1, Ordering::Relaxed).to_be_bytes())
}

fn stage(folder: &Path, turn: &Turn, state: &State, more: Value) {
    let mut result = json!({
        "schema_version": "1.0",
        "run_id": state.run_id(),
        "turn_id": turn.id(),
        "role": turn.role(),
        "runtime_id": turn.runtime(),
        "status": "completed",
        "summary": "did it",
        "decisions": [{ "id": "DEC-001", "category": "scope", "statement": "s", "rationale": "r", "durability": "repo" }],
        "objections": [{ "id": "OBJ-001", "severity": "low", "statement": "o" }],
        "files_changed": [if turn.role() == "dev" { "src/a.rs" } else { ".planning/a.md" }],
        "verification": { "status": "pass" },
        "artifact": { "type": if turn.role() == "dev" { "workspace" } else { "review" } },
        "proposed_next_role": "dev",
    });
    result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let path = folder.join(get_turn_staging_result_path(turn.id()));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, result.to_string()).unwrap();
}

pub(super) type Done = Result<(), GovernedError>;

/// A scenario: what comes before, and the operation that is killed.
pub(super) struct Scenario {
    pub name: &'static str,
    pub before: fn(&Root, &Config),
    pub work: fn(&Root, &Config) -> Done,
}

fn begun(root: &Root, config: &Config) {
    init_run(root, config).unwrap();
}

pub(super) fn assigned(root: &Root, config: &Config) {
    begun(root, config);
    let pm = assign_turn(root, config, "pm").unwrap();
    write_dispatch_bundle(root, &pm.state, config, &BundleOptions::default()).unwrap();
    stage(root.folder(), &pm.turn, &pm.state, json!({ "phase_transition_request": "build" }));
}

fn paused(root: &Root, config: &Config) {
    assigned(root, config);
    accept_turn(root, config, &AcceptOptions::default()).unwrap();
}

fn at_the_end(root: &Root, config: &Config) {
    paused(root, config);
    approve_phase_gate(root, config).unwrap();
    let dev = assign_turn(root, config, "dev").unwrap();
    write_dispatch_bundle(root, &dev.state, config, &BundleOptions::default()).unwrap();
    stage(
        root.folder(),
        &dev.turn,
        &dev.state,
        json!({ "run_completion_request": true, "decisions": [{ "id": "DEC-002", "category": "scope", "statement": "s", "rationale": "r", "overrides": "DEC-001", "durability": "repo" }] }),
    );
}

fn conflicting(root: &Root, config: &Config) {
    begun(root, config);
    let pm = assign_turn(root, config, "pm").unwrap();
    let dev = assign_turn(root, config, "dev").unwrap();
    stage(root.folder(), &pm.turn, &pm.state, json!({ "files_changed": [".planning/x.md"] }));
    stage(root.folder(), &dev.turn, &dev.state, json!({ "files_changed": [".planning/x.md"] }));
    accept(root, config, &pm.turn).unwrap();
}

pub(super) fn accept(root: &Root, config: &Config, turn: &Turn) -> Done {
    let turn_id = Some(turn.id().to_owned());
    accept_turn(root, config, &AcceptOptions { turn_id, ..AcceptOptions::default() }).map(drop)
}

pub(super) fn only(root: &Root, config: &Config) -> Turn {
    get_active_turn(&load_state(root, config).unwrap()).unwrap()
}

fn escalated(root: &Root, config: &Config) {
    assigned(root, config);
    escalate(root, config, &Escalation { reason: "stuck", ..Escalation::default() }).unwrap();
}

fn once_rejected(root: &Root, config: &Config) {
    assigned(root, config);
    reject_turn(root, config, &Rejection::default(), "no").unwrap();
    let turn = only(root, config);
    stage(root.folder(), &turn, &load_state(root, config).unwrap(), json!({}));
}

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "init", before: |_, _| {}, work: |r, c| init_run(r, c).map(drop) },
    Scenario { name: "assign", before: begun, work: |r, c| assign_turn(r, c, "dev").map(drop) },
    Scenario {
        name: "bundle",
        before: |r, c| {
            begun(r, c);
            assign_turn(r, c, "dev").unwrap();
        },
        work: |r, c| bundle(r, c),
    },
    Scenario { name: "bundle_again", before: assigned, work: |r, c| bundle(r, c) },
    Scenario { name: "accept", before: assigned, work: |r, c| accept(r, c, &only(r, c)) },
    Scenario { name: "accept_last", before: at_the_end, work: |r, c| accept(r, c, &only(r, c)) },
    Scenario { name: "conflict", before: conflicting, work: |r, c| accept(r, c, &only(r, c)) },
    Scenario {
        name: "reject",
        before: assigned,
        work: |r, c| reject_turn(r, c, &Rejection::default(), "no").map(drop),
    },
    Scenario {
        name: "reject_last",
        before: once_rejected,
        work: |r, c| reject_turn(r, c, &Rejection::default(), "no").map(drop),
    },
    Scenario { name: "approve_phase", before: paused, work: |r, c| approve_phase_gate(r, c).map(drop) },
    Scenario {
        name: "approve_completion",
        before: |r, c| {
            at_the_end(r, c);
            accept(r, c, &only(r, c)).unwrap();
        },
        work: |r, c| approve_completion_gate(r, c).map(drop),
    },
    Scenario {
        name: "block",
        before: begun,
        work: |r, _| {
            mark_run_blocked(r, &Block { blocked_on: "human:x", category: "needs_human", ..Block::default() })
                .map(drop)
        },
    },
    Scenario {
        name: "escalate",
        before: assigned,
        work: |r, c| escalate(r, c, &Escalation { reason: "stuck", ..Escalation::default() }).map(drop),
    },
    Scenario {
        name: "reactivate",
        before: escalated,
        work: |r, c| {
            let state = load_state(r, c)?;
            reactivate_run(r, &state, &Reactivation::default()).map(drop)
        },
    },
    Scenario {
        name: "manifest",
        before: assigned,
        work: |r, c| {
            let turn = only(r, c);
            let of = manifest::Identity { run_id: None, turn_id: turn.id(), role: turn.role() };
            manifest::finalize(r, of).map(drop)
        },
    },
];

fn bundle(root: &Root, config: &Config) -> Done {
    write_dispatch_bundle(root, &load_state(root, config)?, config, &BundleOptions::default()).map(drop)
}

//! A refused operation leaves every byte as it was: all operations, all statuses (G4).

use crate::rig::Project;
use aynig::governed::*;
use serde_json::{Value, json};

type Operation = fn(&Project) -> Result<(), GovernedError>;

fn given_state() -> State {
    State::from_value(json!({ "status": "blocked", "run_id": "run_1", "blocked_on": "human:x" })).unwrap()
}

const OPERATIONS: &[(&str, Operation)] = &[
    ("init_run", |p| init_run(&p.root(), &p.config).map(drop)),
    ("reactivate_run", |p| {
        let state = load_state(&p.root(), &p.config).unwrap_or_else(|_| given_state());
        reactivate_run(&p.root(), &state, &Reactivation::default()).map(drop)
    }),
    ("assign_turn", |p| assign_turn(&p.root(), &p.config, "dev").map(drop)),
    ("assign_turn, no role", |p| assign_turn(&p.root(), &p.config, "nobody").map(drop)),
    ("accept_turn", |p| accept_turn(&p.root(), &p.config, &AcceptOptions::default()).map(drop)),
    ("accept_turn, no turn", |p| {
        let options = AcceptOptions { turn_id: Some("turn_none".into()), ..AcceptOptions::default() };
        accept_turn(&p.root(), &p.config, &options).map(drop)
    }),
    ("accept_turn, merged", |p| {
        let options = AcceptOptions { resolution: Resolution::HumanMerge, ..AcceptOptions::default() };
        accept_turn(&p.root(), &p.config, &options).map(drop)
    }),
    ("reject_turn", |p| reject_turn(&p.root(), &p.config, &Rejection::default(), "no").map(drop)),
    ("reject_turn, no reason", |p| reject_turn(&p.root(), &p.config, &Rejection::default(), " ").map(drop)),
    ("approve_phase_gate", |p| approve_phase_gate(&p.root(), &p.config).map(drop)),
    ("approve_completion_gate", |p| approve_completion_gate(&p.root(), &p.config).map(drop)),
    ("mark_run_blocked", |p| {
        let block = Block { blocked_on: "human:x", category: "needs_human", ..Block::default() };
        mark_run_blocked(&p.root(), &block).map(drop)
    }),
    ("escalate", |p| {
        escalate(&p.root(), &p.config, &Escalation { reason: "x", ..Escalation::default() }).map(drop)
    }),
    ("write_dispatch_bundle", |p| {
        let state = load_state(&p.root(), &p.config).unwrap_or_else(|_| given_state());
        write_dispatch_bundle(&p.root(), &state, &p.config, &BundleOptions::default()).map(drop)
    }),
];

fn state(status: &str, turns: usize, pending: Option<&str>) -> Value {
    let roles = ["dev", "ops"];
    let turns: serde_json::Map<String, Value> = (0..turns)
        .map(|n| {
            let id = format!("turn_{n}");
            let turn = json!({
                "turn_id": id, "assigned_role": roles[n], "status": "running", "attempt": 1,
                "runtime_id": "manual", "assigned_sequence": n + 1,
            });
            (id, turn)
        })
        .collect();
    let mut state = json!({
        "schema_version": "1.1", "run_id": "run_1", "project_id": "rig", "status": status, "phase": "build",
        "active_turns": turns, "turn_sequence": 7, "blocked_on": null, "unknown": { "kept": [1, null] },
    });
    if status == "blocked" {
        state["blocked_on"] = json!("human:x");
        state["blocked_reason"] =
            json!({ "category": "needs_human", "recovery": { "typed_reason": "x", "owner": "human" } });
    }
    if let Some(pending) = pending {
        state[pending] = json!({ "gate": "built", "from": "build", "to": "plan" });
    }
    state
}

#[test]
fn refused_operations_change_not_one_byte() {
    let statuses = [
        Some("idle"),
        Some("active"),
        Some("paused"),
        Some("blocked"),
        Some("completed"),
        Some("failed"),
        Some("odd"),
        None,
    ];
    let pendings = [None, Some("pending_phase_transition"), Some("pending_run_completion")];
    let (mut refused, mut done) = (0, 0);
    for status in statuses {
        for turns in 0..3 {
            for pending in pendings {
                for (name, operation) in OPERATIONS {
                    let project = Project::new();
                    if let Some(status) = status {
                        project
                            .write(".agentxchain/state.json", &format!("{}", state(status, turns, pending)));
                    }
                    // Staged, and not valid.
                    project.write(".agentxchain/staging/turn_0/turn-result.json", "{}");
                    project.write(".agentxchain/dispatch/turns/turn_0/PROMPT.md", "old");
                    let before = project.files();
                    match operation(&project) {
                        Ok(()) => done += 1,
                        Err(error) => {
                            refused += 1;
                            let after = project.files();
                            let what = format!("{name} of {status:?}, {turns} turns, {pending:?}: {error}");
                            assert!(before == after, "{what} changed {:?}", after.keys().collect::<Vec<_>>());
                        }
                    }
                }
            }
        }
    }
    assert!(refused > 600 && done > 60, "{refused} refused, {done} done");
}

#[test]
fn a_completed_run_stays_completed() {
    let project = Project::new();
    project.write(".agentxchain/state.json", &state("completed", 0, None).to_string());
    let before = project.files();
    for (name, operation) in OPERATIONS {
        assert!(operation(&project).is_err(), "{name}");
    }
    assert_eq!(project.files(), before);
}

#[test]
fn reading_writes_nothing_even_where_a_state_is_of_yesterday() {
    let project = Project::new();
    let old = json!({
        "schema_version": "1.0", "run_id": "run_1", "project_id": "rig", "status": "paused", "phase": "plan",
        "blocked_on": "human:look", "current_turn": { "turn_id": "turn_1", "assigned_role": "pm", "runtime_id": "manual" },
    });
    project.write(".agentxchain/state.json", &old.to_string());
    let before = project.files();
    let state = project.state();
    assert_eq!(state.status(), Some(RunStatus::Blocked));
    assert_eq!(get_active_turn(&state).unwrap().id(), "turn_1");
    load_context(&project.root()).unwrap();
    assert_eq!(project.files(), before);
    reactivate_run(&project.root(), &state, &Reactivation::default()).unwrap();
    assert!(project.raw_state().get("current_turn").is_none());
}

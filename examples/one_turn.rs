//! Proof 1 of the governed boundary: one turn, by its raw operations.
//!
//! A run is initialized from an idle state, a turn assigned, a result staged where the boundary says, and
//! accepted. Run it with `cargo run --example one_turn`; it ends with 0 where all holds.

use aynig::governed::{
    AcceptOptions, Config, Root, accept_turn, assign_turn, get_turn_staging_result_path, init_run,
    load_context, stage_turn_result,
};
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;

type Proof = Result<(), Box<dyn Error>>;

fn check(holds: bool, what: &str) -> Proof {
    if holds { Ok(()) } else { Err(format!("does not hold: {what}").into()) }
}

fn config() -> Value {
    json!({
        "schema_version": 4,
        "protocol_mode": "governed",
        "project": { "id": "one-turn", "name": "One turn" },
        "roles": {
            "pm": {
                "title": "Product manager",
                "mandate": "Plan the work",
                "write_authority": "review_only",
                "runtime_id": "manual-pm",
            },
        },
        "runtimes": { "manual-pm": { "type": "manual" } },
        "routing": {
            "planning": { "entry_role": "pm", "allowed_next_roles": ["pm", "human"] },
            "implementation": { "entry_role": "pm", "allowed_next_roles": ["pm", "human"] },
        },
        "gates": {},
        "rules": { "challenge_required": true, "max_turn_retries": 2 },
    })
}

fn result(run_id: &str, turn_id: &str) -> Value {
    json!({
        "schema_version": "1.0",
        "run_id": run_id,
        "turn_id": turn_id,
        "role": "pm",
        "runtime_id": "manual-pm",
        "status": "completed",
        "summary": "Planned the work",
        "decisions": [{
            "id": "DEC-001",
            "category": "scope",
            "statement": "One feature first",
            "rationale": "It proves the whole way",
        }],
        "objections": [{ "id": "OBJ-001", "severity": "low", "statement": "Nobody has asked the users yet" }],
        "files_changed": [],
        "verification": { "status": "skipped", "commands": [], "evidence_summary": "nothing to run" },
        "artifact": { "type": "review", "ref": null },
        "proposed_next_role": "human",
        "phase_transition_request": null,
        "run_completion_request": null,
        "cost": { "usd": 0.01 },
    })
}

fn lines(path: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    Ok(std::fs::read_to_string(path)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Proves it in an empty folder.
pub fn prove(folder: &Path) -> Proof {
    let own = folder.join(".agentxchain");
    std::fs::create_dir_all(&own)?;
    // As another tool may have left it: idle, without a project or a counter.
    let idle = json!({ "schema_version": "1.1", "run_id": null, "status": "idle", "phase": "planning", "active_turns": {} });
    std::fs::write(own.join("state.json"), idle.to_string())?;
    std::fs::write(folder.join("agentxchain.json"), config().to_string())?;
    let root = load_context(&Root::new(folder))?.root;
    let config = Config::from_value(config()).ok_or("the configuration is an object")?;

    let run = init_run(&root, &config)?.state;
    let assigned = assign_turn(&root, &config, "pm")?;
    let turn_id = assigned.turn.id();
    check(turn_id.starts_with("turn_"), "the turn is at the top level of the answer")?;

    let result = result(run.run_id().unwrap_or_default(), turn_id);
    let staged = stage_turn_result(&root, turn_id, &result)?;
    check(
        staged == root.folder().join(get_turn_staging_result_path(turn_id)),
        "it is staged where any tool would",
    )?;
    let accepted = accept_turn(&root, &config, &AcceptOptions::default())?;
    check(
        accepted.state.phase() == Some("planning"),
        "nothing was asked for, and nothing happens by itself",
    )?;

    let state: Value = serde_json::from_slice(&std::fs::read(own.join("state.json"))?)?;
    for key in ["run_id", "schema_version", "status", "phase"] {
        check(state[key].is_string(), &format!("the state has {key}"))?;
    }
    let history = lines(&own.join("history.jsonl"))?;
    check(history.len() == 1, "the history has one turn")?;
    check(history[0]["turn_id"] == turn_id && history[0]["role"] == "pm", "it is this one")?;
    check(lines(&own.join("decision-ledger.jsonl"))?.len() == 1, "the ledger has its decision")?;
    check(!staged.exists(), "what was staged is gone")
}

/// Proves it in a folder of its own, and says so.
#[allow(dead_code, reason = "a test calls the proof itself")]
fn main() -> Proof {
    let folder = std::env::temp_dir().join(format!("aynig-one-turn-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let proved = prove(&folder);
    std::fs::remove_dir_all(&folder)?;
    proved?;
    println!("one turn: assigned, staged, accepted");
    Ok(())
}

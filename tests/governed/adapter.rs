//! The adapter, with fixtures of our own: every operation, every exit code (G10).

#[path = "../../examples/conformance.rs"]
mod example;

use aynig::conformance::conformance;
use serde_json::{Value, json};

fn judge(operation: &str, setup: Value, args: Value, expected: Value) -> (Value, i32) {
    let fixture = json!({
        "fixture_id": "OWN", "tier": 1, "surface": "own", "description": "own", "type": "validate", "setup": setup,
        "input": { "operation": operation, "args": args }, "expected": expected,
    });
    let (verdict, code) = conformance(fixture.to_string().as_bytes());
    (serde_json::from_str(&verdict).unwrap(), code)
}

#[track_caller]
fn passes(operation: &str, setup: Value, args: Value, expected: Value) {
    let (verdict, code) = judge(operation, setup, args, expected);
    assert_eq!((verdict["status"].as_str(), code), (Some("pass"), 0), "{verdict}");
}

fn config() -> Value {
    json!({
        "roles": { "dev": {}, "qa": { "write_authority": "review_only" } },
        "routing": { "build": { "entry_role": "dev" }, "ship": { "entry_role": "qa", "exit_gate": "g" } },
        "gates": { "g": { "requires_files": ["notes.md"], "requires_verification_pass": true } },
    })
}

fn state(status: &str, phase: &str) -> Value {
    json!({ "status": status, "phase": phase, "run_id": "run_1" })
}

#[test]
fn each_verdict_has_its_exit_code() {
    let event = json!({ "event": { "event_id": "e", "event_type": "run_started", "timestamp": "2026-01-01T00:00:00Z" } });
    let good = json!({ "result": "success" });
    assert_eq!(judge("validate_event", json!({}), event.clone(), good.clone()).1, 0);
    let (verdict, code) = judge("validate_event", json!({}), event.clone(), json!({ "result": "error" }));
    assert_eq!((verdict["status"].as_str(), code), (Some("fail"), 1));
    assert!(verdict["message"].as_str().unwrap().starts_with(".result: expected"));
    let (verdict, code) = judge("dance", json!({}), event, good);
    assert_eq!((verdict["status"].as_str(), code), (Some("not_implemented"), 3));
    let mut told = Vec::new();
    assert_eq!(example::judge(&b"{}"[..], &mut told).unwrap(), 2);
    assert_eq!(serde_json::from_slice::<Value>(&told).unwrap()["status"], "error");
    for broken in ["", "[]", "{}", "{\"input\":{}}"] {
        let (verdict, code) = conformance(broken.as_bytes());
        assert_eq!(code, 2, "{verdict}");
    }
}

#[test]
fn the_program_has_the_adapter_as_a_verb_that_no_help_shows() {
    let program = || {
        let mut program = assert_cmd::Command::new(env!("CARGO_BIN_EXE_git-aynig"));
        program.env_clear().args(["govern", "conformance"]);
        program
    };
    let event = json!({ "event_id": "e", "event_type": "run_started", "timestamp": "2026-01-01T00:00:00Z" });
    let fixture = |expected: &str| {
        json!({
            "fixture_id": "OWN", "tier": 1, "surface": "own", "description": "own", "type": "validate", "setup": {},
            "input": { "operation": "validate_event", "args": { "event": event } }, "expected": { "result": expected },
        })
        .to_string()
    };
    for (fixture, code) in [(fixture("success"), 0), (fixture("error"), 1), ("{}".to_owned(), 2)] {
        let (verdict, same) = conformance(fixture.as_bytes());
        let told = program().write_stdin(fixture).assert().code(code).stderr("");
        assert_eq!((told.get_output().stdout.as_slice(), code), (verdict.as_bytes(), same));
    }
    program().write_stdin(fixture("success").replace("validate_event", "dance")).assert().code(3);
    let help =
        assert_cmd::Command::new(env!("CARGO_BIN_EXE_git-aynig")).args(["govern", "-h"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("start") && !help.contains("conformance"), "{help}");
}

#[test]
fn the_state_machine_is_asked() {
    let setup = |state: Value| json!({ "state": state, "config": config() });
    let refused =
        json!({ "result": "error", "error_type": "invalid_state_transition", "state_unchanged": true });
    passes(
        "initialize_run",
        setup(json!({})),
        json!({}),
        json!({ "result": "ok", "state_assertions": { "status": "active" } }),
    );
    passes("initialize_run", setup(state("active", "build")), json!({}), refused.clone());
    let wrong = json!({ "config": { "roles": { "dev": { "runtime": "nowhere" } } } });
    passes(
        "initialize_run",
        wrong,
        json!({}),
        json!({ "result": "error", "error_type": "invalid_config", "state_unchanged": true }),
    );
    let ok = |assertions: Value| json!({ "result": "ok", "state_assertions": assertions });
    passes(
        "assign_turn",
        setup(state("active", "build")),
        json!({ "role_id": "dev" }),
        ok(json!({ "turn_sequence": 1 })),
    );
    passes("assign_turn", setup(state("blocked", "build")), json!({ "role_id": "dev" }), refused.clone());
    let mut paused = state("paused", "build");
    paused["pending_phase_transition"] = json!({ "from": "build", "to": "ship", "gate": "x" });
    passes(
        "approve_transition",
        setup(paused),
        json!({}),
        ok(json!({ "status": "active", "phase": "ship", "pending_phase_transition": null })),
    );
    passes("approve_transition", setup(state("active", "build")), json!({}), refused.clone());
    passes("approve_completion", setup(state("paused", "ship")), json!({}), refused.clone());
    let mut blocked = state("blocked", "build");
    blocked["blocked_on"] = json!("human:x");
    passes(
        "resolve_blocked",
        setup(blocked),
        json!({ "action": "resume" }),
        ok(json!({ "status": "active", "blocked_on": null, "blocked_reason": null })),
    );
    passes(
        "resolve_blocked",
        setup(state("active", "build")),
        json!({ "action": "resume" }),
        refused.clone(),
    );
    for (from, to) in
        [("completed", "active"), ("active", "completed"), ("active", "paused"), ("idle", "completed")]
    {
        passes(
            "transition_state",
            setup(state(from, "build")),
            json!({ "target_status": to }),
            refused.clone(),
        );
    }
    let changed = json!({ "candidate_overrides": { "run_id": "run_2" } });
    passes(
        "transition_state",
        setup(state("active", "build")),
        changed,
        json!({ "result": "error", "error_type": "immutable_field", "state_unchanged": true }),
    );
    let escalation = json!({ "trigger": "escalation", "reason": "lost_contact", "role_id": "dev" });
    passes(
        "transition_state",
        setup(state("active", "build")),
        escalation,
        ok(json!({ "status": "blocked", "blocked_on": "escalation:lost-contact:dev" })),
    );
}

#[test]
fn gates_are_asked() {
    let setup = |phase: &str, files: Value, status: &str| {
        json!({
            "state": state("active", phase), "config": config(), "filesystem": files, "turn_result": { "verification": { "status": status } },
        })
    };
    let exit = |to: &str| json!({ "requested_phase": to });
    passes(
        "evaluate_phase_exit",
        setup("build", json!({}), "fail"),
        exit("ship"),
        json!({ "action": "advance", "new_phase": "ship" }),
    );
    passes(
        "evaluate_phase_exit",
        setup("build", json!({}), "pass"),
        exit("moon"),
        json!({ "result": "error", "action": "gate_error", "error_type": "unknown_phase" }),
    );
    passes(
        "evaluate_phase_exit",
        setup("ship", json!({}), "pass"),
        exit("build"),
        json!({ "action": "gate_failed", "phase_unchanged": true }),
    );
    let completion = |files: Value, status: &str, expected: Value| {
        passes("evaluate_run_completion", setup("ship", files, status), json!({}), expected)
    };
    completion(
        json!({}),
        "fail",
        json!({ "action": "gate_failed", "reason": "requires_files predicate failed" }),
    );
    completion(
        json!({ "notes.md": "x" }),
        "fail",
        json!({ "action": "gate_failed", "reason": "requires_verification_pass predicate failed" }),
    );
    completion(
        json!({ "notes.md": "x" }),
        "pass",
        json!({ "action": "complete", "new_status": "completed" }),
    );
    passes(
        "evaluate_run_completion",
        setup("build", json!({}), "pass"),
        json!({}),
        json!({ "action": "not_final_phase", "state_unchanged": true }),
    );
}

#[test]
fn records_are_asked() {
    let turn = json!({ "turn_1": { "role": "dev", "runtime_id": "manual" } });
    let mut active = state("active", "build");
    active["active_turns"] = turn;
    let result = json!({
        "schema_version": "1.0", "turn_id": "turn_1", "role": "dev", "runtime_id": "manual", "status": "completed",
        "summary": "s", "decisions": [], "objections": [], "files_changed": ["a"], "verification": { "status": "skipped" },
        "artifact": { "type": "workspace" }, "proposed_next_role": "human",
    });
    let setup =
        |result: &Value| json!({ "state": active, "config": config(), "turn_result": result, "history": [] });
    passes("validate_turn_result", setup(&result), json!({}), json!({ "result": "success", "errors": [] }));
    passes(
        "accept_turn",
        setup(&result),
        json!({ "turn_id": "turn_1" }),
        json!({ "result": "success", "history_length": 1, "state": { "accepted_sequence": 1, "active_turns": {} } }),
    );
    let mut reserved = result.clone();
    reserved["files_changed"] = json!([".agentxchain/history.jsonl"]);
    let refused = json!({ "failed_stage": "artifact", "error_type": "reserved_path_violation", "error_path": ".agentxchain/history.jsonl" });
    passes("validate_turn_result", setup(&reserved), json!({}), refused);
    let known = json!({ "state": state("active", "build"), "config": config(), "history": [{ "turn_id": "turn_1", "run_id": "run_1" }] });
    passes(
        "accept_turn",
        known,
        json!({ "turn_id": "turn_1" }),
        json!({ "error_type": "turn_already_accepted", "history_length": 1 }),
    );
    let decision = |id: &str, statement: &str| json!({ "entry": { "id": id, "statement": statement, "category": "scope" } });
    let ledger = json!({ "ledger": [{ "id": "DEC-001" }] });
    let append = |args: Value, expected: Value| passes("append_decision", ledger.clone(), args, expected);
    append(
        decision("DEC-002", "s"),
        json!({ "result": "success", "ledger_length": 2, "ledger_last_entry": { "id": "DEC-002" } }),
    );
    append(
        decision("DEC-001", "s"),
        json!({ "error_type": "duplicate_decision_id", "duplicate_id": "DEC-001", "ledger_length": 1 }),
    );
    append(decision("decision", "s"), json!({ "error_type": "invalid_decision_id_format" }));
    append(
        decision("DEC-003", " "),
        json!({ "error_type": "empty_required_field", "error_field": "statement" }),
    );
    let event = |kind: &str, at: &str| json!({ "event_id": "e", "event_type": kind, "timestamp": at, "turn": { "turn_id": "t" } });
    let wrong = json!({ "result": "error", "error_type": "ordering_violation" });
    for events in [
        json!([event("turn_dispatched", "2026-01-01T00:00:00Z")]),
        json!([event("run_started", "2026-01-01T00:00:00Z"), event("turn_accepted", "2026-01-01T00:00:01Z")]),
        json!([
            event("run_started", "2026-01-01T00:00:01Z"),
            event("turn_dispatched", "2026-01-01T00:00:00Z")
        ]),
    ] {
        passes("validate_event_ordering", json!({}), json!({ "events": events }), wrong.clone());
    }
    passes(
        "validate_event",
        json!({}),
        json!({ "event": event("invented", "2026-01-01T00:00:00Z") }),
        json!({ "error_type": "invalid_event" }),
    );
}

#[test]
fn configurations_bundles_and_hooks_are_asked() {
    let args = |key: &str, value: Value| {
        let mut config = config();
        config["routing"]["build"][key] = value;
        json!({ "config": config })
    };
    let wrong = |field: &str, kind: &str, key: &str| json!({ "result": "error", "error_type": kind, "error_field": field, key: "ghost" });
    passes(
        "validate_config",
        json!({}),
        args("entry_role", json!("ghost")),
        wrong("routing.build.entry_role", "undeclared_role_reference", "referenced_role"),
    );
    passes(
        "validate_config",
        json!({}),
        args("exit_gate", json!("ghost")),
        wrong("routing.build.exit_gate", "undeclared_gate_reference", "referenced_gate"),
    );
    passes(
        "validate_config",
        json!({}),
        args("max_concurrent_turns", json!(0)),
        json!({ "error_type": "invalid_config" }),
    );
    passes(
        "validate_config",
        json!({}),
        args("max_concurrent_turns", json!(4)),
        json!({ "result": "success", "errors": [] }),
    );
    let bundle = |more: Value| {
        let mut setup = json!({ "state": state("active", "build"), "config": config(), "dispatch_bundle": { "t": { "a.md": "text", "deep/b.md": "b" } } });
        setup.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        setup
    };
    let id = json!({ "turn_id": "t" });
    let verify =
        |more: Value, expected: Value| passes("verify_dispatch_manifest", bundle(more), id.clone(), expected);
    verify(json!({}), json!({ "manifest_valid": true, "verification_errors": [] }));
    verify(json!({ "post_finalize_delete_manifest": true }), json!({ "error_type": "missing_manifest" }));
    verify(
        json!({ "post_finalize_corrupt_manifest": { "t": { "no": "manifest" } } }),
        json!({ "error_type": "invalid_manifest" }),
    );
    verify(
        json!({ "post_finalize_tamper": { "t": { "deep/b.md": "longer" } } }),
        json!({ "verification_errors": [{ "type": "size_mismatch", "path": "deep/b.md" }, { "type": "digest_mismatch" }] }),
    );
    verify(json!({ "post_finalize_delete": { "t": ["a.md"] } }), json!({ "error_type": "missing_file" }));
    let escape = json!({ "t": { "manifest_version": "1.0", "files": [{ "path": "../../index.json" }] } });
    verify(json!({ "post_finalize_corrupt_manifest": escape }), json!({ "error_type": "invalid_manifest" }));
    passes(
        "inspect_dispatch_manifest",
        bundle(json!({})),
        id,
        json!({ "manifest_contains_self": false, "file_paths": ["a.md", "deep/b.md"] }),
    );
    let hook = json!({ "name": "h", "type": "http", "url": "http://127.0.0.1:1/", "method": "POST", "mode": "blocking", "timeout_ms": 1000 });
    let mut hooked = config();
    hooked["hooks"] = json!({ "before_gate": [hook] });
    let expected = json!({ "hook_ok": false, "blocked": true, "audit_entry": { "transport": "http", "orchestrator_action": "blocked_failure", "exit_code": 1 } });
    passes(
        "run_hooks",
        json!({ "state": state("active", "build"), "config": hooked }),
        json!({ "phase": "before_gate", "payload": {} }),
        expected,
    );
}

#[test]
fn the_coordinator_is_asked() {
    let stream = |barrier: &str, needs: Value| json!({ "phase": "qa", "repos": ["a", "b"], "entry_repo": "a", "depends_on": needs, "completion_barrier": barrier });
    let config = |streams: Value| {
        json!({ "coordinator_config": {
        "schema_version": "0.1", "project": { "id": "p", "name": "P" }, "repos": { "a": { "path": "./a" }, "b": { "path": "./b" } }, "workstreams": streams,
    } })
    };
    let barrier = "all_repos_accepted";
    passes(
        "validate_coordinator_config",
        config(json!({ "x": stream(barrier, json!([])) })),
        json!({}),
        json!({ "result": "success", "errors": [] }),
    );
    let cycle = json!({ "x": stream(barrier, json!(["y"])), "y": stream(barrier, json!(["x"])) });
    passes(
        "validate_coordinator_config",
        config(cycle),
        json!({}),
        json!({ "error_type": "workstream_cycle" }),
    );
    passes(
        "validate_coordinator_config",
        config(json!({ "x": stream("none", json!([])) })),
        json!({}),
        json!({ "error_type": "invalid_coordinator_config" }),
    );
    let project = |kind: &str, repo: &str, decisions: Value, more: Value, effects: Value| {
        let mut setup = config(json!({ "x": stream(kind, json!([])) }));
        setup["barriers"] = json!({ "x_barrier": { "type": kind, "workstream_id": "x", "status": "pending", "required_repos": ["a", "b"] } });
        setup["barriers"]["x_barrier"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        setup["coordinator_history"] = json!([{ "type": "acceptance_projection", "workstream_id": "x", "repo_id": "b", "decisions": ["DEC-002"] }]);
        let turn = json!({ "turn_id": "t", "files_changed": ["src/x"], "decisions": decisions });
        let args = json!({ "repo_id": repo, "workstream_id": "x", "accepted_turn": turn });
        passes(
            "project_repo_acceptance",
            setup,
            args,
            json!({ "result": "success", "barrier_effects": effects }),
        );
    };
    let to = |status: &str| json!([{ "barrier_id": "x_barrier", "previous_status": "pending", "new_status": status }]);
    project(barrier, "a", json!([]), json!({}), to("satisfied"));
    project("ordered_repo_sequence", "b", json!([]), json!({}), to("partially_satisfied"));
    project("ordered_repo_sequence", "a", json!([]), json!({}), to("satisfied"));
    let ids = json!({ "required_decision_ids_by_repo": { "a": ["DEC-001"], "b": ["DEC-002"] } });
    project("interface_alignment", "a", json!([{ "id": "DEC-001" }]), ids.clone(), to("satisfied"));
    project("named_decisions", "a", json!([]), ids, to("partially_satisfied"));
    project("shared_human_gate", "a", json!([]), json!({}), json!([]));
    let satisfied = json!({ "status": "satisfied" });
    project("named_decisions", "a", json!([]), satisfied, json!([]));
}

/// A review that objects to nothing: at the last stage, by this name, in the corpus's own words; and no error where
/// the rule is off, or another role's.
#[test]
fn a_review_without_objections_breaks_the_rule_of_challenges() {
    let validated = |challenge: Option<bool>, role: &str, objections: Value, stage: Value| {
        let mut config = config();
        if let Some(challenge) = challenge {
            config["rules"] = json!({ "challenge_required": challenge });
        }
        let setup = json!({
            "config": config,
            "state": {
                "status": "active", "phase": "build", "run_id": "run_1",
                "active_turns": { "turn_1": { "role": role, "runtime_id": "manual", "assigned_sequence": 1 } },
            },
        });
        let kind = if role == "qa" { "review" } else { "workspace" };
        let result = json!({
            "schema_version": "1.0", "run_id": "run_1", "turn_id": "turn_1", "role": role, "runtime_id": "manual",
            "status": "completed", "summary": "done", "decisions": [], "objections": objections,
            "files_changed": [], "verification": { "status": "pass" }, "artifact": { "type": kind },
            "proposed_next_role": stage,
        });
        judge("validate_turn_result", setup, json!({ "turn_result": result }), json!({ "result": "nothing" }))
            .0["actual"]
            .clone()
    };
    for challenge in [None, Some(true)] {
        let actual = validated(challenge, "qa", json!([]), json!("human"));
        assert_eq!(actual["error_type"], "challenge_requirement_violated", "{actual}");
        assert_eq!(actual["failed_stage"], "protocol", "{actual}");
        assert_eq!(actual["error_detail"], "review_only role must raise at least one objection", "{actual}");
    }
    // A stage before it comes first.
    let early = validated(None, "qa", json!([{ "id": "OBJ-1" }]), json!("human"));
    assert_eq!(early["failed_stage"], "schema", "{early}");
    let one = json!([{ "id": "OBJ-001", "severity": "low", "statement": "s" }]);
    for (challenge, role, objections) in
        [(None, "qa", one), (Some(false), "qa", json!([])), (None, "dev", json!([]))]
    {
        let actual = validated(challenge, role, objections, json!("human"));
        assert_eq!(actual["result"], "success", "{actual}");
    }
}

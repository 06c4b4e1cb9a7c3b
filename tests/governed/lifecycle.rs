//! What operations do and write: turns, gates, blocks, conflicts, budgets, formats (G3, G4).

use crate::rig::{Project, config};
use aynig::governed::*;
use serde_json::{Value, json};

#[test]
fn what_other_tools_wrote_survives_with_its_order_and_its_nulls() {
    let project = Project::new();
    let state = json!({
        "their_key": { "z": 1, "a": null }, "status": "idle", "phase": "plan", "run_id": null, "active_turns": {},
        "schema_version": "1.1", "project_id": "rig", "last": [null],
    });
    project.write(".agentxchain/state.json", &state.to_string());
    init_run(&project.root(), &project.config).unwrap();
    project.assign("pm");
    let text = std::fs::read_to_string(project.path().join(".agentxchain/state.json")).unwrap();
    assert!(text.starts_with(
        "{\n  \"their_key\": {\n    \"z\": 1,\n    \"a\": null\n  },\n  \"status\": \"active\",\n"
    ));
    assert!(
        text.ends_with("}\n")
            && text.contains("\n  \"blocked_on\": null,\n")
            && text.contains("\"last\": [\n    null\n  ]")
    );
    let turn = get_active_turn(&project.state()).unwrap();
    assert_eq!(turn.id().len(), "turn_".len() + 16);
    let keys: Vec<String> = turn.to_value().as_object().unwrap().keys().cloned().collect();
    for key in
        ["turn_id", "run_id", "assigned_role", "status", "attempt", "started_at", "deadline_at", "baseline"]
    {
        assert!(keys.iter().any(|k| k == key), "{key}");
    }
    let events = project.lines("events.jsonl");
    assert_eq!(events[0]["event_type"], "run_started");
    assert!(events[0].as_object().unwrap().contains_key("intent_id") && events[0]["turn"].is_null());
}

#[test]
fn an_acceptance_removes_its_own_folders_and_nothing_else() {
    let project = Project::begun();
    let turn = project.assign("pm");
    write_dispatch_bundle(&project.root(), &project.state(), &project.config, &BundleOptions::default())
        .unwrap();
    project.stage(&turn, json!({}));
    let others = [
        ".agentxchain/staging/turn_other/turn-result.json",
        ".agentxchain/staging/turn-result.json",
        ".agentxchain/dispatch/turns/turn_other/PROMPT.md",
        "src/undeclared.rs",
    ];
    for other in others {
        project.write(other, "kept");
    }
    project.accept(&turn).unwrap();
    assert!(!project.path().join(".agentxchain/staging").join(turn.id()).exists());
    assert!(!project.path().join(".agentxchain/dispatch/turns").join(turn.id()).exists());
    for other in others {
        assert_eq!(std::fs::read_to_string(project.path().join(other)).unwrap(), "kept", "{other}");
    }
    let events: Vec<Value> = project.lines("events.jsonl").iter().map(|e| e["event_type"].clone()).collect();
    assert_eq!(events, ["run_started", "turn_dispatched", "turn_accepted"]);
}

#[test]
fn one_counter_counts_assignments_and_acceptances() {
    let project = Project::begun();
    for round in 0..3 {
        let turn = project.assign("pm");
        assert_eq!(turn.assigned_sequence(), 2 * round + 1);
        project.stage(&turn, json!({}));
        let accepted = project.accept(&turn).unwrap();
        assert_eq!(accepted.accepted.accepted_sequence(), 2 * round + 2);
    }
    // The same id three times: the turns number their own decisions.
    assert_eq!(project.lines("decision-ledger.jsonl").len(), 3);
    assert!(project.lines("history.jsonl")[0].get("phase_transition_request").is_none());
}

#[test]
fn a_gate_that_fails_leaves_the_turn_accepted_and_the_phase_as_it_is() {
    let project = Project::begun();
    let turn = project.assign("pm");
    project.stage(&turn, json!({ "phase_transition_request": "build" }));
    let accepted = project.accept(&turn).unwrap();
    let gate = accepted.gate_result.unwrap();
    assert_eq!((gate.action, gate.missing_files), (GateAction::GateFailed, vec!["plan.md".to_owned()]));
    let state = project.raw_state();
    assert_eq!((state["phase"].as_str(), state["status"].as_str()), (Some("plan"), Some("active")));
    assert_eq!(state["last_gate_failure"]["gate_id"], "planned");
    assert_eq!(state["phase_gate_status"]["planned"], "failed");
    assert_eq!(project.lines("decision-ledger.jsonl")[1]["type"], "gate_failure");
    project.write("plan.md", "x");
    let turn = project.assign("pm");
    project.stage(&turn, json!({ "phase_transition_request": "build" }));
    project.accept(&turn).unwrap();
    let state = project.raw_state();
    assert_eq!((state["phase"].as_str(), &state["last_gate_failure"]), (Some("build"), &Value::Null));
}

/// A project in its second phase, where two turns may be active.
fn building() -> Project {
    let project = Project::begun();
    project.write("plan.md", "x");
    let turn = project.assign("pm");
    project.stage(&turn, json!({ "phase_transition_request": "build" }));
    project.accept(&turn).unwrap();
    project
}

#[test]
fn requests_wait_until_the_others_are_done() {
    let project = building();
    let (dev, ops) = (project.assign("dev"), project.assign("ops"));
    assert_eq!(ops.get("concurrent_with").unwrap(), &json!([dev.id()]));
    let more = assign_turn(&project.root(), &project.config, "pm").unwrap_err();
    assert!(matches!(more, GovernedError::Refused(Refusal::LimitReached { limit: 2 })));
    project.stage(&dev, json!({ "run_completion_request": true }));
    project.accept(&dev).unwrap();
    assert_eq!(project.raw_state()["queued_run_completion"]["requested_by_turn"], dev.id());
    project.stage(&ops, json!({}));
    let accepted = project.accept(&ops).unwrap();
    assert_eq!(accepted.completion_result.unwrap().requested_by, dev.id());
    assert_eq!(accepted.state.status(), Some(RunStatus::Paused));
    assert_eq!(accepted.state.pending_run_completion().unwrap().requested_by_turn(), dev.id());
    assert!(project.raw_state()["queued_run_completion"].is_null());
}

#[test]
fn a_conflict_is_written_down_and_tried_again_or_merged() {
    for merged in [false, true] {
        let project = building();
        let (dev, ops) = (project.assign("dev"), project.assign("ops"));
        project.stage(&dev, json!({ "files_changed": ["a", "b"] }));
        project.accept(&dev).unwrap();
        project.stage(&ops, json!({ "files_changed": ["b", "c", "d"] }));
        let error = project.accept(&ops).unwrap_err();
        let GovernedError::Conflict { conflict, .. } = &error else { panic!("{error}") };
        assert_eq!(conflict.conflicting_files, ["b"]);
        assert_eq!(conflict.suggested_resolution, "reject_and_reassign");
        let turn = project.state().turn(ops.id()).unwrap();
        assert_eq!(turn.status(), Some(TurnStatus::Conflicted));
        assert_eq!(project.lines("history.jsonl").len(), 2);
        if merged {
            let options = AcceptOptions { resolution: Resolution::HumanMerge, ..AcceptOptions::default() };
            let accepted = accept_turn(&project.root(), &project.config, &options).unwrap();
            assert_eq!(accepted.accepted.get("conflict_resolution").unwrap()["mode"], "human_merge");
        } else {
            let rejected =
                reject_turn(&project.root(), &project.config, &Rejection::default(), "conflict").unwrap();
            assert_eq!(rejected.turn.status(), Some(TurnStatus::Retrying));
            assert_eq!(rejected.turn.assigned_sequence(), project.state().turn_sequence());
            project.stage(&ops, json!({ "files_changed": ["b"] }));
            project.accept(&ops).unwrap();
        }
    }
}

#[test]
fn three_conflicts_ask_for_a_person() {
    let project = building();
    let (dev, ops) = (project.assign("dev"), project.assign("ops"));
    project.stage(&dev, json!({ "files_changed": ["a"] }));
    project.accept(&dev).unwrap();
    project.stage(&ops, json!({ "files_changed": ["a"] }));
    for _ in 0..3 {
        assert_eq!(project.accept(&ops).unwrap_err().code(), Some("conflict"));
    }
    assert_eq!(project.state().blocked_on(), Some(format!("human:conflict_loop:{}", ops.id()).as_str()));
}

#[test]
fn retries_that_are_used_up_block_the_run_and_reactivation_frees_the_turn() {
    let project = Project::begun();
    let turn = project.assign("pm");
    project.stage(&turn, json!({ "status": "odd" }));
    let error = project.accept(&turn).unwrap_err();
    let GovernedError::InvalidResult(validation) = error else { panic!("{error}") };
    assert_eq!(validation.stage, Some(Stage::Schema));
    let reject = || reject_turn(&project.root(), &project.config, &Rejection::default(), "no").unwrap();
    assert!(!reject().escalated);
    let last = reject();
    assert!(last.escalated && last.turn.status() == Some(TurnStatus::Failed));
    let state = project.state();
    assert_eq!(state.blocked_on(), Some("escalation:retries-exhausted:pm"));
    reactivate_run(&project.root(), &state, &Reactivation::default()).unwrap();
    let turn = get_active_turn(&project.state()).unwrap();
    assert_eq!((turn.status(), turn.attempt()), (Some(TurnStatus::Retrying), 3));
    assert_eq!(project.lines("decision-ledger.jsonl")[0]["decision"], "escalation_resolved");
    project.stage(&turn, json!({}));
    project.accept(&turn).unwrap();
}

#[test]
fn a_stale_view_reactivates_nothing() {
    let project = Project::begun();
    let block = Block { blocked_on: "human:x", category: "needs_human", ..Block::default() };
    let seen = mark_run_blocked(&project.root(), &block).unwrap().state;
    mark_run_blocked(&project.root(), &Block { blocked_on: "human:y", ..block }).unwrap();
    let error = reactivate_run(&project.root(), &seen, &Reactivation::default()).unwrap_err();
    assert!(matches!(error, GovernedError::StaleState));
}

#[test]
fn a_paused_run_with_nothing_pending_is_reactivated() {
    let project = Project::new();
    let paused = json!({ "schema_version": "1.1", "project_id": "rig", "run_id": "run_1", "status": "paused", "phase": "plan", "active_turns": {}, "turn_sequence": 0 });
    project.write(".agentxchain/state.json", &paused.to_string());
    let state = project.state();
    assert_eq!(
        reactivate_run(&project.root(), &state, &Reactivation::default()).unwrap().state.status(),
        Some(RunStatus::Active)
    );
}

#[test]
fn a_budget_is_reserved_spent_and_exhausted() {
    let mut config = config();
    config["budget"] = json!({ "per_turn_max_usd": 2, "per_run_max_usd": 3 });
    let project = Project::with(config);
    init_run(&project.root(), &project.config).unwrap();
    let turn = project.assign("pm");
    assert_eq!(project.raw_state()["budget_reservations"][turn.id()]["reserved_usd"], 2);
    project.stage(&turn, json!({ "cost": { "usd": 1.1 } }));
    project.accept(&turn).unwrap();
    assert_eq!(project.raw_state()["budget_status"], json!({ "spent_usd": 1.1, "remaining_usd": 1.9 }));
    let error = assign_turn(&project.root(), &project.config, "pm").unwrap_err();
    assert!(matches!(error, GovernedError::Refused(Refusal::BudgetReserved { .. })));
    let mut config = project.config.to_value();
    config["budget"]["per_turn_max_usd"] = json!(1);
    let config = Config::from_value(config).unwrap();
    let turn = assign_turn(&project.root(), &config, "pm").unwrap().turn;
    project.stage(&turn, json!({ "cost": { "usd": 5 } }));
    project.accept(&turn).unwrap();
    assert_eq!(project.state().blocked_on(), Some("budget:exhausted"));
}

#[test]
fn a_turn_that_needs_a_person_blocks_the_run() {
    let project = Project::begun();
    let turn = project.assign("pm");
    project.stage(&turn, json!({ "status": "needs_human", "needs_human_reason": "which colour?" }));
    let accepted = project.accept(&turn).unwrap();
    assert_eq!(accepted.state.blocked_on(), Some("human:which colour?"));
    assert_eq!(accepted.state.blocked_reason().unwrap()["category"], "needs_human");
}

#[test]
fn slips_are_mended_and_told_and_what_is_missing_is_refused() {
    let project = Project::begun();
    let turn = project.assign("pm");
    let wrong = json!({ "run_id": "run_other", "decisions": [{ "id": "my-first", "category": "scope", "statement": "s", "rationale": "r" }] });
    project.stage(&turn, wrong);
    let accepted = project.accept(&turn).unwrap();
    assert_eq!(Some(accepted.accepted.run_id()), project.state().run_id());
    assert_eq!(accepted.accepted.decisions()[0].id(), "DEC-001");
    assert!(accepted.validation.warnings.len() >= 2, "{:?}", accepted.validation.warnings);
    let turn = project.assign("pm");
    let mut result = project.result(&turn);
    result.as_object_mut().unwrap().remove("summary");
    project.write(get_turn_staging_result_path(turn.id()), &result.to_string());
    let GovernedError::InvalidResult(validation) = project.accept(&turn).unwrap_err() else { panic!() };
    assert_eq!(validation.errors, ["summary is missing"]);
}

#[test]
fn results_are_judged_stage_by_stage() {
    let project = Project::begun();
    let turn = project.assign("pm");
    let evidence = json!({ "status": "pass", "machine_evidence": [{ "command": "make", "exit_code": 2 }] });
    let cases = [
        (json!({ "status": "done" }), Stage::Schema),
        (json!({ "summary": "<what you did>" }), Stage::Schema),
        (json!({ "objections": [{ "id": "1", "severity": "low", "statement": "s" }] }), Stage::Schema),
        (json!({ "role": "dev" }), Stage::Assignment),
        (json!({ "turn_id": "turn_other" }), Stage::Assignment),
        (json!({ "files_changed": ["src/a.rs"] }), Stage::Artifact),
        (json!({ "files_changed": [".planning/../.agentxchain/./state.json"] }), Stage::Artifact),
        (json!({ "artifact": { "type": "workspace" } }), Stage::Artifact),
        (json!({ "verification": evidence }), Stage::Verification),
        (json!({ "proposed_next_role": "ops" }), Stage::Protocol),
        (json!({ "phase_transition_request": "ship" }), Stage::Protocol),
        (json!({ "phase_transition_request": "build", "run_completion_request": true }), Stage::Protocol),
    ];
    for (more, stage) in cases {
        project.stage(&turn, more.clone());
        let GovernedError::InvalidResult(validation) = project.accept(&turn).unwrap_err() else {
            panic!("{more}")
        };
        assert_eq!(validation.stage, Some(stage), "{more}: {:?}", validation.errors);
    }
    project.stage(&turn, json!({}));
    project.accept(&turn).unwrap();
}

#[test]
fn the_flat_place_is_read_and_another_turns_file_there_is_stale() {
    let project = Project::begun();
    let turn = project.assign("pm");
    let mut result = project.result(&turn);
    project.write(".agentxchain/staging/turn-result.json", &result.to_string());
    project.accept(&turn).unwrap();
    let next = project.assign("pm");
    assert_eq!(project.accept(&next).unwrap_err().code(), Some("stale_staging"));
    result["turn_id"] = json!(next.id());
    project.write(".agentxchain/staging/turn-result.json", &result.to_string());
    project.accept(&next).unwrap();
}

#[test]
fn delegated_work_is_queued_done_and_reviewed() {
    let project = building();
    let dev = project.assign("dev");
    let delegation = json!({ "id": "del-001", "to_role": "ops", "charter": "c", "acceptance_contract": ["x"], "required_decision_ids": ["DEC-007"] });
    project.stage(&dev, json!({ "delegations": [delegation] }));
    project.accept(&dev).unwrap();
    assert_eq!(project.state().next_recommended_role(), Some("ops"));
    let ops = project.assign("ops");
    assert_eq!(ops.get("delegation_context").unwrap()["parent_turn_id"], dev.id());
    project.stage(&ops, json!({}));
    project.accept(&ops).unwrap();
    assert_eq!(project.state().next_recommended_role(), Some("dev"));
    let review = project.assign("dev");
    project.stage(&review, json!({ "run_completion_request": true }));
    let GovernedError::InvalidResult(validation) = project.accept(&review).unwrap_err() else { panic!() };
    assert!(validation.errors[0].contains("DEC-007"), "{:?}", validation.errors);
    project.stage(&review, json!({}));
    project.accept(&review).unwrap();
    assert!(project.raw_state()["pending_delegation_review"].is_null());
}

#[test]
fn a_configuration_is_found_from_below_checked_and_normalized() {
    let project = Project::new();
    let below = project.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    let context = load_context(&Root::new(&below)).unwrap();
    assert_eq!(std::fs::canonicalize(project.path()).unwrap(), context.root.folder());
    assert_eq!(context.config.get("schema_version"), Some(&json!(4)));
    assert_eq!(context.config.phases(), ["plan", "build"]);
    assert_eq!(get_max_concurrent_turns(&context.config, "build"), 2);
    assert_eq!(get_max_concurrent_turns(&context.config, "plan"), 1);
    let mut wrong = config();
    wrong["routing"]["plan"]["entry_role"] = json!("ghost");
    wrong["roles"]["pm"]["title"] = json!(" ");
    project.write("agentxchain.json", &wrong.to_string());
    let GovernedError::InvalidConfig { errors, .. } = load_context(&Root::new(&below)).unwrap_err() else {
        panic!()
    };
    assert_eq!(errors.len(), 2, "{errors:?}");
    project.write("agentxchain.json", "{");
    assert!(matches!(load_context(&Root::new(&below)), Err(GovernedError::UnreadableConfig { .. })));
}

#[test]
fn a_bundle_is_for_a_turn_that_is_active_now() {
    let project = Project::begun();
    let turn = project.assign("pm");
    let state = project.state();
    let bundle =
        write_dispatch_bundle(&project.root(), &state, &project.config, &BundleOptions::default()).unwrap();
    let assignment: Value =
        serde_json::from_slice(&std::fs::read(bundle.path.join("ASSIGNMENT.json")).unwrap()).unwrap();
    assert_eq!(
        assignment["staging_result_path"],
        format!(".agentxchain/staging/{}/turn-result.json", turn.id())
    );
    assert_eq!(assignment["write_authority"], "review_only");
    assert!(assignment["budget_reservation_usd"].is_null());
    project.write(".agentxchain/dispatch/index.json", "{}");
    project.stage(&turn, json!({}));
    project.accept(&turn).unwrap();
    let late = write_dispatch_bundle(&project.root(), &state, &project.config, &BundleOptions::default())
        .unwrap_err();
    assert_eq!(late.code(), Some("not_found"));
}

#[test]
fn policies_warn_refuse_and_escalate() {
    let policy = |id: &str, action: &str| json!({ "id": id, "rule": "max_cost_per_turn", "action": action, "params": { "limit_usd": 1 } });
    for (action, code) in
        [("warn", None), ("block", Some("policy_violation")), ("escalate", Some("policy_escalation"))]
    {
        let mut config = config();
        config["policies"] = json!([policy("cheap", action)]);
        let project = Project::with(config);
        assert!(load_context(&project.root()).is_ok());
        init_run(&project.root(), &project.config).unwrap();
        let turn = project.assign("pm");
        project.stage(&turn, json!({ "cost": { "usd": 2 } }));
        let before = project.files();
        match project.accept(&turn) {
            Ok(accepted) => assert!(accepted.validation.warnings.iter().any(|w| w.contains("cheap"))),
            Err(error) => assert_eq!(error.code(), code),
        }
        match action {
            "block" => assert_eq!(project.files(), before),
            "escalate" => assert_eq!(project.state().blocked_on(), Some("policy:cheap")),
            _ => assert_eq!(project.lines("history.jsonl").len(), 1),
        }
    }
    let mut config = config();
    config["policies"] = json!([{ "id": "x", "rule": "no_such", "action": "block" }]);
    assert!(load_context(&Project::with(config).root()).is_err());
}

#[test]
fn policies_count_turns() {
    let mut config = config();
    let policy = |id: &str, rule: &str, limit: u64| json!({ "id": id, "rule": rule, "action": "block", "params": { "limit": limit } });
    config["policies"] =
        json!([policy("row", "max_consecutive_same_role", 2), policy("all", "max_total_turns", 9)]);
    let project = Project::with(config);
    init_run(&project.root(), &project.config).unwrap();
    for wanted in [None, None, Some("policy_violation")] {
        let turn = project.assign("pm");
        project.stage(&turn, json!({}));
        assert_eq!(project.accept(&turn).err().and_then(|error| error.code()), wanted);
    }
}

#[test]
fn decisions_of_the_repository_are_overridden_by_who_may() {
    let mut config = config();
    config["roles"]["pm"]["decision_authority"] = json!(50);
    config["roles"]["dev"]["decision_authority"] = json!(10);
    config["routing"]["plan"]["allowed_next_roles"] = json!(["pm", "dev"]);
    let project = Project::with(config);
    init_run(&project.root(), &project.config).unwrap();
    let decision = |id: &str, overrides: Value| json!([{ "id": id, "category": "scope", "statement": "s", "rationale": "r", "durability": "repo", "overrides": overrides }]);
    let turn = project.assign("pm");
    project.stage(&turn, json!({ "decisions": decision("DEC-001", Value::Null) }));
    project.accept(&turn).unwrap();
    let dev = project.assign("dev");
    for missing_or_higher in ["DEC-009", "DEC-001"] {
        project.stage(&dev, json!({ "decisions": decision("DEC-002", json!(missing_or_higher)) }));
        let before = project.files();
        assert_eq!(project.accept(&dev).unwrap_err().code(), Some("override_validation_failed"));
        assert_eq!(project.files(), before);
    }
    project.stage(&dev, json!({}));
    project.accept(&dev).unwrap();
    let pm = project.assign("pm");
    project.stage(&pm, json!({ "decisions": decision("DEC-002", json!("DEC-001")) }));
    project.accept(&pm).unwrap();
    let all = project.lines("repo-decisions.jsonl");
    assert_eq!(
        (all[0]["status"].as_str(), all[0]["overridden_by"].as_str()),
        (Some("overridden"), Some("DEC-002"))
    );
    assert_eq!(all[1]["status"], "active");
}

#[test]
fn artifacts_of_the_workflow_kit_are_demanded_by_the_gate() {
    let mut config = config();
    let artifact = json!({ "path": "design.md", "semantics": "section_check", "semantics_config": { "required_sections": ["## Why"] }, "owned_by": "pm" });
    config["workflow_kit"] = json!({ "phases": { "plan": { "artifacts": [artifact] } } });
    let project = Project::with(config);
    init_run(&project.root(), &project.config).unwrap();
    project.write("plan.md", "x");
    let ask = || {
        let turn = project.assign("pm");
        project.stage(&turn, json!({ "phase_transition_request": "build" }));
        project.accept(&turn).unwrap().gate_result.unwrap()
    };
    assert_eq!(ask().missing_files, ["design.md"]);
    project.write("design.md", "## Why\n\n(say why)\n\n## How\n\nso\n");
    assert_eq!(ask().failing_files, ["design.md"]);
    project.write("design.md", "## Why\n\nbecause\n");
    // A turn of an earlier run, as the history has it still, is none of this one.
    let history = project.path().join(".agentxchain/history.jsonl");
    let (id, now) =
        (project.state().run_id().unwrap().to_owned(), std::fs::read_to_string(&history).unwrap());
    std::fs::write(&history, now.replace(&id, "run_0123456789abcdef")).unwrap();
    let result = ask();
    assert!(result.reasons.iter().any(|why| why.contains("which has no accepted turn")), "{result:?}");
    assert_eq!(ask().action, GateAction::Advance);
}

#[test]
fn a_turn_that_the_history_has_is_not_accepted_whatever_the_state_says() {
    let project = Project::begun();
    let turn = project.assign("pm");
    let state = std::fs::read(project.path().join(".agentxchain/state.json")).unwrap();
    project.stage(&turn, json!({}));
    project.accept(&turn).unwrap();
    std::fs::write(project.path().join(".agentxchain/state.json"), state).unwrap();
    project.stage(&turn, json!({}));
    let before = project.files();
    assert_eq!(project.accept(&turn).unwrap_err().code(), Some("turn_already_accepted"));
    assert_eq!(project.files(), before);
}

/// G4: what asks for the active turns finds each by its id, in the order of assignment.
#[test]
fn active_turns_are_a_map_in_the_order_of_assignment() {
    let mut config = config();
    config["routing"]["plan"]["max_concurrent_turns"] = json!(3);
    config["routing"]["plan"]["allowed_next_roles"] = json!(["pm", "dev", "ops"]);
    let project = Project::with(config);
    init_run(&project.root(), &project.config).unwrap();
    let assigned: Vec<Turn> = ["pm", "ops", "dev"].map(|role| project.assign(role)).into();
    let turns = get_active_turns(&project.state());
    assert_eq!(turns.values().cloned().collect::<Vec<_>>(), assigned);
    assert!(assigned.iter().all(|turn| turns.get(turn.id()) == Some(turn)), "{turns:?}");
}

/// G4: a state is held to the configuration that it is loaded with.
#[test]
fn a_run_in_a_phase_that_nobody_configured_is_not_loaded() {
    let project = Project::begun();
    let renamed = config().to_string().replace("\"plan\"", "\"design\"");
    let renamed = Config::from_value(serde_json::from_str(&renamed).unwrap()).unwrap();
    let before = project.files();
    match load_state(&project.root(), &renamed).unwrap_err() {
        GovernedError::InvalidState { errors, .. } => {
            assert!(errors.len() == 1 && errors[0].contains("phase 'plan'"), "{errors:?}");
        }
        other => panic!("{other}"),
    }
    assert_eq!(project.files(), before);
    assert!(load_state(&project.root(), &project.config).is_ok());
}

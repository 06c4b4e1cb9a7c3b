//! Hooks: real programs, all twelve actions, tampering undone, hanging ones ended with their children (G5).

use crate::rig::{LONG, Project, config};
use aynig::governed::*;
use serde_json::{Value, json};
use std::time::Instant;

fn hook(name: &str, mode: &str, script: &str) -> Value {
    json!({ "name": name, "type": "process", "mode": mode, "timeout_ms": 10_000, "command": ["sh", "-c", script] })
}

fn run(project: &Project, phase: HookPhase, hooks: Vec<Value>) -> HookReport {
    let hooks = json!({ phase.name(): hooks });
    let options = HookOptions {
        run_id: Some("run_1".into()),
        turn_id: Some("turn_1".into()),
        ..HookOptions::default()
    };
    run_hooks(&project.root(), Some(&hooks), phase, &json!({ "k": "v" }), &options).unwrap()
}

fn action(report: &HookReport, at: usize) -> &str {
    report.results[at]["orchestrator_action"].as_str().unwrap()
}

fn says(verdict: &str) -> String {
    format!("echo '{{\"verdict\":\"{verdict}\",\"message\":\"because\"}}'")
}

#[test]
fn every_ending_of_a_hook_has_its_action() {
    let project = Project::begun();
    let tamper = "echo '{}' > .agentxchain/state.json; echo '{\"verdict\":\"allow\"}'";
    let cases: Vec<(&str, &str, String, Value, bool)> = vec![
        ("continued", "blocking", says("allow"), json!("allow"), true),
        ("warned", "blocking", says("warn"), json!("warn"), true),
        ("blocked", "blocking", says("block"), json!("block"), false),
        ("downgraded_block_to_warn", "advisory", says("block"), json!("warn"), true),
        ("blocked_failure", "blocking", "exit 3".into(), json!("block"), false),
        ("warned_failure", "advisory", "exit 3".into(), json!("warn"), true),
        ("blocked_timeout", "blocking", "sleep 60".into(), json!("block"), false),
        ("warned_timeout", "advisory", "sleep 60".into(), json!("warn"), true),
        ("blocked_invalid_output", "blocking", "echo hello".into(), json!("block"), false),
        ("warned_invalid_output", "advisory", "echo '{\"verdict\":\"maybe\"}'".into(), json!("warn"), true),
        ("aborted_tamper", "advisory", tamper.into(), Value::Null, false),
    ];
    for (wanted, mode, script, verdict, ok) in cases {
        let before = project.raw_state();
        let mut own = hook("it", mode, &script);
        if wanted.ends_with("timeout") {
            own["timeout_ms"] = json!(150);
        }
        let report =
            run(&project, HookPhase::BeforeGate, vec![own, hook("next", "blocking", &says("allow"))]);
        assert_eq!(action(&report, 0), wanted);
        assert_eq!(report.results[0]["verdict"], verdict, "{wanted}");
        assert_eq!(report.ok, ok, "{wanted}");
        assert_eq!(report.blocked, !ok && wanted != "aborted_tamper", "{wanted}");
        assert_eq!(report.results[0]["timed_out"], wanted.ends_with("timeout"), "{wanted}");
        match (ok, wanted) {
            (true, _) => assert_eq!(action(&report, 1), "continued"),
            (false, "aborted_tamper") => assert_eq!(report.results.len(), 1),
            (false, _) => {
                assert_eq!(action(&report, 1), "skipped");
                assert_eq!(report.results[1]["duration_ms"], 0);
                assert!(
                    report.results[1].get("transport").is_none() && report.results[1]["exit_code"].is_null()
                );
            }
        }
        assert_eq!(project.raw_state(), before, "{wanted}: what was changed is put back");
    }
    let audit = project.lines("hook-audit.jsonl");
    assert_eq!(audit.len(), 21);
    let keys: Vec<&str> = audit[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "timestamp",
            "hook_phase",
            "hook_name",
            "transport",
            "run_id",
            "turn_id",
            "duration_ms",
            "verdict",
            "message",
            "annotations",
            "exit_code",
            "timed_out",
            "stderr_excerpt",
            "orchestrator_action"
        ]
    );
}

#[test]
fn every_protected_file_is_put_back_removed_and_created_ones_too() {
    let project = Project::begun();
    project.write(".agentxchain/decision-ledger.jsonl", "{}\n");
    project.write(".agentxchain/dispatch/turns/t/PROMPT.md", "do it\n");
    let codes = [
        ("rm .agentxchain/state.json", "hook_state_tamper"),
        ("echo x >> .agentxchain/history.jsonl", "hook_history_tamper"),
        (
            "rm .agentxchain/decision-ledger.jsonl; mkdir .agentxchain/decision-ledger.jsonl",
            "hook_ledger_tamper",
        ),
        ("echo more >> .agentxchain/dispatch/turns/t/PROMPT.md", "hook_bundle_tamper"),
    ];
    for (script, code) in codes {
        let mut before = project.files();
        let hooks =
            json!({ "after_dispatch": [hook("bad", "advisory", &format!("{script}; {}", says("allow")))] });
        let options = HookOptions {
            protected_paths: vec![".agentxchain/dispatch/turns/t/PROMPT.md".into()],
            ..HookOptions::default()
        };
        let report =
            run_hooks(&project.root(), Some(&hooks), HookPhase::AfterDispatch, &json!({}), &options).unwrap();
        assert_eq!(report.stop.unwrap().tamper, Some(code));
        let mut after = project.files();
        for files in [&mut before, &mut after] {
            files.retain(|path, _| !path.ends_with("hook-audit.jsonl"));
        }
        assert_eq!(before, after, "{script}");
    }
}

#[test]
fn a_hanging_hook_is_ended_on_time_with_its_children() {
    let project = Project::begun();
    let mut hanging = hook("hangs", "blocking", "echo $$ > group; sleep 600 & sleep 600 & wait; wait");
    hanging["timeout_ms"] = json!(2000);
    let report = run(&project, HookPhase::BeforeGate, vec![hanging]);
    assert_eq!(action(&report, 0), "blocked_timeout");
    let group: i32 = std::fs::read_to_string(project.path().join("group")).unwrap().trim().parse().unwrap();
    let is_gone = || {
        let nobody = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), None).is_err();
        // What is dead and not yet reaped by init is gone as well.
        nobody || !alive_in(group)
    };
    let until = Instant::now() + LONG;
    while !is_gone() {
        assert!(Instant::now() < until, "a child of the hook lives on");
        std::thread::yield_now();
    }
}

fn alive_in(group: i32) -> bool {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.into_iter().any(|stat| {
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        fields.get(2) == Some(&group.to_string().as_str()) && !["Z", "X"].contains(&fields[0])
    })
}

#[test]
fn a_hook_is_told_what_it_is_about_and_need_not_listen() {
    let project = Project::begun();
    let script = "cat > envelope; echo \"$AGENTXCHAIN_HOOK_PHASE $AGENTXCHAIN_HOOK_NAME $AGENTXCHAIN_RUN_ID $OWN\" > told; pwd > where; echo noise >&2; echo '{\"verdict\":\"allow\",\"annotations\":[{\"key\":\"k\",\"value\":\"v\"},{\"key\":\"No\",\"value\":\"v\"}]}'";
    let mut listens = hook("listens", "advisory", script);
    listens["env"] = json!({ "OWN": "mine" });
    let deaf = hook("deaf", "advisory", &format!("exec <&-; {}", says("allow")));
    let report = run(&project, HookPhase::AfterAcceptance, vec![listens, deaf]);
    assert_eq!((action(&report, 0), action(&report, 1)), ("continued", "continued"));
    assert_eq!(report.results[0]["stderr_excerpt"], "noise\n");
    let read = |name: &str| std::fs::read_to_string(project.path().join(name)).unwrap();
    assert_eq!(read("told").trim(), "after_acceptance listens run_1 mine");
    assert_eq!(
        std::fs::canonicalize(read("where").trim()).unwrap(),
        std::fs::canonicalize(project.path()).unwrap()
    );
    let envelope: Value = serde_json::from_str(&read("envelope")).unwrap();
    assert_eq!(
        (envelope["hook_phase"].as_str(), envelope["payload"]["k"].as_str()),
        (Some("after_acceptance"), Some("v"))
    );
    let notes = project.lines("hook-annotations.jsonl");
    assert_eq!(notes[0]["annotations"], json!([{ "key": "k", "value": "v" }]));
    assert_eq!(notes[0]["turn_id"], "turn_1");
}

fn with_hooks(hooks: Value) -> Project {
    let mut config = config();
    config["hooks"] = hooks;
    let project = Project::with(config);
    init_run(&project.root(), &project.config).unwrap();
    project
}

#[test]
fn a_no_to_an_assignment_leaves_the_run_active() {
    let project = with_hooks(json!({ "before_assignment": [hook("no", "blocking", &says("block"))] }));
    let error = assign_turn(&project.root(), &project.config, "pm").unwrap_err();
    assert_eq!(error.code(), Some("hook_blocked"));
    assert_eq!(project.state().status(), Some(RunStatus::Active));
    assert_eq!(get_active_turn_count(&project.state()), 0);
}

#[test]
fn hooks_around_an_acceptance_block_the_run_and_keep_the_turn() {
    for phase in ["before_validation", "after_validation", "before_acceptance"] {
        let project = with_hooks(json!({ phase: [hook("no", "blocking", &says("block"))] }));
        let turn = project.assign("pm");
        project.stage(&turn, json!({}));
        let error = project.accept(&turn).unwrap_err();
        assert_eq!(error.code(), Some("hook_blocked"), "{phase}");
        let state = project.state();
        assert_eq!(state.blocked_on(), Some(format!("hook:{phase}:no").as_str()));
        assert!(state.turn(turn.id()).is_some() && project.lines("history.jsonl").is_empty());
        reactivate_run(&project.root(), &state, &Reactivation::default()).unwrap();
    }
}

#[test]
fn an_acceptance_stands_whatever_the_hooks_after_it_do() {
    let tamper = "rm .agentxchain/history.jsonl; echo '{\"verdict\":\"allow\"}'";
    let project = with_hooks(json!({ "after_acceptance": [hook("bad", "advisory", tamper)] }));
    let turn = project.assign("pm");
    project.stage(&turn, json!({}));
    let accepted = project.accept(&turn).unwrap();
    assert_eq!(project.lines("history.jsonl").len(), 1);
    let stop = accepted.hook_results.unwrap().stop.unwrap();
    assert_eq!(stop.tamper, Some("hook_history_tamper"));
    assert_eq!(project.state().blocked_on(), Some("hook:after_acceptance:bad"));
}

#[test]
fn a_gate_that_a_hook_holds_stays_pending() {
    let project = with_hooks(
        json!({ "before_gate": [hook("no", "blocking", "test -e ok && echo '{\"verdict\":\"allow\"}'")] }),
    );
    project.write("plan.md", "x");
    let turn = project.assign("pm");
    project.stage(&turn, json!({ "phase_transition_request": "build" }));
    project.accept(&turn).unwrap();
    let turn = project.assign("dev");
    project.stage(&turn, json!({ "run_completion_request": true }));
    project.accept(&turn).unwrap();
    assert_eq!(
        approve_completion_gate(&project.root(), &project.config).unwrap_err().code(),
        Some("hook_blocked")
    );
    let state = project.state();
    assert_eq!(state.blocked_on(), Some("hook:before_gate:no"));
    assert!(state.pending_run_completion().is_some());
    project.write("ok", "");
    approve_completion_gate(&project.root(), &project.config).unwrap();
    assert_eq!(project.state().status(), Some(RunStatus::Completed));
}

#[test]
fn hooks_see_the_environment_that_was_given_and_no_other() {
    let project = Project::begun();
    let path = std::env::var_os("PATH").unwrap();
    let given = [("PATH".into(), path), ("SEEN".into(), "yes".into())];
    let root = project.root().with_environment(given);
    let hooks = json!({ "before_gate": [hook("env", "advisory", &format!("echo \"$SEEN$CARGO_MANIFEST_DIR\" > seen; {}", says("allow")))] });
    run_hooks(&root, Some(&hooks), HookPhase::BeforeGate, &json!({}), &HookOptions::default()).unwrap();
    assert_eq!(std::fs::read_to_string(project.path().join("seen")).unwrap(), "yes\n");
}

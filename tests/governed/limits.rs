//! How long turns and phases may take, and what of the format is refused by name.

use crate::rig::{Project, config};
use aynig::governed::*;
use serde_json::json;
use std::time::{Duration, SystemTime};

fn late(project: &Project, minutes: u64) -> Root {
    project.root().with_clock(move || SystemTime::now() + Duration::from_secs(minutes * 60))
}

/// G16: a result that comes too late is no result, until a user gives the turn its time again.
#[test]
fn a_turn_ends_at_its_deadline() {
    let mut limited = config();
    limited["timeouts"] = json!({ "per_turn_minutes": 10 });
    let project = Project::with(limited);
    init_run(&project.root(), &project.config).unwrap();
    let pm = project.assign("pm");
    project.stage(&pm, json!({}));
    let accepted = accept_turn(&late(&project, 11), &project.config, &AcceptOptions::default());
    assert!(matches!(accepted, Err(GovernedError::TimedOut { .. })), "{accepted:?}");
    let state = project.state();
    assert_eq!((state.status(), state.blocked_on()), (Some(RunStatus::Blocked), Some("timeout:turn")));
    assert_eq!(project.lines("decision-ledger.jsonl")[0]["type"], "timeout");
    reactivate_run(&late(&project, 12), &state, &Reactivation::default()).unwrap();
    accept_turn(&late(&project, 13), &project.config, &AcceptOptions::default()).unwrap();
}

/// G16: a phase that takes too long gets no further turn; one that only warns does.
#[test]
fn a_phase_ends_at_its_deadline() {
    for (action, refused) in [("escalate", true), ("warn", false)] {
        let mut limited = config();
        limited["routing"]["plan"]["timeout_minutes"] = json!(30);
        limited["routing"]["plan"]["timeout_action"] = json!(action);
        let project = Project::with(limited);
        init_run(&project.root(), &project.config).unwrap();
        let assigned = assign_turn(&late(&project, 31), &project.config, "pm");
        match assigned {
            Ok(assigned) => assert!(!refused && assigned.warnings[0].contains("30 minutes")),
            Err(error) => assert!(refused && error.to_string().contains("30 minutes"), "{error}"),
        }
    }
}

/// G16: a key that is none is told; one that asks for a gate by another name is refused.
#[test]
fn a_key_that_is_none_is_told() {
    for (part, key, value) in [("", "policy", json!([])), ("budget", "per_run_max", json!(1))] {
        let mut raw = config();
        if raw[part].is_null() && !part.is_empty() {
            raw[part] = json!({});
        }
        let place = if part.is_empty() { &mut raw } else { &mut raw[part] };
        place[key] = value;
        let told = load_context(&Project::with(raw).root()).unwrap().warnings;
        assert!(
            told.iter().any(|told| told.contains(&format!("{key}' is no key of the format"))),
            "{told:?}"
        );
    }
    for (gate, asks) in [("human_approval_required", json!(true)), ("needs_files", json!(["x"]))] {
        let mut raw = config();
        raw["gates"]["planned"] = json!({ gate: asks });
        let said = load_context(&Project::with(raw).root()).unwrap_err().to_string();
        assert!(said.contains(&format!("gates.planned.{gate} must be 'requires_")), "{said}");
    }
    let mut raw = config();
    let route = raw["routing"]["plan"].as_object_mut().unwrap();
    let gate = route.shift_remove("exit_gate").unwrap();
    route.insert("gate".into(), gate);
    let said = load_context(&Project::with(raw).root()).unwrap_err().to_string();
    assert!(said.contains("routing.plan.gate must be 'exit_gate'"), "{said}");
}

/// G16: what is not done is refused by its name.
#[test]
fn what_is_not_enforced_is_refused() {
    for (path, value, named) in [
        ("timeouts", json!({ "per_turn_minutes": 0 }), "timeouts.per_turn_minutes"),
        ("timeouts", json!({ "per_week_minutes": 9 }), "timeouts.per_week_minutes"),
        ("approval_policy", json!({ "run_completion": { "action": "auto_approve" } }), "approval_policy"),
        (
            "approval_policy",
            json!({ "phase_transitions": { "rules": [{ "action": "require_human" }, { "action": "ask" }] } }),
            "approval_policy.phase_transitions.rules[1].action",
        ),
        ("gates", json!(null), "routing.plan.exit_gate"),
        ("gates", json!({}), "routing.plan.exit_gate"),
    ] {
        let mut raw = config();
        raw[path] = value;
        let project = Project::with(raw);
        let GovernedError::InvalidConfig { errors, .. } = load_context(&project.root()).unwrap_err() else {
            panic!("{named}")
        };
        assert!(errors.iter().any(|error| error.starts_with(named)), "{errors:?}");
    }
    let mut raw = config();
    raw["routing"]["plan"]["timeout_action"] = json!("skip_phase");
    assert!(load_context(&Project::with(raw).root()).unwrap_err().to_string().contains("skip_phase"));
}

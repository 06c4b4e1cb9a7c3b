//! What a worker reads is enough: one that does what PROMPT.md says, and takes every value from its text, is accepted.

use crate::rig::{Project, config, role};
use aynig::governed::*;
use serde_json::{Value, json};

/// What stands between two marks, the first time.
fn between<'t>(text: &'t str, from: &str, to: &str) -> Option<&'t str> {
    let start = text.find(from)? + from.len();
    Some(&text[start..start + text[start..].find(to)?])
}

/// Puts words into the place of what stands in angle brackets, wherever it stands.
fn filled(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with('<') => *text = "some words".to_owned(),
        Value::Array(all) => all.iter_mut().for_each(filled),
        Value::Object(all) => all.values_mut().for_each(filled),
        _ => {}
    }
}

/// Does what the prompt says and nothing else; with `done`, the phase or the run is done.
fn obeys(project: &Project, turn: &Turn, done: bool, file: Option<&str>) {
    let options = BundleOptions { turn_id: Some(turn.id().to_owned()), ..BundleOptions::default() };
    let bundle = write_dispatch_bundle(&project.root(), &project.state(), &project.config, &options).unwrap();
    let prompt = std::fs::read_to_string(bundle.path.join("PROMPT.md")).unwrap();
    let place = between(&prompt, "Write one JSON object to `", "`").unwrap();
    let mut result: Value = serde_json::from_str(between(&prompt, "```json\n", "\n```").unwrap()).unwrap();
    filled(&mut result);
    if done {
        match between(&prompt, "- `phase_transition_request`: `", "`") {
            Some(next) => result["phase_transition_request"] = json!(next),
            None => {
                assert!(prompt.contains("- `run_completion_request`: true"), "{prompt}");
                result["run_completion_request"] = json!(true);
            }
        }
    }
    if let Some(next) = between(&prompt, "- `proposed_next_role`: one of `", "`") {
        result["proposed_next_role"] = json!(next);
    }
    if let Some(file) = file {
        project.write(file, "made\n");
        result["files_changed"] = json!([file]);
    }
    project.write(place, &result.to_string());
}

fn git(project: &Project, args: &[&str]) {
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.com"];
    let output =
        std::process::Command::new("git").args(identity).args(args).current_dir(project.path()).output();
    assert!(output.unwrap().status.success());
}

/// G14: for every write authority, in every phase, with and without the rule that reviews object.
#[test]
fn a_worker_that_obeys_its_prompt_is_accepted_at_once() {
    for challenge in [true, false] {
        for (authority, file) in [
            ("authoritative", Some("src/made.rs")),
            ("authoritative", None),
            ("proposed", None),
            ("review_only", Some(".planning/made.md")),
            ("review_only", None),
        ] {
            let mut config = config();
            for name in ["pm", "dev"] {
                config["roles"][name] = role(authority);
            }
            config["gates"] = json!({});
            for phase in ["plan", "build"] {
                config["routing"][phase]["exit_gate"] = Value::Null;
            }
            config["rules"]["challenge_required"] = json!(challenge);
            let project = Project::with(config);
            git(&project, &["init", "-q"]);
            git(&project, &["add", "-A"]);
            git(&project, &["commit", "-qm", "x"]);
            init_run(&project.root(), &project.config).unwrap();
            let case = format!("{authority} {file:?} {challenge}");
            for (role, done) in [("pm", false), ("pm", true), ("dev", false), ("dev", true)] {
                git(&project, &["add", "-A"]);
                git(&project, &["commit", "-q", "--allow-empty", "-m", "x"]);
                let turn = project.assign(role);
                obeys(&project, &turn, done, file);
                let accepted =
                    project.accept(&turn).unwrap_or_else(|e| panic!("{case} {role} {done}: {e:?}"));
                assert!(accepted.state.turn(turn.id()).is_none());
            }
            assert_eq!(project.state().status(), Some(RunStatus::Completed), "{case}");
        }
    }
}

/// G14: what the last turn objected to is there to be read.
#[test]
fn the_objections_of_the_last_turn_are_told() {
    let project = Project::begun();
    let pm = project.assign("pm");
    let objection = json!({ "id": "OBJ-001", "severity": "high", "statement": "No tests." });
    project.stage(&pm, json!({ "objections": [objection] }));
    project.accept(&pm).unwrap();
    let dev = project.assign("dev");
    let options = BundleOptions { turn_id: Some(dev.id().to_owned()), ..BundleOptions::default() };
    let bundle = write_dispatch_bundle(&project.root(), &project.state(), &project.config, &options).unwrap();
    let context = std::fs::read_to_string(bundle.path.join("CONTEXT.md")).unwrap();
    assert!(context.contains("- objected, high (OBJ-001): No tests."), "{context}");
}

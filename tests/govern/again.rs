//! One run after another, runs beside each other, and runs that another tool began.

use crate::rig::*;
use crate::support::life::Life;
use serde_json::json;

/// One phase, one role, whose worker ends the run.
fn short() -> Life {
    let life = life(|config| {
        config["routing"] =
            json!({ "work": { "entry_role": "dev", "allowed_next_roles": ["dev", "human"] } });
        config["gates"] = json!({});
    });
    let script = r#"echo "$AGENTXCHAIN_RUN_ID" >"$AGENTXCHAIN_RUN_ID.txt"
cat >"$AGENTXCHAIN_RESULT" <<END
{"schema_version": "1.0", "run_id": "$AGENTXCHAIN_RUN_ID", "turn_id": "$AGENTXCHAIN_TURN_ID", "role": "dev",
 "runtime_id": "$AGENTXCHAIN_RUNTIME", "status": "completed", "summary": "did it",
 "decisions": [{"id": "DEC-001", "category": "scope", "statement": "s", "rationale": "r"}], "objections": [],
 "files_changed": ["$AGENTXCHAIN_RUN_ID.txt"], "verification": {"status": "skipped"},
 "artifact": {"type": "workspace", "ref": null}, "proposed_next_role": "human", "run_completion_request": true}
END"#;
    worker(&life, script);
    life
}

fn completed(life: &Life, branch: &str) -> String {
    govern(life, &["start", "-b", branch]).expect(0);
    life.run(&["run", branch]).expect(0);
    assert_eq!(life.state(branch), "done");
    let state = life.git(&["show", &format!("{branch}:.agentxchain/state.json")]);
    lines(&state.replace('\n', " "))[0]["run_id"].as_str().unwrap().to_owned()
}

/// G15: a run begins after one that was completed; nothing of that is lost.
#[test]
fn a_run_begins_where_the_last_one_was_completed() {
    let life = short();
    let first = completed(&life, "work");
    life.git(&["merge", "-q", "--no-edit", "work"]);
    let second = completed(&life, "next");
    assert_ne!(first, second);
    let show = |path: &str| life.git(&["show", &format!("next:.agentxchain/{path}")]);
    let runs: Vec<_> = lines(&show("run-history.jsonl")).iter().map(|run| run["run_id"].clone()).collect();
    assert_eq!(runs, [json!(first)]);
    let history: Vec<_> = lines(&show("history.jsonl")).iter().map(|turn| turn["run_id"].clone()).collect();
    assert_eq!(history, [json!(first), json!(second)]);
    // On the same branch too; and one that is under way is not begun again.
    govern(&life, &["start", "-b", "next"]).expect(0);
    assert_eq!(life.state("next"), "turn/dev");
    govern(&life, &["start", "-b", "next"]).expect(2);
}

/// G15: what two runs appended merges; where each stands is a person's to choose.
#[test]
fn two_runs_that_are_merged_do_not_conflict_in_their_logs() {
    let life = short();
    let (a, b) = (completed(&life, "a"), completed(&life, "b"));
    life.git(&["merge", "-q", "--no-edit", "a"]);
    let _ = life.repo.try_git(&["merge", "-q", "--no-edit", "b"]);
    let unmerged = life.git(&["diff", "--name-only", "--diff-filter=U"]);
    for path in unmerged.lines() {
        assert!(
            [".agentxchain/state.json", ".agentxchain/dispatch/index.json"].contains(&path),
            "{unmerged}"
        );
    }
    for log in ["history.jsonl", "decision-ledger.jsonl", "events.jsonl"] {
        let text = life.read(&format!(".agentxchain/{log}"));
        assert!(!text.contains("<<<<"), "{log}: {text}");
        let turns = lines(&text).iter().map(|line| line["turn_id"].clone()).collect::<Vec<_>>();
        assert!(
            turns.len() >= 2 && turns[0] != turns[turns.len() - 1] || log == "events.jsonl",
            "{log}: {text}"
        );
    }
    let history = life.read(".agentxchain/history.jsonl");
    assert!(history.contains(&a) && history.contains(&b), "{history}");
    let talk = life.read("TALK.md");
    assert!(!talk.contains("<<<<") && talk.matches("## Turn").count() == 2, "{talk}");
    for path in unmerged.lines() {
        life.git(&["checkout", "-q", "--theirs", path]);
    }
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "both"]);
    completed(&life, "c");
}

/// G8: a run that another tool of the format began on a branch is taken up.
#[test]
fn a_run_of_another_tool_is_taken_up() {
    let life = short();
    let root = life.path("");
    govern(&life, &["start", "--root", root.to_str().unwrap()]).expect(0);
    life.git(&["checkout", "-q", "-b", "work"]);
    life.git(&["add", "-A", "-f", ".agentxchain"]);
    life.git(&["commit", "-qm", "a run"]);
    life.git(&["checkout", "-q", "main"]);
    let said = govern(&life, &["status", "-b", "work"]).expect(0);
    assert!(said.stdout.contains("git aynig govern start -b work"), "{said:?}");
    let run = state(&life)["run_id"].clone();
    govern(&life, &["start", "-b", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), &state(&life)["run_id"]), ("turn/dev", &run));
}

/// G8: what comes next is said of the branch as it is, and before there is a run.
#[test]
fn status_says_what_goes_on_from_here() {
    let life = short();
    let plain = life.repo.home().join("plain");
    std::fs::create_dir(&plain).unwrap();
    std::fs::copy(life.path("agentxchain.json"), plain.join("agentxchain.json")).unwrap();
    let said = govern(&life, &["status", "--root", plain.to_str().unwrap()]).expect(0);
    assert!(said.stdout.contains("none yet") && said.stdout.contains("govern start --root"), "{said:?}");
    worker(&life, "sleep 600");
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "--timeout", "100ms", "work"]).expect(1);
    assert_eq!(life.state("work"), "stalled");
    let said = govern(&life, &["status", "-b", "work"]).expect(0);
    assert!(said.stdout.contains("git aynig retry work"), "{said:?}");
    life.lease("work", "turn/dev", "11111111-2222-4333-8444-555555555555", 600, 0);
    let said = govern(&life, &["status", "-b", "work"]).expect(0);
    assert!(said.stdout.contains("a turn is being taken"), "{said:?}");
}

/// G9: the loop has an invalid result done again, as a turn on a branch has.
#[test]
fn the_loop_rejects_what_is_invalid() {
    let life = short();
    let plain = life.repo.home().join("plain");
    std::fs::create_dir(&plain).unwrap();
    std::fs::copy(life.path("agentxchain.json"), plain.join("agentxchain.json")).unwrap();
    let root = plain.to_str().unwrap();
    let said = govern(
        &life,
        &["loop", "--json", "--root", root, "--", "sh", "-c", "echo '{}' >$AGENTXCHAIN_RESULT"],
    );
    let report = said.json();
    assert_eq!(report["stop_reason"], "reject_exhausted", "{report}");
    assert_eq!(report["turn_history"].as_array().unwrap().len(), 2);
    // An empty '.git' in a folder above is no repository.
    std::fs::create_dir(life.repo.home().join(".git")).unwrap();
    govern(&life, &["unblock", "--root", root]).expect(0);
    let said = govern(&life, &["turn", "--root", root, "--role", "dev", "--", "true"]).expect(0);
    assert!(said.stdout.contains("left no result") || said.stdout.contains("rejected"), "{said:?}");
}

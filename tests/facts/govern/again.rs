//! One run after another, runs beside each other, and runs that another tool began.

use crate::govern::rig::*;
use crate::support::life::{BIN, Done, Life, done};
use serde_json::{Value, json};
use std::path::Path;

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

/// Runs what a hint says, as a user who pastes it.
fn pasted(life: &Life, hint: &str) -> Done {
    let path = format!("{}:{}", Path::new(BIN).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = life.repo.command("sh");
    done(shell.env("PATH", path).current_dir(life.path("")).args(["-c", hint]).output().unwrap()).expect(0)
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
    assert_eq!(runs, [json!(first), json!(second)]);
    let history: Vec<_> = lines(&show("history.jsonl")).iter().map(|turn| turn["run_id"].clone()).collect();
    assert_eq!(history, [json!(first), json!(second)]);
    // On the same branch too; and one that is under way is not begun again.
    govern(&life, &["start", "-b", "next"]).expect(0);
    assert_eq!(life.state("next"), "turn/dev");
    govern(&life, &["start", "-b", "next"]).expect(2);
}

/// Two branches' completed runs, merged by a Git that was told nothing: no file conflicts, and the next run begins.
fn merged_by_plain_git(life: &Life, [a, b]: [&String; 2]) {
    let merge = |branch: &str| life.repo.try_git(&["merge", "-q", "--no-edit", branch]);
    for branch in ["a", "b"] {
        let done = merge(branch);
        assert!(done.status.success(), "{branch}: {done:?} {}", life.git(&["status", "--porcelain"]));
    }
    for log in ["history.jsonl", "events.jsonl", "run-history.jsonl"] {
        let text = life.read(&format!(".agentxchain/{log}"));
        let runs: Vec<_> = lines(&text).iter().map(|line| line["run_id"].clone()).collect();
        for run in [a, b] {
            assert!(runs.contains(&json!(run)), "{log} has no {run}: {text}");
        }
    }
    let (ledger, talk) = (life.read(".agentxchain/decision-ledger.jsonl"), life.read("TALK.md"));
    for turn in lines(&life.read(".agentxchain/history.jsonl")) {
        let turn = turn["turn_id"].as_str().unwrap();
        assert!(ledger.contains(turn) && talk.contains(turn), "{turn}: {ledger}{talk}");
    }
    assert!(!talk.contains("<<<<"), "{talk}");
    lines(&ledger);
    // The second side's, as whole as it was: to any reader of JSON.
    let theirs = life.git(&["show", "b:.agentxchain/state.json"]);
    let (merged, theirs): (Value, Value) = (
        serde_json::from_str(&life.read(".agentxchain/state.json")).unwrap(),
        serde_json::from_str(&theirs).unwrap(),
    );
    assert_eq!(merged, theirs);
    assert_eq!((&merged["run_id"], &merged["status"]), (&json!(b), &json!("completed")));
}

/// G15: branches with a completed run each merge without a conflict, and a run begins on what comes of it.
#[test]
fn two_completed_runs_are_merged_without_a_conflict() {
    let life = short();
    let (a, b) = (completed(&life, "a"), completed(&life, "b"));
    merged_by_plain_git(&life, [&a, &b]);
    // Again, with a completed run that both sides began from.
    for branch in ["a", "b"] {
        life.git(&["branch", "-q", "-f", branch, "main"]);
    }
    let (c, d) = (completed(&life, "a"), completed(&life, "b"));
    merged_by_plain_git(&life, [&c, &d]);
    let e = completed(&life, "e");
    let text = life.git(&["show", "e:.agentxchain/run-history.jsonl"]);
    let runs: Vec<_> = lines(&text).iter().map(|run| run["run_id"].clone()).collect();
    assert_eq!(runs.len(), 5, "each once: {text}");
    for run in [a, b, c, d, e] {
        assert!(runs.contains(&json!(run)), "{run}: {text}");
    }
}

/// G15: a run that is under way is not merged away unseen.
#[test]
fn of_runs_under_way_a_person_chooses() {
    let life = short();
    let done = completed(&life, "c");
    for branch in ["a", "b"] {
        govern(&life, &["start", "-b", branch]).expect(0);
    }
    life.git(&["merge", "-q", "--no-edit", "a"]);
    assert!(!life.repo.try_git(&["merge", "-q", "--no-edit", "b"]).status.success());
    let unmerged = life.git(&["diff", "--name-only", "--diff-filter=U"]);
    assert_eq!(unmerged, ".agentxchain/state.json");
    life.git(&["merge", "--abort"]);
    // A completed run's branch takes up one that is under way: that one goes on.
    life.git(&["checkout", "-q", "c"]);
    life.git(&["merge", "-q", "--no-edit", "b"]);
    let merged: Value = serde_json::from_str(&life.read(".agentxchain/state.json")).unwrap();
    let theirs: Value = serde_json::from_str(&life.git(&["show", "b:.agentxchain/state.json"])).unwrap();
    assert_eq!((&merged["run_id"], &merged["status"]), (&theirs["run_id"], &json!("active")));
    assert!(life.read(".agentxchain/run-history.jsonl").contains(&done));
}

/// Commits a run to the branch that is checked out, as another tool of the format would; returns its id.
fn commit_a_run(life: &Life) -> String {
    govern(life, &["start", "--root", life.path("").to_str().unwrap()]).expect(0);
    life.git(&["add", "-A", "-f", ".agentxchain"]);
    life.git(&["commit", "-qm", "a run"]);
    let run: Value = serde_json::from_str(&life.read(".agentxchain/state.json")).unwrap();
    run["run_id"].as_str().unwrap().to_owned()
}

/// G8: a run that another tool of the format began on a branch is taken up.
#[test]
fn a_run_of_another_tool_is_taken_up() {
    let life = short();
    life.git(&["checkout", "-q", "-b", "work"]);
    commit_a_run(&life);
    life.git(&["checkout", "-q", "main"]);
    let said = govern(&life, &["status", "-b", "work"]).expect(0);
    assert!(said.stdout.contains("git aynig govern start -b work"), "{said:?}");
    let run = state(&life)["run_id"].clone();
    govern(&life, &["start", "-b", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), &state(&life)["run_id"]), ("turn/dev", &run));
}

/// G8: one that is idle has no run, though another tool left the name of one there.
#[test]
fn an_idle_state_of_another_tool_has_no_run_to_take_up() {
    let life = short();
    life.git(&["checkout", "-q", "-b", "work"]);
    let run = commit_a_run(&life);
    let mut idle: Value = serde_json::from_str(&life.read(".agentxchain/state.json")).unwrap();
    idle["status"] = json!("idle");
    life.write(".agentxchain/state.json", &format!("{idle:#}\n"));
    life.git(&["commit", "-qam", "idle"]);
    life.git(&["checkout", "-q", "main"]);
    govern(&life, &["start", "-b", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), state(&life)["status"].as_str()), ("turn/dev", Some("active")));
    assert_ne!(state(&life)["run_id"], run.as_str());
}

/// G8, G15: a copy of a run that another branch holds is not taken up by a new one, and the hint leads to the run that
/// is in the way.
#[test]
fn a_run_at_head_is_in_the_way_of_another_branchs() {
    let life = short();
    let run = commit_a_run(&life);
    let refused = |hint: &str| {
        let said = govern(&life, &["start", "-b", "other"]).expect(2);
        assert!(said.stderr.contains(&format!("hint: {hint}\n")), "{said:?}");
        assert_eq!(life.try_rev("other"), None);
        let shown = pasted(&life, hint);
        assert!(shown.stdout.contains(&run), "{shown:?}");
    };
    refused("git aynig govern status -b main");
    // So it is where the run is one of ours, also under a commit without a state.
    govern(&life, &["start", "-b", "main"]).expect(0);
    refused("git aynig govern status -b main");
    life.git(&["commit", "-q", "--allow-empty", "-m", "more"]);
    refused("git aynig govern status -b main");
    // And while a turn is being taken.
    life.lease("main", "turn/dev", "11111111-2222-4333-8444-555555555555", 600, 0);
    refused("git aynig govern status -b main");
    life.git(&["checkout", "-q", "--detach"]);
    refused("git show HEAD:.agentxchain/state.json");
}

/// G8: a role that is not the configuration's is refused, whether a run is begun or taken up.
#[test]
fn a_run_is_not_taken_up_for_a_role_that_is_none() {
    let life = short();
    commit_a_run(&life);
    let head = life.rev("main");
    for branch in ["main", "new"] {
        govern(&life, &["start", "-b", branch, "--role", "nobody"]).expect(2);
    }
    assert_eq!((life.rev("main"), life.try_rev("new")), (head, None));
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

/// G6, G15: so they are where rules hide everything from Git, and where they convert line ends; what is committed is
/// what was written.
#[test]
fn completed_runs_are_merged_whatever_rules_say() {
    let ours = "/TALK.md merge=union -text -ident -filter !working-tree-encoding";
    for (file, rules, wanted) in [
        (".gitignore", "*\n!file\n", ours.to_owned()),
        (
            ".gitattributes",
            "* text eol=crlf\n.aynig/** -text",
            format!("* text eol=crlf\n.aynig/** -text\n{ours}"),
        ),
        // The lines of older versions, and one that is the project's own.
        (
            ".gitattributes",
            ".aynig/** -text\n/TALK.md merge=union -text\n",
            format!(".aynig/** -text\n{ours}"),
        ),
        (".gitattributes", ".aynig/** -text\n/TALK.md merge=union\n", format!(".aynig/** -text\n{ours}")),
        (
            ".gitattributes",
            ".aynig/** -text\nTALK.md merge=union eol=lf\n",
            ".aynig/** -text\nTALK.md merge=union eol=lf".to_owned(),
        ),
    ] {
        let life = short();
        life.config("core.autocrlf", if file == ".gitattributes" { "true" } else { "false" });
        life.write(file, rules);
        life.git(&["add", "-f", file]);
        life.git(&["commit", "-qm", "rules"]);
        let (a, b) = (completed(&life, "a"), completed(&life, "b"));
        for path in ["TALK.md", ".agentxchain/state.json", ".agentxchain/events.jsonl"] {
            let text = life.git(&["show", &format!("a:{path}")]);
            assert!(!text.contains('\r'), "{rules}: {path}: {text:?}");
        }
        assert_eq!(life.git(&["show", "a:.gitattributes"]), wanted, "{rules}");
        merged_by_plain_git(&life, [&a, &b]);
        assert_eq!(life.git(&["status", "--porcelain"]), "", "{rules}");
    }
}

/// G15: a folder whose rules an older version wrote gets what they lack.
#[test]
fn rules_of_an_older_version_are_added_to() {
    let life = short();
    completed(&life, "work");
    life.git(&["checkout", "-q", "work"]);
    let rules = ".agentxchain/.gitattributes";
    let new = life.read(rules);
    let ours = "* -text -ident -filter !working-tree-encoding\n";
    assert!(new.starts_with(ours), "{new}");
    for older in ["", "* -text\n"] {
        life.write(rules, &new.replace(ours, older));
        life.git(&["commit", "-qam", "older\n\ndwp-state: done"]);
        life.git(&["checkout", "-q", "main"]);
        completed(&life, "work");
        assert_eq!(show(&life, rules), new.trim_end(), "{older}");
        life.git(&["checkout", "-q", "work"]);
    }
}

/// G15: paths in rules of the project's may be in any encoding, and are written back as they were.
#[test]
fn rules_that_are_no_text_are_kept_as_they_are() {
    let life = short();
    completed(&life, "work");
    life.git(&["checkout", "-q", "work"]);
    let odd = b"d\xffr/* text\n";
    for (file, before) in [
        (".agentxchain/.gitattributes", "*.jsonl merge=union\n"),
        (".gitattributes", "/TALK.md merge=union -text\n"),
    ] {
        std::fs::write(life.path(file), [&odd[..], before.as_bytes()].concat()).unwrap();
        life.git(&["commit", "-qam", "odd\n\ndwp-state: done"]);
        life.git(&["checkout", "-q", "main"]);
        completed(&life, "work");
        life.git(&["checkout", "-q", "work"]);
        let now = std::fs::read(life.path(file)).unwrap();
        assert!(now.windows(odd.len()).any(|part| part == odd), "{}", String::from_utf8_lossy(&now));
        assert!(now != [&odd[..], before.as_bytes()].concat(), "{file}");
    }
}

/// G15: a run that another tool left as failed is over too: another begins after it, and `status` says so.
#[test]
fn a_run_begins_where_another_tool_left_a_failed_one() {
    let life = short();
    let plain = life.repo.home().join("plain");
    std::fs::create_dir(&plain).unwrap();
    std::fs::copy(life.path("agentxchain.json"), plain.join("agentxchain.json")).unwrap();
    let fail = |path: &std::path::Path| {
        let mut state: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        state["status"] = json!("failed");
        std::fs::write(path, format!("{state:#}\n")).unwrap();
        state["run_id"].clone()
    };
    for place in [["-b", "work"], ["--root", plain.to_str().unwrap()]] {
        let call = |verb: &str| govern(&life, &[&[verb][..], &place].concat()).expect(0);
        call("start");
        let first = if place[0] == "-b" {
            life.git(&["checkout", "-q", "work"]);
            let first = fail(&life.path(".agentxchain/state.json"));
            life.git(&["commit", "-qam", "failed\n\ndwp-state: blocked"]);
            life.git(&["checkout", "-q", "main"]);
            first
        } else {
            fail(&plain.join(".agentxchain/state.json"))
        };
        let said = call("status").stdout;
        let hint = format!("the run failed; git aynig govern start {} ", place[0]);
        assert!(said.contains(&hint) && !said.contains("unblock"), "{said}");
        call("start");
        let (state, over) = if place[0] == "-b" {
            assert_eq!(life.state("work"), "turn/dev");
            (state(&life), show(&life, ".agentxchain/run-history.jsonl"))
        } else {
            let read = |file: &str| std::fs::read_to_string(plain.join(".agentxchain").join(file)).unwrap();
            (serde_json::from_str(&read("state.json")).unwrap(), read("run-history.jsonl"))
        };
        assert!(state["status"] == "active" && state["run_id"] != first, "{state}");
        let over = lines(&over);
        assert_eq!((&over[0]["run_id"], &over[0]["status"]), (&first, &json!("failed")), "{over:?}");
    }
}

/// K33: a file that Git takes for a broken repository stops what is below it, and the hint moves it away.
#[test]
fn an_empty_file_in_a_repositorys_place_is_named() {
    let life = short();
    let (home, plain) = (life.repo.home(), life.repo.home().join("plain"));
    std::fs::create_dir(&plain).unwrap();
    std::fs::copy(life.path("agentxchain.json"), plain.join("agentxchain.json")).unwrap();
    let file = home.join(".git");
    std::fs::write(&file, "").unwrap();
    let root = plain.to_str().unwrap();
    let said = govern(&life, &["start", "--root", root]).expect(128);
    let moves = format!("mv '{0}' '{0}.aside'", file.display());
    assert!(said.stderr.contains(&moves), "{said:?}");
    std::fs::rename(&file, home.join(".git.aside")).unwrap();
    govern(&life, &["start", "--root", root]).expect(0);
}

/// G8, G13: a state of another tool that does not fit is named with what begins a run beside it.
#[test]
fn a_state_that_does_not_fit_can_be_set_aside() {
    for foreign in ["nonsense", r#"{"schema_version":"1.1","project_id":7,"status":"weird"}"#] {
        let life = short();
        life.git(&["checkout", "-q", "-b", "work"]);
        life.write(".agentxchain/state.json", foreign);
        life.git(&["add", "-A", "-f", ".agentxchain"]);
        life.git(&["commit", "-qm", "a state"]);
        let said = govern(&life, &["start"]).expect(128);
        let hint = said.stderr.split("to begin anew: ").nth(1).unwrap_or_else(|| panic!("{said:?}"));
        let done = pasted(&life, hint.trim());
        assert_eq!(
            (life.state("work").as_str(), &state(&life)["status"]),
            ("turn/dev", &json!("active")),
            "{done:?}"
        );
        assert_eq!(show(&life, ".agentxchain/state.json.old"), foreign);
        // In a plain folder without Git.
        let dir = life.repo.home().join("a plain folder");
        std::fs::create_dir_all(dir.join(".agentxchain")).unwrap();
        std::fs::copy(life.path("agentxchain.json"), dir.join("agentxchain.json")).unwrap();
        std::fs::write(dir.join(".agentxchain/state.json"), foreign).unwrap();
        let said = govern(&life, &["start", "--root", dir.to_str().unwrap()]).expect(128);
        let hint = said.stderr.split("hint: ").nth(1).unwrap_or_else(|| panic!("{said:?}"));
        let done = pasted(&life, hint.trim());
        assert_eq!(
            std::fs::read_to_string(dir.join(".agentxchain/state.json.old")).unwrap(),
            foreign,
            "{done:?}"
        );
        let begun: Value =
            serde_json::from_slice(&std::fs::read(dir.join(".agentxchain/state.json")).unwrap()).unwrap();
        assert_eq!(begun["status"], "active");
    }
}

/// G12: what a run does not write is on its branch as it was, whatever a checkout makes of its line ends.
#[test]
fn commands_keep_their_line_ends_where_a_run_begins() {
    for (rules, autocrlf) in [("", "true"), ("* text=auto eol=crlf\n", "false"), ("* eol=crlf\n", "false")] {
        let life = short();
        govern(&life, &["start", "-b", "first"]).expect(0);
        life.git(&["checkout", "-q", "first"]);
        life.git(&["config", "core.autocrlf", autocrlf]);
        life.write(".gitattributes", &format!("{rules}*.md -text\n"));
        life.git(&["add", "-f", ".gitattributes"]);
        life.git(&["commit", "-qm", "line ends"]);
        life.git(&["branch", "rules"]);
        life.git(&["checkout", "-q", "-b", "work", "rules"]);
        life.git(&["rm", "-q", "-r", ".agentxchain"]);
        life.git(&["commit", "-qm", "no run"]);
        govern(&life, &["start", "-b", "work"]).expect(0);
        assert_eq!(
            life.git(&["diff", "--stat", "rules", "work", "--", ".aynig"]),
            "",
            "{rules:?} {autocrlf}"
        );
    }
}

/// G13: what is no folder is said so, and named.
#[test]
fn a_file_in_place_of_the_runs_folder_is_named() {
    for link in [false, true] {
        let life = short();
        life.git(&["checkout", "-q", "-b", "work"]);
        match link {
            true => std::os::unix::fs::symlink("x", life.path(".agentxchain")).unwrap(),
            false => life.write(".agentxchain", "text"),
        }
        life.git(&["add", "-A", "-f", ".agentxchain"]);
        life.git(&["commit", "-qm", "a file"]);
        let head = life.rev("work");
        let said = govern(&life, &["start"]).expect(128);
        assert!(said.stderr.contains(".agentxchain") && !said.stderr.contains("fsck"), "{said:?}");
        let said = govern(&life, &["status"]).expect(128);
        assert!(said.stderr.contains("cannot read 'work:.agentxchain'"), "{said:?}");
        assert!(said.stderr.contains("hint: git log --stat -- .agentxchain"), "{said:?}");
        assert_eq!(life.rev("work"), head);
    }
}

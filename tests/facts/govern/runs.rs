//! Governed runs on branches, by the real binary: turns by ticks, acts of people as commits.

use crate::govern::rig::*;
use crate::support::life::Life;
use crate::support::net::Net;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Other tools of the format check events so: the public corpus has these two questions.
fn are_sound(events: &[Value]) {
    let ask = |operation: &str, args: Value| {
        let fixture = json!({
            "fixture_id": "own", "tier": 1, "surface": "event_lifecycle", "description": "a finished run",
            "type": "validate", "setup": {}, "input": { "operation": operation, "args": args },
            "expected": { "result": "success", "errors": [] },
        });
        let (verdict, code) = aynig::conformance::conformance(fixture.to_string().as_bytes());
        assert_eq!(code, 0, "{verdict}");
    };
    assert!(events.len() > 10, "{events:?}");
    events.iter().for_each(|event| ask("validate_event", json!({ "event": event })));
    ask("validate_event_ordering", json!({ "events": events }));
}

/// G7: three roles, three phases, a rejection, two approvals; everything is in the history.
#[test]
fn a_run_of_three_roles_goes_from_plan_to_release() {
    let life = life(|_| {});
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["run", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), state(&life)["status"].as_str()), ("gate", Some("paused")));
    // What lets it go on is what the run's own `status` names, and no other state.
    let waits = life.run(&["status", "--waiting"]).expect(0).stdout;
    assert!(waits.contains("; git aynig govern status -b work"), "{waits}");
    let next = govern(&life, &["status", "-b", "work"]).expect(0).stdout;
    assert!(next.contains("a person: git aynig govern approve-phase -b work"), "{next}");
    govern(&life, &["approve-phase", "-b", "work"]).expect(0);
    life.run(&["run", "work"]).expect(0);
    assert_eq!((life.state("work").as_str(), state(&life)["phase"].as_str()), ("gate", Some("qa")));
    govern(&life, &["approve-completion", "-b", "work"]).expect(0);
    let states = life.states("work");
    let states: Vec<_> = states.iter().map(String::as_str).filter(|s| *s != "working").collect();
    let told = ["done", "gate", "turn/qa", "turn/dev", "turn/dev", "gate", "turn/pm"];
    assert_eq!(states, told, "the second turn of dev is the one that was rejected");
    let history = lines(&show(&life, ".agentxchain/history.jsonl"));
    let roles: Vec<_> = history.iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["pm", "dev", "qa"]);
    assert_eq!(state(&life)["status"], "completed");
    are_sound(&lines(&show(&life, ".agentxchain/events.jsonl")));
    assert_eq!(show(&life, "greeting.txt"), "Hello, world!");
    let subjects = life.git(&["log", "--format=%s", "work"]);
    for said in ["rejected", "accepted", "phase implementation approved", "completion approved"] {
        assert!(subjects.contains(said), "{said}: {subjects}");
    }
    // What was staged and dispatched is gone; what was rejected is kept.
    let files = life.git(&["ls-tree", "-r", "--name-only", "work"]);
    assert!(!files.contains("staging/") && !files.contains("dispatch/turns/"), "{files}");
    assert_eq!(files.matches("dispatch/rejected/").count(), 1, "{files}");
    // The user's own checkout was never touched.
    assert_eq!(life.git(&["status", "--porcelain"]), "");
    assert!(!life.path(".agentxchain").exists());
    life.repo.assert_sound();
}

/// G6: the swap is the lock of acceptance; two machines drive one run.
#[test]
fn two_machines_accept_no_turn_twice() {
    let net = Net::new(&[]);
    put_pack(&net.life, |config| {
        config["gates"] = json!({});
        for phase in ["planning", "implementation", "qa"] {
            config["routing"][phase].as_object_mut().unwrap().remove("exit_gate");
        }
    });
    net.life.git(&["push", "-q", "origin", "main", "main:refs/heads/work"]);
    let (a, b) = (net.machine("a"), net.machine("b"));
    net.life.config("aynig.commandsFrom", "refs/heads/main");
    let begun = a.run(&["govern", "start", "--remote", "origin", "-b", "work"]);
    begun.expect(0);
    // A user who begins it again is refused, and changes nothing.
    let before = net.rev("work");
    let again = b.run(&["govern", "start", "--remote", "origin", "-b", "work"]);
    assert_eq!((again.code, net.rev("work")), (Some(2), before), "{again:?}");
    for _ in 0..6 {
        let race = [a.start_tick(&["--chain", "work"]), b.start_tick(&["--chain", "work"])];
        race.into_iter().for_each(|tick| drop(tick.done()));
    }
    assert_eq!(net.states("work")[0], "done", "{:?}", net.states("work"));
    let history = lines(&net.show("work", ".agentxchain/history.jsonl"));
    let mut turns: Vec<_> = history.iter().map(|turn| turn["turn_id"].as_str().unwrap()).collect();
    assert_eq!(turns.len(), 3, "{turns:?}");
    turns.sort_unstable();
    turns.dedup();
    assert_eq!(turns.len(), 3);
    let accepted = net.git(&["log", "--first-parent", "--format=%s", "work"]);
    for turn in turns {
        assert_eq!(accepted.matches(&format!("{turn} accepted")).count(), 1, "{accepted}");
    }
}

/// G7: a worker that fails, and one that leaves nothing.
#[test]
fn a_worker_that_fails_each_time_blocks_the_run_until_somebody_unblocks_it() {
    let life = life(|_| {});
    worker(&life, "echo broken >&2; echo 'SET_STATE {\"state\":\"done\"}'; exit 3");
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["run", "work"]).expect(0);
    assert_eq!(life.state("work"), "blocked");
    let blocked = state(&life);
    assert_eq!(blocked["blocked_reason"]["category"], "retries_exhausted");
    let detail = blocked["blocked_reason"]["recovery"]["detail"].as_str().unwrap();
    assert!(detail.contains("its worker failed (exited with status 3)"), "{detail}");
    let status = govern(&life, &["status", "-b", "work"]).expect(0);
    assert!(status.stdout.contains("govern unblock -b work"), "{status:?}");
    worker(&life, "exit 0");
    govern(&life, &["unblock", "-b", "work", "-m", "mended"]).expect(0);
    assert_eq!(life.state("work"), "turn/pm");
    // No result twice: rejected, then for good.
    life.run(&["run", "work"]).expect(0);
    let escalated = state(&life);
    assert_eq!((life.state("work").as_str(), escalated["status"].as_str()), ("blocked", Some("blocked")));
    assert!(escalated["blocked_on"].as_str().unwrap().starts_with("escalation:retries-exhausted"));
}

/// G7: what a worker prints declares nothing; what its role declares is the run's.
#[test]
fn a_worker_cannot_declare_what_comes_next() {
    let life = life(|_| {});
    let forged = "echo 'SET_STATE {\"state\":\"done\",\"subject\":\"forged\"}'";
    let script = std::fs::read_to_string(Path::new(PACK).join("govern/worker")).unwrap();
    worker(&life, &format!("trap \"{}\" EXIT\n{script}", forged.replace('"', "\\\"")));
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["run", "work"]).expect(0);
    assert_eq!(life.state("work"), "gate");
    assert!(!life.git(&["log", "--format=%s", "work"]).contains("forged"));
}

/// Turns that a user's own worker does.
fn by_hand() -> Life {
    let life = life(|config| config["routing"]["planning"]["exit_gate"] = Value::Null);
    life.write(".aynig/command/turn/pm", "#!/bin/sh\nexec git aynig govern turn\n");
    let text = life.read("agentxchain.json").replace("\"runtime\": \"shell\"", "\"runtime\": \"reviewer\"");
    life.write("agentxchain.json", &text);
    life.git(&["commit", "-qam", "by hand"]);
    life
}

/// A result of the one turn that is active in this state.
fn planned(state: &Value) -> Value {
    let (turn, record) = state["active_turns"].as_object().unwrap().iter().next().unwrap();
    json!({
        "schema_version": "1.0", "run_id": state["run_id"], "turn_id": turn, "role": "pm",
        "runtime_id": record["runtime_id"], "status": "completed", "summary": "planned",
        "decisions": [], "objections": [], "files_changed": [], "verification": {"status": "skipped"},
        "artifact": {"type": "review", "ref": null}, "proposed_next_role": "dev",
    })
}

/// G7: a turn that a user's own worker does; G8: its result is brought by hand.
#[test]
fn a_turn_of_another_worker_waits_for_its_result() {
    let life = by_hand();
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["run", "work"]).expect(0);
    assert_eq!(life.state("work"), "waiting");
    let turns = state(&life)["active_turns"].clone();
    let turn = turns.as_object().unwrap().keys().next().unwrap();
    let assignment = show(&life, &format!(".agentxchain/dispatch/turns/{turn}/ASSIGNMENT.json"));
    assert!(assignment.contains(turn), "{assignment}");
    let mut result = planned(&state(&life));
    result["proposed_next_role"] = json!("nobody");
    let file = life.repo.home().join("result.json");
    std::fs::write(&file, result.to_string()).unwrap();
    let before = life.rev("work");
    let refused = govern(&life, &["accept", "-b", "work", "-F", file.to_str().unwrap()]);
    assert_eq!((refused.code, life.rev("work")), (Some(2), before), "{refused:?}");
    assert!(refused.stderr.contains("hint:"), "{refused:?}");
    result["proposed_next_role"] = json!("dev");
    std::fs::write(&file, result.to_string()).unwrap();
    let done = govern(&life, &["accept", "--json", "-b", "work", "-F", file.to_str().unwrap()]).expect(0);
    assert_eq!(done.json()["state"], "turn/dev", "{done:?}");
    assert_eq!(lines(&show(&life, ".agentxchain/history.jsonl")).len(), 1);
}

/// The type of the runtime that does a role's turns.
fn runtime_of(life: &Life, role: &str) -> String {
    let config: Value = serde_json::from_str(&life.read("agentxchain.json")).unwrap();
    let runtime = config["roles"][role]["runtime"].as_str().unwrap();
    config["runtimes"][runtime]["type"].as_str().unwrap().to_owned()
}

/// G7: the command of a role has its say first, whoever assigned the turn: a worker stands behind its '--'.
#[test]
fn a_turn_that_a_person_assigned_goes_to_the_worker_of_the_roles_command() {
    let life = life(|_| {});
    assert_eq!(runtime_of(&life, "qa"), "manual", "no runtime of qa's is ours to start");
    govern(&life, &["start", "-b", "work", "--role", "qa"]).expect(0);
    govern(&life, &["assign", "qa", "-b", "work"]).expect(0);
    assert_eq!(life.state("work"), "turn/qa");
    life.run(&["run", "work"]);
    assert!(!["waiting", "turn/qa"].contains(&life.state("work").as_str()), "{}", life.state("work"));
}

/// G7, G8: once it was rejected, it waits for that worker again, and `status` says what brings its next result.
#[test]
fn a_rejected_turn_of_another_worker_waits_for_its_result_again() {
    let life = by_hand();
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["run", "work"]).expect(0);
    govern(&life, &["reject", "-b", "work", "-m", "not so"]).expect(0);
    // Its role's command is asked first who works on it now.
    assert_eq!(life.state("work"), "turn/pm");
    let said = govern(&life, &["status", "-b", "work"]).expect(0);
    assert!(said.stdout.contains("a turn of pm"), "{said:?}");
    life.run(&["run", "work"]).expect(0);
    assert_eq!(life.state("work"), "waiting");
    let said = govern(&life, &["status", "-b", "work"]).expect(0);
    assert!(said.stdout.contains("git aynig govern accept -b work -F <result>"), "{said:?}");
    assert_eq!(govern(&life, &["status", "--json", "-b", "work"]).expect(0).json()["state"], "waiting");
    let file = life.repo.home().join("result.json");
    let result = file.to_str().unwrap();
    std::fs::write(&file, planned(&state(&life)).to_string()).unwrap();
    govern(&life, &["accept", "-b", "work", "-F", result]).expect(0);
    assert_eq!(life.state("work"), "turn/dev");
    // In a plain folder no command is asked.
    let dir = life.repo.home().join("plain");
    std::fs::create_dir(&dir).unwrap();
    std::fs::copy(life.path("agentxchain.json"), dir.join("agentxchain.json")).unwrap();
    let root = dir.to_str().unwrap();
    govern(&life, &["start", "--root", root]).expect(0);
    govern(&life, &["assign", "--root", root]).expect(0);
    let rejected = govern(&life, &["reject", "--json", "--root", root, "-m", "not so"]).expect(0);
    assert_eq!(rejected.json()["state"], "waiting", "{rejected:?}");
    let said = govern(&life, &["status", "--root", root]).expect(0);
    assert!(said.stdout.contains("git aynig govern accept --root ") && said.stdout.contains(" -F <result>"));
    let text = std::fs::read_to_string(dir.join(".agentxchain/state.json")).unwrap();
    let plain: Value = serde_json::from_str(&text).unwrap();
    std::fs::write(&file, planned(&plain).to_string()).unwrap();
    govern(&life, &["accept", "--root", root, "-F", result]).expect(0);
}

/// K33: a branch brings neither workers nor hooks nor looser gates of its own.
#[test]
fn a_branch_does_not_bring_its_own_configuration() {
    let life = life(|_| {});
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.git(&["switch", "-q", "work"]);
    let mut config: Value = serde_json::from_str(&life.read("agentxchain.json")).unwrap();
    let evil = life.shared().join("evil");
    let touch = format!("touch '{}'", evil.display());
    config["gates"] = json!({});
    for phase in ["planning", "implementation", "qa"] {
        config["routing"][phase].as_object_mut().unwrap().remove("exit_gate");
    }
    config["hooks"] = json!({ "before_assignment": [
        { "name": "evil", "type": "process", "command": ["sh", "-c", touch], "timeout_ms": 5000, "mode": "advisory" }
    ] });
    config["runtimes"]["shell"]["command"] = json!(["sh", "-c", touch]);
    life.write("agentxchain.json", &format!("{config:#}\n"));
    life.write(".aynig/govern/worker", &format!("#!/bin/sh\n{touch}\n"));
    life.git(&["commit", "-qam", "evil\n\ndwp-state: turn/pm"]);
    life.git(&["switch", "-q", "main"]);
    life.run(&["run", "work"]).expect(0);
    assert_eq!(life.state("work"), "gate", "the gate of main holds");
    govern(&life, &["approve-phase", "-b", "work"]).expect(0);
    assert!(!evil.exists());
    // Where branches are trusted, it is theirs to say.
    life.config("aynig.commandsFrom", "branch");
    let ran = life.run(&["tick", "work"]);
    assert!(evil.exists(), "{ran:?} {}", life.git(&["log", "-1", "--format=%B", "work"]));
}

/// G8: acts that the run's rules refuse, change nothing; an act on a leased branch waits for no runner.
#[test]
fn what_is_refused_changes_nothing() {
    let life = life(|_| {});
    let missing = govern(&life, &["status", "-b", "work"]);
    assert!(missing.code == Some(128) && missing.stderr.contains("does not exist"), "{missing:?}");
    let none = govern(&life, &["status", "-b", "main"]);
    assert!(none.code == Some(128) && none.stderr.contains("hint: git aynig govern start"), "{none:?}");
    assert!(none.stderr.contains("branch 'main' holds no run"), "{none:?}");
    let none = govern(&life, &["approve-phase", "-b", "main"]);
    assert!(none.code == Some(128) && none.stderr.contains("branch 'main' holds no run"), "{none:?}");
    govern(&life, &["start", "-b", "work"]).expect(0);
    let head = life.rev("work");
    for act in [
        &["approve-phase"][..],
        &["approve-completion"],
        &["accept"],
        &["reject", "-m", "no"],
        &["unblock"],
        &["start"],
        &["assign", "nobody"],
    ] {
        let said = govern(&life, &[act, &["-b", "work"]].concat());
        assert_eq!((said.code, life.rev("work")), (Some(2), head.clone()), "{act:?}: {said:?}");
        assert!(said.stderr.starts_with("error: "), "{said:?}");
    }
    // What is pasted is about the same run.
    let refused = govern(&life, &["approve-phase", "-b", "work"]);
    assert!(refused.stderr.ends_with("hint: git aynig govern status -b work\n"), "{refused:?}");
    life.lease("work", "turn/pm", "11111111-2222-4333-8444-555555555555", 600, 0);
    let held = govern(&life, &["block", "-m", "stop", "-b", "work"]);
    assert_eq!(held.code, Some(3), "{held:?}");
    life.config("aynig.commandsFrom", "none");
    assert_eq!(govern(&life, &["block", "-m", "stop", "-b", "work"]).code, Some(2));
}

/// G8: blocking and escalating by hand.
#[test]
fn people_stop_a_run_and_let_it_go_on() {
    let life = life(|_| {});
    govern(&life, &["start", "-b", "work"]).expect(0);
    govern(&life, &["block", "-b", "work", "-m", "holidays"]).expect(0);
    assert_eq!(
        (life.state("work").as_str(), state(&life)["blocked_on"].as_str()),
        ("blocked", Some("human:holidays"))
    );
    govern(&life, &["unblock", "-b", "work"]).expect(0);
    govern(&life, &["escalate", "-b", "work", "-m", "Which greeting?"]).expect(0);
    assert_eq!(state(&life)["blocked_on"], "escalation:operator:which-greeting");
    govern(&life, &["unblock", "-b", "work"]).expect(0);
    assert_eq!(life.state("work"), "turn/pm");
    let ledger = lines(&show(&life, ".agentxchain/decision-ledger.jsonl"));
    assert!(ledger.iter().any(|entry| entry["decision"] == "escalation_resolved"), "{ledger:?}");
}

/// G7: where commands come from a ref, they are put there before a run begins.
#[test]
fn a_run_begins_once_every_role_has_a_command() {
    let life = life(|_| {});
    life.git(&["rm", "-rq", ".aynig/command/turn"]);
    life.git(&["commit", "-qm", "none"]);
    let refused = govern(&life, &["start", "-b", "work"]);
    assert_eq!((refused.code, life.try_rev("refs/heads/work")), (Some(1), None), "{refused:?}");
    assert!(refused.stderr.contains("git aynig govern start -b work"), "{refused:?}");
    life.git(&["add", ".aynig"]);
    life.git(&["commit", "-qm", "commands"]);
    govern(&life, &["start", "-b", "work"]).expect(0);
    assert_eq!(life.state("work"), "turn/pm");
    // The scaffold has the role's own runtime do the work: the branch's worker, whose command main names.
    life.run(&["tick", "work"]).expect(0);
    assert_eq!(life.state("work"), "gate");
}

/// G8: in a plain folder, without Git.
#[test]
fn a_plain_folder_is_governed_too() {
    let life = life(|_| {});
    let dir = life.repo.home().join("plain");
    std::fs::create_dir(&dir).unwrap();
    std::fs::copy(life.path("agentxchain.json"), dir.join("agentxchain.json")).unwrap();
    let root = dir.to_str().unwrap();
    govern(&life, &["start", "--root", root]).expect(0);
    let assigned = govern(&life, &["assign", "--root", root, "--json"]).expect(0).json();
    let turn = assigned["facts"]["turn"]["turn_id"].as_str().unwrap().to_owned();
    assert!(dir.join(assigned["facts"]["dispatch"].as_str().unwrap()).join("PROMPT.md").exists());
    govern(&life, &["reject", "--root", root, "-m", "not so"]).expect(0);
    let status = govern(&life, &["status", "--root", root]).expect(0);
    assert!(status.stdout.contains(&turn) && status.stdout.contains("attempt 2"), "{status:?}");
    let worker = Path::new(PACK).join("govern/worker");
    let again = ["loop", "--json", "--approve", "--root", root, "--", worker.to_str().unwrap()];
    // The first result of dev is no result: it is done again.
    let looped = govern(&life, &again);
    let report = looped.json();
    assert_eq!((looped.code, report["stop_reason"].as_str()), (Some(0), Some("completed")), "{looped:?}");
    assert_eq!((report["turns_executed"].as_u64(), report["gates_approved"].as_u64()), (Some(3), Some(2)));
}

/// G8: a role that is named when a run begins in a plain folder has the first turn.
#[test]
fn the_first_role_of_a_plain_folder_has_its_turn() {
    let life = life(|_| {});
    let begun_by = |folder: &str, role: &str, code: i32| {
        let dir = life.repo.home().join(folder);
        std::fs::create_dir(&dir).unwrap();
        std::fs::copy(life.path("agentxchain.json"), dir.join("agentxchain.json")).unwrap();
        let root = dir.to_str().unwrap().to_owned();
        let said = govern(&life, &["start", "--root", &root, "--role", role]).expect(code);
        (format!("{}{}", said.stdout, said.stderr), govern(&life, &["status", "--root", &root]))
    };
    for role in ["pm", "dev"] {
        let (said, status) = begun_by(role, role, 0);
        let turn = said.split_once(&format!("{role}: turn ")).unwrap().1.split_once(' ').unwrap().0;
        let shown = status.expect(0).stdout;
        assert!(shown.contains(turn) && shown.contains(role), "{said}{shown}");
    }
    let (said, _) = begun_by("none", "nobody", 2);
    assert!(said.contains("nobody"), "{said}");
}

/// K33: a clone that is not trusted runs no worker of its own, wherever the folder is named.
#[test]
fn a_folder_in_an_untrusted_repository_is_not_acted_on() {
    let life = life(|_| {});
    worker(&life, "echo ran >\"$T/ran\"");
    life.config("aynig.commandsFrom", "none");
    for args in [&["start", "--root", "."][..], &["loop"], &["loop", "--root", "."], &["turn", "--root", "."]]
    {
        let said = govern(&life, args).expect(2);
        assert!(said.stderr.contains("not trusted") && said.stderr.contains("aynig trust"), "{said:?}");
    }
    assert!(!life.shared().join("ran").exists() && !life.path(".agentxchain/state.json").exists());
    // It can be looked at.
    assert!(govern(&life, &["status", "--root", "."]).expect(0).stdout.contains("govern start"));
}

/// K33: what can't be opened as a repository is not taken for a plain folder.
#[test]
fn a_repository_that_cannot_be_opened_is_not_acted_on() {
    let life = life(|_| {});
    worker(&life, "echo ran >\"$T/ran\"");
    life.git(&["config", "aynig.fsync", "maybe"]);
    for args in [&["start", "--root", "."][..], &["loop"], &["turn", "--root", "."]] {
        let said = govern(&life, args).expect(128);
        assert!(said.stderr.contains("aynig.fsync"), "{said:?}");
    }
    assert!(!life.shared().join("ran").exists() && !life.path(".agentxchain/state.json").exists());
}

/// A hook of this phase, in the worktree, that answers so.
fn hooked(phase: &str, answer: &str) -> Life {
    let life = life(|config| {
        let hook = json!({
            "name": "guard", "type": "process", "mode": "blocking", "timeout_ms": 5000, "command": ["hooks/guard.sh"],
        });
        config["hooks"] = json!({ phase: [hook] });
    });
    life.write("hooks/guard.sh", &format!("#!/bin/sh\ncat >>\"$T/told\"\necho '{answer}'\n"));
    std::fs::set_permissions(life.path("hooks/guard.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    life.git(&["add", "hooks"]);
    life.git(&["commit", "-qm", "hook"]);
    life
}

/// G5, G7: a no to an assignment, or to a dispatch, is a no until a user acts.
#[test]
fn a_hook_that_says_no_blocks_the_run_and_is_asked_once() {
    for phase in ["before_assignment", "after_dispatch"] {
        let life = hooked(phase, "{\"verdict\":\"block\",\"message\":\"not today\"}");
        govern(&life, &["start", "-b", "work"]).expect(0);
        life.run(&["run", "work"]).expect(0);
        assert_eq!(
            (life.state("work").as_str(), state(&life)["status"].as_str()),
            ("blocked", Some("blocked"))
        );
        assert_eq!(state(&life)["blocked_on"], format!("hook:{phase}:guard"));
        let told = lines(&life.said("told"));
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0]["hook_phase"], phase, "{told:?}");
        assert_eq!(lines(&show(&life, ".agentxchain/hook-audit.jsonl")).len(), 1);
        // It can be looked at, and goes on.
        let said = govern(&life, &["status", "-b", "work"]).expect(0);
        assert!(said.stdout.contains("git aynig govern unblock -b work"), "{said:?}");
        govern(&life, &["unblock", "-b", "work"]).expect(0);
        assert_eq!(life.state("work"), "turn/pm");
    }
}

/// G5, G8: an assignment that a hook refused to a person blocks nothing, and the hint is what asks again.
#[test]
fn a_refused_assignment_hints_at_the_same_call() {
    let life = hooked("before_assignment", "{\"verdict\":\"block\",\"message\":\"not today\"}");
    let allow = "#!/bin/sh\ncat >/dev/null\necho '{\"verdict\":\"allow\"}'\n";
    let dir = life.repo.home().join("plain");
    std::fs::create_dir_all(dir.join("hooks")).unwrap();
    for file in ["agentxchain.json", "hooks/guard.sh"] {
        std::fs::copy(life.path(file), dir.join(file)).unwrap();
    }
    let root = dir.to_str().unwrap();
    for place in [["-b", "work"], ["--root", root]] {
        govern(&life, &[&["start"][..], &place[..]].concat()).expect(0);
        let refused = govern(&life, &[&["assign", "pm"][..], &place[..]].concat()).expect(1);
        let again = format!("once it is mended: git aynig govern assign {} ", place[0]);
        assert!(refused.stderr.contains(&again) && refused.stderr.ends_with(" pm\n"), "{refused:?}");
    }
    assert_eq!(state(&life)["status"], "active");
    // Mended, by the call that was named.
    std::fs::write(dir.join("hooks/guard.sh"), allow).unwrap();
    govern(&life, &["assign", "--root", root, "pm"]).expect(0);
    life.git(&["checkout", "-q", "work"]);
    life.write("hooks/guard.sh", allow);
    life.git(&["commit", "-qam", "mended\n\ndwp-state: turn/pm"]);
    life.git(&["checkout", "-q", "main"]);
    govern(&life, &["assign", "-b", "work", "pm"]).expect(0);
    assert!(state(&life)["active_turns"].as_object().is_some_and(|turns| turns.len() == 1));
}

/// G5: the dispatch's hook is given the bundle, and lets it go on.
#[test]
fn a_hook_sees_each_bundle_before_its_worker_does() {
    let life = hooked("after_dispatch", "{\"verdict\":\"allow\"}");
    govern(&life, &["start", "-b", "work"]).expect(0);
    life.run(&["tick", "work"]).expect(0);
    let told = &lines(&life.said("told"))[0]["payload"];
    assert_eq!(told["role_id"], "pm", "{told}");
    let folder = format!(".agentxchain/dispatch/turns/{}", told["turn_id"].as_str().unwrap());
    assert_eq!(told["bundle_path"], folder, "{told}");
    assert_eq!(told["bundle_files"], json!(["ASSIGNMENT.json", "CONTEXT.md", "PROMPT.md"]), "{told}");
    assert_eq!(life.state("work"), "gate");
}

/// G8: what a pushed branch plants in its own files reaches nothing else of the account's.
#[test]
fn a_branch_writes_to_its_own_files_alone() {
    let life = life(|_| {});
    govern(&life, &["start", "-b", "work"]).expect(0);
    let target = life.shared().join("profile");
    std::fs::write(&target, "kept\n").unwrap();
    let journal = json!({
        "transaction_id": "txn_1", "kind": "x", "prepared_at": "2026-01-01T00:00:00.000Z",
        "appends": [{ "file": target, "at": 5, "text": "echo owned\n" }],
    });
    life.git(&["checkout", "-q", "work"]);
    life.write(".agentxchain/transactions/lifecycle/txn_1.json", &journal.to_string());
    life.git(&["add", "-f", ".agentxchain"]);
    life.git(&["commit", "-qm", "mine"]);
    life.git(&["checkout", "-q", "main"]);
    govern(&life, &["block", "-b", "work", "-m", "stop"]).expect(0);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept\n");
    assert!(!life.git(&["ls-tree", "-r", "--name-only", "work"]).contains("txn_1.json"));
    // A link where a file of the run is.
    life.git(&["checkout", "-q", "work"]);
    std::os::unix::fs::symlink(&target, life.path(".agentxchain/events.jsonl.link")).unwrap();
    std::fs::rename(life.path(".agentxchain/events.jsonl.link"), life.path(".agentxchain/events.jsonl"))
        .unwrap();
    life.git(&["add", "-f", ".agentxchain"]);
    life.git(&["commit", "-qm", "link"]);
    life.git(&["checkout", "-q", "main"]);
    let said = govern(&life, &["block", "-b", "work", "-m", "stop"]);
    assert!(said.code != Some(0) && said.stderr.contains("events.jsonl"), "{said:?}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept\n");
}

/// G8, K33: a folder of a trusted repository is the same one, however it is named.
#[test]
fn a_folder_that_is_named_from_here_is_in_its_repository() {
    let life = life(|_| {});
    life.write("sub/agentxchain.json", &life.read("agentxchain.json"));
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "sub"]);
    life.git(&["config", "--global", "--unset", "aynig.commandsFrom"]);
    let refused = govern(&life, &["start", "--root", "sub"]).expect(2);
    assert!(refused.stderr.contains(&format!("git -C '{}", life.repo.path().display())), "{refused:?}");
    life.run(&["trust"]).expect(0);
    for root in ["sub", "./sub/../sub", life.path("sub").to_str().unwrap()] {
        govern(&life, &["start", "--root", root]).expect(0);
        govern(&life, &["assign", "--root", root]).expect(0);
        let state: Value = serde_json::from_str(&life.read("sub/.agentxchain/state.json")).unwrap();
        let turn = state["active_turns"].as_object().unwrap().values().next().unwrap();
        assert_eq!(turn["baseline"]["kind"], "git_worktree", "{root}");
        std::fs::remove_dir_all(life.path("sub/.agentxchain")).unwrap();
    }
}

//! What waits, and for how long: approvals that no person looks at, agents that hang beside others, circles and budgets
//! that end what goes on by itself. (N8-N11, K54)

use super::stage::{Stage, handoff};
use super::turn::{REAL, agent, played, says};
use crate::support::faketime::faketime;
use crate::support::life::{Running, eventually, now};
use aynig::contract::words::{Mode, Provider, RunStatus};
use serde_json::json;

const SOLO: &[super::stage::Role<'_>] = &[("solo", "implementer")];

/// A node whose every tool waits for a person, and an agent that asks about one and says what it was told.
fn gated() -> Stage {
    let ask = json!({"type": "approval.requested", "approvalId": "t-1",
        "tool": {"id": "t-1", "name": "command", "args": {"cmd": "one"}}});
    let script = format!(
        "read -r prompt; printf '%s\\n' \"$prompt\" >>\"$T/prompts\"; echo $$ >\"$T/pid\"\n\
         printf '%s\\n' '{ask}'; read -r answer; printf '%s\\n' \"$answer\" >>\"$T/answers\"\n{}",
        says("Asked.")
    );
    let mut stage = played(&script, SOLO);
    stage.gate("solo");
    stage
}

fn open(stage: &Stage) -> String {
    stage.life.git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/aynig/asked"])
}

/// N8: no person looks for an hour: the program lives on, its limits do not run, the lease is renewed, and no runner
/// takes over.
#[test]
fn a_question_waits_an_hour_and_is_answered_then() {
    let Some(library) = faketime() else {
        return crate::support::skipped("libfaketime is not installed");
    };
    let stage = gated();
    let (life, branch) = (&stage.life, stage.branch("solo"));
    for limit in ["silence", "time"] {
        life.config(&format!("aynig.provider.custom.{limit}"), "2s");
    }
    let clock = life.shared().join("clock");
    std::fs::write(&clock, "+0\n").unwrap();
    let fake = |args: &[&str]| {
        let mut command = life.aynig(args);
        command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &clock);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    };
    life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
    let tick = Running::of(fake(&["tick", "--lease", "12s", &branch]));
    let id = eventually("a question", || Some(open(&stage)).filter(|open| !open.is_empty()));
    std::fs::write(&clock, "+3600\n").unwrap();
    // It is renewed by that clock; and what its limits are passes on any.
    let committed = || life.git(&["log", "-1", "--format=%ct", &branch]).parse::<u64>().unwrap();
    let begun = std::time::Instant::now();
    eventually("a renewal an hour later", || {
        let late = begun.elapsed() > std::time::Duration::from_secs(3);
        (committed() > now() + 3000 && late).then_some(())
    });
    let other = crate::support::life::done(fake(&["tick", &branch]).output().unwrap());
    assert_eq!((open(&stage), life.state(&branch).as_str()), (id.clone(), "working"), "{other:?}");
    life.run(&["answer", &id, "approve"]).expect(0);
    tick.done().expect(0);
    assert!(life.said("answers").contains("approved"), "{}", life.said("answers"));
    assert_eq!(life.state(&branch), "route", "{}", life.body(&branch));
}

/// N8: a question goes with its turn, as denied; the next turn has what came, and asks anew.
#[test]
fn a_question_goes_with_its_turn_and_is_asked_anew() {
    let stage = gated();
    let (life, branch) = (&stage.life, stage.branch("solo"));
    life.run(&["send", &branch, "-m", "first words", "--no-tick"]).expect(0);
    let tick = life.start_tick(&[&branch]);
    let id = eventually("a question", || Some(open(&stage)).filter(|open| !open.is_empty()));
    tick.signal(nix::sys::signal::Signal::SIGTERM);
    tick.done();
    assert_eq!(open(&stage), "");
    let said = life.run(&["flow", "approve", &id]);
    assert_ne!(said.code, Some(0), "it is asked no more: {said:?}");
    let resolved = stage.events().into_iter().find_map(|event| match event.body {
        aynig::contract::event::Body::ApprovalResolved { resolution, .. } => Some(resolution),
        _ => None,
    });
    assert_eq!(serde_json::to_value(resolved.unwrap()).unwrap()["status"], "denied");
    if life.state(&branch) != "turn" {
        life.run(&["send", &branch, "-m", "again", "--no-tick"]).expect(0);
    }
    let tick = life.start_tick(&[&branch]);
    let anew = eventually("a question", || Some(open(&stage)).filter(|open| !open.is_empty()));
    assert_ne!(anew, id);
    life.run(&["flow", "deny", &anew, "-m", "not that"]).expect(0);
    tick.done().expect(0);
    assert_eq!(life.said("prompts").matches("> first words").count(), 2, "{}", life.said("prompts"));
    assert!(life.said("answers").contains("not that"), "{}", life.said("answers"));
}

/// N9: an agent that hangs freezes no other node.
#[test]
fn an_agent_that_hangs_leaves_others_alone() {
    let script = format!(
        "read -r prompt; case $AYNIG_BRANCH in */hangs) echo up >\"$T/up\"; exec sleep 1000;; esac\n{}",
        says("Well.")
    );
    let stage = played(&script, &[("hangs", "r"), ("works", "r")]);
    let life = &stage.life;
    for node in ["hangs", "works"] {
        life.run(&["send", &stage.branch(node), "-m", "go", "--no-tick"]).expect(0);
    }
    let run = life.start(&["run", "--jobs", "2"]);
    life.hear("up");
    let routed = || life.states(&stage.branch("works")).iter().any(|state| state == "route");
    eventually("the other had its turn", || {
        (routed() && life.state(&stage.branch("works")) == "idle").then_some(())
    });
    assert_eq!(life.state(&stage.branch("hangs")), "working");
    life.run(&["send", &stage.branch("hangs"), "--kind", "interrupt", "-m", "", "--no-tick"]).expect(0);
    run.done().expect(0);
    assert_eq!(life.state(&stage.branch("hangs")), "idle");
}

/// N11: output, diff and verification stall a node, each by itself.
#[test]
fn each_signal_stalls_a_node_by_itself() {
    for (trailer, key) in [
        ("dwp-output-hash", "outputHash"),
        ("dwp-diff-hash", "diffHash"),
        ("dwp-verification", "verificationFailure"),
    ] {
        let stage = Stage::new(Mode::Auto, &[("lead", "orchestrator")]);
        stage.life.config("aynig.stallTurns", "1");
        for n in 1..6 {
            let others = ["dwp-output-hash", "dwp-diff-hash"].into_iter().filter(|other| *other != trailer);
            let mut more: Vec<String> = others.map(|other| format!("{other}: {n}")).collect();
            more.push(format!("{trailer}: same"));
            stage.turn("lead", n, "", &[], &more);
        }
        stage.say("lead", "go").expect(0);
        assert_eq!((stage.turns("lead"), stage.now().run.status), (2, RunStatus::Paused), "{trailer}");
        let evidence = stage.events().into_iter().find_map(|event| match event.body {
            aynig::contract::event::Body::RunStalled { evidence } => Some(evidence),
            _ => None,
        });
        let evidence = serde_json::to_value(evidence.unwrap()).unwrap();
        assert_eq!(evidence[key], "same", "{trailer}: {evidence}");
    }
}

/// N11: the account's own command says that it is the same failure, whatever the agent says and changes.
#[test]
fn a_verification_that_fails_alike_stalls_a_node() {
    let script = "read -r prompt; n=$(ls \"$T\"/turn.* 2>/dev/null | wc -l); touch \"$T/turn.$n\"; echo \"$n\" >\"made.$n\"\n\
        printf '%s\\n' \"{\\\"type\\\":\\\"message.assistant.final\\\",\\\"content\\\":\\\"Try $n.\\\"}\"";
    let stage = Stage::with(REAL, Mode::Auto, &[("lead", "orchestrator")]);
    agent(&stage, script);
    stage.life.config("aynig.stallTurns", "2");
    stage.life.config("aynig.flowVerify", "sh -c 'echo \"test 7 failed after $(date +%N) ms\"; exit 3'");
    stage.life.run(&["send", &stage.branch("lead"), "-m", "go", "--no-tick"]).expect(0);
    stage.go().expect(0);
    let tries = std::fs::read_dir(stage.life.shared()).unwrap().flatten();
    let tries = tries.filter(|entry| entry.file_name().to_string_lossy().starts_with("turn.")).count();
    assert_eq!((tries, stage.now().run.status), (3, RunStatus::Paused), "the first and two repetitions");
    let body = stage.life.body(&stage.branch("lead"));
    assert!(body.contains("verificationFailure") && body.contains("Try 2."), "{body}");
}

/// N10, K54: what goes on by itself ends at the flow's limit of hops, and at what its branch may cost.
#[test]
fn what_goes_on_by_itself_ends_by_hops_and_by_budget() {
    let stage = Stage::new(Mode::Auto, &[("lead", "orchestrator"), ("one", "r")]);
    stage.life.config("aynig.flowHops", "6");
    stage.turn("lead", 1, "", &[handoff("one", "do")], &[]);
    stage.say("lead", "go").expect(0);
    assert!((2..=4).contains(&stage.turns("lead")), "{}", stage.turns("lead"));
    assert_eq!((stage.now().run.status, stage.turns("one")), (RunStatus::Paused, 1));
    assert!(stage.life.body(&stage.branch("lead")).starts_with("hop limit: "));

    let mut stage = Stage::with(REAL, Mode::Auto, &[("lead", "orchestrator")]);
    let id = stage.id("lead");
    stage.flow.nodes[&id].config.provider = Provider::Claude;
    stage.write_flow();
    let path = stage.life.shared().join("claude.sh");
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "cwd": "/"}),
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "Went on."}]}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "session_id": "s",
            "usage": {"input_tokens": 10, "output_tokens": 2}, "total_cost_usd": 0.25}),
    ];
    let print = lines.iter().map(|line| format!("printf '%s\\n' '{line}'\n")).collect::<String>();
    let script = format!("cat >/dev/null; echo x >>'{}/turns'\n{print}", stage.life.shared().display());
    std::fs::write(&path, script).unwrap();
    stage.life.config("aynig.provider.claude.command", &format!("sh '{}'", path.display()));
    stage.life.config("aynig.budgetPerBranch", "0.60");
    stage.life.run(&["send", &stage.branch("lead"), "-m", "go", "--no-tick"]).expect(0);
    stage.go();
    assert_eq!(stage.life.said("turns").lines().count(), 3, "0.75 is beyond it");
    let said = stage.life.run(&["status", &stage.branch("lead")]).expect(0).stdout;
    assert!(said.contains("budget"), "{said}");
    assert_eq!(stage.now().run.status, RunStatus::Running);
    // A person lets it go on.
    stage.life.config("aynig.budgetPerBranch", "0.80");
    stage.go();
    assert_eq!(stage.life.said("turns").lines().count(), 4);
}

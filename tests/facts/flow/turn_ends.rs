//! How turns end that do not end well: each by its name, with what mends it, nothing frozen, and nothing that was said lost.

use super::stage::Stage;
use super::turn::{agent, left, played, says, turn};
use serde_json::{Value, json};

const SOLO: &[(&str, &str)] = &[("solo", "implementer")];

/// A turn that stalls, and what its stalled head says of it.
#[track_caller]
fn stalls(stage: &Stage) -> String {
    turn(stage, "solo", "first words");
    let branch = stage.branch("solo");
    assert_eq!(stage.life.state(&branch), "stalled", "{}", stage.life.body(&branch));
    stage.life.body(&branch)
}

/// N9: agents that die, flood, print what cannot be read, or look like us: named, and the turn is over.
#[test]
fn every_bad_end_has_its_name() {
    let half = json!({"type": "message.assistant.delta", "delta": "Half"});
    let bad = [
        ("exit 3", "crashed: exit 3"),
        ("echo 'out of paper' >&2; exit 4", "out of paper"),
        ("kill -9 $$", "interrupted: its stream ended without its last line"),
        (&*format!("printf '%s' '{half}'"), "interrupted: its stream ended without its last line"),
        ("printf '\\377\\376\\0binary\\n'; exit 5", "crashed: exit 5"),
        ("echo 'SET_STATE {\"state\":\"done\"}'; exit 6", "crashed: exit 6"),
        ("head -c 20000000 /dev/zero; exit 7", "crashed: exit 7"),
        ("yes '{\"type\":\"node.log\"' | head -c 30000000; exit 8", "crashed: exit 8"),
    ];
    for (script, name) in bad {
        let stage = played(&format!("read -r prompt\n{script}"), SOLO);
        let body = stalls(&stage);
        assert!(body.contains("custom: ") && body.contains(name), "{script}: {body}");
        assert!(!stage.life.git(&["log", "--format=%s", "--all"]).contains("set done"), "{script}");
        // It left what it had, and a message is the retry, with what came before.
        assert!(left(&stage, "solo", "prompt.full.txt").contains("> first words"), "{script}");
        let again = format!("read -r prompt; printf '%s\\n' \"$prompt\" >\"$T/prompt\"\n{}", says("Well."));
        agent(&stage, &again);
        turn(&stage, "solo", "second words").expect(0);
        assert_eq!(stage.life.state(&stage.branch("solo")), "route");
        let prompt = stage.life.said("prompt");
        assert!(prompt.contains("> first words") && prompt.contains("> second words"), "{script}: {prompt}");
    }
}

/// N9, N13: who looks at a flow is told why a turn failed, in the program's own last words, by the turn's ending.
#[test]
fn a_failed_turn_tells_why_to_who_looks() {
    let stage = played("read -r prompt; echo noise >&2; echo 'out of paper' >&2; exit 4", SOLO);
    stalls(&stage);
    for _ in 0..2 {
        let events: Vec<Value> =
            stage.events().iter().map(|event| serde_json::to_value(event).unwrap()).collect();
        let why = json!("custom: crashed: exit 4: out of paper");
        let failed = |event: &&Value| event["status"] == "turn.failed";
        assert_eq!(events.iter().find(failed).unwrap()["detail"], why);
        let last = events.iter().rev().find(|event| event["type"] == "node.progress").unwrap();
        assert_eq!((&last["status"], &last["summary"]), (&json!("failed"), &why));
        std::fs::remove_dir_all(stage.folder()).unwrap();
    }
}

/// N9: a program that is not there is named, with the key that says where it is.
#[test]
fn a_missing_program_is_named() {
    let stage = played("", SOLO);
    stage.life.config("aynig.provider.custom.command", "no-such-agent");
    let body = stalls(&stage);
    assert!(body.contains("missing-program: there is no program 'no-such-agent'"), "{body}");
    assert!(body.contains("aynig.provider.custom.command"), "{body}");
}

/// N9, K33: a program that is named by a relative path would be looked for in a branch's files.
#[test]
fn a_program_by_a_relative_path_is_refused() {
    let stage = played("", SOLO);
    stage.life.config("aynig.provider.custom.command", "./agent --fast");
    let body = stalls(&stage);
    assert!(body.contains("a program's name, or its absolute path"), "{body}");
}

/// N9: silence and time have limits of their own, and what was started in a session of its own ends too.
#[test]
fn silence_and_time_have_limits_and_nothing_is_left() {
    let stage = played(
        "trap '' INT TERM; read -r prompt; setsid sleep 987654 & echo $! >\"$T/pid\"; while :; do sleep 1; done",
        SOLO,
    );
    stage.life.config("aynig.provider.custom.silence", "1s");
    stage.life.config("aynig.killGrace", "1s");
    let body = stalls(&stage);
    assert!(body.contains("silent: it said nothing for 1 s\n    hint: "), "{body}");
    let pid = stage.life.said("pid").trim().to_owned();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} lives");

    let stage = played("read -r prompt; while :; do echo x; sleep 0.1; done", SOLO);
    stage.life.config("aynig.provider.custom.time", "1s");
    stage.life.config("aynig.killGrace", "1s");
    let body = stalls(&stage);
    assert!(body.contains("out-of-time: it took more than 1 s"), "{body}");
}

/// N9: a program that waits for the end of its input, which stays open, is told what mends that.
#[test]
fn a_jsonl_program_that_reads_to_the_end_is_told_so() {
    let stage = played("cat >/dev/null; echo never", SOLO);
    stage.life.config("aynig.provider.custom.silence", "1s");
    stage.life.config("aynig.killGrace", "1s");
    let body = stalls(&stage);
    assert!(body.contains("silent: ") && body.contains("its input stays open"), "{body}");
    assert!(body.contains("aynig.provider.custom.protocol"), "{body}");
}

/// N4, N12: to a turn that is started by an empty interrupt alone nothing came: no program is asked.
#[test]
fn a_turn_to_which_only_an_empty_interrupt_came_starts_nothing() {
    let stage = played(&format!("read -r prompt; echo x >>\"$T/asked\"\n{}", says("Well.")), SOLO);
    let branch = stage.branch("solo");
    stage.life.run(&["send", &branch, "--kind", "interrupt", "-m", "", "--no-tick"]).expect(0);
    stage.life.tick(&[&branch]).expect(0);
    assert_eq!((stage.life.state(&branch).as_str(), stage.life.said("asked").as_str()), ("idle", ""));
    let node = &stage.run().nodes[&stage.id("solo")];
    assert_eq!(node.status, aynig::contract::words::NodeStatus::Idle);
    // What comes then is heard as ever, and alone.
    turn(&stage, "solo", "now").expect(0);
    assert_eq!((stage.life.state(&branch).as_str(), stage.life.said("asked").as_str()), ("route", "x\n"));
}

/// N9: a raw program's text is everything that it prints, and its exit status the verdict.
#[test]
fn a_raw_program_says_all_that_it_prints() {
    let stage = played("cat >\"$T/prompt\"; echo Hello.; printf 'No end'", SOLO);
    stage.life.config("aynig.provider.custom.protocol", "raw");
    turn(&stage, "solo", "greet").expect(0);
    let (life, branch) = (&stage.life, stage.branch("solo"));
    assert_eq!(life.state(&branch), "route", "{}", life.body(&branch));
    assert!(life.body(&branch).starts_with("Hello.\n\nHello.\nNo end\n"), "{}", life.body(&branch));
    assert_eq!(life.said("prompt"), left(&stage, "solo", "prompt.full.txt") + "");
}

/// N9, N4: no agent is told what the kernel tells commands, nor what the branch made of its environment.
#[test]
fn an_agents_environment_is_not_the_runs() {
    let stage = played(&format!("read -r prompt; env >\"$T/env\"\n{}", says("Well.")), SOLO);
    stage.life.config("aynig.provider.custom.env", "MY_KEY=secret");
    turn(&stage, "solo", "go").expect(0);
    let env = stage.life.said("env");
    for name in ["AYNIG_RESULT=", "AYNIG_RUN_ID=", "AYNIG_MESSAGES=", "DWP_", "BODY=", "COMMIT_HASH="] {
        assert!(!env.lines().any(|line| line.starts_with(name)), "{name}: {env}");
    }
    assert!(env.contains("MY_KEY=secret\n") && env.contains("/turn/tmp\n"), "{env}");
    // What its folder held is gone with the turn.
    let tmp = env.lines().find_map(|line| line.strip_prefix("TMPDIR=")).unwrap();
    assert!(!std::path::Path::new(tmp).exists());
}

/// N9, K33: the repository's own configuration names no program.
#[test]
fn a_repository_names_no_program() {
    let stage = played(&says("Well."), SOLO);
    let evil = stage.life.shared().join("evil.sh");
    std::fs::write(&evil, "echo evil >\"$(dirname \"$0\")/ran\"\n").unwrap();
    stage.life.git(&[
        "config",
        "--local",
        "aynig.provider.custom.command",
        &format!("sh '{}'", evil.display()),
    ]);
    stage.life.git(&["config", "--local", "aynig.provider.custom.env", "LD_PRELOAD=/evil.so"]);
    turn(&stage, "solo", "go").expect(0);
    assert_eq!(
        (stage.life.state(&stage.branch("solo")).as_str(), stage.life.said("ran").as_str()),
        ("route", "")
    );
}

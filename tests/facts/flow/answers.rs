//! What a person says to a node reaches it, whatever its program speaks and however it asked. (N4, N5, N8)

use super::stage::Stage;
use super::turn::played;
use crate::support::life::eventually;
use serde_json::json;

/// A raw program that makes these calls at its first prompt, and says what it is told at each.
fn raw(calls: &[serde_json::Value]) -> Stage {
    let lines: String = calls.iter().map(|call| format!("{}\n", json!({ "tool_call": call }))).collect();
    let script = format!(
        "n=$(cat \"$T/n\" 2>/dev/null || echo 0); n=$((n+1)); cat >\"$T/prompt.$n\"; echo $n >\"$T/n\"\n\
         if [ $n = 1 ]; then echo 'First.'; cat <<'CALLS'\n{lines}CALLS\nelse echo \"Done $n.\"; fi"
    );
    let stage = played(&script, &[("lead", "orchestrator"), ("worker", "implementer")]);
    stage.life.config("aynig.provider.custom.protocol", "raw");
    stage
}

/// The question that is open, once there is one.
fn question(stage: &Stage) -> String {
    let open = || stage.life.git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/aynig/asked"]);
    eventually("a question", || Some(open()).filter(|open| !open.is_empty())).trim().to_owned()
}

/// N8: an answer is the node's next turn, where its program was over when the answer came.
#[test]
fn an_answer_to_a_raw_program_is_its_next_turn() {
    let stage =
        raw(&[json!({"name": "ask", "args": {"question": "Which colour?", "choices": ["red", "blue"]}})]);
    let (life, branch) = (&stage.life, stage.branch("lead"));
    life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
    let run = life.start_tick(&[&branch]);
    let asked = question(&stage);
    let shown = life.run(&["flow", "show", "play"]).expect(0).stdout;
    assert!(!shown.contains("flow approve"), "it is no call to approve: {shown}");
    let status = life.run(&["status"]).expect(0).stdout;
    let hint = format!("git aynig answer {branch} <red|blue>");
    assert!(shown.contains(&hint) && status.contains(&hint), "{shown}{status}");
    let long = format!("As the sky.\n{}\nand so to its end", "x".repeat(60_000));
    life.run(&["answer", &asked, "blue", "-m", &long]).expect(0);
    run.done().expect(0);
    stage.go().expect(0);
    assert_eq!(life.said("n").trim(), "2", "{}", life.body(&branch));
    let prompt = life.said("prompt.2");
    for said in ["Which colour?", "blue"].into_iter().chain(long.lines()) {
        assert!(prompt.contains(said), "{} bytes of it are lost in {}", said.len(), prompt.len());
    }
    // It is told once.
    life.run(&["send", &branch, "-m", "more", "--no-tick"]).expect(0);
    stage.go().expect(0);
    assert!(!life.said("prompt.3").contains("As the sky."), "{}", life.said("prompt.3"));
}

/// N8: so is a person's no to a call; one that is allowed goes as it was wished, and is no news.
#[test]
fn a_no_to_a_call_of_a_raw_program_is_its_next_turn() {
    let call = |to: &str| json!({"name": "send_handoff", "args": {"to": to, "message": "do it"}});
    for (verb, turns) in [("deny", "2"), ("approve", "1")] {
        let mut stage = raw(&[call("worker")]);
        stage.gate("lead");
        let (life, branch) = (&stage.life, stage.branch("lead"));
        life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
        let run = life.start_tick(&[&branch]);
        let asked = question(&stage);
        let shown = life.run(&["flow", "show", "play"]).expect(0).stdout;
        assert!(shown.contains(&format!("git aynig flow approve {asked}")), "{shown}");
        life.run(&["flow", verb, &asked, "-m", "Not today."]).expect(0);
        run.done().expect(0);
        life.tick(&[&branch]).expect(0);
        life.tick(&[&branch]);
        assert_eq!(life.said("n").trim(), turns, "{verb}: {}", life.body(&branch));
        assert_eq!(life.said("prompt.2").contains("Not today."), verb == "deny");
    }
}

/// N7: what is refused to a raw program is its next turn, which it has once; so is a line that is no call.
#[test]
fn a_refusal_to_a_raw_program_is_its_next_turn() {
    let handoff = json!({"name": "send_handoff", "args": {"to": "nobody", "message": "do it"}});
    for (call, said) in [(handoff, "nobody"), (json!({"name": 5}), "a tool call without a name")] {
        let stage = raw(&[call]);
        let (life, branch) = (&stage.life, stage.branch("lead"));
        life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
        stage.go().expect(0);
        assert_eq!(life.said("n").trim(), "2", "{}", life.body(&branch));
        assert!(life.said("prompt.2").contains(said), "{}", life.said("prompt.2"));
        // What follows is counted: no person had a say.
        assert_ne!(
            life.git(&["log", "-1", "--format=%(trailers:key=dwp-hop,valueonly)", &branch]).trim(),
            "1"
        );
        life.run(&["send", &branch, "-m", "more", "--no-tick"]).expect(0);
        stage.go().expect(0);
        assert!(!life.said("prompt.3").contains(said), "{}", life.said("prompt.3"));
    }
}

/// N7: what a raw program wants stands at the end of what it prints, however long that is.
#[test]
fn a_raw_program_that_prints_much_is_heard_to_its_end() {
    let call = json!({"tool_call": {"name": "send_handoff", "args": {"to": "worker", "message": "do it"}}});
    let script = format!(
        "cat >/dev/null; echo 'What came of it.'; head -c 9000000 /dev/zero | tr '\\0' x; echo; echo 'Its end.'\n\
         cat <<'CALL'\n{call}\nCALL"
    );
    let stage = played(&script, &[("lead", "orchestrator"), ("worker", "implementer")]);
    stage.life.config("aynig.provider.custom.protocol", "raw");
    let (life, branch) = (&stage.life, stage.branch("lead"));
    life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
    life.tick(&[&branch]).expect(0);
    assert_eq!(life.git(&["log", "-1", "--format=%s", &branch]), "What came of it.");
    assert!(life.git(&["log", "-1", "--format=%(trailers:key=dwp-flow-call)", &branch]).contains("do it"));
}

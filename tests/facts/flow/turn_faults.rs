//! What an agent gets wrong, or is cut off in: refused or told, and nothing of the turn is lost for it.

use super::stage::{SESSION, Stage, call, handoff, print};
use super::turn::{REAL, agent, calls, left, played, says, turn};
use crate::support::life::eventually;
use aynig::contract::words::{CliPermissionsMode, GlobalMode, Mode, Provider};
use serde_json::{Value, json};
use std::fs;

const PAIR: &[(&str, &str)] = &[("lead", "orchestrator"), ("worker", "implementer")];
const SOLO: &[(&str, &str)] = &[("solo", "implementer")];
const SCISSORS: &str = "# ------------------------ >8 ------------------------";

/// A jsonl agent that makes these calls, hears what comes of each, and ends.
fn hears(made: &[Value]) -> String {
    format!(
        "read -r prompt\n{}\nn=0; while [ $n -lt {} ]; do read -r line; n=$((n+1)); printf '%s\\n' \"$line\" >>\"$T/results\"; done\n{}",
        calls("Calling.", made),
        made.len(),
        says("Called.")
    )
}

fn results(stage: &Stage) -> Vec<Value> {
    stage.life.said("results").lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The names of what a turn's outcome wants done.
fn wanted(stage: &Stage, node: &str) -> Vec<Value> {
    let branch = stage.branch(node);
    let wanted = stage.life.git(&["log", "-1", "--format=%(trailers:key=dwp-flow-call,valueonly)", &branch]);
    wanted.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What its agent is to be told with the next prompt.
fn untold(stage: &Stage, node: &str) -> String {
    let record: Value = serde_json::from_str(&left(stage, node, "turn.json")).unwrap();
    record["untold"].to_string()
}

/// N5, N7: what no message can hold is refused when it is called.
#[test]
fn a_handoff_that_no_message_can_hold_is_refused_in_the_turn() {
    let long = format!("{}{}", "x".repeat(1 << 20), " ".repeat(10));
    let hand = |id: &str, text: &str| json!({"id": id, "name": "send_handoff", "args": {"to": "worker", "message": text}});
    let spawn = |id: &str, text: &str| json!({"id": id, "name": "spawn_node", "args": {"label": "N", "roleTemplate": "tester", "instructions": text}});
    let cut = format!("before\n{SCISSORS}\nafter");
    let made = [hand("cut", &cut), hand("nul", "a\0b"), spawn("spawned", &cut), hand("good", "do it")];
    let stage = played(&hears(&made), PAIR);
    turn(&stage, "lead", "go").expect(0);
    let told = results(&stage);
    let result = |id: &str| told.iter().find(|line| line["toolId"] == id).unwrap();
    for (id, why) in [("cut", "scissors"), ("nul", "NUL"), ("spawned", "scissors")] {
        let said = result(id)["error"]["message"].as_str().unwrap_or("it was accepted");
        assert!(said.contains(why), "{id}: {said}");
    }
    assert_eq!(result("good")["result"]["ok"], true);
    let names: Vec<Value> = wanted(&stage, "lead").iter().map(|call| call["providerId"].clone()).collect();
    assert_eq!(names, [json!("good")]);
    // A text whose blanks alone make it too long is too long.
    let flow = &stage.flow;
    let args = json!({"to": "worker", "message": long});
    let asked =
        aynig::contract::tools::request(flow, stage.id("lead"), "send_handoff", args.as_object().unwrap());
    assert!(asked.is_err(), "{} bytes", long.len());
}

/// N5: one call that can't be performed is refused and told, and what else the node calls is performed.
#[test]
fn a_call_that_cannot_be_performed_does_not_silence_its_node() {
    let stage = Stage::new(Mode::Interactive, PAIR);
    let bad = [
        handoff("worker", &format!("before\n{SCISSORS}\nafter")),
        handoff("worker", "a\0b"),
        handoff("worker", "good"),
    ];
    stage.turn("lead", 1, "", &bad, &[]);
    stage.say("lead", "go").expect(0);
    let heard: Vec<Value> = stage.messages("worker", 1).iter().map(|m| m["text"].clone()).collect();
    assert_eq!(heard, [json!("good")]);
    let told = stage.messages("lead", 2);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter().all(|m| m["text"].as_str().unwrap().starts_with("Your call of send_handoff")),
        "{told:?}"
    );
    assert_eq!(stage.life.state(&stage.branch("lead")), "idle");
}

/// N5: an id that something else took does not, either.
#[test]
fn a_handoff_whose_place_is_taken_does_not_silence_its_node() {
    let stage = Stage::new(Mode::Interactive, PAIR);
    stage.turn("lead", 1, "", &[handoff("worker", "first"), handoff("worker", "second")], &[]);
    let branch = stage.branch("lead");
    stage.life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
    stage.life.tick(&[&branch]).expect(0);
    let calls = wanted(&stage, "lead");
    let trigger = stage.life.rev(&format!("{branch}~2"));
    let at: i64 = stage.life.git(&["log", "-1", "--format=%ct", &trigger]).parse().unwrap();
    let call: aynig::contract::event::ToolCall = serde_json::from_value(calls[0].clone()).unwrap();
    let at = aynig::contract::time::Time::from_seconds(at);
    let id = aynig::contract::id::PayloadId::of_call(call.id, at);
    stage.life.git(&["update-ref", &format!("refs/aynig/heard/{id}"), "main"]);
    stage.go().expect(0);
    let heard: Vec<Value> = stage.messages("worker", 1).iter().map(|m| m["text"].clone()).collect();
    assert_eq!(heard, [json!("second")], "{:?}", stage.letters());
    assert_eq!(stage.life.state(&branch), "idle");
}

/// A flow whose lead is codex, and its program this script; the worker is no known provider's.
fn of_codex(script: &str, nodes: &[(&str, &str)]) -> Stage {
    let mut stage = Stage::with(REAL, Mode::Interactive, nodes);
    let id = stage.id(nodes[0].0);
    stage.flow.nodes[&id].config.provider = Provider::Codex;
    stage.write_flow();
    codex(&stage, script);
    stage
}

fn codex(stage: &Stage, script: &str) {
    let path = stage.life.shared().join("codex.sh");
    fs::write(&path, format!("T='{}'\n{script}\n", stage.life.shared().display())).unwrap();
    stage.life.config("aynig.provider.codex.command", &format!("sh '{}'", path.display()));
}

/// What codex prints of a turn that ended well, its thread's sum being that.
fn codex_says(text: &str, sum: u64) -> String {
    [
        json!({"type": "thread.started", "thread_id": SESSION}),
        json!({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": text}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": sum, "output_tokens": sum / 10}}),
    ]
    .iter()
    .map(print)
    .collect()
}

/// What it prints of one that did not.
fn codex_fails(why: &str) -> String {
    let lines = [
        json!({"type": "thread.started", "thread_id": SESSION}),
        json!({"type": "turn.failed", "error": {"message": why}}),
    ];
    lines.iter().map(print).collect::<String>() + "exit 1\n"
}

/// N5, N7: what a round of the turn called is wanted, however a later one of it ends, and what that did not tell is told.
#[test]
fn a_later_round_that_fails_takes_no_call_back() {
    for why in ["You've hit your usage limit.", "something else"] {
        let text = [("worker", "build it"), ("bob", "you too")]
            .map(|(to, message)| json!({"tool_call": {"name": "send_handoff", "args": {"to": to, "message": message}}}));
        let text = format!("Handed on.\n{}\n{}", text[0], text[1]);
        let script = format!(
            "cat >>\"$T/prompts\"\nif [ -e \"$T/second\" ]; then {}fi\ntouch \"$T/second\"\n{}",
            codex_fails(why),
            codex_says(&text, 100)
        );
        let stage = of_codex(&script, PAIR);
        turn(&stage, "lead", "go").expect(0);
        let (life, branch) = (&stage.life, stage.branch("lead"));
        assert!(life.said("prompts").contains("there is no node 'bob'"), "the second round tells it");
        assert_eq!(life.state(&branch), "route", "{why}: {}", life.body(&branch));
        assert!(life.body(&branch).starts_with("Handed on.\n"), "{}", life.body(&branch));
        assert!(wanted(&stage, "lead")[0]["args"]["message"] == "build it", "{why}");
        assert!(untold(&stage, "lead").contains("there is no node 'bob'"), "{}", untold(&stage, "lead"));
        let events = left(&stage, "lead", "events.jsonl");
        assert!(events.contains(why), "{events}");
    }
}

/// N7: where no round ended well, what was called is told as not performed, and is over for who looks.
#[test]
fn calls_of_a_turn_that_failed_are_told_and_over() {
    let made = [json!({"id": "h", "name": "send_handoff", "args": {"to": "worker", "message": "build it"}})];
    let script = format!("read -r prompt\n{}\nread -r line\nexit 3", calls("Handing on.", &made));
    let stage = played(&script, PAIR);
    turn(&stage, "lead", "go");
    assert_eq!(stage.life.state(&stage.branch("lead")), "stalled");
    let told = untold(&stage, "lead");
    assert!(told.contains("send_handoff") && told.contains("not performed"), "{told}");
    let events = left(&stage, "lead", "events.jsonl");
    let over =
        events.lines().any(|line| line.contains("\"tool.completed\"") && line.contains("not performed"));
    assert!(over, "{events}");
}

/// N8: a question that no person could answer is the call's error.
#[test]
fn a_question_that_cannot_be_asked_is_refused() {
    let ask = |id: &str, question: &str, choices: Value| json!({"id": id, "name": "ask", "args": {"question": question, "choices": choices}});
    let many: Vec<String> = (0..65).map(|n| n.to_string()).collect();
    let made = [
        ask("empty", "ok?", json!(["yes", ""])),
        ask("long", "ok?", json!(["x".repeat(1001)])),
        ask("many", "ok?", json!(many)),
        ask("lines", "ok?", json!(["a\nb"])),
        ask("nul", "a\0b", json!([])),
        ask("nul-choice", "ok?", json!(["a\0b"])),
        ask("cut", SCISSORS, json!(["yes"])),
    ];
    let stage = played(&hears(&made), SOLO);
    let (life, branch) = (&stage.life, stage.branch("solo"));
    life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
    let tick = life.start_tick(&[&branch]);
    eventually("each is answered", || Some(results(&stage)).filter(|told| told.len() == made.len()));
    tick.done().expect(0);
    for result in results(&stage) {
        assert!(result["error"]["message"].is_string(), "{result}");
    }
    assert_eq!(life.state(&branch), "route", "{}", life.body(&branch));
    assert_eq!(life.git(&["for-each-ref", "refs/aynig/asked"]), "");
}

/// N7, N8: no node makes one that may more, or that fewer are asked about.
#[test]
fn a_spawned_node_may_no_more_than_who_spawned_it() {
    let mut stage = Stage::new(Mode::Interactive, &[PAIR[0]]);
    let id = stage.id("lead");
    let config = &mut stage.flow.nodes[&id].config;
    config.permissions.cli_permissions_mode = CliPermissionsMode::Gated;
    config.permissions.agent_management_requires_approval = true;
    (config.capabilities.write_code, config.capabilities.run_commands) = (false, false);
    config.capabilities.delegate_only = true;
    stage.write_flow();
    let asks = json!({"label": "Asks", "alias": "asks", "roleTemplate": "orchestrator",
        "permissions": {"cliPermissionsMode": "skip", "agentManagementRequiresApproval": false},
        "capabilities": {"writeCode": true, "runCommands": true, "edgeManagement": "all"}});
    let silent = json!({"label": "Silent", "alias": "silent", "roleTemplate": "orchestrator"});
    stage.turn("lead", 1, "", &[call("spawn_node", asks), call("spawn_node", silent)], &[]);
    stage.say("lead", "go").expect(0);
    let flow = stage.now();
    for name in ["asks", "silent"] {
        let config = &flow.nodes[&flow.named(name).unwrap()].config;
        assert_eq!(config.permissions.cli_permissions_mode, CliPermissionsMode::Gated, "{name}");
        assert!(config.permissions.agent_management_requires_approval, "{name}");
        let may = &config.capabilities;
        assert!(!may.write_code && !may.run_commands && may.write_docs, "{name}: {may:?}");
        assert!(!may.delegate_only, "who only delegates has somebody to delegate to");
    }
}

/// What a person is asked about a call of this tool with these arguments.
fn question(args: &Value) -> String {
    let made = [json!({"id": "c", "name": "command", "args": args})];
    let mut stage = played(&hears(&made), SOLO);
    let id = stage.id("solo");
    stage.flow.nodes[&id].config.permissions.cli_permissions_mode = CliPermissionsMode::Gated;
    stage.write_flow();
    let (life, branch) = (&stage.life, stage.branch("solo"));
    life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
    let tick = life.start_tick(&[&branch]);
    let open = eventually("a question", || {
        Some(life.git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/aynig/asked"]))
            .filter(|open| !open.is_empty())
    });
    let text = life.git(&["log", "-1", "--format=%b", &format!("refs/aynig/asked/{open}")]);
    life.run(&["answer", &open, "deny"]).expect(0);
    tick.done().expect(0);
    text.split("\ndwp-").next().unwrap().to_owned()
}

/// N8: each argument of a call is shown, and what is cut says how long it is.
#[test]
fn no_argument_of_a_call_is_hidden_by_another() {
    let long = "x".repeat(40_000);
    let text = question(&json!({"aside": long, "deep": {"list": [long]}, "cmd": "rm -rf important"}));
    assert!(text.contains("\"cmd\": \"rm -rf important\""), "{}", &text[..200.min(text.len())]);
    assert_eq!(text.matches("[of 40000 bytes]").count(), 2);
    assert!(text.len() < 20_000);
    // Where there is too much for one question, that is said first.
    let mut many: serde_json::Map<String, Value> =
        (0..2000).map(|n| (format!("key{n}"), json!("v"))).collect();
    many.insert("cmd".into(), json!("true"));
    let text = question(&many.into());
    let head: Vec<&str> = text.lines().take(4).collect();
    assert!(head.concat().contains("not all of it is shown"), "{head:?}");
    // Names that would be one when they are shortened are not.
    let name = |end: &str| format!("{}{end}", "k".repeat(80));
    let mut alike = serde_json::Map::from_iter([
        (name("1"), json!("true")),
        (name("2"), json!("false")),
        ("cmd".into(), json!("rm -rf important")),
    ]);
    alike.extend((0..100).map(|n| (format!("n{n}"), json!("v".repeat(300)))));
    let text = question(&alike.into());
    assert!(text.contains("\"true\"") && text.contains("\"false\""), "{}", &text[..500]);
    assert!(text.lines().take(4).any(|line| line.contains("not all of it is shown")), "{}", &text[..500]);
}

/// N4, N11: who interrupts the check keeps the turn that it checks, and the check has no key of the provider's.
#[test]
fn an_interrupted_check_is_no_lost_turn() {
    let stage = played(&format!("read -r prompt; echo made >made\n{}", says("Made it.")), SOLO);
    stage.life.config("aynig.provider.custom.env", "PROVIDER_KEY=secret");
    stage.life.config("aynig.killGrace", "60s");
    let check = stage.life.shared().join("check.sh");
    let script = format!(
        "T='{}'\nenv >\"$T/env\"; echo up >\"$T/up\"; exec sleep 1000\n",
        stage.life.shared().display()
    );
    fs::write(&check, script).unwrap();
    stage.life.config("aynig.flowVerify", &format!("sh '{}'", check.display()));
    let (life, branch) = (&stage.life, stage.branch("solo"));
    life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
    let tick = life.start_tick(&[&branch]);
    life.hear("up");
    assert!(!life.said("env").contains("PROVIDER_KEY"), "{}", life.said("env"));
    life.run(&["send", &branch, "--kind", "interrupt", "-m", "", "--no-tick"]).expect(0);
    let mut tick = tick;
    eventually("the check ends", || tick.is_over().then_some(()));
    tick.done().expect(0);
    assert_eq!(life.state(&branch), "route", "{}", life.body(&branch));
    assert_eq!(life.trailer(&branch, "dwp-turn").as_deref(), Some("interrupted"));
    assert!(!life.trailers(&branch).contains_key("dwp-verification"));
    assert_eq!(life.show(&branch, "made"), "made");
    assert!(life.body(&branch).starts_with("Made it.\n"));
    stage.go();
    assert_eq!(life.state(&branch), "idle", "nothing more waits: {:?}", stage.letters());
}

/// N5: what more than a turn may want is refused when it is called, not left out later.
#[test]
fn a_turn_is_told_when_it_wants_too_much() {
    let hand = |n: usize| json!({"id": format!("c{n}"), "name": "send_handoff", "args": {"to": "worker", "message": "go"}});
    let all: Vec<Value> = (0..65).map(hand).collect();
    // Who calls one of these is told what came of all of them.
    let mut first = all[..40].to_vec();
    first.push(json!({"id": "l", "name": "list_files", "args": {}}));
    let script = format!(
        "read -r prompt\n{}\n{}\nn=0; while [ $n -lt 66 ]; do read -r line; n=$((n+1)); printf '%s\\n' \"$line\" >>\"$T/results\"; done\n{}",
        calls("Some.", &first),
        calls("More.", &all[40..]),
        says("Done.")
    );
    let stage = played(&script, PAIR);
    turn(&stage, "lead", "go").expect(0);
    let refused: Vec<Value> =
        results(&stage).into_iter().filter(|line| line["result"]["ok"] == false).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["toolId"], "c64");
    assert_eq!(wanted(&stage, "lead").len(), 64);
}

/// N9: a turn that codex told no sum of does not have the next pay for the whole thread again.
#[test]
fn codex_is_not_charged_twice_after_a_turn_that_failed() {
    let stage = of_codex(&format!("cat >/dev/null; {}", codex_says("One.", 100)), SOLO);
    turn(&stage, "solo", "one").expect(0);
    stage.go();
    codex(&stage, &format!("cat >/dev/null; {}", codex_fails("something else")));
    turn(&stage, "solo", "two");
    assert_eq!(stage.life.state(&stage.branch("solo")), "stalled");
    codex(&stage, &format!("cat >/dev/null; {}", codex_says("Three.", 250)));
    turn(&stage, "solo", "three").expect(0);
    let used = stage.life.trailer(&stage.branch("solo"), "dwp-usage");
    assert_eq!(used.as_deref(), Some("input=150 output=15 provider=codex"));
}

/// N10: work that was permitted and could not be taken is told of, with how much it is.
#[test]
fn permitted_work_that_is_left_out_is_told() {
    for (make, why) in [
        ("n=0; while [ $n -lt 1001 ]; do n=$((n+1)); echo $n >docs/$n; done", "1001 paths"),
        ("echo x >docs/good; echo x >\"docs/$(printf '\\377')\"", "2 paths"),
    ] {
        let script = format!("read -r prompt; mkdir -p docs; {make}; echo code >code\n{}", says("Planned."));
        let mut stage = played(&script, &[("solo", "planner")]);
        stage.flow.run.global_mode = GlobalMode::Planning;
        stage.write_flow();
        turn(&stage, "solo", "plan it").expect(0);
        let branch = stage.branch("solo");
        assert_eq!(stage.life.state(&branch), "route", "{}", stage.life.body(&branch));
        assert_eq!(stage.life.files(&branch), ["dir/other", "file"]);
        let told = untold(&stage, "solo");
        assert!(told.contains("nothing was taken") && told.contains(why), "{told}");
        stage.go();
        agent(
            &stage,
            &format!("read -r prompt; printf '%s\\n' \"$prompt\" >\"$T/prompt\"\n{}", says("Well.")),
        );
        turn(&stage, "solo", "again").expect(0);
        assert!(stage.life.said("prompt").contains(why));
    }
}

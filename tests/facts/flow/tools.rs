//! Our tools through the turn's door: the other end is played by the test, as the server of tools would be it. (N7, N8)

use super::stage::{Stage, print};
use super::turn::REAL;
use crate::support::life::{Gate, Running, eventually};
use aynig::contract::door::{Answer, Call, Knock};
use aynig::contract::words::{Mode, Provider};
use aynig::supervisor::socket::connect;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// A turn of claude's that goes on until the gate is opened.
struct Turn {
    stage: Stage,
    run: Option<Running>,
    gate: Gate,
    socket: PathBuf,
}

/// What its program says once it has told of its calls.
const TOLD: &str = "I call.";

fn assistant(block: &Value) -> String {
    print(&json!({"type": "assistant", "message": {"content": [block]}}))
}

fn result(block: &Value) -> String {
    print(&json!({"type": "user", "message": {"content": [block]}}))
}

/// What claude prints where it calls two of our tools, one of which its server refuses before it comes so far.
fn printed(session: &str) -> (String, String) {
    let call = |id: &str, name: &str, args: Value| {
        assistant(
            &json!({"type": "tool_use", "id": id, "name": format!("mcp__aynig__{name}"), "input": args}),
        )
    };
    // Its word comes last: where that is told, the calls before it were heard.
    let before = format!(
        "{}{}{}{}",
        print(&json!({"type": "system", "subtype": "init", "session_id": session, "cwd": "/", "model": "m"})),
        call("toolu_1", "send_handoff", json!({"to": "worker", "message": "do it"})),
        call("toolu_2", "ask", json!({"question": "lost?"})),
        assistant(&json!({"type": "text", "text": TOLD})),
    );
    let after = format!(
        "{}{}{}{}",
        result(
            &json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "x"}]})
        ),
        result(
            &json!({"type": "tool_result", "tool_use_id": "toolu_2", "content": "timed out", "is_error": true})
        ),
        assistant(&json!({"type": "text", "text": "All said."})),
        print(&json!({"type": "result", "subtype": "success", "is_error": false, "session_id": session,
            "usage": {"input_tokens": 1, "output_tokens": 1}})),
    );
    (before, after)
}

impl Turn {
    /// One of a lead, under way.
    fn begin(role: &str, change: impl Fn(&mut Stage)) -> Self {
        let mut stage = Stage::with(REAL, Mode::Interactive, &[("lead", role), ("worker", "implementer")]);
        let lead = stage.id("lead");
        stage.flow.nodes[&lead].config.provider = Provider::Claude;
        change(&mut stage);
        stage.write_flow();
        let (before, after) = printed("11111111-2222-4333-8444-555555555555");
        let (t, path) = (stage.life.shared().display().to_string(), stage.life.shared().join("claude.sh"));
        let script = format!(
            "T='{t}'\ncat >>\"$T/prompt\"\nprintf '%s\\n' \"$@\" >\"$T/args\"\n{before}echo up >>\"$T/up\"\nread -r _ <\"$T/gate\"\n{after}"
        );
        fs::write(&path, script).unwrap();
        stage.life.config("aynig.provider.claude.command", &format!("sh '{}'", path.display()));
        let helper = stage.life.shared().join("git-aynig-serve");
        crate::support::write_program(&helper, "#!/bin/sh\nexit 1\n");
        let gate = stage.life.gate("gate");
        let branch = stage.branch("lead");
        stage.life.run(&["send", &branch, "-m", "go", "--no-tick"]).expect(0);
        let mut tick = stage.life.aynig(&["tick", &branch]);
        let bin = PathBuf::from(env!("CARGO_BIN_EXE_git-aynig"));
        let path = std::env::var("PATH").unwrap();
        tick.env("PATH", format!("{}:{t}:{path}", bin.parent().unwrap().display()));
        let run = Running::of(tick);
        stage.life.hear("up");
        let args = stage.life.said("args");
        let mut words = args.lines().skip_while(|word| *word != "--mcp-config");
        let config: Value = serde_json::from_str(words.nth(1).unwrap()).unwrap();
        let server = config["mcpServers"]["aynig"]["args"].as_array().unwrap();
        assert_eq!(server[..2], ["mcp", "--socket"]);
        let socket = PathBuf::from(server[2].as_str().unwrap());
        eventually("what its program told", || {
            let logs = fs::read_dir(stage.life.repo.path().join(".aynig/logs")).ok()?;
            let said =
                |log: fs::DirEntry| fs::read_to_string(log.path()).is_ok_and(|text| text.contains(TOLD));
            logs.filter_map(Result::ok).any(said).then_some(())
        });
        Self { stage, run: Some(run), gate, socket }
    }

    fn client(&self) -> Client {
        let stream = connect(&self.socket).unwrap();
        Client { lines: BufReader::new(stream.try_clone().unwrap()), stream, last: 0 }
    }

    /// Its program says its last word, and it ends.
    fn end(&mut self) {
        self.gate.open();
        self.run.take().unwrap().done().expect(0);
    }

    /// The events of its record, of this type.
    fn events(&self, kind: &str) -> Vec<Value> {
        let text = super::turn::left(&self.stage, "lead", "events.jsonl");
        let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.filter(|line| line["type"] == kind).collect()
    }
}

struct Client {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    last: u64,
}

impl Client {
    fn send(&mut self, call: Option<(&str, Value, Option<&str>)>) -> u64 {
        self.last += 1;
        let call = call.map(|(name, args, id)| Call {
            name: name.into(),
            args: args.as_object().unwrap().clone(),
            id: id.map(str::to_owned),
        });
        let line = serde_json::to_string(&Knock { id: self.last, call }).unwrap();
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.last
    }

    fn hear(&mut self) -> Answer {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    /// What comes of a call that waits for no person: what it gave, or why not.
    fn call(&mut self, name: &str, args: Value, id: Option<&str>) -> Result<Value, String> {
        let sent = self.send(Some((name, args, id)));
        let answer = self.hear();
        assert_eq!(answer.id, sent);
        came(answer)
    }
}

fn came(answer: Answer) -> Result<Value, String> {
    match answer.error {
        Some(error) => Err(error.message),
        None => Ok(answer.result.unwrap().output.unwrap()),
    }
}

/// N7: checked with what the turn's own earlier calls make of the flow, answered at once with the ids to come, performed by
/// `route`, and told once, whatever the program tells of the same call.
#[test]
fn a_call_through_the_door_is_made_as_one_by_a_line() {
    let mut turn = Turn::begin("orchestrator", |_| {});
    let mut client = turn.client();
    client.send(None);
    let names: Vec<String> = client.hear().tools.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["send_handoff", "ask", "todo_write", "spawn_node", "create_edge", "finish_run"]);
    // Its own id comes with it, or is found by what the program told.
    client.call("send_handoff", json!({"to": "worker", "message": "do it"}), None).unwrap();
    let spawn = json!({"label": "New One", "alias": "new", "roleTemplate": "reviewer", "provider": "custom"});
    let spawned = client.call("spawn_node", spawn, Some("toolu_9")).unwrap();
    let edge = client.call("create_edge", json!({"from": "worker", "to": "new"}), None).unwrap();
    let error = client.call("send_handoff", json!({"to": "nobody", "message": "x"}), None).unwrap_err();
    assert!(error.contains("nobody"), "{error}");
    let error = client.call("read_file", json!({"path": "a"}), None).unwrap_err();
    assert!(error.contains("there is no tool"), "{error}");
    assert!(turn.stage.now().named("new").is_err(), "nothing is performed before its outcome is there");
    turn.end();
    // Proposed once each, under ids of ours; the agent's own beside.
    let proposed = turn.events("tool.proposed");
    let of = |key: &str| -> Vec<&Value> { proposed.iter().map(|line| &line["tool"][key]).collect() };
    assert_eq!(
        of("name"),
        ["send_handoff", "spawn_node", "create_edge", "send_handoff", "read_file"],
        "{proposed:#?}"
    );
    assert_eq!(of("providerId")[..2], ["toolu_1", "toolu_9"]);
    let failed: Vec<bool> =
        turn.events("tool.completed").iter().map(|line| line["result"]["ok"] == false).collect();
    assert_eq!(failed, [true, true], "what route performs is completed there");
    // What never came through the door is a line of the log.
    assert!(turn.events("node.log").iter().any(|line| line["line"] == "timed out"));
    let prompt = turn.stage.life.said("prompt");
    assert!(prompt.contains("tools of the server `aynig`") && !prompt.contains("\"tool_call\""), "{prompt}");
    turn.stage.go();
    let now = turn.stage.now();
    let new = now.named("new").unwrap();
    assert_eq!(spawned["nodeId"], json!(new), "{spawned}");
    assert!(now.leads(now.named("worker").unwrap(), new), "{edge}");
    // Beside the word that began this turn.
    let letters = turn.stage.letters();
    assert!(letters.len() > 1, "the handoff went: {letters:?}");
}

/// N7: who may do less is offered less, and gets no more; what is no request costs its connection alone.
#[test]
fn whoever_connects_gets_no_more_than_the_node_may() {
    let mut turn = Turn::begin("implementer", |_| {});
    let mode = fs::metadata(turn.socket.parent().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "other users stay out");
    let mut client = turn.client();
    client.send(None);
    let names: Vec<String> = client.hear().tools.unwrap().into_iter().map(|tool| tool.name).collect();
    assert!(!names.contains(&"finish_run".to_owned()), "{names:?}");
    let error = client.call("finish_run", json!({"status": "completed", "summary": "x"}), None).unwrap_err();
    assert!(error.contains("edgeManagement 'all'"), "{error}");
    for bad in [&b"no json\n"[..], b"[]\n", b"{\"id\":-1}\n", b"\xff\xfe\n", b"{\"id\":1,\"call\":{}}\n"] {
        let mut other = turn.client();
        other.stream.write_all(bad).unwrap();
        let mut left = Vec::new();
        other.lines.read_to_end(&mut left).unwrap();
        assert_eq!(left, b"", "{bad:?}");
    }
    // One that sends half a line and goes, and one that never reads.
    turn.client().stream.write_all(b"{\"id\":1").unwrap();
    let mut deaf = turn.client();
    (0..200).for_each(|_| {
        deaf.send(None);
    });
    assert_eq!(client.call("todo_write", json!({"todos": []}), None), Ok(json!("noted")));
    // At most so many that are performed.
    let handoff = json!({"to": "worker", "message": "x"});
    let made = (0..70).filter(|_| client.call("send_handoff", handoff.clone(), None).is_ok()).count();
    assert_eq!(made, 64);
    turn.end();
}

/// N8: a question and a call that waits for a person wait at the door too; others go by meanwhile. Who is gone when the
/// answer comes has a turn for it.
#[test]
fn a_person_is_waited_for_at_the_door() {
    let mut turn = Turn::begin("orchestrator", |stage| {
        let lead = stage.id("lead");
        stage.flow.nodes[&lead].config.permissions.agent_management_requires_approval = true;
    });
    let mut client = turn.client();
    let spawn = |label: &str| json!({"label": label, "roleTemplate": "reviewer", "provider": "custom"});
    let first = client.send(Some(("spawn_node", spawn("One"), None)));
    assert_eq!(client.call("todo_write", json!({"todos": []}), None), Ok(json!("noted")));
    let asked = |n: usize| {
        let all =
            || turn.stage.life.git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/aynig/asked"]);
        eventually("a question", || Some(all()).filter(|all| all.lines().count() == n && !all.is_empty()))
    };
    let first_question = asked(1);
    // Who looks is told of the call before it is told that it waits.
    let events = turn.stage.events();
    let at = |word: &str| events.iter().position(|event| event.body.word() == word);
    assert!(at("tool.proposed").is_some() && at("tool.proposed") < at("approval.requested"), "{events:#?}");
    turn.stage.life.run(&["answer", first_question.trim(), "approve"]).expect(0);
    let answer = client.hear();
    assert_eq!(answer.id, first);
    assert!(came(answer).unwrap()["nodeId"].is_string());
    client.send(Some(("spawn_node", spawn("Two"), None)));
    turn.stage.life.run(&["answer", asked(1).trim(), "deny", "-m", "too many"]).expect(0);
    let error = came(client.hear()).unwrap_err();
    assert!(error.contains("a person said no: too many"), "{error}");
    client.send(Some(("ask", json!({"question": "which?", "choices": ["a", "b"]}), None)));
    turn.stage.life.run(&["answer", asked(1).trim(), "b"]).expect(0);
    assert_eq!(came(client.hear()).unwrap()["answer"], "b");
    // Its program gives up waiting.
    client.send(Some(("ask", json!({"question": "still there?"}), None)));
    let question = asked(1);
    drop(client);
    turn.stage.life.run(&["answer", question.trim(), "present"]).expect(0);
    eventually("it is heard", || {
        let all = turn.stage.life.git(&["for-each-ref", "refs/aynig/asked"]);
        all.is_empty().then_some(())
    });
    turn.end();
    let branch = turn.stage.branch("lead");
    let answer = turn.stage.life.git(&["log", "--format=%(trailers:key=dwp-flow-answer)", &branch]);
    assert!(answer.contains("present"), "{answer}");
}

//! Every type of event, over the socket and in the log, held against the contract's schema; and in the order that the page needs (W5,
//! W6).

use crate::play::{Play, finally, fits, waits};
use crate::runs::{WHOLE_NODE, good, next, says, send};
use crate::support::frame;
use aynig::contract::event::TYPES;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::net::TcpStream;

/// All that a client hears until this is so, alive or not.
fn hear(client: &mut TcpStream, heard: &mut Vec<Value>, is_it: impl Fn(&Value) -> bool) {
    loop {
        let event: Value = serde_json::from_str(&frame(client).expect("a frame")).unwrap();
        heard.push(event);
        if is_it(heard.last().unwrap()) {
            return;
        }
    }
}

/// A play in which everything happens, and what its client heard.
fn all_that_happens() -> (Play, Vec<Value>) {
    let mut play = Play::new();
    play.world.git(&["config", "--global", "aynig.stallTurns", "1"]);
    let mut client = play.live();
    let mut heard = Vec::new();
    let lead = play.node("Lead", "orchestrator", &json!({}));
    let work = play.node("Work", "implementer", &json!({"permissions": {"cliPermissionsMode": "gated"}}));
    let edge = play.edge(&lead, &work);
    let spare = play.node("Spare", "reviewer", &json!({}));
    let other = play.edge(&spare, &lead);
    assert_eq!((&other["type"], &other["label"]), (&json!("report"), &json!("report")), "by the ends' roles");
    play.patch(&json!({"globalMode": "PLANNING"}));
    play.patch(&json!({"globalMode": "IMPLEMENTATION"}));

    let handoff = json!({"id": "t-9", "name": "send_handoff", "args": {"to": "work", "message": "do:work please",
        "response": {"expectation": "optional", "replyTo": "lead"}, "structured": {"key": "value"}}});
    play.script(
        "lead",
        &[
            "echo 'a word on standard error' >&2".to_owned(),
            says(&json!({"type": "message.assistant.thinking.delta", "delta": "Who can"})),
            says(&json!({"type": "message.assistant.thinking.final", "content": "Who can do it?"})),
            says(&json!({"type": "message.assistant.delta", "delta": "Work will"})),
            says(&json!({"type": "telemetry.usage", "provider": "custom", "model": "m", "usage": {"promptTokens": 7, "completionTokens": 5, "totalTokens": 12}})),
            waits("beat"),
            finally("Work will do it.", &[handoff]),
        ]
        .join("\n"),
    );
    let write = json!({"id": "t-1", "name": "write_file", "args": {"path": "made.txt", "content": "made\n"}});
    play.script(
        "work",
        &format!("{}\nread -r told\n{}", finally("I write.", &[write]), finally("Written.", &[])),
    );
    play.script("same", &finally("The same again.", &[]));
    play.say(&lead, "do:lead");
    play.go();
    hear(&mut client, &mut heard, |event| event["type"] == "node.heartbeat");
    std::fs::write(play.file("beat"), "").unwrap();
    hear(&mut client, &mut heard, |event| event["type"] == "approval.requested");
    let asked = play.until_asked();
    assert_eq!(asked["approvalId"], heard.last().unwrap()["approvalId"]);
    good(play.resolve(&asked, &json!({"status": "approved"})));
    let rests = |node: &str| {
        let node = json!(node);
        move |event: &Value| {
            event["type"] == "node.progress" && event["nodeId"] == node && event["status"] == "idle"
        }
    };
    hear(&mut client, &mut heard, rests(&work));
    for _ in 0..2 {
        play.say(&spare, "do:same");
        hear(&mut client, &mut heard, |event| {
            event["type"] == "node.progress"
                && event["nodeId"] == json!(spare)
                && event["status"] != "running"
        });
    }
    if !heard.iter().any(|event| event["type"] == "run.stalled") {
        hear(&mut client, &mut heard, |event| event["type"] == "run.stalled");
    }
    good(play.delete(&format!("/edges/{}", edge["id"].as_str().unwrap())));
    good(play.delete(&format!("/nodes/{spare}")));
    hear(&mut client, &mut heard, |event| event["type"] == "node.deleted");
    play.rest();
    (play, heard)
}

/// W5, W6: all 24 types are told, each as the schema has it, and stand in the log with the same ids; the state is right by it too.
#[test]
fn w5_every_type_of_event_is_told_by_the_schema() {
    let (play, heard) = all_that_happens();
    let types: BTreeSet<&str> = heard.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let lacking: Vec<_> = TYPES.iter().filter(|kind| !types.contains(**kind)).collect();
    assert!(lacking.is_empty() && types.len() == 24, "{lacking:?} {types:?}");
    heard.iter().for_each(|event| fits("event", event));
    let run = play.state();
    fits("run", &run);
    let log = play.log();
    log.iter().for_each(|event| fits("event", event));
    let logged: HashSet<String> = log.iter().map(|event| event["id"].to_string()).collect();
    assert_eq!(logged.len(), log.len(), "ids are unique in a run");
    for event in heard.iter().filter(|event| event["type"] != "node.heartbeat") {
        assert!(logged.contains(&event["id"].to_string()), "not in the log: {event}");
    }
    let told: Vec<&Value> =
        heard.iter().filter(|e| e["type"] != "node.heartbeat").map(|e| &e["id"]).collect();
    let first = log.iter().position(|event| &event["id"] == told[0]).unwrap();
    let wanted: Vec<&Value> = log[first..].iter().map(|event| &event["id"]).take(told.len()).collect();
    assert_eq!(told, wanted, "the log's order is the socket's");
    let page = good(play.server.get(&play.at("/events?limit=2000")));
    page["events"].as_array().unwrap().iter().for_each(|event| fits("event", event));
    for one in good(play.server.get("/api/runs"))["runs"].as_array().unwrap() {
        fits("run", one);
    }

    the_order_is_what_the_page_needs(&heard);
    ids_are_ours(&heard);
    files_are_made(&play, &run);
}

/// Section 7: what the page takes wrongly in another order.
fn the_order_is_what_the_page_needs(heard: &[Value]) {
    let at = |is_it: &dyn Fn(&Value) -> bool| heard.iter().position(is_it).unwrap();
    let of = |kind: &str| heard.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    // A node that is not known appears whole; no later patch of a run has its id.
    for key in WHOLE_NODE {
        assert!(!of("node.patch")[0]["patch"][key].is_null(), "{key}");
    }
    assert!(of("run.patch").iter().all(|event| event["patch"].get("id").is_none()));
    assert!(of("run.stalled").iter().all(|event| event["evidence"]["summaries"].is_array()));
    // A turn's last word is its node's state.
    for (n, event) in heard.iter().enumerate().filter(|(_, event)| event["type"] == "turn.status") {
        let after = heard[n..].iter().find(|later| {
            later["nodeId"] == event["nodeId"]
                && (later["type"] == "node.progress"
                    || later["type"] == "node.patch" && later["patch"].get("summary").is_some())
        });
        assert!(after.is_some(), "nothing follows {event}");
    }
    // An increment, then the node's and the run's totals.
    let spent = at(&|event| event["type"] == "telemetry.usage");
    assert_eq!(heard[spent]["usage"], json!({"promptTokens": 7, "completionTokens": 5, "totalTokens": 12}));
    let node = heard[spent..]
        .iter()
        .position(|e| e["type"] == "node.patch" && e["patch"].get("usage").is_some())
        .unwrap();
    let run = heard[spent..]
        .iter()
        .position(|e| e["type"] == "run.patch" && e["patch"].get("usage").is_some())
        .unwrap();
    assert!(node < run, "{node} {run}");
    assert_eq!(heard[spent + run]["patch"]["usage"]["totalTokens"], 12);
    // What streams, streams from a node that is connected.
    let delta = at(&|event| event["type"] == "message.assistant.delta");
    let node = &heard[delta]["nodeId"];
    let is_connection = |e: &&Value| &e["nodeId"] == node && e["patch"].get("connection").is_some();
    let before = heard[..delta].iter().rev().find(is_connection).unwrap();
    let connection = &before["patch"]["connection"];
    assert_eq!(
        (&connection["status"], &connection["streaming"]),
        (&json!("connected"), &json!(true)),
        "{before}"
    );
    // An approval that ended is said to have, after it was asked for.
    let asked = at(&|event| event["type"] == "approval.requested");
    let resolved = at(&|event| event["type"] == "approval.resolved");
    assert!(asked < resolved && heard[asked]["approvalId"] == heard[resolved]["approvalId"]);
    assert_eq!(heard[resolved]["resolution"]["status"], "approved");
    // A handoff is told with all that was said of it.
    let envelope = &of("handoff.sent")[0]["envelope"];
    assert_eq!(envelope["payload"]["structured"], json!({"key": "value"}), "{envelope}");
    assert_eq!(envelope["payload"]["response"]["expectation"], "optional", "{envelope}");
    // The node's edges went with it, each by name.
    let gone = at(&|event| event["type"] == "node.deleted");
    assert_eq!(heard[..gone].iter().filter(|event| event["type"] == "edge.deleted").count(), 2);
}

/// Section 1: ids are ours, whatever the agent wrote; its own stands beside.
fn ids_are_ours(heard: &[Value]) {
    let tools: Vec<&Value> = heard.iter().filter(|event| event["type"] == "tool.proposed").collect();
    assert!(tools.len() >= 2, "{tools:?}");
    let ids: HashSet<&str> = tools.iter().map(|event| event["tool"]["id"].as_str().unwrap()).collect();
    assert!(ids.len() == tools.len() && ids.iter().all(|id| id.len() == 36), "{ids:?}");
    assert!(tools.iter().any(|event| event["tool"]["providerId"] == "t-1"), "{tools:?}");
}

/// Section 3.6: each turn's prompt, twice, what it changed, what was said.
fn files_are_made(play: &Play, run: &Value) {
    let files: Vec<&Value> = run["artifacts"].as_object().unwrap().values().collect();
    let kinds: BTreeSet<&str> = files.iter().map(|file| file["kind"].as_str().unwrap()).collect();
    for kind in ["prompt", "diff", "transcript"] {
        assert!(kinds.contains(kind), "{kind} of {kinds:?}");
    }
    let prompts = |name: &str| files.iter().filter(|file| file["name"] == name).count();
    assert!(prompts("prompt.full.txt") >= 4 && prompts("prompt.full.txt") == prompts("prompt.blocks.json"));
    for file in files {
        let told = good(play.server.get(&play.at(&format!("/artifacts/{}", file["id"].as_str().unwrap()))));
        assert_eq!(&told["artifact"], file);
        let content = told["content"].as_str().unwrap();
        match file["name"].as_str().unwrap() {
            "prompt.blocks.json" => {
                let blocks: Value = serde_json::from_str(content).unwrap();
                assert!(
                    ["system", "role", "mode", "task"].iter().all(|key| blocks[key].is_string()),
                    "{blocks}"
                );
            }
            _ => assert!(!content.is_empty(), "{file}"),
        }
        if file["kind"] == "diff" {
            assert!(content.contains("+made"), "{content}");
        }
    }
}

/// W6: a socket is told nothing unasked, and one of a run that is not there stays silent.
#[test]
fn w6_nothing_is_told_unasked() {
    let play = Play::new();
    play.node("Lead", "orchestrator", &json!({}));
    let nothing = "00000000-0000-4000-8000-000000000000";
    let mut sockets = [play.live(), crate::runs::live(&play.server, &format!("?runId={nothing}"))];
    let work = play.node("Work", "implementer", &json!({}));
    assert_eq!(next(&mut sockets[0])["nodeId"], json!(work), "what is new, and nothing that was before");
    assert!(crate::play::is_silent(&mut sockets[1], std::time::Duration::from_millis(500)));
    good(send(&play.server, "DELETE", &play.at(""), &json!({})));
    let mut gone = play.live();
    assert!(crate::play::is_silent(&mut gone, std::time::Duration::from_millis(500)));
}

//! The types of the contract: every event held against the schema, words, ids and times. (N13)

use super::schema;
use aynig::contract::event::{Body, Event, TYPES};
use aynig::contract::id::{EventId, NodeId, RunId};
use aynig::contract::node::{Capabilities, CapabilitiesPart, Node, NodePatch, Permissions};
use aynig::contract::run::{Layout, Run, RunPatch};
use aynig::contract::time::Time;
use aynig::contract::words::{Mode, NodeStatus, Provider, RunStatus, TurnStatus};
use proptest::prelude::*;
use serde_json::{Value, json};

const ID: &str = "0b5c4a53-3c57-4e3e-9d8f-3d0d3e2d1c00";
const AT: &str = "2026-01-01T00:00:00.000Z";

/// What each type of event holds, first with everything that may be left out, then without it.
fn bodies() -> Vec<(Value, Value)> {
    let usage = json!({"promptTokens": 1, "completionTokens": 2, "totalTokens": 3});
    let tool = json!({"id": ID, "name": "command", "args": {"cmd": "ls"}});
    let named = json!({"id": ID, "name": "command", "args": {"cmd": "ls"}, "providerId": "toolu_1"});
    let edge =
        json!({"id": ID, "from": ID, "to": ID, "bidirectional": true, "type": "handoff", "label": "task"});
    let capabilities = json!({"edgeManagement": "self", "writeCode": true, "writeDocs": true, "runCommands": true, "delegateOnly": false});
    let permissions = json!({"cliPermissionsMode": "gated", "agentManagementRequiresApproval": true});
    let node = json!({"id": ID, "runId": ID, "label": "A", "alias": "a", "roleTemplate": "planner", "customSystemPrompt": null,
        "provider": "claude", "status": "idle", "summary": "idle", "lastActivityAt": AT, "capabilities": capabilities,
        "permissions": permissions, "session": {"sessionId": "pending", "resetCommands": ["/new"]}, "usage": usage,
        "connection": {"status": "idle", "streaming": false, "lastHeartbeatAt": AT, "lastOutputAt": AT}, "inboxCount": 1,
        "todos": [{"content": "c", "status": "in_progress", "activeForm": "f"}]});
    let config = json!({"id": ID, "label": "A", "alias": "a", "provider": "claude", "roleTemplate": "planner", "customSystemPrompt": null,
        "capabilities": capabilities, "permissions": permissions, "session": {"resume": true, "resetCommands": []}});
    let artifact = json!({"id": ID, "runId": ID, "nodeId": ID, "kind": "diff", "name": "diff.patch", "path": "/a", "createdAt": AT,
        "metadata": {"filesChanged": ["a"], "summary": "s"}});
    let run = json!({"id": ID, "contractVersion": "1", "status": "running", "mode": "AUTO", "globalMode": "PLANNING", "cwd": "/a",
        "createdAt": AT, "updatedAt": AT, "usage": usage, "nodes": {ID: node}, "nodeConfigs": {ID: config}, "edges": {ID: edge},
        "artifacts": {ID: artifact},
        "layout": {"positions": {ID: {"x": 1.5, "y": -2.0}}, "viewport": {"x": 0.0, "y": 0.0, "zoom": 1.0}, "updatedAt": AT}});
    let envelope = json!({"kind": "handoff", "id": ID, "fromNodeId": ID, "toNodeId": ID, "createdAt": AT,
        "payload": {"message": "m", "structured": {"k": 1}, "artifacts": [{"type": "diff", "ref": "artifact://diff/1"}],
            "status": {"ok": true, "reason": "r"}, "response": {"expectation": "required", "replyTo": "a"}}, "contextRef": "c"});
    let bare = json!({"kind": "handoff", "id": ID, "fromNodeId": ID, "toNodeId": ID, "createdAt": AT, "payload": {"message": "m"}});
    let message = json!({"message": {"id": ID, "runId": ID, "nodeId": ID, "role": "user", "content": "c", "interrupt": false, "createdAt": AT}});
    let evidence =
        json!({"outputHash": "a", "diffHash": "b", "verificationFailure": "c", "summaries": ["s"]});
    let resolution = json!({"status": "modified", "modifiedArgs": {"cmd": "pwd"}, "reason": "r"});
    let same = |body: Value| (body.clone(), body);
    vec![
        (json!({"patch": run}), json!({"patch": {}})),
        (json!({"mode": "AUTO", "globalMode": "PLANNING"}), json!({})),
        (json!({"evidence": evidence}), json!({"evidence": {"summaries": []}})),
        (json!({"nodeId": ID, "patch": node}), json!({"nodeId": ID, "patch": {}})),
        same(json!({"nodeId": ID, "status": "running", "summary": "s"})),
        same(json!({"nodeId": ID})),
        same(json!({"nodeId": ID, "source": "stderr", "line": "l"})),
        same(json!({"nodeId": ID})),
        (
            json!({"nodeId": ID, "status": "awaiting_approval", "detail": "d"}),
            json!({"nodeId": ID, "status": "turn.started"}),
        ),
        same(json!({"edge": edge})),
        same(json!({"edgeId": ID})),
        (json!({"envelope": envelope}), json!({"envelope": bare})),
        same(message),
        same(json!({"nodeId": ID, "delta": "d"})),
        (
            json!({"nodeId": ID, "content": "c", "status": "interrupted", "toolCalls": [named]}),
            json!({"nodeId": ID, "content": "c"}),
        ),
        same(json!({"nodeId": ID, "delta": "d"})),
        same(json!({"nodeId": ID, "content": "c"})),
        (json!({"nodeId": ID, "tool": named}), json!({"nodeId": ID, "tool": tool})),
        same(json!({"nodeId": ID, "tool": tool})),
        (
            json!({"nodeId": ID, "toolId": ID, "result": {"ok": false, "output": {"a": 1}}, "error": {"message": "m"}}),
            json!({"nodeId": ID, "toolId": ID, "result": {"ok": true}}),
        ),
        (
            json!({"approvalId": ID, "nodeId": ID, "tool": tool, "context": "c"}),
            json!({"approvalId": ID, "nodeId": ID, "tool": tool}),
        ),
        (
            json!({"approvalId": ID, "resolution": resolution}),
            json!({"approvalId": ID, "resolution": {"status": "denied"}}),
        ),
        same(json!({"artifact": artifact})),
        same(json!({"nodeId": ID, "provider": "codex", "model": "m", "usage": usage})),
    ]
}

#[test]
fn every_type_of_event_is_read_written_and_right_by_the_schema() {
    let schema = schema::contract();
    let all = bodies();
    assert_eq!(all.len(), TYPES.len());
    for (kind, (full, least)) in TYPES.iter().zip(all) {
        for body in [full, least] {
            let mut event = json!({"id": ID, "runId": ID, "ts": AT, "type": kind});
            event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            let read: Event =
                serde_json::from_value(event.clone()).unwrap_or_else(|error| panic!("{kind}: {error}"));
            assert_eq!(read.body.word(), *kind);
            assert_eq!(serde_json::to_string(&read).unwrap(), event.to_string());
            assert_eq!(schema::wrong(&schema, "event", &event), Vec::<String>::new(), "{kind}");
        }
    }
}

#[test]
fn a_type_of_event_that_is_not_known_is_refused_with_its_type() {
    let event = json!({"id": ID, "runId": ID, "ts": AT, "type": "run.later"});
    let refused = serde_json::from_value::<Event>(event).unwrap_err().to_string();
    assert!(refused.contains("run.later"), "{refused}");
}

fn event(body: Body) -> Event {
    let id = EventId::parse(ID).unwrap();
    Event { id, run_id: RunId::parse(ID).unwrap(), ts: Time::parse(AT).unwrap(), body, at: None }
}

#[test]
fn events_make_and_change_a_runs_state() {
    let (full, _) = bodies().swap_remove(0);
    let patch: RunPatch = serde_json::from_value(full["patch"].clone()).unwrap();
    let mut run: Run = patch.made().unwrap();
    assert_eq!(serde_json::to_value(&run).unwrap(), full["patch"]);
    let node = NodeId::parse(ID).unwrap();
    run.apply(&event(Body::NodeProgress { node_id: node, status: NodeStatus::Failed, summary: "no".into() }));
    assert_eq!((run.nodes[&node].status, run.nodes[&node].summary.as_str()), (NodeStatus::Failed, "no"));
    let gone = NodePatch {
        alias: Some(String::new()),
        custom_system_prompt: Some(Some("p".into())),
        ..NodePatch::default()
    };
    run.apply(&event(Body::NodePatch { node_id: node, patch: Box::new(gone) }));
    assert_eq!(
        (&run.nodes[&node].alias, &run.nodes[&node].custom_system_prompt),
        (&None, &Some(Some("p".into())))
    );
    // What is said of a node that is not known makes none.
    let stray = NodeId::parse("ffffffff-3c57-4e3e-9d8f-3d0d3e2d1c00").unwrap();
    run.apply(&event(Body::NodePatch { node_id: stray, patch: Box::default() }));
    assert_eq!(run.nodes.len(), 1);
    let mut other = event(Body::NodeDeleted { node_id: node });
    other.run_id = RunId(stray.0);
    run.apply(&other);
    assert_eq!(run.nodes.len(), 1);
    run.apply(&event(Body::NodeDeleted { node_id: node }));
    assert!(run.nodes.is_empty() && run.node_configs.is_empty() && run.edges.is_empty());
    assert!(run.layout.unwrap().positions.is_empty());
    assert_eq!(run.status, RunStatus::Running);
}

#[test]
fn a_layout_is_kept_without_nodes_that_the_run_does_not_have() {
    let stray = "ffffffff-3c57-4e3e-9d8f-3d0d3e2d1c00";
    let place = json!({"x": 1.0, "y": 2.0});
    let layout = json!({"positions": {ID: place, stray: place}, "viewport": {"x": 0.0, "y": 0.0, "zoom": 1.0}, "updatedAt": AT});
    let layout: Layout = serde_json::from_value(layout).unwrap();
    let kept = layout.kept(|id| id.to_string() == ID, Time(5));
    assert_eq!((kept.positions.len(), kept.updated_at), (1, Time(5)));
    // Whole, or none: a page without a viewport is blank.
    assert!(serde_json::from_value::<Layout>(json!({"positions": {}, "updatedAt": AT})).is_err());
}

#[test]
fn words_are_exact_on_the_wire_and_in_any_case_from_people() {
    assert_eq!("auto".parse(), Ok(Mode::Auto));
    assert!(serde_json::from_str::<Mode>("\"auto\"").is_err());
    let unknown = "robot\u{1b}".parse::<Provider>().unwrap_err().to_string();
    assert_eq!(unknown, "'robot\\x1b' is no provider: it is one of codex, claude, gemini, custom");
    for status in TurnStatus::ALL {
        assert_eq!(serde_json::to_value(status).unwrap(), json!(status.word()));
    }
}

#[test]
fn an_id_has_one_form() {
    assert_eq!(NodeId::parse(&ID.to_uppercase()).unwrap().to_string(), ID);
    for text in ["", "x", &ID.replace('-', ""), &format!("{{{ID}}}"), &format!("urn:uuid:{ID}"), "pending"] {
        assert!(NodeId::parse(text).is_err(), "{text}");
    }
    let run = RunId::parse(ID).unwrap();
    assert_ne!(EventId::of(run, &[b"a", b"bc"]), EventId::of(run, &[b"ab", b"c"]));
    assert_eq!(EventId::of(run, &[b"a"]), EventId::of(run, &[b"a"]));
    assert_eq!(EventId::of(run, &[b"a"]).0.get_version_num(), 5);
}

#[test]
fn a_role_says_what_a_node_may_do_unless_something_else_is_said() {
    let lead = Capabilities::of_role(" Orchestrator ");
    assert_eq!(serde_json::to_value(&lead).unwrap()["edgeManagement"], "all");
    assert!(!Permissions::of_role("ORCHESTRATOR").agent_management_requires_approval);
    assert!(Permissions::of_role("planner").agent_management_requires_approval);
    let part: CapabilitiesPart = serde_json::from_value(json!({"writeCode": false})).unwrap();
    let mixed = part.over(&Capabilities::of_role("planner"));
    assert!(!mixed.write_code && mixed.write_docs && mixed.run_commands && !mixed.delegate_only);
}

#[test]
fn a_node_without_its_optional_keys_is_a_node() {
    let least = json!({"id": ID, "runId": ID, "label": "A", "roleTemplate": "r", "provider": "custom", "status": "idle", "summary": "",
        "lastActivityAt": "2026-01-01T00:00:00Z", "capabilities": Capabilities::of_role("r"), "permissions": Permissions::of_role("r"),
        "session": {"sessionId": "pending", "resetCommands": []}});
    let node: Node = serde_json::from_value(least).unwrap();
    assert_eq!(serde_json::to_value(&node).unwrap().as_object().unwrap().len(), 11);
}

#[test]
fn times_are_read_in_every_form_and_written_in_one() {
    for (text, written) in [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"),
        ("2024-02-29t23:59:59.9876543+01:30", "2024-02-29T22:29:59.987Z"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.000Z"),
    ] {
        assert_eq!(Time::parse(text).unwrap().to_string(), written);
    }
    for text in [
        "",
        "2026-01-01",
        "2026-02-30T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+1:00",
        "2026-13-01T00:00:00Z",
        "+026-01-01T00:00:00Z",
        "2026-01-01T00:00:00Zé",
    ] {
        assert!(Time::parse(text).is_err(), "{text}");
    }
    assert_eq!(Time(i64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
    assert_eq!(Time(i64::MIN).to_string(), "0000-01-01T00:00:00.000Z");
}

proptest! {
    #[test]
    fn times_are_those_of_another_reader(millis in 0_i64..253_402_300_799_999) {
        let text = Time(millis).to_string();
        let there = std::time::UNIX_EPOCH + std::time::Duration::from_millis(millis as u64);
        prop_assert_eq!(&text, &humantime::format_rfc3339_millis(there).to_string());
        prop_assert_eq!(Time::parse(&text), Ok(Time(millis)));
    }

    #[test]
    fn no_text_breaks_a_reader(text in ".{0,40}") {
        let _ = Time::parse(&text);
        let _ = NodeId::parse(&text);
        let _ = serde_json::from_str::<Event>(&text);
    }
}

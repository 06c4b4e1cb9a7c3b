//! Calls of the flow's tools, and what a turn may have changed. (N7, N10)

use aynig::contract::edge::EdgeSpec;
use aynig::contract::flow::{Flow, Mutation, NewRun, apply, create};
use aynig::contract::id::{EdgeId, NodeId, RunId};
use aynig::contract::limits::{Beyond, beyond};
use aynig::contract::node::{Capabilities, NodeSpec, Permissions};
use aynig::contract::offered::{NAMES, offered};
use aynig::contract::time::Time;
use aynig::contract::tools::{Refusal, Request, request, waits_for_a_person};
use aynig::contract::words::{CliPermissionsMode, EdgeManagement, GlobalMode, Mode, Provider, RunStatus};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

fn node(n: u8) -> NodeId {
    NodeId(Uuid::from_bytes([n; 16]))
}

/// 1 leads and may all, 2 manages its own edges, 3 none; an edge leads from 1 to 2, and from 2 to 3 only.
fn flow() -> Flow {
    let new = NewRun {
        id: RunId(Uuid::nil()),
        name: None,
        mode: Mode::Auto,
        global_mode: GlobalMode::Planning,
        base: "c0".into(),
        folder: None,
    };
    let mut flow = create(&new, &[], Time(0)).unwrap().flow;
    for (n, role, may) in [(1, "orchestrator", "all"), (2, "planner", "self"), (3, "reviewer", "none")] {
        let spec = json!({"label": format!("n{n}"), "alias": format!("a{n}"), "provider": "codex", "roleTemplate": role,
            "capabilities": {"edgeManagement": may}});
        let spec: NodeSpec = serde_json::from_value(spec).unwrap();
        let add = Mutation::AddNode { id: node(n), spec, branch: format!("flow/f/{n}") };
        flow = apply(&flow, &add, Time(i64::from(n))).unwrap().flow;
    }
    for (n, from, to) in [(1, 1, 2), (2, 2, 3)] {
        let spec = EdgeSpec {
            id: None,
            from: node(from),
            to: node(to),
            bidirectional: Some(false),
            edge_type: None,
            label: None,
        };
        let put = Mutation::PutEdge { id: EdgeId(Uuid::from_bytes([n; 16])), spec };
        flow = apply(&flow, &put, Time(9)).unwrap().flow;
    }
    flow
}

fn call(by: u8, tool: &str, args: Value) -> Result<Request, Refusal> {
    request(&flow(), node(by), tool, args.as_object().unwrap())
}

fn refused(by: u8, tool: &str, args: Value) -> String {
    call(by, tool, args).unwrap_err().to_string()
}

#[test]
fn a_handoff_goes_along_an_edge_in_its_direction() {
    let args =
        json!({"to": "A2", "message": "go", "response": {"expectation": "required"}, "contextRef": "c"});
    let Request::Handoff { to, payload, context_ref } = call(1, "send_handoff", args).unwrap() else {
        panic!()
    };
    assert_eq!((to, payload.message.as_str(), context_ref.as_deref()), (node(2), "go", Some("c")));
    assert!(payload.response.is_some());
    let older = json!({"toNodeId": node(2).to_string(), "summary": "go"});
    assert!(matches!(call(1, "send_handoff", older), Ok(Request::Handoff { .. })));
    assert_eq!(
        refused(2, "send_handoff", json!({"to": "a1", "message": "x"})),
        "send_handoff: no edge leads to 'a1'"
    );
    assert_eq!(
        refused(1, "send_handoff", json!({"to": "a3", "message": "x"})),
        "send_handoff: no edge leads to 'a3'"
    );
    assert_eq!(refused(1, "send_handoff", json!({"to": "who", "message": "x"})), "there is no node 'who'");
    assert_eq!(
        refused(1, "send_handoff", json!({"to": "a2", "message": " "})),
        "send_handoff: 'message' is missing"
    );
    let long = "x".repeat((1 << 20) + 1);
    assert!(refused(1, "send_handoff", json!({"to": "a2", "message": long})).contains("bytes"));
}

#[test]
fn nodes_are_spawned_by_who_may_all() {
    let args = json!({"label": "New", "role": "implementer", "instructions": "begin", "input": {"k": 1}});
    let Request::Spawn { spec, first } = call(1, "spawn_node", args).unwrap() else { panic!() };
    assert_eq!(
        (spec.role_template.as_str(), spec.provider),
        ("implementer", Provider::Codex),
        "the caller's provider"
    );
    let first = first.unwrap();
    assert_eq!((first.message.as_str(), first.structured.unwrap()["k"].clone()), ("begin", json!(1)));
    let Request::Spawn { first, .. } =
        call(1, "spawn_node", json!({"label": "N", "roleTemplate": "x"})).unwrap()
    else {
        panic!()
    };
    assert_eq!(first, None);
    for by in [2, 3] {
        let why = refused(by, "spawn_node", json!({"label": "N", "role": "x"}));
        assert_eq!(why, "spawn_node: this node may not: it needs edgeManagement 'all'");
    }
    assert!(refused(1, "spawn_node", json!({"label": "N"})).contains("roleTemplate"));
    assert!(
        refused(1, "spawn_node", json!({"label": "N", "role": "x", "provider": "robot"})).contains("robot")
    );
    assert!(
        refused(1, "spawn_node", json!({"label": "N", "role": "x", "input": 1}))
            .contains("'input' is no object")
    );
}

#[test]
fn edges_are_made_by_who_may_and_never_replace_one() {
    let edge = |by, from, to| {
        call(by, "create_edge", json!({"from": from, "to": to, "id": Uuid::from_bytes([1; 16]).to_string()}))
    };
    let Ok(Request::Edge(spec)) = edge(1, "a3", "n1") else { panic!() };
    assert_eq!((spec.from, spec.to, spec.id), (node(3), node(1), None));
    assert!(edge(2, "a2", "a3").is_ok() && edge(2, "a1", "a2").is_ok());
    assert_eq!(edge(2, "a1", "a3"), Err(Refusal::NotItsEdge));
    let why = edge(3, "a3", "a1").unwrap_err();
    assert_eq!(why, Refusal::NotAllowed { tool: "create_edge", needs: EdgeManagement::SelfOnly });
    assert_eq!(edge(1, "a1", "nobody").unwrap_err().to_string(), "there is no node 'nobody'");
}

#[test]
fn a_run_is_finished_by_who_may_all_and_in_one_of_two_ways() {
    let finish = |args| call(1, "finish_run", args);
    let done = |status| Ok(Request::Finish { status, summary: String::new() });
    assert_eq!(finish(json!({})), done(RunStatus::Completed));
    assert_eq!(finish(json!({"status": "failed"})), done(RunStatus::Failed));
    assert!(finish(json!({"status": "paused"})).is_err() && finish(json!({"status": 1})).is_err());
    assert!(call(2, "finish_run", json!({})).is_err());
}

#[test]
fn questions_and_tasks_are_anybodys_and_bounded() {
    let asked = call(3, "ask", json!({"question": "Deploy?", "choices": ["yes", "no"]}));
    assert_eq!(
        asked,
        Ok(Request::Ask { question: "Deploy?".into(), choices: vec!["yes".into(), "no".into()] })
    );
    let todos = json!({"todos": [{"content": "c", "status": "pending"}]});
    assert!(matches!(call(3, "TodoWrite", todos), Ok(Request::Todos(list)) if list.len() == 1));
    let many: Vec<&str> = vec!["x"; 201];
    assert_eq!(refused(3, "ask", json!({"question": "?", "choices": many})), "ask: 'choices' has 201 items");
    assert!(
        refused(3, "todo_write", json!({"todos": [{"content": "c", "status": "later"}]})).contains("later")
    );
    assert_eq!(refused(3, "rm\u{1b}", json!({})), "there is no tool 'rm\\x1b'");
    assert_eq!(
        request(&flow(), node(9), "ask", &serde_json::Map::new()).unwrap_err().to_string(),
        format!("there is no node '{}'", node(9))
    );
}

#[test]
fn a_person_is_asked_as_the_permissions_say() {
    let permissions = |mode, management| Permissions {
        cli_permissions_mode: mode,
        agent_management_requires_approval: management,
    };
    let spawn = call(1, "spawn_node", json!({"label": "N", "role": "x"})).unwrap();
    let handoff = call(1, "send_handoff", json!({"to": "a2", "message": "m"})).unwrap();
    let ask = call(1, "ask", json!({"question": "?"})).unwrap();
    for (mode, management, want) in [
        (CliPermissionsMode::Skip, false, [false, false, false]),
        (CliPermissionsMode::Skip, true, [true, false, false]),
        (CliPermissionsMode::Gated, false, [true, true, false]),
    ] {
        let asked = [&spawn, &handoff, &ask]
            .map(|request| waits_for_a_person(request, &permissions(mode, management)));
        assert_eq!(asked, want);
    }
}

#[test]
fn what_a_turn_changed_is_judged_by_its_paths() {
    let all = Capabilities::of_role("x");
    let (plan, build) = (GlobalMode::Planning, GlobalMode::Implementation);
    let no_code = Capabilities { write_code: false, ..all.clone() };
    let no_docs = Capabilities { write_docs: false, ..all.clone() };
    let none = Capabilities { delegate_only: true, ..all.clone() };
    for (path, mode, may, want) in [
        ("src/a.rs", build, &all, None),
        ("docs/a.md", plan, &all, None),
        ("src/a.rs", plan, &all, Some(Beyond::Planning)),
        ("docs", plan, &all, Some(Beyond::Planning)),
        ("Docs/a", plan, &all, Some(Beyond::Planning)),
        ("docs2/a", plan, &all, Some(Beyond::Planning)),
        ("src/docs/a", plan, &all, Some(Beyond::Planning)),
        ("src/a.rs", build, &no_code, Some(Beyond::Code)),
        ("docs/a", build, &no_code, None),
        ("docs/a", plan, &no_docs, Some(Beyond::Docs)),
        ("docs/a", build, &none, Some(Beyond::DelegateOnly)),
        (".aynig/command/turn", build, &no_code, Some(Beyond::Code)),
    ] {
        let judged = beyond(path.as_bytes(), mode, may);
        assert_eq!(judged, want, "{path}");
        assert!(judged.is_none_or(|beyond| !beyond.why().is_empty()));
    }
}

/// N7: what a program may be offered is known as ours when it says that it called it.
#[test]
fn every_tool_that_is_offered_has_its_name_on_the_list() {
    let names =
        |may: &Capabilities| -> Vec<String> { offered(may).into_iter().map(|tool| tool.name).collect() };
    let flow = flow();
    let all = names(&flow.nodes[&node(1)].config.capabilities);
    assert!(all.iter().all(|name| NAMES.contains(&name.as_str())), "{all:?}");
    assert!(NAMES.iter().all(|name| all.iter().any(|offered| offered == name)), "{all:?}");
}

proptest! {
    #[test]
    fn no_call_breaks_it(tool in "(spawn_node|create_edge|send_handoff|ask|todo_write|finish_run|.{0,8})", key in "(to|from|message|label|role|input|choices|todos|status|capabilities)", n in 0_usize..7) {
        let values = [json!(null), json!(1), json!("a2"), json!([]), json!({}), json!([{}]), json!({"edgeManagement": 1})];
        let args = json!({ "to": "a2", "message": "m", key: values[n] });
        if let Err(refusal) = call(1, &tool, args) {
            prop_assert!(!refusal.to_string().is_empty() && !refusal.to_string().contains('\n'));
        }
    }
}

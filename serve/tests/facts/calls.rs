//! The calls of the original's page (section 12 of the specification), as it makes them: a page of others on a name of its own, with a
//! cookie and no token, complete bodies, and no word that the contract does not have (W5, W13).

use crate::play::{Play, Theirs, finally, fits, is_silent, waits};
use crate::support::{PATIENCE, frame, until};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::Duration;

/// A play that a page of others looks at.
fn play() -> Play {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "<!doctype html><title>theirs</title>").unwrap();
    Play::with(&json!({"mode": "INTERACTIVE"}), &["--ui", folder.path().to_str().unwrap()])
}

fn next(stream: &mut TcpStream) -> Value {
    loop {
        let event: Value = serde_json::from_str(&frame(stream).expect("a frame")).unwrap();
        if event["type"] != "node.heartbeat" {
            return event;
        }
    }
}

fn until_heard(stream: &mut TcpStream, is_it: impl Fn(&Value) -> bool) -> Value {
    loop {
        let event = next(stream);
        if is_it(&event) {
            return event;
        }
    }
}

/// A node as the page sends it.
fn new_node(label: &str, role: &str) -> Value {
    json!({"node": {"label": label, "alias": "", "roleTemplate": role, "provider": "custom", "customSystemPrompt": null,
        "capabilities": {"edgeManagement": "none", "writeCode": true, "writeDocs": true, "runCommands": true, "delegateOnly": false},
        "permissions": {"cliPermissionsMode": "skip", "agentManagementRequiresApproval": true},
        "session": {"resume": true, "resetCommands": ["/new", "/clear"]}}})
}

/// 12.1, opens the page: the list, or a first run by `{}`; the run, its history, its socket; and a layout.
#[test]
fn it_opens_the_page() {
    let play = play();
    let page = Theirs::enter(&play.server);
    let runs = page.good("GET", "/api/runs", &Value::Null);
    let run = &runs["runs"][0];
    fits("run", run);
    for key in [
        "id",
        "status",
        "updatedAt",
        "nodes",
        "edges",
        "mode",
        "globalMode",
        "artifacts",
        "usage",
        "cwd",
        "createdAt",
        "nodeConfigs",
        "contractVersion",
    ] {
        assert!(!run[key].is_null(), "{key}");
    }
    // A second one, by an empty object; times are text of one width, so that they sort.
    let second = page.good("POST", "/api/runs", &json!({}))["run"].clone();
    let runs = page.good("GET", "/api/runs", &Value::Null)["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert!(runs.as_array().unwrap().iter().all(|run| run["updatedAt"].as_str().unwrap().len() == 24));
    let at = format!("/api/runs/{}", second["id"].as_str().unwrap());
    assert_eq!(page.good("GET", &at, &Value::Null)["run"], second);
    let history = page.good("GET", &format!("{at}/events?limit=200"), &Value::Null);
    assert!(history["events"].is_array() && history["page"]["nextCursor"].is_null(), "{history}");
    assert_eq!(history["page"]["hasMore"], false);
    let mut socket = page.socket(second["id"].as_str().unwrap());
    assert!(is_silent(&mut socket, Duration::from_millis(300)), "no greeting");
    let node = page.good("POST", &format!("{at}/nodes"), &new_node("A", "implementer"))["node"].clone();
    let layout = json!({"positions": {node["id"].as_str().unwrap(): {"x": 200, "y": 150}}, "viewport": {"x": 0, "y": 0, "zoom": 1}, "updatedAt": "2026-01-01T00:00:00.000Z"});
    let run = page.good("PATCH", &at, &json!({"patch": {"layout": layout}}))["run"].clone();
    fits("run", &run);
    assert!(run["layout"]["positions"].is_object() && run["layout"]["viewport"]["zoom"] == 1.0, "{run}");
    let told = until_heard(&mut socket, |event| {
        event["type"] == "run.patch" && event["patch"].get("layout").is_some()
    });
    assert!(told["patch"].get("id").is_none(), "{told}");
}

/// 12.1, a new session: a folder is chosen, modes are given.
#[test]
fn it_makes_a_session_in_a_folder() {
    let play = play();
    let page = Theirs::enter(&play.server);
    let listed = page.good("GET", "/api/fs/list", &Value::Null);
    for entry in listed["entries"].as_array().unwrap() {
        assert!(
            entry["name"].is_string() && entry["isDirectory"].is_boolean() && entry["path"].is_string(),
            "{entry}"
        );
    }
    let cwd = listed["current"].clone();
    let body = json!({"mode": "AUTO", "globalMode": "PLANNING", "cwd": cwd});
    let run = page.good("POST", "/api/runs", &body)["run"].clone();
    assert_eq!((&run["mode"], &run["globalMode"], &run["cwd"]), (&json!("AUTO"), &json!("PLANNING"), &cwd));
}

/// 12.1, a new agent by Shift+N, drawn edges, and their removal: the ids are the client's, an edge is put by its id.
#[test]
fn it_adds_agents_and_draws_edges() {
    let play = play();
    let page = Theirs::enter(&play.server);
    let mut socket = page.socket(&play.run);
    let a = page.good("POST", &play.at("/nodes"), &new_node("Agent 1", "implementer"))["node"].clone();
    let b = page.good("POST", &play.at("/nodes"), &new_node("Agent 2", "reviewer"))["node"].clone();
    fits("node", &a);
    let whole = next(&mut socket);
    assert_eq!((&whole["type"], &whole["nodeId"]), (&json!("node.patch"), &a["id"]));
    let config = until_heard(&mut socket, |event| event["type"] == "run.patch");
    assert!(config["patch"]["nodeConfigs"][a["id"].as_str().unwrap()].is_object(), "{config}");
    let id = "7b0e7f66-0d0b-4e9d-8f7a-1de0a7c0ffee";
    let edge = |label: &str, bidirectional: bool, to: &Value| json!({"edge": {"id": id, "from": a["id"], "to": to, "bidirectional": bidirectional, "type": "handoff", "label": label}});
    let made = page.good("POST", &play.at("/edges"), &edge("", true, &b["id"]))["edge"].clone();
    assert_eq!((&made["id"], &made["label"], &made["bidirectional"]), (&json!(id), &json!(""), &json!(true)));
    assert_eq!(until_heard(&mut socket, |event| event["type"] == "edge.created")["edge"], made);
    let renamed = page.good("POST", &play.at("/edges"), &edge("review", false, &b["id"]))["edge"].clone();
    assert_eq!((&renamed["id"], &renamed["label"]), (&json!(id), &json!("review")));
    assert_eq!(until_heard(&mut socket, |event| event["type"] == "edge.created")["edge"], renamed);
    assert_eq!(play.state()["edges"].as_object().unwrap().len(), 1);
    assert_eq!(page.good("DELETE", &play.at(&format!("/edges/{id}")), &Value::Null)["edgeId"], id);
    assert_eq!(until_heard(&mut socket, |event| event["type"] == "edge.deleted")["edgeId"], id);
    let gone = page.good("DELETE", &play.at(&format!("/nodes/{}", b["id"].as_str().unwrap())), &Value::Null);
    assert_eq!(gone["nodeId"], b["id"]);
    assert_eq!(until_heard(&mut socket, |event| event["type"] == "node.deleted")["nodeId"], b["id"]);
    page.ask("POST", &play.at("/edges"), &edge("", true, &b["id"])).failed(409, "conflict");
}

/// 12.1, sends, queues and interrupts with a text; start, pause, stop and reset in the inspector.
#[test]
fn it_chats_and_steers() {
    let mut play = play();
    let page = Theirs::enter(&play.server);
    let node = page.good("POST", &play.at("/nodes"), &new_node("A", "implementer"))["node"]["id"].clone();
    let id = node.as_str().unwrap().to_owned();
    let mut socket = page.socket(&play.run);
    play.script("long", &format!("touch \"$T/began\"\n{}\n{}", waits("never"), finally("Never.", &[])));
    play.script("short", &finally("Short.", &[]));
    let chat = |content: &str, interrupt: bool| {
        let body = json!({"nodeId": node, "content": content, "interrupt": interrupt});
        page.good("POST", &play.at("/chat"), &body)["messageId"].clone()
    };
    let verb = |verb: &str| page.ask("POST", &play.at(&format!("/nodes/{id}/{verb}")), &Value::Null);
    let first = chat("do:long", false);
    let told = until_heard(&mut socket, |event| event["type"] == "message.user");
    assert_eq!((&told["message"]["id"], &told["message"]["content"]), (&first, &json!("do:long")));
    assert_eq!((&told["message"]["role"], &told["message"]["nodeId"]), (&json!("user"), &node));
    verb("interrupt").failed(409, "conflict");
    let mut runner = play.world.runner();
    let runner = runner
        .args(["--every", "200ms"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut runner = runner.spawn().unwrap();
    until("it began", || play.file("began").exists().then_some(()));
    let queued = chat("do:short", false);
    until("it waits", || (play.of(&id)["inboxCount"] == 1).then_some(()));
    assert_eq!(verb("interrupt").json(), json!({"ok": true}));
    let over = until_heard(&mut socket, |event| {
        event["type"] == "message.assistant.final" && event["content"] == "Short."
    });
    assert_eq!(over["nodeId"], node);
    assert!(play.of_type("message.user").iter().any(|event| event["message"]["id"] == queued));
    std::fs::remove_file(play.file("began")).unwrap();
    chat("do:long", false);
    until("it began again", || play.file("began").exists().then_some(()));
    chat("do:short", true);
    until_heard(&mut socket, |event| {
        event["type"] == "message.assistant.final" && event["content"] == "Short."
    });
    for (one, connection) in [("stop", "disconnected"), ("start", "idle"), ("reset", "idle")] {
        assert_eq!(verb(one).json(), json!({"ok": true}), "{one}");
        until(one, || (play.of(&id)["connection"]["status"] == connection).then_some(()));
    }
    let nothing = "00000000-0000-4000-8000-000000000000";
    for one in ["start", "stop", "interrupt", "reset"] {
        page.ask("POST", &play.at(&format!("/nodes/{nothing}/{one}")), &Value::Null).failed(404, "unknown");
    }
    let pid = nix::unistd::Pid::from_raw(runner.id().cast_signed());
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
    let _ = runner.wait();
    play.rest();
}

/// 12.1, saves a configuration, of all nodes at once side by side; the provider's select; modes, pause, play, stop.
#[test]
fn it_saves_settings_and_modes() {
    let play = play();
    let page = Theirs::enter(&play.server);
    let ids: Vec<String> = (0..4)
        .map(|n| {
            let made = page.good("POST", &play.at("/nodes"), &new_node(&format!("N{n}"), "implementer"));
            made["node"]["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let permissions = json!({"cliPermissionsMode": "gated", "agentManagementRequiresApproval": false});
    let body = json!({"patch": {"permissions": permissions}, "config": {"permissions": permissions}});
    std::thread::scope(|scope| {
        for id in &ids {
            let (page, play, body) = (&page, &play, &body);
            scope.spawn(move || page.good("PATCH", &play.at(&format!("/nodes/{id}")), body));
        }
    });
    let run = play.state();
    for id in &ids {
        assert_eq!(
            (&run["nodes"][id]["permissions"], &run["nodeConfigs"][id]["permissions"]),
            (&permissions, &permissions)
        );
    }
    let at = play.at(&format!("/nodes/{}", ids[0]));
    let provider = json!({"patch": {"provider": "codex"}, "config": {"provider": "codex", "session": {"resume": false, "resetCommands": ["/new", "/clear"]}}});
    let node = page.good("PATCH", &at, &provider)["node"].clone();
    assert_eq!(node["provider"], "codex");
    let config = play.state()["nodeConfigs"][&ids[0]].clone();
    assert_eq!((&config["provider"], &config["session"]["resume"]), (&json!("codex"), &json!(false)));
    let whole = json!({"label": "Named", "alias": "named", "roleTemplate": "reviewer", "customSystemPrompt": "Look twice.", "provider": "custom",
        "capabilities": {"edgeManagement": "self", "writeCode": false, "writeDocs": true, "runCommands": false, "delegateOnly": true},
        "permissions": permissions});
    let mut config = whole.clone();
    config["session"] = json!({"resume": true, "resetCommands": ["/new", "/clear"]});
    let node = page.good("PATCH", &at, &json!({"patch": whole, "config": config}))["node"].clone();
    for (key, value) in whole.as_object().unwrap() {
        assert_eq!(&node[key], value, "{key}");
    }
    let mut socket = page.socket(&play.run);
    let patch = |patch: Value| page.good("PATCH", &play.at(""), &json!({ "patch": patch }))["run"].clone();
    assert_eq!(patch(json!({"mode": "AUTO"}))["mode"], "AUTO");
    assert_eq!(until_heard(&mut socket, |event| event["type"] == "run.mode")["mode"], "AUTO");
    assert_eq!(patch(json!({"globalMode": "PLANNING"}))["globalMode"], "PLANNING");
    assert_eq!(until_heard(&mut socket, |event| event["type"] == "run.mode")["globalMode"], "PLANNING");
    for status in ["paused", "running", "stopped", "running"] {
        assert_eq!(patch(json!({ "status": status }))["status"], status);
        let told = until_heard(&mut socket, |event| {
            event["type"] == "run.patch" && event["patch"].get("status").is_some()
        });
        assert_eq!(told["patch"]["status"], status);
    }
    // Six words are statuses, and no others.
    for status in ["queued", "completed", "failed"] {
        assert_eq!(patch(json!({ "status": status }))["status"], status);
    }
    page.ask("PATCH", &play.at(""), &json!({"patch": {"status": "over"}})).failed(400, "invalid");
    patch(json!({}));
    page.good("PATCH", &play.at(""), &json!({}));
}

/// 12.1, approves and denies, with nothing but the status.
#[test]
fn it_approves_and_denies() {
    let mut play = play();
    play.go();
    let page = Theirs::enter(&play.server);
    let mut node = new_node("A", "orchestrator");
    node["node"]["capabilities"]["edgeManagement"] = json!("all");
    let a = page.good("POST", &play.at("/nodes"), &node)["node"]["id"].as_str().unwrap().to_owned();
    let spawn = |label: &str| json!({"id": format!("s-{label}"), "name": "spawn_node", "args": {"label": label, "roleTemplate": "implementer", "provider": "custom"}});
    play.script(
        "spawn",
        &format!(
            "{}\nread -r x\nread -r y\n{}",
            finally("Two.", &[spawn("Yes"), spawn("No")]),
            finally("Done.", &[])
        ),
    );
    let mut socket = page.socket(&play.run);
    page.good("POST", &play.at("/chat"), &json!({"nodeId": a, "content": "do:spawn", "interrupt": false}));
    let asked = [(); 2].map(|()| until_heard(&mut socket, |event| event["type"] == "approval.requested"));
    for (asked, status) in asked.iter().zip(["approved", "denied"]) {
        assert_eq!((&asked["nodeId"], &asked["tool"]["name"]), (&json!(a), &json!("spawn_node")));
        let id = asked["approvalId"].as_str().unwrap();
        let answer = page.good(
            "POST",
            &format!("/api/approvals/{id}/resolve"),
            &json!({"resolution": {"status": status}}),
        );
        assert_eq!(answer, json!({"approvalId": id, "resolution": {"status": status}}));
        let told = until_heard(&mut socket, |event| event["type"] == "approval.resolved");
        assert_eq!((&told["approvalId"], &told["resolution"]["status"]), (&json!(id), &json!(status)));
    }
    until("the one is there", || (play.state()["nodes"].as_object().unwrap().len() == 2).then_some(()));
    play.until_is(&a, "idle");
    let labels: Vec<Value> =
        play.state()["nodes"].as_object().unwrap().values().map(|node| node["label"].clone()).collect();
    assert!(labels.contains(&json!("Yes")) && !labels.contains(&json!("No")), "{labels:?}");
}

/// 12.1, templates: five are there; one is made, read, changed and removed; and a role without one says so.
#[test]
fn it_edits_templates() {
    let play = play();
    let page = Theirs::enter(&play.server);
    let list = page.good("GET", "/api/templates", &Value::Null)["templates"].clone();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["implementer", "investigator", "orchestrator", "planner", "reviewer"]);
    assert!(list.as_array().unwrap().iter().all(|one| one["source"] == "system" && one["path"].is_string()));
    let made = page.ask("POST", "/api/templates", &json!({"name": "my_role-1", "content": "Be kind."}));
    assert_eq!((made.status, &made.json()["name"]), (201, &json!("my_role-1")));
    let read = page.good("GET", "/api/templates/my_role-1", &Value::Null);
    assert_eq!((read["content"].as_str().unwrap().trim(), &read["found"]), ("Be kind.", &json!(true)));
    // An override of one that is built in, and back.
    page.good("PUT", "/api/templates/planner", &json!({"content": "Plan less."}));
    let list = page.good("GET", "/api/templates", &Value::Null)["templates"].clone();
    let planner = list.as_array().unwrap().iter().find(|one| one["name"] == "planner").unwrap();
    assert_eq!(planner["source"], "repo");
    assert_eq!(page.good("DELETE", "/api/templates/planner", &Value::Null)["name"], "planner");
    assert_eq!(page.good("GET", "/api/templates/planner", &Value::Null)["found"], true);
    let none = page.good("GET", "/api/templates/nobody", &Value::Null);
    assert!(none["found"] == false && none["content"].is_string());
    page.ask("GET", "/api/templates/..%2Fx", &Value::Null).failed(400, "invalid");
}

/// Section 5: pages of the history, as "Load earlier" asks for them; each event once, oldest first, until there are no more.
#[test]
fn it_loads_what_was_earlier() {
    let play = play();
    let page = Theirs::enter(&play.server);
    for n in 0..12 {
        page.good("POST", &play.at("/nodes"), &new_node(&format!("N{n}"), "implementer"));
    }
    let all =
        page.good("GET", &play.at("/events?limit=2000"), &Value::Null)["events"].as_array().unwrap().clone();
    let mut seen: Vec<Value> = Vec::new();
    let mut path = play.at("/events?limit=5");
    loop {
        let one = page.good("GET", &path, &Value::Null);
        let events = one["events"].as_array().unwrap().clone();
        assert!(
            events.len() <= 5
                && events.windows(2).all(|pair| pair[0]["ts"].as_str() <= pair[1]["ts"].as_str())
        );
        seen.splice(0..0, events);
        assert_eq!(one["page"]["hasMore"], json!(one["page"]["nextCursor"].is_string()));
        let Some(cursor) = one["page"]["nextCursor"].as_str() else { break };
        path = play.at(&format!("/events?limit=5&before={cursor}"));
    }
    assert_eq!(seen, all);
    assert_eq!(
        page.good("GET", &play.at("/events?limit="), &Value::Null)["events"],
        json!(all),
        "200 where it is empty"
    );
    for query in ["limit=0", "limit=2001", "limit=x", "before=-1", "before=1.5"] {
        page.ask("GET", &play.at(&format!("/events?{query}")), &Value::Null).failed(400, "invalid");
    }
    page.ask("GET", "/api/runs/00000000-0000-4000-8000-000000000000/events", &Value::Null)
        .failed(404, "unknown");
}

/// Section 6: sessions are switched as the page does it, with two sockets of one run and one of another: nothing is mixed or doubled.
#[test]
fn it_switches_sessions() {
    let play = play();
    let page = Theirs::enter(&play.server);
    let other = page.good("POST", "/api/runs", &json!({}))["run"]["id"].as_str().unwrap().to_owned();
    let mut sockets = [page.socket(&play.run), page.socket(&other), page.socket(&play.run)];
    let a = page.good("POST", &play.at("/nodes"), &new_node("A", "implementer"))["node"]["id"].clone();
    let b =
        page.good("POST", &format!("/api/runs/{other}/nodes"), &new_node("B", "implementer"))["node"]["id"]
            .clone();
    for (socket, (run, node)) in sockets.iter_mut().zip([(&play.run, &a), (&other, &b), (&play.run, &a)]) {
        let mut ids = std::collections::HashSet::new();
        // What it is to hear comes, however long that takes; what it is not to hear would come soon after.
        let first = frame(socket);
        socket.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
        let told = first.into_iter().chain(std::iter::from_fn(|| frame(socket)));
        let told: Vec<Value> = told.map(|text| serde_json::from_str(&text).unwrap()).collect();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(
            told.iter().all(|event| event["runId"] == json!(run) && ids.insert(event["id"].clone())),
            "{told:?}"
        );
        assert_eq!((&told[0]["type"], &told[0]["nodeId"]), (&json!("node.patch"), node));
    }
    // A position of the other run's node is no part of this one's layout.
    let layout = json!({"positions": {b.as_str().unwrap(): {"x": 1, "y": 1}}, "viewport": {"x": 0, "y": 0, "zoom": 1}, "updatedAt": "2026-01-01T00:00:00.000Z"});
    let run = page.good("PATCH", &play.at(""), &json!({"patch": {"layout": layout}}))["run"].clone();
    assert_eq!(run["layout"]["positions"], json!({}));
    assert_eq!(page.good("DELETE", &format!("/api/runs/{other}"), &Value::Null)["runId"], json!(other));
    page.ask("GET", &format!("/api/runs/{other}"), &Value::Null).failed(404, "unknown");
}

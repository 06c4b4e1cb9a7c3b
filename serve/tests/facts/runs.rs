//! The shared contract's routes and socket (W5, W6), over flows that `git aynig flow` would show as well.

use crate::support::{Answer, Server, UPGRADE, World, head, text};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::Write;
use std::net::TcpStream;

/// What a page needs of a node that it does not know yet.
pub const WHOLE_NODE: [&str; 9] = [
    "label",
    "roleTemplate",
    "provider",
    "status",
    "summary",
    "lastActivityAt",
    "capabilities",
    "permissions",
    "session",
];

/// A world in which flows can be made.
pub fn flowing() -> World {
    let world = World::new();
    world.aynig(&["flow", "init"]);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "flows"]);
    world
}

/// The program that has the turns of custom nodes: lines to standard output are what it says.
pub fn agent(world: &World, script: &str) {
    let path = world.home.path().join("agent.sh");
    std::fs::write(&path, format!("read -r prompt\n{script}\n")).unwrap();
    let command = format!("sh '{}'", path.display());
    world.git(&["config", "--global", "aynig.provider.custom.command", &command]);
}

/// The command by which it says this.
pub fn says(line: &Value) -> String {
    format!("printf '%s\\n' '{}'", line.to_string().replace('\'', "'\\''"))
}

/// Sends JSON.
pub fn send(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    server.ask(method, path, &[&server.bearer(), "Content-Type: application/json"], &body.to_string())
}

#[track_caller]
pub fn good(answer: Answer) -> Value {
    assert!((200..300).contains(&answer.status), "{} {}", answer.status, answer.text());
    answer.json()
}

pub fn node(label: &str, role: &str) -> Value {
    json!({"node": {"label": label, "roleTemplate": role, "provider": "custom", "capabilities": {"edgeManagement": "all"},
        "permissions": {"cliPermissionsMode": "skip"}, "session": {"resume": true, "resetCommands": ["/new", "/clear"]}}})
}

/// W5: a run is made, filled, changed and removed by the contract's routes; each answer includes its own write.
#[test]
fn w5_a_run_is_made_changed_and_removed() {
    let world = flowing();
    let server = world.serve(&[]);
    assert_eq!(good(server.get("/api/runs")), json!({"runs": [], "names": {}}));
    let run = good(server.post("/api/runs", ""))["run"].clone();
    for (key, value) in
        [("status", "running"), ("mode", "AUTO"), ("globalMode", "IMPLEMENTATION"), ("contractVersion", "1")]
    {
        assert_eq!(run[key], value, "{run}");
    }
    assert_eq!((&run["nodes"], &run["edges"], &run["artifacts"]), (&json!({}), &json!({}), &json!({})));
    assert_eq!(run["cwd"], world.repo().canonicalize().unwrap().to_string_lossy().as_ref());
    // A folder below it is where turns start.
    std::fs::create_dir_all(world.repo().join("web/app")).unwrap();
    let below = json!({"cwd": world.repo().join("web/app"), "name": "below"});
    let below = good(server.post("/api/runs", &below.to_string()))["run"].clone();
    assert!(below["cwd"].as_str().unwrap().ends_with("/web/app"), "{below}");
    good(send(&server, "DELETE", &format!("/api/runs/{}", below["id"].as_str().unwrap()), &json!({})));
    let at = format!("/api/runs/{}", run["id"].as_str().unwrap());
    let lead =
        good(server.post(&format!("{at}/nodes"), &node("Lead", "orchestrator").to_string()))["node"].clone();
    let work =
        good(server.post(&format!("{at}/nodes"), &node("Work", "implementer").to_string()))["node"].clone();
    assert_eq!(
        (&lead["label"], &lead["status"], &lead["provider"]),
        (&json!("Lead"), &json!("idle"), &json!("custom"))
    );
    let edge = json!({"edge": {"from": lead["id"], "to": work["id"]}});
    let edge = good(server.post(&format!("{at}/edges"), &edge.to_string()))["edge"].clone();
    assert_eq!(
        (&edge["type"], &edge["label"], &edge["bidirectional"]),
        (&json!("handoff"), &json!("task"), &json!(true))
    );
    // Put by id.
    let other = json!({"edge": {"id": edge["id"], "from": lead["id"], "to": work["id"], "bidirectional": false, "type": "handoff", "label": ""}});
    let put = good(server.post(&format!("{at}/edges"), &other.to_string()))["edge"].clone();
    assert_eq!((&put["id"], &put["bidirectional"], &put["label"]), (&edge["id"], &json!(false), &json!("")));

    let (lead, work) = (lead["id"].as_str().unwrap(), work["id"].as_str().unwrap());
    let stranger = "00000000-0000-4000-8000-00000000000f";
    let layout = json!({"positions": {lead: {"x": 1.5, "y": 2}, stranger: {"x": 1, "y": 1}}, "viewport": {"x": 0, "y": 0, "zoom": 1}, "updatedAt": "2020-01-01T00:00:00Z"});
    let patch =
        json!({"patch": {"mode": "INTERACTIVE", "globalMode": "PLANNING", "layout": layout, "else": 1}});
    let run = good(send(&server, "PATCH", &at, &patch))["run"].clone();
    assert_eq!((&run["mode"], &run["globalMode"]), (&json!("INTERACTIVE"), &json!("PLANNING")));
    assert_eq!(
        run["layout"]["positions"],
        json!({lead: {"x": 1.5, "y": 2.0}}),
        "a node that it has not is left out"
    );
    assert!(run["layout"]["updatedAt"].as_str().unwrap() > "2026", "{run}");
    assert_eq!(run["nodes"].as_object().unwrap().len(), 2, "the answer is the whole run");
    let named =
        json!({"patch": {"alias": "boss"}, "config": {"alias": "boss", "customSystemPrompt": "Lead well."}});
    let named = good(send(&server, "PATCH", &format!("{at}/nodes/{lead}"), &named))["node"].clone();
    assert_eq!((&named["alias"], &named["customSystemPrompt"]), (&json!("boss"), &json!("Lead well.")));
    let taken = json!({"patch": {"alias": "BOSS"}});
    send(&server, "PATCH", &format!("{at}/nodes/{work}"), &taken).failed(409, "conflict");

    let paused = good(send(&server, "PATCH", &at, &json!({"patch": {"status": "paused"}})))["run"].clone();
    assert_eq!(paused["status"], "paused");
    assert_eq!(good(server.get("/api/runs"))["runs"][0]["status"], "paused");
    assert!(world.aynig(&["flow", "show", "--json", run["id"].as_str().unwrap()]).contains("paused"));
    for verb in ["stop", "start", "reset"] {
        assert_eq!(
            good(server.post(&format!("{at}/nodes/{work}/{verb}"), "")),
            json!({"ok": true}),
            "{verb}"
        );
    }
    server.post(&format!("{at}/nodes/{work}/interrupt"), "").failed(409, "conflict");
    let said = good(server.post(
        &format!("{at}/chat"),
        &json!({"nodeId": work, "content": "--hello", "interrupt": true}).to_string(),
    ));
    assert!(said["messageId"].as_str().is_some_and(|id| id.len() == 36), "{said}");
    let inbox = good(server.get(&at))["run"]["nodes"][work]["inboxCount"].clone();
    assert_eq!(inbox, 1, "it waits while the run is paused");

    let edge = format!("{at}/edges/{}", edge["id"].as_str().unwrap());
    assert_eq!(good(send(&server, "DELETE", &edge, &json!({})))["edgeId"], put["id"]);
    send(&server, "DELETE", &edge, &json!({})).failed(404, "unknown");
    assert_eq!(
        good(send(&server, "DELETE", &format!("{at}/nodes/{work}"), &json!({}))),
        json!({"nodeId": work})
    );
    assert_eq!(good(server.get(&at))["run"]["nodes"].as_object().unwrap().len(), 1);
    assert_eq!(good(send(&server, "DELETE", &at, &json!({})))["runId"], run["id"]);
    server.get(&at).failed(404, "unknown");
    assert_eq!(good(server.get("/api/runs")), json!({"runs": [], "names": {}}));
}

/// W5: what is wrong is refused by its kind, in the one shape, and nothing is stored of it.
#[test]
fn w5_what_is_wrong_is_refused_by_name() {
    let world = flowing();
    let server = world.serve(&[]);
    let run = good(server.post("/api/runs", "{}"))["run"].clone();
    let at = format!("/api/runs/{}", run["id"].as_str().unwrap());
    let nothing = "00000000-0000-4000-8000-000000000000";
    let asks = [
        ("POST", "/api/runs".to_owned(), json!({"mode": "FAST"}), 400),
        ("POST", "/api/runs".to_owned(), json!({"cwd": "/"}), 400),
        ("POST", "/api/runs".to_owned(), json!([1]), 400),
        ("PATCH", at.clone(), json!({"patch": {"status": "gone"}}), 400),
        ("PATCH", at.clone(), json!({"patch": {"layout": {"positions": {}}}}), 400),
        ("PATCH", format!("/api/runs/{nothing}"), json!({"patch": {}}), 404),
        ("POST", format!("{at}/nodes"), json!({}), 400),
        (
            "POST",
            format!("{at}/nodes"),
            json!({"node": {"label": "a", "roleTemplate": "b", "provider": "other"}}),
            400,
        ),
        (
            "POST",
            format!("{at}/nodes"),
            json!({"node": {"label": " ", "roleTemplate": "b", "provider": "custom"}}),
            409,
        ),
        ("POST", format!("/api/runs/{nothing}/nodes"), node("a", "b"), 404),
        ("POST", format!("{at}/edges"), json!({"edge": {"from": nothing, "to": nothing}}), 409),
        ("POST", format!("{at}/edges"), json!({"edge": {"from": "ghost", "to": nothing}}), 400),
        ("POST", format!("{at}/chat"), json!({"nodeId": nothing, "content": "x"}), 404),
        ("POST", format!("{at}/chat"), json!({"content": "x"}), 400),
        ("POST", format!("{at}/nodes/{nothing}/start"), json!({}), 404),
        (
            "POST",
            format!("/api/approvals/{nothing}/resolve"),
            json!({"resolution": {"status": "approved"}}),
            404,
        ),
        ("POST", format!("/api/approvals/{nothing}/resolve"), json!({}), 400),
        (
            "POST",
            format!("/api/approvals/{nothing}/resolve"),
            json!({"resolution": {"status": "perhaps"}}),
            400,
        ),
        (
            "POST",
            format!("/api/approvals/{nothing}/resolve"),
            json!({"resolution": {"status": "modified"}}),
            400,
        ),
        ("GET", format!("{at}/events?limit=0"), json!({}), 400),
        ("GET", format!("{at}/events?before=x"), json!({}), 400),
        ("GET", format!("{at}/artifacts/{nothing}"), json!({}), 404),
        ("GET", "/api/runs/..%2f..%2fetc".to_owned(), json!({}), 404),
        ("PUT", at.clone(), json!({}), 405),
        ("GET", "/api/fs/list?path=/etc".to_owned(), json!({}), 403),
        ("PUT", "/api/templates/none".to_owned(), json!({"content": "x"}), 404),
        ("POST", "/api/templates".to_owned(), json!({"name": "../x", "content": "x"}), 400),
        ("DELETE", "/api/templates/planner".to_owned(), json!({}), 409),
    ];
    for (method, path, body, status) in asks {
        let answer = send(&server, method, &path, &body);
        assert_eq!(answer.status, status, "{method} {path} {body}: {}", answer.text());
        assert!(answer.json()["error"].is_string() && answer.json()["code"].is_string(), "{}", answer.text());
    }
    let after = good(server.get(&at))["run"].clone();
    assert_eq!((&after["nodes"], &after["edges"]), (&json!({}), &json!({})));
}

/// W5: templates are read and written where prompts read them; folders are those of the repository.
#[test]
fn w5_templates_and_folders() {
    let world = flowing();
    let server = world.serve(&[]);
    let names: Vec<Value> = good(server.get("/api/templates"))["templates"].as_array().unwrap().to_vec();
    assert_eq!(names.len(), 5, "{names:?}");
    assert_eq!(good(server.get("/api/templates/none"))["found"], false);
    let made = server.post("/api/templates", "{\"name\":\"critic\",\"content\":\"Find what is wrong.\"}");
    assert_eq!(made.status, 201, "{}", made.text());
    server.post("/api/templates", "{\"name\":\"critic\",\"content\":\"x\"}").failed(409, "conflict");
    good(send(&server, "PUT", "/api/templates/critic", &json!({"content": "Find all."})));
    assert_eq!(good(server.get("/api/templates/critic"))["content"].as_str().unwrap().trim(), "Find all.");
    assert!(world.aynig(&["flow", "template", "show", "critic"]).contains("Find all."));
    good(send(&server, "DELETE", "/api/templates/critic", &json!({})));
    assert_eq!(good(server.get("/api/templates/critic"))["found"], false);

    std::fs::create_dir(world.repo().join("docs")).unwrap();
    std::os::unix::fs::symlink("/etc", world.repo().join("away")).unwrap();
    let listed = good(server.get("/api/fs/list"));
    let docs = listed["entries"].as_array().unwrap().iter().find(|entry| entry["name"] == "docs").unwrap();
    assert_eq!(docs["isDirectory"], true);
    assert!(listed.get("parent").is_none(), "{listed}");
    let below = good(server.get(&format!("/api/fs/list?path={}", docs["path"].as_str().unwrap())));
    assert_eq!(below["parent"], listed["current"]);
    server.get("/api/fs/list?path=away").failed(403, "refused");
    server.get("/api/fs/list?path=..").failed(403, "refused");
}

pub fn live(server: &Server, query: &str) -> TcpStream {
    let mut stream = server.connect();
    let request = format!(
        "GET /ws{query} HTTP/1.1\r\nHost: {}\r\n{}\r\n{UPGRADE}Sec-WebSocket-Protocol: aynig, token.{}\r\n\r\n",
        server.address,
        server.origin(),
        server.token()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let head = head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    stream
}

pub fn next(stream: &mut TcpStream) -> Value {
    loop {
        let event: Value = serde_json::from_str(&text(stream).expect("a frame")).unwrap();
        if event["type"] != "node.heartbeat" {
            return event;
        }
    }
}

/// W6: events come as they happen, in the log's order and with its ids; nothing comes unasked; `since` brings what was missed,
/// once, and then the run's state without its id.
#[test]
fn w6_a_client_that_comes_back_misses_nothing() {
    let world = flowing();
    let server = world.serve(&[]);
    let run = good(server.post("/api/runs", "{}"))["run"].clone();
    let id = run["id"].as_str().unwrap();
    let at = format!("/api/runs/{id}");
    let mut client = live(&server, &format!("?runId={id}"));
    let lead =
        good(server.post(&format!("{at}/nodes"), &node("Lead", "orchestrator").to_string()))["node"].clone();
    let first = next(&mut client);
    assert_eq!(
        (&first["type"], &first["nodeId"], &first["runId"]),
        (&json!("node.patch"), &lead["id"], &run["id"])
    );
    for key in WHOLE_NODE {
        assert!(!first["patch"][key].is_null(), "{key} in {first}");
    }
    drop(client);
    good(server.post(&format!("{at}/nodes"), &node("Work", "implementer").to_string()));
    let page = good(server.get(&format!("{at}/events?limit=200")));
    let events = page["events"].as_array().unwrap().clone();
    let missed: Vec<&Value> =
        events.iter().filter(|event| event["seq"].as_u64() > first["seq"].as_u64()).collect();
    assert!(!missed.is_empty(), "{page}");
    let mut again = live(&server, &format!("?runId={id}&since={}", first["seq"]));
    for wanted in missed {
        assert_eq!(&next(&mut again), wanted);
    }
    let state = next(&mut again);
    assert_eq!((&state["type"], &state["patch"]["status"]), (&json!("run.patch"), &json!("running")));
    assert!(state["patch"].get("id").is_none(), "{state}");
    assert_eq!(state["patch"]["nodes"].as_object().unwrap().len(), 2);

    // What goes on comes to every client, in one order; no time is earlier than the one before.
    let mut clients: Vec<TcpStream> =
        (0..5).map(|n| live(&server, &if n == 0 { String::new() } else { format!("?runId={id}") })).collect();
    for n in 0..10 {
        good(server.post(&format!("{at}/nodes"), &node(&format!("n{n}"), "implementer").to_string()));
    }
    let whole = good(server.get(&format!("{at}/events?limit=2000")))["events"].as_array().unwrap().clone();
    let last = state["seq"].as_u64().or(events.last().unwrap()["seq"].as_u64());
    let wanted: Vec<Value> = whole.into_iter().filter(|event| event["seq"].as_u64() > last).collect();
    assert!(wanted.len() >= 10, "{wanted:?}");
    for client in &mut clients {
        let mut ts = String::new();
        let mut ids = HashSet::new();
        for event in &wanted {
            let told = next(client);
            assert_eq!(&told, event);
            assert!(told["ts"].as_str().unwrap() >= ts.as_str(), "{told}");
            ts = told["ts"].as_str().unwrap().to_owned();
            assert!(ids.insert(told["id"].clone()), "doubled: {told}");
        }
    }
    // One of another run hears nothing of this one.
    let other = good(server.post("/api/runs", "{}"))["run"]["id"].as_str().unwrap().to_owned();
    let mut elsewhere = live(&server, &format!("?runId={other}"));
    good(server.post(&format!("{at}/nodes"), &node("quiet", "implementer").to_string()));
    good(send(&server, "PATCH", &format!("/api/runs/{other}"), &json!({"patch": {"mode": "INTERACTIVE"}})));
    assert_eq!(next(&mut elsewhere)["runId"], other);
}

/// W5, W6: a turn is heard as it happens: what was said, the text as it streams, all of it, and what the node does at last; the
/// answer stands in the log with the ids that were told.
#[test]
fn w6_a_turn_is_heard_as_it_happens() {
    let world = flowing();
    let delta = says(&json!({"type": "message.assistant.delta", "delta": "I have "}));
    let last = says(&json!({"type": "message.assistant.final", "content": "I have done it."}));
    agent(&world, &format!("{delta}\n{last}"));
    let server = world.serve(&[]);
    let run = good(server.post("/api/runs", "{\"mode\":\"INTERACTIVE\"}"))["run"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let at = format!("/api/runs/{run}");
    let writer =
        good(server.post(&format!("{at}/nodes"), &node("Writer", "implementer").to_string()))["node"]["id"]
            .clone();
    let mut client = live(&server, &format!("?runId={run}"));
    let said =
        good(server.post(&format!("{at}/chat"), &json!({"nodeId": writer, "content": "do it"}).to_string()));
    let first = next(&mut client);
    assert_eq!((&first["type"], &first["message"]["id"]), (&json!("message.user"), &said["messageId"]));
    let ran = world.run();
    let mut heard = vec![first];
    while heard.last().unwrap()["type"] != "node.progress" || heard.last().unwrap()["status"] != "idle" {
        heard.push(next(&mut client));
    }
    let of = |kind: &str| heard.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    assert_eq!(of("message.assistant.final")[0]["content"], "I have done it.", "{ran} {heard:?}");
    assert!(of("artifact.created").len() >= 2, "{heard:?}");
    assert!(heard.windows(2).all(|pair| pair[0]["ts"].as_str() <= pair[1]["ts"].as_str()), "{heard:?}");
    let ids: HashSet<String> = heard.iter().map(|event| event["id"].to_string()).collect();
    assert_eq!(ids.len(), heard.len(), "none twice");
    let found = good(server.get(&at))["run"].clone();
    assert_eq!(
        (&found["nodes"][writer.as_str().unwrap()]["status"], &found["status"]),
        (&json!("idle"), &json!("running"))
    );
    let prompt = found["artifacts"]
        .as_object()
        .unwrap()
        .values()
        .find(|one| one["name"] == "prompt.full.txt")
        .unwrap();
    let prompt = good(server.get(&format!("{at}/artifacts/{}", prompt["id"].as_str().unwrap())));
    assert!(prompt["content"].as_str().unwrap().contains("do it"), "{prompt}");
    // A server that is killed has lost nothing: the next one says the same.
    let page = good(server.get(&format!("{at}/events")));
    drop(server);
    let again = world.serve(&[]);
    assert_eq!(good(again.get(&format!("{at}/events"))), page);
}

//! What clients of `/ws` are told while much happens, and those that do not read (W6).

use crate::runs::{agent, flowing, good, live, next, node, says};
use crate::support::{PATIENCE, Server, World, text, until};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::Read;
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};

/// A run with a node that has something to do, and what has its turn.
struct Working {
    run: String,
    node: String,
    runner: Child,
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.runner.kill();
        let _ = self.runner.wait();
    }
}

/// A run whose node was not asked for anything yet.
fn idle(server: &Server) -> (String, String) {
    let run = good(server.post("/api/runs", "{\"mode\":\"INTERACTIVE\"}"))["run"]["id"].clone();
    let run = run.as_str().unwrap().to_owned();
    let made = server.post(&format!("/api/runs/{run}/nodes"), &node("Worker", "implementer").to_string());
    (run, good(made)["node"]["id"].as_str().unwrap().to_owned())
}

/// Has its node work.
fn begin(world: &World, server: &Server, (run, node): (String, String)) -> Working {
    let said = json!({"nodeId": node, "content": "go"}).to_string();
    good(server.post(&format!("/api/runs/{run}/chat"), &said));
    let mut runner = world.runner();
    let runner = runner.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    Working { runner: runner.spawn().unwrap(), run, node }
}

/// The log's events, to its end.
fn log(world: &World, run: &str) -> Vec<Value> {
    let path = world.repo().join(format!(".git/aynig/data/runs/{run}/events.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How many sockets the server has.
fn sockets(server: &Server) -> usize {
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap().flatten();
    let open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    open.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

fn is_over(event: &Value) -> bool {
    event["type"] == "node.progress" && event["status"] == "idle"
}

/// W6: fifty clients, and a thousand events a second: every one gets every event, once and in the log's order.
#[test]
fn w6_fifty_clients_get_a_thousand_events_a_second() {
    let world = flowing();
    let burst =
        "i=0; while [ $i -lt 100 ]; do echo \"line $n.$i of what the program prints\" >&2; i=$((i+1)); done";
    let last = says(&json!({"type": "message.assistant.final", "content": "done"}));
    agent(&world, &format!("n=0; while [ $n -lt 30 ]; do {burst}; n=$((n+1)); sleep 0.1; done; {last}"));
    let server = world.serve(&[]);
    let (run, node) = idle(&server);
    let clients: Vec<TcpStream> = (0..50)
        .map(|n| live(&server, &if n == 0 { String::new() } else { format!("?runId={run}") }))
        .collect();
    let readers: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            std::thread::spawn(move || {
                let mut heard = Vec::new();
                while let Some(event) = text(&mut client) {
                    let event: Value = serde_json::from_str(&event).unwrap();
                    heard.push(event);
                    if is_over(heard.last().unwrap()) {
                        break;
                    }
                }
                heard
            })
        })
        .collect();
    let working = begin(&world, &server, (run, node));
    let heard: Vec<Vec<Value>> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    let log = log(&world, &working.run);
    let lines = log.iter().filter(|event| event["type"] == "node.log").count();
    assert!(lines >= 3000, "{lines}");
    for told in heard {
        let ids: Vec<&Value> =
            told.iter().filter(|event| event["type"] != "node.heartbeat").map(|event| &event["id"]).collect();
        // From the message that began it on.
        let first = log.iter().position(|event| &event["id"] == ids[0]).unwrap();
        let wanted: Vec<&Value> = log[first..].iter().map(|event| &event["id"]).take(ids.len()).collect();
        assert!(ids.len() > 3000 && ids == wanted, "{} {}", ids.len(), wanted.len());
        assert!(told.windows(2).all(|pair| pair[0]["ts"].as_str() <= pair[1]["ts"].as_str()));
    }
}

/// W6: a client that does not read is closed, holds no other client up, and is told so when it comes back, which brings
/// what it missed.
#[test]
fn w6_a_client_that_does_not_read_is_closed() {
    let world = flowing();
    // Far more than the system keeps for a connection, and 8 MiB.
    let piece = world.home.path().join("piece");
    const PIECES: usize = 420;
    const BYTES: usize = 60_000;
    let line = json!({"type": "message.assistant.delta", "delta": "x".repeat(BYTES)});
    std::fs::write(&piece, format!("{line}\n").repeat(PIECES)).unwrap();
    let gate = world.home.path().join("gate");
    let last = says(&json!({"type": "message.assistant.final", "content": "done"}));
    let wait = format!("while [ ! -e '{}' ]; do sleep 0.05; done", gate.display());
    agent(&world, &format!("cat '{}'; {wait}; {last}", piece.display()));
    let server = world.serve(&[]);
    let (run, node) = idle(&server);
    let mut slow = live(&server, &format!("?runId={run}"));
    let mut quick = live(&server, &format!("?runId={run}"));
    let open = sockets(&server);
    let working = begin(&world, &server, (run, node));
    let mut bytes = 0;
    let began = Instant::now();
    // To the last one, as the log is read below: nothing is added to it then until the gate opens.
    while bytes < PIECES * BYTES {
        let event: Value = serde_json::from_str(&text(&mut quick).expect("what is read goes on")).unwrap();
        bytes += event["delta"].as_str().unwrap_or_default().len();
        assert!(began.elapsed() < PATIENCE, "{bytes}");
    }
    until("the other is closed", || (sockets(&server) < open).then_some(()));
    // That one reads what the system kept for it, and then its connection is at its end.
    let mut told = Vec::new();
    while let Some(event) = text(&mut slow) {
        told.push(serde_json::from_str::<Value>(&event).unwrap());
    }
    let told: Vec<Value> = told.into_iter().filter(|event| event["type"] != "node.heartbeat").collect();
    let all = log(&world, &working.run);
    let seen = told.last().expect("something was told")["seq"].as_u64().unwrap();
    let missed = all.iter().position(|event| event["id"] == told.last().unwrap()["id"]).unwrap() + 1;
    assert!(missed < all.len(), "{missed} of {}", all.len());
    let mut again = live(&server, &format!("?runId={}&since={seen}", working.run));
    for event in &all[missed..] {
        assert_eq!(next(&mut again)["id"], event["id"]);
    }
    let behind = next(&mut again);
    assert_eq!(behind["type"], "stream.behind", "{behind}");
    assert!(behind["reason"].as_str().unwrap().contains("1,000 frames or 8 MiB"), "{behind}");
    assert_eq!(next(&mut again)["type"], "run.patch");
    // Once is enough.
    let mut third = live(&server, &format!("?runId={}&since={seen}", working.run));
    let kinds: Vec<Value> = (0..=all.len() - missed).map(|_| next(&mut third)["type"].clone()).collect();
    assert!(!kinds.contains(&json!("stream.behind")) && kinds.contains(&json!("run.patch")), "{kinds:?}");
    std::fs::write(&gate, "").unwrap();
    until("it ends", || {
        let run = good(server.get(&format!("/api/runs/{}", working.run)))["run"].clone();
        (run["nodes"][&working.node]["status"] == "idle").then_some(())
    });
}

/// W6: text that streams is joined over a moment, so that a page of events is a page of a conversation; nothing of it is lost, and
/// what stands for itself is told at once.
#[test]
fn w6_text_that_streams_is_joined() {
    let world = flowing();
    let words: Vec<String> = (0..400).map(|n| format!("w{n} ")).collect();
    let lines: String = words
        .iter()
        .map(|word| format!("{}\n", json!({"type": "message.assistant.delta", "delta": word})))
        .collect();
    let file = world.home.path().join("words");
    std::fs::write(&file, lines).unwrap();
    let gate = world.home.path().join("gate");
    let thought = |text: &str| says(&json!({"type": "message.assistant.thinking.delta", "delta": text}));
    let last = says(&json!({"type": "message.assistant.final", "content": words.concat()}));
    agent(
        &world,
        &format!(
            "{}; while [ ! -e '{}' ]; do sleep 0.02; done; cat '{}'; {}; {last}",
            thought("alone"),
            gate.display(),
            file.display(),
            thought(" and after")
        ),
    );
    let server = world.serve(&[]);
    let (run, node) = idle(&server);
    let mut client = live(&server, &format!("?runId={run}"));
    let working = begin(&world, &server, (run, node));
    let mut heard = Vec::new();
    while heard.last().is_none_or(|event: &Value| event["type"] != "message.assistant.thinking.delta") {
        heard.push(next(&mut client));
    }
    assert_eq!(heard.last().unwrap()["delta"], "alone", "what stands for itself waits for nothing");
    std::fs::write(&gate, "").unwrap();
    while !is_over(heard.last().unwrap()) {
        heard.push(next(&mut client));
    }
    let pieces = |kind: &str| -> Vec<&str> {
        let of = heard.iter().filter(|event| event["type"] == kind);
        of.map(|event| event["delta"].as_str().unwrap()).collect()
    };
    let said = pieces("message.assistant.delta");
    assert_eq!(said.concat(), words.concat());
    assert!(said.len() < 100, "{} lines for 400 pieces", said.len());
    assert_eq!(pieces("message.assistant.thinking.delta").concat(), "alone and after");
    let order = |kind: &str, text: &str| {
        heard.iter().position(|event| {
            event["type"] == kind && event["delta"].as_str().unwrap_or_default().ends_with(text)
        })
    };
    assert!(order("message.assistant.delta", "w399 ") < order("message.assistant.thinking.delta", "after"));
    assert!(log(&world, &working.run).len() < 150);
}

/// W6: what runs is said to be alive on the wire alone, at no earlier time than what was told before.
#[test]
fn w6_what_is_alive_is_told_and_no_time_goes_back() {
    let world = flowing();
    let gate = world.home.path().join("gate");
    let first = says(&json!({"type": "message.assistant.delta", "delta": "a"}));
    let last = says(&json!({"type": "message.assistant.final", "content": "ab"}));
    agent(&world, &format!("{first}; while [ ! -e '{}' ]; do sleep 0.02; done; {last}", gate.display()));
    let server = world.serve(&[]);
    let (run, node) = idle(&server);
    let mut client = live(&server, &format!("?runId={run}"));
    let mut all = live(&server, "");
    let working = begin(&world, &server, (run, node));
    let mut heard: Vec<Value> = Vec::new();
    let mut beats = 0;
    while heard.last().is_none_or(|event| !is_over(event)) {
        let event: Value = serde_json::from_str(&text(&mut client).unwrap()).unwrap();
        if event["type"] == "node.heartbeat" {
            assert_eq!((&event["nodeId"], &event["runId"]), (&json!(working.node), &json!(working.run)));
            beats += 1;
            if beats == 2 {
                std::fs::write(&gate, "").unwrap();
            }
        }
        heard.push(event);
    }
    assert!(beats >= 2);
    let ids: HashSet<String> = heard.iter().map(|event| event["id"].to_string()).collect();
    assert_eq!(ids.len(), heard.len(), "each has an id of its own");
    assert!(heard.windows(2).all(|pair| pair[0]["ts"].as_str() <= pair[1]["ts"].as_str()), "{heard:?}");
    assert!(log(&world, &working.run).iter().all(|event| event["type"] != "node.heartbeat"));
    let other: Value = serde_json::from_str(&text(&mut all).unwrap()).unwrap();
    assert_eq!(other["runId"], json!(working.run), "who asks for no run hears of all");
}

/// W6: a client is asked every 20 s whether it is there; one that does not answer is closed.
#[test]
fn w6_a_client_is_asked_whether_it_is_there() {
    let world = flowing();
    let server = world.serve(&[]);
    let (run, _) = idle(&server);
    let mut sockets = [live(&server, &format!("?runId={run}")), server.socket()];
    let began = Instant::now();
    for socket in &mut sockets {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        // What is told before that is answered by nothing either.
        let mut start = [0; 2];
        socket.read_exact(&mut start).unwrap();
        while start[0] == 0x81 {
            assert!(start[1] < 126);
            let mut text = vec![0; usize::from(start[1])];
            socket.read_exact(&mut text).unwrap();
            socket.read_exact(&mut start).unwrap();
        }
        assert_eq!(start, [0x89, 0], "a ping");
        let after = began.elapsed();
        assert!(after > Duration::from_secs(15), "{after:?}");
    }
    for socket in &mut sockets {
        let mut rest = Vec::new();
        let is_closed = crate::support::is_closed(socket.read_to_end(&mut rest));
        assert!(is_closed && rest.is_empty(), "nobody answered, and it is asked no second time: {rest:?}");
    }
}

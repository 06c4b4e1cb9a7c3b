//! Notifications, posted to a real listener on the loopback (G5).

use crate::rig::{Project, config};
use aynig::governed::*;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How often one that trickles sends, 20 ms apart: far beyond every limit.
pub const PIECES: usize = 9_000;

/// What a listener was sent: the head, the names of its headers in lower case, and the body.
pub type Post = (String, Value);

pub fn read(stream: &mut impl Read) -> Post {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = stream.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let (request, headers) = head.split_once("\r\n").unwrap();
            let headers = headers.lines().map(|line| line.split_once(':').unwrap());
            let headers: Vec<_> = headers.map(|(name, value)| (name.to_lowercase(), value.trim())).collect();
            let length = headers.iter().find(|(name, _)| name == "content-length").unwrap().1;
            if body.len() >= length.parse().unwrap() {
                let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
                let head = format!("{request}\r\n{}", lines.collect::<String>());
                return (head, serde_json::from_str(body).unwrap());
            }
        }
        assert_ne!(n, 0, "{text}");
    }
}

/// A listener that answers each post with this.
pub fn listener(answer: &'static str) -> (String, mpsc::Receiver<Post>) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?x=1", socket.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for stream in socket.incoming() {
            let mut stream = stream.unwrap();
            let post = read(&mut stream);
            let _ = stream.write_all(answer.as_bytes());
            if tell.send(post).is_err() {
                return;
            }
        }
    });
    (url, told)
}

pub fn project(webhooks: Value) -> Project {
    let mut config = config();
    config["notifications"] = json!({ "webhooks": webhooks });
    let project = Project::with(config);
    init_run(&project.root(), &project.config).unwrap();
    project
}

pub fn webhook(name: &str, url: &str, events: &[&str]) -> Value {
    json!({ "name": name, "url": url, "events": events, "timeout_ms": 30000, "headers": { "X-Key": "k-${SECRET}" }, "env": { "SECRET": "s" } })
}

/// A webhook that is soon too late.
pub fn hurried(name: &str, url: &str, events: &[&str]) -> Value {
    let mut webhook = webhook(name, url, events);
    webhook["timeout_ms"] = json!(400);
    webhook
}

#[test]
fn an_escalation_is_posted_and_audited() {
    let (url, posts) = listener("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    let project = project(json!([
        webhook("ops", &url, &["run_blocked", "operator_escalation_raised", "escalation_resolved"]),
        webhook("deaf", &url, &["run_completed"]),
    ]));
    let turn = project.assign("pm");
    let escalation =
        Escalation { reason: "no staging system", detail: Some("since noon"), ..Escalation::default() };
    escalate(&project.root(), &project.config, &escalation).unwrap();
    let (head, first) = posts.recv().unwrap();
    assert!(
        head.starts_with("POST /hook?x=1 HTTP/1.1\r\n") && head.contains("\r\nhost: 127.0.0.1:"),
        "{head}"
    );
    assert!(head.contains("\r\nx-key: k-s\r\n") && head.contains("\r\ncontent-type: application/json\r\n"));
    assert_eq!(first["event_type"], "run_blocked");
    assert_eq!(first["payload"]["category"], "operator_escalation");
    assert_eq!(first["turn"]["turn_id"], turn.id());
    assert_eq!(first["run"]["status"], "blocked");
    assert_eq!(first["project"]["id"], "rig");
    let (_, second) = posts.recv().unwrap();
    assert_eq!(second["payload"]["blocked_on"], "escalation:operator:no-staging-system");
    let config = Some(&project.config);
    reactivate_run(&project.root(), &project.state(), &Reactivation { config, ..Reactivation::default() })
        .unwrap();
    assert_eq!(posts.recv().unwrap().1["event_type"], "escalation_resolved");
    let audit = project.lines("notification-audit.jsonl");
    let names: Vec<&str> = audit.iter().map(|line| line["event_type"].as_str().unwrap()).collect();
    assert_eq!(names, ["run_blocked", "operator_escalation_raised", "escalation_resolved"]);
    assert!(audit.iter().all(|line| line["delivered"] == true && line["status_code"] == 202));
}

#[test]
fn a_listener_that_hangs_or_is_not_there_changes_no_outcome() {
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let (refusing, _posts) = listener("HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno");
    let trickling = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = trickling.local_addr().unwrap();
    thread::spawn(move || {
        for stream in trickling.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                // A header a byte at a time, for minutes: no read ever waits long.
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ");
                for _ in 0..PIECES {
                    if stream.write_all(b"H").is_err() {
                        break;
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
    });
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let events = &["run_blocked"];
    let project = project(json!([
        hurried("hanging", &format!("http://{}/", hanging.local_addr().unwrap()), events),
        hurried("trickling", &format!("http://{address}/"), events),
        webhook("closed", &format!("http://{closed}/"), events),
        webhook("refusing", &refusing, events),
    ]));
    let block = Block {
        blocked_on: "human:x",
        category: "needs_human",
        config: Some(&project.config),
        ..Block::default()
    };
    let blocked = mark_run_blocked(&project.root(), &block).unwrap();
    assert_eq!(blocked.state.status(), Some(RunStatus::Blocked));
    let audit = project.lines("notification-audit.jsonl");
    let of = |key: &str| audit.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("notification_name"), ["hanging", "trickling", "closed", "refusing"]);
    assert_eq!(of("delivered"), [false; 4]);
    assert_eq!(of("timed_out"), [true, true, false, false]);
    assert_eq!(of("status_code"), [json!(null), json!(null), json!(null), json!(500)]);
}

#[test]
fn the_lock_is_free_while_a_listener_hangs() {
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut hook =
        webhook("hanging", &format!("http://{}/", hanging.local_addr().unwrap()), &["run_blocked"]);
    hook["timeout_ms"] = json!(30000);
    let project = project(json!([hook]));
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let block = Block {
                blocked_on: "human:x",
                category: "c",
                config: Some(&project.config),
                ..Block::default()
            };
            mark_run_blocked(&project.root(), &block).unwrap();
        });
        let (mut stream, _) = hanging.accept().unwrap();
        read(&mut stream);
        reactivate_run(&project.root(), &project.state(), &Reactivation::default()).unwrap();
        assert!(!waits.is_finished(), "it is not answered yet");
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    });
}

#[test]
fn events_have_names_and_no_webhook_asks_for_none() {
    let plain = Project::begun();
    let emit = |p: &Project, event: &str| {
        emit_notifications(&p.root(), &p.config, &p.state(), event, &json!({}), None)
    };
    assert_eq!(emit(&plain, "anything").unwrap(), Notified::default());
    let project = project(json!([webhook("x", "http://127.0.0.1:1/", &["run_completed"])]));
    assert!(emit(&project, "anything").is_err());
    assert!(emit(&project, "run_blocked").unwrap().results.is_empty());
    let missing = emit(&project, "run_completed").unwrap();
    assert_eq!(missing.results[0]["delivered"], false);
}

#[test]
fn answers_are_read_in_the_forms_that_servers_write() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\n";
    let allow = r#"{"verdict":"allow","message":"fine"}"#;
    let chunks =
        format!("{:x};x\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", 5, &allow[..5], allow.len() - 5, &allow[5..]);
    let long = format!("{allow}{}", " ".repeat(2 << 20));
    let forms = [
        (format!("{HEAD}Content-Length: {}\r\n\r\n{allow}and more", allow.len()), Ok("fine")),
        (format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{chunks}"), Ok("fine")),
        (format!("HTTP/1.0 200 OK\r\n\r\n{allow}"), Ok("fine")),
        // It closed early, and what there is happens to be whole.
        (format!("{HEAD}Content-Length: 500\r\n\r\n{allow}"), Ok("fine")),
        // No more than a MiB of it is read.
        (format!("{HEAD}Content-Length: {}\r\n\r\n{long}", long.len()), Ok("fine")),
        // A redirect is an answer, and is not followed.
        (
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".to_owned(),
            Err("302"),
        ),
        ("HTTP/1.1 307 Again\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned(), Err("307")),
        ("SSH-2.0-x\r\n\r\n".to_owned(), Err("is no HTTP")),
        (String::new(), Err("")),
    ];
    for (answer, expected) in forms {
        let (url, posts) = listener(answer.clone().leak());
        let project = Project::begun();
        let hook = json!({ "name": "h", "type": "http", "url": url, "mode": "blocking", "timeout_ms": 5000 });
        let hooks = json!({ "before_assignment": [hook] });
        let report = run_hooks(
            &project.root(),
            Some(&hooks),
            HookPhase::BeforeAssignment,
            &json!({}),
            &HookOptions::default(),
        )
        .unwrap();
        let said = report.results[0]["message"].as_str().unwrap_or_default();
        let answer = &answer[..answer.len().min(60)];
        assert_eq!(report.ok, expected.is_ok(), "{answer}: {:?}", report.results);
        assert!(said.contains(expected.unwrap_or_else(|why| why)), "{answer}: {said}");
        posts.recv().unwrap();
        assert!(posts.try_recv().is_err(), "posted once");
    }
}

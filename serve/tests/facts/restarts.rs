//! The server is killed, again and again, while a flow of three nodes works and a client looks on (section 5 of the design): 8 times, or
//! as often as `AYNIG_KILLS` says.

use crate::play::{Play, finally};
use crate::runs::good;
use crate::support::{PATIENCE, SERVE, Server, UPGRADE, head, text, until};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often, where nothing is said.
const USUAL: u64 = 8;
const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// What a client has heard, over all its connections.
type Heard = Arc<Mutex<Vec<Value>>>;

/// Comes back with what it heard last, as often as it takes, until the time is over; then hears on until the connection is.
fn looks_on(address: &str, run: &str, heard: &Heard, until: Instant) {
    while Instant::now() < until {
        let Ok(mut stream) = TcpStream::connect(address) else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let seq = heard.lock().unwrap().last().map_or(0, |event| event["seq"].as_u64().unwrap());
        let asked = format!(
            "GET /ws?runId={run}&since={seq} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n{UPGRADE}\r\n"
        );
        let _ = stream.write_all(asked.as_bytes());
        if !head(&mut stream).starts_with("HTTP/1.1 101 ") {
            continue;
        }
        while let Some(event) = text(&mut stream) {
            let event: Value = serde_json::from_str(&event).unwrap();
            // What is in no log has no place in it.
            if event["seq"].is_u64() {
                heard.lock().unwrap().push(event);
            }
        }
    }
}

fn start(play: &Play, port: &str) -> std::process::Command {
    let token = play.file("token");
    std::fs::write(&token, TOKEN).unwrap();
    let line = format!("exec {SERVE} --json --port {port} --token-fd 5 5<'{}'", token.display());
    play.world.call("/bin/sh", &["-c", &line])
}

/// W3, W6, W12a: commands go on, each once; the client has every event once and in order; and the next server shows what Git holds.
#[test]
fn w3_killed_at_any_point_it_comes_back_with_all() {
    let kills = std::env::var("AYNIG_KILLS").ok().and_then(|many| many.parse().ok()).unwrap_or(USUAL);
    let mut play = Play::new();
    let (address, run) = (play.server.address.clone(), play.run.clone());
    let port = address.rsplit_once(':').unwrap().1.to_owned();
    let nodes = ["One", "Two", "Three"].map(|label| play.node(label, "implementer", &json!({})));
    play.edge(&nodes[0], &nodes[1]);
    let hand = json!({"id": "h", "name": "send_handoff", "args": {"to": "two", "message": "do:work handed"}});
    let delta = crate::runs::says(&json!({"type": "message.assistant.delta", "delta": "I am"}));
    let counts = "echo \"$AYNIG_BRANCH\" >>\"$T/turns\"";
    play.script("work", &format!("{counts}\n{delta}\nsleep 0.05\n{}", finally("I am done.", &[])));
    play.script("hand", &format!("{counts}\n{delta}\n{}", finally("I hand it over.", &[hand])));
    let _ = play.server.child.kill();
    let _ = play.server.child.wait();
    play.go();

    let heard: Heard = Arc::default();
    let send = |n: u64| {
        let (alias, script) =
            [("one", "hand"), ("three", "work"), ("two", "work")][usize::try_from(n % 3).unwrap()];
        let id =
            play.world.aynig(&["flow", "send", &run, alias, "-m", &format!("do:{script} {n}"), "--json"]);
        assert!(id.contains("\"id\""), "{id}");
    };
    for n in 0..kills {
        if n % 2 == 0 {
            send(n / 2);
        }
        let mut child: Child =
            start(&play, &port).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // From before it listens to long after.
        let over = Instant::now() + Duration::from_millis(10 + n * 37 % 500);
        std::thread::scope(|scope| {
            scope.spawn(|| looks_on(&address, &run, &heard, over));
            std::thread::sleep(over.saturating_duration_since(Instant::now()));
            child.kill().unwrap();
            child.wait().unwrap();
        });
    }
    play.server = Server::start(&mut start(&play, &port));
    assert_eq!(
        (play.server.token(), &play.server.address),
        (TOKEN, &address),
        "where it was, for who was in"
    );
    let sent = kills.div_ceil(2);
    let finals = |events: &[Value]| {
        events.iter().filter(|event| event["type"] == "message.assistant.final").count() as u64
    };
    // A turn that is ended by who started it is none that is over.
    play.until_all_rest();
    play.rest();
    let turns = std::fs::read_to_string(play.file("turns")).unwrap();
    play.state();
    let log = play.log();
    assert_eq!(turns.lines().count() as u64, finals(&log), "each turn once");
    let of = |kind: &str| log.iter().filter(|event| event["type"] == kind).count() as u64;
    let handed = turns.lines().filter(|branch| branch.ends_with("/one")).count() as u64;
    assert_eq!(
        (of("message.user"), of("handoff.sent")),
        (sent, handed),
        "each message once, each handoff once"
    );
    assert!(nodes.iter().all(|node| play.of(node)["inboxCount"] == 0));

    // The client comes back a last time, and has it all.
    let page = good(play.server.get(&play.at("/events?limit=1")));
    let end: u64 = page["page"]["last"].as_str().unwrap().parse().unwrap();
    std::thread::scope(|scope| {
        let looking =
            scope.spawn(|| looks_on(&address, &run, &heard, Instant::now() + Duration::from_millis(1)));
        until("it has heard all", || {
            (heard.lock().unwrap().last().is_some_and(|event| event["seq"] == end)).then_some(())
        });
        let shown = play.state();
        for node in &nodes {
            let about = &shown["nodes"][node];
            let branch = format!(
                "flow/{}/{}",
                play.world
                    .git(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/flow"])
                    .lines()
                    .next()
                    .unwrap()
                    .split('/')
                    .next()
                    .unwrap(),
                about["alias"].as_str().unwrap()
            );
            let state =
                play.world.git(&["log", "-1", "--format=%(trailers:key=dwp-state,valueonly)", &branch]);
            assert_eq!((&about["status"], state.trim()), (&json!("idle"), "idle"), "{branch}");
            let said = play.world.git(&["log", "-30", "--format=%s", &branch]);
            let summary = about["summary"].as_str().unwrap();
            assert!(said.contains(summary), "{summary} in {said}");
        }
        let _ = play.server.child.kill();
        looking.join().unwrap();
    });
    let heard = heard.lock().unwrap();
    let ids = |events: &[Value]| events.iter().map(|event| event["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&heard), ids(&log), "every event once, in the log's order, over {kills} kills");
    eprintln!("{kills} kills, {} turns, {} events", finals(&log), log.len());
}

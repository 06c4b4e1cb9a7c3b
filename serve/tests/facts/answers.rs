//! What is answered (W7), and when it is told that something changed (W2).

use crate::support::{World, frame, until};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// W7: what is read is what the command line prints.
#[test]
fn w7_answers_are_the_lines_of_the_command_line() {
    let world = World::new();
    world.aynig(&["set-state", "build", "-b", "a/job", "-m", "go <b>on</b>"]);
    world.aynig(&["set-state", "lost", "-b", "other"]);
    world.aynig(&["run"]);
    let server = world.serve(&[]);
    let told = server.get("/api/branches").json();
    assert_eq!(told["branches"], json!(lines(&world.aynig(&["status", "--json"]))));
    assert_eq!(told["failed"], json!([]));
    let one = server.get("/api/branches/a%2fjob").json();
    assert_eq!(json!([one]), json!(lines(&world.aynig(&["status", "--json", "a/job"]))));
    assert_eq!(one["state"], "review");
    let events = server.get("/api/branches/a%2Fjob/events").json()["events"].clone();
    assert_eq!(events, json!(lines(&world.aynig(&["events", "--json", "a/job"]))));
    let all = server.get("/api/branches/a%2Fjob/events?history=true&n=2").json()["events"].clone();
    assert_eq!(all, json!(lines(&world.aynig(&["events", "--json", "--history", "-n", "2", "a/job"]))));
    let diff = server.get("/api/branches/a%2Fjob/diff").json();
    assert!(diff["diff"].as_str().unwrap().contains("+++ b/built\n"), "{diff}");
    let run = server.get("/api/branches/a%2Fjob/run").json();
    assert_eq!(run["trigger"], one["trigger"]);
    assert_eq!(run["unchanged"], false);
}

/// W7: a log is read in pieces, by offset, from the end too.
#[test]
fn w7_a_log_is_read_in_pieces() {
    let world = World::new();
    world.aynig(&["set-state", "build", "-b", "job"]);
    world.aynig(&["run"]);
    let server = world.serve(&[]);
    let whole = world.aynig(&["logs", "job"]);
    let read = |query: &str| server.get(&format!("/api/branches/job/logs{query}"));
    let answer = read("");
    assert_eq!(answer.text(), whole);
    assert_eq!(answer.headers["aynig-size"], whole.len().to_string());
    assert!(answer.headers["aynig-log"].ends_with(".stdout.log"), "{answer:?}");
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(read("?offset=4&limit=3").text(), whole[4..7]);
    let tail = read("?offset=-5");
    assert_eq!(tail.text(), whole[whole.len() - 5..]);
    assert_eq!(tail.headers["aynig-from"], (whole.len() - 5).to_string());
    assert_eq!(read("?offset=9999").text(), "");
    assert_eq!(read("?stream=events").text(), "");
    read("?stream=other").failed(400, "invalid");
    server.get("/api/branches/main/logs").failed(404, "unknown");
    server.get("/api/branches/nothing/logs").failed(404, "unknown");
}

/// W7: verbs do what the command line does, and say why they did not, with what mends it.
#[test]
fn w7_verbs_are_those_of_the_command_line() {
    let world = World::new();
    let server = world.serve(&[]);
    server.post("/api/branches/job/set-state", "{\"state\":\"fail\"}").failed(404, "unknown");
    let body = json!({"state": "fail", "message": "try\n\nit -- all", "trailers": ["dwp-note: --x"], "create": true});
    let written = server.post("/api/branches/job/set-state", &body.to_string());
    assert_eq!(written.status, 200, "{}", written.text());
    let written = written.json();
    assert_eq!((&written["schema"], &written["created"]), (&json!("aynig.change/1"), &json!(true)));
    let message = world.git(&["log", "-1", "--format=%B", "job"]);
    assert!(message.starts_with("try\n\nit -- all\n\n") && message.contains("dwp-note: --x"), "{message}");
    server.post("/api/branches/job/retry", "{}").failed(409, "conflict");
    let _ = world.call(crate::support::aynig(), &["run"]).output().unwrap();
    assert_eq!(server.get("/api/branches/job").json()["state"], "stalled");
    let retried = server.post("/api/branches/job/retry", "{}");
    assert_eq!(retried.json()["state"], "fail", "{}", retried.text());

    world.aynig(&["set-working", "-b", "job"]);
    let held = server.post("/api/branches/job/set-state", "{\"state\":\"build\"}");
    held.failed(409, "conflict");
    assert!(held.json()["hint"].as_str().unwrap().contains("cancel"), "{}", held.text());
    assert_eq!(server.post("/api/branches/job/cancel", "").status, 200);
    for (body, code) in
        [("{\"state\":\"a b\"}", 400), ("{\"state\":\"working\"}", 400), ("{\"state\":1}", 400)]
    {
        assert_eq!(server.post("/api/branches/job/set-state", body).status, code, "{body}");
    }
    for body in
        ["[]", "{", "{\"state\":\"x\",\"more\":1}", "{\"state\":\"x\\u0000\"}", "{\"state\":\"--emit\"}"]
    {
        server.post("/api/branches/job/set-state", body).failed(400, "invalid");
    }
    server.post("/api/branches/nothing/cancel", "{}").failed(404, "unknown");
}

/// W2: a change by any process is told to the page as it happens; at rest nothing is said.
#[test]
fn w2_a_change_is_told_to_the_page() {
    let world = World::new();
    let server = world.serve(&[]);
    let mut socket = server.socket();
    // The watch stands as soon as the server answers.
    assert_eq!(server.get("/api/branches").json()["branches"], json!([]));
    world.aynig(&["set-state", "build", "-b", "job"]);
    let told: Value = serde_json::from_str(&frame(&mut socket).unwrap()).unwrap();
    assert_eq!((&told["type"], &told["repo"], &told["heads"]), (&json!("changed"), &json!(0), &json!(true)));
    until("the branch is there", || {
        let branches = server.get("/api/branches").json();
        (branches["branches"][0]["state"] == "build").then_some(())
    });
}

/// W7: several repositories, each by its number.
#[test]
fn w7_several_repositories_are_served() {
    let (one, two) = (World::new(), World::new());
    two.aynig(&["set-state", "build", "-b", "second"]);
    let server = one.serve(&[one.repo().to_str().unwrap(), two.repo().to_str().unwrap()]);
    let repos = server.get("/api/version").json()["repos"].clone();
    assert_eq!(repos.as_array().unwrap().len(), 2);
    assert_eq!(server.get("/api/branches").json()["branches"], json!([]));
    assert_eq!(server.get("/api/branches?repo=1").json()["branches"][0]["branch"], "second");
    server.get("/api/branches?repo=2").failed(404, "unknown");
}

/// How many bytes are left by gzip.
fn packed(bytes: &[u8]) -> usize {
    let mut gzip = std::process::Command::new("gzip");
    let mut gzip = gzip.arg("-nc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = gzip.stdin.take().unwrap();
    let bytes = bytes.to_owned();
    let writer = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let output = gzip.wait_with_output().unwrap();
    writer.join().unwrap();
    output.stdout.len()
}

/// W8: what is embedded is small, the same for ever under its name, and what others wrote is what they wrote.
#[test]
fn w8_the_page_is_embedded() {
    use sha2::{Digest, Sha256};
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let vendor = std::fs::read(folder.join("vendor.js")).unwrap();
    let hash: String = Sha256::digest(&vendor).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(std::fs::read_to_string(folder.join("VENDOR.md")).unwrap().contains(&hash), "{hash}");
    let world = World::new();
    let server = world.serve(&[]);
    let index = server.get("/");
    let tag = index.headers["etag"].clone();
    let known = server.ask("GET", "/", &[&format!("If-None-Match: {tag}")], "");
    assert_eq!((known.status, known.body.len()), (304, 0));
    let base = format!("/p/{}/", tag.trim_matches('"'));
    assert!(index.text().contains(&base), "{}", index.text());
    let mut size = packed(&index.body);
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".js") || name.ends_with(".css") {
            let answer = server.get(&format!("{base}{name}"));
            assert_eq!(answer.body, std::fs::read(entry.path()).unwrap(), "{name}");
            assert!(answer.headers["cache-control"].contains("immutable"));
            // Nothing is asked for anywhere else.
            let text = answer.text();
            let makes_elements =
                name != "vendor.js" && (text.contains("innerHTML") || text.contains("InnerHTML"));
            assert!(!text.contains("https://") && !makes_elements, "{name}");
            size += packed(&answer.body);
        }
    }
    server.get("/p/0000/app.js").failed(404, "unknown");
    assert!(size < 120 << 10, "{size} bytes");
}

/// W7: a message goes as 'send' sends it, and what was used is what 'usage' adds up.
#[test]
fn w7_a_message_is_sent_and_usage_is_read() {
    let world = World::new();
    world.aynig(&["set-state", "review", "-b", "job"]);
    let server = world.serve(&[]);
    let sent = server.post("/api/branches/job/send", "{\"text\":\"--please look\"}");
    assert_eq!(sent.status, 200, "{}", sent.text());
    let inbox = world.aynig(&["inbox", "job", "--json"]);
    let waiting = lines(&inbox);
    assert_eq!(waiting.len(), 1, "{inbox}");
    assert_eq!((&waiting[0]["id"], &waiting[0]["text"]), (&sent.json()["id"], &json!("--please look")));
    server.post("/api/branches/none/send", "{\"text\":\"x\"}").failed(404, "unknown");
    server.post("/api/branches/job/send", "{\"text\":\"x\",\"kind\":\"Not A Kind\"}").failed(400, "invalid");
    let used = server.get("/api/usage?by=branch").json()["usage"].clone();
    assert_eq!(used, json!(lines(&world.aynig(&["usage", "--json", "--by", "branch"]))));
    server.get("/api/usage?by=x").failed(400, "invalid");
}

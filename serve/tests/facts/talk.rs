//! What people say over HTTP: messages, answers, pauses (W7).

use crate::support::World;
use serde_json::{Value, json};

/// A world in which a command has asked, and its branch waits.
pub fn asking() -> World {
    let world = World::new();
    world.command(
        "deploy",
        "echo ready > release\n\
         id=$(git aynig ask --json --choice yes --choice 'not yet' 'Deploy <b>it</b>?' | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\n\
         printf 'SET_STATE {\"state\":\"wait\",\"trailers\":[\"dwp-question: %s\",\"dwp-accepts: answer=told\"]}\\n' \"$id\"",
    );
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "deploy"]);
    world.aynig(&["set-state", "deploy", "-b", "site"]);
    let ran = world.run();
    assert!(world.aynig(&["status", "--porcelain", "site"]).contains("wait"), "{ran}");
    world
}

/// W7: a question is what `ask --json` printed; it is answered once, by one of its choices, about what was looked at.
#[test]
fn w7_a_question_is_answered() {
    let world = asking();
    let server = world.serve(&[]);
    let told = server.get("/api/questions").json();
    let question = told["questions"][0].clone();
    assert_eq!(told["questions"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!((&question["schema"], &question["branch"]), (&json!("aynig.question/1"), &json!("site")));
    assert_eq!(question["choices"], json!(["yes", "not yet"]));
    assert_eq!(question["text"], "Deploy <b>it</b>?");
    let id = question["id"].as_str().unwrap();
    let about = server.get(&format!("/api/questions/{id}/diff")).json();
    assert!(about["diff"].as_str().unwrap().contains("+ready"), "{about}");
    assert!(world.aynig(&["diff", id]).contains("+ready"));
    server.get("/api/questions/00000000-0000-7000-8000-000000000000/diff").failed(404, "unknown");
    server.get("/api/questions/..%2f..%2fetc/diff").failed(404, "unknown");

    let say = |body: Value| server.post("/api/branches/site/answer", &body.to_string());
    say(json!({"choice": "perhaps"})).failed(403, "refused");
    let stale = world.git(&["rev-parse", "main"]);
    say(json!({"choice": "yes", "seen": stale.trim()})).failed(403, "refused");
    say(json!({"choice": "", "question": id})).failed(400, "invalid");
    say(json!({"choice": "yes", "else": 1})).failed(400, "invalid");
    let answer =
        say(json!({"choice": "yes", "question": id, "seen": question["snapshot"], "message": "--go"}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    assert_eq!((&answer["schema"], &answer["choice"]), (&json!("aynig.message/1"), &json!("yes")));
    assert_eq!((&answer["text"], &answer["question"]), (&json!("--go"), &json!(id)));
    assert_eq!(server.get("/api/questions").json()["questions"], json!([]));
    // Another who answers is told that it was answered.
    let late = say(json!({"choice": "not yet", "question": id}));
    late.failed(409, "conflict");
    assert!(late.text().contains("was answered by"), "{}", late.text());
    world.run();
    assert_eq!(server.get("/api/branches/site").json()["state"], "told");
}

/// W7: everything, or one branch, is held and let go again; what another holds stays.
#[test]
fn w7_branches_are_held_and_let_go() {
    let world = World::new();
    world.aynig(&["set-state", "build", "-b", "job"]);
    world.aynig(&["set-state", "build", "-b", "other"]);
    let server = world.serve(&[]);
    let held = server.post("/api/branches/job/pause", "{\"message\":\"for a moment\"}");
    assert_eq!(held.status, 200, "{}", held.text());
    assert_eq!((&held.json()["patterns"], &held.json()["reason"]), (&json!(["job"]), &json!("for a moment")));
    let all = server.post("/api/pause", "{}").json();
    let told = server.get("/api/pauses").json();
    assert_eq!(told["pauses"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(told["own"], told["pauses"][0]["holder"]);
    world.run();
    assert_eq!(server.get("/api/branches/other").json()["state"], "build", "it is held");

    let resumed = server.post("/api/resume", &json!({"ids": [all["id"]]}).to_string()).json();
    assert_eq!(resumed["resumed"][0]["id"], all["id"]);
    world.run();
    assert_eq!(server.get("/api/branches/other").json()["state"], "review");
    assert_eq!(server.get("/api/branches/job").json()["state"], "build", "it is still held");
    server.post("/api/branches/other/resume", "{}").failed(409, "conflict");
    assert_eq!(server.post("/api/branches/job/resume", "{}").status, 200);
    world.run();
    assert_eq!(server.get("/api/branches/job").json()["state"], "review");
    assert_eq!(server.get("/api/pauses").json()["pauses"], json!([]));
    server.post("/api/resume", "{\"ids\":[\"--all\"]}").failed(400, "invalid");
    server.post("/api/pause", "{\"patterns\":[\" x\"]}").failed(400, "invalid");
    server.post("/api/branches/nothing/pause", "{}").failed(404, "unknown");
}

/// W7: a log is read by `Range` as well: from, to, from the end, and not beyond it.
#[test]
fn w7_a_log_is_read_by_range() {
    let world = World::new();
    world.aynig(&["set-state", "build", "-b", "job"]);
    world.run();
    let server = world.serve(&[]);
    let whole = world.aynig(&["logs", "job"]);
    let read = |range: &str| {
        let range = format!("Range: {range}");
        server.ask("GET", "/api/branches/job/logs", &[&server.bearer(), &range], "")
    };
    let (some, size) = (read("bytes=4-6"), whole.len());
    assert_eq!((some.status, some.text()), (206, whole[4..7].to_owned()));
    assert_eq!(some.headers["content-range"], format!("bytes 4-6/{size}"));
    assert_eq!(read("bytes=-3").text(), whole[size - 3..]);
    assert_eq!(read("bytes=2-").text(), whole[2..]);
    assert_eq!(read("bytes=0-99999").text(), whole);
    assert_eq!(read("bytes=-99999").text(), whole);
    let beyond = read(&format!("bytes={size}-"));
    beyond.failed(416, "range");
    assert_eq!(beyond.headers["content-range"], format!("bytes */{size}"));
    // What is not understood means the whole, as HTTP has it.
    for other in ["bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=-", "bytes=18446744073709551616-"] {
        assert_eq!((read(other).status, read(other).text()), (200, whole.clone()), "{other}");
    }
    assert_eq!(read("bytes=0-18446744073709551615").text(), whole);
}

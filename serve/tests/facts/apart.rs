//! What is broken hides nothing else: one flow, one repository, one commit, one name that can't be shown.

use crate::driver::Browser;
use crate::play::{Play, finally};
use crate::runs::{flowing, good, node, says, send};
use crate::support::World;
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn made(server: &crate::support::Server, cwd: &Path) -> String {
    let run = good(server.post("/api/runs", &json!({"cwd": cwd}).to_string()))["run"].clone();
    run["id"].as_str().unwrap().to_owned()
}

/// W5: a flow that can't be read is named beside those that can.
#[test]
fn w5_one_broken_flow_takes_no_other_down() {
    let world = flowing();
    let server = world.serve(&[]);
    let (broken, whole) = (made(&server, &world.repo()), made(&server, &world.repo()));
    std::fs::create_dir_all(world.repo().join(format!(".git/aynig/data/runs/{broken}/layout.json"))).unwrap();
    let all = good(server.get("/api/runs"));
    let ids: Vec<&Value> = all["runs"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
    assert_eq!(ids, [&json!(whole)], "{all}");
    assert_eq!(all["failed"][0]["runId"], json!(broken), "{all}");
    good(server.post(&format!("/api/runs/{whole}/nodes"), &node("Lead", "orchestrator").to_string()));
}

/// W4: of several repositories one may be gone; the others are served.
#[test]
fn w4_a_repository_that_is_gone_takes_no_other_down() {
    let (gone, stays) = (flowing(), flowing());
    let (first, second) = (gone.repo(), stays.repo());
    let server = stays.serve(&[first.to_str().unwrap(), second.to_str().unwrap()]);
    let run = made(&server, &second);
    std::fs::rename(&first, first.with_extension("away")).unwrap();
    let about = good(server.get("/api/version"));
    assert!(about["repos"][0]["error"].is_string() && about["repos"][1]["policy"].is_object(), "{about}");
    assert_eq!(good(server.get("/api/runs"))["runs"][0]["id"], json!(run));
    good(server.get(&format!("/api/runs/{run}")));
    assert_eq!(good(server.get("/api/approvals"))["approvals"], json!([]));
    good(server.post(&format!("/api/runs/{run}/nodes"), &node("Lead", "orchestrator").to_string()));
}

/// W7: no name, and no length of a text, is a failure of the server's.
#[test]
fn w7_names_and_lengths_are_no_failures_of_the_server() {
    let world = flowing();
    let odd = world.repo().join("sub").join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    std::fs::create_dir_all(odd.join("inner")).unwrap();
    std::os::unix::fs::symlink(&odd, world.repo().join("lnk")).unwrap();
    let server = world.serve(&[]);
    let listed = good(server.get("/api/fs/list?path=lnk"));
    assert_eq!(listed["entries"][0]["name"], "inner", "{listed}");
    let run = made(&server, &world.repo());
    let (a, b) = ("6d0f2f6c-0000-4000-8000-000000000001", "6d0f2f6c-0000-4000-8000-000000000002");
    let edge = json!({"edge": {"from": a, "to": b, "label": "x".repeat(200_000)}});
    server.post(&format!("/api/runs/{run}/edges"), &edge.to_string()).failed(413, "too-large");
    let change = json!({"resolution": {"status": "modified", "modifiedArgs": {"text": "x".repeat(140_000)}}});
    server.post(&format!("/api/approvals/{a}/resolve"), &change.to_string()).failed(404, "unknown");
}

/// W5: of a layout what can be used is kept, and the rest of the change holds.
#[test]
fn w5_a_layout_is_taken_as_far_as_it_can_be_used() {
    let world = flowing();
    let server = world.serve(&[]);
    let run = made(&server, &world.repo());
    let at = format!("/api/runs/{run}");
    let lead = good(server.post(&format!("{at}/nodes"), &node("Lead", "orchestrator").to_string()));
    let lead = lead["node"]["id"].as_str().unwrap().to_owned();
    let positions = json!({&lead: {"x": 1, "y": 2}, "no id": {"x": 1, "y": 2}, "6d0f2f6c-0000-4000-8000-000000000001": null});
    let patch = json!({"patch": {"mode": "AUTO", "layout": {"positions": positions, "viewport": {"x": 0, "y": 0, "zoom": 1}}}});
    let run = good(send(&server, "PATCH", &at, &patch))["run"].clone();
    assert_eq!(run["layout"]["positions"], json!({lead: {"x": 1.0, "y": 2.0}}));
    assert_eq!((&run["layout"]["viewport"]["zoom"], &run["mode"]), (&json!(1.0), &json!("AUTO")));
}

fn commit(world: &World, branch: &str, date: &str, message: &str) {
    let mut commit = world.call("git", &["commit-tree", "HEAD^{tree}", "-m", message]);
    let made = commit.env("GIT_COMMITTER_DATE", date).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made = String::from_utf8(made.stdout).unwrap();
    world.git(&["update-ref", &format!("refs/heads/{branch}"), made.trim()]);
}

/// W11: no commit, whatever its time and its text, keeps the page from being used.
#[test]
fn w11_no_commit_freezes_the_page() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = World::new();
    let state = |text: &str| format!("{text}\n\ndwp-state: wait\n");
    commit(&world, "far", "@9000000000000 +0000", &state("from far away"));
    commit(&world, "deep", "@1700000000 +0000", &state(&format!("deep down\n\n{} below", ">".repeat(4000))));
    commit(&world, "wide", "@1700000000 +0000", &state(&format!("wide open\n\n{}", "[".repeat(60_000))));
    let server = world.serve(&[]);
    browser.enter(&server);
    for subject in ["from far away", "deep down", "wide open"] {
        browser.sees(subject);
    }
    for branch in ["far", "deep", "wide"] {
        browser.open(&format!("http://{}/#/branch/0/{branch}", server.address));
        browser.sees("wait");
        browser.open(&format!("http://{}/#/branches", server.address));
        browser.sees("wide");
    }
    let shown = "const t = performance.now(); document.querySelector('nav a').click(); return performance.now() - t < 1000";
    assert_eq!(browser.says(shown), json!(true));
}

/// W5: arguments that are longer than a word of a command line can be are a call's as well.
#[test]
fn w5_a_call_is_made_with_long_arguments() {
    let mut play = Play::new();
    let writer = play.node("Writer", "implementer", &json!({"permissions": {"cliPermissionsMode": "gated"}}));
    let asks = json!({"type": "approval.requested", "approvalId": "a", "tool": {"id": "a", "name": "write", "args": {"text": "short"}}});
    play.script(
        "write",
        &format!(
            "{}\nread -r answer\nprintf '%s' \"$answer\" >\"$T/answer\"\n{}",
            says(&asks),
            finally("Written.", &[])
        ),
    );
    play.go();
    play.say(&writer, "do:write");
    let approval = play.until_asked();
    let long = "x".repeat(200_000);
    good(play.resolve(&approval, &json!({"status": "modified", "modifiedArgs": {"text": long}})));
    play.until_is(&writer, "idle");
    let answer = std::fs::read_to_string(play.file("answer")).unwrap();
    assert!(answer.contains(&long), "{} bytes", answer.len());
}

/// W4: logs are kept where that was said, and nowhere else.
#[test]
fn w4_logs_are_kept_where_that_is_said() {
    let world = flowing();
    let data = world.home.path().join("elsewhere");
    let server = world.serve(&["--data-dir", data.to_str().unwrap()]);
    let run = made(&server, &world.repo());
    good(server.post(&format!("/api/runs/{run}/nodes"), &node("Lead", "orchestrator").to_string()));
    let page = good(server.get(&format!("/api/runs/{run}/events")));
    let log = std::fs::read_to_string(data.join(format!("runs/{run}/events.jsonl"))).unwrap();
    assert_eq!(page["page"]["last"], json!(log.len().to_string()));
    assert!(!world.repo().join(".git/aynig/data").exists());
}

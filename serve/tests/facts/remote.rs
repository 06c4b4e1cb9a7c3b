//! Branches that are a remote's (W2): it is asked once for all who look, and what others do there is seen; a flow that another
//! process holds (N13) is a failure of its own, and keeps no other back.

use crate::driver::Browser;
use crate::runs::{flowing, good, live, next, node};
use crate::support::{Server, World, until};
use nix::fcntl::{Flock, FlockArg};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A world whose branches are a remote's, which writes down each fetch.
struct Shared {
    world: World,
    fetches: PathBuf,
}

impl Shared {
    fn new() -> Self {
        let world = flowing();
        let (bare, fetches) = (world.home.path().join("bare"), world.home.path().join("fetches"));
        world.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
        world.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
        world.git(&["push", "-q", "origin", "main"]);
        let asked = world.home.path().join("asked.sh");
        let script =
            format!("#!/bin/sh\necho fetch >>'{}'\nexec git-upload-pack \"$@\"\n", fetches.display());
        std::fs::write(&asked, script).unwrap();
        for (key, value) in [
            ("aynig.remote", "origin".to_owned()),
            ("remote.origin.uploadpack", format!("sh '{}'", asked.display())),
        ] {
            world.git(&["config", "--global", key, &value]);
        }
        Self { world, fetches }
    }

    /// How often the remote was asked for what it has.
    fn fetches(&self) -> usize {
        std::fs::read_to_string(&self.fetches).unwrap_or_default().lines().count()
    }
}

/// W2: however many look, and at however much, a remote is asked once for all of them.
#[test]
fn w2_a_remote_is_asked_once_for_all_who_look() {
    let shared = Shared::new();
    let server = shared.world.serve(&[]);
    let run = good(server.post("/api/runs", "{}"))["run"]["id"].as_str().unwrap().to_owned();
    let made = server.post(&format!("/api/runs/{run}/nodes"), &node("Lead", "orchestrator").to_string());
    let lead = good(made)["node"].clone();
    let at = format!("/api/runs/{run}");
    let before = shared.fetches();
    let began = Instant::now();
    let paths = ["/api/branches", "/api/questions", "/api/pauses", "/api/runs", "/api/approvals", &at];
    std::thread::scope(|scope| {
        for path in paths.iter().cycle().take(24) {
            scope.spawn(|| good(server.get(path)));
        }
    });
    // What was heard is good for a second.
    let most = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    let asked = shared.fetches() - before;
    assert!(asked <= most, "{asked} fetches for 24 looks in {:?}", began.elapsed());
    // An answer includes its own write all the same.
    let said = json!({"nodeId": lead["id"], "content": "begin"}).to_string();
    good(server.post(&format!("{at}/chat"), &said));
    assert_eq!(good(server.get(&at))["run"]["nodes"][lead["id"].as_str().unwrap()]["inboxCount"], 1);
}

/// W2: what another machine does on the remote is seen by a page that looks on, and by it alone the remote is asked unasked.
#[test]
fn w2_what_others_do_on_a_remote_is_seen() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let shared = Shared::new();
    let server = shared.world.serve(&[]);
    browser.enter(&server);
    browser.sees("Nothing waits for you.");
    let other = shared.world.home.path().join("other");
    let (bare, there) = (shared.world.home.path().join("bare"), other.to_str().unwrap().to_owned());
    shared.world.git(&["clone", "-q", bare.to_str().unwrap(), &there]);
    let mut set = shared.world.call(crate::support::aynig(), &["-C", &there]);
    let set = set.args(["set-state", "review", "-b", "elsewhere", "--remote", "origin", "-m", "look at it"]);
    let set = set.output().unwrap();
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    browser.sees("elsewhere");
}

/// The lock of a flow, held as by a process that was stopped.
fn stopped(world: &World, run: &str) -> Flock<std::fs::File> {
    let path = world.repo().join(format!(".git/aynig/data/runs/{run}/lock"));
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno).unwrap();
    std::fs::write(&path, format!("{}\n", std::process::id())).unwrap();
    lock
}

fn make(server: &Server) -> String {
    good(server.post("/api/runs", "{\"mode\":\"INTERACTIVE\"}"))["run"]["id"].as_str().unwrap().to_owned()
}

/// N13, W5, W6: a process that holds a flow and does not get on is named to who asks for that flow, and keeps no client of
/// another one waiting; once it is over, what was missed is told.
#[test]
fn w5_a_stopped_process_keeps_no_other_flow_back() {
    let world = flowing();
    let server = world.serve(&[]);
    let (held, free) = (make(&server), make(&server));
    let mut of_held = live(&server, &format!("?runId={held}"));
    let mut of_free = live(&server, &format!("?runId={free}"));
    let lock = stopped(&world, &held);
    world.aynig(&["flow", "node", "add", &held, "--label=Late", "--role=implementer", "--provider=custom"]);
    let took = ["One", "Two", "Three"].map(|label| {
        let began = Instant::now();
        good(server.post(&format!("/api/runs/{free}/nodes"), &node(label, "implementer").to_string()));
        let told = loop {
            let told = next(&mut of_free);
            if told["patch"]["label"].is_string() {
                break told;
            }
        };
        assert_eq!(told["patch"]["label"], label);
        began.elapsed()
    });
    // Who waits for the one that is held waits 10 s each time.
    assert!(took.iter().any(|took| *took < Duration::from_secs(8)), "{took:?}");
    let refused = server.get(&format!("/api/runs/{held}"));
    refused.failed(503, "later");
    assert!(refused.text().contains(&format!("process {} holds", std::process::id())), "{}", refused.text());
    drop(lock);
    let told = until("what was missed is told", || {
        let told = next(&mut of_held);
        told["patch"]["label"].is_string().then_some(told)
    });
    assert_eq!(told["patch"]["label"], "Late");
    assert_eq!(good(server.get(&format!("/api/runs/{held}")))["run"]["nodes"].as_object().unwrap().len(), 1);
}

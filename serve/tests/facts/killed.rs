//! The server is killed while a browser looks on (W3, W10, W12a): what was typed is kept, and the page comes back by itself, over 6
//! kills, or as many as `AYNIG_KILLS` says.

use crate::driver::Browser;
use crate::play::{Play, finally};
use crate::runs::{flowing, good, node, says};
use crate::support::{SERVE, Server, World, until, while_it_goes_on};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often, where nothing is said.
const USUAL: u64 = 6;

/// The start of a server with a token that outlives it, on this port.
fn starting(world: &World, port: &str) -> Command {
    let token = world.home.path().join("token");
    std::fs::write(&token, format!("{}\n", "0123456789abcdef".repeat(4))).unwrap();
    let line = format!("exec {SERVE} --json --port {port} --token-fd 5 5< {}", token.display());
    world.call("/bin/sh", &["-c", &line])
}

fn start(world: &World, port: &str) -> Server {
    Server::start(&mut starting(world, port))
}

/// W10: words that are refused are taken back in sight, and stay to be sent again.
#[test]
fn w10_words_that_are_refused_are_taken_back_in_sight() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = flowing();
    let mut server = start(&world, "0");
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let run = good(server.post("/api/runs", "{\"mode\":\"INTERACTIVE\"}"))["run"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let made = server.post(&format!("/api/runs/{run}/nodes"), &node("Lead", "implementer").to_string());
    let lead = good(made)["node"]["id"].as_str().unwrap().to_owned();
    browser.enter(&server);
    browser.open(&format!("http://{}/#/flow/{run}/{lead}", server.address));
    browser.click("//textarea[@name='chat']");
    browser.types("while it was gone");
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    browser.sees("No connection to the server");
    browser.click("//button[.='Send']");
    browser.sees("Not sent: the server does not answer");
    let kept = "return [document.querySelectorAll('.said.own').length, document.querySelector('textarea[name=chat]').value]";
    assert_eq!(browser.says(kept), json!([0, "while it was gone"]));
    drop(server);
    let _again = start(&world, &port);
    until("the page is back", || (!browser.text().contains("No connection")).then_some(()));
    browser.click("//button[.='Send']");
    browser.find("//div[@class='said own']//p[.='while it was gone']");
    until("it is empty", || (browser.says(kept) == json!([1, ""])).then_some(()));
    assert!(!browser.text().contains("Not sent"));
}

/// What is said at the node that is shown: by whom, and the words, each's in their order.
fn said(browser: &Browser) -> Vec<(String, String)> {
    let all = browser.says(
        "return [...document.querySelectorAll('section.node .said')].map((e) => [e.classList[1], e.querySelector('.asked, .markdown').innerText.trim()])",
    );
    let one = |one: &Value| (one[0].as_str().unwrap().to_owned(), one[1].as_str().unwrap().to_owned());
    let mut all: Vec<(String, String)> = all.as_array().unwrap().iter().map(one).collect();
    all.sort_by_key(|(by, _)| by.clone());
    all
}

fn wait_for_the_page(browser: &Browser) {
    until("the page is back", || {
        let is_back = "return document.querySelector('nav') !== null && !document.querySelector('.bar.off') && !document.querySelector('.door')";
        (browser.says(is_back) == json!(true)).then_some(())
    });
}

/// W3, W12a: killed at any point while a flow of three nodes works, it comes back to a page that comes back by itself, and shows
/// what `git log` shows: each word once, in its order.
#[test]
fn w3_the_page_comes_back_from_any_kill() {
    let Some(browser) = Browser::start(&["--window-size=1200,1000"]) else { return };
    let kills = std::env::var("AYNIG_KILLS").ok().and_then(|many| many.parse().ok()).unwrap_or(USUAL);
    let mut play = Play::new();
    let nodes = ["One", "Two", "Three"].map(|label| play.node(label, "implementer", &json!({})));
    play.edge(&nodes[0], &nodes[1]);
    let hand = json!({"id": "h", "name": "send_handoff", "args": {"to": "two", "message": "do:work NUMBER, handed over"}});
    let delta = says(&json!({"type": "message.assistant.delta", "delta": "I am"}));
    // Each says which one it is, so that none is taken for another; and who says the same again and again is paused.
    let number =
        "number=$(printf '%s' \"$prompt\" | grep -o 'do:[a-z]* [0-9]*' | tail -1 | grep -o '[0-9]*$')";
    let numbered = |script: String| format!("{number}\n{}", script.replace("NUMBER", "'\"$number\"'"));
    let work = format!("{delta}\nsleep 0.05\n{}", finally("I am done with NUMBER.", &[]));
    play.script("work", &numbered(work));
    play.script("hand", &numbered(format!("{delta}\n{}", finally("I hand over NUMBER.", &[hand]))));
    let _ = play.server.child.kill();
    let _ = play.server.child.wait();
    play.server = start(&play.world, "0");
    let port = play.server.address.rsplit_once(':').unwrap().1.to_owned();
    browser.enter(&play.server);
    browser.open(&format!("http://{}/#/flow/{}/{}", play.server.address, play.run, nodes[1]));
    browser.find("//section[@aria-label='node Two']");
    play.go();
    // Two kills each time: of the server that the page is at, and of one that just starts.
    for n in 0..kills.div_ceil(2) {
        let (alias, script) =
            [("one", "hand"), ("three", "work"), ("two", "work")][usize::try_from(n % 3).unwrap()];
        play.world.aynig(&["flow", "send", &play.run, alias, "-m", &format!("do:{script} {n}"), "--json"]);
        let _ = play.server.child.kill();
        let _ = play.server.child.wait();
        // From before it listens to long after.
        let mut child =
            starting(&play.world, &port).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(10 + n * 37 % 500));
        child.kill().unwrap();
        child.wait().unwrap();
        play.server = start(&play.world, &port);
        if n % 2 == 1 {
            wait_for_the_page(&browser);
        }
    }
    play.until_all_rest();
    play.rest();
    wait_for_the_page(&browser);
    let log = play.log();
    let slug = play.world.git(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/flow"]);
    for (label, node) in ["One", "Two", "Three"].iter().zip(&nodes) {
        browser.click(&format!("//table//a[.='{label}']"));
        browser.find(&format!("//section[@aria-label='node {label}']"));
        let mut wanted = Vec::new();
        for event in &log {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            match event["type"].as_str().unwrap() {
                "message.user" if event["message"]["nodeId"] == json!(node) => {
                    wanted.push(("own".to_owned(), text(&event["message"]["content"])));
                }
                "message.assistant.final" if event["nodeId"] == json!(node) => {
                    wanted.push(("agent".to_owned(), text(&event["content"])));
                }
                "handoff.sent" if event["envelope"]["toNodeId"] == json!(node) => {
                    wanted.push(("over".to_owned(), text(&event["envelope"]["payload"]["message"])));
                }
                _ => {}
            }
        }
        // An answer stands where it began, which may be before words that came while it was said.
        wanted.sort_by_key(|(by, _)| by.clone());
        while_it_goes_on(&format!("{label} has it all: {wanted:?}"), || {
            let now = said(&browser);
            if now == wanted { Ok(()) } else { Err(now) }
        });
        // And that is what Git has: a turn's outcome, which its route follows, for each of its words.
        let branch = slug.lines().find(|line| line.ends_with(&format!("/{}", label.to_lowercase()))).unwrap();
        // What was handed over brings the work of others.
        let format = "--format=%(trailers:key=dwp-state,valueonly,separator=) %s";
        let subjects = play.world.git(&["log", "--first-parent", format, branch]);
        let words = wanted.iter().filter(|(by, _)| by == "agent").map(|(_, words)| words);
        let outcomes = subjects.lines().filter(|line| line.starts_with("route I "));
        assert_eq!(outcomes.count(), words.count(), "{label}: {subjects}");
        let standing = browser.says("return document.querySelector('section.node .standing').textContent");
        let state = play.world.git(&["log", "-1", "--format=%(trailers:key=dwp-state,valueonly)", branch]);
        assert_eq!((standing, state.trim()), (json!("idle"), "idle"), "{label}");
    }
    eprintln!("{kills} kills, {} events", log.len());
}

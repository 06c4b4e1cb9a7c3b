//! The server is killed while a browser looks on (W10, W12a): what was typed is kept, and the page comes back by itself.

use crate::driver::Browser;
use crate::runs::{flowing, good, node};
use crate::support::{SERVE, Server, World, until};
use serde_json::json;

/// A server with a token that outlives it, on this port.
fn start(world: &World, port: &str) -> Server {
    let token = world.home.path().join("token");
    std::fs::write(&token, format!("{}\n", "0123456789abcdef".repeat(4))).unwrap();
    let line = format!("exec {SERVE} --json --port {port} --token-fd 5 5< {}", token.display());
    Server::start(&mut world.call("/bin/sh", &["-c", &line]))
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

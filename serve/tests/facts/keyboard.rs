//! The keyboard alone (W10): each step is a key, and what has the focus is found by going there.

use crate::driver::Browser;
use crate::runs::flowing;
use crate::support::{World, until};
use crate::talk::asking;
use serde_json::{Value, json};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

/// What has the focus.
fn at(browser: &Browser) -> Value {
    browser.says("return document.activeElement.id || document.activeElement.tagName")
}

/// Goes there with the tabulator.
#[track_caller]
fn reach(browser: &Browser, path: &str) {
    browser.find(path);
    let is_there = json!({"args": [path], "script": "return document.evaluate(arguments[0], document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue === document.activeElement"});
    for _ in 0..120 {
        if browser.post("execute/sync", &is_there) == json!(true) {
            return;
        }
        browser.types(TAB);
    }
    panic!("no tabulator leads to {path} in {}", browser.text());
}

#[track_caller]
fn press(browser: &Browser, path: &str) {
    reach(browser, path);
    browser.types(ENTER);
}

/// W10: a flow is made, filled, joined and spoken to.
#[test]
fn w10_the_keyboard_makes_a_flow() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = flowing();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.types("f");
    reach(&browser, "//input[@name='flow']");
    browser.types(&format!("release{ENTER}"));
    browser.sees("It has no nodes yet");
    for label in ["Lead", "Writer"] {
        reach(&browser, "//input[@name='label']");
        browser.types(label);
        reach(&browser, "//select[@name='provider']");
        browser.types("cu");
        press(&browser, "//form[@aria-label='add a node']//button[.='Add']");
        browser.find(&format!("//table//a[.='{label}']"));
    }
    reach(&browser, "//input[@name='oneway']");
    browser.types(" ");
    press(&browser, "//form[@aria-label='connect nodes']//button[.='Connect']");
    browser.sees("Writer (task)");
    let told = world.aynig(&["flow", "show", "--json", "release"]);
    assert!(told.contains("\"provider\":\"custom\""), "{told}");
    press(&browser, "//table//a[.='Writer']");
    reach(&browser, "//textarea[@name='chat']");
    browser.types("Begin");
    browser.holds("\u{e009}", ENTER);
    browser.find("//div[@class='said own']//p[.='Begin']");
    until("it stands in the flow", || {
        world.aynig(&["flow", "events", "--json", "release"]).contains("\"Begin\"").then_some(())
    });
    press(&browser, "//button[.='Pause']");
    reach(&browser, "//button[.='Play']");
    // The other node by the graph.
    press(&browser, "//*[name()='svg']//*[name()='a'][.//*[name()='text' and .='Lead']]");
    browser.find("//section[@aria-label='node Lead']");
}

/// W10: a question is answered, with its work looked at before.
#[test]
fn w10_the_keyboard_answers_a_question() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = asking();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.sees("Deploy <b>it</b>?");
    press(&browser, "//button[starts-with(., 'Show the work')]");
    browser.sees("+ready");
    press(&browser, "//button[.='yes']");
    browser.sees("Nothing waits for you.");
    // What is left says what was done, and what has it go on; the next key goes on from the content.
    browser.sees("You answered site: yes.");
    browser.sees("git aynig run");
    assert_eq!(at(&browser), json!("main"));
    browser.fits("answered");
    world.run();
    assert_eq!(server.get("/api/branches/site").json()["state"], "told");
    until("nothing is to be started any more", || (!browser.text().contains("What starts it")).then_some(()));
    press(&browser, "//div[@role='status']//button[.='Close']");
    assert!(!browser.text().contains("You answered"));
}

/// W10: a branch that stalled is tried again, commented on, and given another state.
#[test]
fn w10_the_keyboard_retries_what_stalled() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = World::new();
    world.aynig(&["set-state", "fail", "-b", "broken"]);
    world.run();
    let server = world.serve(&[]);
    browser.enter(&server);
    press(&browser, "//article[@aria-label='broken']//button[.='Retry']");
    until("it is tried again", || {
        (server.get("/api/branches/broken").json()["state"] == "fail").then_some(())
    });
    world.run();
    browser.sees("stalled");
    press(&browser, "//article[@aria-label='broken']//button[starts-with(., 'Message')]");
    browser.types("look at the log first");
    browser.types(ESCAPE);
    assert_eq!(browser.says("return document.activeElement.textContent"), json!("Message…"));
    browser.types(ENTER);
    browser.holds("\u{e009}", ENTER);
    browser.sees("Sent.");
    assert_eq!(browser.says("return document.activeElement.textContent"), json!("Message…"));
    press(&browser, "//article[@aria-label='broken']//button[starts-with(., 'Set state')]");
    browser.types(&format!("build{TAB}by hand{TAB}{ENTER}"));
    until("it has another state", || {
        (server.get("/api/branches/broken").json()["state"] == "build").then_some(())
    });
}

/// W10: Escape leaves a field, so that the keys lead elsewhere again.
#[test]
fn w10_escape_leaves_a_field() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = asking();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.types("b");
    reach(&browser, "//input[@name='search']");
    browser.types(&format!("si{ESCAPE}"));
    assert_eq!(at(&browser), json!("main"));
    browser.types("n");
    browser.sees("Deploy <b>it</b>?");
}

/// W9: who answers second is told that, though the question is gone.
#[test]
fn w9_a_second_answer_is_told() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = asking();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.sees("Deploy <b>it</b>?");
    // The page hears of nothing while it answers.
    browser.says("const real = window.fetch; window.fetch = (path, how) => String(path).includes('/api/questions?') && !window.let ? new Promise(() => {}) : real(path, how); return 1");
    world.aynig(&["answer", "site", "not yet"]);
    browser.click("//button[.='yes']");
    browser.sees("Your answer to site was not taken");
    browser.sees("was answered by");
}

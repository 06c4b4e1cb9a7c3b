//! What was said long ago, and how much of it a page keeps (W9).

use crate::driver::Browser;
use crate::play::{Play, finally};
use crate::runs::says;
use crate::support::{until, while_it_goes_on};
use serde_json::{Value, json};

const EARLIER: &str = "//section[contains(@class,'node')]//button[.='Load earlier']";

/// A flow with a node, at which this was asked for and done, one after the other; and the browser that looks at it.
fn looking_at(play: &mut Play, browser: &Browser, asked: &[&str]) -> String {
    let node = play.node("Lead", "implementer", &json!({}));
    play.go();
    for name in asked {
        play.say(&node, &format!("do:{name}"));
        play.until_all_rest();
    }
    browser.enter(&play.server);
    browser.open(&format!("http://{}/#/flow/{}/{node}", play.server.address, play.run));
    browser.find("//section[@aria-label='node Lead']");
    node
}

/// What is said there, in its order.
fn said(browser: &Browser) -> Value {
    browser.says("return [...document.querySelectorAll('section.node .said')].map((e) => e.querySelector('.asked, .markdown').innerText.split('\\n')[0])")
}

fn has_earlier(browser: &Browser) -> bool {
    browser.says("return document.querySelector('section.node .earlier') !== null") == json!(true)
}

/// W9: the page begins with the latest; what was before is loaded by a click, is laid before it, in order, and leaves what is read
/// where it is.
#[test]
fn w9_what_was_said_long_ago_is_loaded() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let mut play = Play::new();
    let last: String = (0..40).map(|n| format!("\n\nA paragraph, number {n}.")).collect();
    play.script("first", &finally("The first words.", &[]));
    play.script(
        "much",
        &format!("seq -f 'line %.0f' 1 600\n{}", finally(&format!("The last words.{last}"), &[])),
    );
    looking_at(&mut play, &browser, &["first", "much"]);
    browser.sees("The last words.");
    assert_eq!(said(&browser), json!(["The last words."]));
    browser.says("document.querySelector('.chat').scrollTop = 0");
    browser.find(EARLIER);
    for (width, height, scheme, name) in [
        (1200, 900, "light", "earlier"),
        (1200, 900, "dark", "earlier-dark"),
        (360, 740, "dark", "earlier-narrow-dark"),
        (360, 740, "light", "earlier-narrow"),
    ] {
        browser.looks(width, height, scheme);
        browser.says("document.querySelector('.earlier').scrollIntoView()");
        browser.fits(name);
    }
    browser.looks(1200, 900, "light");
    browser.says("document.querySelector('.chat').scrollTop = 20");
    let place = "return [...document.querySelectorAll('.said')].pop().getBoundingClientRect().top - document.querySelector('.chat').getBoundingClientRect().top";
    let before = browser.says(place).as_f64().unwrap();
    // By the keyboard, as who reads there may have no mouse.
    browser.says("document.querySelector('.earlier').focus({ preventScroll: true })");
    browser.types("\u{e007}");
    until("all of it is there", || (!has_earlier(&browser)).then_some(()));
    assert_eq!(said(&browser), json!(["do:first", "The first words.", "do:much", "The last words."]));
    let after = browser.says(place).as_f64().unwrap();
    assert!((before - after).abs() < 3.0, "{before} {after}");
    let focus = "return document.activeElement.classList.contains('chat')";
    assert_eq!(browser.says(focus), json!(true), "the button is gone, and its place has the focus");
    browser.fits("earlier-loaded");
}

/// W9: however much came since, of others or of what is no message: a call that waits is shown as the page opens, and a node's
/// conversation begins with its latest words.
#[test]
fn w9_what_waits_and_the_latest_words_are_shown_whatever_came_since() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let mut play = Play::new();
    let call = json!({"type": "approval.requested", "approvalId": "a", "tool": {"id": "a", "name": "deploy", "args": {"to": "production"}}});
    play.script("ask", &format!("{}\nread -r answer\n{}", says(&call), finally("It is out.", &[])));
    play.script("first", &finally("The first words.", &[]));
    play.script("much", &format!("seq -f 'line %.0f' 1 1200\n{}", finally("The last words.", &[])));
    let gated =
        json!({"permissions": {"cliPermissionsMode": "gated", "agentManagementRequiresApproval": false}});
    let [asks, noise] =
        [("Asks", &gated), ("Noise", &json!({}))].map(|(name, more)| play.node(name, "implementer", more));
    let lead = play.node("Lead", "implementer", &json!({}));
    play.go();
    for (node, script) in [(&asks, "ask"), (&lead, "first"), (&noise, "much")] {
        play.say(node, &format!("do:{script}"));
        if script == "ask" {
            play.until_asked();
        } else {
            // The other runner is at the call that waits.
            play.world.run();
            play.until_said("its last words", |event| {
                event["type"] == "message.assistant.final" && event["nodeId"] == json!(node)
            });
        }
    }
    browser.enter(&play.server);
    browser.open(&format!("http://{}/#/flow/{}/{lead}", play.server.address, play.run));
    browser.sees("wants to call deploy");
    until("they are said", || (said(&browser) == json!(["do:first", "The first words."])).then_some(()));
    browser.click("//button[.='Approve']");
    browser.sees("It is out.");
    assert!(!browser.text().contains("wants to call deploy"));
}

/// W9: a page that is open for long keeps no more than some thousand events: what it began with is loaded again like what was before.
#[test]
fn w9_of_a_long_day_the_latest_is_kept() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let mut play = Play::new();
    play.script("first", &finally("The first words.", &[]));
    play.script("flood", &format!("seq -f 'line %.0f' 1 6000\n{}", finally("After the flood.", &[])));
    let node = looking_at(&mut play, &browser, &["first"]);
    browser.sees("The first words.");
    assert!(!has_earlier(&browser));
    play.say(&node, "do:flood");
    // Its words are told of the node before they are said; what was dropped meanwhile is no sign that they were.
    while_it_goes_on("the flood is over, and what was before is not kept", || {
        let now = (said(&browser), has_earlier(&browser));
        if now == (json!(["After the flood."]), true) { Ok(()) } else { Err((now, play.log().len())) }
    });
    for _ in 0..3 {
        if has_earlier(&browser) {
            let before = said(&browser);
            browser.click(EARLIER);
            while_it_goes_on("something earlier is there", || {
                if said(&browser) != before || !has_earlier(&browser) { Ok(()) } else { Err(browser.text()) }
            });
        }
    }
    assert_eq!(said(&browser), json!(["do:first", "The first words.", "do:flood", "After the flood."]));
    // What comes now comes after that, once.
    play.say(&node, "do:first");
    let all =
        ["do:first", "The first words.", "do:flood", "After the flood.", "do:first", "The first words."];
    while_it_goes_on("it goes on", || {
        let now = said(&browser);
        if now == json!(all) { Ok(()) } else { Err((now, play.log().len())) }
    });
}

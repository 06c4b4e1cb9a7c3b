//! What an enemy wrote is seen as it is (W11): characters that steer how a text is read are numbers on the page.

use crate::driver::Browser;
use crate::support::World;
use serde_json::json;

/// W11: a direction that is turned round in a question, in its choices, in a message, in a branch's name and in what was printed is
/// seen, and turns nothing round.
#[test]
fn w11_no_text_turns_what_is_read_round() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = World::new();
    world.command(
        "deploy",
        "echo printed \u{202e}txet\n\
         id=$(git aynig ask --json --choice 'yes\u{202e}on' --choice no 'Deploy \u{202e}noitcudorp?' | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\n\
         printf 'SET_STATE {\"state\":\"wait\",\"trailers\":[\"dwp-question: %s\",\"dwp-accepts: answer=told\"]}\\n' \"$id\"",
    );
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "deploy"]);
    world.aynig(&["set-state", "deploy", "-b", "site"]);
    world.run();
    world.aynig(&["set-state", "review", "-b", "a\u{202e}b", "-m", "subject \u{2066}isolated"]);
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.sees("Deploy \\u{202e}noitcudorp?");
    browser.sees("yes\\u{202e}on");
    browser.sees("a\\u{202e}b");
    browser.sees("subject \\u{2066}isolated");
    let named = "return [...document.querySelectorAll('[title], [aria-label]')].some((e) => /[\\u202e\\u2066]/.test(e.title + e.getAttribute('aria-label')))";
    assert_eq!(browser.says(named), json!(false));
    browser.fits("steered");
    browser.open(&format!("http://{}/#/branch/0/site/log", server.address));
    browser.sees("printed \\u{202e}txet");
    browser.open(&format!("http://{}/#/branch/0/a%E2%80%AEb", server.address));
    browser.find("//section[@id='panel']//ol/li");
    assert_eq!(browser.says("return /[\\u202e\\u2066]/.test(document.body.innerText)"), json!(false));
    // It is answered by the choice as it was offered.
    browser.open(&format!("http://{}/#/needs", server.address));
    browser.click("//button[contains(., '202e}on')]");
    browser.find("//main[not(.//article[@aria-label='question of site'])]");
    assert_eq!(server.get("/api/questions").json()["questions"], json!([]));
}

//! The page in a real browser, as a person uses it.

use crate::driver::{Browser, busy};
use crate::support::{Server, World, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::Stdio;

/// W9, W10, W11: what waits is seen at once, and answered; what changes is seen without asking; text is text; the code is
/// gone from the address, and the token is in no place that stays.
#[test]
fn w9_a_person_sees_what_waits_and_answers_it() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = busy();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.sees("broken");
    browser.sees("stalled");
    browser.sees("review");
    browser.fits("needs");
    assert_eq!(browser.says("return location.hash"), json!(""));
    assert_eq!(browser.says("return document.title"), json!("(2) git-aynig"));
    assert_eq!(browser.says("return [localStorage.length, document.cookie]"), json!([0, ""]));
    // A page that is loaded again is still in.
    browser.open(&format!("http://{}/", server.address));
    browser.sees("broken");

    browser.click("//article[@aria-label='broken']//button[.='Retry']");
    until("it was asked for again", || {
        (server.get("/api/branches/broken").json()["state"] == "fail").then_some(())
    });
    until("it waits no longer", || {
        (browser.says("return document.title") == json!("(1) git-aynig")).then_some(())
    });
    browser.click("//article[@aria-label='feature/one']//button[starts-with(., 'Set state')]");
    browser.types("ship it");
    browser.click("//button[.='Write it']");
    // What was wrong is said, and what was typed stays.
    browser.sees("is not usable");
    browser.says("const i = document.querySelector('input[name=state]'); i.focus(); i.select()");
    browser.types("approved\u{e007}");
    until("the state is written", || {
        (server.get("/api/branches/feature%2Fone").json()["state"] == "approved").then_some(())
    });
    browser.sees("approved");
    // What another does is seen without asking.
    world.aynig(&["set-state", "elsewhere", "-b", "other"]);
    browser.sees("elsewhere");

    browser.open(&format!("http://{}/#/branch/0/feature%2Fone", server.address));
    browser.sees("build <img src=x onerror=alert(1)>");
    browser.sees("<script>alert(2)</script>");
    browser.fits("branch-events");
    browser.click("//button[.='Changes']");
    browser.sees("+built");
    let below = "const l = document.querySelectorAll('.diff span'); return l[1].offsetTop > l[0].offsetTop";
    assert_eq!(browser.says(below), json!(true), "lines stand below one another");
    browser.fits("branch-changes");
    browser.click("//button[.='Log']");
    browser.sees("<script>x</script>");
    browser.fits("branch-log");
    assert_eq!(browser.says("return document.querySelectorAll('#app img, #app script').length"), json!(0));
    let complaints = browser.complaints();
    let severe: Vec<&Value> =
        complaints.as_array().unwrap().iter().filter(|c| c["level"] == "SEVERE").collect();
    // A refused request is told by the browser too: the one that was refused above.
    assert!(
        severe.iter().all(|c| c["message"].as_str().unwrap().contains("400 (Bad Request)")),
        "{complaints}"
    );
}

/// W9: what runs shows how long, how far, and what it prints, as it does.
#[test]
fn w9_what_runs_is_seen_as_it_runs() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = busy();
    let server = world.serve(&[]);
    world.aynig(&["set-state", "long", "-b", "job"]);
    let mut tick =
        world.call(crate::support::aynig(), &["tick", "job"]).stderr(Stdio::null()).spawn().unwrap();
    browser.enter(&server);
    browser.open(&format!("http://{}/#/running", server.address));
    browser.sees("half way");
    browser.fits("running");
    browser.open(&format!("http://{}/#/branch/0/job", server.address));
    browser.click("//button[.='Log']");
    browser.sees("running on");
    browser.fits("branch-live");
    browser.click("//button[.='Cancel']");
    browser.click("//button[.='End its run']");
    browser.sees("canceled");
    let _ = tick.wait();
    browser.fits("branch-canceled");
}

/// W10: the keyboard alone, on a narrow window, in the dark; nothing is cut off.
#[test]
fn w10_the_keyboard_leads_everywhere_on_a_narrow_page() {
    let Some(browser) = Browser::start(&[
        "--window-size=500,800",
        "--force-dark-mode",
        "--blink-settings=preferredColorScheme=0",
    ]) else {
        return;
    };
    let world = busy();
    let server = world.serve(&[]);
    browser.looks(360, 740, "dark");
    browser.enter(&server);
    browser.sees("broken");
    browser.fits("narrow-needs");
    browser.types("?");
    browser.sees("Needs you");
    browser.sees("search");
    browser.fits("narrow-help");
    browser.types("\u{e00c}b");
    until("the branches are there", || {
        (browser.says("return location.hash") == json!("#/branches")).then_some(())
    });
    browser.find("//a[@class='name']");
    browser.fits("narrow-branches");
    browser.types("j");
    assert_eq!(browser.says("return document.activeElement.className"), json!("name"));
    browser.types("\u{e007}");
    until("the branch is there", || {
        browser.says("return location.hash").as_str().unwrap().starts_with("#/branch/0/").then_some(())
    });
    browser.find("//div[@role='tablist']");
    browser.fits("narrow-branch");
    browser.types("r");
    browser.sees("Nothing runs.");
    browser.fits("narrow-running");
}

/// W12a: after a restart a page without a token says what it needs, and comes in with a new code; it says so, too, while
/// there is no server.
#[test]
fn w12a_a_page_outlives_its_server() {
    let Some(browser) = Browser::start(&[]) else { return };
    let world = busy();
    let server = world.serve(&[]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    browser.enter(&server);
    browser.sees("broken");
    drop(server);
    browser.sees("No connection to the server");
    browser.fits("no-connection");
    let again = Server::start(
        world.call(crate::support::SERVE, &["--json", "--port", &port]).stderr(Stdio::inherit()),
    );
    browser.sees("needs the code of the server");
    browser.fits("door");
    browser.click("//input[@name='code']");
    browser.types(again.said["code"].as_str().unwrap());
    browser.types("\u{e007}");
    browser.sees("broken");
}

/// W12, W14: a page elsewhere, on a name that was made to lead here or on another port of this machine, learns and does
/// nothing, and shows nothing of ours in a frame.
#[test]
fn w14_a_page_elsewhere_gets_nothing() {
    let Some(browser) = Browser::start(&["--host-resolver-rules=MAP evil.example 127.0.0.1"]) else { return };
    let world = World::new();
    world.aynig(&["set-state", "fail", "-b", "job"]);
    let server = world.serve(&[]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    browser.open(&format!("http://evil.example:{port}/"));
    browser.sees("this is not the host that is asked for");
    // A page on another port.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let there = listener.local_addr().unwrap();
    let target = format!("http://{}", server.address);
    let page = format!(
        "<!doctype html><iframe src='{target}/'></iframe><form method=post action='{target}/api/branches/job/retry' \
         enctype='text/plain'><input name='{{\"a\":\"' value='\"}}'></form>"
    );
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len());
        }
    });
    browser.open(&format!("http://{there}/"));
    let tried = browser.post(
        "execute/async",
        &json!({"args": [target, server.token()], "script": "
            const [target, token, done] = arguments;
            const tries = [];
            const reach = async (what, ...call) => { try { const a = await fetch(...call); tries.push([what, a.status, (await a.text()).length]); } catch { tries.push([what, 'refused']); } };
            (async () => {
              await reach('read', target + '/api/branches');
              await reach('with token', target + '/api/branches', {headers: {Authorization: 'Bearer ' + token}});
              await reach('post', target + '/api/branches/job/cancel', {method: 'POST', body: '{}', headers: {'Content-Type': 'application/json', Authorization: 'Bearer ' + token}});
              await reach('enter', target + '/api/enter', {method: 'POST', body: '{\"code\":\"x\"}', headers: {'Content-Type': 'text/plain'}});
              const socket = await new Promise((told) => { const s = new WebSocket(target.replace('http', 'ws') + '/api/socket', ['aynig', 'token.' + token]); s.onopen = () => told('open'); s.onerror = () => told('refused'); });
              tries.push(['socket', socket]);
              let frame; try { frame = document.querySelector('iframe').contentDocument === null ? 'apart' : 'read'; } catch { frame = 'apart'; }
              tries.push(['frame', frame]);
              done(tries);
            })();"}),
    );
    let wanted = json!([
        ["read", "refused"],
        ["with token", "refused"],
        ["post", "refused"],
        ["enter", "refused"],
        ["socket", "refused"],
        ["frame", "apart"]
    ]);
    assert_eq!(tried, wanted);
    browser.says("document.querySelector('form').submit()");
    browser.sees("no request is taken from that page");
    assert_eq!(server.get("/api/branches/job").json()["state"], "fail");
}

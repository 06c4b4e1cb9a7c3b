//! What a person does on each screen, with a mouse and without: questions, pauses, comments, logs, usage.

use crate::driver::{Browser, busy};
use crate::play::{Play, finally};
use crate::support::{World, until};
use crate::talk::asking;
use serde_json::json;

/// W9: a question is on the first screen, with its work and its choices; one click answers it.
#[test]
fn w9_a_question_is_answered_in_one_click() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = asking();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.sees("Deploy <b>it</b>?");
    assert_eq!(browser.says("return document.title"), json!("(1) git-aynig"));
    let icon = browser.says("return decodeURIComponent(document.querySelector('link[rel=icon]').href)");
    assert!(icon.as_str().unwrap().contains(">1</text>"), "{icon}");
    browser.click("//button[.='Show the work it is about']");
    browser.sees("+ready");
    browser.fits("question");
    browser.looks(360, 740, "dark");
    browser.fits("question-narrow-dark");
    browser.click("//button[.='not yet']");
    browser.sees("Nothing waits for you.");
    browser.fits("empty-narrow-dark");
    assert_eq!(server.get("/api/questions").json()["questions"], json!([]));
    world.run();
    let heard = world.aynig(&["events", "--json", "-n", "1", "site"]);
    assert!(heard.contains("told"), "{heard}");
}

/// W9: everything is paused and goes on, and a user who looks is told.
#[test]
fn w9_everything_is_paused_and_goes_on() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = busy();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.open(&format!("http://{}/#/running", server.address));
    browser.click("//button[.='Pause everything']");
    browser.click("//button[.='Start nothing more']");
    browser.sees("everything, by person a@example.com");
    browser.fits("paused");
    browser.click("//button[.='Resume']");
    until("nothing is held", || (server.get("/api/pauses").json()["pauses"] == json!([])).then_some(()));
    browser.find("//button[.='Pause everything']");
}

/// W9: comments on lines of a difference go to the branch as one message, each with its place; the keyboard is enough.
#[test]
fn w9_comments_on_a_difference_are_one_message() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = busy();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.sees("broken");
    browser.open(&format!("http://{}/#/branch/0/feature%2Fone", server.address));
    browser.click("//button[.='Changes']");
    browser.find("//button[@aria-label='comment on built:1']");
    browser.says("document.querySelector('.diff').focus()");
    browser.types("\u{e015}\u{e007}");
    browser.find("//span[@class='comment']//textarea");
    browser.types("why this?\nand how?");
    browser.fits("comment");
    browser.click("//button[.='Send the comment as one message']");
    browser.sees("They wait until the branch takes messages in.");
    let waiting = world.aynig(&["inbox", "--json", "feature/one"]);
    let said: serde_json::Value = serde_json::from_str(waiting.trim()).unwrap();
    let blob = world.git(&["rev-parse", "feature/one:built"]);
    let wanted = format!("built:1 (as it is now, blob {})\n> built\nwhy this?\nand how?", blob.trim());
    assert_eq!(said["text"], wanted);

    browser.click("//button[.='Message…']");
    browser.types("one more thing");
    browser.fits("message");
    browser.click("//button[.='Send it']");
    browser.sees("Sent. It waits");
    assert_eq!(world.aynig(&["inbox", "--json", "feature/one"]).lines().count(), 2);
}

/// W9: the work of each run is seen where its event is, and can be commented on; a run's id is one, and nothing else.
#[test]
fn w9_the_work_of_each_run_is_seen() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = World::new();
    world.command("build", "echo more >> built; echo 'SET_STATE {\"state\":\"review\"}'");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "more"]);
    for _ in 0..2 {
        world.aynig(&["set-state", "build", "-b", "job"]);
        world.run();
    }
    let server = world.serve(&[]);
    let events = server.get("/api/branches/job/events").json()["events"].clone();
    let first = events[2]["commit"].as_str().unwrap();
    let of = |run: &str| server.get(&format!("/api/branches/job/diff?run={run}"));
    assert!(of(first).json()["diff"].as_str().unwrap().contains("new file mode"), "{}", of(first).text());
    assert_eq!(of(first).json(), of(events[2]["run_id"].as_str().unwrap()).json());
    assert!(!of(events[0]["commit"].as_str().unwrap()).text().contains("new file mode"));
    for run in ["main", "--output=/tmp/x", "-1111111111111111111111111111111111", "HEAD", "", "1111"] {
        of(run).failed(400, "invalid");
    }
    browser.enter(&server);
    browser.open(&format!("http://{}/#/branch/0/job", server.address));
    browser.click("(//ol[@class='timeline']/li//button[contains(., 'Show the work')])[2]");
    browser.find("(//ol[@class='timeline']/li)[3]//span[@class='file' and contains(., 'new file')]");
    browser.find("(//ol[@class='timeline']/li)[3]//button[@aria-label='comment on built:1']");
}

/// W9: what runs used is drawn and listed, by day, branch, model and state.
#[test]
fn w9_usage_is_drawn_and_listed() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = World::new();
    for (state, model, cost) in [("draft", "large", "0.25"), ("check", "small", "0.05")] {
        let used = format!(
            "{{\"type\":\"usage\",\"input_tokens\":1200,\"output_tokens\":300,\"cost_usd\":{cost},\"model\":\"{model}\"}}"
        );
        world.command(
            state,
            &format!("printf '%s\\n' '{used}' >> \"$AYNIG_EVENTS\"; echo 'SET_STATE {{\"state\":\"done\"}}'"),
        );
    }
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "usage"]);
    world.aynig(&["set-state", "draft", "-b", "a"]);
    world.aynig(&["set-state", "check", "-b", "b"]);
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.open(&format!("http://{}/#/usage", server.address));
    browser.sees("No run has said yet what it used.");
    world.run();
    browser.sees("$0.30");
    browser.find("//*[name()='svg']/*[name()='g']/*[name()='rect']");
    browser.fits("usage");
    browser.says("const s = document.querySelector('select[name=by]'); s.value = 'model'; s.dispatchEvent(new Event('change', {bubbles: true}))");
    browser.sees("large");
    assert_eq!(browser.says("return document.querySelectorAll('.chart rect').length"), json!(2));
    assert_eq!(browser.says("return document.querySelectorAll('tbody tr').length"), json!(2));
    browser.looks(360, 740, "dark");
    browser.fits("usage-narrow-dark");
}

/// W9: of a log of a million lines those in sight are there, at its end, in its middle and where it grows.
#[test]
fn w9_a_log_of_a_million_lines_is_looked_at() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let world = World::new();
    world.command("long", "seq -f 'line %.0f of the log' 1 1000000; echo 'SET_STATE {\"state\":\"done\"}'");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "long"]);
    world.aynig(&["set-state", "long", "-b", "job"]);
    world.run();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.open(&format!("http://{}/#/branch/0/job", server.address));
    browser.click("//button[.='Log']");
    browser.sees("line 1000000 of the log");
    browser.fits("log-million");
    let rows = browser.says("return document.querySelectorAll('.log span').length");
    assert!(rows.as_u64().unwrap() < 200, "{rows} rows are rendered");
    browser.says("const l = document.querySelector('.log'); l.scrollTop = 0");
    browser.sees("line 1 of the log");
    browser.says("const l = document.querySelector('.log'); l.scrollTop = l.scrollHeight / 2");
    until("the middle is shown", || {
        let first = browser.says("return Number(document.querySelector('.log span').dataset.line)");
        first.as_u64().filter(|n| (450_000..550_000).contains(n))
    });
    let seen = "const b = document.querySelector('.log').getBoundingClientRect(); return [...document.querySelectorAll('.log span')].filter((s) => { const r = s.getBoundingClientRect(); return r.top >= b.top && r.bottom <= b.bottom; }).length";
    assert!(browser.says(seen).as_u64().unwrap() > 15, "the window is filled");
    let memory = browser.says("return performance.memory ? performance.memory.usedJSHeapSize : 0");
    assert!(memory.as_u64().unwrap() < 300 << 20, "{memory} bytes");
}

/// W9: a flow is made, filled, joined and steered on the page; what is said to a node is seen at once, and the graph says what
/// the table says.
#[test]
fn w9_a_flow_is_made_and_steered() {
    let Some(browser) = Browser::start(&["--window-size=1200,1000"]) else { return };
    let world = crate::runs::flowing();
    let server = world.serve(&[]);
    browser.enter(&server);
    browser.types("f");
    browser.sees("No flow yet.");
    browser.fits("flows-empty");
    browser.click("//input[@name='flow']");
    browser.types("release\u{e007}");
    browser.sees("It has no nodes yet");
    for (label, role) in [("Lead", "orchestrator"), ("Writer", "implementer"), ("Critic", "reviewer")] {
        browser.says(&format!(
            "const s = (q, v) => {{ const e = document.querySelector(q); e.value = v; e.dispatchEvent(new Event('input', {{bubbles: true}})); e.dispatchEvent(new Event('change', {{bubbles: true}})); }}; \
             s('input[name=label]', '{label}'); s('input[name=role]', '{role}'); s('select[name=provider]', 'custom')"
        ));
        browser.click("//form[@aria-label='add a node']//button[.='Add']");
        browser.find(&format!("//table//a[.='{label}']"));
    }
    browser.click("//form[@aria-label='connect nodes']//button[.='Connect']");
    browser.sees("Writer (task, both ways)");
    browser.fits("flow");
    let boxes =
        "return [...document.querySelectorAll('.graph .label')].map((t) => t.textContent).sort().join()";
    assert_eq!(browser.says(boxes), json!("Critic,Lead,Writer"));
    assert_eq!(browser.says("return document.querySelectorAll('.graph path.edge').length"), json!(1));
    // What the command line does is seen without asking.
    world.aynig(&["flow", "edge", "add", "release", "Writer", "Critic", "--one-way"]);
    browser.sees("Critic (task)");
    browser.click("//button[.='Pause']");
    browser.find("//button[.='Play']");
    browser.click("//table//a[.='Writer']");
    browser.click("//textarea[@name='chat']");
    browser.types("Write <b>it</b>");
    browser.click("//button[.='Send']");
    browser.sees("Write <b>it</b>");
    browser.sees("1 wait");
    browser.fits("flow-node");
    assert!(world.aynig(&["flow", "show", "--json", "release"]).contains("paused"));
    // Loaded again it is the same.
    browser.says("location.reload()");
    browser.sees("Write <b>it</b>");
    browser.looks(360, 740, "dark");
    browser.fits("flow-narrow-dark");
    browser.click("//article//button[.='Remove'] | //table//button[.='Remove']");
    browser.sees("Lead");
    let complaints = browser.complaints();
    assert!(complaints.as_array().unwrap().iter().all(|c| c["level"] != "SEVERE"), "{complaints}");
}

/// W9: a call that waits is shown with its arguments, and made with others where a person changed them; the answer is seen.
#[test]
fn w9_a_call_is_made_with_other_arguments() {
    let Some(browser) = Browser::start(&["--window-size=1200,1000"]) else { return };
    let world = crate::runs::flowing();
    let call = json!({"type": "approval.requested", "approvalId": "a", "tool": {"id": "a", "name": "deploy", "args": {"to": "production"}}});
    let last = json!({"type": "message.assistant.final", "content": "It is **out**, see [there](https://example.com)."});
    crate::runs::agent(
        &world,
        &format!(
            "{}\nread -r answer\nprintf '%s' \"$answer\" >'{}'\n{}",
            crate::runs::says(&call),
            world.home.path().join("answer").display(),
            crate::runs::says(&last)
        ),
    );
    let server = world.serve(&[]);
    let run = crate::runs::good(server.post("/api/runs", "{\"mode\":\"INTERACTIVE\",\"name\":\"ship\"}"))["run"]["id"].as_str().unwrap().to_owned();
    let mut writer = crate::runs::node("Writer", "implementer");
    writer["node"]["permissions"]["cliPermissionsMode"] = json!("gated");
    let writer =
        crate::runs::good(server.post(&format!("/api/runs/{run}/nodes"), &writer.to_string()))["node"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
    browser.enter(&server);
    browser.open(&format!("http://{}/#/flow/{run}/{writer}", server.address));
    browser.click("//textarea[@name='chat']");
    browser.types("Ship it");
    browser.click("//button[.='Send']");
    browser.sees("1 wait");
    let mut runner = world.runner().stderr(std::process::Stdio::null()).spawn().unwrap();
    browser.sees("wants to call deploy");
    browser.sees("waits for you");
    browser.fits("flow-approval");
    let waiting = server.get("/api/approvals").json();
    assert_eq!(waiting["approvals"][0]["approval"]["tool"]["args"], json!({"to": "production"}), "{waiting}");
    browser.says("const e = document.querySelector('textarea[name=args]'); e.value = '{\"to\": \"staging\"}'; e.dispatchEvent(new Event('input', {bubbles: true}))");
    browser.click("//button[.='Approve as changed']");
    browser.sees("It is out, see there.");
    browser.find("//a[@href='https://example.com' and contains(@rel, 'noopener')]");
    assert!(runner.wait().unwrap().success());
    let answer = std::fs::read_to_string(world.home.path().join("answer")).unwrap();
    assert!(answer.contains("staging") && !answer.contains("production"), "{answer}");
    assert_eq!(server.get("/api/approvals").json()["approvals"], json!([]));
    browser.looks(360, 740, "light");
    browser.fits("flow-said-narrow");
}

/// W9: what an agent asks stands on the page of its flow, and is answered there.
#[test]
fn w9_a_question_of_a_node_is_answered_on_its_flow() {
    let Some(browser) = Browser::start(&["--window-size=1200,900"]) else { return };
    let mut play = Play::new();
    let asks = json!({"name": "ask", "args": {"question": "Which colour?", "choices": ["red", "blue"]}});
    play.script("asks", &finally("I have to know.", &[asks]));
    let node = play.node("Lead", "implementer", &json!({}));
    play.go();
    play.say(&node, "do:asks");
    browser.enter(&play.server);
    browser.open(&format!("http://{}/#/flow/{}", play.server.address, play.run));
    browser.sees("Which colour?");
    browser.fits("flow-question");
    browser.click("//div[contains(@class,'calls')]//button[.='blue']");
    browser.sees(": blue.");
    until("it is asked no more", || {
        (browser.says("return document.querySelector('.calls').innerText") == json!("")).then_some(())
    });
}

//! Every screen, as it looks on a day of work: light and dark, wide and 360 px. Nothing is cut off, axe-core finds nothing,
//! and `AYNIG_SHOTS=<dir>` keeps the pictures to be looked at.

use crate::driver::Browser;
use crate::runs::{agent, flowing, good, node, says};
use crate::support::{Server, World, until};
use serde_json::{Value, json};
use std::process::{Child, Stdio};

/// axe-core, as it was published; `axe/VENDOR.md` says whose it is.
const AXE: &str = include_str!("../axe/axe.min.js");

/// A repository in the middle of a day's work; what runs in it ends with the value.
struct Day {
    world: World,
    children: Vec<Child>,
}

impl Drop for Day {
    fn drop(&mut self) {
        for branch in ["feature/search", "flow/release/writer"] {
            let _ = self.world.call(crate::support::aynig(), &["cancel", branch]).output();
        }
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the commands of that day do.
fn commands(world: &World) {
    world.command("plan", "printf '# Plan\\n\\n1. Index titles.\\n2. Rank by date.\\n' > PLAN.md; echo planned; echo 'SET_STATE {\"state\":\"review\",\"subject\":\"plan: what search should find, and in which order\"}'");
    world.command("test", "echo 'running 212 tests'; echo 'test search::ranks_by_date ... FAILED'; echo 'left: 3, right: 4' >&2; exit 101");
    world.command("index", "i=0; while [ $i -lt 40 ]; do echo \"indexed part $i of 120\"; i=$((i+1)); done; printf '%s\\n' '{\"type\":\"progress\",\"text\":\"40 of 120 parts are indexed\",\"ratio\":0.33}' >> \"$AYNIG_EVENTS\"; exec sleep 600");
    world.command("deploy", "printf 'server:\\n  replicas: 3\\n  image: search:1.4.0\\n' > deploy.yaml\n\
         id=$(git aynig ask --json --choice 'deploy it' --choice 'not today' 'Search 1.4.0 passed its tests. Deploy it to production now?' | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\n\
         printf 'SET_STATE {\"state\":\"wait\",\"trailers\":[\"dwp-question: %s\",\"dwp-accepts: answer=done\"]}\\n' \"$id\"");
    world.command("name", "id=$(git aynig ask --json 'What should the new folder be called?' | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\n\
         printf 'SET_STATE {\"state\":\"wait\",\"trailers\":[\"dwp-question: %s\",\"dwp-accepts: answer=done\"]}\\n' \"$id\"");
    for (state, model, cost) in [("draft", "large", "1.42"), ("check", "small", "0.11")] {
        let used = json!({"type": "usage", "input_tokens": 48_200, "output_tokens": 6_300, "cost_usd": cost.parse::<f64>().unwrap(), "model": model});
        world.command(
            state,
            &format!("printf '%s\\n' '{used}' >> \"$AYNIG_EVENTS\"; echo 'SET_STATE {{\"state\":\"done\"}}'"),
        );
    }
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "commands"]);
}

fn node_of(server: &Server, run: &str, label: &str, role: &str) -> String {
    let mut made = node(label, role);
    if label == "Writer" {
        made["node"]["permissions"]["cliPermissionsMode"] = json!("gated");
    }
    let made = good(server.post(&format!("/api/runs/{run}/nodes"), &made.to_string()));
    made["node"]["id"].as_str().unwrap().to_owned()
}

/// A flow in which much was said, and a call waits.
fn flow(world: &World, server: &Server) -> (String, String, String, Child) {
    let run = good(server.post("/api/runs", "{\"mode\":\"INTERACTIVE\",\"name\":\"release\"}"))["run"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let ids = [
        ("Lead", "orchestrator"),
        ("Writer", "implementer"),
        ("Critic", "reviewer"),
        ("Docs", "implementer"),
    ]
    .map(|(label, role)| node_of(server, &run, label, role));
    for (from, to) in [(0, 1), (0, 3), (1, 2), (3, 2)] {
        let edge = json!({"edge": {"from": ids[from], "to": ids[to], "bidirectional": from == 0}});
        good(server.post(&format!("/api/runs/{run}/edges"), &edge.to_string()));
    }
    let lines = [
        json!({"type": "message.assistant.thinking.final", "content": "The change is small. The writer can begin at once; the critic reads it after."}),
        json!({"type": "tool.started", "tool": {"id": "t1", "name": "read_file", "args": {"path": "PLAN.md"}}}),
        json!({"type": "tool.completed", "toolId": "t1", "result": {"ok": true, "output": "# Plan\n1. Index titles."}}),
        json!({"type": "message.assistant.final", "content": "I read `PLAN.md`. Two steps:\n\n1. **Writer** indexes titles, see [the notes](https://example.com/notes).\n2. **Critic** reads what came of it.\n\n```\ncargo test search\n```"}),
    ];
    agent(world, &lines.map(|line| says(&line)).join("\n"));
    let chat =
        |node: &str, text: &str| {
            good(server.post(
                &format!("/api/runs/{run}/chat"),
                &json!({"nodeId": node, "content": text}).to_string(),
            ))
        };
    chat(&ids[0], "Bring search to the release of Friday. Ask me before anything is deployed.");
    world.run();
    let call = json!({"type": "approval.requested", "approvalId": "a", "tool": {"id": "a", "name": "command", "args": {"cmd": "npm install lunr", "cwd": "web"}}});
    agent(world, &format!("{}\nread -r answer", says(&call)));
    chat(&ids[1], "Index titles first.");
    let runner = world.runner().stderr(Stdio::null()).spawn().unwrap();
    until("the call waits", || (server.get("/api/approvals").json()["approvals"] != json!([])).then_some(()));
    let [lead, writer, ..] = ids;
    (run, lead, writer, runner)
}

fn day(world: &World) {
    commands(world);
    for (state, branch, words) in [
        ("plan", "feature/search-plan", "plan the search"),
        ("test", "fix/ranking", "test the ranking"),
        ("deploy", "release/1.4", "deploy 1.4.0"),
        ("name", "chore/folders", "name the folder"),
        ("draft", "docs/guide", "write the guide"),
        ("check", "docs/api", "check the reference"),
    ] {
        world.aynig(&["set-state", state, "-b", branch, "-m", words]);
    }
    world.run();
}

/// What is cut off: text that is wider than what shows it, where no dots say so, and what stands beyond the window.
const CUT: &str = "
    const wide = document.documentElement.clientWidth;
    const scrolls = (e) => { for (let p = e.parentElement; p; p = p.parentElement) if (/auto|scroll/.test(getComputedStyle(p).overflowX)) return true; return false; };
    return [...document.querySelectorAll('body *')].filter((e) => {
      const s = getComputedStyle(e), r = e.getBoundingClientRect();
      if (!r.width || !r.height || s.visibility === 'hidden' || e.closest('.hide, svg, .skip, dialog:not([open]), select, option')) return false;
      const beyond = r.right > wide + 1 && !scrolls(e);
      const hidden = /hidden|clip/.test(s.overflowX) && e.scrollWidth > e.clientWidth + 1 && s.textOverflow !== 'ellipsis';
      return beyond || hidden;
    }).map((e) => e.outerHTML.slice(0, 120));";

/// Looks at a screen: nothing is cut off, and axe-core finds nothing.
#[track_caller]
fn look(browser: &Browser, name: &str) {
    assert_eq!(browser.says(CUT), json!([]), "{name}: cut off");
    browser.fits(name);
    browser.says(AXE);
    let found = browser.post(
        "execute/async",
        &json!({"args": [], "script": "const done = arguments[arguments.length - 1]; axe.run().then((r) => done(r.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200) + ' ' + n.failureSummary).slice(0, 3)])))"}),
    );
    assert_eq!(found, json!([]), "{name}");
}

/// What axe-core is, is what its publisher wrote.
#[test]
fn w10_axe_is_as_it_was_published() {
    use sha2::{Digest, Sha256};
    let hash: String = Sha256::digest(AXE.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(include_str!("../axe/VENDOR.md").contains(&hash), "{hash}");
}

/// W9, W10: every screen, with work on it, in both schemes and both widths.
#[test]
fn w10_every_screen_is_fit_to_be_seen() {
    let Some(browser) = Browser::start(&["--window-size=1200,800"]) else { return };
    let mut day_of = Day { world: flowing(), children: Vec::new() };
    day(&day_of.world);
    let server = day_of.world.serve(&[]);
    let (run, lead, writer, runner) = flow(&day_of.world, &server);
    day_of.children.push(runner);
    day_of.world.aynig(&["set-state", "index", "-b", "feature/search", "-m", "index all titles"]);
    let mut tick = day_of.world.call(crate::support::aynig(), &["tick", "feature/search"]);
    day_of.children.push(tick.stderr(Stdio::null()).spawn().unwrap());
    browser.enter(&server);
    browser.open(&format!("http://{}/#/running", server.address));
    browser.sees("40 of 120 parts are indexed");
    let flow_of = |node: &str| format!("#/flow/{run}/{node}");
    let screens: [(&str, String, &str, &str); 15] = [
        ("needs", "#/needs".into(), "//article[.//button[.='deploy it']]", ""),
        (
            "needs-work",
            "#/needs".into(),
            "//article[.//button[.='deploy it']]",
            "//button[contains(., 'Show the work')]",
        ),
        (
            "needs-message",
            "#/needs".into(),
            "//article[@aria-label='fix/ranking']",
            "//article[@aria-label='fix/ranking']//button[.='Message…']",
        ),
        (
            "needs-state",
            "#/needs".into(),
            "//article[@aria-label='feature/search-plan']",
            "//article[@aria-label='feature/search-plan']//button[.='Set state…']",
        ),
        ("running", "#/running".into(), "//progress", ""),
        (
            "running-output",
            "#/running".into(),
            "//progress",
            "//article[@aria-label='feature/search']//button[contains(., 'Show what it prints')]",
        ),
        ("branches", "#/branches".into(), "//div[@role='listitem']", ""),
        (
            "branch-events",
            "#/branch/0/feature%2Fsearch-plan".into(),
            "//ol[@class='timeline']/li",
            "//button[contains(., 'Show the work')]",
        ),
        (
            "branch-changes",
            "#/branch/0/feature%2Fsearch-plan/diff".into(),
            "//button[@aria-label='comment on PLAN.md:3']",
            "//button[@aria-label='comment on PLAN.md:3']",
        ),
        ("branch-log", "#/branch/0/feature%2Fsearch/log".into(), "//span[@data-line='39']", ""),
        ("flows", "#/flow".into(), "//article", ""),
        ("flow", format!("#/flow/{run}"), "//div[@class='graph']", ""),
        ("flow-said", flow_of(&lead), "//details[@class='tool']", "//details/summary[.='Thinking']"),
        ("flow-call", flow_of(&writer), "//textarea[@name='args']", ""),
        ("usage", "#/usage".into(), "//figure", ""),
    ];
    for (scheme, width) in [("light", 360), ("dark", 360), ("light", 1200), ("dark", 1200)] {
        browser.looks(width, 800, scheme);
        for (name, screen, shown, opens) in &screens {
            browser.open("about:blank");
            browser.open(&format!("http://{}/{screen}", server.address));
            browser.find(shown);
            if !opens.is_empty() {
                browser.click(opens);
                browser.says("return new Promise((done) => setTimeout(done, 300))");
            }
            look(&browser, &format!("{name}-{width}-{scheme}"));
        }
        browser.types("?");
        browser.find("//dialog[@open]");
        look(&browser, &format!("help-{width}-{scheme}"));
        browser.types("\u{e00c}");
    }
    let complaints = browser.complaints();
    assert!(complaints.as_array().unwrap().iter().all(|c| c["level"] != "SEVERE"), "{complaints}");
}

/// W9, W10: where there is nothing yet, each screen names the command that fills it; the door; a repository that the
/// user does not trust; a server that is gone.
#[test]
fn w10_empty_screens_teach_the_first_command() {
    let Some(browser) = Browser::start(&["--window-size=1200,800"]) else { return };
    let world = World::new();
    let server = world.serve(&[]);
    let screens = [
        ("needs", "git aynig set-state build -b job"),
        ("running", "git aynig run"),
        ("branches", "git aynig init"),
        ("flow", "git aynig flow init"),
        ("usage", "AYNIG_EVENTS"),
    ];
    for (scheme, width) in [("light", 1200), ("dark", 360)] {
        browser.looks(width, 800, scheme);
        browser.open(&format!("http://{}/", server.address));
        browser.says("sessionStorage.clear()");
        browser.says("location.reload()");
        browser.find("//input[@name='code']");
        look(&browser, &format!("door-{width}-{scheme}"));
        browser.says(&format!("sessionStorage.setItem('aynig-token', '{}')", server.token()));
        browser.says("location.reload()");
        browser.find("//nav");
        for (screen, taught) in screens {
            browser.open(&format!("http://{}/#/{screen}", server.address));
            browser.sees(taught);
            look(&browser, &format!("empty-{screen}-{width}-{scheme}"));
        }
    }
    drop(server);
    browser.sees("No connection to the server");
    look(&browser, "gone-360-dark");
    let untrusted = World::trusting("");
    untrusted.git(&["config", "--global", "--unset", "aynig.commandsFrom"]);
    let server = untrusted.serve(&[]);
    browser.enter(&server);
    browser.sees("Nothing runs here until you say which commands may");
    look(&browser, "untrusted-360-dark");
    let _: Value = browser.complaints();
}

//! A page of others in a real browser (W5, W13): `foreign/` is written as they would, of section 12 of the specification alone, and
//! used here as a person does. Nothing is mixed, lost or doubled, whatever is done to it.

use crate::driver::Browser;
use crate::play::{Play, finally, waits};
use crate::runs::{good, says};
use crate::support::until;
use serde_json::{Value, json};

/// What is said at a node: what kind of words, and the words.
type Said = Vec<(String, String)>;

/// A browser in which that page is open.
struct Page {
    browser: Browser,
}

fn of(label: &str) -> String {
    format!("//article[@aria-label='{label}']")
}

impl Page {
    /// The page, with no session yet but the play's.
    fn open(play: &Play) -> Option<Self> {
        let browser = Browser::start(&["--window-size=1200,1000"])?;
        browser.open(play.server.said["ui"].as_str().unwrap());
        let page = Self { browser };
        page.shows(&play.run);
        Some(page)
    }

    /// Waits until this session is shown.
    #[track_caller]
    fn shows(&self, run: &str) {
        let shown = "const s = document.querySelector('[name=session]'); return s && s.value";
        until("the session is shown", || (self.browser.says(shown) == json!(run)).then_some(()));
    }

    fn press(&self, label: &str, button: &str) {
        self.browser.click(&format!("{}//button[.='{button}']", of(label)));
    }

    /// Adds an agent by the form.
    fn add(&self, label: &str, orchestrates: bool) {
        self.browser.click("//input[@name='label']");
        self.browser.types(label);
        let check = "const c = document.querySelector('[name=orchestrates]'); return c.checked";
        if self.browser.says(check) != json!(orchestrates) {
            self.browser.click("//input[@name='orchestrates']");
        }
        self.browser.click("//button[.='Add agent']");
        self.browser.find(&of(label));
        until("its name is typed no more", || {
            let left = self.browser.says("return document.querySelector('[name=label]').value");
            (left == json!("")).then_some(())
        });
    }

    fn choose(&self, name: &str, option: &str) {
        self.browser.click(&format!("//select[@name='{name}']/option[.='{option}']"));
    }

    fn chosen(&self, name: &str) -> Value {
        self.browser.says(&format!("return document.querySelector('[name={name}]').selectedOptions[0].text"))
    }

    /// Says something to an agent, by one of its buttons.
    fn say(&self, label: &str, text: &str, button: &str) {
        self.browser.click(&format!("{}//textarea", of(label)));
        self.browser.types(text);
        self.press(label, button);
    }

    /// What is said at a node, as it is seen; calls are no words.
    fn said(&self, label: &str) -> Said {
        let all = format!(
            "return [...document.querySelectorAll('article[aria-label=\"{label}\"] .said')].map((p) => [p.className, p.textContent])"
        );
        let all = self.browser.says(&all);
        let one = |one: &Value| (one[0].as_str().unwrap().to_owned(), one[1].as_str().unwrap().to_owned());
        all.as_array().unwrap().iter().map(one).filter(|(kind, _)| !kind.contains("tool")).collect()
    }

    /// Waits until words are there, and gives what kind they are.
    #[track_caller]
    fn hears(&self, label: &str, text: &str) -> String {
        until(&format!("{label}: {text:?} in {:?}; {}", self.said(label), self.browser.text()), || {
            self.said(label).into_iter().find(|(_, words)| words == text).map(|(kind, _)| kind)
        })
    }

    fn is(&self, label: &str) -> String {
        let is = format!("return document.querySelector('article[aria-label=\"{label}\"] .is').textContent");
        self.browser.says(&is).as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    fn until_is(&self, label: &str, so: &str) {
        until(&format!("{label} is {so}: {}", self.is(label)), || {
            self.is(label).starts_with(so).then_some(())
        });
    }

    /// Loads all that was earlier.
    fn loads_all(&self) {
        let more = "const b = document.querySelector('[name=earlier]'); if (b.hidden) return false; b.click(); return true";
        until("all is loaded", || (self.browser.says(more) == json!(false)).then_some(()));
    }

    /// All that is seen is what the log of this run has: each word of it once, and where it was loaded anew in its order.
    #[track_caller]
    fn has_all(&self, play: &Play, run: &str, in_order: bool) {
        let state = good(play.server.get(&format!("/api/runs/{run}")))["run"].clone();
        let path = play.world.repo().join(format!(".git/aynig/data/runs/{run}/events.jsonl"));
        let log = std::fs::read_to_string(path).unwrap();
        let log: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let nodes = state["nodes"].as_object().unwrap();
        let labels = "return [...document.querySelectorAll('article h2')].map((h) => h.textContent).sort()";
        let mut wanted: Vec<&str> = nodes.values().map(|node| node["label"].as_str().unwrap()).collect();
        wanted.sort_unstable();
        assert_eq!(self.browser.says(labels), json!(wanted), "the nodes of this session, and no others");
        for (id, node) in nodes {
            let label = node["label"].as_str().unwrap();
            let (mut wanted, mut seen) = (words_of(&log, id), self.said(label));
            seen.iter_mut().for_each(|(kind, _)| *kind = kind.split(' ').nth(1).unwrap().to_owned());
            if !in_order {
                wanted.sort();
                seen.sort();
            }
            assert_eq!(seen, wanted, "{label}");
        }
    }
}

/// What was said to a node, and by it, as the log has it.
fn words_of(log: &[Value], node: &str) -> Said {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let word = |event: &Value| match event["type"].as_str().unwrap() {
        "message.user" if event["message"]["nodeId"] == node => {
            Some(("user".to_owned(), text(&event["message"]["content"])))
        }
        "message.assistant.final" if event["nodeId"] == node => {
            Some(("assistant".to_owned(), text(&event["content"])))
        }
        "handoff.sent" if event["envelope"]["toNodeId"] == node => {
            Some(("handoff".to_owned(), text(&event["envelope"]["payload"]["message"])))
        }
        _ => None,
    };
    log.iter().filter_map(word).collect()
}

fn delta(text: &str) -> String {
    says(&json!({"type": "message.assistant.delta", "delta": text}))
}

/// A play with that page, and agents that do what is asked for below.
fn play() -> Play {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign");
    let mut play = Play::with(&json!({"mode": "INTERACTIVE"}), &["--ui", folder]);
    let call = |id: &str, name: &str, args: Value| json!({"id": id, "name": name, "args": args});
    let spawn = |label: &str| {
        let args = json!({"label": label, "roleTemplate": "implementer", "provider": "custom"});
        call(&format!("s-{label}"), "spawn_node", args)
    };
    let hand = call("h", "send_handoff", json!({"to": "bob", "message": "do:take what Ada wrote"}));
    let began = |name: &str| format!("touch \"$T/{name}\"");
    let (gate, meanwhile, never) = (waits("gate"), waits("meanwhile"), waits("never"));
    play.script("stream", &[delta("One "), gate, delta("two "), finally("One two three.", &[])].join("\n"));
    play.script("hand", &finally("I hand it to Bob.", &[hand]));
    play.script("take", &finally("Bob took it.", &[]));
    let asks = finally("Two of them.", &[spawn("Cy"), spawn("Dan")]);
    play.script("spawn", &format!("{asks}\nread -r x\nread -r y\n{}", finally("One of two.", &[])));
    play.script("long", &[delta("Long words"), began("long"), never, finally("Never.", &[])].join("\n"));
    play.script("short", &finally("Short.", &[]));
    play.script("after", &finally("After the pause.", &[]));
    play.script("slow", &[delta("Mean"), meanwhile, finally("Meanwhile.", &[])].join("\n"));
    play.script("other", &finally("In the other session.", &[]));
    play.go();
    play
}

/// W5, W13: create, connect, send, stream, hand over, approve, deny, interrupt, pause, switch sessions, reload.
#[test]
fn w5_a_page_that_others_wrote_works_unchanged() {
    let play = play();
    let Some(page) = Page::open(&play) else { return };
    makes_and_joins(&page, &play);
    talks(&page, &play);
    decides(&page, &play);
    interrupts_and_pauses(&page, &play);
    page.has_all(&play, &play.run, false);
    switches(&page, &play);

    // Loaded again it is the same, in the order of the log, to its beginning.
    page.browser.says("location.reload()");
    page.shows(&play.run);
    page.browser.find(&of("Ada"));
    page.loads_all();
    page.has_all(&play, &play.run, true);
    let left = "return [document.querySelectorAll('#edges li').length, document.querySelectorAll('.approval').length]";
    assert_eq!(
        page.browser.says(left),
        json!([1, 0]),
        "what was undone comes back by no page of the history"
    );
    // It asked for nothing but what the contract has.
    let asked = "return performance.getEntriesByType('resource').map((e) => new URL(e.name).pathname).filter((p) => !/^[/]api[/](runs([/][0-9a-f-]{36}([/](events|chat|nodes([/][0-9a-f-]{36}([/](start|stop|interrupt|reset))?)?|edges([/][0-9a-f-]{36})?))?)?|approvals[/][^/]+[/]resolve)$|^[/]foreign[.](js|css)$/.test(p))";
    assert_eq!(page.browser.says(asked), json!([]));
    let complaints = page.browser.complaints();
    assert!(complaints.as_array().unwrap().iter().all(|c| c["level"] != "SEVERE"), "{complaints}");
}

fn makes_and_joins(page: &Page, play: &Play) {
    page.add("Ada", true);
    page.add("Bob", false);
    for (from, to) in [("Ada", "Bob"), ("Bob", "Ada")] {
        page.choose("from", from);
        page.choose("to", to);
        // What another does meanwhile draws the page anew, and takes no choice away.
        play.patch(&json!({"globalMode": if from == "Ada" { "PLANNING" } else { "IMPLEMENTATION" }}));
        assert_eq!((page.chosen("from"), page.chosen("to")), (json!(from), json!(to)));
        page.browser.click("//button[.='Connect']");
        page.browser.sees(&format!("{from} to {to}"));
    }
    page.browser.click("//li[starts-with(., 'Bob to Ada')]//button");
    until("the edge is cut", || (!page.browser.text().contains("Bob to Ada")).then_some(()));
    assert_eq!(play.state()["edges"].as_object().unwrap().len(), 1);
}

fn talks(page: &Page, play: &Play) {
    page.say("Ada", "do:stream", "Queue");
    // While it is said it is seen.
    assert!(page.hears("Ada", "One ").contains("open"));
    page.until_is("Ada", "running");
    std::fs::write(play.file("gate"), "").unwrap();
    assert_eq!(page.hears("Ada", "One two three."), "said assistant");
    page.until_is("Ada", "idle");
    page.say("Ada", "do:hand it over", "Queue");
    assert_eq!(page.hears("Bob", "do:take what Ada wrote"), "said handoff");
    page.hears("Bob", "Bob took it.");
}

fn decides(page: &Page, play: &Play) {
    page.say("Ada", "do:spawn", "Queue");
    for (label, button) in [("Cy", "Approve"), ("Dan", "Deny")] {
        page.browser
            .click(&format!("//p[@class='approval'][contains(., '\"{label}\"')]//button[.='{button}']"));
    }
    page.browser.find(&of("Cy"));
    page.hears("Ada", "One of two.");
    page.until_is("Ada", "idle");
    assert_eq!(play.waiting(), Vec::<Value>::new());
    assert_eq!(play.state()["nodes"].as_object().unwrap().len(), 3, "the one that was denied is not there");
}

fn interrupts_and_pauses(page: &Page, play: &Play) {
    page.say("Bob", "do:long", "Queue");
    until("it began", || play.file("long").exists().then_some(()));
    page.hears("Bob", "Long words");
    page.say("Bob", "do:short", "Interrupt");
    page.hears("Bob", "Short.");
    assert!(page.hears("Bob", "Long words").contains("interrupted"));
    page.until_is("Bob", "idle");

    page.browser.click("//button[.='Pause']");
    page.browser.find("//b[.='paused']");
    page.say("Bob", "do:after", "Queue");
    until("it waits", || page.is("Bob").contains("(1 wait)").then_some(()));
    assert!(page.said("Bob").iter().all(|(_, words)| words != "After the pause."));
    page.browser.click("//button[.='Play']");
    page.hears("Bob", "After the pause.");
    page.until_is("Bob", "idle");
}

/// Another session is used while the first one works on; there and back, with the sockets of both open.
fn switches(page: &Page, play: &Play) {
    page.say("Ada", "do:slow", "Queue");
    page.hears("Ada", "Mean");
    page.browser.click("//button[.='New session']");
    until("it is empty", || {
        (page.browser.says("return document.querySelectorAll('article').length") == json!(0)).then_some(())
    });
    let other = page.browser.says("return document.querySelector('[name=session]').value");
    let other = other.as_str().unwrap().to_owned();
    assert_ne!(other, play.run);
    page.add("Zed", false);
    page.say("Zed", "do:other", "Queue");
    std::fs::write(play.file("meanwhile"), "").unwrap();
    page.hears("Zed", "In the other session.");
    play.until_said("the first one ended", |event| event["content"] == "Meanwhile.");
    page.has_all(play, &other, false);
    page.choose("session", &play.run[..8]);
    page.shows(&play.run);
    page.hears("Ada", "Meanwhile.");
    page.loads_all();
    page.has_all(play, &play.run, true);
    page.choose("session", &other[..8]);
    page.shows(&other);
    page.hears("Zed", "In the other session.");
    page.has_all(play, &other, true);
    page.choose("session", &play.run[..8]);
    page.shows(&play.run);
}

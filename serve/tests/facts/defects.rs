//! What the original did against its contract, itself or good sense (the lines of the specification that are marked so): each is
//! absent here (W5, N8-N14).

use crate::play::{Play, finally, waits};
use crate::runs::{good, says, send};
use crate::support::until;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn gated() -> Value {
    json!({"permissions": {"cliPermissionsMode": "gated"}})
}

/// Two calls of one message, and what the program was told of them.
fn two_calls(play: &Play) {
    let write = |id: &str, path: &str| json!({"id": id, "name": "write_file", "args": {"path": path, "content": "x\n"}});
    let both = finally("Two.", &[write("t-1", "one.txt"), write("t-2", "two.txt")]);
    let told = "read -r a; read -r b; printf '%s\\n%s\\n' \"$a\" \"$b\" >\"$T/told\"";
    play.script("two", &format!("{both}\n{told}\n{}", finally("Both heard.", &[])));
}

/// Edges without a type are of the type that the roles of their ends say; an empty label is one.
#[test]
fn edges_are_by_the_roles_of_their_ends() {
    let play = Play::new();
    let (lead, work) =
        (play.node("Lead", "orchestrator", &json!({})), play.node("Work", "implementer", &json!({})));
    let put = |edge: Value| {
        good(play.server.post(&play.at("/edges"), &json!({ "edge": edge }).to_string()))["edge"].clone()
    };
    let is = |edge: &Value| {
        (edge["type"].as_str().unwrap().to_owned(), edge["label"].as_str().unwrap().to_owned())
    };
    let pair = |kind: &str, label: &str| (kind.to_owned(), label.to_owned());
    assert_eq!(is(&put(json!({"from": lead, "to": work}))), pair("handoff", "task"));
    assert_eq!(is(&put(json!({"from": work, "to": lead}))), pair("report", "report"));
    assert_eq!(is(&put(json!({"from": lead, "to": work, "type": "report"}))), pair("report", "report"));
    assert_eq!(
        is(&put(json!({"from": lead, "to": work, "type": "handoff", "label": ""}))),
        pair("handoff", "")
    );
    let loops = put(json!({"from": work, "to": work, "bidirectional": false}));
    assert_eq!(loops["bidirectional"], false);
    let ask = |edge: Value| play.server.post(&play.at("/edges"), &json!({ "edge": edge }).to_string());
    ask(json!({"from": lead, "to": work, "type": "weird"})).failed(400, "invalid");
    ask(json!({"from": lead})).failed(400, "invalid");
    ask(json!({})).failed(400, "invalid");
    assert_eq!(play.state()["edges"].as_object().unwrap().len(), 5);
}

/// A node's id is taken once, and a node has a label.
#[test]
fn a_node_is_not_written_over() {
    let play = Play::new();
    let lead = play.node("Lead", "orchestrator", &json!({}));
    let before = play.of(&lead);
    let add = |node: Value| play.server.post(&play.at("/nodes"), &json!({ "node": node }).to_string());
    add(json!({"id": lead, "label": "Other", "roleTemplate": "x", "provider": "custom"}))
        .failed(409, "conflict");
    add(json!({"id": "no-uuid", "label": "Other", "roleTemplate": "x", "provider": "custom"}))
        .failed(400, "invalid");
    add(json!({"roleTemplate": "x", "provider": "custom"})).failed(400, "invalid");
    add(json!({"label": "A", "provider": "custom"})).failed(400, "invalid");
    // Nor by another's alias, nor by an id for an alias.
    add(json!({"label": "B", "alias": "LEAD", "roleTemplate": "x", "provider": "custom"}))
        .failed(409, "conflict");
    add(json!({"label": "C", "alias": lead, "roleTemplate": "x", "provider": "custom"}))
        .failed(409, "conflict");
    assert_eq!((play.of(&lead), play.state()["nodes"].as_object().unwrap().len()), (before, 1));
}

/// A patch changes settings, and not what a node is.
#[test]
fn a_patch_sets_no_id_and_no_status() {
    let play = Play::new();
    let lead = play.node("Lead", "orchestrator", &json!({}));
    let other = "00000000-0000-4000-8000-00000000000a";
    let patch = json!({"patch": {"id": other, "runId": other, "status": "running", "summary": "mine", "label": "Led"}});
    let told = good(send(&play.server, "PATCH", &play.at(&format!("/nodes/{lead}")), &patch))["node"].clone();
    assert_eq!(
        (&told["id"], &told["runId"], &told["status"]),
        (&json!(lead), &json!(play.run), &json!("idle"))
    );
    assert_eq!((&told["label"], &told["summary"]), (&json!("Led"), &json!("idle")));
}

/// There is one copy of a node's settings, and a mirror of it.
#[test]
fn a_nodes_settings_are_one() {
    let play = Play::new();
    let lead = play.node("Lead", "orchestrator", &json!({}));
    let at = play.at(&format!("/nodes/{lead}"));
    for body in [
        json!({"patch": {"label": "P", "roleTemplate": "planner", "permissions": {"cliPermissionsMode": "gated", "agentManagementRequiresApproval": true}}}),
        json!({"config": {"label": "C", "customSystemPrompt": "Be brief.", "capabilities": {"edgeManagement": "self", "writeCode": false, "writeDocs": true, "runCommands": true, "delegateOnly": false}}}),
        json!({"config": {"customSystemPrompt": null, "alias": ""}}),
    ] {
        good(send(&play.server, "PATCH", &at, &body));
        let run = play.state();
        let (node, config) = (&run["nodes"][&lead], &run["nodeConfigs"][&lead]);
        for key in [
            "label",
            "alias",
            "roleTemplate",
            "provider",
            "customSystemPrompt",
            "capabilities",
            "permissions",
        ] {
            assert_eq!(node[key], config[key], "{key} after {body}");
        }
    }
    assert!(play.of(&lead).get("alias").is_none() && play.of(&lead)["customSystemPrompt"].is_null());
}

/// A template that was changed is what the next prompt says.
#[test]
fn a_template_is_read_anew() {
    let mut play = Play::new();
    good(play.server.post("/api/templates", "{\"name\":\"critic\",\"content\":\"Find the first fault.\"}"));
    let critic = play.node("Critic", "critic", &json!({}));
    play.script("done", &finally("Done.", &[]));
    play.go();
    let prompts = || -> Vec<String> {
        let run = play.state();
        let files = run["artifacts"].as_object().unwrap().values();
        let prompts = files.filter(|file| file["name"] == "prompt.full.txt").map(|file| {
            let id = file["id"].as_str().unwrap();
            good(play.server.get(&play.at(&format!("/artifacts/{id}"))))["content"]
                .as_str()
                .unwrap()
                .to_owned()
        });
        prompts.collect()
    };
    play.say(&critic, "do:done one");
    until("it was prompted", || (prompts().len() == 1).then_some(()));
    assert!(prompts()[0].contains("Find the first fault."), "{:?}", prompts());
    play.until_is(&critic, "idle");
    good(send(&play.server, "PUT", "/api/templates/critic", &json!({"content": "Find every fault."})));
    good(play.verb(&critic, "reset"));
    play.say(&critic, "do:done two");
    until("it was prompted again", || (prompts().len() == 2).then_some(()));
    assert!(prompts().iter().any(|prompt| prompt.contains("Find every fault.")), "{:?}", prompts());
}

/// What a person denies is an answer to the agent; the other calls of its message go on, and the agent is told of each.
#[test]
fn a_denied_call_drops_no_other() {
    let mut play = Play::new();
    two_calls(&play);
    let work = play.node("Work", "implementer", &gated());
    play.say(&work, "do:two");
    play.go();
    let about = |path: &str| {
        let is_it = |one: &Value| one["approval"]["tool"]["args"]["path"] == path;
        until(path, || play.waiting().into_iter().find(is_it))["approval"].clone()
    };
    let first = about("one.txt");
    good(play.resolve(&first, &json!({"status": "denied", "reason": "not that one"})));
    let second = about("two.txt");
    good(play.resolve(
        &second,
        &json!({"status": "modified", "modifiedArgs": {"path": "three.txt", "content": "y\n"}}),
    ));
    play.until_is(&work, "idle");
    let told = std::fs::read_to_string(play.file("told")).unwrap();
    assert!(told.contains("not that one") || told.to_lowercase().contains("denied"), "{told}");
    let done = play.of_type("tool.completed");
    assert_eq!(done.len(), 2, "{done:?}");
    assert_eq!(done[0]["result"], json!({"ok": false}), "a failure has no other shape");
    assert!(done[0]["error"]["message"].as_str().is_some_and(|why| !why.is_empty()), "{done:?}");
    assert_eq!(done[1]["result"]["ok"], true);
    let started = play.of_type("tool.started");
    assert!(
        started.iter().any(|event| event["tool"]["args"]["path"] == "three.txt"),
        "as it was changed: {started:?}"
    );
}

/// A call that waits outlives the server, is asked for once, and answered once, by an answer that is one.
#[test]
fn a_call_that_waits_survives_a_restart() {
    let mut play = Play::new();
    two_calls(&play);
    let work = play.node("Work", "implementer", &gated());
    play.say(&work, "do:two");
    play.go();
    let asked = play.until_asked();
    play.until_is(&work, "blocked");
    play.server = {
        let _ = play.server.child.kill();
        let _ = play.server.child.wait();
        play.world.serve(&[])
    };
    let still = |play: &Play| play.waiting().iter().any(|one| one["approval"] == asked);
    assert!(still(&play), "the same, after a restart");
    assert_eq!(play.of(&work)["status"], "blocked");
    let at = format!("/api/approvals/{}/resolve", asked["approvalId"].as_str().unwrap());
    for body in [
        json!({}),
        json!({"resolution": {}}),
        json!({"resolution": {"status": "perhaps"}}),
        json!({"resolution": {"status": "modified"}}),
        json!({"resolution": {"status": "modified", "modifiedArgs": [1]}}),
    ] {
        play.server.post(&at, &body.to_string()).failed(400, "invalid");
    }
    let elsewhere =
        json!({"resolution": {"status": "approved"}, "runId": "00000000-0000-4000-8000-000000000000"});
    play.server.post(&at, &elsewhere.to_string()).failed(404, "unknown");
    assert!(still(&play), "none of these was an answer");
    let answer = good(play.resolve(&asked, &json!({"status": "approved"})));
    assert_eq!(answer, json!({"approvalId": asked["approvalId"], "resolution": {"status": "approved"}}));
    play.resolve(&asked, &json!({"status": "denied"})).failed(409, "conflict");
    let is_other = |one: &Value| one["approval"] != asked;
    let next = until("the other one asks", || play.waiting().into_iter().find(is_other))["approval"].clone();
    good(play.resolve(&next, &json!({"status": "approved"})));
    play.until_is(&work, "idle");
    let requested = play.of_type("approval.requested");
    assert_eq!(requested.len(), 2, "each was asked for once: {requested:?}");
}

/// However a call that waits comes to its end, that is told, and it is listed no more.
#[test]
fn every_end_of_an_approval_is_told() {
    let mut play = Play::new();
    two_calls(&play);
    play.go();
    for end in ["stop", "interrupt", "remove", "pause", "stopped"] {
        let work = play.node(&format!("W {end}"), "implementer", &gated());
        play.say(&work, "do:two");
        let asked = until("a call waits", || {
            play.waiting().into_iter().find(|one| one["approval"]["nodeId"] == json!(work))
        });
        if end == "stop" {
            // A turn that runs goes on when its node is reset, and so does what it asks.
            good(play.verb(&work, "reset"));
            assert_eq!(play.of(&work)["status"], "blocked");
            assert!(play.waiting().contains(&asked));
        }
        match end {
            "remove" => drop(good(play.delete(&format!("/nodes/{work}")))),
            "pause" => drop(play.patch(&json!({"status": "paused"}))),
            "stopped" => drop(play.patch(&json!({"status": "stopped"}))),
            verb => drop(good(play.verb(&work, verb))),
        }
        let id = &asked["approval"]["approvalId"];
        let resolved = play.until_said(&format!("after {end} it is told"), |event| {
            event["type"] == "approval.resolved" && &event["approvalId"] == id
        });
        assert_eq!(resolved["resolution"]["status"], "denied", "{end}");
        until("it is listed no more", || {
            play.waiting().iter().all(|one| &one["approval"]["approvalId"] != id).then_some(())
        });
        until(&format!("after {end} it is not blocked"), || {
            (play.of(&work)["status"] != "blocked").then_some(())
        });
        if end == "pause" {
            play.patch(&json!({"status": "running"}));
        }
    }
}

/// Nodes run side by side, also of two runs.
#[test]
fn nodes_run_side_by_side() {
    let mut play = Play::new();
    let meet =
        |own: &str, other: &str| format!("touch \"$T/{own}\"\n{}\n{}", waits(other), finally("We met.", &[]));
    play.script("one", &meet("one.here", "two.here"));
    play.script("two", &meet("two.here", "one.here"));
    let (one, two) =
        (play.node("One", "implementer", &json!({})), play.node("Two", "implementer", &json!({})));
    play.say(&one, "do:one");
    play.say(&two, "do:two");
    play.world.git(&["config", "--global", "aynig.jobs", "4"]);
    play.go();
    for node in [&one, &two] {
        until("they met", || (play.of(node)["summary"] == "We met.").then_some(()));
    }
}

/// A message that interrupts ends the turn that runs; its answer is the next turn's own, whatever the first program still says.
#[test]
fn an_interrupt_ends_the_turn_and_answers_are_not_mixed() {
    let mut play = Play::new();
    let half = says(&json!({"type": "message.assistant.delta", "delta": "The old"}));
    let late = finally("The old answer.", &[]);
    play.script("old", &format!("trap '' INT\n{half}\ntouch \"$T/began\"\nsleep 3\n{late}"));
    play.script("new", &finally("The new answer.", &[]));
    let work = play.node("Work", "implementer", &json!({}));
    play.say(&work, "do:old");
    play.go();
    until("it began", || play.file("began").exists().then_some(()));
    play.until_is(&work, "running");
    let body = json!({"nodeId": work, "content": "do:new", "interrupt": true}).to_string();
    good(play.server.post(&play.at("/chat"), &body));
    until("the new answer", || (play.of(&work)["summary"] == "The new answer.").then_some(()));
    let finals = play.of_type("message.assistant.final");
    let contents: Vec<&str> = finals.iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(contents.last(), Some(&"The new answer."), "{contents:?}");
    let first = &finals[0];
    assert_eq!(first["status"], "interrupted", "{finals:?}");
    assert!(finals.len() == 2, "{finals:?}");
}

/// A run that was stopped, and is played again, takes messages again; a message to one that is stopped waits.
#[test]
fn a_stopped_run_is_played_again() {
    let mut play = Play::new();
    play.script("done", &finally("Done.", &[]));
    let work = play.node("Work", "implementer", &json!({}));
    play.patch(&json!({"status": "stopped"}));
    play.say(&work, "do:done");
    assert_eq!(play.of(&work)["inboxCount"], 1, "it waits");
    play.patch(&json!({"status": "running"}));
    play.go();
    until("it has its turn", || (play.of(&work)["summary"] == "Done.").then_some(()));
    assert_eq!(
        (&play.of(&work)["inboxCount"], &play.of(&work)["connection"]["status"]),
        (&json!(0), &json!("idle"))
    );
    // A node too.
    good(play.verb(&work, "stop"));
    assert_eq!(play.of(&work)["connection"]["status"], "disconnected");
    play.say(&work, "do:done");
    good(play.verb(&work, "start"));
    until("it has another", || (play.of_type("message.assistant.final").len() == 2).then_some(()));
}

/// After a stall the run is paused and its node blocked; played again it takes messages, and is not stalled by one more.
#[test]
fn a_stall_is_over_when_the_run_is_played_again() {
    let mut play = Play::new();
    play.world.git(&["config", "--global", "aynig.stallTurns", "2"]);
    play.script("same", &finally("The same.", &[]));
    let work = play.node("Work", "implementer", &json!({}));
    play.go();
    let mut turns = 0;
    let mut has_turn = |play: &Play| {
        play.say(&work, "do:same");
        turns += 1;
        until("it has its turn", || (play.of_type("message.assistant.final").len() == turns).then_some(()));
        until("it is over", || (play.of(&work)["status"] != "running").then_some(()));
    };
    for _ in 0..2 {
        has_turn(&play);
    }
    assert!(play.of_type("run.stalled").is_empty(), "the third in a row is the second repetition");
    has_turn(&play);
    let stalled = play.until_said("it stalls", |event| event["type"] == "run.stalled");
    assert!(stalled["evidence"]["outputHash"].is_string(), "{stalled}");
    assert_eq!(stalled["evidence"]["summaries"].as_array().unwrap().len(), 3, "{stalled}");
    until("it is paused", || (play.state()["status"] == "paused").then_some(()));
    assert_eq!(play.of(&work)["status"], "blocked");
    play.patch(&json!({"status": "running"}));
    until("it is free", || (play.of(&work)["status"] == "idle").then_some(()));
    has_turn(&play);
    assert_eq!(play.of_type("run.stalled").len(), 1, "it counts from there");
    assert_eq!(play.state()["status"], "running");
}

/// A turn that fails says why, and a message is the retry.
#[test]
fn a_failure_says_why() {
    let mut play = Play::new();
    play.script("bad", "echo 'the disk is made of cheese' >&2; exit 3");
    play.script("good", &finally("Well now.", &[]));
    let work = play.node("Work", "implementer", &json!({}));
    play.say(&work, "do:bad");
    play.go();
    play.until_is(&work, "failed");
    let told =
        play.until_said("why", |event| event["type"] == "node.progress" && event["status"] == "failed");
    assert_eq!(told["summary"], "custom: crashed: exit 3: the disk is made of cheese", "{told}");
    assert_eq!(play.of(&work)["summary"], told["summary"]);
    let failed = |event: &&Value| event["status"] == "turn.failed";
    assert_eq!(play.of_type("turn.status").iter().find(failed).unwrap()["detail"], told["summary"]);
    assert!(play.of_type("node.log").iter().any(|event| event["line"].as_str().unwrap().contains("cheese")));
    play.say(&work, "do:good");
    until("it is well", || (play.of(&work)["summary"] == "Well now.").then_some(()));
}

/// A line that a crash tore is cut from the log; what comes then is whole, and nothing that Git holds is lost with the data folder.
#[test]
fn a_torn_line_is_cut() {
    use std::io::Write;
    let play = Play::new();
    play.node("One", "implementer", &json!({}));
    let path = play.world.repo().join(format!(".git/aynig/data/runs/{}/events.jsonl", play.run));
    let before = play.log();
    let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    log.write_all(b"{\"id\":\"0000").unwrap();
    play.node("Two", "implementer", &json!({}));
    play.state();
    let after = play.log();
    assert!(after.len() > before.len() && after.starts_with(&before), "{after:?}");
    let page = good(play.server.get(&play.at("/events?limit=2000")));
    assert_eq!(page["events"].as_array().unwrap().len(), after.len());
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let again = play.state();
    assert_eq!(again["nodes"].as_object().unwrap().len(), 2);
    // What one branch did stays in its order; what several did in one second is laid as it was found.
    let ids = |log: &[Value]| log.iter().map(|event| event["id"].to_string()).collect::<BTreeSet<_>>();
    assert_eq!(ids(&play.log()), ids(&after), "projected anew, with the same ids");
}

/// What waits for a node is counted whole: messages, and what other nodes handed over.
#[test]
fn all_that_waits_is_counted() {
    let mut play = Play::new();
    let handoff = json!({"id": "h", "name": "send_handoff", "args": {"to": "work", "message": "take this"}});
    play.script("hand", &finally("Here.", &[handoff]));
    let (lead, work) =
        (play.node("Lead", "orchestrator", &json!({})), play.node("Work", "implementer", &json!({})));
    play.edge(&lead, &work);
    good(play.verb(&work, "stop"));
    play.say(&work, "first");
    play.say(&lead, "do:hand");
    play.go();
    play.until_said("it is handed over", |event| event["type"] == "handoff.sent");
    until("both are counted", || (play.of(&work)["inboxCount"] == 2).then_some(()));
    play.say(&work, "third");
    assert_eq!(play.of(&work)["inboxCount"], 3);
    good(play.verb(&work, "reset"));
    until("they are dropped", || (play.of(&work)["inboxCount"] == 0).then_some(()));
}

/// In PLANNING a command that writes has written nothing that counts: only what is below `docs/` is part of the work.
#[test]
fn planning_is_kept_by_commands_too() {
    let mut play = Play::with(&json!({"mode": "INTERACTIVE", "globalMode": "PLANNING"}), &[]);
    let command = json!({"id": "c", "name": "command", "args": {"cmd": "mkdir -p docs && echo a >docs/plan.md && echo b >code.txt"}});
    play.script(
        "plan",
        &format!("{}\nread -r told\n{}", finally("I plan.", &[command]), finally("Planned.", &[])),
    );
    let work = play.node("Plan", "planner", &json!({}));
    play.say(&work, "do:plan");
    play.go();
    until("it has planned", || (play.of(&work)["summary"] == "Planned.").then_some(()));
    play.until_is(&work, "idle");
    let branch = play.world.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/flow"]);
    let files = play.world.git(&["ls-tree", "-r", "--name-only", branch.trim()]);
    assert!(files.contains("docs/plan.md") && !files.contains("code.txt"), "{files}");
}

/// The snapshot is of the last turn too, and says the same as the answer.
#[test]
fn the_snapshot_is_as_new_as_the_log() {
    let mut play = Play::new();
    play.script("done", &finally("Done so.", &[]));
    let work = play.node("Work", "implementer", &json!({}));
    play.say(&work, "do:done");
    play.go();
    until("it is done", || (play.of(&work)["summary"] == "Done so.").then_some(()));
    play.until_is(&work, "idle");
    play.rest();
    let run = play.state();
    let path = play.world.repo().join(format!(".git/aynig/data/runs/{}/state.json", play.run));
    let kept: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let kept = kept.get("run").unwrap_or(&kept);
    assert_eq!((&kept["nodes"], &kept["artifacts"]), (&run["nodes"], &run["artifacts"]));
}

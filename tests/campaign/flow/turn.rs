//! A node's turn is killed: its runner, `flow turn`, the guardian of either. A person then retries the node that failed, or says
//! more to it.
//!
//! In the end each message was in the prompt of one turn that landed, and each handoff was heard once; what an agent had written is
//! on its branch or kept; the events tell every turn from its start to its end, and are the same when they are told anew from Git
//! alone. For N3 (a message is the retry), N4, N5, N6, N13.

use super::super::stage::{Stage, print};
use super::super::support::judge::commits;
use super::{Scene, World};
use aynig::contract::event::{Body, Event};
use aynig::contract::words::{Mode, TurnStatus};
use aynig::protocol::invariants::check_line;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::process::Output;

const NODES: &[&str] = &["lead", "one"];
/// What a person says to a node that failed.
const AGAIN: &str = "again";

pub const SCENE: Scene = Scene { name: "turn", nodes: NODES, stage, mend, end, wrong };

/// Says this, and calls a tool.
fn says(text: &str, call: Option<Value>) -> String {
    let call = call.map(|call| format!("\n{}", json!({ "tool_call": call }))).unwrap_or_default();
    print(&json!({"type": "message.assistant.final", "content": format!("{text}{call}")}))
}

/// An orchestrator that is told to go, hands on, and is told that it is done. Each turn's agent leaves a file with a name of its own, then notes
/// that it did.
fn stage() -> Stage {
    let stage = Stage::with(
        "exec git aynig flow turn",
        Mode::Interactive,
        &[("lead", "orchestrator"), ("one", "implementer")],
    );
    let hands =
        |to: &str, message: &str| json!({"name": "send_handoff", "args": {"to": to, "message": message}});
    let mut wants = hands("one", "yours");
    wants["args"]["response"] = json!({"expectation": "required"});
    let script = format!(
        "T='{}'\nread -r prompt\nn=0; read -r n 2>/dev/null <\"$T/n\"; n=$((n+1)); echo $n >\"$T/n\"\n\
         echo $n >\"work.$n\"; echo $n >>\"$T/did\"\n\
         case $prompt in *'role implementer'*) {};; *'did it'*) {};; *) {};; esac\n",
        stage.life.shared().display(),
        says("made", Some(hands("lead", "did it"))).trim(),
        says("good", None).trim(),
        says("planned", Some(wants)).trim(),
    );
    let agent = stage.life.shared().join("agent.sh");
    fs::write(&agent, script).unwrap();
    stage.life.config("aynig.provider.custom.command", &format!("sh '{}'", agent.display()));
    stage.life.git(&["config", "gc.auto", "0"]);
    stage.life.run(&["send", &stage.branch("lead"), "-m", "go", "--no-tick"]).expect(0);
    stage
}

/// Both ways are as good; which one is the point's.
fn mend(world: &World, point: &super::Point, node: &str) -> Output {
    match point.nth % 2 {
        0 => world.later(&["retry", &world.stage.branch(node), "--no-tick"]),
        _ => world.later(&["flow", "send", "play", node, "-m", AGAIN, "--no-tick"]),
    }
}

/// The runs of a node's turns that landed, oldest first.
fn landed(world: &World, node: &str) -> Vec<String> {
    let format = "--format=%(trailers:key=dwp-state,valueonly,separator=) %(trailers:key=dwp-run-id,valueonly,separator=)";
    let branch = world.stage.branch(node);
    let log = world.stage.life.git(&["log", "--reverse", "--first-parent", format, &branch]);
    log.lines().filter_map(|line| line.strip_prefix("route ")).map(str::to_owned).collect()
}

/// What each turn that landed was told, what is still promised, what waits.
fn end(world: &World) -> String {
    let stage = &world.stage;
    let mut told: Vec<String> = Vec::new();
    for node in NODES {
        for run in landed(world, node) {
            let prompt = stage.life.show(&format!("refs/aynig/turns/{run}"), "prompt.full.txt");
            let quoted = prompt.lines().filter_map(|line| line.strip_prefix("> "));
            // When an earlier turn was is no part of what came, nor is it that what one called which failed was not performed (N7).
            let apart = ["Your turn of ", "{\"call\":"];
            let quoted =
                quoted.filter(|line| *line != AGAIN && !apart.iter().any(|with| line.starts_with(with)));
            told.push(format!("{node}: {:?}", quoted.collect::<Vec<_>>()));
        }
    }
    let waits: Vec<String> = stage.letters().into_iter().filter(|name| name.contains("/inbox/")).collect();
    let flow = stage.now();
    format!("{told:?} {waits:?} {:?} {:?}", flow.run.promises, flow.nodes.keys())
}

fn wrong(world: &World) -> Vec<String> {
    let mut bad = kept(world);
    bad.extend(projected(world));
    let life = &world.stage.life;
    let all = commits(life.repo.command("git"));
    for node in NODES {
        let head = life.rev(&world.stage.branch(node)).parse().unwrap();
        bad.extend(check_line(head, &all).iter().map(|violation| format!("{node}: {violation}")));
    }
    let gc = world.later(&["gc", "-q"]);
    if !gc.status.success() {
        bad.push(format!("K14: gc fails: {gc:?}"));
    }
    let runs = life.git(&["for-each-ref", "refs/aynig/run"]);
    if !runs.is_empty() {
        bad.push(format!("K44: runs that are over have a ref: {runs}"));
    }
    bad
}

/// What agents wrote is on a branch, or kept.
fn kept(world: &World) -> Vec<String> {
    let life = &world.stage.life;
    let mut there: BTreeSet<String> = BTreeSet::new();
    let branches = NODES.iter().map(|node| world.stage.branch(node));
    for name in branches.chain(life.attempts()) {
        there.extend(life.git(&["ls-tree", "-r", "--name-only", &name]).lines().map(str::to_owned));
    }
    let did = life.said("did");
    let lost = did.lines().map(|n| format!("work.{n}")).filter(|file| !there.contains(file));
    lost.map(|file| format!("V8: {file} is lost: {there:?}")).collect()
}

/// The events tell each thing once, each turn from start to end, and the same again from Git alone.
fn projected(world: &World) -> Vec<String> {
    let events = world.stage.events();
    let mut bad = Vec::new();
    let ids =
        |events: &[Event]| -> BTreeSet<String> { events.iter().map(|event| event.id.to_string()).collect() };
    if ids(&events).len() != events.len() {
        bad.push("N13: an event is there twice".to_owned());
    }
    if !events.windows(2).all(|pair| pair[0].ts <= pair[1].ts) {
        bad.push("N13: time goes back".to_owned());
    }
    let (mut open, mut said) = (HashMap::new(), Vec::new());
    for event in &events {
        match &event.body {
            Body::TurnStatus { node_id, status, .. } => {
                let in_order = match status {
                    TurnStatus::Started => open.insert(*node_id, ()).is_none(),
                    TurnStatus::Completed | TurnStatus::Interrupted | TurnStatus::Failed => {
                        open.remove(node_id).is_some()
                    }
                    TurnStatus::WaitingForModel | TurnStatus::ToolPending | TurnStatus::AwaitingApproval => {
                        true
                    }
                };
                if !in_order {
                    bad.push(format!("N13: {status} of {node_id} comes out of turn: {}", event.id));
                }
            }
            Body::MessageUser { message } => said.push(message.content.clone()),
            Body::HandoffSent { envelope } => said.push(envelope.payload.message.clone()),
            _ => {}
        }
    }
    if !open.is_empty() {
        bad.push(format!("N13: turns are never over: {open:?}"));
    }
    said.retain(|text| text != AGAIN);
    // What two branches say within one second has no order.
    said.sort();
    if said != ["did it", "go", "yours"] {
        bad.push(format!("N13: what was said: {said:?}"));
    }
    fs::remove_dir_all(world.stage.folder()).unwrap();
    let anew = ids(&world.stage.events());
    if anew != ids(&events) {
        let differ: Vec<_> = anew.symmetric_difference(&ids(&events)).cloned().collect();
        bad.push(format!("N13: other events when told anew: {differ:?}"));
    }
    bad
}

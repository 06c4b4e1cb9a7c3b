//! What follows from a turn is killed: then each handoff was heard once, each node and edge is there once, and nothing waits.
//! For N3 (a killed `route`), N5, N6.

use super::super::stage::{Stage, call, handoff};
use super::{Scene, World};
use aynig::contract::words::Mode;
use serde_json::json;

const NODES: &[&str] = &["lead", "one", "new"];

pub const SCENE: Scene = Scene {
    name: "route",
    nodes: NODES,
    stage,
    // A killed `route` is asked again by itself.
    mend: |world, _, node| panic!("{node} failed: {}", world.stage.life.body(&world.stage.branch(node))),
    end,
    wrong: |_| Vec::new(),
};

/// A flow whose orchestrator has had a turn from which everything follows that can.
fn stage() -> Stage {
    let stage = Stage::new(Mode::Interactive, &[("lead", "orchestrator"), ("one", "implementer")]);
    let spawn = json!({"label": "New", "alias": "new", "roleTemplate": "reviewer", "instructions": "look"});
    let wants = json!({"to": "one", "message": "yours", "response": {"expectation": "required"}});
    let calls = [
        call("spawn_node", spawn),
        call("create_edge", json!({"from": "lead", "to": "new"})),
        call("send_handoff", wants),
        handoff("new", "and yours"),
        handoff("nobody", "is not there"),
    ];
    stage.turn("lead", 1, "echo plan >plan.md", &calls, &[]);
    stage.life.git(&["config", "gc.auto", "0"]);
    let lead = stage.branch("lead");
    stage.life.run(&["send", &lead, "-m", "go", "--no-tick"]).expect(0);
    stage.life.tick(&[&lead]).expect(0);
    assert_eq!(stage.life.state(&lead), "route");
    stage
}

/// Refs of messages, nodes, edges, promises, what was heard.
fn end(world: &World) -> String {
    let stage = &world.stage;
    let flow = stage.now();
    let letters: Vec<String> = stage.letters();
    // Whichever turn it was: what each node heard.
    let mut heard: Vec<String> = Vec::new();
    for node in NODES {
        let brought = (1..=stage.turns(node)).flat_map(|n| stage.messages(node, n));
        heard.extend(brought.map(|message| format!("{node} {}", message["text"])));
    }
    heard.sort();
    let nodes: Vec<String> = flow.nodes.keys().map(ToString::to_string).collect();
    let edges: Vec<String> = flow.edges.keys().map(ToString::to_string).collect();
    let promises: Vec<String> = flow.run.promises.keys().map(ToString::to_string).collect();
    format!("{letters:?} {nodes:?} {edges:?} {promises:?} {heard:?}")
}

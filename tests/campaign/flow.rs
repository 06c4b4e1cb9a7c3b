//! What follows from a turn, while whoever does it is killed at any call: the runner, its guardian, and `flow route` itself.
//!
//! After each point the flow is ticked again, later, until it rests. Then each handoff was heard once, each node and edge is there
//! once, and nothing waits. `AYNIG_POINT=route/rename:3:command=KILL` replays one point. For N3 (a killed `route`), N5, N6.

use super::judge;
use super::points::name_of;
use super::row::{Dice, Sweep, full};
use super::scene::copy;
use super::stage::{Stage, call, handoff};
use super::support::faketime::faketime;
use super::trace::{self, Fault, Point, run};
use aynig::contract::words::Mode;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

const NODES: [&str; 3] = ["lead", "one", "new"];

struct World {
    stage: Stage,
    saved: tempfile::TempDir,
    faketime: Option<&'static str>,
}

impl World {
    /// A flow whose orchestrator has had a turn from which everything follows that can.
    fn new() -> Self {
        let stage = Stage::new(Mode::Interactive, &[("lead", "orchestrator"), ("one", "implementer")]);
        let spawn =
            json!({"label": "New", "alias": "new", "roleTemplate": "reviewer", "instructions": "look"});
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
        let saved = tempfile::Builder::new().prefix("aynig flow ").tempdir().unwrap();
        let world = Self { stage, saved, faketime: faketime() };
        copy(&world.base(), world.saved.path());
        world
    }

    fn base(&self) -> PathBuf {
        self.stage.life.repo.home().parent().unwrap().to_owned()
    }

    fn reset(&self) {
        for entry in std::fs::read_dir(self.base()).unwrap().flatten() {
            Command::new("chmod").args(["-R", "u+rwX"]).arg(entry.path()).output().unwrap();
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
        copy(self.saved.path(), &self.base());
    }

    /// Traced on a busy machine a run takes seconds. Who comes later comes by a clock of their own, where there is one.
    fn lease(&self) -> &'static str {
        if self.faketime.is_some() { "120s" } else { "3s" }
    }

    fn route(&self) -> Command {
        let mut command =
            self.stage.life.aynig(&["tick", "--lease", self.lease(), &self.stage.branch("lead")]);
        command.current_dir(self.stage.life.repo.path());
        command
    }

    /// Has all go on, later, until everything rests; what is wrong with how that ends.
    fn rests(&self) -> Vec<String> {
        let mut said = Vec::new();
        for _ in 0..8 {
            let mut later = self.stage.life.aynig(&["run", "--lease", self.lease()]);
            if let Some(library) = &self.faketime {
                later.env("LD_PRELOAD", library).env("FAKETIME", "+600s");
                later.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            }
            said.push(later.output().unwrap());
            let state = |node: &&str| {
                let branch = self.stage.branch(node);
                self.stage
                    .life
                    .try_rev(&format!("refs/heads/{branch}"))
                    .map(|_| self.stage.life.state(&branch))
            };
            let states: Vec<String> = NODES.iter().map(|node| state(node).unwrap_or_default()).collect();
            if states.iter().all(|state| state == "idle") {
                return Vec::new();
            }
            if states.iter().any(|state| state == "working") && self.faketime.is_none() {
                // Its runner was killed.
                std::thread::sleep(std::time::Duration::from_millis(3_500));
            }
        }
        vec![format!("V11: it does not rest: {said:?}")]
    }

    /// What is there in the end: refs of messages, nodes, edges, promises, what was heard.
    fn end(&self) -> String {
        let flow = self.stage.now();
        let letters: Vec<String> = self.stage.letters();
        // Whichever turn it was: what each node heard.
        let mut heard: Vec<String> = Vec::new();
        for node in NODES {
            let brought = (1..=self.stage.turns(node)).flat_map(|n| self.stage.messages(node, n));
            heard.extend(brought.map(|message| format!("{node} {}", message["text"])));
        }
        heard.sort();
        let nodes: Vec<String> = flow.nodes.keys().map(ToString::to_string).collect();
        let edges: Vec<String> = flow.edges.keys().map(ToString::to_string).collect();
        let promises: Vec<String> = flow.run.promises.keys().map(ToString::to_string).collect();
        format!("{letters:?} {nodes:?} {edges:?} {promises:?} {heard:?}")
    }

    fn judge(&self, calm: &str) -> Vec<String> {
        let mut bad = Vec::new();
        let end = self.end();
        if end != calm {
            bad.push(format!("N5: {end} and not {calm}"));
        }
        let git_dir = self.stage.life.repo.git_dir();
        bad.extend(judge::locks(&git_dir).into_iter().map(|lock| format!("K43: left: {lock}")));
        let fsck = self.stage.life.repo.command("git").args(["fsck", "--strict"]).output();
        if !fsck.is_ok_and(|output| output.status.success()) {
            bad.push("V13: fsck".to_owned());
        }
        bad
    }
}

fn faults(point: &Point) -> Vec<Fault> {
    // A kill of one thread's process before it reads changes nothing.
    if point.call == "read" || point.role == "shell" {
        Vec::new()
    } else {
        vec![Fault::Kill, Fault::KillTree]
    }
}

fn each(sweep: &Sweep, dice: &mut Dice) {
    let world = World::new();
    world.reset();
    let calm = run(&world.route(), None);
    let mut wrong = world.rests();
    let end = world.end();
    wrong.extend(world.judge(&end));
    if calm.code != Some(0) || !wrong.is_empty() {
        return sweep.bad(format!("undisturbed: {:?} {wrong:?}", calm.code));
    }
    let calls = calm.calls.into_iter().map(|(point, _)| point);
    let mut points: Vec<(Point, Fault)> =
        calls.flat_map(|point| faults(&point).into_iter().map(move |fault| (point.clone(), fault))).collect();
    let mut roles: BTreeMap<String, u64> = BTreeMap::new();
    points.iter().for_each(|(point, _)| *roles.entry(point.role.clone()).or_default() += 1);
    eprintln!("{} points: {roles:?}", points.len());
    match std::env::var("AYNIG_POINT").ok().and_then(|only| only.strip_prefix("route/").map(str::to_owned)) {
        Some(only) => points.retain(|(point, fault)| format!("{point}={}", name_of(*fault)) == only),
        // In any order: one that is cut short has seen of all.
        None if full() => (1..points.len()).rev().for_each(|n| points.swap(n, dice.below(n + 1))),
        None => points = dice.sample(points, 4),
    }
    let all = points.len();
    for (n, (point, fault)) in points.into_iter().enumerate() {
        if n > 0 && n % 20 == 0 {
            eprintln!("{n} of {all} points");
        }
        world.reset();
        let trace = run(&world.route(), Some((&point, fault)));
        let Some(object) = trace.hit else {
            sweep.count("not reached", 1);
            continue;
        };
        sweep.count("points", 1);
        let mut bad = if trace.hung { vec!["V16: it hung".to_owned()] } else { Vec::new() };
        bad.extend(world.rests());
        bad.extend(world.judge(&end));
        let base = world.base().to_string_lossy().into_owned();
        for what in bad {
            let line = format!("AYNIG_POINT='route/{point}={}' ({object}): {what}", name_of(fault));
            sweep.bad(line.replace(&base, ""));
        }
    }
}

#[test]
fn routed_once() {
    let what =
        "SIGKILL before each mutating call of a flow's route: its runner, its guardian, its own process";
    let sweep = Sweep::begin("flow-route", what, "every call, >= 800 points: 0 lost, 0 doubled, 0 orphaned");
    if let Some(why) = trace::unable() {
        return sweep.skip(why);
    }
    if std::env::var_os("AYNIG_POINT").is_none() {
        sweep.at_least("points", 3, 800);
    }
    each(&sweep, &mut sweep.dice());
    sweep.end();
}

//! A turn, and what follows from it, while the process that does it is killed at any call: the runner, its guardian,
//! `flow turn` with the guardian of its agent, `flow route`.
//!
//! After each point the flow is ticked again, later, until it rests; what is then there is the scene's to judge (`route`, `turn`).
//! `AYNIG_POINT=route/rename:3:flow=KILL` replays one point; `AYNIG_POINTS=200` takes so many, one of each 200th part of the tick's.

mod route;
mod turn;

use super::judge;
use super::points::{name_of, wrong_with};
use super::row::{Dice, Sweep, full};
use super::scene::Saved;
use super::stage::Stage;
use super::support::faketime::faketime;
use super::trace::{self, Fault, Point, run};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};

/// What is killed, and how a flow is judged that went on after it.
struct Scene {
    name: &'static str,
    /// Its aliases, once all is done.
    nodes: &'static [&'static str],
    /// Makes the flow, up to the tick of `lead` that is killed.
    stage: fn() -> Stage,
    /// What a person does about a node that failed, after a kill at this point.
    mend: fn(&World, &Point, &str) -> Output,
    /// What is there in the end, and is so after every kill.
    end: fn(&World) -> String,
    /// What else is wrong with how it ended.
    wrong: fn(&World) -> Vec<String>,
}

struct World {
    scene: &'static Scene,
    stage: Stage,
    saved: Saved,
    faketime: Option<&'static str>,
}

impl World {
    fn new(scene: &'static Scene) -> Self {
        let stage = (scene.stage)();
        let saved = Saved::of(stage.life.repo.home().parent().unwrap().to_owned());
        Self { scene, stage, saved, faketime: faketime() }
    }

    fn base(&self) -> PathBuf {
        self.stage.life.repo.home().parent().unwrap().to_owned()
    }

    fn reset(&self) {
        self.saved.restore();
    }

    /// Traced on a busy machine a run takes seconds. Who comes later comes by a clock of their own, where there is one.
    fn lease(&self) -> &'static str {
        if self.faketime.is_some() { "120s" } else { "3s" }
    }

    /// The tick that is killed.
    fn tick(&self) -> Command {
        let mut command =
            self.stage.life.aynig(&["tick", "--lease", self.lease(), &self.stage.branch("lead")]);
        command.current_dir(self.stage.life.repo.path());
        command
    }

    /// A verb, ten minutes later.
    fn later(&self, args: &[&str]) -> Output {
        let mut later = self.stage.life.aynig(args);
        if let Some(library) = &self.faketime {
            later.env("LD_PRELOAD", library).env("FAKETIME", "+600s");
            later.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        later.output().unwrap()
    }

    fn state(&self, node: &str) -> String {
        let branch = self.stage.branch(node);
        let there = self.stage.life.try_rev(&format!("refs/heads/{branch}"));
        there.map(|_| self.stage.life.state(&branch)).unwrap_or_default()
    }

    /// Has all go on, later, until everything rests; what is wrong with how that ends.
    fn rests(&self, point: Option<&Point>) -> Vec<String> {
        let (mut said, mut mended) = (Vec::new(), false);
        for _ in 0..8 {
            said.push(self.later(&["run", "--lease", self.lease()]));
            let states: Vec<String> = self.scene.nodes.iter().map(|node| self.state(node)).collect();
            if states.iter().all(|state| state == "idle") {
                return Vec::new();
            }
            if let Some(failed) = states.iter().position(|state| state == "stalled")
                && let Some(point) = point.filter(|_| !mended)
            {
                mended = true;
                said.push((self.scene.mend)(self, point, self.scene.nodes[failed]));
            }
            if states.iter().any(|state| state == "working") && self.faketime.is_none() {
                // Its runner was killed.
                std::thread::sleep(std::time::Duration::from_millis(3_500));
            }
        }
        vec![format!("V11: it does not rest: {said:?}")]
    }

    fn judge(&self, calm: &str) -> Vec<String> {
        let mut bad = Vec::new();
        let end = (self.scene.end)(self);
        if end != calm {
            bad.push(format!("N5: {end} and not {calm}"));
        }
        bad.extend((self.scene.wrong)(self));
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
    // A kill of one thread's process before it reads changes nothing. The agent's program is `sh`, and no part of ours.
    if point.call == "read" || ["shell", "sh"].contains(&point.role.split('#').next().unwrap_or_default()) {
        Vec::new()
    } else {
        vec![Fault::Kill, Fault::KillTree]
    }
}

/// `AYNIG_POINTS=<n>`: so many of them, from all of the tick.
fn some() -> Option<usize> {
    std::env::var("AYNIG_POINTS").ok().and_then(|n| n.parse().ok())
}

/// The points of this run: the one that is named, all in any order (one that is cut short has seen of all), or one of each `n`th part.
fn chosen(scene: &Scene, points: Vec<(Point, Fault)>, dice: &mut Dice) -> Vec<(Point, Fault)> {
    let only = std::env::var("AYNIG_POINT").ok();
    if let Some(only) = only {
        let named =
            |(point, fault): &(Point, Fault)| format!("{}/{point}={}", scene.name, name_of(*fault)) == only;
        return points.into_iter().filter(named).collect();
    }
    let all = points.len();
    let n = some().unwrap_or(if full() { all } else { 4 }).min(all);
    let mut points: Vec<_> = (0..n).map(|part| points[(part * all + dice.below(all)) / n].clone()).collect();
    if n == all {
        // Of parts that hold one each there is nothing to choose.
        (1..n).rev().for_each(|n| points.swap(n, dice.below(n + 1)));
    }
    points
}

fn each(sweep: &Sweep, scene: &'static Scene) {
    let world = World::new(scene);
    world.reset();
    let calm = run(&world.tick(), None);
    let mut wrong = world.rests(None);
    let end = (scene.end)(&world);
    wrong.extend(world.judge(&end));
    if calm.code != Some(0) || !wrong.is_empty() {
        return sweep.bad(format!("undisturbed: {:?} {wrong:?}", calm.code));
    }
    let calls = calm.calls.into_iter().map(|(point, _)| point);
    let points: Vec<(Point, Fault)> =
        calls.flat_map(|point| faults(&point).into_iter().map(move |fault| (point.clone(), fault))).collect();
    let mut roles: BTreeMap<String, u64> = BTreeMap::new();
    points.iter().for_each(|(point, _)| *roles.entry(point.role.clone()).or_default() += 1);
    let there = points.len();
    let points = chosen(scene, points, &mut sweep.dice());
    let all = points.len();
    eprintln!("{all} of {there} points: {roles:?}");
    for (n, (point, fault)) in points.into_iter().enumerate() {
        if n > 0 && n % 20 == 0 {
            eprintln!("{n} of {all} points");
        }
        world.reset();
        let trace = run(&world.tick(), Some((&point, fault)));
        let Some(object) = &trace.hit else {
            sweep.count("not reached", 1);
            continue;
        };
        sweep.count("points", 1);
        let mut bad = wrong_with(&trace);
        bad.extend(world.rests(Some(&point)));
        bad.extend(world.judge(&end));
        let base = world.base().to_string_lossy().into_owned();
        for what in bad {
            let line = format!("AYNIG_POINT='{}/{point}={}' ({object}): {what}", scene.name, name_of(fault));
            sweep.bad(line.replace(&base, ""));
        }
    }
}

fn sweep(name: &'static str, what: &'static str, figure: &'static str, scene: &'static Scene) {
    let sweep = Sweep::begin(name, what, figure);
    if let Some(why) = trace::unable() {
        return sweep.skip(why);
    }
    if std::env::var_os("AYNIG_POINT").is_none() && some().is_none() {
        sweep.at_least("points", 3, 800);
    }
    each(&sweep, scene);
    sweep.end();
}

#[test]
fn routed_once() {
    let what =
        "SIGKILL before each mutating call of a flow's route: its runner, its guardian, its own process";
    sweep("flow-route", what, "every call, >= 800 points: 0 lost, 0 doubled, 0 orphaned", &route::SCENE);
}

#[test]
fn turned_once() {
    let what = "SIGKILL before each mutating call of a node's turn: its runner, `flow turn`, both guardians";
    let figure = "every call, >= 800 points: 0 works lost, 0 messages lost or doubled, 0 turns left open";
    sweep("flow-turn", what, figure, &turn::SCENE);
}

//! Runs the points of a sweep: lists the calls of each scene's tick, chooses, disturbs, judges.
//!
//! The sample takes some of each scene and a full run enough for its figure, both by the seed, so that every run
//! looks elsewhere; `AYNIG_POINTS=all` takes every call of every scene. A point's whole name is
//! `fresh/rename:3:runner=KILL`; `AYNIG_POINT` replays that one alone.

use super::row::{Dice, Sweep, full};
use super::scene::{Scene, World};
use super::support::skipped;
use super::trace::{Fault, Point, Trace, run};
use super::{judge, trace};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// What is to be done to one scene: which calls count, and which faults each of them gets.
pub struct Plan {
    pub scenes: &'static [Scene],
    /// How many points of each scene a sample has, and a full run.
    pub sample: usize,
    pub whole: usize,
    pub faults: fn(&Point, &str) -> Vec<Fault>,
}

/// What came of the points of one part of a scene.
#[derive(Default)]
struct Part {
    counts: BTreeMap<String, u64>,
    bad: Vec<String>,
    said: Vec<String>,
}

pub fn name_of(fault: Fault) -> String {
    match fault {
        Fault::Kill => "KILL".to_owned(),
        Fault::KillTree => "KILLTREE".to_owned(),
        Fault::Error(errno) => format!("{errno:?}"),
    }
}

/// The whole sweep, or why it can't run here. `least`: the points that a sample is to reach, and a full run.
pub fn go_through(sweep: Sweep, least: [u64; 2], plans: &[Plan]) {
    if let Some(why) = trace::unable() {
        return sweep.skip(why);
    }
    // Who replays one point looks at that one.
    if only().is_none() {
        sweep.at_least("points", least[0], least[1]);
    }
    plans.iter().for_each(|plan| every_point(&sweep, plan));
    sweep.end();
}

/// Runs all of it on two threads, and notes what is wrong.
fn every_point(sweep: &Sweep, plan: &Plan) {
    let only = only();
    let parts = if (full() || every()) && only.is_none() { 2 } else { 1 };
    let jobs: Vec<(usize, usize)> =
        (0..plan.scenes.len()).flat_map(|s| (0..parts).map(move |p| (s, p))).collect();
    let (queue, found) = (Mutex::new(jobs.into_iter()), Mutex::new(Vec::new()));
    let dice = sweep.dice();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((scene, part)) = queue.lock().unwrap().next() else { break };
                    let chosen = Chosen { part, parts, dice: dice.of(scene as u64), only: only.as_deref() };
                    let done = one(&plan.scenes[scene], plan, chosen);
                    found.lock().unwrap().push(done);
                }
            });
        }
    });
    let mut said: Vec<String> = Vec::new();
    for part in found.into_inner().unwrap() {
        part.counts.iter().for_each(|(what, n)| sweep.count(what, *n));
        part.bad.iter().for_each(|bad| sweep.bad(bad.as_str()));
        said.extend(part.said);
    }
    said.sort();
    said.dedup();
    for line in said {
        eprintln!("said: {line}");
    }
}

/// The one point that is replayed.
fn only() -> Option<String> {
    std::env::var("AYNIG_POINT").ok()
}

fn every() -> bool {
    std::env::var("AYNIG_POINTS").is_ok_and(|v| v == "all")
}

struct Chosen<'a> {
    part: usize,
    parts: usize,
    dice: Dice,
    only: Option<&'a str>,
}

fn one(scene: &'static Scene, plan: &Plan, mut chosen: Chosen<'_>) -> Part {
    let mut part = Part::default();
    let wanted = chosen.only.and_then(|name| name.split_once('/'));
    if wanted.is_some_and(|(name, _)| name != scene.name) {
        return part;
    }
    let Some(world) = World::new(scene) else {
        if chosen.part == 0 {
            skipped(&format!("the scene '{}' can't be made here", scene.name));
            part.counts.insert("scenes not made".to_owned(), 1);
        }
        return part;
    };
    let calm = run(&world.tick(), None);
    let wrong = judge::truthful(&world, calm.code).into_iter().chain(judge::settle(&world));
    part.bad.extend(wrong.map(|what| format!("{}: undisturbed: {what}", scene.name)));
    let mut points: Vec<(Point, Fault)> = calm
        .calls
        .into_iter()
        .filter(|(point, _)| !point.is_theirs())
        .flat_map(|(point, object)| {
            (plan.faults)(&point, &object).into_iter().map(move |fault| (point.clone(), fault))
        })
        .collect();
    if let Some((_, name)) = wanted {
        points.retain(|(point, fault)| format!("{point}={}", name_of(*fault)) == name);
    } else if every() {
        points = points
            .into_iter()
            .enumerate()
            .filter(|(n, _)| n % chosen.parts == chosen.part)
            .map(|(_, p)| p)
            .collect();
    } else if full() {
        let parts = if scene.is_slow() { 4 * chosen.parts } else { chosen.parts };
        points = chosen.dice.of(chosen.part as u64).sample(points, plan.whole.div_ceil(parts));
    } else {
        let some = if scene.is_slow() { plan.sample / 4 } else { plan.sample };
        points = chosen.dice.sample(points, some);
    }
    eprintln!("{}: {} points", scene.name, points.len());
    for (point, fault) in points {
        world.reset();
        disturb(&world, plan, &point, fault, &mut part);
    }
    part
}

fn disturb(world: &World, plan: &Plan, point: &Point, fault: Fault, part: &mut Part) {
    let trace = run(&world.tick(), Some((point, fault)));
    let name = format!("{}/{point}={}", world.scene.name, name_of(fault));
    let mut count = |what: &str| *part.counts.entry(what.to_owned()).or_default() += 1;
    let Some(object) = trace.hit.clone() else { return count("not reached") };
    if !(plan.faults)(point, &object).contains(&fault) {
        // Threads and signals came in another order: what was hit there is nothing that the system can refuse so.
        return count("not reached");
    }
    count("points");
    if trace.code.is_some() && fault == Fault::Kill {
        count("of a child of the runner");
    }
    let mut wrong = wrong_with(&trace);
    wrong.extend(judge::truthful(world, trace.code));
    let said = said(world);
    // How a library takes the system's words apart for programmers.
    if said.contains("Os {") {
        wrong.push(format!("nobody can read this: {said}"));
    }
    wrong.extend(judge::settle(world));
    part.said.push(format!("{:?} {} {said}", trace.code, name_of(fault)));
    let base = world.base().to_string_lossy().into_owned();
    for what in wrong {
        let line = format!("AYNIG_POINT='{name}' ({object}): {what}").replace(&base, "");
        eprintln!("VIOLATION: {line}");
        part.bad.push(line);
    }
}

/// Git's `receive.keepAlive`, and a second.
const KEEPALIVE: Duration = Duration::from_secs(6);

pub fn wrong_with(trace: &Trace) -> Vec<String> {
    // What receives a push to a path, and the shell that starts it, are the remote's (K12): one that hangs notices
    // that no process listens when it next says that it lives.
    let received = trace.left.iter().any(|(who, _)| who.starts_with("git-receive-pack"));
    let theirs = |who: &str| who.starts_with("git-receive-pack") || who.starts_with("sh");
    let left = trace.left.iter().filter(|(who, after)| !(received && theirs(who) && *after < KEEPALIVE));
    let mut bad: Vec<String> =
        left.map(|(who, after)| format!("V16: left over: {who} ({after:?} after)")).collect();
    if trace.hung {
        bad.push("V16: it hung".to_owned());
    }
    bad
}

/// What the tick said was wrong, without names that differ from run to run.
fn said(world: &World) -> String {
    let read = |name| std::fs::read_to_string(world.life().repo.home().join(name)).unwrap_or_default();
    let report: Option<serde_json::Value> =
        read("stdout").lines().last().and_then(|line| serde_json::from_str(line).ok());
    let reason = |key: &str| report.as_ref().and_then(|r| r[key].as_str()).unwrap_or_default().to_owned();
    let text = format!("{} {} {}", reason("error"), reason("why"), read("stderr").trim());
    let text = text.replace(&*world.base().to_string_lossy(), "");
    text.split(|c: char| !(c.is_ascii_hexdigit() || c == '-'))
        .fold(text.clone(), |text, word| if word.len() >= 20 { text.replace(word, "<id>") } else { text })
}

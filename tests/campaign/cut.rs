//! Connections that break: between `git push` and the remote, after each byte, in both directions.
//!
//! `swaps` makes the four pushes of a run (claim, renewal, outcome, recovery) as the runner makes them and
//! cuts each after every byte: what the swap says is what the remote holds (V9; K11, K31). `ticks` does the
//! same to whole ticks, also where the remote moves only after the connection was lost; `hangs` stops the
//! bytes without closing anything, and a deadline ends that (K18, K31).

use super::judge;
use super::relay::{Relay, Way};
use super::row::{Sweep, full};
use super::scene::{REMOTE, World};
use aynig::protocol::id::ObjectId;
use aynig::store::repository::Repository;
use aynig::store::{Expected, RefName, Signature, Swap, swap};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// One of the pushes of a run, between two commits that the machine has.
struct Push {
    kind: &'static str,
    world: World,
    old: String,
    new: String,
    /// The remote before it.
    before: PathBuf,
}

const KINDS: [&str; 4] = ["claim", "renewal", "outcome", "recovery"];

fn cuts_of(kind: &str) -> String {
    format!("cuts of a {kind}")
}

impl Push {
    fn all() -> Vec<Self> {
        KINDS.into_iter().map(Self::of).collect()
    }

    fn of(kind: &'static str) -> Self {
        let scene = REMOTE.iter().find(|s| s.leased == (kind == "recovery") && !s.reused).unwrap();
        let world = World::new(scene).unwrap();
        let (origin, before) = (world.branch_dir(), world.base().join("before"));
        copy(&origin, &before);
        world.tick().output().unwrap();
        let id = |name: &str| world.git(&["rev-parse", name]);
        let (old, new) = match kind {
            "claim" => (id("work~2"), id("work~1")),
            "renewal" => (id("work~1"), renewal(&world)),
            "outcome" => (id("work~1"), id("work")),
            _ => (id("work~1"), id("work")),
        };
        // What a push needs of the remote is below the commit that it replaces.
        let push = ["push", "-qf", before.to_str().unwrap(), &format!("{old}:refs/heads/work")];
        let pushed = world.git_at(&world.git_dir(), &push);
        assert!(pushed.status.success(), "{pushed:?}");
        Self { kind, world, old, new, before }
    }

    fn reset(&self) {
        std::fs::remove_dir_all(self.world.branch_dir()).unwrap();
        copy(&self.before, &self.world.branch_dir());
    }

    /// Makes the push; the verdict, and whether the remote has it.
    fn make(&self) -> (Result<Swap, String>, String) {
        let repo = Repository::discover(&self.world.work_dir(), None).unwrap();
        let store = repo.open_remote("origin", false).unwrap();
        let by = Signature { name: "Ada".into(), email: "ada@example.com".into(), seconds: 1 };
        let id = |text: &str| text.parse::<ObjectId>().unwrap();
        let (old, new) = (Expected::At(id(&self.old)), id(&self.new));
        let verdict = swap::compare_and_swap(&*store, &RefName::branch("work"), old, new, &by, "aynig: cut");
        (verdict.map_err(|e| e.to_string()), self.world.git(&["rev-parse", "refs/heads/work"]))
    }
}

/// A renewal, as a runner writes it: the lease's message again, on top of it.
fn renewal(world: &World) -> String {
    let message = world.git(&["log", "-1", "--format=%B", "work~1"]);
    let args = ["-c", "user.name=Ada", "-c", "user.email=a@b", "commit-tree", "-m", &message, "-p"];
    let (lease, tree) = (world.git(&["rev-parse", "work~1"]), world.git(&["rev-parse", "work~1^{tree}"]));
    let made = world.git_at(&world.git_dir(), &[&args[..], &[&lease, &tree]].concat());
    String::from_utf8(made.stdout).unwrap().trim_end().to_owned()
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    assert!(std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// Runs jobs on some threads; what they return, in any order.
fn all<J: Send, R: Send>(jobs: Vec<J>, threads: usize, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    let (queue, found) = (Mutex::new(jobs.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(job) = queue.lock().unwrap().next() else { break };
                    let done = work(job);
                    found.lock().unwrap().push(done);
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn swaps() {
    let what = "each push of a run cut after each byte, both ways";
    let sweep = Sweep::begin("cut-swaps", what, "verdict = truth in 100 %, at most 1 % of them unknown");
    // Each push is some hundred bytes long, each way.
    KINDS.iter().for_each(|kind| sweep.at_least(&cuts_of(kind), 12, 400));
    sweep.at_least("of them moved the remote", 0, 40);
    let dice = sweep.dice();
    let found = all(Push::all(), 4, |push| {
        let mut dice = dice.of(push.kind.len() as u64);
        let relay = Relay::new(&push.world);
        push.reset();
        let lengths = relay.lengths(|| drop(push.make()));
        let ways = [Way::Up, Way::Down];
        let points = ways.into_iter().zip(lengths).flat_map(|(way, n)| (0..=n).map(move |at| (way, at)));
        let points = if full() { points.collect() } else { dice.sample(points.collect(), 12) };
        let (mut moved, mut unknown, mut again, mut bad, count) = (0, 0, 0, Vec::new(), points.len());
        for (way, at) in points {
            push.reset();
            relay.cut(way, at, 1);
            let (verdict, truth) = push.make();
            let right = match &verdict {
                Ok(Swap::Won) => truth == push.new,
                Ok(Swap::Lost { .. }) => false,
                // Nothing wrong was said; how many say nothing is judged below.
                Ok(Swap::Unknown { .. }) => true,
                Err(_) if truth == push.old => true,
                // It moved after it was asked: what is tried again finds out.
                Err(_) => {
                    again += 1;
                    truth == push.new && push.make().0 == Ok(Swap::Won)
                }
            };
            moved += u64::from(truth == push.new);
            unknown += u64::from(matches!(verdict, Ok(Swap::Unknown { .. })));
            if !right {
                bad.push(format!(
                    "{} cut {way:?} after {at}: {verdict:?}, the remote has {truth}",
                    push.kind
                ));
            }
        }
        push.reset();
        (push.kind, count as u64, [moved, unknown, again], bad)
    });
    let mut cuts = 0;
    for (kind, count, [moved, unknown, again], bad) in found {
        sweep.count(&cuts_of(kind), count);
        cuts += count;
        sweep.count("of them moved the remote", moved);
        sweep.count("verdicts unknown", unknown);
        sweep.count("settled by trying again", again);
        bad.into_iter().for_each(|bad| sweep.bad(bad));
    }
    let unknown = sweep.counted("verdicts unknown");
    if unknown * 100 > cuts {
        sweep.bad(format!("{unknown} of {cuts} verdicts are unknown"));
    }
    sweep.end();
}

/// A tick, one push of which breaks.
#[derive(Clone, Copy)]
struct Broken {
    scene: usize,
    way: Way,
    at: usize,
    nth: usize,
}

fn tick(broken: Broken) -> (Duration, Vec<String>) {
    let world = World::new(&REMOTE[broken.scene]).unwrap();
    let relay = Relay::new(&world);
    relay.cut(broken.way, broken.at, broken.nth);
    let started = Instant::now();
    let output = world.tick().output().unwrap();
    let took = started.elapsed();
    let home = world.life().repo.home();
    std::fs::write(home.join("stdout"), &output.stdout).unwrap();
    std::fs::write(home.join("stderr"), &output.stderr).unwrap();
    // A process that still moves the remote does it before the next look.
    std::thread::sleep(Duration::from_millis(600));
    let mut bad = judge::truthful(&world, output.status.code());
    relay.remove();
    bad.extend(judge::settle(&world));
    let runs = world.noted("runs");
    if bad.is_empty() && broken.way != Way::Hang && runs.len() > 1 && !world.scene.leased {
        bad.push(format!("K11: it ran {} times", runs.len()));
    }
    let Broken { way, at, nth, .. } = broken;
    let name = format!("{} push {nth} {way:?} after {at}", world.scene.name);
    (
        took,
        bad.into_iter()
            .map(|what| format!("{name}: {what}").replace(&*world.base().to_string_lossy(), ""))
            .collect(),
    )
}

/// Where the pushes of a whole tick are cut: claim and outcome, renewal, recovery.
fn places(every: usize) -> Vec<Broken> {
    let kinds = [("remote-fresh", 1), ("remote-fresh", 2), ("remote-slow", 2), ("remote-leased", 1)];
    let mut all = Vec::new();
    for (name, nth) in kinds {
        let Some(scene) = REMOTE.iter().position(|s| s.name == name) else { continue };
        for way in [Way::Up, Way::Down, Way::Late] {
            all.extend((0..900).step_by(every).map(|at| Broken { scene, way, at, nth }));
        }
    }
    all
}

#[test]
fn ticks() {
    let what = "whole ticks, one push of each cut; also where the remote moves only afterwards";
    let sweep = Sweep::begin("cut-ticks", what, "432 ticks, verdict = truth in 100 %");
    sweep.at_least("ticks", 8, 432);
    let points = if full() { places(25) } else { sweep.dice().sample(places(1), 8) };
    for (_, bad) in all(points, 3, tick) {
        sweep.count("ticks", 1);
        bad.into_iter().for_each(|bad| sweep.bad(bad));
    }
    sweep.end();
}

#[test]
fn hangs() {
    let what = "a remote that stops in the middle of a push and says nothing more";
    let sweep = Sweep::begin("cut-hangs", what, "20 positions, each ended by its deadline");
    sweep.at_least("hangs", 2, 20);
    let scene = REMOTE.iter().position(|s| s.name == "remote-fresh").unwrap();
    let places = (0..20).map(|n| Broken { scene, way: Way::Hang, at: n * 45, nth: 1 + n % 2 }).collect();
    let points = if full() { places } else { sweep.dice().sample(places, 2) };
    for (took, bad) in all(points, 5, tick) {
        sweep.count("hangs", 1);
        bad.into_iter().for_each(|bad| sweep.bad(bad));
        // The lease of these ticks is 8 s; a child has 5 s to end.
        let late = sweep.size(180, 20) as u64;
        if took > Duration::from_secs(late) {
            sweep.bad(format!("K31: a tick with a lease of 8 s took {took:?}"));
        }
    }
    sweep.end();
}

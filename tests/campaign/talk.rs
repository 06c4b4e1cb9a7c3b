//! Messages, questions, answers and pauses, while the verb or the tick that makes them is killed at any call.
//!
//! After each point the same verb comes by again, later, as the caller that was cut off would do it, and ticks until
//! the branch rests. Then each message is on its branch exactly once and its run heard it, an answer was heard once,
//! what was paused ran once, and nothing is left in the way of a process. `AYNIG_POINT=deliver/rename:3:runner=KILL`
//! replays one point, `AYNIG_CASES=send,take` takes some, `AYNIG_SECONDS=600` begins no point after that. For K42,
//! K43, K46, K46a, K47, K47a, K48, K49, K49a, K50.

mod cases;

use super::judge;
use super::points::name_of;
use super::row::{Dice, Sweep, full, seconds};
use super::scene::Saved;
use super::support::faketime::faketime;
use super::support::life::{Done, Life, done};
use super::support::net::Net;
use super::trace::{self, Fault, Point, run};
use cases::{ANSWER, ASKS, CASES, Case, HEARD, IDLE, TAKEN};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

enum Place {
    Here(Life),
    There(Net),
}

struct World {
    place: Place,
    saved: Option<Saved>,
    /// What makes ten minutes go by: the library, or nothing.
    faketime: Option<&'static str>,
    /// How many verbs have come by, each ten minutes after the one before: so what one of them holds ends for the next.
    came_by: Cell<u32>,
}

impl World {
    fn new(case: &Case) -> Self {
        let ran = "echo \"$AYNIG_RUN_ID\" >>\"$T/finished\"";
        let takes = format!("git aynig inbox --take {TAKEN} >/dev/null || exit 1");
        let commands = [
            ("build", format!("{ran}\n{IDLE}")),
            ("rework", format!("{HEARD}\n{ran}\n{IDLE}")),
            ("takes", format!("{takes}\necho {TAKEN} >>\"$T/heard\"\n{ran}\n{IDLE}")),
            ("asks", ASKS.to_owned()),
            ("go", format!("{ran}\necho 'SET_STATE {{\"state\":\"done\"}}'")),
        ];
        let commands: Vec<(&str, &str)> =
            commands.iter().map(|(state, script)| (*state, script.as_str())).collect();
        let place =
            if case.remote { Place::There(Net::new(&commands)) } else { Place::Here(Life::new(&commands)) };
        let mut world = Self { place, saved: None, faketime: faketime(), came_by: Cell::new(0) };
        let life = world.life();
        life.git(&["config", "gc.auto", "0"]);
        // A user's work, beside the branch.
        life.git(&["checkout", "-q", "-b", "theirs"]);
        life.write("theirs", "done\n");
        life.git(&["add", "theirs"]);
        life.git(&["commit", "-qm", "theirs"]);
        life.git(&["checkout", "-q", "main"]);
        if let Place::There(net) = &world.place {
            life.git(&["push", "-q", "origin", "theirs"]);
            net.machine("a");
        }
        (case.prepare)(&world);
        world.saved = Some(Saved::of(world.base()));
        world
    }

    fn life(&self) -> &Life {
        match &self.place {
            Place::Here(life) => life,
            Place::There(net) => &net.life,
        }
    }

    fn base(&self) -> PathBuf {
        self.life().repo.home().parent().unwrap().to_owned()
    }

    fn reset(&self) {
        self.saved.as_ref().unwrap().restore();
        self.came_by.set(0);
    }

    /// Where the caller that speaks and ticks stands.
    fn dir(&self) -> PathBuf {
        match &self.place {
            Place::Here(life) => life.repo.path(),
            Place::There(_) => self.base().join("a"),
        }
    }

    /// The Git directory that the branch and its messages are in.
    fn branch_dir(&self) -> PathBuf {
        match &self.place {
            Place::Here(life) => life.repo.git_dir(),
            Place::There(net) => net.origin(),
        }
    }

    fn event(&self, state: &str, more: &str) {
        match &self.place {
            Place::Here(life) => drop(life.event("work", state, more)),
            Place::There(net) => drop(net.event("work", state, more)),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let lease: &[&str] = match (&self.faketime, &self.place) {
            _ if args[0] != "tick" => &[],
            (Some(_), Place::Here(_)) => &[],
            (Some(_), Place::There(_)) => &["--lease", "8s"],
            (None, _) => &["--lease", "3s"],
        };
        let remote: &[&str] = match &self.place {
            Place::Here(_) => &[],
            Place::There(_) => &["--remote", "origin"],
        };
        let mut command = self.life().aynig(&[&args[..1], remote, lease, &args[1..]].concat());
        command.current_dir(self.dir());
        command
    }

    /// The verb, ten minutes later.
    fn later(&self, args: &[&str]) -> Done {
        done(self.age(&mut self.command(args)).output().unwrap())
    }

    fn age<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        self.came_by.set(self.came_by.get() + 1);
        if let Some(library) = &self.faketime {
            command
                .env("LD_PRELOAD", library)
                .env("FAKETIME", format!("+{}s", 600 * self.came_by.get()))
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command
    }

    fn ok(&self, args: &[&str]) {
        done(self.command(args).output().unwrap()).expect(0);
    }

    fn git(&self, args: &[&str]) -> String {
        let output =
            self.life().repo.command("git").current_dir(self.branch_dir()).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn theirs(&self) -> &'static str {
        if matches!(self.place, Place::There(_)) { "origin/theirs" } else { "theirs" }
    }

    fn state(&self) -> String {
        self.git(&["log", "-1", "--format=%(trailers:key=dwp-state,valueonly,separator=)", "refs/heads/work"])
    }

    /// The same verb again, until it ends so.
    fn insists(&self, args: &[&str], codes: &[i32]) -> Vec<String> {
        let mut said = self.later(args);
        for _ in 0..3 {
            if said.code.is_some_and(|code| codes.contains(&code)) {
                return Vec::new();
            }
            said = self.later(args);
        }
        vec![format!("V11: {}: {said:?}", args[0])]
    }

    /// Ticks, and asks again where a run was cut off, until the branch rests there.
    fn rests(&self, end: &str) -> Vec<String> {
        let mut said = Vec::new();
        for _ in 0..8 {
            said.push(self.later(&["tick", "work"]));
            let state = self.state();
            if state == end && self.waiting().is_empty() {
                return Vec::new();
            }
            if state == "working" && self.faketime.is_none() {
                // Its runner was killed.
                let remote = matches!(self.place, Place::There(_));
                std::thread::sleep(std::time::Duration::from_millis(if remote { 33_500 } else { 3_500 }));
            }
            if state == "stalled" {
                let mut retry = self.life().aynig(&["retry", "work", "--no-tick"]);
                if let Place::There(_) = self.place {
                    retry = self.life().aynig(&["retry", "work", "--no-tick", "--remote", "origin"]);
                }
                said.push(done(retry.current_dir(self.dir()).output().unwrap()));
            }
        }
        vec![format!("V11: ends as '{}', {:?} wait: {said:?}", self.state(), self.waiting())]
    }

    fn waiting(&self) -> Vec<String> {
        self.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/inbox"])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// How often a message is on the branch.
    fn brought(&self, message: &str) -> usize {
        let parents = self.git(&["log", "--first-parent", "--format=%P", "refs/heads/work"]);
        parents.lines().filter(|line| line.split(' ').skip(1).any(|parent| parent == message)).count()
    }

    /// Has everything removed that no process needs any more; what is there all the same.
    fn collect(&self) -> Option<String> {
        let mut gc = self.life().aynig(&["gc", "-q"]);
        let gc = done(self.age(gc.current_dir(self.dir())).output().unwrap());
        if gc.code != Some(0) {
            return Some(format!("K44: gc fails: {gc:?}"));
        }
        let mut refs = self.life().repo.command("git");
        let refs = refs.current_dir(self.dir()).args(["for-each-ref", "refs/aynig/run"]).output().unwrap();
        let left = String::from_utf8_lossy(&refs.stdout).into_owned();
        // Without the library the ref of a run may be as young as one that has just been taken.
        (self.faketime.is_some() && !left.is_empty())
            .then(|| format!("K44: runs that are over have a ref: {left}"))
    }

    /// What is wrong once the branch rests.
    fn judge(&self, case: &Case) -> Vec<String> {
        let mut bad = Vec::new();
        let all = self.git(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/aynig"]);
        let at = |name: String| {
            all.lines()
                .find_map(|line| line.split_once(' ').filter(|(_, found)| *found == name))
                .map(|(id, _)| id)
        };
        let heard = self.life().said("heard");
        for id in case.brings {
            match at(format!("refs/aynig/heard/{id}")) {
                None => bad.push(format!("K46a: {id} is not among what was heard: {all}")),
                Some(message) if self.brought(message) != 1 => {
                    bad.push(format!("K47a: {id} is {} times on the branch", self.brought(message)));
                }
                Some(_) => {}
            }
            if !heard.lines().any(|line| line == *id) {
                bad.push(format!("K47: no run heard {id}: {heard:?}"));
            }
        }
        // An answer has the id of its question: of all that was heard, each once.
        for line in all.lines().filter(|line| line.contains(" refs/aynig/heard/")) {
            let message = line.split(' ').next().unwrap_or_default();
            if self.brought(message) != 1 {
                bad.push(format!("K47a: {line} is {} times on the branch", self.brought(message)));
            }
        }
        for left in ["refs/aynig/inbox/", "refs/aynig/paused/"] {
            if all.contains(left) {
                bad.push(format!("left: {all}"));
            }
        }
        bad.extend(self.collect());
        // Between the answer's ref and the question's a kill leaves the latter: it was answered all the same.
        if (case.name.ends_with("answer") || case.name == "approve")
            && all.contains("refs/aynig/asked/")
            && self.later(ANSWER).code == Some(0)
        {
            bad.push(format!("K49a: the question is answered twice: {all}"));
        }
        let runs = self.life().said("finished").lines().count();
        let once =
            ["pause", "resume", "send", "answer", "approve", "stop", "resume-stopped", "remote-answer"];
        if once.contains(&case.name) && runs != 1 {
            bad.push(format!("V2: it ran {runs} times"));
        }
        bad.extend(judge::locks(&self.branch_dir()).into_iter().map(|lock| format!("K43: left: {lock}")));
        let fsck = self
            .life()
            .repo
            .command("git")
            .current_dir(self.branch_dir())
            .args(["fsck", "--strict"])
            .output();
        if !fsck.is_ok_and(|output| output.status.success()) {
            bad.push("V13: fsck".to_owned());
        }
        bad
    }
}

fn faults(point: &Point) -> &'static [Fault] {
    if point.is_theirs() || point.call == "read" { &[] } else { &[Fault::Kill, Fault::KillTree] }
}

#[derive(Default)]
struct Found {
    counts: BTreeMap<String, u64>,
    bad: Vec<String>,
}

fn disturb(world: &World, case: &Case, point: &Point, fault: Fault, found: &mut Found) {
    let trace = run(&world.command(case.ours), Some((point, fault)));
    let mut count = |what: String| *found.counts.entry(what).or_default() += 1;
    let Some(object) = trace.hit else { return count("not reached".to_owned()) };
    count("points".to_owned());
    count(format!("{}: points", case.name));
    let mut bad = Vec::new();
    if trace.hung {
        bad.push("V16: it hung".to_owned());
    }
    bad.extend(unwedge(world));
    bad.extend((case.again)(world));
    bad.extend(world.rests(case.end));
    bad.extend(world.judge(case));
    let base = world.base().to_string_lossy().into_owned();
    for what in bad {
        let line = format!("AYNIG_POINT='{}/{point}={}' ({object}): {what}", case.name, name_of(fault));
        let line = line.replace(&base, "");
        eprintln!("VIOLATION: {line}");
        found.bad.push(line);
    }
}

/// Locks on a remote are not ours to remove (K43): its administrator removes them.
fn unwedge(world: &World) -> Vec<String> {
    let Place::There(net) = &world.place else { return Vec::new() };
    for lock in judge::locks(&net.origin()) {
        let _ = std::fs::remove_file(net.origin().join(lock));
    }
    Vec::new()
}

/// What is left to do of one case.
struct Job {
    case: &'static Case,
    world: World,
    points: Vec<(Point, Fault)>,
    of: usize,
}

/// How many points of a case are gone through before those of another.
const SLICE: usize = 5;

impl Job {
    /// The case undisturbed, and its points in an order of the dice. `None` where none of it is wanted.
    fn begin(case: &'static Case, mut dice: Dice, only: Option<&str>, found: &mut Found) -> Option<Self> {
        let wanted = only.map(|only| only.split_once('/').unwrap());
        let named =
            std::env::var("AYNIG_CASES").map_or(true, |names| names.split(',').any(|name| name == case.name));
        if wanted.is_some_and(|(name, _)| name != case.name) || !named {
            return None;
        }
        let world = World::new(case);
        world.reset();
        let calm = run(&world.command(case.ours), None);
        let mut wrong =
            if calm.code == Some(0) { Vec::new() } else { vec![format!("ends with {:?}", calm.code)] };
        wrong.extend((case.again)(&world));
        wrong.extend(world.rests(case.end));
        wrong.extend(world.judge(case));
        found.bad.extend(wrong.into_iter().map(|what| format!("{}: undisturbed: {what}", case.name)));
        let calls = calm.calls.into_iter().map(|(point, _)| point);
        let mut points: Vec<(Point, Fault)> =
            calls.flat_map(|point| faults(&point).iter().map(move |fault| (point.clone(), *fault))).collect();
        match wanted {
            Some((_, name)) => points.retain(|(point, fault)| format!("{point}={}", name_of(*fault)) == name),
            // As many of each as make a thousand; a tick has far more of them than a verb.
            None if full() => points = dice.sample(points, 180),
            None => points = dice.sample(points, 1),
        }
        dice.shuffle(&mut points);
        let of = points.len();
        Some(Self { case, world, points, of })
    }

    /// Goes through some of its points, unless it is time to end; true where there are more.
    fn go_on(&mut self, until: Option<Instant>, found: &mut Found) -> bool {
        for _ in 0..SLICE {
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            let Some((point, fault)) = self.points.pop() else { break };
            self.world.reset();
            disturb(&self.world, self.case, &point, fault, found);
        }
        eprintln!("{}: {} of {} points", self.case.name, self.of - self.points.len(), self.of);
        !self.points.is_empty()
    }
}

/// Goes through the points of these cases, some of each in turn, so that a sweep that is to end by a time counted of all.
fn go_through(cases: &[&'static Case], dice: &Dice, only: Option<&str>) -> Vec<Found> {
    let until = seconds().map(|seconds| Instant::now() + seconds);
    let begin = Mutex::new(cases.iter().enumerate());
    let (queue, all) = (Mutex::new(VecDeque::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut found = Found::default();
                loop {
                    let next = begin.lock().unwrap().next();
                    let job = match next {
                        Some((n, case)) => Job::begin(case, dice.of(n as u64), only, &mut found),
                        None => match queue.lock().unwrap().pop_front() {
                            Some(job) => Some(job),
                            None => break,
                        },
                    };
                    let Some(mut job) = job else { continue };
                    if job.go_on(until, &mut found) {
                        queue.lock().unwrap().push_back(job);
                    }
                }
                all.lock().unwrap().push(found);
            });
        }
    });
    all.into_inner().unwrap()
}

#[test]
fn said_once() {
    let what = "SIGKILL before each mutating call of send, deliver, take, ask, answer, approve, pause, resume, with --stop and without; on a remote too";
    let sweep = Sweep::begin("talk", what, ">= 1,000 points: 0 lost, 0 doubled");
    if let Some(why) = trace::unable() {
        return sweep.skip(why);
    }
    let only = std::env::var("AYNIG_POINT").ok();
    if only.is_none() && std::env::var_os("AYNIG_CASES").is_none() {
        sweep.at_least("points", 6, 1000);
    }
    // Of those on a remote, whose leases run on for long, a sample takes one.
    let (there, here): (Vec<&Case>, Vec<&Case>) = CASES.iter().partition(|case| case.remote);
    let asked_for = full() || only.is_some() || std::env::var_os("AYNIG_CASES").is_some();
    let mut cases = sweep.dice().sample(there, if asked_for { CASES.len() } else { 1 });
    cases.extend(here);
    for found in go_through(&cases, &sweep.dice(), only.as_deref()) {
        found.counts.iter().for_each(|(what, n)| sweep.count(what, *n));
        found.bad.iter().for_each(|bad| sweep.bad(bad.as_str()));
    }
    sweep.end();
}

//! Many runners on one remote for minutes, with everything going wrong at once, judged by what the remote accepted.
//!
//! Promises V1-V8 and V11 (K8, K11, K17, K18, K24, K26, K31, K32): ten runners in five clones answer the triggers of
//! a person who also pushes on top, amends, rewinds and deletes, while runners are killed, paused, and started
//! again with clocks that are off. The remote's own ledger of moves is judged, every finished command's work is an
//! outcome or an attempt, and once the faults stop every trigger is settled.

use super::row::{Dice, Sweep, full};
use super::support::faketime::faketime;
use super::support::judge::{Ledger, commits, events, judge};
use super::support::life::Running;
use super::support::net::{Machine, Net};
use super::support::skipped;
use aynig::protocol::event::{Event, RECOVERY_ID};
use aynig::protocol::id::ObjectId;
use aynig::protocol::invariants::{Move, Recorded};
use aynig::protocol::message::Message;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::Command;
use std::time::{Duration, Instant};

const RUNNERS: usize = 10;
const CLONES: usize = 5;
const SKEWS: [&str; 10] = ["", "", "", "", "+1s", "-1s", "+3s", "-3s", "+8s", "-8s"];
/// How long everything may take to settle once the faults stop: leases, skew, recovery, retries.
const SETTLE: Duration = Duration::from_secs(90);

/// Each step takes a moment, so that faults meet it, and leaves its mark.
const STEP: &str = "sleep 0.$(($$ % 9)); [ $(($$ % 8)) != 0 ] || sleep 3; echo \"$AYNIG_RUN_ID\" >>work\n\
    echo 'SET_STATE {\"state\":\"NEXT\"}'; echo \"$AYNIG_RUN_ID\" >>\"$T/finished\"";

struct Soak<'n> {
    sweep: &'n Sweep,
    dice: Dice,
    net: &'n Net,
    user: Machine<'n>,
    machines: &'n [Machine<'n>],
    runners: Vec<Running>,
    paused: Vec<Option<Instant>>,
    names: Vec<String>,
    triggers: usize,
}

fn git_of(net: &Net) -> Command {
    let mut git = net.life.repo.command("git");
    git.current_dir(net.origin());
    git
}

fn start(machine: &Machine<'_>, skew: &str) -> Running {
    let every = ["run", "--remote", "origin", "--every", "700ms", "--jobs", "2", "-q"];
    let mut command = machine.aynig(&every);
    command.args(["--lease", "4s", "--grace", "2s"]);
    if let (Some(library), false) = (faketime(), skew.is_empty()) {
        command.env("LD_PRELOAD", library).env("FAKETIME", skew).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
    let log = machine.dir.join(format!("../{}.log", machine.dir.file_name().unwrap().to_string_lossy()));
    Running::logging(command, &log)
}

/// What a head is, to the person.
fn state_of(net: &Net, head: &str) -> String {
    net.trailer(head, "dwp-state")
}

impl Soak<'_> {
    fn head(&self, name: &str) -> Option<String> {
        let output =
            git_of(self.net).args(["rev-parse", "-q", "--verify", &format!("refs/heads/{name}")]).output();
        let output = output.unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
    }

    /// A push of the person's: true where the remote took it.
    fn push(&self, name: &str, old: Option<&str>, new: &str) -> bool {
        let lease = format!("--force-with-lease=refs/heads/{name}:{}", old.unwrap_or_default());
        let spec = format!("{new}:refs/heads/{name}");
        let mut git = self.net.life.repo.command("git");
        git.current_dir(&self.user.dir).args(["push", "-q", &lease, "origin", &spec]);
        git.output().unwrap().status.success()
    }

    fn commit(&self, parent: &str, message: &str) -> String {
        self.user.git(&["commit-tree", "-m", message, "-p", parent, &format!("{parent}^{{tree}}")])
    }

    fn trigger(&mut self, name: &str) -> bool {
        let old = self.head(name);
        if old.is_some() {
            self.user.git(&["fetch", "-q", "origin"]);
        }
        let parent = old.clone().unwrap_or_else(|| self.net.rev("main"));
        let message = format!("go\n\ndwp-state: build\ndwp-n: {}\n", self.triggers);
        let new = self.commit(&parent, &message);
        let taken = self.push(name, old.as_deref(), &new);
        self.triggers += usize::from(taken);
        taken
    }

    /// One act of a person on some branch.
    fn act(&mut self) {
        let name = self.names[self.dice.below(self.names.len())].clone();
        let Some(head) = self.head(&name) else {
            let made = self.trigger(&name);
            return self.sweep.count("triggers", u64::from(made));
        };
        let busy = ["working", "build", "test"].contains(&&*state_of(self.net, &head));
        let roll = self.dice.below(100);
        if roll < if busy { 20 } else { 55 } {
            let made = self.trigger(&name);
            self.sweep.count("triggers", u64::from(made));
            return self.sweep.count("triggers over somebody's work", u64::from(made && busy));
        }
        self.user.git(&["fetch", "-q", "origin"]);
        let (what, new) = match roll {
            20..66 => ("pushes on top", Some(self.commit(&head, "a note\n"))),
            66..77 => ("amends", Some(self.commit(&format!("{head}~1"), "said otherwise\n"))),
            77..88 => {
                let back = 1 + self.dice.below(4);
                let to = self.net.git(&["rev-list", "--first-parent", "-n5", &head, "^main"]);
                ("rewinds", to.lines().nth(back).map(str::to_owned))
            }
            88..94 => ("deletes", Some(String::new())),
            _ => return,
        };
        if let Some(new) = new
            && self.push(&name, Some(&head), &new)
        {
            self.sweep.count(what, 1);
        }
    }

    /// One fault of a runner.
    fn fault(&mut self, until: Instant) {
        let victim = self.dice.below(self.runners.len());
        if self.paused[victim].is_some() {
            return;
        }
        // Without the library every clock is right.
        let skew = SKEWS[self.dice.below(SKEWS.len())];
        let skew = if faketime().is_some() { skew } else { "" };
        if self.dice.below(3) == 0 {
            self.runners[victim].signal(Signal::SIGSTOP);
            let length = Duration::from_millis(1000 + self.dice.below(9000) as u64);
            self.paused[victim] = Some((Instant::now() + length).min(until));
            return self.sweep.count("pauses", 1);
        }
        self.runners[victim].signal(Signal::SIGKILL);
        self.runners[victim] = start(&self.machines[victim % CLONES], skew);
        self.sweep.count("kills", 1);
        self.sweep.count("starts with a wrong clock", u64::from(!skew.is_empty()));
    }

    fn wake(&mut self, all: bool) {
        for (runner, until) in self.runners.iter().zip(&mut self.paused) {
            if until.is_some_and(|until| all || until < Instant::now()) {
                runner.signal(Signal::SIGCONT);
                *until = None;
            }
        }
    }

    /// Branches that are not settled yet, with their states.
    fn open(&self) -> Vec<String> {
        let format = "--format=%(refname:short) %(trailers:key=dwp-state,valueonly,separator=)";
        let all = self.net.git(&["for-each-ref", format, "refs/heads/b*"]);
        let open = ["working", "build", "test"];
        all.lines()
            .filter(|l| l.split(' ').nth(1).is_some_and(|s| open.contains(&s)))
            .map(str::to_owned)
            .collect()
    }
}

/// The faults and the person, until the time and the triggers are used up.
fn storm(soak: &mut Soak<'_>, length: Duration, triggers: usize) {
    let started = Instant::now();
    let (mut acted, mut faulted) = (started, started);
    let patience = length + SETTLE;
    while started.elapsed() < length || soak.triggers < triggers && started.elapsed() < patience {
        soak.wake(false);
        // Triggers come evenly over the whole time; other acts between them.
        let due = triggers as f64 * started.elapsed().as_secs_f64() / length.as_secs_f64();
        if acted.elapsed() > Duration::from_millis(700) || (soak.triggers as f64) < due {
            soak.act();
            acted = Instant::now();
        }
        if faulted.elapsed() > Duration::from_millis(1500) {
            soak.fault(started + length);
            faulted = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    soak.wake(true);
}

/// Ends the faults, and waits for the last trigger.
fn settle(soak: &mut Soak<'_>) {
    for runner in soak.runners.drain(..) {
        runner.signal(Signal::SIGTERM);
        let ended = runner.done();
        // One that was started a moment ago has no handler yet, and is ended by the signal itself.
        let unbegun = ended.signal == Some(Signal::SIGTERM as i32);
        if !unbegun && !matches!(ended.code, Some(143 | 0 | 1 | 2 | 3 | 75)) {
            soak.sweep.bad(format!("a runner ended with {:?}, signal {:?}", ended.code, ended.signal));
        }
    }
    soak.runners = (0..RUNNERS).map(|n| start(&soak.machines[n % CLONES], "")).collect();
    let until = Instant::now() + SETTLE;
    while !soak.open().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(200));
    }
    for left in soak.open() {
        soak.sweep.bad(format!("never settled: {left}"));
    }
    for runner in soak.runners.drain(..) {
        runner.signal(Signal::SIGTERM);
        runner.done();
    }
}

/// What became of each trigger that was ever a head: counted, and none is left without an answer.
fn triggers(sweep: &Sweep, moves: &BTreeMap<String, Vec<Move>>, all: &HashMap<ObjectId, Recorded>) {
    let event = |id: ObjectId| all.get(&id).and_then(|c| Event::of(Message::parse(&c.message)));
    for (name, moves) in moves.iter().filter(|(name, _)| name.starts_with("refs/heads/b")) {
        for (n, step) in moves.iter().enumerate() {
            let Some(trigger) = step.new else { continue };
            let asked = event(trigger);
            let state = asked.as_ref().and_then(|e| e.state_name()).map(|s| s.as_str().to_owned());
            if !matches!(state.as_deref(), Some("build" | "test")) {
                continue;
            }
            // The next moves: a lease of its own and renewals, then an end or a person.
            let next = moves[n + 1..].iter().find(|m| {
                !m.new.and_then(event).is_some_and(|e| e.is_working() && e.trigger() == Some(trigger))
            });
            let what = match next {
                None => {
                    sweep.bad(format!("{name}: {trigger} was never settled"));
                    continue;
                }
                Some(m) => match m.new.and_then(event) {
                    Some(e) if e.trigger() != Some(trigger) => "replaced by the person",
                    None => "replaced by the person",
                    Some(e) if e.state_name().is_some_and(|s| s.as_str() == "stalled") => "stalled",
                    Some(_) => "answered",
                },
            };
            sweep.count(what, 1);
        }
    }
}

/// V8: the work of every command that finished is on the remote, or kept where it ran.
fn finished(sweep: &Sweep, net: &Net, machines: &[Machine<'_>], all: &HashMap<ObjectId, Recorded>) {
    let written: BTreeSet<String> = all
        .values()
        .filter_map(|c| Event::of(Message::parse(&c.message)))
        .filter(|e| !e.is_working() && e.text(RECOVERY_ID).is_none())
        .filter_map(|e| e.run_id().map(str::to_owned))
        .collect();
    let mut kept = net.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts/"]);
    for machine in machines {
        // Whatever a killed runner left in a slot is kept by the next one that looks.
        machine.run(&["gc"]);
        kept += "\n";
        kept += &machine.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/attempts/"]);
    }
    for run in net.life.said("finished").lines() {
        if written.contains(run) {
            sweep.count("finished commands with an outcome", 1);
        } else if kept.contains(run) {
            sweep.count("finished commands with an attempt", 1);
        } else {
            sweep.bad(format!("V8: run {run} finished, and its work is nowhere"));
        }
    }
}

/// K8, K11, K17, K18, K24, K26, K31, K32
#[test]
fn everything_at_once() {
    let sweep = Sweep::begin(
        "soak",
        "10 runners, 5 clones: kills, pauses, wrong clocks, pushes on top, amends, rewinds, deletes",
        "10 minutes, 500 triggers: 0 violations of V1-V8, every trigger settled",
    );
    sweep.at_least("triggers", 8, 500);
    sweep.at_least("moves accepted", 8, 1500);
    sweep.at_least("answered", 1, 250);
    sweep.at_least("finished commands with an outcome", 1, 250);
    for (fault, whole) in [
        ("kills", 100),
        ("pauses", 50),
        ("amends", 20),
        ("rewinds", 20),
        ("deletes", 10),
        ("pushes on top", 20),
    ] {
        sweep.at_least(fault, 0, whole);
    }
    if faketime().is_none() {
        skipped("runners with a wrong clock: libfaketime is not installed");
    }
    let steps = [("build", STEP.replace("NEXT", "test")), ("test", STEP.replace("NEXT", "done"))];
    let net = Net::new(&steps.each_ref().map(|(state, script)| (*state, script.as_str())));
    net.git(&["config", "gc.auto", "0"]);
    let ledger = Ledger::keep(&net.origin(), &net.life.shared().join("ledger"));
    let machines: Vec<_> = (0..CLONES).map(|n| net.machine(&format!("m{n}"))).collect();
    let names: Vec<String> = (0..sweep.size(6, 30)).map(|n| format!("b{n:02}")).collect();
    events(git_of(&net), "refs/heads/main^0", &names, "dwp-state: build");
    let runners = (0..RUNNERS).map(|n| start(&machines[n % CLONES], "")).collect();
    sweep.count("triggers", names.len() as u64);
    let mut soak = Soak {
        sweep: &sweep,
        dice: sweep.dice(),
        net: &net,
        user: net.machine("user"),
        machines: &machines,
        runners,
        paused: vec![None; RUNNERS],
        triggers: names.len(),
        names,
    };
    let seconds = if full() { 600 } else { 6 };
    let target = sweep.size(8, 500);
    storm(&mut soak, Duration::from_secs(seconds), target);
    settle(&mut soak);
    let all = commits(git_of(&net));
    let moves = ledger.moves();
    sweep.count("moves accepted", moves.values().map(|m| m.len() as u64).sum());
    for (name, violation) in judge(&moves, &all) {
        sweep.bad(format!("{name}: {violation}"));
    }
    triggers(&sweep, &moves, &all);
    finished(&sweep, &net, &machines, &all);
    net.git(&["fsck", "--strict", "--no-dangling"]);
    machines.iter().for_each(|m| drop(m.git(&["fsck", "--strict", "--no-dangling"])));
    sweep.end();
}

//! Many ticks at once: one of them executes each branch, and all others say that they do not.
//!
//! Promises K11, K14, K32 (V1, V2, V10): in every round each trigger got exactly one command, one lease and one
//! outcome; every process that won nothing said so for every branch that it was asked for, and ended with 3.
//! The winners' commands are held until then, so no process is late by chance. Each process is asked for several
//! branches, and all for the round's hot one. `pairs` is fault 13: two clones
//! with the same runner id whose clocks stand still at the same second.

use super::row::Sweep;
use super::support::Repo;
use super::support::faketime::faketime;
use super::support::judge::{commits, events, judge, moves};
use super::support::life::{Done, Gate, Life, done};
use super::support::net::{Machine, Net};
use aynig::protocol::invariants::Move;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SCRIPT: &str = "echo \"$AYNIG_BRANCH $PPID\" >>\"$T/runs\"; read x <\"$T/gate\"; echo x >>done\n\
    echo 'SET_STATE {\"state\":\"next\"}'";
/// No round of these takes so long.
const ROUND: Duration = Duration::from_secs(240);

/// Where a round takes place.
enum Arena {
    Local(Life),
    Remote(Net),
}

impl Arena {
    fn new(remote: bool, reftable: bool) -> Self {
        if !remote {
            let kind = if reftable { Repo::build().reftable() } else { Repo::build() };
            return Self::Local(Life::of(kind, &[("build", SCRIPT)]));
        }
        let net = Net::new(&[("build", SCRIPT)]);
        if reftable {
            net.git(&["refs", "migrate", "--ref-format=reftable"]);
        }
        net.git(&["config", "core.logAllRefUpdates", "always"]);
        net.git(&["config", "gc.auto", "0"]);
        Self::Remote(net)
    }

    fn life(&self) -> &Life {
        match self {
            Self::Local(life) => life,
            Self::Remote(net) => &net.life,
        }
    }

    /// Git where the branches are.
    fn git(&self) -> Command {
        let mut git = self.life().repo.command("git");
        if let Self::Remote(net) = self {
            git.current_dir(net.origin());
        }
        git
    }
}

fn names(count: usize, round: usize) -> Vec<String> {
    (0..count).map(|n| format!("r{round}/b{n:02}")).collect()
}

/// Starts all at once; `meanwhile` is called with how many are over until all are.
fn crowd(commands: Vec<Command>, mut meanwhile: impl FnMut(usize)) -> Vec<Done> {
    let over = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let all: Vec<_> = commands
            .into_iter()
            .map(|mut command| {
                let over = &over;
                scope.spawn(move || {
                    let said = done(command.output().unwrap());
                    over.fetch_add(1, Ordering::SeqCst);
                    said
                })
            })
            .collect();
        while over.load(Ordering::SeqCst) < all.len() {
            meanwhile(over.load(Ordering::SeqCst));
            std::thread::sleep(Duration::from_millis(10));
        }
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The process that runs a command, by its guardian.
fn runner_of(guardian: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{guardian}/status")).ok()?;
    Some(status.lines().find_map(|l| l.strip_prefix("PPid:"))?.trim().to_owned())
}

/// Holds the winners until every other process has spoken.
struct Holding<'a> {
    life: &'a Life,
    gate: Gate,
    names: &'a [String],
    ticks: usize,
    until: Instant,
    opened: bool,
    late: bool,
}

impl Holding<'_> {
    fn look(&mut self, over: usize) {
        if self.opened {
            return;
        }
        let said = self.life.said("runs");
        let own: Vec<&str> = said
            .lines()
            .filter_map(|l| l.split_once(' '))
            .filter(|(branch, _)| self.names.iter().any(|n| n == branch))
            .map(|(_, guardian)| guardian)
            .collect();
        let winners: BTreeSet<String> = own.iter().filter_map(|guardian| runner_of(guardian)).collect();
        self.late = Instant::now() > self.until;
        if self.late || own.len() >= self.names.len() && over + winners.len() >= self.ticks {
            self.names.iter().for_each(|_| self.gate.open());
            self.opened = true;
        }
    }
}

fn round(sweep: &Sweep, arena: &Arena, machines: &[Machine<'_>], round: usize, size: [usize; 3]) {
    let ([ticks, branches, each], began) = (size, Instant::now());
    let (life, names) = (arena.life(), names(branches, round));
    let what = format!("round {round}");
    events(arena.git(), "refs/heads/main^0", &names, "dwp-state: build");
    let _ = std::fs::remove_file(life.shared().join("gate"));
    let gate = life.gate("gate");
    let until = Instant::now() + ROUND;
    let mut holding = Holding { life, gate, names: &names, ticks, until, opened: false, late: false };
    let asked: Vec<_> = (0..ticks).map(|n| asked(&names, round, n, each)).collect();
    // As many slots as branches: those who hold one are held themselves.
    let jobs = branches.to_string();
    let commands = asked.iter().enumerate().map(|(n, asked)| {
        let mut args = vec!["tick", "--json", "--jobs", &jobs, "--lease", "10m"];
        if machines.is_empty() {
            return life.aynig(&[&*args, asked].concat());
        }
        args.extend(["--remote", "origin"]);
        machines[n % machines.len()].aynig(&[&*args, asked].concat())
    });
    let all = crowd(commands.collect(), |over| holding.look(over));
    if holding.late {
        sweep.bad(format!("{what}: those who did not win were not over within {ROUND:?}"));
    }
    answers(sweep, &what, &names, &all, &asked);
    history(sweep, arena, &what, &names);
    sweep.count("rounds", 1);
    sweep.count("ticks", ticks as u64);
    sweep.count("contests", asked.iter().map(|a| a.len() as u64).sum());
    eprintln!("{what}: {:.1} s", began.elapsed().as_secs_f64());
}

/// What one process is asked for: this round's hot branch, as every process is, and some others in turn.
fn asked(names: &[String], round: usize, process: usize, each: usize) -> Vec<&str> {
    let hot = &*names[round % names.len()];
    let others = (0..each - 1).map(|k| &*names[(process * (each - 1) + k) % names.len()]);
    std::iter::once(hot).chain(others.filter(|name| *name != hot)).collect()
}

/// What each process said of each branch.
fn answers(sweep: &Sweep, what: &str, names: &[String], all: &[Done], asked: &[Vec<&str>]) {
    let mut advanced: BTreeMap<String, usize> = BTreeMap::new();
    for (said, asked) in all.iter().zip(asked) {
        let (mut reports, mut won) = (0, 0);
        for line in said.stdout.lines() {
            let Ok(report) = serde_json::from_str::<serde_json::Value>(line) else {
                sweep.bad(format!("{what}: no JSON: {line}"));
                continue;
            };
            let branch = report["branch"].as_str().unwrap_or_default().to_owned();
            reports += 1;
            match (report["result"].as_str().unwrap_or_default(), report["exit_code"].as_i64()) {
                ("advanced", Some(0)) => {
                    *advanced.entry(branch).or_default() += 1;
                    won += 1;
                }
                ("leased" | "lost-race", Some(3)) => sweep.count("said that they did not win", 1),
                // One that had won elsewhere was held there until the branch was over.
                ("idle", Some(0)) => sweep.count("came when it was over", 1),
                _ => sweep.bad(format!("{what}: {line} {}", said.stderr)),
            }
        }
        let right = if won == asked.len() { Some(0) } else { Some(3) };
        let all_over = said.stdout.matches("\"idle\"").count() + won == asked.len();
        if reports != asked.len() || said.code != right && !(all_over && said.code == Some(0)) {
            sweep.bad(format!("{what}: {reports} reports, won {won}: {:?} {}", said.code, said.stderr));
        }
    }
    for name in names {
        match advanced.get(name).copied().unwrap_or(0) {
            1 => sweep.count("branches with one executor", 1),
            n => sweep.bad(format!("{what}: {name} was advanced by {n}")),
        }
    }
}

/// What the repository says.
fn history(sweep: &Sweep, arena: &Arena, what: &str, names: &[String]) {
    let said = arena.life().said("runs");
    for name in names {
        let runs = said.lines().filter(|l| l.split_once(' ').is_some_and(|(b, _)| b == name)).count();
        if runs != 1 {
            sweep.bad(format!("{what}: {runs} commands for {name}"));
        }
    }
    let all: BTreeMap<String, Vec<Move>> =
        names.iter().map(|n| (n.clone(), moves(arena.git(), &format!("refs/heads/{n}")))).collect();
    for (name, moves) in &all {
        if moves.len() != 3 {
            sweep.bad(format!("{what}: {name} moved {} times", moves.len()));
        }
    }
    for (name, violation) in judge(&all, &commits(arena.git())) {
        sweep.bad(format!("{what}: {name}: {violation}"));
    }
}

fn rounds(name: &'static str, remote: bool, reftable: bool) {
    let sweep = Sweep::begin(
        name,
        "200 ticks at once on 50 branches, all of them on one of these",
        "20 rounds of 200 x 50: exactly one executor each; all others say so",
    );
    if reftable && Repo::build().reftable().create().is_none() {
        return sweep.skip("this git can't make reftable repositories");
    }
    sweep.at_least("rounds", 1, 20);
    sweep.at_least("ticks", 16, 4000);
    sweep.at_least("branches with one executor", 4, 1000);
    // Where every look is a process of its own, each is asked for fewer.
    let each = if remote || reftable { 2 } else { 8 };
    let size = [sweep.size(16, 200), sweep.size(4, 50), sweep.size(2, each)];
    let arena = Arena::new(remote, reftable);
    // How fast the disk is decides nothing here.
    arena.life().config("aynig.fsync", "false");
    let more: &[&str] = if reftable { &["--ref-format=reftable"] } else { &[] };
    let machines: Vec<_> = match &arena {
        Arena::Remote(net) => (0..5).map(|n| net.clone_as(&format!("m{n}"), more)).collect(),
        Arena::Local(_) => Vec::new(),
    };
    for n in 0..sweep.size(1, 20) {
        round(&sweep, &arena, &machines, n, size);
    }
    let fsck = arena.git().args(["fsck", "--strict", "--no-dangling", "--no-progress"]).output().unwrap();
    if !fsck.status.success() {
        sweep.bad(format!("fsck: {}", String::from_utf8_lossy(&fsck.stderr)));
    }
    sweep.end();
}

/// K11, K14
#[test]
fn files() {
    rounds("races-local-files", false, false);
}

/// K11, K14, K37
#[test]
fn reftable() {
    rounds("races-local-reftable", false, true);
}

/// K12, K32
#[test]
fn remote_files() {
    rounds("races-remote-files", true, false);
}

/// K12, K32, K37
#[test]
fn remote_reftable() {
    rounds("races-remote-reftable", true, true);
}

/// K11: every commit that swaps carries something unique, so that two equal ones can't both win.
#[test]
fn pairs() {
    let sweep = Sweep::begin(
        "races-pairs",
        "two clones with the same runner id tick one trigger in the same second",
        "1,000 pairs: one winner each",
    );
    let Some(library) = faketime() else {
        return sweep.skip("libfaketime is not installed");
    };
    sweep.at_least("pairs", 10, 1000);
    // One that comes late meets an outcome, no rival: that is not what is tried here.
    sweep.at_least("pairs with one winner", 1, 900);
    let net = Net::new(&[(
        "build",
        "echo \"$AYNIG_BRANCH\" >>\"$T/runs\"; echo x >>done; echo 'SET_STATE {\"state\":\"next\"}'",
    )]);
    net.git(&["config", "core.logAllRefUpdates", "always"]);
    let machines = ["a", "b"].map(|name| net.machine(name));
    same_runner(&machines);
    let (pairs, batch) = (sweep.size(10, 1000), sweep.size(10, 50));
    for group in 0..pairs / batch {
        let names = names(batch, group);
        events(git_of(&net), "refs/heads/main^0", &names, "dwp-state: build");
        for name in &names {
            pair(&sweep, &machines, name, library);
        }
        let all: BTreeMap<String, Vec<Move>> =
            names.iter().map(|n| (n.clone(), moves(git_of(&net), &format!("refs/heads/{n}")))).collect();
        for (name, violation) in judge(&all, &commits(git_of(&net))) {
            sweep.bad(format!("{name}: {violation}"));
        }
        let said = net.life.said("runs");
        for name in &names {
            let runs = said.lines().filter(|l| l == name).count();
            if runs != 1 || all[name].len() != 3 {
                sweep.bad(format!("{name}: {runs} commands, {} moves", all[name].len()));
            }
        }
    }
    sweep.end();
}

fn git_of(net: &Net) -> Command {
    let mut git = net.life.repo.command("git");
    git.current_dir(net.origin());
    git
}

/// Gives the second clone the runner id of the first.
fn same_runner(machines: &[Machine<'_>; 2]) {
    let folder = machines[0].dir.join(".git/aynig");
    machines[0].tick(&[]).expect(0);
    let id = std::fs::read_dir(&folder).unwrap().flatten().map(|e| e.path());
    let id =
        id.into_iter().find(|p| p.file_name().unwrap().to_string_lossy().starts_with("runner-")).unwrap();
    let other = machines[1].dir.join(".git/aynig");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::copy(&id, other.join(id.file_name().unwrap())).unwrap();
}

fn pair(sweep: &Sweep, machines: &[Machine<'_>; 2], name: &str, library: &str) {
    // It stands still, for both.
    let clock = "2026-03-01 12:00:00";
    let commands = machines.iter().map(|machine| {
        let mut command = machine.aynig(&["tick", "--json", "--remote", "origin", name]);
        command.env("LD_PRELOAD", library).env("FAKETIME", clock).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    });
    let mut all = crowd(commands.collect(), |_| {});
    let what = |said: &Done| said.json()["result"].as_str().unwrap_or_default().to_owned();
    all.sort_by_key(|said| said.code);
    let results = (what(&all[0]), what(&all[1]));
    sweep.count("pairs", 1);
    match (all[0].code, all[1].code, &*results.0, &*results.1) {
        (Some(0), Some(3), "advanced", "leased" | "lost-race") => sweep.count("pairs with one winner", 1),
        (Some(0), Some(0), "advanced", "idle") | (Some(0), Some(0), "idle", "advanced") => {
            sweep.count("pairs of which one came late", 1);
        }
        _ => sweep.bad(format!("{name}: {all:?}")),
    }
}

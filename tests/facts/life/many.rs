//! Many machines on one remote, with everything going wrong, judged by the remote's own history.
//!
//! Each branch plays three states. The judge (`protocol::invariants`, which has tests of its own on forged
//! histories) reads the moves that the remote accepted from its reflogs. `AYNIG_MANY=full` is 8 machines
//! and 40 branches; the default is a sample of it. `AYNIG_SEED` chooses whom the faults hit.

use crate::support::faketime::faketime;
use crate::support::judge::commits;
use crate::support::life::{Running, done};
use crate::support::net::{Machine, Net};
use aynig::protocol::id::ObjectId;
use aynig::protocol::invariants::{Move, check};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const STEPS: [(&str, &str); 3] = [("build", "test"), ("test", "ship"), ("ship", "done")];

/// Machines and branches.
fn size() -> (usize, usize) {
    if std::env::var("AYNIG_MANY").is_ok_and(|v| v == "full") { (8, 40) } else { (4, 10) }
}

fn net() -> Net {
    let scripts = STEPS.map(|(state, next)| {
        let script = format!(
            "echo \"$AYNIG_BRANCH {state} $AYNIG_RUN_ID\" >>\"$T/runs\"; echo {state} >>steps; \
             echo 'SET_STATE {{\"state\":\"{next}\"}}'"
        );
        (state, script)
    });
    let net = Net::new(&scripts.each_ref().map(|(state, script)| (*state, script.as_str())));
    net.git(&["config", "core.logAllRefUpdates", "always"]);
    net.git(&["config", "gc.auto", "0"]);
    net
}

fn branches(net: &Net, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|n| format!("b{n:02}")).collect();
    for name in &names {
        net.event(name, "build", &format!("dwp-name: {name}\n"));
    }
    names
}

/// A small generator that is the same everywhere: tests say their seed.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let seed = std::env::var("AYNIG_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
        eprintln!("AYNIG_SEED={seed}");
        Self(seed)
    }
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

fn start(machine: &Machine<'_>, more: &[&str], env: &[(&str, String)]) -> Running {
    let mut command = machine.aynig(&["run", "--remote", "origin", "--every", "150ms", "--jobs", "2", "-q"]);
    command.args(more).envs(env.iter().map(|(k, v)| (k, v)));
    Running::of({
        command.stdout(Stdio::null());
        command
    })
}

fn states(net: &Net) -> BTreeMap<String, String> {
    let format = "--format=%(refname:short) %(trailers:key=dwp-state,valueonly,separator=)";
    let all = net.git(&["for-each-ref", format, "refs/heads/b*"]);
    let pairs = all.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(name, state)| (name.to_owned(), state.to_owned())).collect()
}

/// Until every branch is done; `meanwhile` plays the faults and the people.
fn until_done(net: &Net, limit: Duration, mut meanwhile: impl FnMut(&BTreeMap<String, String>)) {
    let until = Instant::now() + limit;
    loop {
        let now = states(net);
        if now.values().all(|state| state == "done") {
            return;
        }
        assert!(Instant::now() < until, "not done: {now:?}");
        meanwhile(&now);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn moves(reflog: &Path) -> Vec<Move> {
    let id = |hex: &str| hex.parse::<ObjectId>().ok().filter(|id| !id.is_null());
    let text = std::fs::read_to_string(reflog).unwrap();
    let pairs = text.lines().map(|line| (&line[..40], &line[41..81]));
    pairs.map(|(old, new)| Move { old: id(old), new: id(new) }).collect()
}

/// What the remote accepted breaks no rule; how many runs there were, and how many ended `stalled`.
#[track_caller]
fn judge(net: &Net, names: &[String]) -> (usize, usize) {
    let mut git = net.life.repo.command("git");
    git.current_dir(net.origin());
    let commits = commits(git);
    let (mut leases, mut stalled) = (0, 0);
    for name in names {
        let moves = moves(&net.origin().join("logs/refs/heads").join(name));
        let found = check(&moves, &commits);
        assert!(found.is_empty(), "{name}: {found:?}");
        let states = net.states(name);
        leases += states.windows(2).filter(|w| w[0] == "working" && w[1] != "working").count();
        stalled += states.iter().filter(|s| *s == "stalled").count();
        // The work of each step is there once, in order.
        let log = || net.git(&["log", "--reverse", "-p", "--format=%n%h %cn %cI%n%B", name]);
        assert_eq!(
            net.show(name, "steps"),
            "build\ntest\nship",
            "{name}: {}{}",
            net.life.said("runs"),
            log()
        );
    }
    net.git(&["fsck", "--strict", "--no-dangling"]);
    (leases, stalled)
}

fn stop(all: Vec<Running>) {
    all.iter().for_each(|r| r.signal(nix::sys::signal::Signal::SIGTERM));
    for runner in all {
        let ended = runner.done();
        assert!(matches!(ended.code, Some(143 | 0 | 1 | 2 | 3 | 75)), "{ended:?}");
    }
}

/// Asks again for what stalled, as a person would.
fn retry(machine: &Machine<'_>, now: &BTreeMap<String, String>) {
    for name in now.iter().filter(|(_, state)| *state == "stalled").map(|(name, _)| name) {
        let again = done(machine.aynig(&["retry", "--remote", "origin", name]).output().unwrap());
        // Another process may have moved it meanwhile, and the remote may be one of those that cut.
        assert!(matches!(again.code, Some(0 | 2 | 3 | 75 | 128)), "{again:?}");
    }
}

/// K11, K32
#[test]
fn every_trigger_is_answered_once() {
    let net = net();
    let (machines, count) = size();
    let names = branches(&net, count);
    let machines: Vec<_> = (0..machines).map(|n| net.machine(&format!("m{n}"))).collect();
    let runners = machines.iter().map(|m| start(m, &[], &[])).collect();
    until_done(&net, Duration::from_secs(900), |_| {});
    stop(runners);
    assert_eq!(judge(&net, &names), (3 * count, 0));
    let runs = net.life.said("runs");
    assert_eq!(runs.lines().count(), 3 * count, "{runs}");
}

/// K8, K17, K31
#[test]
fn runners_that_are_killed_lose_nothing() {
    let net = net();
    let (count, branch_count) = size();
    let names = branches(&net, branch_count);
    let machines: Vec<_> = (0..count).map(|n| net.machine(&format!("m{n}"))).collect();
    let lease = ["--lease", "2s", "--grace", "1s"];
    let mut runners: Vec<_> = machines.iter().map(|m| start(m, &lease, &[])).collect();
    let (mut dice, mut last, mut kills, mut begun) = (Dice::new(), Instant::now(), 0, 0);
    until_done(&net, Duration::from_secs(900), |now| {
        // However slow the machine is, something is begun between two kills.
        let runs = net.life.said("runs").lines().count();
        if last.elapsed() > Duration::from_secs(1) && runs > begun {
            let victim = dice.below(count);
            runners[victim].signal(nix::sys::signal::Signal::SIGKILL);
            runners[victim] = start(&machines[victim], &lease, &[]);
            (last, kills, begun) = (Instant::now(), kills + 1, runs);
        }
        retry(&machines[0], now);
    });
    stop(runners);
    let (leases, stalled) = judge(&net, &names);
    assert!(leases >= 3 * branch_count && leases <= 3 * branch_count + stalled, "{leases} {stalled} {kills}");
}

/// K7: machines whose clocks are far apart, which judge by what they see themselves.
#[test]
fn clocks_that_differ_change_nothing() {
    let Some(library) = faketime() else {
        return crate::support::skipped("libfaketime is not installed");
    };
    let net = net();
    let (count, branch_count) = size();
    let names = branches(&net, branch_count);
    let machines: Vec<_> = (0..count).map(|n| net.machine(&format!("m{n}"))).collect();
    net.life.config("aynig.takeover", "observe");
    let offsets = ["+0s", "+90s", "-90s", "+45s"];
    let runners = machines.iter().enumerate().map(|(n, m)| {
        let offset = offsets[n % offsets.len()].to_owned();
        let env = [
            ("LD_PRELOAD", library.to_owned()),
            ("FAKETIME", offset),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        start(m, &[], &env)
    });
    let runners = runners.collect();
    until_done(&net, Duration::from_secs(900), |_| {});
    stop(runners);
    assert_eq!(judge(&net, &names), (3 * branch_count, 0));
    let runs = net.life.said("runs");
    assert_eq!(runs.lines().count(), 3 * branch_count, "{runs}");
}

/// K11, K31: every tenth push is refused, is cut before it takes effect, or after.
#[test]
fn a_remote_that_refuses_and_cuts_loses_nothing() {
    let net = net();
    let (count, branch_count) = size();
    let names = branches(&net, branch_count);
    let machines: Vec<_> = (0..count).map(|n| net.machine(&format!("m{n}"))).collect();
    let (script, counter) = (net.life.shared().join("receive"), net.life.shared().join("pushes"));
    let text = format!(
        "#!/bin/sh\nn=$(flock '{0}' sh -c 'n=$(cat \"{0}\"); echo $((n + 1)) >\"{0}\"; echo $n')\n\
         case $n in *3) exit 1 ;; *6) git-receive-pack \"$@\" | dd bs=1 count=1150 2>/dev/null ;;\n\
         *9) exec git -c core.hooksPath=\"$T/refuse\" receive-pack \"$@\" ;; *) exec git-receive-pack \"$@\" ;; esac\n",
        counter.display()
    );
    std::fs::write(&counter, "0\n").unwrap();
    let refuse = net.life.shared().join("refuse");
    std::fs::create_dir(&refuse).unwrap();
    for (path, text) in
        [(script.clone(), text), (refuse.join("pre-receive"), "#!/bin/sh\nexit 1\n".to_owned())]
    {
        crate::support::write_program(&path, &text);
    }
    for machine in &machines {
        machine.git(&["config", "remote.origin.receivepack", &format!("'{}'", script.display())]);
    }
    let lease = ["--lease", "4s", "--grace", "1s"];
    let runners = machines.iter().map(|m| start(m, &lease, &[])).collect();
    until_done(&net, Duration::from_secs(900), |now| retry(&machines[0], now));
    stop(runners);
    let (leases, stalled) = judge(&net, &names);
    assert!(leases >= 3 * branch_count && leases <= 3 * branch_count + stalled, "{leases} {stalled}");
    let pushes: usize = net.life.said("pushes").trim().parse().unwrap();
    assert!(pushes > 6 * branch_count, "{pushes}");
}

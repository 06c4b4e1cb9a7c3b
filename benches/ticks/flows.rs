//! Flows: what a turn costs beside the ticks that it is, and what it costs to look at a long one.
//!
//! A provider that answers at once is a shell script, which the yardstick's commands are too.

use super::{Limit, Place, Row, measure, rounds, wanted};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const NODES: usize = 100;
/// Of each node: with the rounds that warm up 2,000 in all, and a few more.
const TURNS: usize = 20;
/// How long a prompt of such a turn is. A shell reads it byte by byte, which is its provider's own cost: 3 to 4 ms of processor.
const PROMPT: usize = 4000;
/// Each makes several events: more than 100,000 in all.
const LONG: usize = 16_000;

const TURN_ROW: &str = "a turn of each of 100 nodes, and what follows";
const NEXT_ROW: &str = "flow show after one more message, 100,000 events before";
const ALL_ROW: &str = "flow events of 100,000 events, first time";

fn command(dir: &Path, name: &str, script: &str) {
    let path = dir.join(".aynig/command").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("command");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
}

/// A trusted repository with a flow `f` of so many nodes.
fn flow(place: &Place, name: &str, nodes: usize) -> PathBuf {
    let dir = place.repository(name, 10);
    place.git(&dir, &["config", "aynig.fsync", "false"]);
    let agent = place.root.join("agent.sh");
    let line = "{\"type\":\"message.assistant.final\",\"content\":\"Done.\"}";
    std::fs::write(&agent, format!("read -r prompt\necho '{line}'\n")).expect("agent");
    let configured = format!("sh {}", agent.display());
    place.git(&dir, &["config", "--global", "aynig.provider.custom.command", &configured]);
    // It says the same each time, which would pause the flow.
    place.git(&dir, &["config", "--global", "aynig.stallTurns", "0"]);
    command(&dir, "turn", "exec git aynig flow turn");
    command(&dir, "route", "exec git aynig flow route");
    // The yardstick's two: the agent itself, and its next state.
    let (agent, prompt) = (agent.display(), place.root.join("prompt"));
    std::fs::write(&prompt, "x".repeat(PROMPT) + "\n").expect("prompt");
    let reads = format!("sh {agent} <{}", prompt.display());
    command(&dir, "one", &format!("{reads}\necho 'SET_STATE {{\"state\":\"two\"}}'"));
    command(&dir, "two", "echo 'SET_STATE {\"state\":\"done\"}'");
    place.git(&dir, &["add", "-A"]);
    place.git(&dir, &["commit", "-qm", "commands"]);
    place.time(&dir, &place.bin, &["flow", "new", "f", "--mode", "interactive"], 0);
    for n in 0..nodes {
        let label = format!("n{n:03}");
        let add = ["flow", "node", "add", "f", "--label", &label, "--role", "r", "--provider", "custom"];
        place.time(&dir, &place.bin, &add, 0);
    }
    dir
}

/// A turn of each of many nodes, beside two commands of as many branches.
pub fn turns(place: &Place, rows: &mut Vec<Row>) {
    if !wanted(TURN_ROW) {
        return;
    }
    let dir = flow(place, "turns", NODES);
    rows.extend(measure(
        TURN_ROW,
        "two commands of each of 100 branches",
        Limit::More(NODES as f64),
        rounds().min(TURNS),
        |n| {
            for node in 0..NODES {
                let (branch, text) = (format!("flow/f/n{node:03}"), format!("go {n}"));
                place.time(&dir, &place.bin, &["send", &branch, "-m", &text, "--no-tick"], 0);
            }
            place.time(&dir, &place.bin, &["run", "--jobs", "2"], 0)
        },
        |n| {
            let mut input = String::new();
            for node in 0..NODES {
                let message = format!("one {n} {node}\n\ndwp-state: one\n");
                let id =
                    place.git_says(&dir, &["commit-tree", "main^{tree}", "-p", "main"], message.as_bytes());
                let _ = writeln!(input, "update refs/heads/many/b{node:03} {id}");
            }
            place.git_says(&dir, &["update-ref", "--stdin"], input.as_bytes());
            place.time(&dir, &place.bin, &["run", "--jobs", "2"], 0)
        },
    ));
}

/// A flow whose only node had so many turns.
fn long(place: &Place, name: &str, turns: usize) -> PathBuf {
    let dir = flow(place, name, 1);
    let head = place.git_says(&dir, &["rev-parse", "flow/f/n000"], b"");
    let mut import = String::new();
    for n in 0..turns {
        let from = if n == 0 { format!("from {head}\n") } else { String::new() };
        for (k, (subject, state, origin, more)) in [
            ("Done.", "route", "turn", "dwp-usage: input=3 output=4 provider=custom\n"),
            ("Done.", "idle", "route", "dwp-accepts: message=turn, handoff=turn, interrupt=turn\n"),
        ]
        .into_iter()
        .enumerate()
        {
            let message = format!(
                "{subject}\n\nDone, the {n}th time.\n\ndwp-state: {state}\ndwp-origin-state: {origin}\n\
                 dwp-run-id: 0a1b2c3d-000{k}-4000-8000-{n:012}\n{more}"
            );
            let _ = write!(
                import,
                "commit refs/heads/flow/f/n000\ncommitter b <b@example.com> {} +0000\ndata {}\n{message}\n{}\n",
                1_600_000_000 + 2 * n + k,
                message.len(),
                if k == 0 { &from } else { "" }
            );
        }
    }
    place.git_says(&dir, &["fast-import", "--quiet", "--force"], import.as_bytes());
    place.git(&dir, &["gc", "-q", "--prune=now"]);
    dir
}

/// The first look at a long flow, and one more event beside the same in a short one.
pub fn looks(place: &Place, rows: &mut Vec<Row>) {
    if !wanted(NEXT_ROW) && !wanted(ALL_ROW) {
        return;
    }
    let (far, near) = (long(place, "far", LONG), long(place, "near", 10));
    all(place, &far);
    place.time(&near, &place.bin, &["flow", "events", "f", "--json"], 0);
    let next = |dir: &Path, n: usize| {
        place.time(dir, &place.bin, &["send", "flow/f/n000", "-m", &format!("{n}"), "--no-tick"], 0);
        place.time(dir, &place.bin, &["flow", "show", "f", "--json"], 0)
    };
    rows.extend(measure(
        NEXT_ROW,
        "the same with 100 events before",
        Limit::More(5.0),
        rounds(),
        |n| next(&far, n),
        |n| next(&near, n),
    ));
}

/// How long the first look takes, how many events it tells, and how much memory it has at most.
fn all(place: &Place, dir: &Path) {
    let log = place.root.join("events");
    let asked = "import resource, subprocess, sys\n\
        code = subprocess.call(sys.argv[2:], stdout=open(sys.argv[1], 'wb'))\n\
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\nsys.exit(code)";
    let mut command = place.command(Path::new("python3"), dir);
    command.args(["-c", asked]).arg(&log).arg(&place.bin).args(["flow", "events", "f", "--json"]);
    let started = Instant::now();
    let output = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).output().expect("python3 runs");
    let took: Duration = started.elapsed();
    assert!(output.status.success());
    let kib: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(f64::NAN);
    let told = std::fs::read(&log).expect("events").iter().filter(|b| **b == b'\n').count();
    let (seconds, mib) = (took.as_secs_f64(), kib / 1024.0);
    let verdict = if told >= 100_000 && seconds <= 5.0 && mib <= 100.0 { "met" } else { "**missed**" };
    eprintln!("{ALL_ROW}: {told} events in {seconds:.2} s, {mib:.0} MiB (at most 5 s and 100 MiB) {verdict}");
}

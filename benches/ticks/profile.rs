//! Why a row costs what it does: what it starts, and how long the disk is waited for.
//!
//! Told by strace, which makes everything but the disk slower: so the waits are from there, and no whole time is.

use super::{Place, median};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How often each process is looked at.
const ROUNDS: usize = 11;

/// What one process did, with everything that it started.
#[derive(Default)]
struct Seen {
    programs: Vec<usize>,
    syncs: Vec<usize>,
    /// While at least one sync was not over.
    waiting: Vec<Duration>,
}

/// Prints the table, below that of the rows.
pub fn print(place: &Place) {
    println!("\n## Where the time goes\n");
    if !std::process::Command::new("strace").arg("-V").output().is_ok_and(|o| o.status.success()) {
        println!("Not told: strace is missing.");
        return;
    }
    println!(
        "Medians of {ROUNDS} calls under strace, which slows everything but the disk. A durable tick moves the ref \
         twice, and each time syncs the commit, the ref, and the folders that name them (K42); the yardstick \
         moves it once and syncs no folder: after a power cut its commit may be gone. The rest of a tick is \
         the programs that it starts: itself, the guardian, the command with its interpreter. A commit with \
         the hook starts a shell, which is what a hook that does nothing costs, and git-aynig, which costs what an \
         idle tick does.\n"
    );
    println!("| process | programs started | syncs | ms waiting for the disk |");
    println!("| --- | --- | --- | --- |");
    let dir = place.repository("profile", 10);
    let mut count = 0;
    let commit = ["commit", "-q", "--allow-empty", "-m", "x"];
    for (durable, kind) in [(true, "durable"), (false, "aynig.fsync=false")] {
        place.git(&dir, &["config", "aynig.fsync", if durable { "true" } else { "false" }]);
        show(
            place,
            &format!("tick, 10 files, reused slot, {kind}"),
            &dir,
            &place.bin,
            &["tick", "work"],
            || {
                count += 1;
                place.trigger(&dir, count);
            },
        );
    }
    let durable = [&["-c", "core.fsync=committed"], &commit[..]].concat();
    show(place, &format!("git {}", durable[..durable.len() - 2].join(" ")), &dir, git(), &durable, || ());
    show(place, "git commit -q --allow-empty", &dir, git(), &commit, || ());
    place.time(&dir, &place.bin, &["hooks", "install"], 0);
    show(place, "the same with the hook, no state event", &dir, git(), &commit, || ());
    let dir = place.repository("calls", 10);
    place.git(&dir, &["config", "aynig.fsync", "false"]);
    calls(place, &dir, || {
        count += 1;
        place.trigger(&dir, count);
    });
}

/// Prints how many system calls a tick takes, by who makes them and which they are.
fn calls(place: &Place, dir: &Path, mut before: impl FnMut()) {
    println!("\n## System calls\n");
    println!(
        "Of one tick of the kind above, not durable. What is called between a fork and its exec counts for the \
         program that forks; `rt_sigaction` there is one call for each signal, made by the C library.\n"
    );
    println!("| process | calls | the most |");
    println!("| --- | --- | --- |");
    let mut counts: [BTreeMap<String, usize>; 3] = Default::default();
    for round in 0..3 {
        before();
        let folder = place.root.join("traces");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("folder");
        let mut command = place.command(Path::new("strace"), dir);
        command.args(["-ff", "-qq", "-o"]).arg(folder.join("t")).arg(&place.bin).args(["tick", "work"]);
        assert!(command.status().expect("strace runs").success());
        if round == 2 {
            count(&folder, &mut counts);
        }
    }
    for (name, calls) in ["runner", "guardian", "command"].into_iter().zip(&counts) {
        let mut sorted: Vec<_> = calls.iter().collect();
        sorted.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let most: Vec<String> = sorted.iter().take(8).map(|(call, n)| format!("{call} {n}")).collect();
        println!("| {name} | {} | {} |", calls.values().sum::<usize>(), most.join(", "));
    }
}

fn count(folder: &Path, counts: &mut [BTreeMap<String, usize>; 3]) {
    for file in std::fs::read_dir(folder).expect("folder").flatten() {
        let text = String::from_utf8_lossy(&std::fs::read(file.path()).expect("trace")).into_owned();
        let exec = text.lines().find(|line| line.starts_with("execve("));
        // A thread has none; a child is its parent's until then.
        let (parent, role) = match exec {
            Some(line) if line.contains("\"tick\"") => (0, 0),
            Some(line) if line.contains("\"guardian\"") => (0, 1),
            Some(_) => (1, 2),
            None => (0, 0),
        };
        let mut at = if exec.is_some() { parent } else { role };
        for line in text.lines() {
            if line.starts_with("execve(") {
                at = role;
            }
            if let Some((call, _)) = line.split_once('(').filter(|_| !line.starts_with(['-', '+'])) {
                *counts[at].entry(call.to_owned()).or_default() += 1;
            }
        }
    }
}

fn git() -> &'static Path {
    Path::new("git")
}

fn show(place: &Place, name: &str, dir: &Path, program: &Path, args: &[&str], mut before: impl FnMut()) {
    let mut seen = Seen::default();
    for round in 0..ROUNDS + 2 {
        before();
        let folder = place.root.join("traces");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("folder");
        let status = place
            .command(Path::new("strace"), dir)
            .args(["-ff", "-ttt", "-T", "-qq", "-e", "trace=execve,fsync,fdatasync", "-o"])
            .arg(folder.join("t"))
            .arg(program)
            .args(args)
            .status();
        assert!(status.expect("strace runs").success(), "{name}");
        if round >= 2 {
            seen.take(&folder);
        }
    }
    let middle = |all: &[usize]| {
        let mut all = all.to_vec();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let (programs, syncs) = (middle(&seen.programs), middle(&seen.syncs));
    println!("| `{name}` | {programs} | {syncs} | {:.2} |", median(&seen.waiting));
}

impl Seen {
    /// Reads one trace: a file for each thread, a line for each call.
    fn take(&mut self, folder: &Path) {
        let (mut programs, mut waits) = (0, Vec::new());
        for file in std::fs::read_dir(folder).expect("folder").flatten() {
            let text = std::fs::read(file.path()).expect("trace");
            for line in String::from_utf8_lossy(&text).lines() {
                let Some((at, call)) = line.split_once(' ') else { continue };
                if call.starts_with("execve(") {
                    // A search in PATH fails until it finds.
                    programs += usize::from(call.contains(" = 0"));
                } else if call.starts_with("fsync(") || call.starts_with("fdatasync(") {
                    let took = call.rsplit_once('<').and_then(|(_, t)| t.strip_suffix('>'));
                    let number = |text: &str| text.parse::<f64>().ok();
                    let (Some(at), Some(took)) = (number(at), took.and_then(number)) else { continue };
                    waits.push((at, at + took));
                }
            }
        }
        self.programs.push(programs);
        self.syncs.push(waits.len());
        self.waiting.push(Duration::from_secs_f64(covered(waits)));
    }
}

/// How long at least one of these was not over, in seconds.
fn covered(mut spans: Vec<(f64, f64)>) -> f64 {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut total, mut until) = (0.0, f64::MIN);
    for (from, to) in spans {
        total += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    total
}

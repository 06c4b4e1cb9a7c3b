//! Many machines on one remote: how many triggers a second they answer together, beside as many bare pushes.
//!
//! Each trigger takes two pushes, a lease and an outcome. The yardstick is as many processes at a time, each with
//! a clone of its own, that push two commits to each of as many branches of a remote that is a copy of the other, and
//! never meet: what a push costs grows with the refs of its remote, and what the yardstick moves is nothing that a
//! machine should have to read. Every round sets a fresh trigger on each branch; afterwards each must have been answered by exactly one run.
//! `AYNIG_BENCH_TRIGGERS` (default 400) says how many. Beside the rates stands the CPU time of all processes, which
//! other work on the machine disturbs less.

use super::{Place, median};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// One round: from the first start to the last end, and the CPU time of all that was started for it.
struct Took {
    wall: Duration,
    cpu: Duration,
}

impl Took {
    fn of(work: impl FnOnce()) -> Self {
        let (start, before) = (Instant::now(), cpu_of_children());
        work();
        Self { wall: start.elapsed(), cpu: cpu_of_children().saturating_sub(before) }
    }
}

/// What all children used that have ended, and theirs; nothing where the system has no `/proc`.
fn cpu_of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    // In hundredths of a second.
    let ticks = after_name.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// Machines, and jobs of each.
const FLEETS: [(usize, usize); 7] = [(1, 1), (1, 2), (1, 4), (2, 2), (4, 2), (8, 2), (64, 1)];
/// Least rate, as a part of that of bare pushes.
const AT_LEAST: f64 = 0.8;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// The remote, its branches, and clones of it.
struct Fleet<'p> {
    place: &'p Place,
    origin: PathBuf,
    /// A remote like that one, for the yardstick.
    yard: PathBuf,
    base: String,
    triggers: usize,
    rounds: usize,
}

/// Prints the table.
pub fn print(place: &Place) {
    if !alone() && std::env::var_os("AYNIG_BENCH_ROWS").is_some() {
        return;
    }
    let fleet = Fleet::new(place);
    println!("\n## Many machines on one remote\n");
    println!(
        "{} branches with a trigger each, medians of {} rounds. A trigger takes two pushes; as many at a time, from \
         clones that never meet, push the same number of commits with bare `git push` to a copy of the remote. At least {AT_LEAST} of their \
         rate; each trigger had one run.\n",
        fleet.triggers, fleet.rounds
    );
    println!(
        "| machines x jobs | verb | triggers a second | pushes a second | bare | ratio | | CPU ms a trigger | bare | ratio |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (machines, jobs) in FLEETS {
        for verb in ["run", "tick"] {
            if wanted(machines, jobs, verb) {
                fleet.row(machines, jobs, verb);
            }
        }
    }
}

/// True where nothing else was asked for: `AYNIG_BENCH_ROWS=machines`, or `'machines 2 x 2 tick'` for one of them.
pub fn alone() -> bool {
    std::env::var("AYNIG_BENCH_ROWS").is_ok_and(|rows| rows.starts_with("machines"))
}

fn wanted(machines: usize, jobs: usize, verb: &str) -> bool {
    let name = format!("machines {machines} x {jobs} {verb}");
    std::env::var("AYNIG_BENCH_ROWS").map_or(true, |rows| name.starts_with(&rows))
}

impl<'p> Fleet<'p> {
    fn new(place: &'p Place) -> Self {
        let source = place.repository("fleet", 10);
        let script = format!(
            "#!/bin/sh\necho $AYNIG_RUN_ID >>'{}'\necho 'SET_STATE {{\"state\":\"done\"}}'\n",
            place.root.join("fleet-runs").display()
        );
        std::fs::write(source.join(".aynig/command/build"), script).expect("command");
        place.git(&source, &["commit", "-qam", "counts"]);
        let [origin, yard] = ["fleet.git", "yard.git"].map(|name| {
            let remote = place.root.join(name);
            place.git(&source, &["clone", "-q", "--bare", ".", &remote.to_string_lossy()]);
            place.git(&remote, &["config", "gc.auto", "0"]);
            remote
        });
        let base = place.git_says(&origin, &["rev-parse", "main"], b"");
        let triggers = number("AYNIG_BENCH_TRIGGERS", 400);
        Self { place, origin, yard, base, triggers, rounds: number("AYNIG_BENCH_ROUNDS", 3).min(5) }
    }

    /// Sets a state event, or a plain commit, on every branch of a folder; says which commits.
    fn set(&self, repo: &Path, folder: &str, text: &str, round: usize, on: &[(usize, String)]) {
        let mut import = String::new();
        for (n, from) in on {
            let message = format!("go {round} {n}\n\n{text}\n");
            let _ = write!(
                import,
                "commit refs/heads/{folder}/b{n:04}\ncommitter b <b@example.com> {} +0000\ndata {}\n{message}\nfrom {from}\n\n",
                1_700_000_000 + round,
                message.len()
            );
        }
        self.place.git_says(repo, &["fast-import", "--quiet", "--force"], import.as_bytes());
    }

    fn on_base(&self) -> Vec<(usize, String)> {
        (0..self.triggers).map(|n| (n, self.base.clone())).collect()
    }

    fn tips(&self, repo: &Path, folder: &str) -> Vec<String> {
        let all = self.place.git_says(
            repo,
            &["for-each-ref", "--format=%(objectname)", &format!("refs/heads/{folder}")],
            b"",
        );
        all.lines().map(str::to_owned).collect()
    }

    fn clones(&self, of: &Path, kind: &str, count: usize) -> Vec<PathBuf> {
        let origin = of.to_string_lossy().into_owned();
        let one = |n: usize| {
            let dir = self.place.root.join(format!("{kind}{n}"));
            if !dir.exists() {
                let to = dir.to_string_lossy().into_owned();
                self.place.git(&self.place.root, &["clone", "-q", &origin, &to]);
                self.place.git(&dir, &["config", "gc.auto", "0"]);
                self.place.git(&dir, &["config", "user.name", "bench"]);
                self.place.git(&dir, &["config", "user.email", "bench@example.com"]);
            }
            dir
        };
        (0..count).map(one).collect()
    }

    fn row(&self, machines: usize, jobs: usize, verb: &str) {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            ours.push(self.answered(machines, jobs, verb, round));
            bare.push(self.pushed(machines, jobs, round));
        }
        let rate = |all: &[Took]| {
            self.triggers as f64 * 1000.0 / median(&all.iter().map(|took| took.wall).collect::<Vec<_>>())
        };
        let cpu = |all: &[Took]| {
            median(&all.iter().map(|took| took.cpu).collect::<Vec<_>>()) / self.triggers as f64
        };
        let (cpu_ours, cpu_bare) = (cpu(&ours), cpu(&bare));
        let (ours, bare) = (rate(&ours), rate(&bare));
        let ratio = ours / bare;
        let verdict = if ratio >= AT_LEAST { "met" } else { "**missed**" };
        println!(
            "| {machines} x {jobs} | `{verb}` | {ours:.1} | {:.1} | {:.1} | {ratio:.2} | {verdict} | {cpu_ours:.0} | {cpu_bare:.0} | {:.2} |",
            2.0 * ours,
            2.0 * bare,
            cpu_bare / cpu_ours
        );
    }

    /// One round of ours: from the first start to the last end.
    fn answered(&self, machines: usize, jobs: usize, verb: &str, round: usize) -> Took {
        let dirs = self.clones(&self.origin, "machine", machines);
        self.set(&self.origin, "w", "dwp-state: build", round, &self.on_base());
        let runs = self.place.root.join("fleet-runs");
        let _ = std::fs::remove_file(&runs);
        let jobs = jobs.to_string();
        let took = Took::of(|| {
            let children: Vec<_> = dirs
                .iter()
                .map(|dir| {
                    let mut command = self.place.command(&self.place.bin, dir);
                    command.args([verb, "--remote", "origin", "--jobs", &jobs]).spawn().expect("it runs")
                })
                .collect();
            for mut child in children {
                assert!(child.wait().expect("it ends").success(), "{verb}");
            }
        });
        let ran = std::fs::read_to_string(&runs).unwrap_or_default().lines().count();
        assert_eq!(ran, self.triggers, "each trigger has one run");
        let format = "--format=%(trailers:key=dwp-state,valueonly,separator=)";
        let states = self.place.git_says(&self.origin, &["for-each-ref", format, "refs/heads/w"], b"");
        assert!(states.lines().all(|state| state == "done"), "each trigger has its outcome");
        took
    }

    /// As many pushes, so many at a time, each with branches and a clone of its own.
    fn pushed(&self, machines: usize, jobs: usize, round: usize) -> Took {
        let dirs = self.clones(&self.yard, "pusher", machines * jobs);
        self.set(&self.yard, "y", "Kind: first", round, &self.on_base());
        let first = self.tips(&self.yard, "y");
        let mut plans: Vec<Vec<[String; 2]>> = Vec::new();
        for (n, dir) in dirs.iter().enumerate() {
            self.place.git(dir, &["fetch", "-q", "origin", "+refs/heads/y/*:refs/heads/have/*"]);
            // Each number of pushers has folders of its own.
            let (one_in, two_in) = (format!("one{}", dirs.len()), format!("two{}", dirs.len()));
            let mine: Vec<usize> = (n..self.triggers).step_by(dirs.len()).collect();
            let first: Vec<_> = mine.iter().map(|n| (*n, first[*n].clone())).collect();
            self.set(dir, &one_in, "Kind: lease", round, &first);
            let one: Vec<_> = mine.into_iter().zip(self.tips(dir, &one_in)).collect();
            self.set(dir, &two_in, "Kind: outcome", round, &one);
            let two = self.tips(dir, &two_in);
            let spec = |id: &str, n: usize| format!("{id}:refs/heads/y/b{n:04}");
            plans.push(one.iter().zip(&two).map(|((n, one), two)| [spec(one, *n), spec(two, *n)]).collect());
        }
        let push_all = |dir: &Path, plan: &[[String; 2]]| {
            for spec in plan.iter().flatten() {
                let mut push: Command = self.place.command(Path::new("git"), dir);
                let done = push.args(["push", "-q", "origin", spec]).status().expect("git runs");
                assert!(done.success(), "push");
            }
        };
        Took::of(|| {
            std::thread::scope(|scope| {
                for (dir, plan) in dirs.iter().zip(&plans) {
                    scope.spawn(move || push_all(dir, plan));
                }
            });
        })
    }
}

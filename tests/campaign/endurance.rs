//! Ten thousand ticks in a row leave nothing behind but their commits.
//!
//! Promises V17, V13, V15 (K14, K16, K42, K43, K44): no slot, lock, ref, checkout, pending mark, temporary object,
//! descriptor or process more than after the first ticks; the Git folder grows by 2 KiB a tick at most (its commits,
//! their reflogs, and the run's folder, which stays); the last tick takes no longer than the first, measured
//! against `git rev-parse` at the same moment. Once by as many processes, once by one.

use super::row::Sweep;
use super::support::life::{Life, NOT_THEIRS, differences};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const LOOP: &str = "echo \"$AYNIG_RUN_ID\"; echo 'SET_STATE {\"state\":\"build\"}'";

fn looping() -> Life {
    let life = Life::new(&[("build", LOOP)]);
    life.config("aynig.maxHops", "100000000");
    life.config("gc.auto", "0");
    life.config("maintenance.auto", "false");
    life.event("work", "build", "");
    life
}

/// Files below a folder: how many, and their bytes.
fn weigh(dir: &Path) -> (u64, u64) {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let meta = entry.metadata();
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            let (f, b) = weigh(&entry.path());
            (files, bytes) = (files + f, bytes + b);
        } else {
            (files, bytes) = (files + 1, bytes + meta.map_or(0, |m| m.len()));
        }
    }
    (files, bytes)
}

/// Files whose names end so, below a folder.
fn named(dir: &Path, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            found.extend(named(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// What a tick may leave, and how much of it there is.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    slots: usize,
    locks: Vec<String>,
    ref_locks: usize,
    refs: String,
    checkouts: usize,
    pending: usize,
    temporary: usize,
    processes: usize,
}

fn left(life: &Life) -> Left {
    let count = |name: &str| fs::read_dir(life.path(name)).map_or(0, |d| d.count());
    let needle = life.repo.home().parent().unwrap().to_string_lossy().into_owned();
    let all = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let has = |what: &str| {
            fs::read(entry.path().join(what)).is_ok_and(|raw| String::from_utf8_lossy(&raw).contains(&needle))
        };
        entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit())
            && (has("environ") || has("cmdline"))
    });
    Left {
        slots: count(".git/worktrees"),
        locks: named(&life.path(".git"), ".lock").into_iter().filter(|l| !l.contains("/aynig/")).collect(),
        ref_locks: count(".git/aynig/locks"),
        refs: life.git(&["for-each-ref", "--format=%(refname)"]),
        checkouts: count(".git/aynig/checkouts"),
        pending: count(".git/aynig/pending"),
        temporary: named(&life.path(".git/objects"), ".tmp").len() + tmp_objects(&life.path(".git/objects")),
        processes: all.count(),
    }
}

fn tmp_objects(objects: &Path) -> usize {
    let folders = fs::read_dir(objects).unwrap().flatten().map(|e| e.path()).filter(|p| p.is_dir());
    let names = folders.flat_map(|d| fs::read_dir(d).unwrap().flatten().map(|e| e.file_name()));
    names
        .filter(|n| n.to_string_lossy().starts_with("tmp_") || n.to_string_lossy().starts_with(".tmp"))
        .count()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// One tick, and the yardstick beside it.
fn one(sweep: &Sweep, life: &Life) -> (Duration, Duration) {
    let since = Instant::now();
    life.rev("refs/heads/main");
    let yard = since.elapsed();
    let since = Instant::now();
    let said = life.tick(&["work"]);
    let took = since.elapsed();
    if said.code != Some(0) || !said.stderr.is_empty() {
        sweep.bad(format!("a tick said {said:?}"));
    }
    (took, yard)
}

fn nothing_more(sweep: &Sweep, before: &Left, after: &Left) {
    if before != after {
        sweep.bad(format!("left behind: {after:?}\nin the beginning: {before:?}"));
    }
}

/// V17, V13
#[test]
fn ticks_in_a_row() {
    let sweep = Sweep::begin(
        "endurance-ticks",
        "10,000 ticks in a row, each its own process",
        "0 leaked slots, locks, refs, processes; <= 2 KiB a tick; the last as fast as the first; what is the user's byte for byte",
    );
    sweep.at_least("ticks", 100, 10_000);
    let (life, many) = (looping(), sweep.size(100, 10_000));
    let part = (many / 20).clamp(10, 200);
    for _ in 0..5 {
        one(&sweep, &life);
    }
    let (before, weight) = (left(&life), weigh(&life.path(".git")));
    life.write("file", "edited\n");
    let theirs = life.snapshot(NOT_THEIRS);
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for n in 0..many {
        let times = one(&sweep, &life);
        sweep.count("ticks", 1);
        if n % 10 == 9 {
            let moved = differences(&theirs, &life.snapshot(NOT_THEIRS));
            sweep.count("looks at what is the user's", 1);
            if !moved.is_empty() {
                sweep.bad(format!("V15: after {n} ticks these are not as they were: {moved:?}"));
            }
        }
        if n < part {
            first.push(times);
        } else if n >= many - part {
            last.push(times);
        }
    }
    nothing_more(&sweep, &before, &left(&life));
    let now = weigh(&life.path(".git"));
    let growth = (now.1 - weight.1) / many as u64;
    sweep.count("bytes a tick", growth);
    sweep.count("files a tick, times 100", (now.0 - weight.0) * 100 / many as u64);
    if growth > 2048 {
        sweep.bad(format!("the repository grows by {growth} bytes a tick"));
    }
    let ms = |all: &[(Duration, Duration)], yard: bool| {
        let times = all.iter().map(|t| if yard { t.1 } else { t.0 }).collect();
        median(times).as_secs_f64() * 1000.0
    };
    let (tick, yard) = (ms(&last, false) / ms(&first, false), ms(&last, true) / ms(&first, true));
    sweep.count("us a tick at the start", (ms(&first, false) * 1000.0) as u64);
    sweep.count("us a tick at the end", (ms(&last, false) * 1000.0) as u64);
    sweep.count("the end by the start, %, by the yardstick", (tick / yard * 100.0) as u64);
    // A hundred ticks on a busy machine say little.
    if many > 1000 && tick / yard > 1.5 {
        sweep.bad(format!("ticks take {tick:.2} times as long as in the beginning, the yardstick {yard:.2}"));
    }
    sound(&sweep, &life, many);
    sweep.end();
}

/// The history is whole, Git agrees, and both kinds of gc leave it so.
fn sound(sweep: &Sweep, life: &Life, many: usize) {
    let events = life.git(&["rev-list", "--count", "--first-parent", "main..work"]).parse::<usize>().unwrap();
    if events < 2 * many {
        sweep.bad(format!("{events} commits for {many} ticks"));
    }
    life.repo.assert_sound();
    life.git(&["gc", "-q", "--prune=now"]);
    life.run(&["gc"]).expect(0);
    one(sweep, life);
    life.repo.assert_sound();
}

fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |d| d.count())
}

fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:"));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// V17: one process that goes on and on.
#[test]
fn one_process() {
    let sweep = Sweep::begin(
        "endurance-process",
        "10,000 runs by one process of `git aynig run`",
        "descriptors and memory at the end as at the start; 0 leaked slots, locks, refs, processes",
    );
    sweep.at_least("runs", 100, 10_000);
    let (life, many) = (looping(), sweep.size(100, 10_000));
    for _ in 0..5 {
        one(&sweep, &life);
    }
    let before = left(&life);
    let log = life.repo.home().join("run.log");
    let mut runner = super::support::life::Running::logging(life.aynig(&["run", "-q", "work"]), &log);
    // The log folder tells how many there were, without asking Git each time.
    let done = || fs::read_dir(life.path(".aynig/logs")).map_or(0, |d| d.count() / 2);
    let (mut early, mut late) = (None, (0, 0));
    let until = Instant::now() + Duration::from_secs(1200);
    while done() < many && Instant::now() < until && !runner.is_over() {
        std::thread::sleep(Duration::from_millis(50));
        let count = descriptors(runner.pid());
        sweep.most("descriptors at most", count as u64);
        if done() > many / 10 && early.is_none() {
            early = Some((idle_descriptors(runner.pid(), &done), resident(runner.pid())));
        }
        late = (count, resident(runner.pid()));
    }
    late.0 = late.0.min(idle_descriptors(runner.pid(), &done));
    if runner.is_over() {
        sweep.bad(format!("it ended early: {:?} {}", runner.done(), fs::read_to_string(&log).unwrap()));
        return sweep.end();
    }
    let status = fs::read_to_string(format!("/proc/{}/status", runner.pid())).unwrap_or_default();
    let memory: Vec<&str> = status.lines().filter(|l| l.starts_with("Rss") || l.starts_with("Vm")).collect();
    let memory = memory.join(", ");
    runner.signal(nix::sys::signal::Signal::SIGTERM);
    let code = runner.done().code;
    let early = early.unwrap_or(late);
    sweep.count("runs", done() as u64);
    sweep.count("descriptors at the start", early.0 as u64);
    sweep.count("descriptors at the end", late.0 as u64);
    sweep.count("KiB resident at the start", early.1);
    sweep.count("KiB resident at the end", late.1);
    if late.1 > 64 << 10 {
        sweep.bad(format!("{} KiB resident after {} runs: {memory}", late.1, done()));
    }
    if code != Some(143) || late.0 > early.0 + 2 || late.1 > early.1 + (16 << 10) || done() < many {
        sweep.bad(format!("ended with {code:?}, {early:?} became {late:?}, {} runs", done()));
    }
    // The last run was stopped: its attempt and its branch are not what is looked at.
    let mut after = left(&life);
    after.refs.clone_from(&before.refs);
    nothing_more(&sweep, &before, &after);
    life.repo.assert_sound();
    sweep.end();
}

/// The least of some looks: between two runs it holds least. It is looked at over three runs at least, however long they
/// take, and for as long as it lives.
fn idle_descriptors(pid: i32, done: &dyn Fn() -> usize) -> usize {
    let (first, until) = (done(), Instant::now() + Duration::from_secs(60));
    let mut least = usize::MAX;
    loop {
        for _ in 0..200 {
            std::thread::sleep(Duration::from_micros(300));
            match descriptors(pid) {
                0 => return if least == usize::MAX { 0 } else { least },
                now => least = least.min(now),
            }
        }
        if done() >= first + 3 || Instant::now() > until {
            return least;
        }
    }
}

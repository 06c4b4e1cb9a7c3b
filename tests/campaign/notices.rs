//! Notices, while the process that makes what they tell of is killed at any call: the runner, its guardian, and the one
//! that starts the program.
//!
//! After each point other verbs come by, later, until the branch rests. Then each commit that a person should know of was told,
//! once; one of them may have been told twice: this is counted. `AYNIG_POINT=rename:3:runner=KILL` replays one point. For K53.

use super::points::name_of;
use super::row::{Dice, Sweep, full};
use super::scene::Saved;
use super::support::faketime::faketime;
use super::support::life::{Done, Life, done, eventually};
use super::trace::{self, Fault, Point, run};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A notice takes at most 10 seconds, and on a busy machine its process longer to start.
const TOLD_BY: Duration = Duration::from_secs(60);

/// A clock that later verbs go by. What its library shares between processes goes with the one that made it: a process in the
/// background, and the program that it starts, outlive the verb, and would not start without. So one that stays makes it.
struct Clock {
    library: &'static str,
    keeper: u32,
    /// It stays while this is open.
    _stays: (File, tempfile::TempDir),
}

impl Clock {
    fn find() -> Option<Self> {
        let library = faketime()?;
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("stays");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let stays = File::options().read(true).write(true).open(&fifo).unwrap();
        // No child of ours: the tracer waits for all of these.
        let script = "LD_PRELOAD=$0 FAKETIME=+0s cat <\"$1\" >/dev/null 2>&1 & echo $!";
        let mut sh = Command::new("sh");
        sh.args(["-c", script]).arg(library).arg(&fifo).env_remove("FAKETIME_SHARED");
        let keeper = String::from_utf8(sh.output().unwrap().stdout).unwrap().trim().parse().unwrap();
        let clock = Self { library, keeper, _stays: (stays, folder) };
        eventually("the clock", || clock.files().iter().all(|file| file.exists()).then_some(()));
        Some(clock)
    }

    fn files(&self) -> [PathBuf; 2] {
        let file = |name: &str| PathBuf::from(format!("/dev/shm/{name}_{}", self.keeper));
        [file("sem.faketime_sem"), file("faketime_shm")]
    }

    fn set(&self, command: &mut Command, seconds: u32) {
        let id = self.keeper;
        command
            .env("LD_PRELOAD", self.library)
            .env("FAKETIME", format!("+{seconds}s"))
            .env("FAKETIME_SHARED", format!("/faketime_sem_{id} /faketime_shm_{id}"))
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.files().iter().for_each(|file| drop(std::fs::remove_file(file)));
    }
}

struct World {
    life: Life,
    saved: Saved,
    faketime: Option<Clock>,
    /// How many verbs have come by: each ten minutes after the one before.
    came_by: Cell<u32>,
}

impl World {
    fn new() -> Self {
        let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"review\"}'")]);
        life.git(&["config", "gc.auto", "0"]);
        let (program, told) = (life.repo.home().join("notify"), life.repo.home().join("told"));
        crate::support::write_program(&program, &format!("#!/bin/sh\ncat >>'{}'\n", told.display()));
        life.config("aynig.notify", &format!("'{}'", program.display()));
        life.event("work", "build", "");
        let saved = Saved::of(life.repo.home().parent().unwrap().to_owned());
        Self { life, saved, faketime: Clock::find(), came_by: Cell::new(0) }
    }

    fn base(&self) -> PathBuf {
        self.life.repo.home().parent().unwrap().to_owned()
    }

    fn reset(&self) {
        self.rest();
        self.saved.restore();
        self.came_by.set(0);
    }

    fn tick(&self) -> Command {
        let lease: &[&str] = if self.faketime.is_some() { &[] } else { &["--lease", "3s"] };
        self.life.aynig(&[&["tick"], lease, &["work"]].concat())
    }

    fn later(&self, mut command: Command) -> Done {
        self.came_by.set(self.came_by.get() + 1);
        if let Some(clock) = &self.faketime {
            clock.set(&mut command, 600 * self.came_by.get());
        }
        done(command.output().unwrap())
    }

    /// Waits until nothing in the background gives a notice any more.
    fn rest(&self) {
        let (until, base) = (Instant::now() + TOLD_BY, self.base());
        let base = base.as_os_str().as_bytes();
        let is_ours = |words: &[u8]| {
            words.windows(base.len()).any(|part| part == base)
                && words.windows(6).any(|part| part == b"notify")
        };
        let busy = || {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            all.map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default())
                .any(|words| is_ours(&words))
        };
        while busy() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The commits that notices named, in their order.
    fn told(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.life.repo.home().join("told")).unwrap_or_default();
        let commit = |line: &str| {
            let notice = serde_json::from_str::<serde_json::Value>(line).ok()?;
            Some(notice["commit"].as_str()?.to_owned())
        };
        text.lines().map(|line| commit(line).unwrap_or_else(|| format!("torn: {line}"))).collect()
    }

    /// Has verbs come by until the branch waits for a person, as it should.
    fn goes_on(&self) -> Vec<String> {
        let mut said = Vec::new();
        for _ in 0..8 {
            said.push(self.later(self.life.aynig(&["status"])));
            said.push(self.later(self.tick()));
            self.rest();
            match &*self.life.state("work") {
                "review" => return Vec::new(),
                "stalled" => said.push(self.later(self.life.aynig(&["retry", "work", "--no-tick"]))),
                // Its runner was killed.
                "working" if self.faketime.is_none() => std::thread::sleep(Duration::from_millis(3_500)),
                _ => {}
            }
        }
        vec![format!("V11: ends as '{}': {said:?}", self.life.state("work"))]
    }

    /// What is wrong, and whether one came twice.
    fn judge(&self) -> (Vec<String>, bool) {
        let format = "--format=%H %(trailers:key=dwp-state,valueonly,separator=)";
        let log = self.life.git(&["log", "--first-parent", format, "work"]);
        let due: Vec<&str> = log
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, state)| matches!(*state, "review" | "stalled"))
            .map(|(id, _)| id)
            .collect();
        // The process that gives one may not have begun yet, and then none has its name; what could not be handed over
        // is given by the next verb.
        let until = Instant::now() + TOLD_BY;
        while !due.iter().all(|id| self.told().iter().any(|told| told == id)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
            self.later(self.life.aynig(&["status"]));
        }
        self.rest();
        let (told, mut bad) = (self.told(), Vec::new());
        let times = |id: &str| told.iter().filter(|told| *told == id).count();
        let (lost, twice) =
            (due.iter().filter(|id| times(id) == 0).count(), told.len().saturating_sub(due.len()));
        if lost > 0 {
            let log = std::fs::read_to_string(self.life.path(".aynig/logs/hook.log")).unwrap_or_default();
            let notes = std::fs::read_dir(self.life.repo.git_dir().join("aynig/notices"));
            let notes: Vec<_> = notes.into_iter().flatten().flatten().map(|note| note.file_name()).collect();
            bad.push(format!("K53: {lost} notices are lost: {told:?} of {due:?}, owed {notes:?}: {log:?}"));
        }
        if due.iter().map(|id| times(id).saturating_sub(1)).sum::<usize>() > 1 {
            bad.push(format!("K53: more than one comes twice: {told:?} of {due:?}"));
        }
        if let Some(other) = told.iter().find(|told| !due.contains(&told.as_str())) {
            bad.push(format!("K53: told of something else: {other}"));
        }
        (bad, twice > 0)
    }
}

#[test]
fn told_once() {
    let what = "SIGKILL before each mutating call of a tick that ends in something that a person is told of, of the one \
                process or of all";
    let sweep = Sweep::begin("notices", what, ">= 300 points: each told, at most one of them twice");
    if let Some(why) = trace::unable() {
        return sweep.skip(why);
    }
    let only = std::env::var("AYNIG_POINT").ok();
    if only.is_none() {
        sweep.at_least("points", 4, 300);
    }
    let world = World::new();
    world.reset();
    let calm = run(&world.tick(), None);
    let (bad, twice) = world.judge();
    bad.into_iter().for_each(|what| sweep.bad(format!("undisturbed: {what}")));
    assert!(calm.code == Some(0) && !twice, "{:?} {:?}", calm.code, world.told());
    let calls = calm.calls.into_iter().map(|(point, _)| point);
    let calls = calls.filter(|point| !point.is_theirs() && point.call != "read");
    let mut points: Vec<(Point, Fault)> =
        calls.flat_map(|point| [(point.clone(), Fault::Kill), (point, Fault::KillTree)]).collect();
    let name = |point: &Point, fault: Fault| format!("{point}={}", name_of(fault));
    let mut dice: Dice = sweep.dice();
    match &only {
        Some(only) => points.retain(|(point, fault)| name(point, *fault) == *only),
        None => points = dice.sample(points, if full() { 400 } else { 6 }),
    }
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (point, fault) in points {
        world.reset();
        let trace = run(&world.tick(), Some((&point, fault)));
        let Some(object) = &trace.hit else {
            *counts.entry("not reached").or_default() += 1;
            continue;
        };
        *counts.entry("points").or_default() += 1;
        let mut bad = if trace.hung { vec!["V16: it hung".to_owned()] } else { Vec::new() };
        bad.extend(world.goes_on());
        let (wrong, twice) = world.judge();
        bad.extend(wrong);
        *counts.entry("told twice").or_default() += u64::from(twice);
        for what in bad {
            let line = format!("AYNIG_POINT='{}' ({object}): {what}", name(&point, fault));
            eprintln!("VIOLATION: {line}");
            sweep.bad(line);
        }
    }
    counts.into_iter().for_each(|(what, n)| sweep.count(what, n));
    sweep.end();
}

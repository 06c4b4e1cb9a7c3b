//! The user's own next command, after a verb of ours was killed, or refused something by the system, at any call.
//!
//! What outcomes do to working trees, `retry`, `set-state` and its push, `hooks install` and `uninstall`. After each
//! point the user goes on with plain Git: what they type works, or a lock keeps it from working, and nothing that is on
//! a branch is undone by their next commit. At no more points is there such a lock than where Git's own verbs for the
//! same change are killed the same way, but for the index of a landing, which stays locked over the branch's move (K28).
//! Then one verb of ours comes by, and nothing is left in the way.
//! `AYNIG_POINT=retry/rename:3:runner=KILL` replays one, `AYNIG_CASES=retry,push` takes some, and `AYNIG_NEXT=kills`
//! takes every kill and no error, beside Git's own.
//! For K28, K41, K43.

use super::points::name_of;
use super::row::{Dice, Sweep, full};
use super::scene::Saved;
use super::support::faketime::faketime;
use super::support::life::{Done, LONG, Life, done};
use super::trace::{self, Fault, Point, run};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

const EDITS: &str = "rm dir/other; echo more >>file; mkdir new; echo n >new/file; chmod +x exec\n\
                     echo 'SET_STATE {\"state\":\"done\"}'";

/// One verb, and what Git itself has for the same change: each of them is killed once those before it are done.
struct Case {
    name: &'static str,
    ours: &'static [&'static str],
    gits: &'static [&'static [&'static str]],
    prepare: fn(&Life),
    /// What the user types next, besides looking and committing.
    next: &'static [&'static [&'static str]],
    /// At how many more points than with Git's own the index alone is locked, on purpose.
    longer: Longer,
}

/// At points of one process that is killed, and of all that are at once.
#[derive(Debug, Clone, Copy)]
struct Longer {
    one: u64,
    all: u64,
}

/// Git's own verb is one process, which moves its branch after it has let go of the index. Ours keeps the index locked
/// over the branch's move (15 calls of the runner), and has a child of its own change the files (18 more).
const OF_A_LANDING: Longer = Longer { one: 15, all: 33 };
const NONE: Longer = Longer { one: 0, all: 0 };
const COMMIT: &[&str] = &["commit", "-q", "--allow-empty", "-m", "x"];

const CONFIG: &[&[&str]] = &[&["config", "user.nick", "a"], &["config", "--unset", "user.nick"]];

const CASES: &[Case] = &[
    Case {
        name: "checkout",
        ours: &["tick", "work"],
        gits: &[&["merge", "-q", "--ff-only", "twin"]],
        prepare: asked,
        next: &[],
        longer: OF_A_LANDING,
    },
    Case {
        name: "retry",
        ours: &["retry", "work"],
        gits: &[&["merge", "-q", "--ff-only", "twin"]],
        prepare: held_up,
        next: &[],
        longer: OF_A_LANDING,
    },
    Case {
        name: "set-state",
        ours: &["set-state", "other"],
        gits: &[COMMIT],
        prepare: |_| {},
        next: &[],
        longer: NONE,
    },
    Case {
        name: "push",
        ours: &["set-state", "other", "--push"],
        gits: &[COMMIT, &["push", "-q", "origin", "work"]],
        prepare: shared,
        next: &[&["fetch", "-q"]],
        longer: NONE,
    },
    Case {
        name: "install",
        ours: &["hooks", "install"],
        gits: &[&["config", "receive.advertisePushOptions", "true"]],
        prepare: |_| {},
        next: CONFIG,
        longer: NONE,
    },
    Case {
        name: "uninstall",
        ours: &["hooks", "uninstall"],
        gits: &[&["config", "--unset", "receive.advertisePushOptions"]],
        prepare: |life| drop(life.run(&["hooks", "install"]).expect(0)),
        next: CONFIG,
        longer: NONE,
    },
];

/// `work` is checked out and asks for `build`; `twin` is a commit on it that does the same.
fn asked(life: &Life) {
    life.event("work", "build", "");
}

fn held_up(life: &Life) {
    asked(life);
    life.write("file", "mine\n");
    life.tick(&["work"]).expect(1);
    life.git(&["checkout", "-q", "--", "file"]);
}

fn shared(life: &Life) {
    let origin = life.repo.home().join("origin.git");
    life.git(&["clone", "-q", "--bare", ".", origin.to_str().unwrap()]);
    life.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
    life.git(&["push", "-qu", "origin", "work"]);
}

struct World {
    life: Life,
    saved: Saved,
}

impl World {
    fn new(case: &Case) -> Self {
        let life = Life::new(&[("build", EDITS)]);
        life.git(&["config", "gc.auto", "0"]);
        life.write("exec", "x\n");
        life.write(".git/hooks/post-commit", "#!/bin/sh\nexit 0");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(life.path(".git/hooks/post-commit"), executable).unwrap();
        life.git(&["add", "exec"]);
        life.git(&["commit", "-qm", "exec"]);
        life.git(&["checkout", "-qb", "work"]);
        (case.prepare)(&life);
        life.git(&["checkout", "-q", "-b", "twin"]);
        life.git(&["rm", "-q", "dir/other"]);
        life.write("file", "one\nmore\n");
        life.write("new/file", "n\n");
        life.git(&["add", "-A"]);
        life.git(&["commit", "-qm", "twin"]);
        life.git(&["checkout", "-q", "work"]);
        let saved = Saved::of(life.repo.home().parent().unwrap().to_owned());
        Self { life, saved }
    }

    fn base(&self) -> PathBuf {
        self.life.repo.home().parent().unwrap().to_owned()
    }

    fn reset(&self) {
        self.saved.restore();
    }

    fn command(&self, case: &Case) -> Command {
        let mut command = self.life.aynig(case.ours);
        command.env("AYNIG", if case.ours[0] == "tick" { "1" } else { "0" });
        command.current_dir(self.life.repo.path());
        command
    }

    fn gits<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut git = self.life.repo.command("git");
        git.current_dir(self.life.repo.path()).env("AYNIG", "0").args(args);
        git
    }

    fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> Done {
        done(self.gits(args).output().unwrap())
    }

    /// What the user types next; what of it a lock keeps from working, and what fails otherwise.
    fn next(&self, case: &Case) -> (Vec<String>, Vec<String>) {
        let own: [&[&str]; 2] =
            [&["status", "--porcelain"], &["commit", "-q", "--allow-empty", "-m", "mine"]];
        let (mut locked, mut bad) = (Vec::new(), Vec::new());
        for args in own.iter().chain(case.next) {
            let did = self.git(args);
            if did.code != Some(0) {
                let is_lock = did.stderr.contains(".lock") || did.stderr.contains("could not lock");
                let list = if is_lock { &mut locked } else { &mut bad };
                list.push(format!("git {}: {}", args.join(" "), did.stderr.trim()));
            }
        }
        (locked, bad)
    }

    /// What is on the branch of an outcome is still there.
    fn undone(&self) -> Option<String> {
        let outcome = "--grep=^dwp-state: done$";
        let outcome = self.git(&["log", "-1", "--format=%H", outcome, "work"]).stdout.trim().to_owned();
        if outcome.is_empty() {
            return None;
        }
        let undone = self.git(&["diff", "--stat", &outcome, "work"]).stdout;
        (!undone.is_empty()).then(|| format!("K28: the next commit took back: {undone}"))
    }

    fn locks(&self) -> Vec<String> {
        super::judge::locks(&self.life.repo.git_dir())
    }

    /// Configuration and hooks, byte for byte.
    fn theirs(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let git_dir = self.life.repo.git_dir();
        let mut all = super::support::life::tree_of(&git_dir.join("hooks"));
        all.insert("config".into(), std::fs::read(git_dir.join("config")).unwrap());
        all.into_iter().collect()
    }
}

fn faults(point: &Point, object: &str) -> Vec<Fault> {
    // A write to memory leaves the disk as it is: a kill before it is one before the call that follows.
    if point.is_theirs() || point.call == "read" || object.starts_with("/memfd:") {
        return Vec::new();
    }
    let errors: &[Errno] = match point.call.as_str() {
        "write" if object.starts_with("pipe:") => &[],
        // Of a file that can't be removed Git says so and goes on, as it does in a merge of the user's own.
        "unlink" if point.role.starts_with("git-read-tree") && !object.ends_with(".lock") => &[],
        "open" | "write" | "copy" => &[Errno::ENOSPC, Errno::EIO],
        "rename" | "link" => &[Errno::EACCES, Errno::ENOSPC],
        "mkdir" | "unlink" | "sync" => &[Errno::EIO],
        _ => &[],
    };
    let errors = errors.iter().copied().map(Fault::Error);
    [Fault::Kill, Fault::KillTree].into_iter().chain(errors).collect()
}

/// At how many points a kill leaves a lock in the way: of the index alone, and of anything else.
#[derive(Debug, Default, Clone, Copy)]
struct Blocked {
    index: u64,
    other: u64,
}

impl Blocked {
    fn add(&mut self, locked: &[String]) {
        let of_index = |said: &String| said.contains("/.git/index.lock'");
        match locked {
            [] => {}
            said if said.iter().all(of_index) => self.index += 1,
            _ => self.other += 1,
        }
    }
}

#[derive(Default)]
struct Found {
    counts: BTreeMap<String, u64>,
    killed: Blocked,
    all_killed: Blocked,
    bad: Vec<String>,
}

impl Found {
    fn count(&mut self, what: String) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Counts the locks that were in the way beside Git's own.
    fn judge(&mut self, case: &Case, gits: Blocked) {
        let Blocked { index, other } = gits;
        let verbs = case.gits.iter().map(|git| git[0]).collect::<Vec<_>>().join(" and ");
        for (how, ours, longer) in [
            ("after a kill", self.killed, case.longer.one),
            ("after all of it was killed", self.all_killed, case.longer.all),
        ] {
            if ours.index > index + longer || ours.other > other {
                let what = format!("K43: {}: {ours:?} {how}, of git {verbs} {gits:?}", case.name);
                eprintln!("VIOLATION: {what}");
                self.bad.push(what);
            }
        }
        let what = format!("{}: a lock in the way after a kill of git {verbs}", case.name);
        self.counts.insert(what, index + other);
    }
}

/// Every point of Git's own verbs where a kill leaves a lock in the way.
fn of_gits(world: &World, case: &Case) -> Blocked {
    let mut blocked = Blocked::default();
    for (n, git) in case.gits.iter().enumerate() {
        let begin = || {
            world.reset();
            case.gits[..n].iter().for_each(|before| _ = world.git(before));
        };
        begin();
        let calm = run(&world.gits(git), None);
        assert_eq!(calm.code, Some(0), "{}: {git:?}", case.name);
        for (point, object) in calm.calls {
            if faults(&point, &object).is_empty() {
                continue;
            }
            begin();
            run(&world.gits(git), Some((&point, Fault::Kill)));
            blocked.add(&world.next(case).0);
        }
    }
    blocked
}

fn disturb(
    world: &World,
    case: &Case,
    point: &Point,
    fault: Fault,
    before: &[(PathBuf, Vec<u8>)],
    found: &mut Found,
) {
    let trace = run(&world.command(case), Some((point, fault)));
    let Some(object) = trace.hit else { return found.count("not reached".to_owned()) };
    if !faults(point, &object).contains(&fault) {
        // Threads came in another order: what was hit there is nothing that the system can refuse so.
        return found.count("not reached".to_owned());
    }
    found.count("points".to_owned());
    let (locked, mut bad) = world.next(case);
    match fault {
        Fault::Kill => found.killed.add(&locked),
        Fault::KillTree => found.all_killed.add(&locked),
        Fault::Error(_) => {}
    }
    if !locked.is_empty() {
        let how = match fault {
            Fault::Kill => "after a kill",
            Fault::KillTree => "after all of it was killed",
            Fault::Error(_) => "after an error",
        };
        found.count(format!("{}: a lock in the way {how}", case.name));
    }
    bad.extend(world.undone());
    if trace.hung {
        bad.push("V16: it hung".to_owned());
    }
    // One verb of ours, whichever, and what is ours is gone; what a child of ours left, once it is old.
    world.life.run(&["status"]);
    if !world.next(case).0.is_empty() {
        found.count(format!("{}: until 10 s later", case.name));
        let mut later = world.life.aynig(&["status"]);
        age(&mut later);
        later.output().unwrap();
    }
    let (locked, more) = world.next(case);
    bad.extend(locked.into_iter().map(|what| format!("K43: blocked after the next verb: {what}")));
    bad.extend(more);
    bad.extend(world.undone());
    bad.extend(ends(world, case, before));
    bad.extend(world.locks().into_iter().map(|lock| format!("K43: left: {lock}")));
    let base = world.base().to_string_lossy().into_owned();
    for what in bad {
        let line = format!("AYNIG_POINT='{}/{point}={}' ({object}): {what}", case.name, name_of(fault));
        let line = line.replace(&base, "");
        eprintln!("VIOLATION: {line}");
        found.bad.push(line);
    }
}

/// The same verb again comes to the same end as if nothing had been.
fn ends(world: &World, case: &Case, before: &[(PathBuf, Vec<u8>)]) -> Vec<String> {
    let mut bad = Vec::new();
    match case.name {
        "checkout" | "retry" => {
            let mut status = world.git(&["status", "--porcelain"]).stdout;
            let until = Instant::now() + LONG;
            while !status.is_empty() && Instant::now() < until {
                // A child that outlived its runner may be at it yet.
                std::thread::sleep(std::time::Duration::from_millis(100));
                world.life.run(&["status"]);
                status = world.git(&["status", "--porcelain"]).stdout;
            }
            if !status.is_empty() {
                bad.push(format!("K45: the working tree has changes: {status}"));
            }
            if case.name == "retry" {
                let again = world.life.run(&["retry", "work"]);
                let landed = world.life.show("work", "file") == "one\nmore";
                if !landed || !matches!(again.code, Some(0 | 128)) {
                    bad.push(format!("K28: retry again: {again:?}"));
                }
            }
        }
        "install" | "uninstall" => {
            let undone = world.life.run(&["hooks", "uninstall"]);
            if undone.code != Some(0) || world.theirs() != before {
                bad.push(format!("K41: uninstall gives back something else: {undone:?}"));
            }
        }
        _ => {
            let again = world.life.run(&["set-state", "again"]);
            if again.code != Some(0) {
                bad.push(format!("K11: {again:?}"));
            }
        }
    }
    bad
}

/// Eleven seconds later.
fn age(command: &mut Command) {
    if let Some(library) = faketime() {
        command.env("LD_PRELOAD", library).env("FAKETIME", "+20s").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    } else {
        std::thread::sleep(std::time::Duration::from_secs(11));
    }
}

/// All of them, or those that `AYNIG_CASES` names.
fn asked_for(case: &Case) -> bool {
    std::env::var("AYNIG_CASES").map_or(true, |names| names.split(',').any(|name| name == case.name))
}

/// Every kill, and no error.
fn kills() -> bool {
    std::env::var("AYNIG_NEXT").is_ok_and(|v| v == "kills")
}

fn one(case: &Case, dice: &mut Dice, only: Option<&str>) -> Found {
    let mut found = Found::default();
    let wanted = only.map(|only| only.split_once('/').unwrap());
    if wanted.is_some_and(|(name, _)| name != case.name) || !asked_for(case) {
        return found;
    }
    let world = World::new(case);
    let before = {
        world.life.run(&["hooks", "uninstall"]);
        world.theirs()
    };
    let gits = if (full() || kills()) && only.is_none() { Some(of_gits(&world, case)) } else { None };
    world.reset();
    let calm = run(&world.command(case), None);
    let mut points: Vec<(Point, Fault)> = calm
        .calls
        .into_iter()
        .flat_map(|(point, object)| {
            faults(&point, &object).into_iter().map(move |fault| (point.clone(), fault))
        })
        .collect();
    match wanted {
        Some((_, name)) => points.retain(|(point, fault)| format!("{point}={}", name_of(*fault)) == name),
        None if kills() => points.retain(|(_, fault)| !matches!(fault, Fault::Error(_))),
        None if !full() => points = dice.sample(points, 3),
        None => {}
    }
    eprintln!("{}: {} points, git's own: {gits:?}", case.name, points.len());
    for (point, fault) in points {
        world.reset();
        disturb(&world, case, &point, fault, &before, &mut found);
    }
    if let Some(gits) = gits {
        eprintln!(
            "{}: in the way: {:?}, {:?}, git's own {gits:?}",
            case.name, found.killed, found.all_killed
        );
        found.judge(case, gits);
    }
    found
}

#[test]
fn commands() {
    let what = "a kill and an error at each call of checkout, retry, set-state, hooks install and uninstall; then plain Git";
    let figure =
        ">= 500 points; nothing undone; no more in the way than after Git's own; after the next verb nothing";
    let sweep = Sweep::begin("next-commands", what, figure);
    if let Some(why) = trace::unable() {
        return sweep.skip(why);
    }
    let only = std::env::var("AYNIG_POINT").ok();
    if only.is_none() {
        sweep.at_least("points", 10, 500);
    }
    let (queue, all) = (Mutex::new(CASES.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for n in 0..2 {
            let (queue, all, only, mut dice) = (&queue, &all, only.as_deref(), sweep.dice().of(n));
            scope.spawn(move || {
                loop {
                    let Some(case) = queue.lock().unwrap().next() else { break };
                    let found = one(case, &mut dice, only);
                    all.lock().unwrap().push(found);
                }
            });
        }
    });
    for found in all.into_inner().unwrap() {
        found.counts.iter().for_each(|(what, n)| sweep.count(what, *n));
        found.bad.iter().for_each(|bad| sweep.bad(bad.as_str()));
    }
    sweep.end();
}

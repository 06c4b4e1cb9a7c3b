//! What a person does to a branch at the very moment when a tick is somewhere in the middle.
//!
//! Promises V2-V6, V8, V12, V13, V15 (K11, K14, K17, K18, K24, K26, K28, K44): twenty things that people do, each at
//! five phases of a tick. The phases are held open, not hit by chance: before the claim the only slot is taken, after
//! it a smudge filter waits, then the command does, then a clean filter. Nothing of the person's is lost or undone,
//! what the run did is on the branch or an attempt, the tick ends, and the repository is sound.

use super::row::Sweep;
use super::support::judge::{commits, judge, moves};
use super::support::life::{Gate, Life, Running, eventually};
use std::fs;

const PHASES: [Phase; 5] = [Phase::Before, Phase::Claimed, Phase::Runs, Phase::Finishes, Phase::After];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    Before,
    Claimed,
    Runs,
    Finishes,
    After,
}

/// What the run's outcome may be afterwards.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Expect {
    /// The branch is not touched by it: the run lands.
    Lands,
    /// The head moved: the run is fenced, and the branch is the person's.
    Theirs,
    /// The branch is gone, and stays so.
    Gone,
    /// The slot is gone: the run may be stalled.
    Either,
    /// Local changes are in the way: the run stalls once it wants to land.
    Stalls,
}

type Act = fn(&Life);

const ACTS: [(&str, Act, Expect); 20] = [
    ("commit", |l| on_work(l, &["commit", "-q", "--allow-empty", "-m", "mine"]), Expect::Theirs),
    ("trigger", |l| drop(l.event("work", "other", "")), Expect::Theirs),
    ("amend", |l| on_work(l, &["commit", "-q", "--amend", "--allow-empty", "-m", "mine"]), Expect::Theirs),
    ("force", |l| drop(l.git(&["branch", "-q", "-f", "work", "main"])), Expect::Theirs),
    ("delete", |l| drop(l.git(&["branch", "-q", "-D", "work"])), Expect::Gone),
    ("rename", |l| drop(l.git(&["branch", "-q", "-m", "work", "renamed"])), Expect::Gone),
    ("delete and make again", again, Expect::Theirs),
    ("checkout", |l| drop(l.git(&["checkout", "-q", "work"])), Expect::Lands),
    ("checkout and edit", edit, Expect::Stalls),
    ("stash", stash, Expect::Lands),
    ("gc", |l| drop(l.git(&["gc", "-q", "--prune=now"])), Expect::Lands),
    ("pack-refs", |l| drop(l.git(&["pack-refs", "--all", "--prune"])), Expect::Lands),
    ("worktree remove", |l| slots(l, &["worktree", "remove", "--force", "--force"]), Expect::Either),
    ("cleaner", cleaner, Expect::Either),
    ("rebase", rebase, Expect::Theirs),
    ("merge", merge, Expect::Theirs),
    ("cancel", |l| drop(l.run(&["cancel", "work"])), Expect::Theirs),
    ("tag of that name", |l| drop(l.git(&["tag", "work", "main"])), Expect::Lands),
    ("reflog expire", expire, Expect::Lands),
    ("worktree add", linked, Expect::Lands),
];

/// Something on the branch, from the checkout, and back again.
fn on_work(life: &Life, args: &[&str]) {
    life.git(&["checkout", "-q", "work"]);
    life.git(args);
    life.git(&["checkout", "-q", "main"]);
}

fn again(life: &Life) {
    life.git(&["branch", "-q", "-D", "work"]);
    life.git(&["branch", "-q", "work", "main"]);
}

fn edit(life: &Life) {
    life.git(&["checkout", "-q", "work"]);
    life.write("file", "edited by hand\n");
}

fn stash(life: &Life) {
    life.write("file", "edited by hand\n");
    life.git(&["stash", "push", "-q"]);
}

fn slots(life: &Life, args: &[&str]) {
    let all = life.git(&["worktree", "list", "--porcelain"]);
    let slots =
        all.lines().filter_map(|l| l.strip_prefix("worktree ")).filter(|d| d.contains("/.cache/aynig/"));
    // Git refuses where nothing is there yet to be removed.
    slots.for_each(|dir| drop(life.repo.try_git(&[args, &[dir]].concat())));
}

fn cleaner(life: &Life) {
    let cache = life.repo.home().join(".cache/aynig");
    let pools = fs::read_dir(cache).into_iter().flatten().flatten().map(|e| e.path());
    let dirs = pools.flat_map(|p| fs::read_dir(p).unwrap().flatten().map(|e| e.path()));
    dirs.filter(|d| d.join(".git").exists()).for_each(|d| fs::remove_dir_all(d).unwrap());
    life.git(&["worktree", "prune"]);
}

fn new_main(life: &Life) {
    life.write("of main", "x\n");
    life.git(&["add", "of main"]);
    life.git(&["commit", "-qm", "on main"]);
}

fn rebase(life: &Life) {
    new_main(life);
    life.git(&["rebase", "-q", "--empty=keep", "main", "work"]);
    life.git(&["checkout", "-q", "main"]);
}

fn merge(life: &Life) {
    new_main(life);
    on_work(life, &["merge", "-q", "--no-edit", "main"]);
}

fn expire(life: &Life) {
    life.git(&["repack", "-adq"]);
    life.git(&["reflog", "expire", "--expire=now", "--expire-unreachable=now", "refs/heads/main"]);
    life.git(&["prune", "--expire=now"]);
}

fn linked(life: &Life) {
    let dir = life.repo.home().join("linked");
    life.git(&["worktree", "add", "-q", dir.to_str().unwrap(), "work"]);
}

/// A repository whose tick can be held at each phase.
fn stage() -> Life {
    let build = "echo at >\"$T/at-Runs\"; [ ! -e \"$T/hold-Runs\" ] || read x <\"$T/gate\"\n\
        echo run >>file; echo did >\"$T/did\"; echo run >>gated; echo 'SET_STATE {\"state\":\"next\"}'";
    let hold = "echo at >\"$T/at-Before\"; read x <\"$T/gate\"; echo 'SET_STATE {\"state\":\"next\"}'";
    let life = Life::new(&[("build", build), ("hold", hold)]);
    for (which, phase) in [("smudge", "Claimed"), ("clean", "Finishes")] {
        let path = life.repo.home().join(which);
        let script = format!(
            "#!/bin/sh\nif [ -n \"$T\" ] && [ -e \"$T/hold-{phase}\" ]; then\n  rm \"$T/hold-{phase}\"\n  \
             echo at >\"$T/at-{phase}\"; read x <\"$T/gate\"\nfi\nexec cat\n"
        );
        crate::support::write_program(&path, &script);
        life.config(&format!("filter.gate.{which}"), &format!("'{}'", path.display()));
    }
    life.config("aynig.jobs", "1");
    life.config("aynig.killGrace", "1s");
    life.write(".gitattributes", "gated filter=gate\n");
    life.write("gated", "one\n");
    life.git(&["add", "-A"]);
    life.git(&["commit", "-qm", "gated"]);
    life.event("work", "build", "");
    life.write("mine", "never touched\n");
    life
}

/// A tick that stands at this phase, and what else runs.
fn reach(life: &Life, phase: Phase) -> (Running, Option<Running>) {
    let hold = format!("hold-{phase:?}");
    fs::write(life.shared().join(&hold), "").unwrap();
    let log = life.repo.home().join("said");
    let tick = || Running::saying(life.aynig(&["tick", "work"]), &log);
    match phase {
        Phase::Before => {
            life.event("holder", "hold", "");
            let other = life.start_tick(&["holder"]);
            life.hear("at-Before");
            let tick = tick();
            eventually("it waits", || {
                fs::read_to_string(&log).unwrap().contains("waiting for one").then_some(())
            });
            (tick, Some(other))
        }
        Phase::Claimed | Phase::Runs | Phase::Finishes => {
            let tick = tick();
            life.hear(&format!("at-{phase:?}"));
            (tick, None)
        }
        Phase::After => {
            let mut tick = tick();
            eventually("over", || tick.is_over().then_some(()));
            (tick, None)
        }
    }
}

struct Case<'a> {
    sweep: &'a Sweep,
    life: &'a Life,
    what: String,
    phase: Phase,
    expect: Expect,
}

impl Case<'_> {
    fn bad(&self, why: impl std::fmt::Display) {
        self.sweep.bad(format!("{}: {why}", self.what));
    }

    /// The branch after the tick, where the person had left it at `left`.
    fn branch(&self, left: Option<&str>, code: Option<i32>) {
        let life = self.life;
        let now = life.try_rev("refs/heads/work");
        let in_run = matches!(self.phase, Phase::Claimed | Phase::Runs | Phase::Finishes);
        let state = now.as_ref().map(|_| life.state("work")).unwrap_or_default();
        let right = match (self.expect, in_run) {
            (Expect::Gone, _) => now.is_none(),
            (Expect::Theirs, true) => now.as_deref() == left && code == Some(3),
            (Expect::Lands, _) => state == "next" && code == Some(0),
            (Expect::Stalls, _) if self.phase != Phase::After => state == "stalled" && code == Some(1),
            (Expect::Either, true) => ["next", "stalled"].contains(&&*state),
            (Expect::Theirs | Expect::Either | Expect::Stalls, _) => now.is_some() && state != "working",
        };
        if !right {
            self.bad(format!("{now:?} ({state}), the person left {left:?}; the tick ended with {code:?}"));
        }
        if let (Some(left), Some(_)) = (left, &now) {
            let args = ["merge-base", "--is-ancestor", left, "refs/heads/work"];
            if !life.repo.try_git(&args).status.success() {
                self.bad("what the person left is not below the branch's head");
            }
        }
        // What a fenced run did is kept.
        let did = matches!(self.phase, Phase::Runs | Phase::Finishes);
        if did && matches!(self.expect, Expect::Theirs | Expect::Gone) && !self.kept() {
            self.bad(format!("the fenced run's work is nowhere: {:?}", life.attempts()));
        }
    }

    /// What had been done when it was fenced is in an attempt; a command that was stopped before it did anything
    /// leaves nothing. The command itself notes that it did.
    fn kept(&self) -> bool {
        let life = self.life;
        if !life.shared().join("did").exists() {
            return self.phase == Phase::Runs;
        }
        self.sweep.count("fenced runs that had done something", 1);
        let has_it = |attempt: &String| life.git(&["show", &format!("{attempt}:file")]).ends_with("\nrun");
        life.attempts().iter().any(has_it)
    }

    fn repository(&self, amended: bool) {
        let life = self.life;
        if fs::read_to_string(life.path("mine")).ok().as_deref() != Some("never touched\n") {
            self.bad("an untracked file was touched");
        }
        if self.expect == Expect::Stalls
            && self.phase != Phase::After
            && life.read("file") != "edited by hand\n"
        {
            self.bad("a local edit was touched");
        }
        for args in [
            &["status", "--porcelain"][..],
            &["log", "-1", "--all"],
            &["branch", "-a"],
            &["worktree", "list"],
            &["stash", "list"],
            &["fsck", "--strict", "--no-dangling"],
            &["gc", "-q"],
        ] {
            let output = life.repo.try_git(args);
            if !output.status.success() {
                self.bad(format!("git {args:?}: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        let full = "refs/heads/work".to_owned();
        let moves = moves(life.repo.command("git"), &full);
        let found = judge([(&full, &moves)], &commits(life.repo.command("git")));
        // What a person copies of a run's commits is no commit of the run's: the judge can't know.
        for (_, violation) in found.into_iter().filter(|_| !amended) {
            self.bad(violation);
        }
        if !life.git(&["for-each-ref", "refs/aynig/run"]).is_empty() {
            self.bad("a run's ref was left");
        }
    }
}

fn case(sweep: &Sweep, phase: Phase, act: &(&str, Act, Expect)) {
    let life = stage();
    let path = life.shared().join("gate");
    let mut gate: Gate = life.gate("gate");
    let what = format!("{} at {phase:?}", act.0);
    let (tick, other) = reach(&life, phase);
    (act.1)(&life);
    let left = life.try_rev("refs/heads/work");
    // One for each that may wait: a line that no command reads harms nothing.
    gate.open();
    if other.is_some() {
        gate.open();
    }
    let said = tick.done();
    other.into_iter().for_each(|other| drop(other.done()));
    drop((gate, path));
    // A branch that is gone before anything was done is a wrong name, and one that is made again is gone for a
    // moment, in which a tick that waits may look.
    let goes = act.2 == Expect::Gone || act.0 == "delete and make again";
    let gone = phase == Phase::Before && goes && said.code == Some(128);
    if !gone && !matches!(said.code, Some(0 | 1 | 3)) {
        sweep.bad(format!("{what}: {said:?} {}", fs::read_to_string(life.repo.home().join("said")).unwrap()));
    }
    let case = Case { sweep, life: &life, what, phase, expect: act.2 };
    case.branch(left.as_deref(), said.code);
    case.repository(act.0 == "rebase");
    sweep.count("cases", 1);
    sweep.count(&format!("ended with {:?}", said.code.unwrap_or(-1)), 1);
    // A branch that is still there can be ticked.
    if life.try_rev("refs/heads/work").is_some() {
        let again = life.tick(&["work"]);
        // A rebased lease is a lease: it ends by itself.
        let waits = act.0 == "rebase" && again.code == Some(3);
        if !waits && !matches!(again.code, Some(0 | 1)) {
            sweep.bad(format!("{}: the next tick: {again:?}", case.what));
        }
    }
}

/// K11, K24, K26, K28
#[test]
fn at_every_phase() {
    let sweep = Sweep::begin(
        "user-interventions",
        "20 things that people do to a branch, each at 5 phases of its tick",
        "20 x 5: nothing of theirs lost or undone, the run's work on the branch or kept",
    );
    sweep.at_least("cases", 12, 100);
    sweep.at_least("fenced runs that had done something", 0, 10);
    let all = PHASES.iter().flat_map(|phase| ACTS.iter().map(|act| (*phase, act))).collect::<Vec<_>>();
    let few = sweep.size(12, all.len());
    for (phase, act) in sweep.dice().sample(all, few) {
        case(&sweep, phase, act);
    }
    sweep.end();
}

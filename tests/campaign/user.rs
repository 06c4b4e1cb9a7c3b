//! A person who works in the checkout while branches are ticked.
//!
//! Promises V15 (K28, K45): the same operations are played in a twin of the repository that no runner ticks, with
//! the same dates, so that everything of the person's must be the same in both at any time: working tree, index, HEAD,
//! stash, refs, reflogs, configuration, other working trees. On a branch that is ticked and checked out at most Git's
//! own words about locks are met (`cannot lock ref`; `index.lock` for the moment in which an outcome arrives), no
//! commit that Git acknowledged is lost (V5), and no commit of the person's takes back what a run did.

use super::row::{Dice, Sweep};
use super::support::judge::{commits, judge, moves};
use super::support::life::{Done, LONG, Life, Running, done, tree_of};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

const LOOP: &str =
    "echo x >>\"$T/runs\"; echo \"$AYNIG_RUN_ID\" >auto; echo 'SET_STATE {\"state\":\"build\"}'";
/// Which rolls switch to another branch and back, and stash.
const SWITCHES: usize = 8;
const STASHES: usize = 9;
const TICKED: [&str; 3] = ["t0", "t1", "t2"];
/// The person's commands that look at each ref, and how often one is asked again.
const READS_ALL: [&str; 2] = ["gc", "repack"];
const AGAIN: usize = 3;

/// A repository that is ticked, and its twin that is not.
struct Twins<'s> {
    sweep: &'s Sweep,
    life: Life,
    places: [PathBuf; 2],
    ops: u64,
    notes: Vec<String>,
}

/// What must be the same in both.
type Facts = BTreeMap<String, String>;

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// True where all that stopped a command is that the ref of a run went meanwhile.
fn is_of_a_deleted_ref(output: &Output) -> bool {
    let words = text_of(&output.stderr);
    let mut fatal = words.lines().filter(|line| line.starts_with("fatal: ")).peekable();
    let is_that = |line: &str| {
        let of = ["fatal: bad object ", "fatal: unable to parse object: "];
        let named = of.iter().find_map(|words| line.strip_prefix(words));
        named.is_some_and(|name| name.starts_with("refs/aynig/run/"))
            || line.starts_with("fatal: failed to run ")
    };
    output.status.code() == Some(128)
        && fatal.peek().is_some_and(|line| !line.contains("failed to run"))
        && fatal.all(is_that)
}

impl<'s> Twins<'s> {
    fn new(sweep: &'s Sweep) -> Self {
        let life = Life::new(&[("build", LOOP)]);
        life.config("aynig.maxHops", "1000000");
        life.config("gc.auto", "0");
        for n in 0..4 {
            life.git(&["branch", &format!("u{n}")]);
        }
        let twin = life.repo.home().parent().unwrap().join("twin");
        let copied = life.repo.command("cp").arg("-a").arg(life.repo.path()).arg(&twin).status().unwrap();
        assert!(copied.success());
        let places = [life.repo.path(), twin];
        TICKED.iter().for_each(|name| drop(life.event(name, "build", "")));
        Self { sweep, life, places, ops: 0, notes: Vec::new() }
    }

    fn one(&self, place: &Path, args: &[&str]) -> Output {
        let date = format!("@{} +0000", 1_700_000_000 + self.ops);
        let mut git = self.life.repo.command("git");
        git.current_dir(place).env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        git.args(args).output().unwrap()
    }

    /// One operation of the person's, in both.
    fn git(&mut self, args: &[&str]) {
        self.ops += 1;
        let place = |n: usize| {
            let here = self.places[n].to_string_lossy().into_owned();
            let args: Vec<String> = args.iter().map(|arg| arg.replace("<here>", &here)).collect();
            self.one(&self.places[n], &args.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let [mut ticked, alone] = [0, 1].map(place);
        // Git reads a folder of refs, and then each of them: of one that is deleted in between, by any Git, it has these
        // words, and does the same command when it is asked again.
        let mut again = 0;
        while again < AGAIN && READS_ALL.contains(&args[0]) && is_of_a_deleted_ref(&ticked) {
            again += 1;
            self.sweep.count("stopped by a ref that was being deleted", 1);
            ticked = place(0);
        }
        self.sweep.count("operations", 1);
        self.notes.push(args.join(" "));
        let words = String::from_utf8_lossy(&ticked.stderr);
        if ticked.status.code() != alone.status.code() {
            let other = String::from_utf8_lossy(&alone.stderr);
            self.sweep
                .bad(format!("git {args:?}: {}: {words}\nalone: {}: {other}", ticked.status, alone.status));
        }
    }

    fn write(&self, name: &str, text: &str) {
        for place in &self.places {
            fs::write(place.join(name), text).unwrap();
        }
    }

    fn facts(&self, place: &Path) -> Facts {
        let say = |args: &[&str]| {
            let output = self.one(place, args);
            let text = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&text).replace(&*place.to_string_lossy(), "<here>")
        };
        let mut facts = Facts::new();
        let all = say(&["for-each-ref", "--format=%(refname) %(objectname) %(symref)"]);
        let theirs = |name: &str| {
            !name.starts_with("refs/aynig/") && !TICKED.iter().any(|t| name == format!("refs/heads/{t}"))
        };
        // The same of a command that only lists them.
        let deleted = |line: &&str| line.starts_with("warning: ignoring broken ref refs/aynig/run/");
        self.sweep
            .count("listed without a ref that was being deleted", all.lines().filter(deleted).count() as u64);
        let listed = all.lines().filter(|line| !deleted(line));
        for line in listed.filter(|l| theirs(l.split(' ').next().unwrap())) {
            let (name, value) = line.split_once(' ').unwrap();
            facts.insert(name.to_owned(), value.to_owned());
            let log = fs::read_to_string(place.join(".git/logs").join(name)).unwrap_or_default();
            facts.insert(format!("log {name}"), log);
        }
        for (what, args) in [
            ("index", &["ls-files", "-s", "-v"][..]),
            ("status", &["status", "--porcelain=v2", "--branch", "--untracked-files=all"]),
            ("stash", &["stash", "list", "--format=%gd %H %T %gs"]),
            ("head", &["reflog", "show", "HEAD", "--format=%H %gs"]),
            ("symbolic", &["rev-parse", "--symbolic-full-name", "HEAD"]),
        ] {
            facts.insert(what.to_owned(), say(args));
        }
        facts.insert("config".to_owned(), fs::read_to_string(place.join(".git/config")).unwrap());
        let trees = say(&["worktree", "list", "--porcelain"]);
        let trees = trees.split("\n\n").filter(|tree| !tree.contains("/.cache/aynig/"));
        facts.insert("worktrees".to_owned(), trees.collect::<Vec<_>>().join("\n\n"));
        // Git's own folder changes all the time, and so does the one of the logs.
        for entry in fs::read_dir(place).unwrap().flatten().filter(|e| e.file_name() != ".git") {
            let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
            if name == ".aynig" {
                continue;
            }
            if path.is_dir() {
                let below = tree_of(&path).into_iter();
                facts.extend(below.map(|(p, b)| (format!("file {name}/{}", p.display()), text_of(&b))));
            } else {
                facts.insert(format!("file {name}"), text_of(&fs::read(&path).unwrap()));
            }
        }
        facts
    }

    fn compare(&self) {
        let [ticked, alone] = [0, 1].map(|n| self.facts(&self.places[n]));
        self.sweep.count("comparisons", 1);
        for key in ticked.keys().chain(alone.keys().filter(|k| !ticked.contains_key(*k))) {
            let (a, b) = (ticked.get(key), alone.get(key));
            if a != b {
                let last = self.notes.iter().rev().take(12).collect::<Vec<_>>();
                self.sweep.bad(format!("V15: {key}:\n{a:?}\nalone:\n{b:?}\nafter {last:?}"));
            }
        }
    }

    /// One thing that a person does, of many.
    fn act(&mut self, n: usize, dice: &mut Dice) {
        let some = |dice: &mut Dice| format!("u{}", dice.below(4));
        let (branch, message) = (some(dice), format!("change {n}"));
        match dice.below(22) {
            0..5 => {
                self.write(&format!("f{}", dice.below(6)), &format!("{n}\n"));
                self.git(&["add", "-A", "."]);
                self.git(&["commit", "-qm", &message]);
            }
            5 => self.git(&["commit", "-q", "--amend", "--allow-empty", "-m", &message]),
            6..9 => self.git(&["checkout", "-q", &branch]),
            9 => {
                self.write("file", &format!("edited {n}\n"));
                self.git(&["stash", "push", "-q"]);
            }
            10 => self.git(&["stash", "pop", "-q"]),
            11 => {
                self.git(&["rebase", "-q", &branch]);
                self.git(&["rebase", "--abort"]);
            }
            12 => self.git(&["gc", "-q"]),
            13 => self.git(&["pack-refs", "--all"]),
            14 => {
                self.git(&["worktree", "add", "-q", "-b", &format!("w{n}"), "<here>-w", "main"]);
                self.git(&["worktree", "remove", "--force", "<here>-w"]);
                self.git(&["worktree", "prune"]);
            }
            15 => {
                self.git(&["branch", "-q", "extra", &branch]);
                self.git(&["branch", "-qm", "extra", &format!("named{n}")]);
                self.git(&["branch", "-qD", &format!("named{n}")]);
            }
            16 => self.git(&["tag", "-f", "mark"]),
            17 => self.git(&["reset", "-q", "--soft", "HEAD~1"]),
            18 => {
                self.git(&["merge", "-q", "-m", &message, &branch]);
                self.git(&["merge", "--abort"]);
            }
            19 => self.git(&["reset", "-q", "--hard"]),
            20 => {
                self.git(&["fetch", "-q", ".", &format!("+{branch}:refs/fetched/{branch}")]);
                self.git(&["reflog", "expire", "--expire=now", "refs/heads/u3"]);
            }
            _ => self.git(&["repack", "-adq"]),
        }
    }
}

/// Ticks these branches until it is told to stop.
fn ticking(life: &Life, branches: &[&str]) -> Running {
    let log = life.repo.home().join("ticking.log");
    let args = [&["run", "--every", "5ms", "--jobs", "2", "-q"], branches].concat();
    Running::logging(life.aynig(&args), &log)
}

/// K45
#[test]
fn beside_ticked_branches() {
    only_a_ref_of_a_run_may_go_meanwhile();
    let sweep = Sweep::begin(
        "user-beside",
        "a person works in the checkout while three other branches are ticked without a pause",
        "1,000 operations: 0 errors, and everything of theirs as in a twin that nobody ticks",
    );
    sweep.at_least("operations", 30, 1000);
    sweep.at_least("runs meanwhile", 1, 100);
    let mut twins = Twins::new(&sweep);
    let (mut dice, wanted) = (sweep.dice(), sweep.size(30, 1000) as u64);
    let runner = ticking(&twins.life, &TICKED);
    let mut n = 0;
    while twins.ops < wanted {
        twins.act(n, &mut dice);
        n += 1;
        if n % 10 == 0 {
            twins.compare();
        }
    }
    twins.compare();
    runner.signal(nix::sys::signal::Signal::SIGTERM);
    runner.done();
    sweep.count("runs meanwhile", twins.life.said("runs").lines().count() as u64);
    history(&sweep, &twins.life, &TICKED);
    sweep.end();
}

/// The ticked branches' histories hold, and the repository is sound.
fn history(sweep: &Sweep, life: &Life, branches: &[&str]) {
    let all = branches.iter().map(|name| {
        let full = format!("refs/heads/{name}");
        let moves = moves(life.repo.command("git"), &full);
        (full, moves)
    });
    let all: BTreeMap<_, _> = all.collect();
    for (name, violation) in judge(&all, &commits(life.repo.command("git"))) {
        sweep.bad(format!("{name}: {violation}"));
    }
    // A repack drops what a reset and an expired reflog gave up, and Git's graph of commits names it until it is written again.
    life.git(&["commit-graph", "write", "--reachable", "--no-progress"]);
    life.repo.assert_sound();
}

/// K24, K28: the person stands on the branch itself.
#[test]
fn on_the_ticked_branch() {
    let sweep = Sweep::begin(
        "user-on-it",
        "a person commits, amends, resets, stashes and switches on the very branch that is ticked",
        "1,000 operations: at most 'cannot lock ref' and a locked index, nothing lost, local changes untouched",
    );
    sweep.at_least("operations", 40, 1000);
    sweep.at_least("commits kept", 1, 200);
    sweep.at_least("runs meanwhile", 1, 100);
    let life = Life::new(&[("build", LOOP)]);
    life.config("aynig.maxHops", "1000000");
    life.config("gc.auto", "0");
    // Several resets may come before the first run has made a commit.
    (0..10).for_each(|n| drop(life.git(&["commit", "-q", "--allow-empty", "-m", &format!("before {n}")])));
    life.git(&["checkout", "-qb", "t0"]);
    life.event("t0", "build", "");
    life.write("mine", "never touched\n");
    let runner = ticking(&life, &["t0"]);
    let (mut dice, mut made) = (sweep.dice(), Vec::new());
    for n in 0..sweep.size(40, 1000) {
        let (before, roll) = (sweep.counted("cannot lock ref"), dice.below(12));
        if let Some(id) = step(&sweep, &life, n, roll) {
            made.push(id);
        }
        let lost = sweep.counted("cannot lock ref") > before;
        arrived(&sweep, &life, n, lost || [SWITCHES, STASHES].contains(&roll));
        if fs::read_to_string(life.path("mine")).ok().as_deref() != Some("never touched\n") {
            sweep.bad(format!("operation {n}: an untracked file was touched"));
            life.write("mine", "never touched\n");
        }
    }
    runner.signal(nix::sys::signal::Signal::SIGTERM);
    runner.done();
    let log = fs::read_to_string(life.path(".git/logs/refs/heads/t0")).unwrap();
    for id in &made {
        // Acknowledged by Git: it was the head, and only the person may have taken it away (the judge looks).
        if !log.lines().any(|line| line[41..].starts_with(id.as_str())) {
            sweep.bad(format!("{id} was acknowledged, and is not in the branch's log"));
        }
    }
    // What the runs did has arrived in the working tree: only the person's own files differ.
    let differs = life.git(&["status", "--porcelain"]);
    if differs.lines().any(|line| line.ends_with(" auto")) {
        sweep.bad(format!("the working tree does not have what the branch holds: {differs}"));
    }
    nothing_taken_back(&sweep, &life, &made);
    sweep.count("commits kept", made.len() as u64);
    sweep.count("runs meanwhile", life.said("runs").lines().count() as u64);
    history(&sweep, &life, &["t0"]);
    sweep.end();
}

/// No commit of the person's takes back what a run left in the file `auto`: only runs write it.
fn nothing_taken_back(sweep: &Sweep, life: &Life, made: &[String]) {
    for id in made {
        let [own, below] = [id.clone(), format!("{id}~1")].map(|c| life.try_rev(&format!("{c}:auto")));
        // Amended: its parent is that of what it replaced.
        let amended = life.body(id).contains("amended");
        if own != below && !amended {
            sweep.bad(format!("{id} takes back what the run before it had done"));
        }
    }
}

/// What the branch holds of the runs' file is what the working tree has, at the latest a moment later. An operation
/// that `lost` may have left its own: `git commit` reads the index before it locks it, and writes what it read;
/// `git reset` writes index and files before it finds that the branch moved, `git stash` refreshes the index that
/// it read before it locks it, and `git checkout` goes to the commit that it read, and says afterwards that it
/// stands on the branch.
fn arrived(sweep: &Sweep, life: &Life, n: usize, lost: bool) {
    let until = Instant::now() + if lost { Duration::from_secs(1) } else { LONG };
    loop {
        let mut git = life.repo.command("git");
        let said =
            done(git.args(["--no-optional-locks", "status", "--porcelain", "--", "auto"]).output().unwrap());
        if said.stdout.is_empty() {
            return;
        }
        if Instant::now() > until {
            if lost {
                sweep.count("Git itself left what the branch held before", 1);
                life.git(&["reset", "-q", "--hard"]);
                return;
            }
            let log = life.git(&["reflog", "-n12", "--format=%h %gs", "HEAD"]);
            sweep.bad(format!("after operation {n} the working tree does not follow: {said:?}\n{log}"));
            life.git(&["reset", "-q", "--hard"]);
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// While an outcome is brought into this very working tree its index is locked for a moment, as by any Git.
fn again_while_locked(sweep: &Sweep, life: &Life, args: &[&str]) -> Done {
    let until = Instant::now() + LONG;
    loop {
        let said = done(life.repo.command("git").args(args).output().unwrap());
        let words = ["index.lock': File exists", "could not write index"];
        // An older `git stash` ends without a word where it can't take the index.
        let wordless = args.contains(&"stash") && said.code == Some(1) && said.stderr.is_empty();
        let named = said.code != Some(0) && words.iter().any(|w| said.stderr.contains(w));
        let locked = named || wordless;
        if !locked || Instant::now() > until {
            return said;
        }
        sweep.count("index.lock: tried again", 1);
    }
}

/// One operation on it; the id of the commit that Git acknowledged.
fn step(sweep: &Sweep, life: &Life, n: usize, roll: usize) -> Option<String> {
    let message = format!("change {n}\n\ndwp-state: build\n");
    let file = format!("f{}", n % 5);
    let run = |args: &[&str]| {
        let said = again_while_locked(sweep, life, args);
        sweep.count("operations", 1);
        let own = said.stderr.contains("overwritten") || said.stderr.contains("not uptodate");
        match said.code {
            Some(0) => sweep.count("done", 1),
            _ if said.stderr.contains("cannot lock ref") => sweep.count("cannot lock ref", 1),
            // A user whose commit lost the race still has staged what it was to hold.
            _ if own && !said.stderr.contains("auto") => sweep.count("refused for local changes", 1),
            _ => sweep.bad(format!("operation {n}: git {args:?}: {said:?}")),
        }
        (said.code == Some(0)).then_some(said.stdout)
    };
    let commit = |args: &[&str]| {
        // Quiet prints nothing; the summary line names the commit: `[t0 1a2b3c4] change`.
        let said = run(args)?;
        let short = said.lines().find(|l| l.starts_with("[t0 "))?.split([' ', ']']).nth(1)?.to_owned();
        Some(life.rev(&short))
    };
    match roll {
        0..4 => {
            life.write(&file, &format!("{n}\n"));
            run(&["add", &file])?;
            commit(&["commit", "-m", &message])
        }
        4..6 => commit(&["commit", "--allow-empty", "-m", &message]),
        6 => commit(&["commit", "--amend", "--allow-empty", "-m", &format!("amended: {message}")]),
        7 => run(&["reset", "-q", "--keep", "HEAD~1"]).and(None),
        SWITCHES => {
            run(&["checkout", "-q", "main"])?;
            run(&["checkout", "-q", "t0"]).and(None)
        }
        STASHES => {
            life.write("dir/other", &format!("{n}\n"));
            run(&["stash", "push", "-q", "--", "dir/other"])?;
            run(&["stash", "drop", "-q"]).and(None)
        }
        10 => run(&["pack-refs", "--all"]).and(None),
        _ => run(&["status", "--short"]).and(None),
    }
}

/// Makes sure that no more than that passes for Git's own.
fn only_a_ref_of_a_run_may_go_meanwhile() {
    use std::os::unix::process::ExitStatusExt;
    let ended = |code: i32, said: &str| Output {
        status: std::process::ExitStatus::from_raw(code << 8),
        stdout: Vec::new(),
        stderr: said.into(),
    };
    let bad = "fatal: bad object refs/aynig/run/1";
    assert!(is_of_a_deleted_ref(&ended(128, bad)));
    assert!(is_of_a_deleted_ref(&ended(128, "fatal: unable to parse object: refs/aynig/run/1\n")));
    assert!(is_of_a_deleted_ref(&ended(128, &format!("{bad}\nfatal: failed to run repack\n"))));
    for said in [
        "",
        "fatal: failed to run repack",
        "fatal: bad object refs/heads/t0",
        "fatal: bad object refs/aynig/attempts/1",
        "fatal: bad object HEAD\nfatal: bad object refs/aynig/run/1",
        "fatal: Unable to create '.git/packed-refs.lock': File exists.",
    ] {
        assert!(!is_of_a_deleted_ref(&ended(128, said)), "{said}");
    }
    assert!(!is_of_a_deleted_ref(&ended(1, bad)));
}

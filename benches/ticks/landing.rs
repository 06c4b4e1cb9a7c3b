//! What it costs where commits land: the hook of a commit, a tick of a remote's branch, the hook of a push.

use super::{Limit, Place, Row, measure, rounds, wanted};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What the row of one push among many branches is called.
pub const PUSH_ROW: &str = "post-receive of one branch among 10,000";
/// Nothing that was pushed takes so long.
const LONGEST: Duration = Duration::from_secs(20);

/// Commits that are no state event, with the hook and without, in two repositories that are alike. And with one
/// that does nothing: what Git and the shell take for any hook.
pub fn commits(place: &Place, rows: &mut Vec<Row>) {
    let (with, without) = (place.repository("hooked", 10), place.repository("plain", 10));
    place.time(&with, &place.bin, &["hooks", "install"], 0);
    let commit =
        |dir: &Path| place.time(dir, Path::new("git"), &["commit", "-q", "--allow-empty", "-m", "x"], 0);
    rows.extend(measure(
        "commit with the hook, no state event",
        "the same commit without it",
        Limit::More(3.0),
        rounds() * 5,
        |_| commit(&with),
        |_| commit(&without),
    ));
    let empty = place.repository("empty hook", 10);
    let hook = empty.join(".git/hooks/post-commit");
    std::fs::write(&hook, "#!/bin/sh\nexit 0\n").expect("hook");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
    rows.extend(measure(
        "commit with a hook that does nothing",
        "the same commit without it",
        Limit::None,
        rounds() * 5,
        |_| commit(&empty),
        |_| commit(&without),
    ));
}

/// A tick of one branch of a remote, beside one fetch and two pushes of a commit.
pub fn remotes(place: &Place, rows: &mut Vec<Row>) {
    let dir = place.repository("remote", 10);
    place.git(&dir, &["config", "aynig.fsync", "false"]);
    let origin = place.root.join("origin.git");
    let url = origin.to_string_lossy().into_owned();
    place.git(&dir, &["clone", "-q", "--bare", ".", &url]);
    place.git(&dir, &["remote", "add", "origin", &url]);
    place.git(&dir, &["fetch", "-q", "origin"]);
    let mut count = 0;
    let new_commit = |text: &str, parent: &str| {
        place.git_says(&dir, &["commit-tree", "main^{tree}", "-p", parent], text.as_bytes())
    };
    let mut tips = (0, place.git_says(&dir, &["rev-parse", "main"], b""));
    rows.extend(measure(
        "tick of a remote's branch",
        "git fetch + 2 git push",
        Limit::Ratio(1.3),
        rounds(),
        |_| {
            count += 1;
            let trigger = new_commit(&format!("go {count}\n\ndwp-state: build\n"), "main");
            place.git(&dir, &["push", "-qf", "origin", &format!("{trigger}:refs/heads/work")]);
            place.time(&dir, &place.bin, &["tick", "--remote", "origin", "work"], 0)
        },
        |_| {
            tips.0 += 1;
            let first = new_commit(&format!("a {}\n", tips.0), &tips.1);
            let second = new_commit(&format!("b {}\n", tips.0), &first);
            tips.1.clone_from(&second);
            let git = Path::new("git");
            let push =
                |id: &str| place.time(&dir, git, &["push", "-q", "origin", &format!("{id}:refs/heads/y")], 0);
            place.time(&dir, git, &["fetch", "-q", "origin"], 0) + push(&first) + push(&second)
        },
    ));
}

/// The hook of a push of one branch, in a repository with many and in one with few.
pub fn pushes(place: &Place, rows: &mut Vec<Row>) {
    let [many, few] = [("many", 10_000), ("few", 10)].map(|(name, branches)| {
        let dir = served(place, name, branches);
        place.time(&dir, &place.bin, &["hooks", "install"], 0);
        dir
    });
    rows.extend(measure(
        PUSH_ROW,
        "the same among 10",
        Limit::Ratio(1.5),
        rounds(),
        |n| received(place, &many, n),
        |n| received(place, &few, n),
    ));
}

/// A bare repository with so many branches.
fn served(place: &Place, name: &str, branches: usize) -> PathBuf {
    let source = place.repository(&format!("{name}-source"), 10);
    let head = place.git_says(&source, &["rev-parse", "main"], b"");
    let updates: String = (0..branches).map(|n| format!("create refs/heads/b{n} {head}\n")).collect();
    place.git_says(&source, &["update-ref", "--stdin"], updates.as_bytes());
    place.git(&source, &["pack-refs", "--all"]);
    let dir = place.root.join(format!("{name}.git"));
    place.git(&source, &["clone", "-q", "--mirror", ".", &dir.to_string_lossy()]);
    dir
}

/// A push where nothing is to be done about what arrives, one that is dispatched, and the time until that run's
/// outcome, each beside the same push to a repository whose hook does nothing.
pub fn hooks_of_pushes(place: &Place, rows: &mut Vec<Row>) {
    let names = ["push of what is no event", "push of a state event", "outcome of what was pushed"];
    for branches in [10, 10_000] {
        let name = |what: &str| format!("{what}, {branches} branches");
        if !names.iter().any(|what| wanted(&name(what))) {
            continue;
        }
        let [with, without] =
            ["hooked-push", "empty-push"].map(|name| served(place, &format!("{name}{branches}"), branches));
        place.time(&with, &place.bin, &["hooks", "install"], 0);
        let hook = without.join("hooks/post-receive");
        std::fs::write(&hook, "#!/bin/sh\nexit 0\n").expect("hook");
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
        let source = place.root.join(format!("hooked-push{branches}-source"));
        let push = |to: &Path, n: usize, trailer: &str, outcome: bool| {
            let message = format!("go {n}\n\nbody\n\n{trailer}\n");
            let id =
                place.git_says(&source, &["commit-tree", "main^{tree}", "-p", "main"], message.as_bytes());
            let (to_ref, url) = (format!("{id}:refs/heads/work"), to.to_string_lossy().into_owned());
            let start = Instant::now();
            let took = place.time(&source, Path::new("git"), &["push", "-qf", &url, &to_ref], 0);
            let done = || {
                let state = ["log", "-1", "--format=%(trailers:key=dwp-state,valueonly)", "work"];
                place.git_says(to, &state, b"") == "done"
            };
            let ran = to == with && trailer.starts_with("dwp-");
            while ran && start.elapsed() < LONGEST && !done() {}
            if outcome && ran { start.elapsed() } else { took }
        };
        let limits = [Limit::More(5.0), Limit::More(5.0), Limit::None];
        for (at, (what, limit)) in names.into_iter().zip(limits).enumerate() {
            let trailer = if at == 0 { "ticket: 7" } else { "dwp-state: build" };
            rows.extend(measure(
                &name(what),
                "the same push, a hook that does nothing",
                limit,
                rounds(),
                |n| push(&with, n, trailer, at == 2),
                |n| push(&without, n, trailer, false),
            ));
        }
    }
}

/// Runs the hook as Git does, for one branch whose head is an event, and waits until its chain is over too.
fn received(place: &Place, dir: &Path, n: usize) -> Duration {
    let message = format!("go {n}\n\ndwp-state: build\n");
    let commit =
        ["-c", "user.name=b", "-c", "user.email=b@example.com", "commit-tree", "main^{tree}", "-p", "main"];
    let id = place.git_says(dir, &commit, message.as_bytes());
    place.git(dir, &["update-ref", "refs/heads/work", &id]);
    let mut command = place.command(&dir.join("hooks/post-receive"), dir);
    command.env("GIT_DIR", ".").stdin(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().expect("hook");
    let line = format!("{} {id} refs/heads/work\n", "0".repeat(40));
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), line.as_bytes()).expect("hook reads");
    assert!(child.wait().expect("hook ends").success());
    let took = start.elapsed();
    let state = ["log", "-1", "--format=%(trailers:key=dwp-state,valueonly)", "work"];
    for _ in 0..400 {
        if place.git_says(dir, &state, b"").trim() == "done" {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    took
}

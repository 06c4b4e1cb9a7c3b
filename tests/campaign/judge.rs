//! What must be true after a tick that was disturbed, once another tick came by.
//!
//! Nothing that a command finished is lost (V8), the branch is not wedged (V11), Git finds nothing wrong and
//! works for its user (V13), own locks are gone after the next tick (K43), run refs with the runs (K44), the
//! history breaks no rule (V1-V7), and what was reported is what is (V9).

use super::scene::World;
use aynig::protocol::id::ObjectId;
use aynig::protocol::invariants::{Recorded, check_line};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const STATES: &str = "--format=%(trailers:key=dwp-state,valueonly,separator=)";

/// The state of the branch's head.
pub fn state(world: &World) -> String {
    world.git(&["log", "-1", STATES, "refs/heads/work"])
}

/// Ticks again, later, until the branch has come to its end; returns everything that is wrong then.
pub fn settle(world: &World) -> Vec<String> {
    let mut bad = Vec::new();
    world.wait();
    bad.extend(unwedged_remote(world));
    let next = world.later(&["tick", "--json", "work"]);
    if !matches!(next.code, Some(0 | 1)) {
        bad.push(format!("V11: the next tick fails: {next:?}"));
    }
    bad.extend(
        locks(&world.git_dir()).into_iter().map(|lock| format!("K43: left after the next tick: {lock}")),
    );
    if !matches!(state(world).as_str(), "done" | "stalled") {
        bad.push(format!("V11: '{}' after the next tick: {next:?}", state(world)));
    }
    if !finished(world).is_empty() {
        // Work that could not be kept is still in its slot; the runner that wants that slot, or `gc`, keeps it first.
        bad.extend(collect(world));
        bad.extend(
            finished(world).into_iter().map(|run| format!("V8: the outcome of {run} is lost: {next:?}")),
        );
    }
    let again = if world.scene.end == "done" { 3 } else { 0 };
    for _ in 0..again {
        if state(world) == "done" {
            break;
        }
        let retry = world.later(&["retry", "work"]);
        let tick = world.later(&["tick", "--json", "work"]);
        if retry.code != Some(0) || !matches!(tick.code, Some(0 | 1)) {
            bad.push(format!("V11: retry fails: {retry:?} {tick:?}"));
            break;
        }
    }
    if state(world) != world.scene.end {
        bad.push(format!("V11: ends as '{}'", state(world)));
    }
    bad.extend(
        finished(world).into_iter().map(|run| format!("V8: the outcome of {run} was lost by a retry")),
    );
    bad.extend(collect(world));
    bad.extend(everyday(world));
    bad.extend(history(world));
    bad
}

/// Locks on the remote are not ours to remove (K43): they are reported; here its administrator removes them.
fn unwedged_remote(world: &World) -> Vec<String> {
    let mut bad = Vec::new();
    if !world.scene.remote {
        return bad;
    }
    for lock in locks(&world.branch_dir()) {
        let next = world.later(&["tick", "--json", "work"]);
        if !matches!(next.code, Some(0 | 1 | 75)) {
            bad.push(format!("K43: with {lock} on the remote: {next:?}"));
        }
        let _ = std::fs::remove_file(world.branch_dir().join(lock));
    }
    bad
}

/// Every lock in a Git directory that can be in the way of a process.
pub fn locks(git_dir: &Path) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![git_dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let below = path.strip_prefix(git_dir).unwrap().to_owned();
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                folders.push(path);
            } else if (path.extension().is_some_and(|e| e == "lock") && !is_slot_lock(&below))
                || below.starts_with("aynig/locks")
            {
                found.push(below.to_string_lossy().into_owned());
            }
        }
    }
    found
}

/// Locks of slots, which stay, and those of files that only one slot or one process of ours ever uses: they
/// block no other process, and go with the slot's next use or with `gc`.
fn is_slot_lock(below: &Path) -> bool {
    let text = below.to_string_lossy();
    if ["worktrees/aynig-slot-", "aynig/merge-", "aynig/.new-config-"].iter().any(|p| text.starts_with(p))
        || text.contains(".staging-")
    {
        return true;
    }
    let stem = below.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    below.parent() == Some(Path::new("aynig/slots")) && stem.bytes().all(|b| b.is_ascii_digit())
}

/// Runs whose command finished, and whose work is neither on the branch nor kept.
fn finished(world: &World) -> Vec<String> {
    let format = "--format=%(trailers:key=dwp-state,valueonly,separator=) %(trailers:key=dwp-run-id,valueonly,separator=)";
    let branch = world.git(&["log", "--first-parent", format, "refs/heads/work"]);
    let kept = |dir: &Path, run: &str| {
        let name = format!("refs/aynig/attempts/{run}:result");
        let output = world.git_at(dir, &["cat-file", "-p", &name]);
        String::from_utf8_lossy(&output.stdout).trim_end() == run
    };
    let mut runs = world.noted("finished");
    runs.retain(|run| {
        let landed = branch.lines().any(|line| line == format!("done {run}"));
        !landed && !kept(&world.git_dir(), run) && !kept(&world.branch_dir(), run)
    });
    runs
}

/// Has everything removed that is no longer needed.
fn collect(world: &World) -> Option<String> {
    // The ref of a run stays as long as the lease that it points to could be one that has just been taken.
    let mut gc = world.life().aynig(&["gc", "-q"]);
    world.age(gc.current_dir(world.work_dir()));
    let gc = super::support::life::done(gc.output().unwrap());
    (gc.code != Some(0)).then(|| format!("K14: gc fails: {gc:?}"))
}

/// Git works for its user, and finds nothing wrong.
fn everyday(world: &World) -> Vec<String> {
    let mut bad = Vec::new();
    let mut git = |dir: PathBuf, args: &[&str]| {
        let output = world.git_at(&dir, args);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let quiet = args[0] != "fsck" || said.lines().all(|line| line.contains("notice:"));
        if !output.status.success() || !quiet {
            bad.push(format!("V13: git {}: {said}", args.join(" ")));
        }
        said
    };
    let fsck = ["fsck", "--strict", "--no-dangling", "--no-progress"];
    git(world.branch_dir(), &fsck);
    if world.scene.remote {
        git(world.git_dir(), &fsck);
    }
    let status = git(world.work_dir(), &["status", "--porcelain"]);
    git(world.work_dir(), &["worktree", "list"]);
    git(world.work_dir(), &["commit", "-q", "--allow-empty", "-m", "mine"]);
    let runs = git(world.git_dir(), &["for-each-ref", "refs/aynig/run"]);
    if !status.is_empty() {
        bad.push(format!("K45: the working tree has changes: {status}"));
    }
    if !runs.is_empty() {
        bad.push(format!("K44: runs that are over have a ref: {runs}"));
    }
    bad
}

/// The branch's commits break no rule.
fn history(world: &World) -> Vec<String> {
    let commits = commits(world);
    let head: Option<ObjectId> = world.git(&["rev-parse", "refs/heads/work"]).parse().ok();
    let Some(head) = head else { return vec!["V6: the branch is gone".to_owned()] };
    let mut bad: Vec<String> = check_line(head, &commits).iter().map(ToString::to_string).collect();
    let mut results: Vec<String> =
        world.git(&["log", "--first-parent", STATES, "work"]).lines().map(str::to_owned).collect();
    results.retain(|s| s == "done");
    if results.len() > 1 {
        bad.push(format!("V2: {} outcomes", results.len()));
    }
    bad
}

fn commits(world: &World) -> HashMap<ObjectId, Recorded> {
    let ids = world.git(&["rev-list", "work"]);
    let mut git = world.life().repo.command("git");
    git.current_dir(world.branch_dir()).args(["cat-file", "--batch"]);
    let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all((ids + "\n").as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap().stdout;
    let (mut all, mut rest) = (HashMap::new(), &output[..]);
    while let Some(end) = rest.iter().position(|b| *b == b'\n') {
        let header: Vec<&str> = std::str::from_utf8(&rest[..end]).unwrap().split(' ').collect();
        let Some(size) = header.get(2).and_then(|s| s.parse::<usize>().ok()) else { break };
        let raw = &rest[end + 1..end + 1 + size];
        let text = String::from_utf8_lossy(raw);
        let (head, message) = text.split_once("\n\n").unwrap();
        let parents = head.lines().filter_map(|l| l.strip_prefix("parent ")?.parse().ok()).collect();
        all.insert(header[0].parse().unwrap(), Recorded { parents, message: message.as_bytes().to_vec() });
        rest = &rest[end + size + 2..];
    }
    all
}

/// What the disturbed tick said of itself, and whether that is so (V9). Called before anything else happens.
pub fn truthful(world: &World, code: Option<i32>) -> Vec<String> {
    let read = |name| std::fs::read_to_string(world.life().repo.home().join(name)).unwrap_or_default();
    let (stdout, stderr) = (read("stdout"), read("stderr"));
    let mut bad = Vec::new();
    if stderr.contains("panicked") {
        bad.push(format!("it panicked: {stderr}"));
    }
    let report: Option<Value> = stdout.lines().last().and_then(|line| serde_json::from_str(line).ok());
    let (head, state) = (world.git(&["rev-parse", "refs/heads/work"]), state(world));
    let said = || format!("exit {code:?}, '{state}' is the head, said: {stdout} {stderr}");
    let result = report.as_ref().and_then(|r| r["result"].as_str());
    let right = match result {
        Some("advanced" | "stalled") => {
            report.as_ref().is_some_and(|r| r["commit"].as_str() == Some(&head))
                && state == if result == Some("advanced") { "done" } else { "stalled" }
        }
        Some("failed") => {
            !matches!(code, Some(0))
                && report.as_ref().is_some_and(|r| r["error"].as_str().is_some_and(|e| !e.is_empty()))
        }
        Some(_) => !matches!(code, Some(0)) || state != "build",
        None => code != Some(0) && (code.is_none() || !stderr.trim().is_empty()),
    };
    if !right || (code == Some(0) && state != "done") {
        bad.push(format!("V9: {}", said()));
    }
    bad
}

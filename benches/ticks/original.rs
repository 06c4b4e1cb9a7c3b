//! The same job by the `git` calls of a runner that shells out for everything: where the head is, what it says, a
//! worktree for the command, a commit of what came of it, the branch moved to that.

use super::{Limit, Place, Row, measure, rounds, wanted};
use std::path::Path;
use std::time::Duration;

/// A whole tick, as durable as by default and not synced, beside those calls, which sync nothing.
pub fn ticks(place: &Place, rows: &mut Vec<Row>) {
    for (durable, kind) in [(false, "aynig.fsync=false"), (true, "durable")] {
        let name = format!("whole tick, 10 files, {kind}");
        if !wanted(&name) {
            continue;
        }
        let (ours, theirs) = (place.repository("ours", 10), place.repository("theirs", 10));
        place.git(&ours, &["config", "aynig.fsync", if durable { "true" } else { "false" }]);
        rows.extend(measure(
            &name,
            "rev-parse, log, worktree add, the command, commit, update-ref",
            Limit::Ratio(0.5),
            rounds(),
            |n| {
                place.trigger(&ours, n);
                place.time(&ours, &place.bin, &["tick", "work"], 0)
            },
            |n| {
                place.trigger(&theirs, n);
                by_calls(place, &theirs)
            },
        ));
        for dir in [ours, theirs] {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

fn by_calls(place: &Place, dir: &Path) -> Duration {
    let (git, aside) = (Path::new("git"), dir.join("aside"));
    let to = aside.to_string_lossy().into_owned();
    let old = place.git_says(dir, &["rev-parse", "work"], b"");
    let before = place.time(dir, git, &["rev-parse", "work"], 0)
        + place.time(dir, git, &["log", "-1", "--format=%B", "work"], 0)
        + place.time(dir, git, &["worktree", "add", "-q", "--detach", &to, "work"], 0)
        + place.time(&aside, &aside.join(".aynig/command/build"), &[], 0)
        + place.time(&aside, git, &["commit", "-q", "--allow-empty", "-m", "built"], 0);
    let new = place.git_says(&aside, &["rev-parse", "HEAD"], b"");
    let took = before + place.time(dir, git, &["update-ref", "refs/heads/work", &new, &old], 0);
    place.git(dir, &["worktree", "remove", "--force", &to]);
    took
}

//! What grows elsewhere and must not make a tick slower: history, and other branches.

use super::{Limit, Place, Row, measure, rounds};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What the row of a long history is called.
pub const HISTORY_ROW: &str = "tick, 10 files, 100,000 commits of history";
const HISTORY: usize = 100_000;
const BRANCHES: usize = 200;

/// A repository whose `main` has so many commits, packed as `git gc` leaves them.
fn with_history(place: &Place, name: &str, commits: usize) -> PathBuf {
    let dir = place.repository(name, 10);
    place.git(&dir, &["config", "aynig.fsync", "false"]);
    let head = place.git_says(&dir, &["rev-parse", "main"], b"");
    let mut import = String::new();
    for i in 0..commits {
        let from = if i == 0 { format!("from {head}\n") } else { String::new() };
        let time = 1_600_000_000 + i;
        let _ = write!(
            import,
            "commit refs/heads/main\ncommitter b <b@example.com> {time} +0000\ndata 2\nx\n{from}M 100644 inline n\ndata {}\n{i}\n\n",
            i.to_string().len()
        );
    }
    place.git_says(&dir, &["fast-import", "--quiet", "--force"], import.as_bytes());
    place.git(&dir, &["reset", "-q", "--hard"]);
    place.git(&dir, &["gc", "-q", "--prune=now"]);
    dir
}

/// A tick above a long history, beside one above a short history.
pub fn history(place: &Place, rows: &mut Vec<Row>) {
    let (long, short) = (with_history(place, "long", HISTORY), with_history(place, "short", 10));
    let tick = |dir: &Path, n: usize| {
        place.trigger(dir, n);
        place.time(dir, &place.bin, &["tick", "work"], 0)
    };
    rows.extend(measure(
        HISTORY_ROW,
        "the same with 10 commits",
        Limit::Ratio(1.1),
        rounds(),
        |n| tick(&long, n),
        |n| tick(&short, n),
    ));
}

/// Many branches by two jobs, beside as many ticks of one branch at half their time.
pub fn branches(place: &Place, rows: &mut Vec<Row>) {
    let dir = place.repository("branches", 10);
    place.git(&dir, &["config", "aynig.fsync", "false"]);
    let triggers = |n: usize| {
        let mut input = String::new();
        for i in 0..BRANCHES {
            let message = format!("build {n} {i}\n\ndwp-state: build\n");
            let id = place.git_says(&dir, &["commit-tree", "main^{tree}", "-p", "main"], message.as_bytes());
            let _ = writeln!(input, "update refs/heads/many/b{i:03} {id}");
        }
        place.git_says(&dir, &["update-ref", "--stdin"], input.as_bytes());
    };
    rows.extend(measure(
        "200 branches, --jobs 2",
        "100 times one tick of one branch",
        Limit::Ratio(1.2),
        rounds(),
        |n| {
            triggers(n);
            place.time(&dir, &place.bin, &["tick", "--jobs", "2"], 0)
        },
        |n| {
            place.trigger(&dir, n);
            place.time(&dir, &place.bin, &["tick", "work"], 0) * (BRANCHES as u32 / 2)
        },
    ));
}

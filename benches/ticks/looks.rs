//! What it costs to look, beside Git's listing of the same: how branches stand, and what happened on one.

use super::{HEADS, Limit, Place, Row, heads_of, measure, rounds, wanted};
use std::fmt::Write as _;
use std::path::Path;

const BRANCHES: usize = 10_000;
const COMMITS: usize = 100_000;

/// `status` of many branches, finished ones and those of all kinds.
pub fn status(place: &Place, rows: &mut Vec<Row>) {
    let listing = ["for-each-ref", "--format=%(refname) %(trailers)", "refs/heads"];
    for heads in [1, HEADS.len() - 1] {
        let name = |how: &str| format!("status{how} of {BRANCHES} branches {}", HEADS[heads].0);
        if !["", " --json"].iter().any(|how| wanted(&name(how))) {
            continue;
        }
        let dir = heads_of(place, &format!("status{heads}"), BRANCHES, heads);
        place.git(&dir, &["gc", "-q", "--prune=now"]);
        for (how, args) in [("", &["status"][..]), (" --json", &["status", "--json"])] {
            rows.extend(measure(
                &name(how),
                "git for-each-ref --format='%(refname) %(trailers)'",
                Limit::Ratio(1.2),
                rounds(),
                |_| place.time(&dir, &place.bin, args, 0),
                |_| place.time(&dir, Path::new("git"), &listing, 0),
            ));
        }
    }
}

/// `events` of a long branch, beside the `git log` that prints as much.
pub fn events(place: &Place, rows: &mut Vec<Row>) {
    let name = |how: &str| format!("events{how} of {COMMITS} commits");
    if !["", " --json"].iter().any(|how| wanted(&name(how))) {
        return;
    }
    let dir = place.repository("events", 10);
    let head = place.git_says(&dir, &["rev-parse", "main"], b"");
    let mut import = String::new();
    for i in 0..COMMITS {
        let from = if i == 0 { format!("from {head}\n") } else { String::new() };
        let message = format!(
            "change {i}\n\nbody\n\ndwp-state: s{}\ndwp-origin-state: build\ndwp-run-id: 0a1b2c3d-0000-4000-8000-{i:012}\n\
             dwp-runner-id: host-1\ndwp-hop: 1\n",
            i % 7
        );
        let _ = write!(
            import,
            "commit refs/heads/work\ncommitter b <b@example.com> {} +0000\ndata {}\n{message}\n{from}\n",
            1_600_000_000 + i,
            message.len()
        );
    }
    place.git_says(&dir, &["fast-import", "--quiet", "--force"], import.as_bytes());
    place.git(&dir, &["gc", "-q", "--prune=now"]);
    let state = "%(trailers:key=dwp-state,valueonly,separator=%x2c)";
    let run = "%(trailers:key=dwp-run-id,valueonly,separator=%x2c)";
    let short = format!("--format=%h  %ci  {state}  %s  {run}");
    let whole = "--format=%H %P %ct %cI%n%s%n%b%n%(trailers)";
    for (how, args, format, limit) in
        [("", &["events", "work"][..], &*short, 1.0), (" --json", &["events", "--json", "work"], whole, 1.2)]
    {
        rows.extend(measure(
            &name(how),
            "git log of the same fields",
            Limit::Ratio(limit),
            rounds().min(10),
            |_| place.time(&dir, &place.bin, args, 0),
            |_| place.time(&dir, Path::new("git"), &["log", "--first-parent", format, "work"], 0),
        ));
    }
}

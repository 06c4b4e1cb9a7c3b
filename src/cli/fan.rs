//! `fan`, `choose`, `compare`: several attempts at one thing. Implements K61, K36.

use super::args::{Choose, Compare, Fan};
use super::fail::Failure;
use super::session::Global;
use super::{exit, output, written};
use crate::app::change::{Change, end};
use crate::app::config::Flags;
use crate::app::fan::{CompareLine, Compared, compare, fan};
use crate::protocol::text::{branch_word, escape};

/// Runs `git aynig fan`.
pub fn run(global: &Global, args: &Fan) -> Result<i32, Failure> {
    let own = fan(args.count, &args.each)?;
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let fanned = change.fan(args.branch.as_deref(), &own)?;
    for one in fanned.made.iter().chain([&fanned.written]) {
        written::print(one, change.remote(), args.json, global.quiet);
    }
    if fanned.made.is_empty() && !global.quiet {
        output::note("nothing was made: the branch is fanned, and has all its attempts");
    }
    let made: Vec<_> = fanned.made.into_iter().map(|made| made.branch).collect();
    if !args.no_tick && !made.is_empty() {
        change.answer_all(&made)?;
    }
    Ok(exit::code(end(&fanned.written)))
}

/// Runs `git aynig choose`.
pub fn choose(global: &Global, args: &Choose) -> Result<i32, Failure> {
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let chosen = change.choose_attempt(&args.branch)?;
    for one in chosen.canceled.iter().chain([&chosen.written]) {
        written::print(one, change.remote(), args.json, global.quiet);
    }
    if !args.no_tick {
        change.answer(&chosen.written)?;
    }
    Ok(exit::code(end(&chosen.written)))
}

/// Runs `git aynig compare`.
pub fn compared(global: &Global, args: &Compare) -> Result<i32, Failure> {
    let session = global.open()?;
    let all = compare(&session, &args.branches, args.remote.clone())?;
    let mut lines = output::Lines::begin();
    if args.json {
        let _ = all.iter().all(|one| lines.offer_json(&CompareLine::new(one)));
        return Ok(0);
    }
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(all.iter().map(row));
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    rows.iter().all(|row| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        lines.offer(cells.collect::<Vec<_>>().join("  ").trim_end())
    });
    drop(lines);
    if let ([one, two, ..], false) = (&all[..], global.quiet) {
        let pair = [one, two].map(|one| branch_word(one.branch.short())).join(" ");
        output::note(&format!("hint: git diff {pair}"));
    }
    Ok(0)
}

const HEADINGS: [&str; 9] = ["branch", "state", "runs", "took", "files", "+", "-", "tokens", "cost"];

fn row(one: &Compared) -> [String; 9] {
    let (changed, used) = (&one.changed, &one.used);
    [
        escape(one.branch.short()),
        one.state.as_deref().map_or_else(|| "-".to_owned(), |state| escape(state.as_bytes())),
        one.runs.to_string(),
        format!("{}s", one.seconds),
        changed.files.to_string(),
        changed.insertions.to_string(),
        changed.deletions.to_string(),
        used.input.saturating_add(used.output).to_string(),
        used.cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost} USD")),
    ]
}

//! `usage`: what runs have used and cost, for people and for programs. Implements K54 (`usage`), K36.

use super::args::Usage;
use super::choices::UsageBy;
use super::fail::Failure;
use super::session::Global;
use super::{exit, hints, output};
use crate::app::Exit;
use crate::app::usage::{By, Sum, UsageLine, add_up};
use crate::protocol::text::{escape, with_causes};

/// Runs `git aynig usage`.
pub fn run(global: &Global, args: &Usage) -> Result<i32, Failure> {
    let session = global.open()?;
    let by = match args.by {
        None => By::Total,
        Some(UsageBy::Branch) => By::Branch,
        Some(UsageBy::State) => By::State,
        Some(UsageBy::Model) => By::Model,
        Some(UsageBy::Day) => By::Day,
    };
    let added = add_up(&session, args.remote.clone(), args.since.as_deref(), by)?;
    let mut lines = output::Lines::begin();
    if args.json {
        let all = UsageLine::of(By::Total, None, &added.total);
        let mut each = added.groups.iter().map(|(name, sum)| UsageLine::of(by, name.as_deref(), sum));
        let _ = each.all(|line| lines.offer_json(&line)) && lines.offer_json(&all);
    } else if added.total.runs == 0 {
        drop(lines);
        if !global.quiet {
            output::note("no run has said what it used");
        }
    } else {
        let mut rows = vec![row(heading(by), &["runs", "input", "output", "cost"].map(str::to_owned))];
        rows.extend(added.groups.iter().map(|(name, sum)| {
            let name = name.as_ref().map_or_else(|| "-".to_owned(), |name| escape(name));
            row(&name, &figures(sum))
        }));
        rows.push(row("total", &figures(&added.total)));
        let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..5).map(width).collect();
        rows.iter().all(|row| {
            let first = std::iter::once(format!("{:<1$}", row[0], widths[0]));
            let rest = row.iter().zip(&widths).skip(1).map(|(cell, width)| format!("{cell:>width$}"));
            lines.offer(first.chain(rest).collect::<Vec<_>>().join("  ").trim_end())
        });
        drop(lines);
        if added.total.unpriced > 0 && !global.quiet {
            output::note(&format!("{} of {} runs said no cost", added.total.unpriced, added.total.runs));
        }
    }
    for (branch, error) in &added.failed {
        output::note(&format!("error: {}: {}", escape(branch.short()), with_causes(error)));
        let mended = hints::of_store(error, Some(branch));
        mended.iter().for_each(|hint| output::note(&format!("hint: {}", escape(hint.as_bytes()))));
    }
    Ok(exit::code(if added.failed.is_empty() { Exit::Done } else { Exit::Failed }))
}

fn heading(by: By) -> &'static str {
    match by {
        By::Total => "",
        By::Branch => "branch",
        By::State => "state",
        By::Model => "model",
        By::Day => "day",
    }
}

fn row(name: &str, figures: &[String; 4]) -> [String; 5] {
    let [runs, input, output, cost] = figures.clone();
    [name.to_owned(), runs, input, output, cost]
}

fn figures(sum: &Sum) -> [String; 4] {
    let cost = sum.used.cost.map_or_else(|| "-".to_owned(), |cost| format!("${cost}"));
    [sum.runs.to_string(), sum.used.input.to_string(), sum.used.output.to_string(), cost]
}

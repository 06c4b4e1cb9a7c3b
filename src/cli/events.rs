//! `events`: a branch's state events, newest first; with `--follow` as they land, oldest first.
//!
//! A reader that goes away ends the verb, and is no failure. Implements section 13 (`events`), K36.

use super::args::Events;
use super::fail::Failure;
use super::session::Global;
use super::{exit, output};
use crate::app::events::{self, EventLine, Reading, date, run_of, state_of};
use crate::protocol::event::{Event, ORIGIN_STATE};
use crate::protocol::text::escape;
use crate::runner::Tip;
use crate::supervisor::interrupt::Interrupt;

/// `git aynig events`.
pub fn run(global: &Global, args: &Events) -> Result<i32, Failure> {
    let session = global.open()?;
    let settings = events::settings(&session, args.remote.clone())?;
    let interrupt = if args.follow { Interrupt::by_signals()? } else { Interrupt::never()? };
    let reading = events::open(&session, &settings, &interrupt, args.branch.as_deref())?;
    if args.follow {
        return follow(&reading, args);
    }
    let mut lines = output::Lines::begin();
    let any = reading.list(args.history, args.n.unwrap_or(usize::MAX), |tip, event| match args.json {
        true => lines.offer_json(&EventLine::of(&reading.branch, tip, event)),
        false => lines.offer(&line(tip, event)),
    })?;
    drop(lines);
    if !any && !global.quiet && args.n != Some(0) {
        output::note(&format!("'{}' has no state events", escape(reading.branch.short())));
    }
    Ok(0)
}

/// Shows what is there, then what lands, until a signal or until its reader is gone.
fn follow(reading: &Reading<'_>, args: &Events) -> Result<i32, Failure> {
    let show = |tip: &Tip, event: &Event| {
        output::offer(&match args.json {
            true => output::json(&EventLine::of(&reading.branch, tip, event)),
            false => line(tip, event),
        })
    };
    Ok(exit::code(reading.follow(args.history, args.n, show, output::reader_gone)?))
}

fn line(tip: &Tip, event: &Event) -> String {
    let date = date(tip.commit.committed).unwrap_or_else(|| "no date".to_owned());
    let date = date.replace('T', " ");
    let state: String = state_of(event).chars().take(80).collect();
    let mut line = format!(
        "{}  {date}  {:<8}  {}",
        tip.id().short(10),
        escape(state.as_bytes()),
        escape(&event.message.subject)
    );
    let mut about = Vec::new();
    if let Some(run) = run_of(event) {
        about.push(format!("run {}", escape(run.as_bytes()).chars().take(8).collect::<String>()));
    }
    if let Some(trigger) = event.trigger() {
        let origin = event.text(ORIGIN_STATE).map(|s| format!("{} ", escape(s.as_bytes())));
        about.push(format!("answers {}{}", origin.unwrap_or_default(), trigger.short(10)));
    }
    if !about.is_empty() {
        line += &format!("  ({})", about.join(", "));
    }
    line
}

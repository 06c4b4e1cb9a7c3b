//! `events`: state events of a branch or of all, newest first; with `--follow` as they land, oldest first.
//!
//! A reader that goes away ends the verb, and is no failure. Implements git-aynig-events(1), K36, K55.

use super::args::Events;
use super::fail::Failure;
use super::session::Global;
use super::status::span;
use super::{exit, output};
use crate::app::events::{self, EventLine, Filter, Reading, Told, date, run_of, state_of};
use crate::app::wait::states;
use crate::protocol::event::ORIGIN_STATE;
use crate::protocol::text::escape;
use crate::supervisor::interrupt::Interrupt;

/// The widest that the column of branches gets, in characters; a longer name sticks out.
const WIDTH_MAX: usize = 40;

/// Runs `git aynig events`.
pub fn run(global: &Global, args: &Events) -> Result<i32, Failure> {
    let since = args.since.as_deref().map(events::since).transpose()?;
    let filter = Filter { history: args.history, since, states: states(&args.states)? };
    let session = global.open()?;
    let settings = events::settings(&session, args.remote.clone())?;
    let interrupt = if args.follow { Interrupt::by_signals()? } else { Interrupt::never()? };
    let reading = match args.all {
        true => events::open_all(&session, &settings, &interrupt, filter)?,
        false => events::open(&session, &settings, &interrupt, args.branch.as_deref(), filter)?,
    };
    let width = args.all.then(|| reading.width().min(WIDTH_MAX));
    if args.follow {
        return follow(&reading, args, width);
    }
    let mut lines = output::Lines::begin();
    let any = reading.list(args.n.unwrap_or(usize::MAX), |told| match args.json {
        true => lines.offer_json(&EventLine::of(told)),
        false => lines.offer(&line(told, width)),
    })?;
    drop(lines);
    if !any && !global.quiet && args.n != Some(0) {
        let narrow = if args.since.is_some() || !args.states.is_empty() { " that are asked for" } else { "" };
        output::note(&match reading.branch().filter(|_| !args.all) {
            Some(branch) => format!("'{}' has no state events{narrow}", escape(branch.short())),
            None => format!("no branch has state events{narrow}"),
        });
    }
    Ok(0)
}

/// Shows the latest events, then each new one as it lands, until a signal comes or the reader is gone.
fn follow(reading: &Reading<'_>, args: &Events, width: Option<usize>) -> Result<i32, Failure> {
    let show = |told: &Told<'_>| {
        output::offer(&match args.json {
            true => output::json(&EventLine::of(told)),
            false => line(told, width),
        })
    };
    Ok(exit::code(reading.follow(args.n, show, output::reader_gone)?))
}

/// Returns an event as one line. Where events of several branches are shown, `width` is the width of the
/// column of branches.
fn line(told: &Told<'_>, width: Option<usize>) -> String {
    let Told { branch, tip, event, took } = *told;
    let date = date(tip.commit.committed).unwrap_or_else(|| "no date".to_owned());
    let date = date.replace('T', " ");
    let state: String = state_of(event).chars().take(80).collect();
    let branch = width.map(|width| format!("{:<width$}  ", escape(branch.short()))).unwrap_or_default();
    let mut line = format!(
        "{}  {date}  {branch}{:<8}  {}",
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
    about.extend(took.map(|seconds| format!("took {}", span(seconds))));
    if !about.is_empty() {
        line += &format!("  ({})", about.join(", "));
    }
    line
}

//! `govern loop`: takes turns in a plain folder until a person is needed. Implements G8, G9.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::Aloud;
use super::args::{Loop, Where};
use super::place::{self, SCHEMA};
use super::status::hint;
use crate::app::govern::KILL_GRACE;
use crate::app::govern::driver::Driver;
use crate::app::govern::looping::{Looped, drive};
use crate::app::govern::next::Next;
use crate::app::govern::place::folder;
use crate::governed::{Config, State, load_state};
use crate::protocol::text::escape;
use crate::run_loop::{LoopEvent, LoopReport, StopReason, TurnRecord};
use serde::Serialize;

/// Runs `git aynig govern loop`.
pub(crate) fn run(global: &Global, args: &Loop) -> Result<i32, Failure> {
    let context = folder(&args.root)?;
    let (root, config) = (&context.root, &context.config);
    // Once a run has begun, the user who began it has seen the warnings.
    if !load_state(root, config).is_ok_and(|state| state.run_id().is_some()) {
        place::warn(global, &context.warnings);
    }
    let hears = |event: &LoopEvent| {
        if !global.quiet && !args.json {
            output::note(event.name());
        }
    };
    let driver = Driver { root, config, worker: &args.worker, grace: KILL_GRACE, audience: &Aloud };
    let doubts = |warnings: &[String]| place::doubts(global, warnings);
    let looped = drive(driver, args.approve, args.max_turns, &hears, &doubts);
    let report = &looped.report;
    if args.json {
        output::line(&output::json(&Told::of(report)));
    } else {
        for error in &report.errors {
            output::note(&format!("error: {}", escape(error.as_bytes())));
        }
        for hint in hints(&looped, args) {
            output::note(&format!("hint: {}", escape(hint.as_bytes())));
        }
        if let Some(next) = left_to_human(report, config, args) {
            output::line(&format!("next      {}", escape(next.as_bytes())));
        }
        let turns = report.turns_executed;
        output::line(&format!("{}: {turns} turns accepted", report.stop_reason.name()));
    }
    Ok(if report.ok() { 0 } else { 1 })
}

/// Returns what `govern status` says comes next, where the last turn left that to a person.
fn left_to_human(report: &LoopReport, config: &Config, args: &Loop) -> Option<String> {
    let state = report.state.as_ref().filter(|_| report.stop_reason == StopReason::CallerStopped)?;
    let place = Where { root: Some(args.root.clone()), ..Where::default() };
    Some(hint(&Next::without_command(state, config), state, &place.flags()))
}

/// Returns the commands that mend what ended the loop, each once.
fn hints(looped: &Looped, args: &Loop) -> Vec<String> {
    let place = Where { root: Some(args.root.clone()), ..Where::default() };
    let mut hints = Vec::new();
    for hint in looped.failures.iter().flat_map(|error| place.there(error.into()).hints) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    hints
}

/// The object that `--json` prints about a loop.
#[derive(Serialize)]
struct Told<'a> {
    schema: &'static str,
    ok: bool,
    stop_reason: &'static str,
    turns_executed: u64,
    turn_history: &'a [TurnRecord],
    gates_approved: u64,
    errors: &'a [String],
    run: Option<&'a State>,
}

impl<'a> Told<'a> {
    fn of(report: &'a LoopReport) -> Self {
        Self {
            schema: SCHEMA,
            ok: report.ok(),
            stop_reason: report.stop_reason.name(),
            turns_executed: report.turns_executed,
            turn_history: &report.turn_history,
            gates_approved: report.gates_approved,
            errors: &report.errors,
            run: report.state.as_ref(),
        }
    }
}

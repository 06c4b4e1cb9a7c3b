//! What `tick` and `run` say of one branch, for programs: schema `aynig.tick/1`.
//!
//! Fields are added, never renamed or removed within a schema version; their order is the order of these types.

use super::shown::{Shown, full, path, short};
use crate::protocol::decide::Idle;
use crate::protocol::id::ObjectId;
use crate::protocol::text::with_causes;
use crate::runner::report::{Outcome, Ran, Recovered, Report, Skip, Verdict};
use serde::Serialize;
use std::borrow::Cow;

/// The schema of a report.
pub const TICK_SCHEMA: &str = "aynig.tick/1";

/// A branch's report as programs read it.
#[derive(Serialize)]
pub struct TickLine<'a> {
    schema: &'static str,
    branch: Cow<'a, str>,
    exit_code: i32,
    #[serde(flatten)]
    result: TickResult<'a>,
    recovered: Vec<RecoveredLine<'a>>,
    notes: Vec<String>,
}

impl<'a> TickLine<'a> {
    /// Makes the line of a report. `exit_code` is what a process that evaluates this branch alone would exit
    /// with, `notes` are the report's notes in words.
    pub fn new(report: &'a Report, exit_code: i32, notes: Vec<String>) -> Self {
        Self {
            schema: TICK_SCHEMA,
            branch: short(&report.branch),
            exit_code,
            result: (&report.verdict).into(),
            recovered: report.recovered.iter().map(RecoveredLine::from).collect(),
            notes,
        }
    }
}

/// How the evaluation ended.
#[derive(Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
enum TickResult<'a> {
    Idle(IdleLine<'a>),
    Unusable { state: &'a str, command: &'a str, why: String },
    Missing,
    Busy { why: String, worktree: Cow<'a, str> },
    Interrupted,
    Leased(LeasedLine<'a>),
    LostRace,
    NoSlot,
    Refused { why: String },
    WouldRun { state: &'a str, command: &'a str },
    WouldDeliver { state: &'a str, messages: usize },
    Undelivered { messages: usize, why: String },
    Unlanded { onto: Cow<'a, str>, why: String, paths: &'a [String], commit: Shown<&'a ObjectId> },
    WouldRecover,
    Advanced(RanLine<'a>),
    LeaseKept(RanLine<'a>),
    LeaseLeft(RanLine<'a>),
    Own(RanLine<'a>),
    Stalled(RanLine<'a>),
    Fenced(RanLine<'a>),
    Failed { error: String },
}

/// Why there was nothing to do.
#[derive(Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum IdleLine<'a> {
    NoState,
    NoCommand { state: &'a str },
    InvalidState { state: Cow<'a, str>, why: String },
    HopLimit { state: &'a str, hop: u32, max_hops: u32 },
    Held { state: &'a str, by: &'static str, why: String },
}

/// Which lease holds the branch.
#[derive(Serialize)]
struct LeasedLine<'a> {
    until: i64,
    seconds_left: i64,
    run_id: Option<&'a str>,
    runner_id: Option<&'a str>,
    malformed: bool,
}

/// A run.
#[derive(Serialize)]
struct RanLine<'a> {
    state: &'a str,
    next: Option<&'a str>,
    commit: Option<Shown<&'a ObjectId>>,
    why: Option<String>,
    run_id: &'a str,
    trigger: Shown<&'a ObjectId>,
    exit: Option<&'a str>,
    seconds: f64,
    stdout_log: Cow<'a, str>,
    stderr_log: Cow<'a, str>,
    attempt: Option<Cow<'a, str>>,
    interrupted_by: Option<i32>,
}

/// An expired lease that was ended.
#[derive(Serialize)]
struct RecoveredLine<'a> {
    run_id: &'a str,
    state: &'a str,
    commit: Shown<&'a ObjectId>,
    attempt: Option<Cow<'a, str>>,
}

impl<'a> From<&'a Recovered> for RecoveredLine<'a> {
    fn from(recovered: &'a Recovered) -> Self {
        Self {
            run_id: &recovered.run_id,
            state: &recovered.state,
            commit: Shown(&recovered.commit),
            attempt: recovered.attempt.as_ref().map(full),
        }
    }
}

impl<'a> From<&'a Idle> for IdleLine<'a> {
    fn from(idle: &'a Idle) -> Self {
        match idle {
            Idle::NoState => IdleLine::NoState,
            Idle::NoCommand { state } => IdleLine::NoCommand { state: state.as_str() },
            Idle::InvalidState { raw, why } => {
                IdleLine::InvalidState { state: String::from_utf8_lossy(raw), why: why.to_string() }
            }
            Idle::HopLimit { state, hop, max } => {
                IdleLine::HopLimit { state: state.as_str(), hop: *hop, max_hops: *max }
            }
            Idle::Held { state, by } => {
                IdleLine::Held { state: state.as_str(), by: by.name(), why: by.to_string() }
            }
        }
    }
}

impl<'a> From<&'a Verdict> for TickResult<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        match verdict {
            Verdict::Idle(idle) => TickResult::Idle(idle.into()),
            Verdict::Unusable { state, path, why, home: _ } => {
                TickResult::Unusable { state: state.as_str(), command: path, why: why.to_string() }
            }
            Verdict::Skipped(Skip::Missing) => TickResult::Missing,
            Verdict::Skipped(Skip::Busy(busy, dir)) => {
                TickResult::Busy { why: busy.to_string(), worktree: path(dir) }
            }
            Verdict::Skipped(Skip::Interrupted) => TickResult::Interrupted,
            Verdict::Leased { until, left, run_id, runner_id, malformed, abandoned: _ } => {
                TickResult::Leased(LeasedLine {
                    until: *until,
                    seconds_left: *left,
                    run_id: run_id.as_deref(),
                    runner_id: runner_id.as_deref(),
                    malformed: *malformed,
                })
            }
            Verdict::LostRace => TickResult::LostRace,
            Verdict::NoSlot => TickResult::NoSlot,
            Verdict::Refused(refusal) => TickResult::Refused { why: refusal.to_string() },
            Verdict::WouldRun { state, command } => TickResult::WouldRun { state: state.as_str(), command },
            Verdict::WouldDeliver { state, messages } => {
                TickResult::WouldDeliver { state: state.as_str(), messages: *messages }
            }
            Verdict::Undelivered { messages, by } => {
                TickResult::Undelivered { messages: *messages, why: by.to_string() }
            }
            Verdict::Unlanded { onto, why, commit } => TickResult::Unlanded {
                onto: short(onto),
                why: why.to_string(),
                paths: why.paths(),
                commit: Shown(commit),
            },
            Verdict::WouldRecover => TickResult::WouldRecover,
            Verdict::Ran(ran) => (&**ran).into(),
            Verdict::Failed(error) => TickResult::Failed { error: with_causes(error) },
        }
    }
}

impl<'a> From<&'a Ran> for TickResult<'a> {
    fn from(ran: &'a Ran) -> Self {
        let line = |next, commit: Option<&'a ObjectId>, why| RanLine {
            state: ran.state.as_str(),
            next,
            commit: commit.map(Shown),
            why,
            run_id: &ran.run_id,
            trigger: Shown(&ran.trigger),
            exit: ran.exit.as_deref(),
            seconds: (ran.took.as_secs_f64() * 1000.0).round() / 1000.0,
            stdout_log: path(&ran.stdout_log),
            stderr_log: path(&ran.stderr_log),
            attempt: ran.attempt.as_ref().map(full),
            interrupted_by: ran.interrupted,
        };
        match &ran.outcome {
            Outcome::Advanced { state, commit } => {
                TickResult::Advanced(line(Some(state.as_str()), Some(commit), None))
            }
            Outcome::KeptLease { commit, .. } => TickResult::LeaseKept(line(None, Some(commit), None)),
            Outcome::LeaseLeft { commit, .. } => TickResult::LeaseLeft(line(None, Some(commit), None)),
            Outcome::Own { commit, state } => {
                TickResult::Own(line(state.as_ref().map(|s| s.as_str()), Some(commit), None))
            }
            Outcome::Stalled { why, commit } => {
                TickResult::Stalled(line(None, Some(commit), Some(why.to_string())))
            }
            Outcome::Fenced { .. } => TickResult::Fenced(line(None, None, None)),
        }
    }
}

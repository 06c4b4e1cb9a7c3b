//! What became of a run: as a line, as notes, as fields of its branch's JSON report.
//!
//! What came from a repository is escaped before a person sees it. Implements K36.

use super::render::{full, path};
use crate::protocol::text::escape;
use crate::runner::report::{Outcome, Ran};
use serde_json::{Value, json};

/// What became of a run, in one line.
pub fn line(branch: &str, ran: &Ran) -> String {
    let took = format!("{:.1}s", ran.took.as_secs_f64());
    let state = &ran.state;
    match &ran.outcome {
        Outcome::Advanced { state: next, commit } => {
            format!("{branch}: {state} -> {next} ({}, {took})", commit.short(8))
        }
        Outcome::KeptLease { left, .. } => {
            let left = left.as_secs();
            format!(
                "{branch}: {state} goes on: the command ended without a state, its lease lives on for {left}s ({took})"
            )
        }
        Outcome::LeaseLeft { failed, left, .. } => {
            let left = left.as_secs();
            let exit = ran.exit.as_deref().unwrap_or("its command was not started");
            let how = if *failed { "failed" } else { "ended" };
            format!(
                "{branch}: {state} {how} without a next state: its lease lives until it expires in {left}s ({}, {took})",
                escape(exit.as_bytes())
            )
        }
        Outcome::Own { commit, state: next } => {
            let next = next.as_ref().map_or("?", |s| s.as_str());
            let exit = ran.exit.as_deref().unwrap_or("");
            format!(
                "{branch}: {state} -> {next} ({}, by its command, {}, {took})",
                commit.short(8),
                escape(exit.as_bytes())
            )
        }
        Outcome::Stalled { why, commit } => {
            format!(
                "{branch}: {state} stalled: {} ({}, {took})",
                escape(why.to_string().as_bytes()),
                commit.short(8)
            )
        }
        Outcome::Fenced => {
            format!("{branch}: {state} lost its lease: nothing was written to the branch ({took})")
        }
    }
}

/// What is said beside it.
pub fn notes(branch: &str, ran: &Ran) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(name) = &ran.attempt {
        notes.push(format!("{branch}: work that is not on the branch is kept in {}", full(name)));
    }
    match &ran.outcome {
        Outcome::Stalled { .. } => {
            notes.push(format!("hint: git aynig logs --stderr {branch}"));
            notes.push(format!("hint: git aynig retry {branch}"));
        }
        Outcome::LeaseLeft { .. } => {
            notes.push(format!("hint: git aynig logs --stderr {branch}"));
            notes.push(format!("hint: git aynig cancel {branch}"));
        }
        Outcome::Fenced => notes.push(format!("hint: git aynig events {branch}")),
        Outcome::Advanced { .. } | Outcome::KeptLease { .. } | Outcome::Own { .. } => {}
    }
    notes
}

/// The same for programs: fields of its branch's report.
pub fn json(ran: &Ran) -> Vec<(&'static str, Value)> {
    let (result, next, commit, why) = match &ran.outcome {
        Outcome::Advanced { state, commit } => ("advanced", Some(state.to_string()), Some(commit), None),
        Outcome::KeptLease { commit, .. } => ("lease-kept", None, Some(commit), None),
        Outcome::LeaseLeft { commit, .. } => ("lease-left", None, Some(commit), None),
        Outcome::Own { commit, state } => ("own", state.as_ref().map(|s| s.to_string()), Some(commit), None),
        Outcome::Stalled { why, commit } => ("stalled", None, Some(commit), Some(why.to_string())),
        Outcome::Fenced => ("fenced", None, None, None),
    };
    vec![
        ("result", json!(result)),
        ("state", json!(ran.state.as_str())),
        ("next", json!(next)),
        ("commit", json!(commit.map(|c| c.to_string()))),
        ("why", json!(why)),
        ("run_id", json!(ran.run_id)),
        ("trigger", json!(ran.trigger.to_string())),
        ("exit", json!(ran.exit)),
        ("seconds", json!((ran.took.as_secs_f64() * 1000.0).round() / 1000.0)),
        ("stdout_log", json!(path(&ran.stdout_log))),
        ("stderr_log", json!(path(&ran.stderr_log))),
        ("attempt", json!(ran.attempt.as_ref().map(full))),
        ("interrupted_by", json!(ran.interrupted)),
    ]
}

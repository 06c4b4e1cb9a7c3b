//! Conflicts: a turn changed files that turns accepted since its assignment have changed, too.

use super::journal::HISTORY;
use super::json;
use super::observe::Changes;
use super::outcome::TurnResult;
use super::records::HistoryEntry;
use super::root::Root;
use super::state::{State, Turn};
use super::{GovernedError, lines};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A conflict, as the turn's record has it (the ledger has a summary); the order of the fields is the order
/// on disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conflict {
    #[serde(rename = "type")]
    kind: &'static str,
    conflicting_turn: Conflicting,
    accepted_since: Vec<Since>,
    /// The turn's files that the other turns changed, too.
    pub conflicting_files: Vec<String>,
    /// The files that the turn alone changed.
    pub non_conflicting_files: Vec<String>,
    #[serde(serialize_with = "shortly")]
    overlap_ratio: f64,
    /// What is suggested to the person who resolves the conflict: `reject_and_reassign` or `human_merge`.
    pub suggested_resolution: &'static str,
}

/// The turn whose result conflicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Conflicting {
    turn_id: String,
    role: String,
    attempt: u64,
    files_changed: Vec<String>,
}

/// A turn that was accepted since the assignment, and that changed the same files.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Since {
    turn_id: Option<String>,
    role: Option<String>,
    accepted_sequence: u64,
    files_changed: Vec<String>,
}

fn shortly<S: Serializer>(ratio: &f64, to: S) -> Result<S::Ok, S::Error> {
    json::number(*ratio).serialize(to)
}

/// Finds the conflict of a result with what was accepted since its turn was assigned; `None` without one.
///
/// Reads the history from its end, and no further than the turn's assignment.
pub(super) fn find(
    root: &Root,
    state: &State,
    turn: &Turn,
    result: &TurnResult,
    changes: &Changes,
) -> Result<Option<Conflict>, GovernedError> {
    let mut own: Vec<String> = changes.files.clone();
    if own.is_empty() {
        own = result.files_changed().into_iter().map(str::to_owned).collect();
    }
    if own.is_empty() {
        return Ok(None);
    }
    let (mut since, mut conflicting) = (Vec::new(), Vec::new());
    lines::backwards(root, &root.join(HISTORY), |entry| {
        let entry = HistoryEntry::from_object(entry);
        let is_of_run = entry.run_id() == state.run_id().unwrap_or_default();
        let sequence = entry.accepted_sequence();
        if is_of_run && sequence <= turn.assigned_sequence() {
            return false;
        }
        let files = entry.files();
        let shared: Vec<&String> = own.iter().filter(|file| files.contains(&file.as_str())).collect();
        if is_of_run && !shared.is_empty() && !entry.is_reissued() {
            conflicting.extend(shared.into_iter().cloned());
            let said = |text: &str| Some(text).filter(|text| !text.is_empty()).map(str::to_owned);
            since.push(Since {
                turn_id: said(entry.turn_id()),
                role: said(entry.role()),
                accepted_sequence: sequence,
                files_changed: files.into_iter().map(str::to_owned).collect(),
            });
        }
        is_of_run
    })?;
    if since.is_empty() {
        return Ok(None);
    }
    since.reverse();
    conflicting.sort();
    conflicting.dedup();
    let free: Vec<String> = own.iter().filter(|file| !conflicting.contains(file)).cloned().collect();
    let ratio = conflicting.len() as f64 / own.len() as f64;
    Ok(Some(Conflict {
        kind: "file_conflict",
        conflicting_turn: Conflicting {
            turn_id: turn.id().to_owned(),
            role: turn.role().to_owned(),
            attempt: turn.attempt(),
            files_changed: own,
        },
        accepted_since: since,
        conflicting_files: conflicting,
        non_conflicting_files: free,
        overlap_ratio: (ratio * 100.0).round() / 100.0,
        suggested_resolution: if ratio < 0.5 { "reject_and_reassign" } else { "human_merge" },
    }))
}

/// A conflict as the ledger and the events have it; its values are those of the state.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Summary {
    conflicting_files: Option<Value>,
    accepted_since_turn_ids: Vec<Value>,
    overlap_ratio: Option<Value>,
}

impl Summary {
    pub(super) fn of(conflict: &Conflict) -> Self {
        Self::of_state(&json::value(conflict))
    }

    /// Sums up a conflict from its JSON in the state, because another tool may have found it.
    pub(super) fn of_state(conflict: &Value) -> Self {
        let since = conflict.get("accepted_since").and_then(Value::as_array).into_iter().flatten();
        Self {
            conflicting_files: conflict.get("conflicting_files").cloned(),
            accepted_since_turn_ids: since.filter_map(|turn| turn.get("turn_id").cloned()).collect(),
            overlap_ratio: conflict.get("overlap_ratio").cloned(),
        }
    }
}

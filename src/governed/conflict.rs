//! Conflicts: a turn changed files that others changed after it was assigned.

use super::journal::HISTORY;
use super::json::{self, Object};
use super::observe::Changes;
use super::root::Root;
use super::state::{State, Turn};
use super::{GovernedError, lines};
use serde::Serialize;
use serde_json::{Value, json};

/// The files that an accepted turn changed: what was observed, else what it declared.
fn files_of(entry: &Object) -> Vec<&str> {
    let observed = json::object(entry, "observed_artifact").map(|o| json::texts(o, "files_changed"));
    observed.filter(|files| !files.is_empty()).unwrap_or_else(|| json::texts(entry, "files_changed"))
}

/// The conflict of a result with what was accepted since its turn was assigned; `None` where there is none.
///
/// Reads the history from its end, and no further than the turn's assignment.
pub(super) fn find(
    root: &Root,
    state: &State,
    turn: &Turn,
    result: &Object,
    changes: &Changes,
) -> Result<Option<Value>, GovernedError> {
    let mut own: Vec<String> = changes.files.clone();
    if own.is_empty() {
        own = json::texts(result, "files_changed").into_iter().map(str::to_owned).collect();
    }
    if own.is_empty() {
        return Ok(None);
    }
    let (mut since, mut conflicting) = (Vec::new(), Vec::new());
    lines::backwards(root, &root.join(HISTORY), |entry| {
        let is_of_run = json::text(&entry, "run_id") == state.run_id();
        let sequence = json::count(&entry, "accepted_sequence").unwrap_or(0);
        if is_of_run && sequence <= turn.assigned_sequence() {
            return false;
        }
        let files = files_of(&entry);
        let shared: Vec<&String> = own.iter().filter(|file| files.contains(&file.as_str())).collect();
        if is_of_run && !shared.is_empty() && json::text(&entry, "status") != Some("reissued") {
            conflicting.extend(shared.into_iter().cloned());
            since.push(json!({
                "turn_id": entry.get("turn_id"),
                "role": entry.get("role"),
                "accepted_sequence": sequence,
                "files_changed": files,
            }));
        }
        is_of_run
    })?;
    if since.is_empty() {
        return Ok(None);
    }
    since.reverse();
    conflicting.sort();
    conflicting.dedup();
    let free: Vec<&String> = own.iter().filter(|file| !conflicting.contains(file)).collect();
    let ratio = conflicting.len() as f64 / own.len() as f64;
    let resolution = if ratio < 0.5 { "reject_and_reassign" } else { "human_merge" };
    Ok(Some(json!({
        "type": "file_conflict",
        "conflicting_turn": {
            "turn_id": turn.id(),
            "role": turn.role(),
            "attempt": turn.attempt(),
            "files_changed": own,
        },
        "accepted_since": since,
        "conflicting_files": conflicting,
        "non_conflicting_files": free,
        "overlap_ratio": json::number((ratio * 100.0).round() / 100.0),
        "suggested_resolution": resolution,
    })))
}

/// A conflict in the ledger's words, its values as the state has them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Summary {
    pub conflicting_files: Option<Value>,
    pub accepted_since_turn_ids: Vec<Value>,
    pub overlap_ratio: Option<Value>,
}

/// Sums a conflict up that stands in the state.
pub(super) fn summary(conflict: &Value) -> Summary {
    let since = conflict.get("accepted_since").and_then(Value::as_array).into_iter().flatten();
    Summary {
        conflicting_files: conflict.get("conflicting_files").cloned(),
        accepted_since_turn_ids: since.filter_map(|turn| turn.get("turn_id").cloned()).collect(),
        overlap_ratio: conflict.get("overlap_ratio").cloned(),
    }
}

//! Appends a decision to the ledger so that its id stands there once.
//!
//! Only the corpus asks for unique ids. Acceptance does not demand them: two turns may number their own
//! decisions alike, and both decisions are kept.

use crate::governed::journal::LEDGER;
use crate::governed::json::{self, Object};
use crate::governed::outcome::CATEGORIES;
use crate::governed::{GovernedError, Root, disk, lines, lock};
use serde_json::Value;

/// Why a decision is not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoDecision {
    /// The id is not `DEC-` and a number.
    Id,
    /// This field is missing or blank.
    Empty { field: &'static str },
    /// The category is unknown.
    Category,
    /// The ledger has this id already.
    Duplicate { id: String },
}

/// Appends a decision that is not in the ledger yet. Returns all that the ledger then holds, the new decision
/// last.
///
/// # Errors
/// The outer error is the file system's. The inner one says what is wrong with the decision, and how many
/// lines the ledger has.
pub(super) fn append_decision(
    root: &Root,
    entry: &Value,
) -> Result<Result<Vec<Object>, (NoDecision, usize)>, GovernedError> {
    let _lock = lock::enter(root)?;
    let path = root.join(LEDGER);
    let mut all = lines::all(root, &path)?;
    let empty = Object::new();
    let decision = entry.as_object().unwrap_or(&empty);
    let id = json::text(decision, "id").unwrap_or_default();
    let category = json::text(decision, "category").unwrap_or_default();
    let wrong = if !json::is_numbered(id, "DEC-") {
        Some(NoDecision::Id)
    } else if !json::is_filled(decision.get("statement")) {
        Some(NoDecision::Empty { field: "statement" })
    } else if !CATEGORIES.contains(&category) {
        Some(NoDecision::Category)
    } else if all.iter().any(|other| json::text(other, "id") == Some(id)) {
        Some(NoDecision::Duplicate { id: id.to_owned() })
    } else {
        None
    };
    if let Some(wrong) = wrong {
        return Ok(Err((wrong, all.len())));
    }
    let (_, torn) = disk::end(root, &path)?;
    let line = json::line(entry);
    disk::append(root, &path, &if torn { format!("\n{line}") } else { line })?;
    all.push(decision.clone());
    Ok(Ok(all))
}

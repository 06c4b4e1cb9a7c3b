//! One turn, as it stands in `active_turns`: every key kept.

use super::{Object, TurnStatus, json};
use serde::Serialize;
use serde_json::Value;

/// An active turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Turn(Object);

impl Turn {
    pub(crate) fn from_object(object: Object) -> Self {
        Self(object)
    }

    /// Returns the turn's id, `turn_` and 16 hex digits; empty where a foreign record has none.
    pub fn id(&self) -> &str {
        json::text(&self.0, "turn_id").unwrap_or_default()
    }

    /// Returns the role that the turn was assigned to.
    pub fn role(&self) -> &str {
        json::text(&self.0, "assigned_role").unwrap_or_default()
    }

    /// Returns the id of the runtime that works on the turn.
    pub fn runtime(&self) -> &str {
        json::text(&self.0, "runtime_id").unwrap_or_default()
    }

    /// Returns the turn's status; `None` for a name that this program does not know.
    pub fn status(&self) -> Option<TurnStatus> {
        self.status_name().and_then(TurnStatus::named)
    }

    /// Returns the name of the turn's status, also one that this program does not know.
    pub fn status_name(&self) -> Option<&str> {
        json::text(&self.0, "status")
    }

    /// Returns which attempt this is, from 1.
    pub fn attempt(&self) -> u64 {
        json::count(&self.0, "attempt").unwrap_or(1)
    }

    /// Returns the run's counter when the turn was assigned.
    pub fn assigned_sequence(&self) -> u64 {
        json::count(&self.0, "assigned_sequence").unwrap_or(0)
    }

    /// Returns the baseline: the workspace as it was when the turn was assigned.
    pub(crate) fn baseline(&self) -> Option<&Value> {
        self.0.get("baseline")
    }

    /// Returns the commit that was checked out when the baseline was taken.
    pub(crate) fn baseline_head(&self) -> Option<&str> {
        json::text(json::object(&self.0, "baseline")?, "head_ref")
    }

    /// Returns the ids of the turns that were active when this one was assigned.
    pub(crate) fn concurrent_with(&self) -> Option<&Value> {
        self.0.get("concurrent_with")
    }

    /// Returns when the turn's attempt began.
    pub(crate) fn started_at(&self) -> Option<&str> {
        json::text(&self.0, "started_at")
    }

    /// Returns when the turn should be done.
    pub(crate) fn deadline_at(&self) -> Option<&Value> {
        self.0.get("deadline_at")
    }

    /// Returns the rejection of the turn's last attempt.
    pub(crate) fn last_rejection(&self) -> Option<&Object> {
        json::object(&self.0, "last_rejection")
    }

    /// Returns the conflict that the turn's result was found in.
    pub(crate) fn conflict(&self) -> Option<&Value> {
        json::object(&self.0, "conflict_state")?.get("conflict_error").filter(|conflict| conflict.is_object())
    }

    /// Returns what was delegated to the turn.
    pub(crate) fn delegation_context(&self) -> Option<&Object> {
        json::object(&self.0, "delegation_context")
    }

    /// Returns what came of the delegations of the turn's role.
    pub(crate) fn delegation_review(&self) -> Option<&Object> {
        json::object(&self.0, "delegation_review")
    }

    /// Returns any field, as on disk.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Returns the turn as JSON.
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    pub(crate) fn object(&self) -> &Object {
        &self.0
    }

    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }
}

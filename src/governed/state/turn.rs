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

    /// Its id, `turn_` and 16 hex digits; empty where a foreign record has none.
    pub fn id(&self) -> &str {
        json::text(&self.0, "turn_id").unwrap_or_default()
    }

    /// The role that it was assigned to.
    pub fn role(&self) -> &str {
        json::text(&self.0, "assigned_role").unwrap_or_default()
    }

    /// The runtime that works on it.
    pub fn runtime(&self) -> &str {
        json::text(&self.0, "runtime_id").unwrap_or_default()
    }

    /// Where it is; `None` for a status that is none of ours.
    pub fn status(&self) -> Option<TurnStatus> {
        self.status_name().and_then(TurnStatus::named)
    }

    /// The name of its status, also of one that is none of ours.
    pub fn status_name(&self) -> Option<&str> {
        json::text(&self.0, "status")
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u64 {
        json::count(&self.0, "attempt").unwrap_or(1)
    }

    /// The run's counter when it was assigned.
    pub fn assigned_sequence(&self) -> u64 {
        json::count(&self.0, "assigned_sequence").unwrap_or(0)
    }

    /// The workspace as it was when the turn was assigned.
    pub(crate) fn baseline(&self) -> Option<&Value> {
        self.0.get("baseline")
    }

    /// The commit that the workspace was at then.
    pub(crate) fn baseline_head(&self) -> Option<&str> {
        json::text(json::object(&self.0, "baseline")?, "head_ref")
    }

    /// The turns that were active when it was assigned.
    pub(crate) fn concurrent_with(&self) -> Option<&Value> {
        self.0.get("concurrent_with")
    }

    /// When its attempt began.
    pub(crate) fn started_at(&self) -> Option<&str> {
        json::text(&self.0, "started_at")
    }

    /// When it should be done.
    pub(crate) fn deadline_at(&self) -> Option<&Value> {
        self.0.get("deadline_at")
    }

    /// The rejection of its last attempt.
    pub(crate) fn last_rejection(&self) -> Option<&Object> {
        json::object(&self.0, "last_rejection")
    }

    /// The conflict that its result was found in.
    pub(crate) fn conflict(&self) -> Option<&Value> {
        json::object(&self.0, "conflict_state")?.get("conflict_error").filter(|conflict| conflict.is_object())
    }

    /// What was delegated to it.
    pub(crate) fn delegation_context(&self) -> Option<&Object> {
        json::object(&self.0, "delegation_context")
    }

    /// What came of its role's delegations.
    pub(crate) fn delegation_review(&self) -> Option<&Object> {
        json::object(&self.0, "delegation_review")
    }

    /// Any field, as on disk.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The turn as JSON.
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

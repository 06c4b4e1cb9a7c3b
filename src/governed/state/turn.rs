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

//! A result as its worker wrote it: every key is kept, and typed accessors read the known parts.
//!
//! The accessors are for a result that passed the schema stage; in any other, a value of the wrong type reads
//! as missing.

use super::super::json::{self, Object};
use super::super::records::Decision;
use serde::Serialize;
use serde_json::Value;

/// A turn's result.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct TurnResult(Object);

impl TurnResult {
    pub(crate) fn of(object: Object) -> Self {
        Self(object)
    }

    pub(super) fn object(&self) -> &Object {
        &self.0
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Returns the value under a key, as the worker wrote it.
    pub(crate) fn said(&self, key: &str) -> Option<Value> {
        self.0.get(key).cloned()
    }

    fn text(&self, key: &str) -> &str {
        json::text(&self.0, key).unwrap_or_default()
    }

    pub(crate) fn role(&self) -> &str {
        self.text("role")
    }

    pub(crate) fn status(&self) -> &str {
        self.text("status")
    }

    pub(crate) fn summary(&self) -> &str {
        self.text("summary")
    }

    pub(crate) fn needs_human(&self) -> bool {
        self.status() == "needs_human"
    }

    pub(crate) fn needs_human_reason(&self) -> Option<&str> {
        json::filled(&self.0, "needs_human_reason")
    }

    pub(crate) fn proposed_next_role(&self) -> Option<&str> {
        json::filled(&self.0, "proposed_next_role")
    }

    /// Returns the phase that the result asks for.
    pub(crate) fn wants_phase(&self) -> Option<&str> {
        json::filled(&self.0, "phase_transition_request")
    }

    pub(crate) fn wants_completion(&self) -> bool {
        self.0.get("run_completion_request") == Some(&Value::Bool(true))
    }

    pub(crate) fn files_changed(&self) -> Vec<&str> {
        json::texts(&self.0, "files_changed")
    }

    /// Returns the kind of the result's artifact, such as `workspace`.
    pub(crate) fn artifact(&self) -> Option<&str> {
        json::text(json::object(&self.0, "artifact")?, "type")
    }

    /// Returns what the turn cost, in USD.
    pub(crate) fn cost(&self) -> Option<f64> {
        json::object(&self.0, "cost")?.get("usd")?.as_f64()
    }

    pub(crate) fn verification(&self) -> Option<&Object> {
        json::object(&self.0, "verification")
    }

    pub(crate) fn verification_status(&self) -> Option<&str> {
        json::text(self.verification()?, "status")
    }

    /// Returns the commands that were run, with their exit codes.
    pub(crate) fn evidence(&self) -> &[Value] {
        self.verification().map_or(&[], |said| json::list(said, "machine_evidence"))
    }

    pub(crate) fn decisions(&self) -> Vec<Decision> {
        self.objects("decisions").cloned().map(Decision::from_object).collect()
    }

    pub(crate) fn objections(&self) -> impl Iterator<Item = &Object> {
        self.objects("objections")
    }

    pub(crate) fn delegations(&self) -> Vec<&Object> {
        self.objects("delegations").collect()
    }

    fn objects(&self, key: &str) -> impl Iterator<Item = &Object> {
        json::list(&self.0, key).iter().filter_map(Value::as_object)
    }
}

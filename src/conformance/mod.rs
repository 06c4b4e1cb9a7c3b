//! The adapter for the public conformance corpus: one fixture in, one verdict out.
//!
//! A fixture is written into a folder of its own, its operation is performed by the program's own code, and
//! the result is compared with what the fixture expects. Where an operation is a public function of
//! [`crate::governed`], that function is called; where the corpus asks for parts that are not public
//! (validators, gates), the internal functions are. This module holds only what the corpus alone asks for:
//! the coordinator, the manifest of a bundle, the judgment of foreign events. No rule is written a second
//! time. Tests need this module and the product does not, so it is built only with the feature `conformance`.
//! Implements G10.

mod compare;
mod coordinator;
mod events;
mod fixture;
mod ledger;
pub(crate) mod manifest;
mod plans;
mod records;
mod runs;

use fixture::Fixture;
use serde_json::{Value, json};

/// Why a fixture has no verdict.
enum NoVerdict {
    /// Something went wrong that the fixture does not speak of.
    Error(String),
    /// The operation is not a known one.
    NotImplemented(String),
}

impl From<crate::governed::GovernedError> for NoVerdict {
    fn from(error: crate::governed::GovernedError) -> Self {
        Self::Error(error.to_string())
    }
}

impl From<std::io::Error> for NoVerdict {
    fn from(error: std::io::Error) -> Self {
        Self::Error(error.to_string())
    }
}

type Actual = Result<Value, NoVerdict>;

/// Judges one fixture. Returns the verdict as a line of JSON (`{status, message?, actual?}`), and the exit
/// code that goes with it: 0 pass, 1 fail, 2 error, 3 not implemented.
pub fn conformance(fixture_json: &[u8]) -> (String, i32) {
    let (status, code, message, actual) = match judge(fixture_json) {
        Ok((None, actual)) => ("pass", 0, None, Some(actual)),
        Ok((Some(difference), actual)) => ("fail", 1, Some(difference), Some(actual)),
        Err(NoVerdict::Error(message)) => ("error", 2, Some(message), None),
        Err(NoVerdict::NotImplemented(message)) => ("not_implemented", 3, Some(message), None),
    };
    let mut verdict = json!({ "status": status });
    if let Some(verdict) = verdict.as_object_mut() {
        verdict.extend(message.map(|message| ("message".to_owned(), json!(message))));
        verdict.extend(actual.map(|actual| ("actual".to_owned(), actual)));
    }
    (format!("{verdict}\n"), code)
}

fn judge(bytes: &[u8]) -> Result<(Option<String>, Value), NoVerdict> {
    let document: Value = serde_json::from_slice(bytes)
        .map_err(|error| NoVerdict::Error(format!("cannot read fixture: {error}")))?;
    let fixture = Fixture::read(document)?;
    let actual = perform(&fixture)?;
    Ok((compare::difference(&fixture.expected, &actual), actual))
}

fn perform(fixture: &Fixture) -> Actual {
    match fixture.operation.as_str() {
        "initialize_run" => runs::initialize(fixture),
        "assign_turn" => runs::assign(fixture),
        "approve_transition" => runs::approve_transition(fixture),
        "approve_completion" => runs::approve_completion(fixture),
        "resolve_blocked" => runs::resolve_blocked(fixture),
        "transition_state" => runs::transition(fixture),
        "accept_turn" => records::accept(fixture),
        "append_decision" => records::append_decision(fixture),
        "validate_turn_result" => records::validate(fixture),
        "validate_event" => Ok(records::event(fixture)),
        "validate_event_ordering" => Ok(records::ordering(fixture)),
        "evaluate_phase_exit" => runs::phase_exit(fixture),
        "evaluate_run_completion" => runs::run_completion(fixture),
        "validate_config" => Ok(plans::config(fixture)),
        "verify_dispatch_manifest" => plans::verify_manifest(fixture),
        "inspect_dispatch_manifest" => plans::inspect_manifest(fixture),
        "run_hooks" => plans::hooks(fixture),
        "validate_coordinator_config" => Ok(plans::coordinator_config(fixture)),
        "project_repo_acceptance" => plans::projection(fixture),
        other => Err(NoVerdict::NotImplemented(format!("operation '{other}' is not known"))),
    }
}

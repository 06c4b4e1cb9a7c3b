//! A turn's result: what a worker staged, checked in five stages that stop at the first that fails.
//!
//! [`validate`] is a function of the result, the state and the configuration; its stages are schema,
//! assignment, artifact, verification and protocol. Two mistakes are corrected before them, each with a
//! warning: the run's id where the turn's is right, and a decision's id that is not `DEC-<number>`. Nothing
//! else is guessed: a result that does not say what it must is refused. Unknown keys are kept and mean
//! nothing.

mod mend;
mod paths;
mod protocol;
mod result;
mod schema;
mod stages;

pub(super) use paths::plain;
pub(crate) use paths::{RESERVED, is_product, is_proposal};
pub(crate) use result::TurnResult;
#[cfg(feature = "conformance")]
pub(crate) use schema::CATEGORIES;
pub(crate) use schema::STATUSES;

use super::Config;
use super::json::Object;
use super::state::{State, Turn};
use serde_json::{Value, json};

/// A stage of validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Keys, types and forms are right.
    Schema,
    /// Run, turn, role and runtime are those of the turn.
    Assignment,
    /// What was changed is what the role may change.
    Artifact,
    /// The evidence supports the claim.
    Verification,
    /// The next role and the requests are allowed, and nothing that must be said is missing.
    Protocol,
    /// The declared changes are those in the workspace.
    ArtifactObservation,
}

impl Stage {
    /// The stages of [`validate`], in the order in which they run.
    pub(crate) const ALL: [Self; 5] =
        [Self::Schema, Self::Assignment, Self::Artifact, Self::Verification, Self::Protocol];

    /// Returns the stage's name in the records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Assignment => "assignment",
            Self::Artifact => "artifact",
            Self::Verification => "verification",
            Self::Protocol => "protocol",
            Self::ArtifactObservation => "artifact_observation",
        }
    }

    /// Returns the class of the stage's errors in the records.
    pub fn error_class(self) -> &'static str {
        match self {
            Self::Schema => "schema_error",
            Self::Assignment => "assignment_error",
            Self::Artifact | Self::ArtifactObservation => "artifact_error",
            Self::Verification => "verification_error",
            Self::Protocol => "protocol_error",
        }
    }
}

/// What kind of thing is wrong, for callers that tell one from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    MissingField,
    InvalidValue,
    DecisionId,
    Mismatch,
    ReservedPath,
    Authority,
    Evidence,
    NoObjection,
    NextRole,
    UnknownPhase,
    Exclusive,
    Delegation,
}

/// One thing that is wrong with a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wrong {
    pub fault: Fault,
    /// The key, or the path that was named.
    pub place: String,
    pub text: String,
}

pub(crate) type Wrongs = Vec<Wrong>;

pub(crate) fn wrong(fault: Fault, place: impl Into<String>, text: impl Into<String>) -> Wrong {
    Wrong { fault, place: place.into(), text: text.into() }
}

/// The outcome of validating a result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Validation {
    /// The stage that failed; `None` where the result is valid.
    pub stage: Option<Stage>,
    /// What is wrong, in words; all errors are of one stage.
    pub errors: Vec<String>,
    /// What is doubtful, and what was corrected.
    pub warnings: Vec<String>,
    /// The result with its corrections; `None` where it is not valid.
    pub turn_result: Option<Value>,
    pub(crate) wrongs: Wrongs,
}

impl Validation {
    /// True for a valid result.
    pub fn ok(&self) -> bool {
        self.stage.is_none()
    }

    /// Returns the record: `{ok, stage, error_class, errors, warnings, turnResult}`.
    pub fn to_value(&self) -> Value {
        json!({
            "ok": self.ok(),
            "stage": self.stage.map(Stage::name),
            "error_class": self.stage.map(Stage::error_class),
            "errors": self.errors,
            "warnings": self.warnings,
            "turnResult": self.turn_result,
        })
    }

    pub(crate) fn failed(stage: Stage, wrongs: Wrongs, warnings: Vec<String>) -> Self {
        let errors = wrongs.iter().map(|wrong| wrong.text.clone()).collect();
        Self { stage: Some(stage), errors, warnings, turn_result: None, wrongs }
    }

    /// The outcome for a staged file that can't be read as a result, for this reason.
    pub(crate) fn unread(text: String) -> Self {
        Self::failed(Stage::Schema, vec![wrong(Fault::InvalidValue, "", text)], Vec::new())
    }
}

/// What a result is validated against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValidationInput<'a> {
    pub state: &'a State,
    pub config: &'a Config,
    /// The turn that the result must belong to; `None` where no turn is active.
    pub turn: Option<&'a Turn>,
}

/// Validates the text of a staged file; `text` is `None` where no file is staged.
pub(crate) fn validate_text(text: Option<&[u8]>, input: ValidationInput<'_>) -> Validation {
    let Some(text) = text else {
        let text = "no result is staged";
        return Validation::failed(Stage::Schema, vec![wrong(Fault::MissingField, "", text)], Vec::new());
    };
    match serde_json::from_slice(text) {
        Ok(value) => validate(value, input),
        Err(error) => Validation::unread(format!("the staged result is no JSON: {error}")),
    }
}

/// Validates a result.
pub(crate) fn validate(result: Value, input: ValidationInput<'_>) -> Validation {
    let mut warnings = Vec::new();
    let Value::Object(mut result) = result else {
        let wrongs = vec![wrong(Fault::InvalidValue, "", "the result must be a JSON object")];
        return Validation::failed(Stage::Schema, wrongs, warnings);
    };
    mend::mend(&mut result, input, &mut warnings);
    let result = TurnResult::of(result);
    for stage in Stage::ALL {
        let wrongs = run(stage, &result, input, &mut warnings);
        if !wrongs.is_empty() {
            return Validation::failed(stage, wrongs, warnings);
        }
    }
    Validation { warnings, turn_result: Some(result.into_value()), ..Validation::default() }
}

fn run(stage: Stage, result: &TurnResult, input: ValidationInput<'_>, warnings: &mut Vec<String>) -> Wrongs {
    match stage {
        Stage::Schema => schema::check(result.object()),
        Stage::Assignment => stages::assignment(result, input),
        Stage::Artifact => stages::artifact(result, input),
        Stage::Verification => stages::verification(result, warnings),
        Stage::Protocol => protocol::check(result, input, warnings),
        // Checked at acceptance, against the workspace.
        Stage::ArtifactObservation => Wrongs::new(),
    }
}

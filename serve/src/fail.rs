//! Failures as they are answered: all have one shape, `{"error": text, "code": word}`, with the command that
//! mends it as `hint` if there is one. Implements W7.

use axum::Json;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use aynig::served::{Cause, Unanswered};
use serde::Serialize;

/// A failure, as it is sent.
#[derive(Debug, Serialize)]
pub struct Failed {
    #[serde(skip)]
    status: StatusCode,
    error: String,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Failed {
    pub fn new(status: StatusCode, code: &'static str, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), code, hint: None }
    }

    pub fn invalid(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", error)
    }

    pub fn unknown(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown", error)
    }

    pub fn refused(error: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "refused", error)
    }

    pub fn held(error: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", error)
    }

    pub fn later(error: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "later", error)
    }

    pub fn too_large(error: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", error)
    }

    /// Returns a failure of the server itself; never one that the request caused.
    pub fn broken(error: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", error)
    }

    /// Turns a failure into a conflict: the present state stands in the way of the request.
    pub fn into_conflict(self) -> Self {
        Self { status: StatusCode::CONFLICT, code: "conflict", ..self }
    }

    /// Returns the text of the failure.
    pub fn words(&self) -> &str {
        &self.error
    }

    /// True if the failure's text contains these words.
    pub fn says(&self, words: &str) -> bool {
        self.error.contains(words)
    }

    pub fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}

impl From<Unanswered> for Failed {
    fn from(why: Unanswered) -> Self {
        let failed = match why.cause {
            Cause::Invalid => Self::invalid,
            Cause::Unknown => Self::unknown,
            Cause::Refused => Self::refused,
            Cause::Held => Self::held,
            Cause::Later => Self::later,
            Cause::Failed => Self::broken,
        };
        failed(why.message)
    }
}

impl From<PathRejection> for Failed {
    fn from(why: PathRejection) -> Self {
        Self::invalid(why.body_text())
    }
}

impl From<QueryRejection> for Failed {
    fn from(why: QueryRejection) -> Self {
        Self::invalid(why.body_text())
    }
}

impl From<BytesRejection> for Failed {
    fn from(why: BytesRejection) -> Self {
        match why.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::too_large("the body is larger than 4 MiB"),
            _ => Self::invalid(why.body_text()),
        }
    }
}

impl From<serde_json::Error> for Failed {
    fn from(why: serde_json::Error) -> Self {
        Self::invalid(format!("not what is asked for: {why}"))
    }
}

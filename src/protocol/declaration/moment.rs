//! The moment before which a declared state is not dispatched: a point in time, or a time span after the
//! outcome.
//!
//! Implements K51 (declaring).

use super::Invalid;
use crate::protocol::waits::parse_time;
use serde_json::{Map, Value};
use std::time::Duration;

/// The earliest moment at which the declared state may be dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotBefore {
    /// At this moment, in seconds since 1970.
    At(i64),
    /// This many seconds after the outcome is written.
    In(u64),
}

/// Longest wait, in seconds: ten years. A longer one is taken for a mistake.
const WAIT_MAX: u64 = 10 * 366 * 24 * 3600;

const WANT: &str = "'+' and a duration of at most ten years as in \"+15m\", seconds since 1970, or a moment as in \
                    \"2030-01-31T12:00:00Z\"";

impl NotBefore {
    pub(super) fn of(value: Option<&Value>) -> Result<Option<Self>, Invalid> {
        let read = match value {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Number(number)) => {
                number.as_u64().and_then(|n| i64::try_from(n).ok()).map(NotBefore::At)
            }
            Some(Value::String(text)) => Self::read(text.trim()),
            Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => None,
        };
        read.map(Some).ok_or(Invalid::Type { field: "not_before", want: WANT })
    }

    /// Reads a moment, or `+` and a duration as everywhere in this program: `+90`, `+15m`, `+1h 30m`.
    pub fn read(text: &str) -> Option<Self> {
        let Some(wait) = text.strip_prefix('+') else { return parse_time(text).map(NotBefore::At) };
        let seconds = match wait.parse::<u64>() {
            Ok(seconds) => seconds,
            Err(_) => {
                let wait = humantime::parse_duration(wait).ok()?;
                // Rounded up, so that the moment is never earlier than was said.
                wait.checked_add(Duration::from_nanos(999_999_999))?.as_secs()
            }
        };
        (seconds <= WAIT_MAX).then_some(NotBefore::In(seconds))
    }

    /// Returns the moment in seconds since 1970, if the outcome is written at `now`.
    pub fn from(self, now: i64) -> i64 {
        match self {
            NotBefore::At(at) => at,
            NotBefore::In(seconds) => now.saturating_add_unsigned(seconds),
        }
    }

    pub(super) fn put(self, fields: &mut Map<String, Value>) {
        let value = match self {
            NotBefore::At(at) => at.into(),
            NotBefore::In(seconds) => format!("+{seconds}").into(),
        };
        fields.insert("not_before".into(), value);
    }
}

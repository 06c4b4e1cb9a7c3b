//! The audit: one line for each hook that ran or was skipped, with what was done about it.

use super::{Delivered, Outcome};
use serde::{Deserialize, Serialize};

/// What was done about a hook: twelve actions, no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Continued,
    Warned,
    Blocked,
    DowngradedBlockToWarn,
    BlockedFailure,
    WarnedFailure,
    BlockedTimeout,
    WarnedTimeout,
    BlockedInvalidOutput,
    WarnedInvalidOutput,
    AbortedTamper,
    Skipped,
}

/// The verdict in a hook's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Allow,
    Warn,
    Block,
}

/// A line of the audit; the order of the fields is the order on disk.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Entry {
    pub timestamp: String,
    #[serde(rename = "hook_phase")]
    pub phase: &'static str,
    #[serde(rename = "hook_name")]
    pub hook: String,
    /// How the hook was called; left out for one that was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    pub run_id: Option<String>,
    pub turn_id: Option<String>,
    pub duration_ms: u64,
    pub verdict: Option<Verdict>,
    pub message: Option<String>,
    pub annotations: Vec<Annotation>,
    pub exit_code: Option<i64>,
    pub timed_out: bool,
    pub stderr_excerpt: String,
    #[serde(rename = "orchestrator_action")]
    pub action: Action,
}

/// A note in a hook's answer, such as one on an accepted turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Annotation {
    pub key: String,
    pub value: String,
}

impl Entry {
    /// Notes how the hook ended.
    pub(super) fn take(&mut self, delivered: &Delivered) {
        self.duration_ms = delivered.duration_ms;
        self.exit_code = delivered.exit_code;
        self.timed_out = matches!(delivered.outcome, Outcome::TimedOut);
        self.stderr_excerpt = delivered.stderr.clone();
    }

    /// Decides what is done about the outcome, and notes it; true where the hook stops the phase.
    pub(super) fn judge(&mut self, outcome: &Outcome, is_blocking: bool) -> bool {
        let (blocked, warned, message) = match outcome {
            Outcome::Said { verdict, message, annotations } => {
                self.message = message.clone();
                self.annotations = annotations.clone();
                let (kept, action) = match (verdict, is_blocking) {
                    (Verdict::Allow, _) => (Verdict::Allow, Action::Continued),
                    (Verdict::Warn, _) => (Verdict::Warn, Action::Warned),
                    (Verdict::Block, true) => (Verdict::Block, Action::Blocked),
                    (Verdict::Block, false) => (Verdict::Warn, Action::DowngradedBlockToWarn),
                };
                self.verdict = Some(kept);
                self.action = action;
                return action == Action::Blocked;
            }
            Outcome::Failed(why) => (Action::BlockedFailure, Action::WarnedFailure, why.clone()),
            Outcome::TimedOut => {
                (Action::BlockedTimeout, Action::WarnedTimeout, "the hook took too long".to_owned())
            }
            Outcome::Nonsense(why) => {
                (Action::BlockedInvalidOutput, Action::WarnedInvalidOutput, why.clone())
            }
        };
        self.message = Some(message);
        self.verdict = Some(if is_blocking { Verdict::Block } else { Verdict::Warn });
        self.action = if is_blocking { blocked } else { warned };
        is_blocking
    }
}

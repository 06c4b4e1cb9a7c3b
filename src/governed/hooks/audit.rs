//! The audit: one line for each hook that ran or was skipped, with what was done about it.

use super::{Delivered, Outcome};
use serde_json::{Value, json};

/// What was done about a hook: twelve actions, no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Continued => "continued",
            Self::Warned => "warned",
            Self::Blocked => "blocked",
            Self::DowngradedBlockToWarn => "downgraded_block_to_warn",
            Self::BlockedFailure => "blocked_failure",
            Self::WarnedFailure => "warned_failure",
            Self::BlockedTimeout => "blocked_timeout",
            Self::WarnedTimeout => "warned_timeout",
            Self::BlockedInvalidOutput => "blocked_invalid_output",
            Self::WarnedInvalidOutput => "warned_invalid_output",
            Self::AbortedTamper => "aborted_tamper",
            Self::Skipped => "skipped",
        }
    }
}

/// What a hook says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    Warn,
    Block,
}

impl Verdict {
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Allow, Self::Warn, Self::Block].into_iter().find(|verdict| verdict.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Block => "block",
        }
    }
}

/// A line of the audit.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub timestamp: String,
    pub phase: &'static str,
    pub hook: String,
    pub transport: Option<&'static str>,
    pub run_id: Option<String>,
    pub turn_id: Option<String>,
    pub duration_ms: u64,
    pub verdict: Option<Verdict>,
    pub message: Option<String>,
    pub annotations: Vec<Value>,
    pub exit_code: Option<i64>,
    pub timed_out: bool,
    pub stderr_excerpt: String,
    pub action: Action,
}

impl Entry {
    /// Notes how the hook ended.
    pub(super) fn take(&mut self, delivered: &Delivered) {
        self.duration_ms = delivered.duration_ms;
        self.exit_code = delivered.exit_code;
        self.timed_out = matches!(delivered.outcome, Outcome::TimedOut);
        self.stderr_excerpt = delivered.stderr.clone();
    }

    /// Says what is done about it; true where it stops the phase.
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

    pub(super) fn to_value(&self) -> Value {
        let mut entry = json!({
            "timestamp": self.timestamp,
            "hook_phase": self.phase,
            "hook_name": self.hook,
            "transport": self.transport,
            "run_id": self.run_id,
            "turn_id": self.turn_id,
            "duration_ms": self.duration_ms,
            "verdict": self.verdict.map(Verdict::name),
            "message": self.message,
            "annotations": self.annotations,
            "exit_code": self.exit_code,
            "timed_out": self.timed_out,
            "stderr_excerpt": self.stderr_excerpt,
            "orchestrator_action": self.action.name(),
        });
        // What was skipped went over no transport.
        if let (None, Some(entry)) = (self.transport, entry.as_object_mut()) {
            entry.shift_remove("transport");
        }
        entry
    }
}

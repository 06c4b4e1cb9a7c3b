//! What a verb says when it can't go on: the failure, its causes, and the command that mends it.
//!
//! Text as Git writes it: `error:` what failed, `caused by:`, `hint:`. One place turns typed errors into
//! messages and exit codes.

use super::hints::{self, Addressed};
use crate::protocol::obstacle::Obstacle;
use crate::protocol::text::escape;
use crate::runner::RunnerError;
use crate::runner::change::ChangeError;
use crate::store::StoreError;
use crate::store::repository::OpenError;

/// A verb that ended without doing what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// The process's exit code.
    pub code: i32,
    /// What failed; empty where everything was said already.
    pub message: String,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// Commands that mend it.
    pub hints: Vec<String>,
}

impl Failure {
    /// A wrong call: 129.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: 129, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }
    /// A fatal failure: 128.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self { code: 128, ..Self::usage(message) }
    }
    /// A refusal by policy: 2.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::usage(message) }
    }
    /// Adds the command that mends it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
    /// A failure of another room, with its causes; fatal until its code is set.
    pub fn caused(error: &dyn std::error::Error) -> Self {
        Self::of(error, 128)
    }
    fn of(error: &dyn std::error::Error, code: i32) -> Self {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        Self { code, message: error.to_string(), causes, hints: Vec::new() }
    }

    /// The text for standard error.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if !self.message.is_empty() {
            text += &format!("error: {}\n", escape(self.message.as_bytes()));
        }
        for cause in &self.causes {
            text += &format!("caused by: {}\n", escape(cause.as_bytes()));
        }
        for hint in &self.hints {
            text += &format!("hint: {}\n", escape(hint.as_bytes()));
        }
        text
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        RunnerError::Store(error).into()
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        let mut failure = Failure::of(&error, error.exit_code());
        failure.hints.extend(hints::of(&error, None));
        failure
    }
}

impl From<crate::supervisor::SupervisorError> for Failure {
    fn from(error: crate::supervisor::SupervisorError) -> Self {
        RunnerError::Supervisor(error).into()
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let nowhere = error.is_nowhere();
        match error {
            OpenError::Store(store) => store.into(),
            OpenError::NotFound { .. } | OpenError::Refused { .. } if nowhere => {
                Failure::fatal(error.to_string()).hint("cd into a repository, or git init")
            }
            OpenError::NotFound { .. } | OpenError::Refused { .. } => Failure::fatal(error.to_string()),
        }
    }
}

impl Failure {
    /// What a verb did not write to a branch, of that remote or of this repository.
    pub fn changing(error: ChangeError, remote: Option<&str>) -> Self {
        let code = error.exit_code();
        let at = |branch| Addressed::new(branch, remote);
        let hint = match &error {
            ChangeError::Leased(branch, _) => Some(at(branch).call("cancel")),
            ChangeError::LeaseLost(branch, _) | ChangeError::Raced(branch) => Some(at(branch).call("status")),
            ChangeError::NoBranch(branch) => Some(at(branch).list()),
            ChangeError::ByHand(branch) => Some(at(branch).set("blocked")),
            ChangeError::NoTrigger(branch, _) => Some(at(branch).set("<state>")),
            ChangeError::NotVouched(_, commit) => {
                Some(format!("git verify-commit {commit} && git show -s {commit}"))
            }
            ChangeError::Unborn(_) => Some("git commit --allow-empty -m 'first commit'".to_owned()),
            ChangeError::NotLeased(branch) | ChangeError::NotStalled(branch) => {
                Some(at(branch).call("status"))
            }
            ChangeError::Blocked(_, Obstacle::Changes(_)) => {
                Some("commit or stash them, then try again".to_owned())
            }
            ChangeError::Apart(..) => {
                Some("move the branch's own away, commit that, then try again".to_owned())
            }
            ChangeError::Blocked(_, by) => Some(format!("{}, then try again", hints::of_obstacle(by))),
            ChangeError::Message(_)
            | ChangeError::Dialect(..)
            | ChangeError::Slot(_)
            | ChangeError::Runner(_) => None,
        };
        let words = match &error {
            ChangeError::Blocked(_, by) => Some(by.to_string()),
            _ => None,
        };
        let mut failure = match error {
            ChangeError::Runner(error) => error.into(),
            other => Failure::of(&other, code),
        };
        failure.causes.extend(words);
        failure.hints.extend(hint);
        failure
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        Self::changing(error, None)
    }
}

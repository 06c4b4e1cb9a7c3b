//! Failures of acts on a governed run, as users see them: exit codes, and the commands that mend them.

use super::super::fail::Failure;
use crate::app::govern::GovernError;
use crate::governed::{GovernedError, RunStatus};
use crate::protocol::text::shell_word;
use std::os::unix::ffi::OsStrExt;

impl From<GovernError> for Failure {
    fn from(error: GovernError) -> Self {
        (&error).into()
    }
}

impl From<&GovernError> for Failure {
    fn from(error: &GovernError) -> Self {
        match error {
            GovernError::Governed(error) => error.into(),
            GovernError::NoWorker { .. } => Failure::caused(error)
                .hint("name one in agentxchain.json, or: git aynig govern turn -- <worker>"),
            GovernError::Beside { turn, folder, .. } => {
                let folder = shell_word(folder.as_os_str().as_bytes());
                Failure::refused(error.to_string())
                    .hint(format!("git aynig govern accept --root {folder} {turn}"))
                    .hint("git aynig govern start -b <branch> # there each turn has a worktree of its own")
            }
            GovernError::App(error) => error.into(),
            GovernError::NotOnTrusted(from) => Failure::refused(error.to_string()).hint(format!(
                "git switch {} && git add agentxchain.json && git commit",
                shell_word(from.short())
            )),
            GovernError::NotWritten(_) => {
                Failure::caused(error).hint("git log -1 --stat -- .agentxchain")
            }
            GovernError::Held { here: Some(branch), .. } => Failure::refused(error.to_string())
                .hint(format!("git aynig govern status -b {}", shell_word(branch.short()))),
            GovernError::Held { here: None, .. } => {
                Failure::refused(error.to_string()).hint("git show HEAD:.agentxchain/state.json")
            }
            GovernError::NoBranch(_) => Failure::caused(error).hint("git aynig status"),
            GovernError::NoProject(_) => Failure::caused(error)
                .hint("git aynig install <repository of a pack> # or write agentxchain.json"),
            GovernError::NoRun(_) => Failure::caused(error).hint("git aynig govern start"),
            GovernError::Unanswered { from, written: false, .. } => Failure::refused(error.to_string())
                .hint(format!("git switch {} && git aynig govern start", shell_word(from.short()))),
            // Code 1, since the commands were written before the start stopped; a refusal (2) would have
            // changed nothing.
            GovernError::Unanswered { written: true, .. } => Failure { code: 1, ..Failure::caused(error) }
                .hint("git add .aynig && git commit -m 'govern: a command for each role' && git aynig govern start"),
            GovernError::NoTrusted(_)
            | GovernError::BadRole { .. }
            | GovernError::Unnamed(_)
            | GovernError::NotStarted { .. }
            | GovernError::Supervisor(_)
            | GovernError::NoProgram(_) => Failure::caused(error),
        }
    }
}

impl From<GovernedError> for Failure {
    fn from(error: GovernedError) -> Self {
        (&error).into()
    }
}

impl From<&GovernedError> for Failure {
    fn from(error: &GovernedError) -> Self {
        let mut failed = Failure { code: code(error), ..Failure::caused(error) };
        if let GovernedError::InvalidResult(validation) = error {
            failed.causes.extend(validation.errors.iter().skip(1).cloned());
        }
        failed.hints.extend(hint(error));
        failed
    }
}

fn code(error: &GovernedError) -> i32 {
    match error {
        GovernedError::Refused(_)
        | GovernedError::StaleStaging { .. }
        | GovernedError::InvalidResult(_)
        | GovernedError::OverrideRefused { .. }
        | GovernedError::PolicyViolation { .. }
        | GovernedError::DirtyWorkspace { .. }
        | GovernedError::StaleState
        | GovernedError::Blank { .. }
        | GovernedError::LeftToHuman
        | GovernedError::NoSuchRole { .. }
        | GovernedError::Hook { .. }
        | GovernedError::TimedOut { .. }
        | GovernedError::Conflict { .. } => 2,
        GovernedError::Locked { .. } => 75,
        GovernedError::NoProject { .. }
        | GovernedError::ForeignOwner { .. }
        | GovernedError::NoState { .. }
        | GovernedError::UnreadableConfig { .. }
        | GovernedError::InvalidConfig { .. }
        | GovernedError::UnreadableState { .. }
        | GovernedError::InvalidState { .. }
        | GovernedError::UnreadableJournal { .. }
        | GovernedError::UnsafeTurnId { .. }
        | GovernedError::UnknownNotification { .. }
        | GovernedError::Outside { .. }
        | GovernedError::Io { .. }
        | GovernedError::Workspace { .. } => 128,
    }
}

fn hint(error: &GovernedError) -> Option<String> {
    if let GovernedError::ForeignOwner { folder } = error {
        let folder = shell_word(folder.as_os_str().as_bytes());
        return Some(format!("git config --global --add safe.directory {folder}"));
    }
    // A no to an assignment blocks nothing: there is no run to unblock, and the same call asks the hook again.
    if let GovernedError::Hook { role: Some(role), state, .. } = error
        && state.status() == Some(RunStatus::Active)
    {
        let role = shell_word(role.as_bytes());
        return Some(format!("git aynig govern status; once it is mended: git aynig govern assign {role}"));
    }
    fixed_hint(error).map(str::to_owned)
}

/// What shows who made of the folder of a run what it is.
const LOG: &str = "git log --stat -- .agentxchain";

fn fixed_hint(error: &GovernedError) -> Option<&'static str> {
    match error {
        GovernedError::NoState { .. } => Some("git aynig govern start"),
        GovernedError::LeftToHuman => Some("git aynig govern assign <role>"),
        GovernedError::NoProject { .. } => {
            Some("git aynig install <repository of a pack> # or write agentxchain.json")
        }
        GovernedError::Refused(_) | GovernedError::StaleState => Some("git aynig govern status"),
        GovernedError::InvalidResult(_) | GovernedError::StaleStaging { .. } => {
            Some("mend the staged result, or: git aynig govern reject -m <reason>")
        }
        GovernedError::Conflict { .. } => Some(
            "merge by hand, then: git aynig govern accept --human-merge; or: git aynig govern reject -m <reason>",
        ),
        GovernedError::Hook { .. } | GovernedError::TimedOut { .. } => {
            Some("git aynig govern status; once it is mended: git aynig govern unblock")
        }
        GovernedError::DirtyWorkspace { .. } => Some("git status"),
        GovernedError::Locked { .. } => Some("try again when the other process is done"),
        GovernedError::OverrideRefused { .. } | GovernedError::PolicyViolation { .. } => {
            Some("git aynig govern reject -m <reason>")
        }
        GovernedError::UnreadableState { .. } | GovernedError::InvalidState { .. } => Some(
            "git log -p -- .agentxchain/state.json; to begin anew: git mv .agentxchain/state.json \
                 .agentxchain/state.json.old && git commit -m 'the old run aside' && git aynig govern start",
        ),
        GovernedError::UnreadableConfig { .. }
        | GovernedError::InvalidConfig { .. }
        | GovernedError::UnreadableJournal { .. }
        | GovernedError::UnsafeTurnId { .. }
        | GovernedError::UnknownNotification { .. }
        | GovernedError::Blank { .. }
        | GovernedError::NoSuchRole { .. }
        | GovernedError::ForeignOwner { .. }
        | GovernedError::Workspace { .. } => None,
        GovernedError::Io { path, .. } if path.to_string_lossy().ends_with(":.agentxchain") => Some(LOG),
        GovernedError::Io { .. } => None,
        GovernedError::Outside { .. } => Some(LOG),
    }
}

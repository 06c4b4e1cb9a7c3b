//! Why an operation failed, with the original tool's error code where it has one.
//!
//! A refusal is an error, and changes not one byte except the audit of the hooks that ran. Some errors record
//! more, and carry the state that was written: a hook that blocks or tampers, which in most phases also
//! blocks the run ([`GovernedError::Hook`]), a conflict, a time limit that was passed, and a policy that
//! escalates.

use super::conflict::Conflict;
use super::hooks::HookReport;
use super::next::Refusal;
use super::outcome::Validation;
use super::state::State;
use std::path::{Path, PathBuf};

/// The error of an operation.
#[derive(Debug, thiserror::Error)]
pub enum GovernedError {
    /// Neither the folder nor one above it is a governed project.
    #[error("cannot find 'agentxchain.json' in '{}' or above", folder.display())]
    NoProject {
        /// Where the search began.
        folder: PathBuf,
    },
    /// The configuration, or the folder that holds it, is owned by another user.
    #[error("cannot use '{}': it is owned by another user", folder.display())]
    ForeignOwner {
        /// The folder that holds the configuration.
        folder: PathBuf,
    },
    /// The configuration is no JSON.
    #[error("cannot read '{}'", path.display())]
    UnreadableConfig {
        /// The configuration file.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The configuration breaks rules.
    #[error("cannot use '{}': {}", path.display(), errors.join("; "))]
    InvalidConfig {
        /// The configuration file.
        path: PathBuf,
        /// A message for each rule that is broken.
        errors: Vec<String>,
    },
    /// The project has no state yet.
    #[error("cannot find '{}': no run was initialized", path.display())]
    NoState {
        /// Where the state would be.
        path: PathBuf,
    },
    /// The state is no JSON object.
    #[error("cannot read '{}'", path.display())]
    UnreadableState {
        /// The state file.
        path: PathBuf,
        /// The parser's error; `None` where the file is JSON, but not an object.
        source: Option<serde_json::Error>,
    },
    /// The state breaks an invariant that states must hold.
    #[error("cannot use '{}': {}", path.display(), errors.join("; "))]
    InvalidState {
        /// The state file.
        path: PathBuf,
        /// A message for each invariant that is broken.
        errors: Vec<String>,
    },
    /// A journal of a killed operation can't be read, so nothing may be changed before a person looks at it.
    #[error("cannot finish the operation in '{}': the journal is garbled", path.display())]
    UnreadableJournal {
        /// The journal.
        path: PathBuf,
        /// The parser's error; `None` where the file is JSON, but not a valid journal.
        source: Option<serde_json::Error>,
    },
    /// Another process holds the lock.
    #[error("cannot lock '{}': it is held{}", path.display(), owner.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that the lock file names as its owner.
        owner: Option<u64>,
    },
    /// The run's state does not allow the operation.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An argument that must not be blank is blank.
    #[error("cannot {verb}: {what} must not be blank")]
    Blank {
        /// The operation, as the message names it.
        verb: &'static str,
        /// The argument, as the message names it.
        what: &'static str,
    },
    /// The last turn left it to a person who goes next, and no role is named.
    #[error("cannot assign turn: the last one left it to a person who goes next")]
    LeftToHuman,
    /// A turn's id can't be the name of a folder.
    #[error("cannot use turn '{turn_id}': its id is no file name")]
    UnsafeTurnId {
        /// The id.
        turn_id: String,
    },
    /// The state that was given is not the one on disk.
    #[error("cannot reactivate run: the state has changed since it was read")]
    StaleState,
    /// The workspace has changes that no turn declared, and the turn to assign is of a role that writes.
    #[error("cannot assign turn: the workspace has uncommitted changes: {}", shown(files))]
    DirtyWorkspace {
        /// The changed files.
        files: Vec<String>,
    },
    /// The staged result names another turn.
    #[error("cannot accept turn '{turn_id}': the staged result is of turn '{found}'")]
    StaleStaging {
        /// The turn that was to be accepted.
        turn_id: String,
        /// The turn that the file names.
        found: String,
    },
    /// The staged result breaks a rule.
    #[error("cannot accept turn: {}", .0.errors.first().map_or("the result is invalid", String::as_str))]
    InvalidResult(Box<Validation>),
    /// A decision of the result overrides one that it may not override.
    #[error("cannot accept turn: {}", errors.join("; "))]
    OverrideRefused {
        /// A message for each override that is refused.
        errors: Vec<String>,
    },
    /// A policy of the configuration forbids the acceptance.
    #[error("cannot accept turn: policy '{policy}' forbids it: {message}")]
    PolicyViolation {
        /// The policy's id.
        policy: String,
        /// The policy's message, or a description of the breach.
        message: String,
        /// The state with the run blocked, where the policy escalates; `None` where it only blocks the
        /// acceptance.
        escalated: Option<Box<State>>,
    },
    /// Turns that were accepted since this one was assigned changed the same files; the turn is `conflicted`
    /// now.
    #[error("cannot accept turn: it conflicts with turns accepted since in {}", shown(&conflict.conflicting_files))]
    Conflict {
        /// The conflict, as the turn's record has it; the ledger has a summary.
        conflict: Box<Conflict>,
        /// The state with the turn marked.
        state: Box<State>,
    },
    /// A hook blocked, or changed protected files, which were put back.
    #[error("cannot go on: hook '{hook}' of '{phase}' {}", if *tampered { "changed protected files" } else { "blocked" })]
    Hook {
        /// The hook's name.
        hook: String,
        /// The phase that the hook ran in.
        phase: &'static str,
        /// The role that the hook was asked about; `None` where the phase is not about one.
        role: Option<String>,
        /// True where the hook changed protected files, which were put back.
        tampered: bool,
        /// The original tool's code: `hook_blocked`, or `hook_state_tamper` and the like.
        code: &'static str,
        /// What came of all hooks of the phase.
        report: Box<HookReport>,
        /// The state after the hook; the run is blocked in it, except where a hook of `before_assignment`
        /// only said no.
        state: Box<State>,
    },
    /// The bundle can't be written: the turn's role is not in the configuration.
    #[error("cannot write bundle: role '{role}' is not in the configuration")]
    NoSuchRole {
        /// The role of the turn.
        role: String,
    },
    /// No event that webhooks can ask for has this name.
    #[error("cannot notify: '{event}' is no event")]
    UnknownNotification {
        /// The name.
        event: String,
    },
    /// The file to read or write is outside of the project, or a symbolic link is on the way to it.
    #[error("cannot use '{}': it is not in the project, or a symbolic link is on the way", path.display())]
    Outside {
        /// The path that is refused.
        path: PathBuf,
    },
    /// A time limit of the configuration is passed; the run is blocked now.
    #[error("cannot go on: {message}")]
    TimedOut {
        /// Which limit it is, in words.
        message: String,
        /// The state with the run blocked.
        state: Box<State>,
    },
    /// A file operation failed.
    #[error("cannot {what} '{}'", path.display())]
    Io {
        /// The verb of what was being done, for the message.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Git could not be asked about the workspace.
    #[error("cannot look at the workspace")]
    Workspace {
        /// The error of the call of Git.
        source: Box<crate::store::StoreError>,
    },
}

impl GovernedError {
    /// Returns the state that was written although the operation failed; `None` for the errors after which
    /// nothing was.
    pub(crate) fn state(&self) -> Option<&State> {
        let (Self::Hook { state, .. }
        | Self::Conflict { state, .. }
        | Self::TimedOut { state, .. }
        | Self::PolicyViolation { escalated: Some(state), .. }) = self
        else {
            return None;
        };
        Some(state)
    }

    /// Returns the original tool's `error_code`, where it has one for this error.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Locked { .. } => Some("lock_timeout"),
            Self::Refused(refusal) => refusal.code(),
            Self::StaleStaging { .. } => Some("stale_staging"),
            Self::OverrideRefused { .. } => Some("override_validation_failed"),
            Self::PolicyViolation { escalated: Some(_), .. } => Some("policy_escalation"),
            Self::PolicyViolation { escalated: None, .. } => Some("policy_violation"),
            Self::Conflict { .. } => Some("conflict"),
            Self::Hook { code, .. } => Some(code),
            Self::NoProject { .. }
            | Self::ForeignOwner { .. }
            | Self::UnreadableConfig { .. }
            | Self::InvalidConfig { .. }
            | Self::NoState { .. }
            | Self::UnreadableState { .. }
            | Self::InvalidState { .. }
            | Self::UnreadableJournal { .. }
            | Self::Blank { .. }
            | Self::LeftToHuman
            | Self::UnsafeTurnId { .. }
            | Self::StaleState
            | Self::DirtyWorkspace { .. }
            | Self::InvalidResult(_)
            | Self::NoSuchRole { .. }
            | Self::UnknownNotification { .. }
            | Self::Outside { .. }
            | Self::TimedOut { .. }
            | Self::Io { .. }
            | Self::Workspace { .. } => None,
        }
    }
}

/// Makes the error of a failed file operation, from what was being done and with which path.
pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> GovernedError {
    move |source| GovernedError::Io { what, path: path.to_owned(), source }
}

/// Makes the error that refuses a file whose name is not UTF-8, so that JSON can't name it.
pub(crate) fn not_text(path: &Path) -> GovernedError {
    io("name", path)(std::io::Error::new(std::io::ErrorKind::InvalidData, "its name is not UTF-8"))
}

/// Shows the first five files of a list, and how many more there are.
fn shown(files: &[String]) -> String {
    let more = files.len().saturating_sub(5);
    let first = files.iter().take(5).map(|file| format!("'{file}'")).collect::<Vec<_>>().join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

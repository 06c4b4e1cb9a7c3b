//! Why an operation did not do what was asked, with the seed's code where it has one.
//!
//! A refusal is an error here, and changes not one byte, with one exception that says so: a hook that blocks
//! or tampers leaves its audit, and most leave the run blocked ([`GovernedError::Hook`]).

use super::conflict::Conflict;
use super::hooks::HookReport;
use super::next::Refusal;
use super::outcome::Validation;
use super::state::State;
use std::path::{Path, PathBuf};

/// What kept an operation from its end.
#[derive(Debug, thiserror::Error)]
pub enum GovernedError {
    /// Neither the folder nor one above it is a governed project.
    #[error("cannot find 'agentxchain.json' in '{}' or above", folder.display())]
    NoProject {
        /// Where the search began.
        folder: PathBuf,
    },
    /// Another account may write the configuration.
    #[error("cannot use '{}': it is owned by someone else", folder.display())]
    ForeignOwner {
        /// The folder that holds it.
        folder: PathBuf,
    },
    /// The configuration is no JSON.
    #[error("cannot read '{}'", path.display())]
    UnreadableConfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The configuration breaks rules.
    #[error("cannot use '{}': {}", path.display(), errors.join("; "))]
    InvalidConfig {
        /// The file.
        path: PathBuf,
        /// Every breach.
        errors: Vec<String>,
    },
    /// The project has no state yet.
    #[error("cannot find '{}': no run was initialized", path.display())]
    NoState {
        /// Where it would be.
        path: PathBuf,
    },
    /// The state is no JSON object.
    #[error("cannot read '{}'", path.display())]
    UnreadableState {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Option<serde_json::Error>,
    },
    /// The state breaks what a state promises.
    #[error("cannot use '{}': {}", path.display(), errors.join("; "))]
    InvalidState {
        /// The file.
        path: PathBuf,
        /// Every breach.
        errors: Vec<String>,
    },
    /// A journal of a killed operation can't be read, so nothing may be changed before a person looks at it.
    #[error("cannot finish the operation in '{}': the journal is garbled", path.display())]
    UnreadableJournal {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        source: Option<serde_json::Error>,
    },
    /// Another process holds the lock.
    #[error("cannot lock '{}': it is held{}", path.display(), owner.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who says to hold it.
        owner: Option<u64>,
    },
    /// The state does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An argument that must say something says nothing.
    #[error("cannot {verb}: {what} must not be blank")]
    Blank {
        /// The operation.
        verb: &'static str,
        /// The argument.
        what: &'static str,
    },
    /// A turn's id is no name that a folder could have.
    #[error("cannot use turn '{turn_id}': its id is no file name")]
    UnsafeTurnId {
        /// The id.
        turn_id: String,
    },
    /// The state that was given is not the one on disk.
    #[error("cannot reactivate run: the state has changed since it was read")]
    StaleState,
    /// The workspace has changes that no turn declared, and a role that writes would be given it.
    #[error("cannot assign turn: the workspace has uncommitted changes: {}", shown(files))]
    DirtyWorkspace {
        /// The changed files.
        files: Vec<String>,
    },
    /// The staged file is another turn's.
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
    /// A decision overrides what it may not.
    #[error("cannot accept turn: {}", errors.join("; "))]
    OverrideRefused {
        /// Every breach.
        errors: Vec<String>,
    },
    /// A policy of the configuration forbids it.
    #[error("cannot accept turn: policy '{policy}' forbids it: {message}")]
    PolicyViolation {
        /// The policy.
        policy: String,
        /// What it says.
        message: String,
        /// The state after it, where the policy escalates: the run is blocked then.
        escalated: Option<Box<State>>,
    },
    /// Others have changed the same files since the turn was assigned; the turn is `conflicted` now.
    #[error("cannot accept turn: it conflicts with turns accepted since in {}", shown(&conflict.conflicting_files))]
    Conflict {
        /// The record, as the ledger and the turn have it.
        conflict: Box<Conflict>,
        /// The state after that was written down.
        state: Box<State>,
    },
    /// A hook said no, or changed what is protected (undone).
    #[error("cannot go on: hook '{hook}' of '{phase}' {}", if *tampered { "changed protected files" } else { "blocked" })]
    Hook {
        /// The hook.
        hook: String,
        /// Its phase.
        phase: &'static str,
        /// The role that it was asked about, where it was about one.
        role: Option<String>,
        /// It changed protected files; what it changed was put back.
        tampered: bool,
        /// The seed's code: `hook_blocked`, `hook_state_tamper` and the like, `hook_post_commit_error`.
        code: &'static str,
        /// All that ran.
        report: Box<HookReport>,
        /// The state after it, with the run blocked where that follows.
        state: Box<State>,
    },
    /// No such turn's bundle can be written: the role is not in the configuration.
    #[error("cannot write bundle: role '{role}' is not in the configuration")]
    NoSuchRole {
        /// The role.
        role: String,
    },
    /// No webhook can be asked about an event of this name.
    #[error("cannot notify: '{event}' is no event")]
    UnknownNotification {
        /// The name.
        event: String,
    },
    /// What is to be read or written is not the project's own.
    #[error("cannot use '{}': it is not in the project, or a symbolic link is on the way", path.display())]
    Outside {
        /// Where it would be.
        path: PathBuf,
    },
    /// A limit of the configuration's is passed; the run is blocked now.
    #[error("cannot go on: {message}")]
    TimedOut {
        /// Which one.
        message: String,
        /// The state after it.
        state: Box<State>,
    },
    /// A file operation failed.
    #[error("cannot {what} '{}'", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Git could not be asked about the workspace.
    #[error("cannot look at the workspace")]
    Workspace {
        /// What git said.
        source: Box<crate::store::StoreError>,
    },
}

impl GovernedError {
    /// The state that was written all the same; of any other failure nothing was.
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

    /// The seed's `error_code`, where it has one for this.
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

/// Names what was being done when a file operation failed.
pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> GovernedError {
    move |source| GovernedError::Io { what, path: path.to_owned(), source }
}

/// Refuses a file by name that nothing in JSON can name.
pub(crate) fn not_text(path: &Path) -> GovernedError {
    io("name", path)(std::io::Error::new(std::io::ErrorKind::InvalidData, "its name is not UTF-8"))
}

/// The first files of a list.
fn shown(files: &[String]) -> String {
    let more = files.len().saturating_sub(5);
    let first = files.iter().take(5).map(|file| format!("'{file}'")).collect::<Vec<_>>().join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

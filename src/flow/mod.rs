//! Flows in Git: their refs, the branches of their nodes, turns, and what follows from turns.
//!
//! A flow is a commit under `refs/aynig/flows/<id>`; the pure functions of the module `contract` say what may
//! be done to it. [`Flows`] reads and changes it by compare-and-swap ([`store`]); a node is a branch
//! ([`nodes`]). Nothing is kept anywhere else, so a flow survives whatever Git survives. Implements N1 and N3
//! over the modules below.

pub mod approval;
pub mod goes_on;
pub mod letter;
pub mod nodes;
pub mod outcome;
pub mod project;
pub mod route;
pub mod senders;
pub mod store;
pub mod templates;
pub mod turn;
pub mod turns;

use crate::contract::flow::{BadFlow, Refused};
use crate::contract::id::RunId;
use crate::runner::RunnerError;
use crate::runner::talk::TalkError;
use crate::store::files::NoFiles;
use crate::store::{RefName, StoreError};
pub use store::{Flows, Kept};

/// Why a flow was not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// No flow has this name or id.
    #[error("there is no flow '{0}'")]
    NoFlow(String),
    /// Several flows have this name.
    #[error("'{name}' are several flows: {}", ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several {
        /// The name that was asked for.
        name: String,
        /// The ids of the flows that have it.
        ids: Vec<RunId>,
    },
    /// A ref below `refs/aynig/flows/` holds what can't be read as a flow.
    #[error("flow '{name}' cannot be read: {why}")]
    Unreadable {
        /// The ref's last part.
        name: String,
        why: String,
    },
    /// The flow is of another version of the contract than this program speaks.
    #[error("flow '{name}' is not changed: {why}")]
    OtherVersion {
        /// What the flow calls itself, or the ref's last part.
        name: String,
        /// Which version the flow says, and which one this program speaks.
        why: String,
    },
    /// The change is against a rule, which the error names.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No flow has the branch as its node.
    #[error("'{0}' is no node of a flow")]
    NoNode(RefName),
    /// The node has no turn under way that could be interrupted.
    #[error("'{0}' has no turn under way")]
    NotRunning(RefName),
    /// A branch is checked out, so it can't be deleted.
    #[error("'{branch}' is checked out in '{}'", place.display())]
    CheckedOut {
        branch: RefName,
        /// The worktree in which it is checked out.
        place: std::path::PathBuf,
    },
    /// No template can have this name.
    #[error("'{0}' is no name of a template: letters, digits, '_' and '-'")]
    NoTemplateName(String),
    /// There is no such template.
    #[error("there is no template '{0}'")]
    NoTemplate(String),
    /// The template is not one of the repository's own, so it can't be removed.
    #[error("template '{0}' is not the repository's own")]
    NotOwnTemplate(String),
    /// Other processes changed the flow each time that this one tried to.
    #[error("cannot change flow '{0}': others were quicker, again and again")]
    Raced(String),
    /// An error of messages and questions, of the runner, or of the store.
    #[error(transparent)]
    Talk(#[from] TalkError),
}

impl FlowError {
    fn bad(name: &RefName, why: impl ToString) -> Self {
        let name = name.as_bytes().strip_prefix(crate::protocol::flow::FLOWS).unwrap_or(name.as_bytes());
        FlowError::Unreadable { name: crate::protocol::text::escape(name), why: why.to_string() }
    }

    fn tree(name: &RefName, why: NoFiles) -> Self {
        match why {
            NoFiles::Store(error) => error.into(),
            NoFiles::NotPlain(_) | NoFiles::TooLarge(..) | NoFiles::TooMany => Self::bad(name, why),
        }
    }

    fn flow(name: &RefName, why: BadFlow) -> Self {
        match Self::bad(name, &why) {
            FlowError::Unreadable { name, why: words } => match why {
                BadFlow::Version { name: own, .. } => {
                    FlowError::OtherVersion { name: if own.is_empty() { name } else { own }, why: words }
                }
                BadFlow::NoRun
                | BadFlow::BadFile { .. }
                | BadFlow::EdgeToNowhere { .. }
                | BadFlow::TooMany => FlowError::Unreadable { name, why: words },
            },
            other => other,
        }
    }
}

impl From<RunnerError> for FlowError {
    fn from(error: RunnerError) -> Self {
        FlowError::Talk(error.into())
    }
}

impl From<StoreError> for FlowError {
    fn from(error: StoreError) -> Self {
        FlowError::Talk(error.into())
    }
}

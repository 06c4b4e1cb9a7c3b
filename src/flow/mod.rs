//! Flows in Git: their refs, their nodes' branches, turns, and what follows from them.
//!
//! A flow is a commit under `refs/aynig/flows/<id>`; what may be done to it is the room `contract`'s, as pure functions.
//! [`Flows`] reads and changes it by compare-and-swap ([`store`]); a node is a branch ([`nodes`]). Nothing is kept
//! anywhere else, so a flow survives what Git survives. Implements N1 and N3 over the rooms below.

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

/// Why nothing was done about a flow.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// No flow has this name or id.
    #[error("there is no flow '{0}'")]
    NoFlow(String),
    /// Several flows have this name.
    #[error("'{name}' are several flows: {}", ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several {
        /// The name.
        name: String,
        /// They.
        ids: Vec<RunId>,
    },
    /// What is in a flow's place can't be read.
    #[error("flow '{name}' cannot be read: {why}")]
    Unreadable {
        /// The ref's last part.
        name: String,
        /// Why.
        why: String,
    },
    /// It is of another version of the contract than this program speaks.
    #[error("flow '{name}' is not changed: {why}")]
    OtherVersion {
        /// What it calls itself, or the ref's last part.
        name: String,
        /// Which it says, and which is spoken.
        why: String,
    },
    /// The change is refused by its name.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A branch is no flow's node.
    #[error("'{0}' is no node of a flow")]
    NoNode(RefName),
    /// There is nothing to interrupt.
    #[error("'{0}' has no turn under way")]
    NotRunning(RefName),
    /// Branches are checked out, so that they can't be taken away.
    #[error("'{branch}' is checked out in '{}'", place.display())]
    CheckedOut {
        /// The branch.
        branch: RefName,
        /// Where.
        place: std::path::PathBuf,
    },
    /// A template's name is none.
    #[error("'{0}' is no name of a template: letters, digits, '_' and '-'")]
    NoTemplateName(String),
    /// There is no such template.
    #[error("there is no template '{0}'")]
    NoTemplate(String),
    /// It is this program's own.
    #[error("template '{0}' is not the repository's own")]
    NotOwnTemplate(String),
    /// The flow is changed by others all the time.
    #[error("cannot change flow '{0}': others were quicker, again and again")]
    Raced(String),
    /// The commits of messages and questions, and what is beneath.
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

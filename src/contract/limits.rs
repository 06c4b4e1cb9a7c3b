//! What a turn may change. Its outcome is judged by the paths that changed, whichever tool changed them.
//!
//! So the limits hold for a program's own tools as well as for the flow's. Implements N10.

use super::node::Capabilities;
use super::words::GlobalMode;

/// Why a changed path is left out of a turn's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// The node only delegates.
    DelegateOnly,
    /// The flow is planning, and the path is not below `docs/`.
    Planning,
    /// The node may not change code.
    Code,
    /// The node may not change documents.
    Docs,
}

impl Beyond {
    /// The reason, for the agent and for people.
    pub fn why(self) -> &'static str {
        match self {
            Self::DelegateOnly => "this node only delegates: it changes no files",
            Self::Planning => "the flow is planning: only what is below docs/ may change",
            Self::Code => "this node may not change code: only what is below docs/",
            Self::Docs => "this node may not change what is below docs/",
        }
    }
}

/// Judges one changed path, relative to the top of the tree; `None` if the turn may change it. `docs` itself
/// is not below `docs/`: a file or a link of that name would replace the folder.
pub fn beyond(path: &[u8], mode: GlobalMode, may: &Capabilities) -> Option<Beyond> {
    let docs = path.starts_with(b"docs/") && path.len() > b"docs/".len();
    let planning = match mode {
        GlobalMode::Planning => true,
        GlobalMode::Implementation => false,
    };
    if may.delegate_only {
        Some(Beyond::DelegateOnly)
    } else if planning && !docs {
        Some(Beyond::Planning)
    } else if docs {
        (!may.write_docs).then_some(Beyond::Docs)
    } else {
        (!may.write_code).then_some(Beyond::Code)
    }
}

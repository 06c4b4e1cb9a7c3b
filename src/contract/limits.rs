//! What a turn may have changed: judged by the paths that it did change, whichever tool changed them.
//!
//! So it holds for a program's own tools as for ours. Implements N10.

use super::node::Capabilities;
use super::words::GlobalMode;

/// Why a change is not part of a turn's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// The node only delegates.
    DelegateOnly,
    /// The flow is planning, and this is not below `docs/`.
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

/// Judges one changed path, relative to the tree's top. `docs` itself is not below `docs/`: as a file or a link it would stand
/// for the folder.
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

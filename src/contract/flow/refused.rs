//! The reasons for which a change to a flow is refused. Each names what is at fault; the flow is unchanged.

use crate::contract::id::{EdgeId, NodeId};

/// Why a change is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says itself what it holds")]
pub enum Refused {
    #[error("there is no node '{0}'")]
    UnknownNode(String),
    #[error("'{name}' are several nodes: {}", list(.nodes))]
    AmbiguousNode { name: String, nodes: Vec<NodeId> },
    #[error("there is no edge {0}")]
    UnknownEdge(EdgeId),
    #[error("alias '{alias}' is node {node}'s")]
    AliasTaken { alias: String, node: NodeId },
    #[error("there is a node {0} already, and it is another")]
    NodeExists(NodeId),
    #[error("edge {edge} would lead to node {node}, which is not there")]
    EdgeToNowhere { edge: EdgeId, node: NodeId },
    #[error("a flow called '{0}' is there already")]
    NameTaken(String),
    #[error("{what} is empty")]
    Empty { what: &'static str },
    #[error("{what} has {bytes} bytes, more than {most}")]
    TooLong { what: &'static str, bytes: usize, most: usize },
    #[error("branch '{0}' is taken")]
    BranchTaken(String),
    #[error("'{0}' is no folder of a worktree: a path from its top, and not in .git")]
    NoFolder(String),
    #[error("there are {0} nodes already, as many as a flow may have")]
    TooManyNodes(usize),
}

fn list(ids: &[NodeId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

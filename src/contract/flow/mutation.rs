//! The changes that can be made to a flow, and the creation of a new flow.

use super::change::Done;
use super::files::{Flow, OpenPromise, RunFile};
use super::name::slug;
use super::refused::Refused;
use crate::contract::edge::EdgeSpec;
use crate::contract::id::{EdgeId, NodeId, PayloadId, RunId};
use crate::contract::node::{NodeChange, NodeSpec};
use crate::contract::run::ContractVersion;
use crate::contract::shown;
use crate::contract::time::Time;
use crate::contract::words::{GlobalMode, Mode, RunStatus};
use crate::protocol::declaration::is_inside;
use indexmap::IndexMap;
use serde_json::Map;
use std::collections::BTreeMap;

/// A change of a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Mutation {
    /// Sets the flow's status, modes or summary; what is `None` stays.
    SetRun {
        /// The status.
        status: Option<RunStatus>,
        /// The mode.
        mode: Option<Mode>,
        /// The global mode.
        global_mode: Option<GlobalMode>,
        /// How the flow ended, in a few words.
        summary: Option<String>,
    },
    /// Adds a node. A spawn that is done again changes nothing: the same node added twice is one node.
    AddNode {
        /// The node's id, if `spec` names none.
        id: NodeId,
        /// The node.
        spec: NodeSpec,
        /// The node's branch; see [`super::branch_of`].
        branch: String,
    },
    /// Changes a node's configuration.
    SetNode {
        /// The node.
        id: NodeId,
        /// What changes.
        change: NodeChange,
    },
    /// Removes a node, with its edges and the promises that it owes or waits for.
    RemoveNode(NodeId),
    /// Sets or clears a node's stop flag, which holds its branch.
    HoldNode {
        /// The node.
        id: NodeId,
        /// Whether the flag is set.
        stopped: bool,
    },
    /// Makes a node's next turn begin a new session.
    ResetNode(NodeId),
    /// Records that a person resumed a node after a stall: only the turns after this one are judged from then
    /// on.
    ResumeNode {
        /// The node.
        id: NodeId,
        /// The run id of the node's last turn.
        after: String,
    },
    /// Puts an edge; an existing edge of the same id is replaced.
    PutEdge {
        /// The edge's id, if `spec` names none.
        id: EdgeId,
        /// The edge.
        spec: EdgeSpec,
    },
    /// Removes an edge.
    RemoveEdge(EdgeId),
    /// Records that a handoff asks for an answer. The same handoff recorded twice is one promise.
    Promise {
        /// The id of the handoff.
        id: PayloadId,
        /// Who owes the answer, who waits for it, and what it is about.
        promise: OpenPromise,
    },
    /// Ends the promises that one node owes another, as an answer was sent. Without such promises nothing
    /// changes.
    Keep {
        /// The node that owed the answer.
        from: NodeId,
        /// The node that waited for it.
        to: NodeId,
    },
    /// Ends one promise without an answer: its handoff was never sent, or its sender was told that no answer
    /// comes.
    Release(PayloadId),
}

/// What a new flow is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// The flow's id.
    pub id: RunId,
    /// The flow's name; `flow-<the first 8 digits of its id>` if `None`.
    pub name: Option<String>,
    /// Its mode.
    pub mode: Mode,
    /// Its global mode.
    pub global_mode: GlobalMode,
    /// The commit at which its nodes' branches begin.
    pub base: String,
    /// The folder of a worktree in which turns start; the worktree's top if `None`.
    pub folder: Option<String>,
}

/// Most bytes of a name, a label or an alias.
pub(super) const NAME_MAX: usize = 200;

/// Returns a name, trimmed. An empty or too long name is refused, and the refusal calls it `what`.
pub(super) fn named(what: &'static str, text: &str) -> Result<String, Refused> {
    let text = text.trim();
    match text.len() {
        0 => Err(Refused::Empty { what }),
        bytes if bytes > NAME_MAX => Err(Refused::TooLong { what, bytes, most: NAME_MAX }),
        _ => Ok(text.to_owned()),
    }
}

/// Creates a flow. `others` holds the names and slugs of the existing flows.
pub fn create(new: &NewRun, others: &[(String, String)], at: Time) -> Result<Done, Refused> {
    let name = match &new.name {
        Some(name) => named("the flow's name", name)?,
        None => format!("flow-{}", new.id.short()),
    };
    if others.iter().any(|(other, _)| other.to_lowercase() == name.to_lowercase()) {
        return Err(Refused::NameTaken(shown::line(name.as_bytes())));
    }
    let mut folder = slug(&name, "flow");
    if others.iter().any(|(_, other)| *other == folder) {
        folder = format!("{folder}-{}", new.id.short());
    }
    let start =
        new.folder.as_deref().map(|folder| folder.trim_end_matches('/')).filter(|folder| !folder.is_empty());
    if let Some(start) = start.filter(|start| !is_inside(start)) {
        return Err(Refused::NoFolder(shown::line(start.as_bytes())));
    }
    let run = RunFile {
        contract_version: ContractVersion,
        id: new.id,
        name: name.clone(),
        slug: folder,
        status: RunStatus::Running,
        mode: new.mode,
        global_mode: new.global_mode,
        base: new.base.clone(),
        folder: start.map(str::to_owned),
        created_at: at,
        summary: None,
        promises: IndexMap::new(),
        later: Map::new(),
    };
    let flow = Flow { run, nodes: IndexMap::new(), edges: IndexMap::new(), others: BTreeMap::new() };
    Ok(Done { flow, line: format!("new flow '{}'", shown::line(name.as_bytes())), changed: true })
}

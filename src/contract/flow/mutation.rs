//! What may be done to a flow, and the flow that is new.

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
    /// Its status, modes or name.
    SetRun {
        /// The status.
        status: Option<RunStatus>,
        /// The mode.
        mode: Option<Mode>,
        /// The global mode.
        global_mode: Option<GlobalMode>,
        /// How it ended, in a few words.
        summary: Option<String>,
    },
    /// A new node. The same one twice is one: a spawn that is done again changes nothing.
    AddNode {
        /// The id that it has if the request names none.
        id: NodeId,
        /// The node.
        spec: NodeSpec,
        /// The branch that it has; see [`super::branch_of`].
        branch: String,
    },
    /// A node's configuration.
    SetNode {
        /// The node.
        id: NodeId,
        /// What changes.
        change: NodeChange,
    },
    /// A node goes, with its edges and the promises that it is a side of.
    RemoveNode(NodeId),
    /// A node's stop flag.
    HoldNode {
        /// The node.
        id: NodeId,
        /// Whether it is set.
        stopped: bool,
    },
    /// A node's next turn begins a new session.
    ResetNode(NodeId),
    /// A node's stall was seen: judging counts from after this turn.
    ResumeNode {
        /// The node.
        id: NodeId,
        /// The run id of its last turn.
        after: String,
    },
    /// An edge; one of that id is replaced.
    PutEdge {
        /// The id that it has if the request names none.
        id: EdgeId,
        /// The edge.
        spec: EdgeSpec,
    },
    /// An edge goes.
    RemoveEdge(EdgeId),
    /// A handoff asks for an answer. The same twice is one.
    Promise {
        /// The handoff.
        id: PayloadId,
        /// Who owes whom what.
        promise: OpenPromise,
    },
    /// An answer went from one node to another: the promises between them are kept. Where there are none, nothing changes.
    Keep {
        /// Who owed.
        from: NodeId,
        /// Who waited.
        to: NodeId,
    },
    /// One promise is over without an answer: its handoff never went, or its sender was told that none comes.
    Release(PayloadId),
}

/// A flow that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// What it is called; `flow-<8 of its id>` where nothing is said.
    pub name: Option<String>,
    /// Its mode.
    pub mode: Mode,
    /// Its global mode.
    pub global_mode: GlobalMode,
    /// The commit that its nodes' branches begin at.
    pub base: String,
    /// The folder of their worktrees that turns start in; the top where nothing is said.
    pub folder: Option<String>,
}

/// Most bytes of a name, a label or an alias.
pub(super) const NAME_MAX: usize = 200;

/// A name, trimmed; empty and overlong ones are refused.
pub(super) fn named(what: &'static str, text: &str) -> Result<String, Refused> {
    let text = text.trim();
    match text.len() {
        0 => Err(Refused::Empty { what }),
        bytes if bytes > NAME_MAX => Err(Refused::TooLong { what, bytes, most: NAME_MAX }),
        _ => Ok(text.to_owned()),
    }
}

/// A new flow. `others` are the names and slugs of those that there are.
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

//! The files of a flow's tree.

use super::refused::Refused;
use crate::contract::edge::Edge;
use crate::contract::id::{EdgeId, NodeId, PayloadId, RunId};
use crate::contract::node::NodeConfig;
use crate::contract::run::{CONTRACT_VERSION, ContractVersion};
use crate::contract::shown;
use crate::contract::time::Time;
use crate::contract::words::{GlobalMode, Mode, RunStatus};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Most bytes of one file of a flow.
pub const FILE_MAX: usize = 4 << 20;
/// Most files of a flow.
pub const FILES_MAX: usize = 20_000;

/// The content of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFile {
    /// The version of the contract.
    pub contract_version: ContractVersion,
    /// The run's id.
    pub id: RunId,
    /// The flow's name, for people.
    pub name: String,
    /// The flow's part of its nodes' branch names, below `flow/`; fixed at creation.
    pub slug: String,
    /// What the flow is doing.
    pub status: RunStatus,
    /// Whether its orchestrator goes on by itself.
    pub mode: Mode,
    /// What its turns may change.
    pub global_mode: GlobalMode,
    /// The commit at which its nodes' branches begin.
    pub base: String,
    /// The folder of a worktree in which turns start; the worktree's top if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// When the flow was made.
    pub created_at: Time,
    /// How the flow ended, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Answers for which a node still waits, by the id of the handoff that asks for each.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub promises: IndexMap<PayloadId, OpenPromise>,
    /// Keys that a later version wrote; they are kept.
    #[serde(flatten)]
    pub later: Map<String, Value>,
}

/// An answer for which a node still waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenPromise {
    /// The node that waits for the answer.
    pub to: NodeId,
    /// The node that owes the answer.
    pub from: NodeId,
    /// What the answer is about.
    pub about: String,
    /// When the answer was asked for.
    pub since: Time,
}

/// The content of `nodes/<id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFile {
    /// The node's configuration.
    pub config: NodeConfig,
    /// The node's branch, without `refs/heads/`; fixed at creation.
    pub branch: String,
    /// When the node was made; nodes are listed in this order.
    pub created_at: Time,
    /// Whether the node's stop flag is set, which holds its branch.
    #[serde(default)]
    pub stopped: bool,
    /// How often the node was reset. A turn resumes the session of an earlier turn only if that turn began
    /// with the same number.
    #[serde(default)]
    pub resets: u64,
    /// The run id of the node's last turn when a person resumed it after a stall: only later turns are
    /// judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_after: Option<String>,
    /// Keys that a later version wrote; they are kept.
    #[serde(flatten)]
    pub later: Map<String, Value>,
}

/// The content of `edges/<id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeFile {
    /// The edge.
    #[serde(flatten)]
    pub edge: Edge,
    /// When the edge was made; edges are listed in this order.
    pub created_at: Time,
    /// Keys that a later version wrote; they are kept.
    #[serde(flatten)]
    pub later: Map<String, Value>,
}

/// A flow, as its files describe it.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// `run.json`.
    pub run: RunFile,
    /// Its nodes, in the order in which they were made.
    pub nodes: IndexMap<NodeId, NodeFile>,
    /// Its edges, in the order in which they were made.
    pub edges: IndexMap<EdgeId, EdgeFile>,
    /// Files that a later version wrote, by path; they are kept.
    pub others: BTreeMap<String, Vec<u8>>,
}

/// Why a tree is no flow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFlow {
    /// There is no `run.json`.
    #[error("there is no 'run.json' in it")]
    NoRun,
    /// The flow is of another version of the contract.
    #[error("contractVersion '{given}' is not known: this program speaks '{CONTRACT_VERSION}'")]
    Version {
        /// The version that the flow names.
        given: String,
        /// The flow's name; empty if it has none.
        name: String,
    },
    /// A file does not have the content that its path calls for.
    #[error("'{path}' of it can't be read: {why}")]
    BadFile {
        /// The file's path.
        path: String,
        /// Why it can't be read.
        why: String,
    },
    /// An edge leads to or from a node that does not exist.
    #[error("edge {edge} of it leads to node {node}, which is not there")]
    EdgeToNowhere {
        /// The edge.
        edge: EdgeId,
        /// The missing node.
        node: NodeId,
    },
    /// The tree has more than [`FILES_MAX`] files.
    #[error("it has more than {FILES_MAX} files")]
    TooMany,
}

fn bad(path: &str, why: impl ToString) -> BadFlow {
    BadFlow::BadFile { path: shown::line(path.as_bytes()), why: shown::line(why.to_string().as_bytes()) }
}

fn read<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, BadFlow> {
    if bytes.len() > FILE_MAX {
        return Err(bad(path, format!("it has {} bytes", bytes.len())));
    }
    serde_json::from_slice(bytes).map_err(|error| bad(path, error))
}

/// Returns an error if a `run.json` names another version of the contract, whatever else it holds: then that
/// is why the file could not be read. `None` if the version is this one, or can't be read either.
fn other_version(bytes: &[u8]) -> Option<BadFlow> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Says {
        contract_version: String,
        #[serde(default)]
        name: String,
    }
    let says = (bytes.len() <= FILE_MAX).then(|| serde_json::from_slice::<Says>(bytes).ok()).flatten()?;
    let line = |text: &str| shown::line(text.as_bytes());
    (says.contract_version != CONTRACT_VERSION)
        .then(|| BadFlow::Version { given: line(&says.contract_version), name: line(&says.name) })
}

/// Returns the `<id>` of a path `<folder>/<id>.json`, not checked yet; `None` for any other path.
fn id_in<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".json").filter(|name| !name.contains('/'))
}

impl Flow {
    /// Reads the flow from the files of a tree, in whatever order they come.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Self, BadFlow> {
        let (mut run, mut others) = (None, BTreeMap::new());
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        for (n, (path, bytes)) in files.into_iter().enumerate() {
            if n >= FILES_MAX {
                return Err(BadFlow::TooMany);
            }
            if path == "run.json" {
                let of_this = read::<RunFile>(path, bytes);
                run = Some(of_this.map_err(|error| other_version(bytes).unwrap_or(error))?);
            } else if let Some(name) = id_in(path, "nodes") {
                let id = NodeId::parse(name).map_err(|error| bad(path, error))?;
                let mut node: NodeFile = read(path, bytes)?;
                // The id in the file's name counts, so that no file can speak for another node.
                node.config.id = Some(id);
                nodes.push((id, node));
            } else if let Some(name) = id_in(path, "edges") {
                let id = EdgeId::parse(name).map_err(|error| bad(path, error))?;
                let mut edge: EdgeFile = read(path, bytes)?;
                edge.edge.id = id;
                edges.push((id, edge));
            } else {
                others.insert(path.to_owned(), bytes.to_vec());
            }
        }
        nodes.sort_by_key(|(id, node): &(NodeId, NodeFile)| (node.created_at, *id));
        edges.sort_by_key(|(id, edge): &(EdgeId, EdgeFile)| (edge.created_at, *id));
        let run = run.ok_or(BadFlow::NoRun)?;
        let (nodes, edges) = (nodes.into_iter().collect(), edges.into_iter().collect());
        let flow = Self { run, nodes, edges, others };
        match flow.loose_end() {
            Some((edge, node)) => Err(BadFlow::EdgeToNowhere { edge, node }),
            None => Ok(flow),
        }
    }

    /// Returns the files of the flow's tree, by their paths.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.others.clone();
        files.insert("run.json".to_owned(), text(&self.run));
        files.extend(self.nodes.iter().map(|(id, node)| (format!("nodes/{id}.json"), text(node))));
        files.extend(self.edges.iter().map(|(id, edge)| (format!("edges/{id}.json"), text(edge))));
        files
    }

    fn loose_end(&self) -> Option<(EdgeId, NodeId)> {
        let ends = self.edges.iter().flat_map(|(id, edge)| [(*id, edge.edge.from), (*id, edge.edge.to)]);
        ends.into_iter().find(|(_, node)| !self.nodes.contains_key(node))
    }

    /// Returns the node that a person or an agent names by its id, its alias or its label, the last two in
    /// any case. An alias goes before a label. A name that no node or several nodes have is refused.
    pub fn named(&self, name: &str) -> Result<NodeId, Refused> {
        if let Ok(id) = NodeId::parse(name.trim())
            && self.nodes.contains_key(&id)
        {
            return Ok(id);
        }
        let wanted = name.trim().to_lowercase();
        let says = |text: Option<&str>| text.is_some_and(|text| text.trim().to_lowercase() == wanted);
        let with = |found: fn(&NodeFile) -> Option<&str>| {
            self.nodes
                .iter()
                .filter(move |(_, node)| says(found(node)))
                .map(|(id, _)| *id)
                .collect::<Vec<_>>()
        };
        let by_alias = with(|node| node.config.alias.as_deref());
        let found = if by_alias.is_empty() { with(|node| Some(&node.config.label)) } else { by_alias };
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(Refused::UnknownNode(shown::line(name.as_bytes()))),
            several => {
                Err(Refused::AmbiguousNode { name: shown::line(name.as_bytes()), nodes: several.to_vec() })
            }
        }
    }

    /// True if an edge lets one node hand work to another. The edge's direction counts, its type does not.
    pub fn leads(&self, from: NodeId, to: NodeId) -> bool {
        self.edges.values().any(|edge| edge.edge.carries(from, to))
    }

    /// True if a node's branch is held, by the node's own stop flag or by the run's status.
    pub fn holds(&self, node: NodeId) -> bool {
        self.run.status.holds() || self.nodes.get(&node).is_some_and(|node| node.stopped)
    }
}

/// Returns a file's text, indented, so that a diff of two versions shows what changed.
fn text<T: Serialize>(value: &T) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

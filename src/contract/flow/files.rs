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

/// Most bytes of a file that is read as one of a flow's.
pub const FILE_MAX: usize = 4 << 20;
/// Most files of a flow.
pub const FILES_MAX: usize = 20_000;

/// `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFile {
    /// The version of the contract.
    pub contract_version: ContractVersion,
    /// The run's id.
    pub id: RunId,
    /// What it is called.
    pub name: String,
    /// The folder of its nodes' branches, below `flow/`; fixed at creation.
    pub slug: String,
    /// What it is doing.
    pub status: RunStatus,
    /// Whether its orchestrator goes on by itself.
    pub mode: Mode,
    /// What its turns may change.
    pub global_mode: GlobalMode,
    /// The commit that its nodes' branches begin at.
    pub base: String,
    /// The folder of their worktrees that turns start in; the top where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// When it was made.
    pub created_at: Time,
    /// How it ended, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Answers that a node still waits for, by the handoff that asks for them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub promises: IndexMap<PayloadId, OpenPromise>,
    /// What a later version wrote.
    #[serde(flatten)]
    pub later: Map<String, Value>,
}

/// An answer that a node still waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenPromise {
    /// Who waits.
    pub to: NodeId,
    /// Who owes it.
    pub from: NodeId,
    /// For what.
    pub about: String,
    /// Since when.
    pub since: Time,
}

/// `nodes/<id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFile {
    /// Its configuration.
    pub config: NodeConfig,
    /// Its branch, without `refs/heads/`; fixed at creation.
    pub branch: String,
    /// When it was made.
    pub created_at: Time,
    /// Whether its stop flag is set: its branch is held.
    #[serde(default)]
    pub stopped: bool,
    /// How often it was reset. A turn goes on with the session of one that had the same number.
    #[serde(default)]
    pub resets: u64,
    /// The run id of the turn up to which its stall was seen and resumed: judging counts from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_after: Option<String>,
    /// What a later version wrote.
    #[serde(flatten)]
    pub later: Map<String, Value>,
}

/// `edges/<id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeFile {
    /// The edge.
    #[serde(flatten)]
    pub edge: Edge,
    /// When it was made.
    pub created_at: Time,
    /// What a later version wrote.
    #[serde(flatten)]
    pub later: Map<String, Value>,
}

/// A flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// `run.json`.
    pub run: RunFile,
    /// Its nodes, in the order in which they were made.
    pub nodes: IndexMap<NodeId, NodeFile>,
    /// Its edges, likewise.
    pub edges: IndexMap<EdgeId, EdgeFile>,
    /// Files that a later version wrote.
    pub others: BTreeMap<String, Vec<u8>>,
}

/// Why a tree is no flow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFlow {
    /// There is no `run.json`.
    #[error("there is no 'run.json' in it")]
    NoRun,
    /// It is of another version of the contract.
    #[error("contractVersion '{given}' is not known: this program speaks '{CONTRACT_VERSION}'")]
    Version {
        /// What it says.
        given: String,
        /// What it calls itself.
        name: String,
    },
    /// A file can't be read as what it should be.
    #[error("'{path}' of it can't be read: {why}")]
    BadFile {
        /// Its path.
        path: String,
        /// Why.
        why: String,
    },
    /// An edge has an end that is not there.
    #[error("edge {edge} of it leads to node {node}, which is not there")]
    EdgeToNowhere {
        /// The edge.
        edge: EdgeId,
        /// The node.
        node: NodeId,
    },
    /// More files than are read.
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

/// The version of the contract that a `run.json` is of, where that is another one, whatever else it holds.
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

/// The id that a file's name spells, where the file is one of a folder's.
fn id_in<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".json").filter(|name| !name.contains('/'))
}

impl Flow {
    /// The flow that a tree's files are, whatever their order.
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
                // The name counts, so that no file can speak for another node.
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

    /// The tree's files, by their paths.
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

    /// The node that a person or an agent means: by its id, its alias, or its label, the last two in any case.
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

    /// Whether work may be handed from one node to another. Direction counts, type does not.
    pub fn leads(&self, from: NodeId, to: NodeId) -> bool {
        self.edges.values().any(|edge| edge.edge.carries(from, to))
    }

    /// Whether a node's branch is held: by its own stop flag, or by the run.
    pub fn holds(&self, node: NodeId) -> bool {
        self.run.status.holds() || self.nodes.get(&node).is_some_and(|node| node.stopped)
    }
}

/// A file's text: indented, so that a diff of two versions shows what was changed.
fn text<T: Serialize>(value: &T) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

//! Runs on the wire, with all that they hold, and how an event changes a run.
//!
//! `Run::apply` is the one place where an event becomes state: a reader that has all of a run's events has
//! its state.

use super::edge::Edge;
use super::event::{Body, Event};
use super::id::{ArtifactId, EdgeId, NodeId, RunId};
use super::node::{Node, NodeConfig, NodePatch, Usage, put, put_some};
use super::time::Time;
use super::words::{ArtifactKind, GlobalMode, Mode, RunStatus};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The version of the contract that this program speaks. Another version is an error when it is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContractVersion;

/// The version of the contract, as text.
pub const CONTRACT_VERSION: &str = crate::protocol::flow::VERSION;

impl Serialize for ContractVersion {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(CONTRACT_VERSION)
    }
}

impl<'de> Deserialize<'de> for ContractVersion {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = String::deserialize(from)?;
        if given == CONTRACT_VERSION {
            return Ok(Self);
        }
        let given = crate::protocol::text::escape(given.as_bytes());
        Err(serde::de::Error::custom(format!(
            "contractVersion '{given}' is not known: this program speaks '{CONTRACT_VERSION}'"
        )))
    }
}

/// The places of the nodes on the page, as a person arranged them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layout {
    /// The place of each node.
    pub positions: IndexMap<NodeId, Position>,
    /// The part of the page that is shown.
    pub viewport: Viewport,
    /// When the layout was stored.
    pub updated_at: Time,
}

impl Layout {
    /// Returns the layout as it is stored: with the time `at`, and without the nodes that the run does not
    /// have, as a page that shows another run may send such nodes. A place that is not finite is left out
    /// too, since JSON has no word for it.
    pub fn kept(mut self, nodes: impl Fn(&NodeId) -> bool, at: Time) -> Self {
        self.positions.retain(|id, place| nodes(id) && place.x.is_finite() && place.y.is_finite());
        self.updated_at = at;
        self
    }
}

/// A place on the page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "a point")]
pub struct Position {
    pub x: f64,
    pub y: f64,
}

/// The part of the page that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "a point and a scale")]
pub struct Viewport {
    pub x: f64,
    pub y: f64,
    pub zoom: f64,
}

/// A file that a turn left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Its id.
    pub id: ArtifactId,
    /// Its run.
    pub run_id: RunId,
    /// The node whose turn left it.
    pub node_id: NodeId,
    /// What it is.
    pub kind: ArtifactKind,
    /// The file's name.
    pub name: String,
    /// The absolute path of the file.
    pub path: String,
    /// When it was made.
    pub created_at: Time,
    /// What else is known of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ArtifactMetadata>,
}

/// What else is known of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ArtifactMetadata {
    /// The files that a diff changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<Vec<String>>,
    /// The file in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// A run's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The id of the run.
    pub id: RunId,
    /// The version of the contract.
    pub contract_version: ContractVersion,
    /// What the run is doing.
    pub status: RunStatus,
    /// Whether its orchestrator goes on by itself.
    pub mode: Mode,
    /// What its turns may change.
    pub global_mode: GlobalMode,
    /// The folder in which it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// When it was made.
    pub created_at: Time,
    /// When anything in it last changed.
    pub updated_at: Time,
    /// The tokens that all its nodes used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Its nodes, in the order in which they were made.
    pub nodes: IndexMap<NodeId, Node>,
    /// The configurations of its nodes.
    pub node_configs: IndexMap<NodeId, NodeConfig>,
    /// Its edges.
    pub edges: IndexMap<EdgeId, Edge>,
    /// The files that its turns left.
    pub artifacts: IndexMap<ArtifactId, Artifact>,
    /// The places of its nodes on the page, replaced as a whole; `None` if there is no layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
}

/// A change to a run. A map is merged key by key, so a patch never removes anything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "each is the run's of that name")]
pub struct RunPatch {
    /// Set in a run's first patch, and in no other: a page switches to the run that a patch with an id names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_version: Option<ContractVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_mode: Option<GlobalMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<IndexMap<NodeId, NodePatch>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_configs: Option<IndexMap<NodeId, NodeConfig>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<IndexMap<EdgeId, Edge>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<IndexMap<ArtifactId, Artifact>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
}

impl RunPatch {
    /// Returns the run that the patch makes; `None` if a field is missing that every run has.
    pub fn made(&self) -> Option<Run> {
        let mut run = Run {
            id: self.id?,
            contract_version: self.contract_version?,
            status: self.status?,
            mode: self.mode?,
            global_mode: self.global_mode?,
            cwd: None,
            created_at: self.created_at?,
            updated_at: self.updated_at?,
            usage: None,
            nodes: IndexMap::new(),
            node_configs: IndexMap::new(),
            edges: IndexMap::new(),
            artifacts: IndexMap::new(),
            layout: None,
        };
        run.lay(self.clone());
        Some(run)
    }
}

impl Run {
    fn lay(&mut self, patch: RunPatch) {
        put(&mut self.status, patch.status);
        put(&mut self.mode, patch.mode);
        put(&mut self.global_mode, patch.global_mode);
        put_some(&mut self.cwd, patch.cwd);
        put(&mut self.updated_at, patch.updated_at);
        put_some(&mut self.usage, patch.usage);
        put_some(&mut self.layout, patch.layout);
        for (id, patch) in patch.nodes.into_iter().flatten() {
            self.lay_node(id, patch);
        }
        self.node_configs.extend(patch.node_configs.into_iter().flatten());
        self.edges.extend(patch.edges.into_iter().flatten());
        self.artifacts.extend(patch.artifacts.into_iter().flatten());
    }

    fn lay_node(&mut self, id: NodeId, patch: NodePatch) {
        match self.nodes.get_mut(&id) {
            Some(node) => patch.lay_over(node),
            // A patch of a node that was removed, or is not there yet, makes no node unless it has all of
            // one.
            None => {
                if let Some(node) = patch.made() {
                    self.nodes.insert(id, node);
                }
            }
        }
    }

    /// Changes the state as an event says. An event of another run changes nothing.
    pub fn apply(&mut self, event: &Event) {
        if event.run_id != self.id {
            return;
        }
        match &event.body {
            Body::RunPatch { patch } => self.lay((**patch).clone()),
            Body::RunMode { mode, global_mode } => {
                put(&mut self.mode, *mode);
                put(&mut self.global_mode, *global_mode);
            }
            Body::RunStalled { .. } => self.status = RunStatus::Paused,
            Body::NodePatch { node_id, patch } => self.lay_node(*node_id, (**patch).clone()),
            Body::NodeProgress { node_id, status, summary } => {
                let (status, summary) = (Some(*status), Some(summary.clone()));
                let last_activity_at = Some(event.ts);
                self.lay_node(*node_id, NodePatch { status, summary, last_activity_at, ..NodePatch::default() });
            }
            Body::NodeHeartbeat { node_id } => {
                if let Some(connection) = self.nodes.get_mut(node_id).and_then(|node| node.connection.as_mut()) {
                    connection.last_heartbeat_at = event.ts;
                }
            }
            Body::NodeDeleted { node_id } => {
                self.nodes.shift_remove(node_id);
                self.node_configs.shift_remove(node_id);
                self.edges.retain(|_, edge| edge.from != *node_id && edge.to != *node_id);
                if let Some(layout) = &mut self.layout {
                    layout.positions.shift_remove(node_id);
                }
            }
            Body::EdgeCreated { edge } => {
                self.edges.insert(edge.id, edge.clone());
            }
            Body::EdgeDeleted { edge_id } => {
                self.edges.shift_remove(edge_id);
            }
            Body::ArtifactCreated { artifact } => {
                self.artifacts.insert(artifact.id, artifact.clone());
            }
            // These are increments; the totals follow in patches of their own.
            Body::TelemetryUsage { .. }
            // These report what was said and done: history, not state.
            | Body::NodeLog { .. }
            | Body::TurnStatus { .. }
            | Body::HandoffSent { .. }
            | Body::MessageUser { .. }
            | Body::MessageDelta { .. }
            | Body::MessageFinal { .. }
            | Body::ThinkingDelta { .. }
            | Body::ThinkingFinal { .. }
            | Body::ToolProposed { .. }
            | Body::ToolStarted { .. }
            | Body::ToolCompleted { .. }
            | Body::ApprovalRequested { .. }
            | Body::ApprovalResolved { .. } => {}
        }
        self.updated_at = self.updated_at.max(event.ts);
    }
}

//! Edges, and the handoffs that go along them.
//!
//! An edge's type and label, if not given, follow from the roles of its ends: an edge from an orchestrator
//! carries tasks, an edge to one carries reports. An edge's direction decides what it permits, its type does
//! not.

use super::id::{EdgeId, NodeId, PayloadId};
use super::node::orchestrates;
use super::time::Time;
use super::words::{EdgeType, EnvelopeKind, Expectation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A connection that lets a node hand work to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Its id.
    pub id: EdgeId,
    /// The node where it begins.
    pub from: NodeId,
    /// The node where it ends.
    pub to: NodeId,
    /// Whether it leads both ways.
    pub bidirectional: bool,
    /// What it is for.
    #[serde(rename = "type")]
    pub edge_type: EdgeType,
    /// `task`, `report`, or anything.
    pub label: String,
}

impl Edge {
    /// True if the edge lets work be handed from one node to another.
    pub fn carries(&self, from: NodeId, to: NodeId) -> bool {
        (self.from == from && self.to == to) || (self.bidirectional && self.from == to && self.to == from)
    }
}

/// An edge as a request asks for it. An edge with the id of an existing one replaces that one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeSpec {
    /// The id that the edge is to have; a new one is made if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EdgeId>,
    /// The node where it begins.
    pub from: NodeId,
    /// The node where it ends.
    pub to: NodeId,
    /// Whether it leads both ways; it does if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bidirectional: Option<bool>,
    /// What it is for; follows from the roles of its ends if `None`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub edge_type: Option<EdgeType>,
    /// `task`, `report`, or anything; follows from the type if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Returns the type of an edge between nodes of these roles, for a request that names no type.
pub fn type_between(from_role: &str, to_role: &str) -> EdgeType {
    match (orchestrates(from_role), orchestrates(to_role)) {
        (false, true) => EdgeType::Report,
        (true, _) | (false, false) => EdgeType::Handoff,
    }
}

/// Returns the label of an edge of this type, for a request that names no label.
pub fn label_of(edge_type: EdgeType) -> &'static str {
    match edge_type {
        EdgeType::Handoff => "task",
        EdgeType::Report => "report",
    }
}

/// A handoff: a payload with its sender and its receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// The kind of the envelope.
    pub kind: EnvelopeKind,
    /// Its id.
    pub id: PayloadId,
    /// The node that hands the work over.
    pub from_node_id: NodeId,
    /// The node that receives it.
    pub to_node_id: NodeId,
    /// When it was sent.
    pub created_at: Time,
    /// The work that is handed over.
    pub payload: Payload,
    /// What the handoff refers to, in the sender's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_ref: Option<String>,
}

/// The content of a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// The text for the receiver: a summary, or all that there is to say.
    pub message: String,
    /// The same content as an object, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Map<String, Value>>,
    /// Artifacts that the receiver is to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<ArtifactRef>>,
    /// How the work went, as the sender says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PayloadStatus>,
    /// Whether the sender wants an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
}

/// A reference to an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRef {
    /// The artifact's kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// The artifact's address: `artifact://diff/123`.
    #[serde(rename = "ref")]
    pub to: String,
}

/// How the work went that is handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadStatus {
    /// Whether it went well.
    pub ok: bool,
    /// The reason for `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer that a sender wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// How much the answer is wanted.
    pub expectation: Expectation,
    /// Whom the receiver is to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
}

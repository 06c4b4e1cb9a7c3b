//! Edges and what goes along them.
//!
//! What an edge does not say follows from the roles of its ends: from an orchestrator tasks are handed on, to one
//! results are reported. Direction counts for permission, type does not.

use super::id::{EdgeId, NodeId, PayloadId};
use super::node::orchestrates;
use super::time::Time;
use super::words::{EdgeType, EnvelopeKind, Expectation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Its id.
    pub id: EdgeId,
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Whether it counts both ways.
    pub bidirectional: bool,
    /// What it is for.
    #[serde(rename = "type")]
    pub edge_type: EdgeType,
    /// `task`, `report`, or anything.
    pub label: String,
}

impl Edge {
    /// Whether something may be handed from one node to another along it.
    pub fn carries(&self, from: NodeId, to: NodeId) -> bool {
        (self.from == from && self.to == to) || (self.bidirectional && self.from == to && self.to == from)
    }
}

/// An edge as a request asks for it. One with the id of an edge that there is replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeSpec {
    /// The id that it shall have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EdgeId>,
    /// Where it shall begin.
    pub from: NodeId,
    /// Where it shall end.
    pub to: NodeId,
    /// Whether it counts both ways; it does unless it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bidirectional: Option<bool>,
    /// What it is for.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub edge_type: Option<EdgeType>,
    /// `task`, `report`, or anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The type of an edge between nodes of these roles where none is said.
pub fn type_between(from_role: &str, to_role: &str) -> EdgeType {
    match (orchestrates(from_role), orchestrates(to_role)) {
        (false, true) => EdgeType::Report,
        (true, _) | (false, false) => EdgeType::Handoff,
    }
}

/// The label of an edge of this type where none is said.
pub fn label_of(edge_type: EdgeType) -> &'static str {
    match edge_type {
        EdgeType::Handoff => "task",
        EdgeType::Report => "report",
    }
}

/// A handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// What it is.
    pub kind: EnvelopeKind,
    /// Its id.
    pub id: PayloadId,
    /// Who hands over.
    pub from_node_id: NodeId,
    /// Who is handed it.
    pub to_node_id: NodeId,
    /// When.
    pub created_at: Time,
    /// What.
    pub payload: Payload,
    /// What it refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_ref: Option<String>,
}

/// What is handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// A short summary, or all of it.
    pub message: String,
    /// The same for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Map<String, Value>>,
    /// What else is to be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<ArtifactRef>>,
    /// How the work went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PayloadStatus>,
    /// What is wanted back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
}

/// A reference to an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRef {
    /// The artifact's kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is: `artifact://diff/123`.
    #[serde(rename = "ref")]
    pub to: String,
}

/// How handed over work went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadStatus {
    /// Whether it went well.
    pub ok: bool,
    /// Why it is said to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a sender wants back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// How much it is wanted.
    pub expectation: Expectation,
    /// Who is to be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
}

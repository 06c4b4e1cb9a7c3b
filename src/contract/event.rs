//! Events on the wire: one JSON object each, with the envelope that every one has.
//!
//! Keys stand in the contract's order: `id`, `runId`, `ts`, `type`, then `nodeId` where there is one. `ts` never goes
//! back within a log; where that moved it, `at` holds the true time. A line of a type that is not known is refused
//! with its type, and a reader of logs passes such a line by.

use super::edge::{Edge, Envelope};
use super::id::{ApprovalId, EdgeId, EventId, MessageId, NodeId, RunId, ToolId};
use super::node::{NodePatch, Usage};
use super::run::{Artifact, RunPatch};
use super::time::Time;
use super::words::{
    ApprovalStatus, FinalStatus, GlobalMode, LogSource, MessageRole, Mode, NodeStatus, Provider, TurnStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its id: the same whenever the same thing is reported.
    pub id: EventId,
    /// Its run.
    pub run_id: RunId,
    /// When, in the log's order.
    pub ts: Time,
    /// What, with the node that it concerns.
    #[serde(flatten)]
    pub body: Body,
    /// When in truth, where `ts` had to be later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// An agent's call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Its id, which is ours.
    pub id: ToolId,
    /// The tool's name.
    pub name: String,
    /// What it is called with.
    pub args: Map<String, Value>,
    /// The agent's own id for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Whether it went well.
    pub ok: bool,
    /// What it gave: text, or an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// The reason, for people.
    pub message: String,
}

/// A person's answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalResolution {
    /// What was said.
    pub status: ApprovalStatus,
    /// The arguments that are to be used instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_args: Option<Map<String, Value>>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An approval that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// Its id.
    pub approval_id: ApprovalId,
    /// Whose call it is about.
    pub node_id: NodeId,
    /// The call.
    pub tool: ToolCall,
    /// It in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// A chat message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Its id.
    pub id: MessageId,
    /// Its run.
    pub run_id: RunId,
    /// Whom it is to.
    pub node_id: NodeId,
    /// Whose words it is.
    pub role: MessageRole,
    /// The text.
    pub content: String,
    /// Whether it ends the turn that is under way.
    pub interrupt: bool,
    /// When it was sent.
    pub created_at: Time,
}

/// Why a run was taken for stalled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StallEvidence {
    /// The output that came again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_hash: Option<String>,
    /// The diff that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff_hash: Option<String>,
    /// The failure that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_failure: Option<String>,
    /// The last turns in a few words, oldest first.
    pub summaries: Vec<String>,
}

/// What an event reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[allow(missing_docs, reason = "the fields are the contract's")]
pub enum Body {
    /// A run changed; its first one holds all of it.
    #[serde(rename = "run.patch")]
    RunPatch { patch: Box<RunPatch> },
    /// A mode of a run changed.
    #[serde(rename = "run.mode")]
    RunMode {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        global_mode: Option<GlobalMode>,
    },
    /// A run goes in a circle, and was paused.
    #[serde(rename = "run.stalled")]
    RunStalled { evidence: StallEvidence },
    /// A node changed; its first one holds all of it.
    #[serde(rename = "node.patch")]
    NodePatch { node_id: NodeId, patch: Box<NodePatch> },
    /// A node went on.
    #[serde(rename = "node.progress")]
    NodeProgress { node_id: NodeId, status: NodeStatus, summary: String },
    /// A node is alive. On the wire alone, never in a log.
    #[serde(rename = "node.heartbeat")]
    NodeHeartbeat { node_id: NodeId },
    /// A line that is no protocol.
    #[serde(rename = "node.log")]
    NodeLog { node_id: NodeId, source: LogSource, line: String },
    /// A node is gone, with its edges.
    #[serde(rename = "node.deleted")]
    NodeDeleted { node_id: NodeId },
    /// A turn got somewhere.
    #[serde(rename = "turn.status")]
    TurnStatus {
        node_id: NodeId,
        status: TurnStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// An edge was put.
    #[serde(rename = "edge.created")]
    EdgeCreated { edge: Edge },
    /// An edge is gone.
    #[serde(rename = "edge.deleted")]
    EdgeDeleted { edge_id: EdgeId },
    /// Work was handed on.
    #[serde(rename = "handoff.sent")]
    HandoffSent { envelope: Envelope },
    /// A person or a node said something to a node.
    #[serde(rename = "message.user")]
    MessageUser { message: UserMessage },
    /// A piece of what an agent says.
    #[serde(rename = "message.assistant.delta")]
    MessageDelta { node_id: NodeId, delta: String },
    /// All of what an agent said.
    #[serde(rename = "message.assistant.final")]
    MessageFinal {
        node_id: NodeId,
        content: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<FinalStatus>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_calls: Option<Vec<ToolCall>>,
    },
    /// A piece of what an agent thinks.
    #[serde(rename = "message.assistant.thinking.delta")]
    ThinkingDelta { node_id: NodeId, delta: String },
    /// All of what an agent thought.
    #[serde(rename = "message.assistant.thinking.final")]
    ThinkingFinal { node_id: NodeId, content: String },
    /// An agent wants to call a tool.
    #[serde(rename = "tool.proposed")]
    ToolProposed { node_id: NodeId, tool: ToolCall },
    /// A call is made.
    #[serde(rename = "tool.started")]
    ToolStarted { node_id: NodeId, tool: ToolCall },
    /// A call is over.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        node_id: NodeId,
        tool_id: ToolId,
        result: ToolResult,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
    },
    /// A person is asked.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        approval_id: ApprovalId,
        node_id: NodeId,
        tool: ToolCall,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<String>,
    },
    /// A person answered, or no person is asked any more.
    #[serde(rename = "approval.resolved")]
    ApprovalResolved { approval_id: ApprovalId, resolution: ApprovalResolution },
    /// A file came of a turn.
    #[serde(rename = "artifact.created")]
    ArtifactCreated { artifact: Artifact },
    /// Tokens were used: an increment.
    #[serde(rename = "telemetry.usage")]
    TelemetryUsage { node_id: NodeId, provider: Provider, model: String, usage: Usage },
}

impl Body {
    /// The word of its type.
    pub fn word(&self) -> &'static str {
        match self {
            Self::RunPatch { .. } => "run.patch",
            Self::RunMode { .. } => "run.mode",
            Self::RunStalled { .. } => "run.stalled",
            Self::NodePatch { .. } => "node.patch",
            Self::NodeProgress { .. } => "node.progress",
            Self::NodeHeartbeat { .. } => "node.heartbeat",
            Self::NodeLog { .. } => "node.log",
            Self::NodeDeleted { .. } => "node.deleted",
            Self::TurnStatus { .. } => "turn.status",
            Self::EdgeCreated { .. } => "edge.created",
            Self::EdgeDeleted { .. } => "edge.deleted",
            Self::HandoffSent { .. } => "handoff.sent",
            Self::MessageUser { .. } => "message.user",
            Self::MessageDelta { .. } => "message.assistant.delta",
            Self::MessageFinal { .. } => "message.assistant.final",
            Self::ThinkingDelta { .. } => "message.assistant.thinking.delta",
            Self::ThinkingFinal { .. } => "message.assistant.thinking.final",
            Self::ToolProposed { .. } => "tool.proposed",
            Self::ToolStarted { .. } => "tool.started",
            Self::ToolCompleted { .. } => "tool.completed",
            Self::ApprovalRequested { .. } => "approval.requested",
            Self::ApprovalResolved { .. } => "approval.resolved",
            Self::ArtifactCreated { .. } => "artifact.created",
            Self::TelemetryUsage { .. } => "telemetry.usage",
        }
    }
}

/// Every type of event, as the contract lists them.
pub const TYPES: &[&str] = &[
    "run.patch",
    "run.mode",
    "run.stalled",
    "node.patch",
    "node.progress",
    "node.heartbeat",
    "node.log",
    "node.deleted",
    "turn.status",
    "edge.created",
    "edge.deleted",
    "handoff.sent",
    "message.user",
    "message.assistant.delta",
    "message.assistant.final",
    "message.assistant.thinking.delta",
    "message.assistant.thinking.final",
    "tool.proposed",
    "tool.started",
    "tool.completed",
    "approval.requested",
    "approval.resolved",
    "artifact.created",
    "telemetry.usage",
];

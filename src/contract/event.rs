//! Events on the wire: one JSON object each, with the same envelope.
//!
//! The keys are in the contract's order: `id`, `runId`, `ts`, `type`, then `nodeId` if the event has one.
//! `ts` never goes back within a log; where that moved it, `at` holds the true time. A line whose type is not
//! known is an error that names the type, and a reader of logs skips such a line.

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
    /// The time in the log, which never goes back.
    pub ts: Time,
    /// What it reports, with the node that it concerns.
    #[serde(flatten)]
    pub body: Body,
    /// The true time, if `ts` had to be later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// An agent's call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call's id, made by this program, not by the agent.
    pub id: ToolId,
    /// The tool's name.
    pub name: String,
    /// The arguments of the call.
    pub args: Map<String, Value>,
    /// The agent's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Whether the call succeeded.
    pub ok: bool,
    /// What the tool returned: text, or an object.
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
    /// What the person decided.
    pub status: ApprovalStatus,
    /// The arguments to use instead of the proposed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_args: Option<Map<String, Value>>,
    /// The reason that the person gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A request for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// Its id.
    pub approval_id: ApprovalId,
    /// The node whose call waits for the approval.
    pub node_id: NodeId,
    /// The call.
    pub tool: ToolCall,
    /// The request in a few words.
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
    /// The node that receives it.
    pub node_id: NodeId,
    /// The kind of author.
    pub role: MessageRole,
    /// The text.
    pub content: String,
    /// Whether it ends the turn that is under way.
    pub interrupt: bool,
    /// When it was sent.
    pub created_at: Time,
}

/// Why a run counts as stalled. Each of the first three is `None` if that signal was not repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StallEvidence {
    /// The hash of the output that was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_hash: Option<String>,
    /// The hash of the diff that was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff_hash: Option<String>,
    /// The signature of the verification failure that was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_failure: Option<String>,
    /// The last turns, each in a few words, oldest first.
    pub summaries: Vec<String>,
}

/// What an event reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[allow(missing_docs, reason = "the fields are the contract's")]
pub enum Body {
    /// A run changed; the first patch of a run has all of the run.
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
    /// A node changed; the first patch of a node has all of the node.
    #[serde(rename = "node.patch")]
    NodePatch { node_id: NodeId, patch: Box<NodePatch> },
    /// A node has a new status.
    #[serde(rename = "node.progress")]
    NodeProgress { node_id: NodeId, status: NodeStatus, summary: String },
    /// A node is alive. Only sent to readers, never logged.
    #[serde(rename = "node.heartbeat")]
    NodeHeartbeat { node_id: NodeId },
    /// A line of a program's output that is not part of its protocol.
    #[serde(rename = "node.log")]
    NodeLog { node_id: NodeId, source: LogSource, line: String },
    /// A node was removed, with its edges.
    #[serde(rename = "node.deleted")]
    NodeDeleted { node_id: NodeId },
    /// A turn has a new status.
    #[serde(rename = "turn.status")]
    TurnStatus {
        node_id: NodeId,
        status: TurnStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// An edge was made or replaced.
    #[serde(rename = "edge.created")]
    EdgeCreated { edge: Edge },
    /// An edge was removed.
    #[serde(rename = "edge.deleted")]
    EdgeDeleted { edge_id: EdgeId },
    /// Work was handed on.
    #[serde(rename = "handoff.sent")]
    HandoffSent { envelope: Envelope },
    /// A person or a node said something to a node.
    #[serde(rename = "message.user")]
    MessageUser { message: UserMessage },
    /// A piece of an agent's message.
    #[serde(rename = "message.assistant.delta")]
    MessageDelta { node_id: NodeId, delta: String },
    /// A whole message of an agent.
    #[serde(rename = "message.assistant.final")]
    MessageFinal {
        node_id: NodeId,
        content: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<FinalStatus>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_calls: Option<Vec<ToolCall>>,
    },
    /// A piece of an agent's thought.
    #[serde(rename = "message.assistant.thinking.delta")]
    ThinkingDelta { node_id: NodeId, delta: String },
    /// A whole thought of an agent.
    #[serde(rename = "message.assistant.thinking.final")]
    ThinkingFinal { node_id: NodeId, content: String },
    /// An agent wants to call a tool.
    #[serde(rename = "tool.proposed")]
    ToolProposed { node_id: NodeId, tool: ToolCall },
    /// A tool started to run.
    #[serde(rename = "tool.started")]
    ToolStarted { node_id: NodeId, tool: ToolCall },
    /// A call of a tool ended.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        node_id: NodeId,
        tool_id: ToolId,
        result: ToolResult,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
    },
    /// A person is asked for an approval.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        approval_id: ApprovalId,
        node_id: NodeId,
        tool: ToolCall,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<String>,
    },
    /// A person answered, or the request ended without an answer.
    #[serde(rename = "approval.resolved")]
    ApprovalResolved { approval_id: ApprovalId, resolution: ApprovalResolution },
    /// A turn left a file.
    #[serde(rename = "artifact.created")]
    ArtifactCreated { artifact: Artifact },
    /// Tokens were used: an increment, not a total.
    #[serde(rename = "telemetry.usage")]
    TelemetryUsage { node_id: NodeId, provider: Provider, model: String, usage: Usage },
}

impl Body {
    /// Returns the word for its type.
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

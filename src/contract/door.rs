//! What the server of the flow's tools and the turn say to each other: one JSON object a line, each way.
//!
//! `{"id": n}` asks for the tools, `{"id": n, "call": {...}}` calls one; the answer has the same `id`. Answers come in any
//! order: one may wait for a person. Implements N7.

use super::event::{ToolError, ToolResult};
use super::offered::Offered;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most bytes of a line.
pub const LINE_MAX: usize = 4 << 20;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knock {
    /// Which answer is its.
    pub id: u64,
    /// A call; none: which tools there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// What it is called with.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// The agent's own id for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What is answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// To what.
    pub id: u64,
    /// The tools, where these were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Offered>>,
    /// What came of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// Why nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

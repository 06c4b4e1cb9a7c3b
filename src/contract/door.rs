//! The lines between the server of a flow's tools and the turn: one JSON object per line, in both directions.
//!
//! `{"id": n}` asks for the list of tools, `{"id": n, "call": {...}}` calls one; the answer has the same
//! `id`. Answers come in any order, as one may wait for a person. Implements N7.

use super::event::{ToolError, ToolResult};
use super::offered::Offered;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most bytes of a line.
pub const LINE_MAX: usize = 4 << 20;

/// A request to the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knock {
    /// The number that the answer repeats.
    pub id: u64,
    /// The call; `None` asks for the list of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// The arguments of the call.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// The agent's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The turn's answer to a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The `id` of the request.
    pub id: u64,
    /// The tools, if the request asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Offered>>,
    /// The result of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

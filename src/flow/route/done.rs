//! What `route` did, as its outcome says: one JSON object on each line of the body.
//!
//! The outcome is a commit, so every clone can show it, and can read from it the events that it means: that a
//! call was performed or refused, and why a node waits for a person. The lines are in the body because the
//! trailers of a resting head are copied to each commit that takes in messages. Implements N5, N7
//! (`tool.completed`), N11 (the evidence).

use crate::contract::event::{StallEvidence, ToolError, ToolResult};
use crate::contract::id::ToolId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of the body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Done {
    /// A call, and what came of it.
    Call {
        /// The id of the call.
        id: ToolId,
        /// The name of the tool.
        name: String,
        result: ToolResult,
        /// Why the call was refused; `None` where it was performed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
    },
    /// The node goes in a circle, on this evidence.
    Stalled(StallEvidence),
    /// This many dispatches led to one another without a person, and no more may.
    Hops(u32),
}

impl Done {
    /// Returns the line of a call that was performed.
    pub fn call(id: ToolId, name: &str, output: Value) -> Self {
        let result = ToolResult { ok: true, output: Some(output) };
        Self::Call { id, name: name.to_owned(), result, error: None }
    }

    /// Returns the line of a call that was refused.
    pub fn refused(id: ToolId, name: &str, why: &str) -> Self {
        let error = Some(ToolError { message: why.to_owned() });
        Self::Call { id, name: name.to_owned(), result: ToolResult { ok: false, output: None }, error }
    }

    /// Returns the body of an outcome with these lines.
    pub fn body(all: &[Self]) -> String {
        let lines = all.iter().filter_map(|done| serde_json::to_string(done).ok());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Reads the lines of a body; a line that can't be read is skipped.
    pub fn read(body: &[u8]) -> Vec<Self> {
        body.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

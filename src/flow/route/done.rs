//! What `route` did, as its outcome says it: one JSON object a line of the body.
//!
//! The outcome is a commit, so every clone can show it, and read it back for the events that it means: a call that was
//! performed or refused, and why a node waits for a person. A body's lines travel no further, as trailers of a resting
//! head would with every message that it takes in. Implements N5, N7 (`tool.completed`), N11 (the evidence).

use crate::contract::event::{StallEvidence, ToolError, ToolResult};
use crate::contract::id::ToolId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Done {
    /// A call, and what came of it.
    Call {
        /// Its id.
        id: ToolId,
        /// The tool.
        name: String,
        /// What came of it.
        result: ToolResult,
        /// Why it was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
    },
    /// The node goes in a circle.
    Stalled(StallEvidence),
    /// As many dispatches as may led to one another without a person.
    Hops(u32),
}

impl Done {
    /// A call that was performed.
    pub fn call(id: ToolId, name: &str, output: Value) -> Self {
        let result = ToolResult { ok: true, output: Some(output) };
        Self::Call { id, name: name.to_owned(), result, error: None }
    }

    /// A call that was not.
    pub fn refused(id: ToolId, name: &str, why: &str) -> Self {
        let error = Some(ToolError { message: why.to_owned() });
        Self::Call { id, name: name.to_owned(), result: ToolResult { ok: false, output: None }, error }
    }

    /// The body of an outcome that did these.
    pub fn body(all: &[Self]) -> String {
        let lines = all.iter().filter_map(|done| serde_json::to_string(done).ok());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Those of a body; a line that is none is passed by.
    pub fn read(body: &[u8]) -> Vec<Self> {
        body.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

//! The tools of a flow as they are offered to an agent's program: names, descriptions and schemas of the
//! arguments.
//!
//! A tool that a node may not use is not offered to it; `tools` refuses a call of it all the same. Implements
//! N7.

use super::node::Capabilities;
use super::words::EdgeManagement;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name of the server of tools, as programs are told it.
pub const SERVER: &str = "aynig";
/// The tools' names.
pub const NAMES: [&str; 6] = ["spawn_node", "create_edge", "send_handoff", "ask", "todo_write", "finish_run"];

/// A tool as it is offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Value,
}

/// Returns the tool of a flow that a program means by a name: `mcp__aynig__ask`, or gemini's `mcp_aynig_ask`.
/// `None` for the name of any other tool.
pub fn ours(name: &str) -> Option<&'static str> {
    let rest = name.strip_prefix("mcp_")?;
    let rest = rest.strip_prefix('_').unwrap_or(rest).strip_prefix(SERVER)?;
    let tool = rest.strip_prefix("__").or_else(|| rest.strip_prefix('_'))?;
    NAMES.into_iter().find(|known| *known == tool)
}

/// Returns the tools that a node with these capabilities is offered.
pub fn offered(may: &Capabilities) -> Vec<Offered> {
    let mut all = vec![send_handoff(), ask(), todo_write()];
    match may.edge_management {
        EdgeManagement::None => {}
        EdgeManagement::SelfOnly => all.push(create_edge()),
        EdgeManagement::All => all.extend([spawn_node(), create_edge(), finish_run()]),
    }
    all
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Offered {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Offered { name: name.to_owned(), description: description.to_owned(), schema }
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn send_handoff() -> Offered {
    let properties = json!({
        "to": text("The node: its alias, label or id"),
        "message": text("What it is told"),
        "structured": {"type": "object", "description": "The same for programs"},
        "artifacts": {"type": "array", "description": "What else is to be looked at", "items": {"type": "object",
            "properties": {"type": {"type": "string"}, "ref": {"type": "string"}}, "required": ["type", "ref"]}},
        "status": {"type": "object", "description": "How the work went",
            "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string"}}, "required": ["ok"]},
        "response": {"type": "object", "description": "What is wanted back", "properties": {
            "expectation": {"type": "string", "enum": ["none", "optional", "required"]},
            "replyTo": {"type": "string"}}, "required": ["expectation"]},
    });
    let about = "Hands your work, with your files, to a node that an edge leads to, when your turn ends.";
    tool("send_handoff", about, properties, &["to", "message"])
}

fn ask() -> Offered {
    let properties = json!({
        "question": text("The question"),
        "choices": {"type": "array", "items": {"type": "string"}, "description": "What can be answered"},
    });
    tool(
        "ask",
        "Asks a person, and waits for the answer, however long that takes.",
        properties,
        &["question"],
    )
}

fn todo_write() -> Offered {
    let properties = json!({"todos": {"type": "array", "description": "All of it, as it is now", "items": {
        "type": "object", "properties": {"content": {"type": "string"},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
            "activeForm": {"type": "string"}}, "required": ["content", "status"]}}});
    tool("todo_write", "Shows people your list of tasks.", properties, &["todos"])
}

fn create_edge() -> Offered {
    let properties = json!({
        "from": text("The node: its alias, label or id"),
        "to": text("The node: its alias, label or id"),
        "bidirectional": {"type": "boolean", "description": "Whether it counts both ways; it does unless you say so"},
        "type": {"type": "string", "enum": ["handoff", "report"]},
        "label": text("What it is for, in a word"),
    });
    tool("create_edge", "Joins two nodes, so that they can hand work on.", properties, &["from", "to"])
}

fn spawn_node() -> Offered {
    let properties = json!({
        "label": text("What it is called"),
        "roleTemplate": text("Its role, such as implementer or reviewer"),
        "alias": text("A short name"),
        "instructions": text("What it is told first; without this or 'input' it waits"),
        "input": {"type": "object", "description": "The same for programs"},
        "provider": {"type": "string", "enum": ["claude", "codex", "gemini", "custom"],
            "description": "Whose program has its turns; yours unless you say so"},
    });
    tool("spawn_node", "Adds a node to the flow.", properties, &["label", "roleTemplate"])
}

fn finish_run() -> Offered {
    let properties = json!({
        "status": {"type": "string", "enum": ["completed", "failed"]},
        "summary": text("What came of it, in a few words"),
    });
    tool("finish_run", "Ends the flow.", properties, &["status", "summary"])
}

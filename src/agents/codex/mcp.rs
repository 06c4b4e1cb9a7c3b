//! Calls of the tools of servers that speak the Model Context Protocol, as codex reports them in both of its
//! forms: with the names of server and tool apart.

use super::super::rpc::{blocks, map, text};
use serde_json::{Map, Value};

/// Returns the name that stands for a server's tool.
pub(super) fn name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// Returns the name and the arguments of such a call; `None` if the item is not one.
pub(super) fn called(item: &Value) -> Option<(String, Map<String, Value>)> {
    is_call(item).then(|| (name(text(item, "server"), text(item, "tool")), map(item, "arguments")))
}

fn is_call(item: &Value) -> bool {
    ["mcp_tool_call", "mcpToolCall"].contains(&text(item, "type"))
}

/// Returns the result of such a call, or its error; `None` if the item is not one.
pub(super) fn gave(item: &Value) -> Option<String> {
    is_call(item).then(|| match &item["error"] {
        Value::Null => blocks(&item["result"]["content"]),
        error => text(error, "message").to_owned(),
    })
}

//! Tools of servers that speak the Model Context Protocol, as codex tells of them: server and tool apart, in both of its forms.

use super::super::rpc::{blocks, map, text};
use serde_json::{Map, Value};

/// The name that a tool of a server goes by.
pub(super) fn name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// The name and arguments of such a call; `None` where the item is none.
pub(super) fn called(item: &Value) -> Option<(String, Map<String, Value>)> {
    is_call(item).then(|| (name(text(item, "server"), text(item, "tool")), map(item, "arguments")))
}

fn is_call(item: &Value) -> bool {
    ["mcp_tool_call", "mcpToolCall"].contains(&text(item, "type"))
}

/// What came of an item, where that is a call.
pub(super) fn gave(item: &Value) -> Option<String> {
    is_call(item).then(|| match &item["error"] {
        Value::Null => blocks(&item["result"]["content"]),
        error => text(error, "message").to_owned(),
    })
}

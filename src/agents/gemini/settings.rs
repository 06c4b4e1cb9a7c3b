//! The user's settings of gemini with the flow's server added. Comments are removed first, as gemini does.

use super::super::call::{TOOL_TIME, Tools};
use serde_json::{Value, json};

/// Returns the text of a user's settings with the flow's server among their servers; `None` if they are no
/// JSON object.
pub fn settings(known: &str, tools: &Tools) -> Option<String> {
    let mut all: Value = serde_json::from_str(&bare(known)).ok()?;
    let fields = all.as_object_mut()?;
    let servers = fields.entry("mcpServers").or_insert_with(|| json!({})).as_object_mut()?;
    // `trust` lets the calls pass without a question: the flow's tools have gates of their own.
    let server = json!({"command": tools.program, "args": tools.args, "trust": true,
        "timeout": u64::try_from(TOOL_TIME.as_millis()).unwrap_or(u64::MAX)});
    servers.insert(tools.name.to_owned(), server);
    if let Some(Value::Array(allowed)) = fields.get_mut("mcp").and_then(|mcp| mcp.get_mut("allowed")) {
        allowed.push(tools.name.into());
    }
    serde_json::to_string_pretty(&all).ok()
}

/// Returns a text without its comments.
fn bare(text: &str) -> String {
    let (mut out, mut rest, mut quoted) = (String::with_capacity(text.len()), text, false);
    while let Some(next) = rest.chars().next() {
        let skipped = match quoted {
            true => None,
            false if rest.starts_with("//") => Some(rest.find('\n').unwrap_or(rest.len())),
            false if rest.starts_with("/*") => Some(rest.find("*/").map_or(rest.len(), |at| at + 2)),
            false => None,
        };
        let taken = match skipped {
            Some(skipped) => {
                out.push(' ');
                rest = &rest[skipped..];
                continue;
            }
            // An escaped quote does not end a string.
            None if quoted && next == '\\' => rest.chars().take(2).map(char::len_utf8).sum(),
            None => next.len_utf8(),
        };
        quoted ^= next == '"';
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out
}

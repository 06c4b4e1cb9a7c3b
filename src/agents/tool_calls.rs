//! Calls of the flow's tools in the text of an agent whose program has no other way to call them.
//!
//! A line that is exactly `{"tool_call": {"id"?, "name", "args"}}` is a call, and is cut out of the text. A
//! line that looks like the beginning of one but is not stays in the text, and is reported, so that the agent
//! can be told. Implements N7.

use super::said::head;
use serde_json::{Map, Value};

/// Most calls in one message.
pub const CALLS_MAX: usize = 64;

/// A call as an agent wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The agent's own id of the call.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The arguments of the call.
    pub args: Map<String, Value>,
}

/// A message, with its calls taken out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Apart {
    /// The text without the calls.
    pub text: String,
    /// The calls, in their order.
    pub calls: Vec<Written>,
    /// The lines that look like a call and are none, each with the reason.
    pub problems: Vec<String>,
}

/// Takes the calls out of a message. `loose` also takes `{"tool"|"name", "args"|"params"}`, as the jsonl
/// protocol does.
pub fn apart(text: &str, loose: bool) -> Apart {
    let mut found = Apart::default();
    let mut kept = Vec::new();
    for line in text.split('\n') {
        match read(line.trim(), loose) {
            None => kept.push(line),
            Some(Ok(_)) if found.calls.len() == CALLS_MAX => {
                found.problems.push(format!("more than {CALLS_MAX} calls in one message"));
                kept.push(line);
            }
            Some(Ok(call)) => found.calls.push(call),
            Some(Err(why)) => {
                if found.problems.len() < CALLS_MAX {
                    found.problems.push(format!("{why}: {}", head(line.trim(), 200)));
                }
                kept.push(line);
            }
        }
    }
    found.text = kept.join("\n").trim_end().to_owned();
    if found.calls.is_empty() {
        found.text = text.to_owned();
    }
    found
}

/// Reads the call on a line; `None` for a line that does not look like a call.
fn read(line: &str, loose: bool) -> Option<Result<Written, String>> {
    if !line.starts_with('{') {
        return None;
    }
    let compact: String = line.chars().filter(|c| !c.is_whitespace()).take(14).collect();
    let means_it = compact.starts_with("{\"tool_call\":");
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(line) else {
        return means_it.then(|| Err("a tool call that is no JSON".to_owned()));
    };
    if let Some(call) = object.get("tool_call") {
        if object.len() > 1 {
            return Some(Err("a tool call with more beside it".to_owned()));
        }
        return Some(call.as_object().ok_or("a tool call that is no object".to_owned()).and_then(strict));
    }
    let name = loose.then(|| object.get("tool").or_else(|| object.get("name"))).flatten()?.as_str()?;
    let args = object.get("args").or_else(|| object.get("params"))?.as_object()?;
    Some(Ok(Written { id: own_id(&object), name: name.to_owned(), args: args.clone() }))
}

fn strict(call: &Map<String, Value>) -> Result<Written, String> {
    let name = call.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or("a tool call without a name")?.to_owned();
    let args = match call.get("args") {
        None => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(_) => return Err("a tool call whose args are no object".to_owned()),
    };
    Ok(Written { id: own_id(call), name, args })
}

fn own_id(call: &Map<String, Value>) -> Option<String> {
    call.get("id").and_then(Value::as_str).map(|id| head(id, 200).to_owned())
}

//! Lines of JSON-RPC as programs write and read them; one of the programs leaves out the field that names the
//! protocol.

use super::said::{Heard, Said};
use crate::contract::shown;
use serde_json::{Map, Value, json};

/// Whether lines have the field `"jsonrpc":"2.0"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// They have it.
    Named,
    /// They do not have it.
    Bare,
}

/// Returns a value as one line of JSON, with its line feed.
pub(super) fn line(value: &Value) -> Vec<u8> {
    let mut text = value.to_string().into_bytes();
    text.push(b'\n');
    text
}

impl Form {
    fn with(self, fields: Value) -> Vec<u8> {
        let mut object = Map::new();
        if self == Self::Named {
            object.insert("jsonrpc".to_owned(), "2.0".into());
        }
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        line(&Value::Object(object))
    }

    /// Returns a request.
    pub(super) fn call(self, id: u64, method: &str, params: Value) -> Vec<u8> {
        self.with(json!({"id": id, "method": method, "params": params}))
    }

    /// Returns a notification: a request that wants no answer.
    pub(super) fn notice(self, method: &str, params: Option<Value>) -> Vec<u8> {
        let mut fields = json!({ "method": method });
        if let Some(params) = params {
            fields["params"] = params;
        }
        self.with(fields)
    }

    /// Returns an answer. `id` is JSON text, as the request had it.
    pub(super) fn answer(self, id: &str, result: Value) -> Vec<u8> {
        let id: Value = serde_json::from_str(id).unwrap_or(Value::Null);
        self.with(json!({"id": id, "result": result}))
    }

    /// Returns the answer to a request that this version does not know; it lets the program go on without
    /// waiting.
    pub(super) fn unknown(self, id: &Value, method: &str) -> Heard {
        let error = json!({"code": -32601, "message": "method not found"});
        Heard {
            said: vec![Said::Note(shown::line(
                format!("asked for '{method}', which is not known").as_bytes(),
            ))],
            send: self.with(json!({"id": id, "error": error})),
        }
    }
}

/// Returns the object that a line holds, or what is to be reported of a line that holds none.
pub(super) fn object(line: &[u8]) -> Result<Value, Heard> {
    match serde_json::from_slice::<Value>(line) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) | Err(_) if line.trim_ascii().is_empty() => Err(Heard::default()),
        Ok(_) | Err(_) => Err(Heard { said: vec![Said::Noise(shown::line(line))], send: Vec::new() }),
    }
}

/// Returns a text in an object; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the text of blocks, as tools' results have them. If any other kind is among them, returns all of
/// them as JSON.
pub(super) fn blocks(blocks: &Value) -> String {
    let one = |block: &Value| match text(block, "type") {
        "text" => block["text"].as_str().map(str::to_owned),
        "content" => block["content"]["text"].as_str().map(str::to_owned),
        _ => None,
    };
    let texts: Option<Vec<String>> = blocks.as_array().and_then(|all| all.iter().map(one).collect());
    texts.map_or_else(|| blocks.to_string(), |texts| texts.join("\n"))
}

/// Returns a number in an object; 0 if there is none.
pub(super) fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

/// Returns an object in an object; empty if there is none.
pub(super) fn map(value: &Value, key: &str) -> Map<String, Value> {
    value[key].as_object().cloned().unwrap_or_default()
}

//! Lines of JSON-RPC as programs write and read them; one of them leaves out the field that names the protocol.

use super::said::{Heard, Said};
use crate::contract::shown;
use serde_json::{Map, Value, json};

/// Whether lines carry `"jsonrpc":"2.0"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// They do.
    Named,
    /// They do not.
    Bare,
}

/// One line of JSON, with its line feed.
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

    /// A call.
    pub(super) fn call(self, id: u64, method: &str, params: Value) -> Vec<u8> {
        self.with(json!({"id": id, "method": method, "params": params}))
    }

    /// A call that wants no answer.
    pub(super) fn notice(self, method: &str, params: Option<Value>) -> Vec<u8> {
        let mut fields = json!({ "method": method });
        if let Some(params) = params {
            fields["params"] = params;
        }
        self.with(fields)
    }

    /// An answer. `id` is JSON text, as it was asked under.
    pub(super) fn answer(self, id: &str, result: Value) -> Vec<u8> {
        let id: Value = serde_json::from_str(id).unwrap_or(Value::Null);
        self.with(json!({"id": id, "result": result}))
    }

    /// The answer to a call that this version does not know, so that the program does not wait for one.
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

/// The object that a line is; otherwise what is said of the line.
pub(super) fn object(line: &[u8]) -> Result<Value, Heard> {
    match serde_json::from_slice::<Value>(line) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) | Err(_) if line.trim_ascii().is_empty() => Err(Heard::default()),
        Ok(_) | Err(_) => Err(Heard { said: vec![Said::Noise(shown::line(line))], send: Vec::new() }),
    }
}

/// A text of an object; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The text of blocks, as results of tools have them; where anything else is among them, all of it as JSON.
pub(super) fn blocks(blocks: &Value) -> String {
    let one = |block: &Value| match text(block, "type") {
        "text" => block["text"].as_str().map(str::to_owned),
        "content" => block["content"]["text"].as_str().map(str::to_owned),
        _ => None,
    };
    let texts: Option<Vec<String>> = blocks.as_array().and_then(|all| all.iter().map(one).collect());
    texts.map_or_else(|| blocks.to_string(), |texts| texts.join("\n"))
}

/// A number of an object; 0 where there is none.
pub(super) fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

/// An object of an object; empty where there is none.
pub(super) fn map(value: &Value, key: &str) -> Map<String, Value> {
    value[key].as_object().cloned().unwrap_or_default()
}

//! What a run used, as a command says it in JSON: in its declaration, and in lines that it appends while it runs.
//!
//! Implements K48a, K54.

use super::Invalid;
use crate::protocol::usage::{NAME_MAX, Usage};
use serde_json::{Map, Value};

const WANT: &str = "an object of 'input_tokens' and 'output_tokens', whole numbers, 'cost_usd', a decimal number \
                    from 0 on, 'model' and 'provider', strings";

/// Returns the usage that a declaration states; `None` where it states none.
pub(super) fn used(value: Option<&Value>) -> Result<Option<Usage>, Invalid> {
    let wrong = || Invalid::Type { field: "usage", want: WANT };
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(fields)) => read(fields).map(Some).ok_or_else(wrong),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => Err(wrong()),
    }
}

/// Reads usage from these fields; `None` where a field has another type, or a value that it can't have.
pub fn read(fields: &Map<String, Value>) -> Option<Usage> {
    let tokens = |field: &str| match fields.get(field) {
        None | Some(Value::Null) => Some(0),
        Some(value) => value.as_u64(),
    };
    let name = |field: &str| match fields.get(field) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(name)) => {
            let name: String = name.trim().chars().take(NAME_MAX).collect();
            Some(Some(name).filter(|name| !name.is_empty()))
        }
        Some(_) => None,
    };
    let cost = match fields.get("cost_usd") {
        None | Some(Value::Null) => None,
        // A number is read as it is written, not as the nearest binary fraction.
        Some(Value::Number(number)) => Some(number.to_string().parse().ok()?),
        Some(Value::String(text)) => Some(text.trim().parse().ok()?),
        Some(_) => return None,
    };
    Some(Usage {
        input: tokens("input_tokens")?,
        output: tokens("output_tokens")?,
        cost,
        model: name("model")?,
        provider: name("provider")?,
    })
}

/// Writes usage back as the field that [`used`] reads.
pub(super) fn put(usage: &Usage, fields: &mut Map<String, Value>) {
    let mut used = Map::new();
    used.insert("input_tokens".into(), usage.input.into());
    used.insert("output_tokens".into(), usage.output.into());
    if let Some(cost) = usage.cost {
        // As text, so that no reader turns it into a binary fraction.
        used.insert("cost_usd".into(), cost.to_string().into());
    }
    for (field, name) in [("model", &usage.model), ("provider", &usage.provider)] {
        if let Some(name) = name {
            used.insert(field.into(), name.as_str().into());
        }
    }
    fields.insert("usage".into(), used.into());
}

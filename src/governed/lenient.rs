//! Reads foreign JSON into types: a field that has the wrong type reads like one that is missing.
//!
//! Documents are validated elsewhere, with messages for what is wrong; code that reads a validated document,
//! or one that another tool made, takes from it what it can. The functions besides [`read`] are for serde's
//! `deserialize_with`, together with `#[serde(default)]`.

use super::json;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads an object as a type whose fields use these functions; `None` for a value that is not an object.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    // Without this check, serde would also take a list for a struct.
    value.is_object().then(|| T::deserialize(value).ok()).flatten()
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(all) => all,
        _ => Vec::new(),
    }
}

/// Reads a part; an empty one where the value is not an object.
pub(crate) fn part<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(read(&Value::deserialize(from)?).unwrap_or_default())
}

/// Reads the objects of a list; other values are left out, also a value that is not a list.
pub(crate) fn parts<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(list(Value::deserialize(from)?).iter().filter_map(read).collect())
}

/// Reads the objects of a list; `None` where the value is not a list.
pub(crate) fn maybe_parts<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let Value::Array(all) = Value::deserialize(from)? else { return Ok(None) };
    Ok(Some(all.iter().filter_map(read).collect()))
}

/// Reads parts by their names, in their order; `None` under a name whose part is not an object.
pub(crate) fn named<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<IndexMap<String, Option<T>>, D::Error> {
    let Value::Object(all) = Value::deserialize(from)? else { return Ok(IndexMap::new()) };
    Ok(all.iter().map(|(name, part)| (name.clone(), read(part))).collect())
}

/// Reads a value of one type; `None` where it has another.
pub(crate) fn value<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(T::deserialize(Value::deserialize(from)?).ok())
}

/// Reads a text of more than blanks.
pub(crate) fn filled<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(value::<D, String>(from)?.filter(|text| !text.trim().is_empty()))
}

/// Reads a whole number of at least 0, however it is written (`2`, `2.0`).
pub(crate) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(json::whole(&Value::deserialize(from)?))
}

/// Reads a boolean; every value but `true` is false.
pub(crate) fn is_true<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(from)? == Value::Bool(true))
}

/// Reads the texts of a list; other values are left out, also a value that is not a list.
pub(crate) fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(list(Value::deserialize(from)?).into_iter().filter_map(text).collect())
}

/// Reads the texts of a list; `None` where the value is not a list.
pub(crate) fn maybe_texts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Array(all) => Some(all.into_iter().filter_map(text).collect()),
        _ => None,
    })
}

/// Reads the texts of a list; an empty list where the value is not a list, so that only a missing key is
/// `None`.
pub(crate) fn present_texts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    maybe_texts(from).map(|texts| Some(texts.unwrap_or_default()))
}

/// Reads a command: one text, or a list of texts.
pub(crate) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(word) => vec![word],
        other => list(other).into_iter().filter_map(text).collect(),
    })
}

/// Reads texts by their names.
pub(crate) fn text_map<'de, D: Deserializer<'de>>(from: D) -> Result<IndexMap<String, String>, D::Error> {
    let Value::Object(all) = Value::deserialize(from)? else { return Ok(IndexMap::new()) };
    // A name whose value is not a text stays, with an empty one: it hides the environment's variable of that
    // name.
    Ok(all.into_iter().map(|(name, value)| (name, text(value).unwrap_or_default())).collect())
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

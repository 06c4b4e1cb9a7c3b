//! Reading foreign JSON into types: a field that is not what it should be reads as one that is not there.
//!
//! Documents are judged elsewhere, with words for what is wrong; readers of what was judged, or was made by another
//! tool, take what they can. Each function here is for serde's `deserialize_with`, beside `#[serde(default)]`.

use super::json;
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object as a type whose own fields are read so; `None` for what is no object.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    // Serde takes a list for a struct too.
    value.is_object().then(|| T::deserialize(value).ok()).flatten()
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(all) => all,
        _ => Vec::new(),
    }
}

/// A part, empty where it is no object.
pub(crate) fn part<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(read(&Value::deserialize(from)?).unwrap_or_default())
}

/// The objects of a list.
pub(crate) fn parts<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(list(Value::deserialize(from)?).iter().filter_map(read).collect())
}

/// The objects of a list that may be missing.
pub(crate) fn maybe_parts<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let Value::Array(all) = Value::deserialize(from)? else { return Ok(None) };
    Ok(Some(all.iter().filter_map(read).collect()))
}

/// Parts by their names, in their order; `None` under a name whose part is no object.
pub(crate) fn named<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<IndexMap<String, Option<T>>, D::Error> {
    let Value::Object(all) = Value::deserialize(from)? else { return Ok(IndexMap::new()) };
    Ok(all.iter().map(|(name, part)| (name.clone(), read(part))).collect())
}

/// A value of one type.
pub(crate) fn value<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(T::deserialize(Value::deserialize(from)?).ok())
}

/// A text of more than blanks.
pub(crate) fn filled<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(value::<D, String>(from)?.filter(|text| !text.trim().is_empty()))
}

/// A whole number of at least 0, however it is written (`2`, `2.0`).
pub(crate) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(json::whole(&Value::deserialize(from)?))
}

/// True where it says true.
pub(crate) fn is_true<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(from)? == Value::Bool(true))
}

/// The texts of a list.
pub(crate) fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(list(Value::deserialize(from)?).into_iter().filter_map(text).collect())
}

/// The texts of a list that may be missing.
pub(crate) fn maybe_texts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Array(all) => Some(all.into_iter().filter_map(text).collect()),
        _ => None,
    })
}

/// The texts of a list; none where what is there is no list.
pub(crate) fn present_texts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    maybe_texts(from).map(|texts| Some(texts.unwrap_or_default()))
}

/// A command: one text, or a list of them.
pub(crate) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(word) => vec![word],
        other => list(other).into_iter().filter_map(text).collect(),
    })
}

/// Texts by their names.
pub(crate) fn text_map<'de, D: Deserializer<'de>>(from: D) -> Result<IndexMap<String, String>, D::Error> {
    let Value::Object(all) = Value::deserialize(from)? else { return Ok(IndexMap::new()) };
    // A name whose value is no text stays, without one: it hides what the environment has of that name.
    Ok(all.into_iter().map(|(name, value)| (name, text(value).unwrap_or_default())).collect())
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

//! Small functions that read JSON objects, and the one way in which JSON is written.
//!
//! Key order and unknown keys are kept and nulls are written, because other tools read the same files byte
//! for byte. Whole files are indented by two spaces and end in a newline; records are one line each.

use serde::Serialize;
use serde_json::{Map, Value};

/// A JSON object with its keys in order.
pub(crate) type Object = Map<String, Value>;

/// Returns the string under a key.
pub(crate) fn text<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// Returns the string under a key, where it is more than blanks.
pub(crate) fn filled<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    text(object, key).filter(|text| !text.trim().is_empty())
}

/// Returns the object under a key.
pub(crate) fn object<'a>(object: &'a Object, key: &str) -> Option<&'a Object> {
    object.get(key).and_then(Value::as_object)
}

/// Returns the list under a key; an empty one where there is none.
pub(crate) fn list<'a>(object: &'a Object, key: &str) -> &'a [Value] {
    object.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the strings of the list under a key.
pub(crate) fn texts<'a>(object: &'a Object, key: &str) -> Vec<&'a str> {
    list(object, key).iter().filter_map(Value::as_str).collect()
}

/// Returns the unsigned integer under a key.
pub(crate) fn count(object: &Object, key: &str) -> Option<u64> {
    object.get(key).and_then(whole)
}

/// Returns a value as a whole number of at least 0, however it is written (`2`, `2.0`); `None` for any other.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && (0.0..9e15).contains(f)).map(|f| f as u64))
}

/// True where a value is a whole number, negative ones included.
pub(crate) fn is_whole(value: &Value) -> bool {
    value.as_i64().is_some() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
}

/// True for a string of more than blanks.
pub(crate) fn is_filled(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
}

/// Makes a JSON number, written without a fraction where it has none.
pub(crate) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}

/// Makes JSON of a text, or null.
pub(crate) fn or_null(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::from)
}

/// Returns a value as the whole text of a file: indented, with a newline at the end.
pub(crate) fn page(whole: &impl Serialize) -> String {
    // Serializing fails for keys that are not strings, or in a `Serialize` that fails; no type that is
    // written has either.
    serde_json::to_string_pretty(whole).unwrap_or_default() + "\n"
}

/// Returns a record as one line, with its newline.
pub(crate) fn line(record: &impl Serialize) -> String {
    serde_json::to_string(record).unwrap_or_default() + "\n"
}

/// Returns a record as JSON, for functions that take any JSON.
pub(crate) fn value(record: &impl Serialize) -> Value {
    serde_json::to_value(record).unwrap_or_default()
}

/// Returns a record as a JSON object, for functions that take any object.
pub(crate) fn object_of(record: &impl Serialize) -> Object {
    match value(record) {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// True for an id made of lower-case letters, digits, `_` and `-`.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
}

/// True for a phase's name: a name ([`is_name`]) that begins with a lower-case letter.
pub(crate) fn is_phase_name(text: &str) -> bool {
    is_name(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// True for `<prefix>` and digits alone, such as `DEC-12`.
pub(crate) fn is_numbered(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

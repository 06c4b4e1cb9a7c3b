//! A JSON value held against a schema: the words of JSON Schema 2020-12 that `schema.json` uses, and no others.
//!
//! A word that is not known here fails the test, so that a schema never seems to demand what no test looks at.

use serde_json::{Map, Value};

/// The contract's schema.
pub fn contract() -> Value {
    serde_json::from_str(include_str!("schema.json")).unwrap()
}

/// What is wrong with a value that shall be one of these: `event`, `run`, ...; empty where nothing is.
pub fn wrong(schema: &Value, name: &str, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, &schema["$defs"][name], value, name, &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let words = schema.as_object().unwrap_or_else(|| panic!("{at}: no schema"));
    for (word, want) in words {
        let fits = match word.as_str() {
            "$ref" => {
                let name = want.as_str().and_then(|to| to.strip_prefix("#/$defs/")).unwrap();
                let target = root["$defs"].get(name).unwrap_or_else(|| panic!("{at}: no '{name}'"));
                check(root, target, value, at, found);
                true
            }
            "type" => match want {
                Value::Array(any) => any.iter().any(|name| is_a(value, name)),
                one => is_a(value, one),
            },
            "const" => value == want,
            "enum" => want.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|n| n >= want.as_f64().unwrap()),
            "format" => value.as_str().is_none_or(|text| has_format(text, want.as_str().unwrap())),
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, want, item, &format!("{at}[{n}]"), found);
                }
                true
            }
            "required" => {
                let object = value.as_object();
                want.as_array()
                    .unwrap()
                    .iter()
                    .all(|key| object.is_none_or(|o| o.contains_key(key.as_str().unwrap())))
            }
            "properties" => {
                for (key, schema) in want.as_object().unwrap() {
                    if let Some(inner) = value.get(key) {
                        check(root, schema, inner, &format!("{at}.{key}"), found);
                    }
                }
                true
            }
            "propertyNames" => {
                for key in keys(value) {
                    check(root, want, &Value::String(key.clone()), &format!("{at} key"), found);
                }
                true
            }
            "additionalProperties" => {
                for (key, inner) in others(words, value) {
                    match want {
                        Value::Bool(false) => found.push(format!("{at}: '{key}' is not in the contract")),
                        schema => check(root, schema, inner, &format!("{at}.{key}"), found),
                    }
                }
                true
            }
            "oneOf" => {
                let fitting = want.as_array().unwrap().iter().filter(|schema| {
                    let mut wrong = Vec::new();
                    check(root, schema, value, at, &mut wrong);
                    wrong.is_empty()
                });
                fitting.count() == 1
            }
            other => panic!("{at}: '{other}' is a word that nothing looks at"),
        };
        if !fits {
            found.push(format!("{at}: {value} is not {word} {want}"));
        }
    }
}

fn keys(value: &Value) -> impl Iterator<Item = &String> {
    value.as_object().into_iter().flat_map(Map::keys)
}

/// What of an object its properties do not name.
fn others<'a>(
    schema: &'a Map<String, Value>,
    value: &'a Value,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let named = schema.get("properties").and_then(Value::as_object);
    value
        .as_object()
        .into_iter()
        .flatten()
        .filter(move |(key, _)| named.is_none_or(|n| !n.contains_key(*key)))
}

fn is_a(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("'{other}' is no type"),
    }
}

/// True where each character is as the shape says: `x` a digit in lower-case hexadecimal, `9` a digit.
fn shaped(text: &str, shape: &str) -> bool {
    let fits = |(c, s): (char, char)| match s {
        'x' => c.is_ascii_digit() || ('a'..='f').contains(&c),
        '9' => c.is_ascii_digit(),
        s => c == s,
    };
    text.len() == shape.len() && text.chars().zip(shape.chars()).all(fits)
}

fn has_format(text: &str, format: &str) -> bool {
    match format {
        "uuid" => shaped(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
        "contract-time" => shaped(text, "9999-99-99T99:99:99.999Z"),
        "absolute-path" => text.starts_with('/'),
        other => panic!("'{other}' is no format"),
    }
}

#[test]
fn each_word_of_the_schema_refuses_something() {
    let schema = contract();
    let fits = |name: &str, value: Value| wrong(&schema, name, &value).is_empty();
    let id = "0b5c4a53-3c57-4e3e-9d8f-3d0d3e2d1c00";
    let edge = serde_json::json!({"id": id, "from": id, "to": id, "bidirectional": true, "type": "report", "label": ""});
    let with = |key: &str, value: Value| {
        let mut edge = edge.clone();
        edge[key] = value;
        edge
    };
    assert!(fits("edge", edge.clone()));
    assert!(!fits("edge", with("more", 1.into())), "additionalProperties");
    assert!(!fits("edge", with("bidirectional", 1.into())), "type");
    assert!(!fits("edge", with("type", "weird".into())), "enum");
    assert!(!fits("edge", with("id", id.to_uppercase().into())), "format");
    let mut short = edge.clone();
    short.as_object_mut().unwrap().remove("label");
    assert!(!fits("edge", short), "required");
    let event = |kind: &str, edge: &Value| serde_json::json!({"id": id, "runId": id, "ts": "2026-01-01T00:00:00.000Z", "type": kind, "edge": edge});
    assert!(fits("event", event("edge.created", &edge)));
    assert!(!fits("event", event("edge.made", &edge)), "const");
    assert!(
        !fits("usage", serde_json::json!({"promptTokens": -1, "completionTokens": 0, "totalTokens": 0})),
        "minimum"
    );
    let patch = |key: &str| serde_json::json!({"edges": {key: edge}});
    assert!(fits("runPatch", patch(id)) && !fits("runPatch", patch("x")), "propertyNames");
    assert!(!fits("session", serde_json::json!({"sessionId": "", "resetCommands": [1]})), "items");
}

//! The contract's own samples, as they stand in its text: read, written again, and held against the schema. (N13)

use super::schema;
use aynig::contract::edge::{Edge, Envelope};
use aynig::contract::event::Event;
use aynig::contract::node::Node;
use aynig::contract::run::{Artifact, Run};
use aynig::contract::time::Time;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use uuid::Uuid;

const EVENT: usize = 0;
const RUN: usize = 1;
const NODE: usize = 2;
const EDGE: usize = 3;
const ENVELOPE: usize = 4;
const ARTIFACT: usize = 5;
const TOOL_PROPOSED: usize = 6;

fn sample(n: usize) -> Value {
    let text = include_str!("samples.txt").split("\n\n").nth(n).unwrap();
    serde_json::from_str(text).unwrap()
}

/// The sample with a value for each of its words that stand for one; `choice` says which of several.
fn filled(value: Value, key: &str, choice: usize) -> Value {
    match value {
        Value::String(text) if text.contains(" | ") => {
            let words: Vec<&str> = text.split(" | ").collect();
            words[choice % words.len()].into()
        }
        Value::String(text) if key == "type" && text == "event.type" => "node.heartbeat".into(),
        Value::String(text) if key != "replyTo" && (text.ends_with("-uuid") || text.starts_with("node-")) => {
            let name = text.strip_prefix("optional-").unwrap_or(&text);
            Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string().into()
        }
        Value::Array(items) => items.into_iter().map(|item| filled(item, "", choice)).collect(),
        Value::Object(object) => {
            let object = object.into_iter().flat_map(|(key, value)| placed(key, value, choice));
            Value::Object(object.collect())
        }
        other => other,
    }
}

/// A key with its value; `nodeId` and its like, as keys of maps, stand for the sample of that thing.
fn placed(key: String, value: Value, choice: usize) -> Option<(String, Value)> {
    let thing = match key.as_str() {
        "nodes" => Some(NODE),
        "edges" => Some(EDGE),
        "artifacts" if value.is_object() => Some(ARTIFACT),
        _ => None,
    };
    if let Some(thing) = thing {
        let thing = filled(sample(thing), "", choice);
        let id = thing["id"].as_str().unwrap().to_owned();
        return Some((key, json!({ id: thing })));
    }
    if key == "nodeConfigs" {
        // What is in one is not part of the contract's text.
        return Some((key, json!({})));
    }
    let value = filled(value, &key, choice);
    Some((key, value))
}

/// The same, times in the one form in which they are written.
fn meant(value: Value) -> Value {
    match value {
        Value::String(text) => Time::parse(&text).map_or(text, |time| time.to_string()).into(),
        Value::Array(items) => items.into_iter().map(meant).collect(),
        Value::Object(object) => {
            object.into_iter().map(|(key, value)| (key, meant(value))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

/// Reads a sample as its type and writes it again: the same in meaning, keys in the same order, right by the schema.
fn holds<T: Serialize + DeserializeOwned>(name: &str, value: Value) -> T {
    let read: T =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{name}: {error}: {value}"));
    let written = serde_json::to_string(&read).unwrap();
    assert_eq!(written, meant(value).to_string(), "{name}");
    let wrong = schema::wrong(&schema::contract(), name, &serde_json::from_str(&written).unwrap());
    assert!(wrong.is_empty(), "{wrong:#?}");
    read
}

#[test]
fn the_contracts_samples_are_read_and_written_as_they_stand() {
    for choice in 0..6 {
        holds::<Event>("event", filled(sample(EVENT), "", choice));
        let run = holds::<Run>("run", filled(sample(RUN), "", choice));
        assert_eq!((run.nodes.len(), run.edges.len(), run.artifacts.len()), (1, 1, 1));
        holds::<Node>("node", filled(sample(NODE), "", choice));
        holds::<Edge>("edge", filled(sample(EDGE), "", choice));
        holds::<Envelope>("envelope", filled(sample(ENVELOPE), "", choice));
        holds::<Artifact>("artifact", filled(sample(ARTIFACT), "", choice));
        for n in TOOL_PROPOSED..=9 {
            // These samples say the least that is in them: the envelope of every event comes first.
            let mut event = filled(sample(EVENT), "", choice).as_object().unwrap().clone();
            event.shift_remove("nodeId");
            event.shift_remove("type");
            let body = filled(sample(n), "", choice).as_object().unwrap().clone();
            // A body's keys stand as they are, `nodeId` after its type or where the sample has it.
            event.extend(body);
            holds::<Event>("event", Value::Object(event));
        }
    }
}

#[test]
fn another_version_of_the_contract_is_refused() {
    let mut run = filled(sample(RUN), "", 1);
    run["contractVersion"] = "2".into();
    let refused = serde_json::from_value::<Run>(run.clone()).unwrap_err().to_string();
    assert_eq!(refused, "contractVersion '2' is not known: this program speaks '1'");
    run.as_object_mut().unwrap().shift_remove("contractVersion");
    assert!(serde_json::from_value::<Run>(run).unwrap_err().to_string().contains("contractVersion"));
}

#[test]
fn keys_that_nobody_knows_are_passed_by() {
    let mut node = filled(sample(NODE), "", 0);
    node["later"] = json!({"a": 1});
    node["capabilities"]["later"] = true.into();
    let read: Node = serde_json::from_value(node).unwrap();
    assert_eq!(read.label, "Implementer A");
}

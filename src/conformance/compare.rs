//! Compares what was expected with what is, by the rules of the corpus.
//!
//! Objects are matched as subsets, arrays position by position, scalars by identity (null is not absent,
//! numbers by value). An object with `assert` in it is a matcher.

use serde_json::{Map, Value};

/// Returns the first difference, in words; `None` where there is none.
pub(super) fn difference(expected: &Value, actual: &Value) -> Option<String> {
    compare("", expected, Some(actual))
}

fn compare(place: &str, expected: &Value, actual: Option<&Value>) -> Option<String> {
    let shown = if place.is_empty() { "the result" } else { place };
    if let Some((name, matcher)) = matcher(expected) {
        return matched(shown, name, matcher, actual);
    }
    let Some(actual) = actual else { return Some(format!("{shown}: expected {expected}, found nothing")) };
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected
            .iter()
            .filter(|(key, _)| *key != "warnings_allowed")
            .find_map(|(key, value)| compare(&format!("{place}.{key}"), value, actual.get(key))),
        (Value::Array(expected), Value::Array(actual)) => {
            if expected.len() != actual.len() {
                let (wanted, found) = (expected.len(), actual.len());
                return Some(format!("{shown}: expected {wanted} entries, found {found}"));
            }
            let pairs = expected.iter().zip(actual).enumerate();
            pairs.into_iter().find_map(|(at, (e, a))| compare(&format!("{place}[{at}]"), e, Some(a)))
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        (expected, actual) if expected == actual => None,
        (expected, actual) => Some(format!("{shown}: expected {expected}, found {actual}")),
    }
}

fn matcher(expected: &Value) -> Option<(&str, &Map<String, Value>)> {
    let object = expected.as_object()?;
    Some((object.get("assert")?.as_str()?, object))
}

fn matched(place: &str, name: &str, matcher: &Map<String, Value>, actual: Option<&Value>) -> Option<String> {
    let text = actual.and_then(Value::as_str);
    let holds = match name {
        "nonempty_string" => text.is_some_and(|text| !text.trim().is_empty()),
        // Null counts as present.
        "present" => actual.is_some(),
        "id_prefix" => {
            let prefix = matcher.get("value").and_then(Value::as_str).unwrap_or_default();
            text.is_some_and(|text| text.starts_with(prefix))
        }
        "unordered_array" => {
            let items = matcher.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let found = actual.and_then(Value::as_array);
            found.is_some_and(|found| found.len() == items.len() && pairs_up(items, found))
        }
        other => return Some(format!("{place}: the matcher '{other}' is not known")),
    };
    let found = actual.map_or_else(|| "nothing".to_owned(), Value::to_string);
    (!holds).then(|| format!("{place}: expected {name} {:?}, found {found}", matcher.get("value")))
}

/// True where every item can be matched with an entry of its own.
fn pairs_up(items: &[Value], found: &[Value]) -> bool {
    let Some((first, rest)) = items.split_first() else { return true };
    (0..found.len()).any(|at| {
        let others = [&found[..at], &found[at + 1..]].concat();
        compare("", first, Some(&found[at])).is_none() && pairs_up(rest, &others)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differs(expected: &Value, actual: &Value) -> bool {
        difference(expected, actual).is_some()
    }

    #[test]
    fn objects_are_subsets_and_arrays_are_not() {
        assert!(!differs(&json!({ "a": 1, "warnings_allowed": true }), &json!({ "a": 1.0, "b": 2 })));
        assert!(differs(&json!({ "a": null }), &json!({})));
        assert!(!differs(&json!({ "a": null }), &json!({ "a": null })));
        assert!(differs(&json!([]), &json!([1])));
        assert!(differs(&json!([1, 2]), &json!([2, 1])));
    }

    #[test]
    fn matchers_match_what_they_name() {
        let is = |name: &str, value: Value| json!({ "assert": name, "value": value });
        assert!(!differs(&json!({ "a": is("present", json!(0)) }), &json!({ "a": null })));
        assert!(differs(&json!({ "a": is("present", json!(0)) }), &json!({})));
        assert!(differs(&is("nonempty_string", json!(0)), &json!(" ")));
        assert!(!differs(&is("id_prefix", json!("run_")), &json!("run_1")));
        let items =
            json!({ "assert": "unordered_array", "items": [{ "a": { "assert": "present" } }, { "a": 1 }] });
        assert!(!differs(&items, &json!([{ "a": 1 }, { "a": 2 }])));
        assert!(differs(&items, &json!([{ "a": 3 }, { "a": 2 }])));
        assert!(differs(&is("unheard_of", json!(0)), &json!(1)));
    }
}

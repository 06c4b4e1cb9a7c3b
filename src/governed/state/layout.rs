//! The layout of a state in its file, chosen so that Git merges the states of completed runs by itself.
//!
//! A state is indented, as other tools of the format write it, with `schema_version` last; where the run is
//! completed, all of the other members are in one line. Branches that each have a completed run then differ
//! in that line alone, and both sides' lines, one after the other, are JSON in which the later one counts for
//! every reader. Reading is the same for every layout. Implements G15.

use super::{RunStatus, State, json};
use serde_json::Value;

/// The member that every state ends with.
const LAST: &str = "schema_version";

/// Returns the text of the state's file.
pub(super) fn page(state: &State) -> String {
    let mut members = state.object().clone();
    let Some(last) = members.shift_remove(LAST) else { return json::page(&state.to_value()) };
    if state.status() != Some(RunStatus::Completed) || members.is_empty() {
        members.insert(LAST.to_owned(), last);
        return json::page(&Value::Object(members));
    }
    let members = members.iter().map(|(key, value)| format!("{}: {value}, ", Value::from(key.as_str())));
    let members: String = members.collect();
    format!("{{\n  {}\n  \"{LAST}\": {last}\n}}\n", members.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(status: &str, run: &str) -> State {
        let state = json!({
            "schema_version": "1.1", "run_id": run, "status": status, "phase": "p \"1\"",
            "budget_status": { "spent_usd": 1, "remaining_usd": null }, "completed_at": null,
        });
        State::from_value(state).unwrap()
    }

    #[test]
    fn every_layout_is_read_as_what_was_written() {
        for status in ["active", "completed"] {
            let state = state(status, "run_a");
            let text = page(&state);
            let read = State::from_value(serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(read, state, "{text}");
            assert!(text.ends_with("\n  \"schema_version\": \"1.1\"\n}\n"), "{text}");
        }
        let bare = State::from_object(json!({ "status": "completed" }).as_object().unwrap().clone());
        assert_eq!(page(&bare), "{\n  \"status\": \"completed\"\n}\n");
    }

    /// G15: the union of the lines of a completed run's state and of another state reads as the other state.
    #[test]
    fn lines_of_both_sides_are_the_second_side() {
        for status in ["active", "completed"] {
            let (first, second) = (page(&state("completed", "run_a")), state(status, "run_b"));
            let end = "  \"schema_version\": \"1.1\"\n}\n";
            let begun = first.strip_suffix(end).unwrap();
            let both = format!("{begun}{}", page(&second).strip_prefix("{\n").unwrap());
            assert_eq!(State::from_value(serde_json::from_str(&both).unwrap()).unwrap(), second, "{both}");
        }
    }
}

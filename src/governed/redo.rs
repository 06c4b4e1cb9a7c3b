//! Doing what a journal says, as far as it is not done: after a crash as often as it takes.
//!
//! The process that takes the lock redoes what killed processes left ([`recover`]). Redoing is idempotent: an appended
//! line is looked for where it was to stand (one of the history by turn and accepted sequence too), a torn one
//! is cut off; the state is written where it is still the one before, and where another tool has written it
//! meanwhile, only what this change changed is carried over. A journal of the original tool, which knows
//! neither places nor the state before, is redone the same way. Implements G1.

use super::journal::{HISTORY, LEDGER};
use super::json::{self, Object};
use super::root::Root;
use super::state::State;
use super::{GovernedError, disk, lines, state};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Finishes what killed processes left, oldest first. The lock is held.
pub(super) fn recover(root: &Root) -> Result<(), GovernedError> {
    for folder in ["accept", "lifecycle"] {
        let folder = root.join(disk::TRANSACTIONS).join(folder);
        let mut journals = Vec::new();
        for name in disk::names(root, &folder)? {
            if !name.as_encoded_bytes().ends_with(b".json") {
                continue;
            }
            let path = folder.join(name);
            let bytes = disk::read(root, &path)?.unwrap_or_default();
            match serde_json::from_slice(&bytes) {
                Ok(Value::Object(journal)) => journals.push((path, journal)),
                Ok(_) => return Err(GovernedError::UnreadableJournal { path, source: None }),
                Err(e) => return Err(GovernedError::UnreadableJournal { path, source: Some(e) }),
            }
        }
        journals.sort_by(|(_, a), (_, b)| json::text(a, "prepared_at").cmp(&json::text(b, "prepared_at")));
        for (path, journal) in journals {
            redo(root, &journal, &path)?;
        }
    }
    // Last: what a journal is to move is aside until then.
    disk::sweep(root)
}

/// Does what a journal says, as far as it is not done, and removes it.
pub(super) fn redo(root: &Root, journal: &Object, path: &Path) -> Result<(), GovernedError> {
    let key = json::object(journal, "history_entry");
    for (file, at, text) in appends(journal) {
        local(root, &file, path)?;
        append_once(root, &file, at, &text, key.filter(|_| file == HISTORY))?;
    }
    write_state(root, journal)?;
    for append in json::list(journal, "later_appends").iter().filter_map(Value::as_object) {
        let (file, text) = (json::text(append, "file"), json::text(append, "text"));
        if let (Some(file), Some(text)) = (file, text) {
            local(root, file, path)?;
            append_once(root, file, json::count(append, "at").unwrap_or(0), text, None)?;
        }
    }
    for step in json::list(journal, "moves").iter().filter_map(Value::as_object) {
        if let (Some(from), Some(to)) = (json::text(step, "from"), json::text(step, "to")) {
            let (from, to) = (local(root, from, path)?, local(root, to, path)?);
            // Gone: it was moved before the crash, and what is there now is what took the place.
            if disk::kind(root, &from)?.is_some() {
                disk::remove_tree(root, &to)?;
                disk::rename(root, &from, &to)?;
            }
        }
    }
    for step in json::list(journal, "writes").iter().filter_map(Value::as_object) {
        if let (Some(file), Some(text)) = (json::text(step, "file"), json::text(step, "text")) {
            disk::write_whole(root, &local(root, file, path)?, text.as_bytes())?;
        }
    }
    for removal in removals(journal) {
        disk::remove_tree(root, &local(root, &removal, path)?)?;
    }
    disk::remove_file(root, path)?;
    disk::sync_parent(root, path)
}

/// The appends before the state; those of the original tool are its entries.
fn appends(journal: &Object) -> Vec<(String, u64, String)> {
    if let Some(Value::Array(all)) = journal.get("appends") {
        let read = |append: &Value| {
            let append = append.as_object()?;
            let (file, text) = (json::text(append, "file")?, json::text(append, "text")?);
            Some((file.to_owned(), json::count(append, "at").unwrap_or(0), text.to_owned()))
        };
        return all.iter().filter_map(read).collect();
    }
    let history = journal.get("history_entry").filter(|entry| entry.is_object());
    let history = history.map(|entry| (HISTORY.to_owned(), 0, json::line(entry)));
    let ledger = json::list(journal, "ledger_entries").iter().map(|e| (LEDGER.to_owned(), 0, json::line(e)));
    history.into_iter().chain(ledger).collect()
}

fn removals(journal: &Object) -> Vec<String> {
    if journal.contains_key("removals") {
        return json::texts(journal, "removals").into_iter().map(str::to_owned).collect();
    }
    match json::text(journal, "turn_id").filter(|id| state::is_safe_id(id)) {
        Some(id) => state::turn_folders(id).into(),
        None => Vec::new(),
    }
}

/// A path of a journal, which must stay below the root.
fn local(root: &Root, path: &str, journal: &Path) -> Result<PathBuf, GovernedError> {
    let is_local = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !is_local || path.is_empty() {
        return Err(GovernedError::UnreadableJournal { path: journal.to_owned(), source: None });
    }
    Ok(root.join(path))
}

/// Appends a text that was to stand at an offset, unless it is there.
fn append_once(
    root: &Root,
    file: &str,
    at: u64,
    text: &str,
    key: Option<&Object>,
) -> Result<(), GovernedError> {
    let path = root.join(file);
    let (length, _) = disk::end(root, &path)?;
    if length == at {
        return disk::append(root, &path, text);
    }
    // The file is not as it was left: the line may stand anywhere in it.
    let whole = disk::read(root, &path)?.unwrap_or_default();
    let wanted = text.trim_start_matches('\n').as_bytes();
    let is_there = whole.windows(wanted.len().max(1)).any(|window| window == wanted)
        || key.is_some_and(|key| has_entry(root, &path, key));
    if is_there {
        return Ok(());
    }
    let tail = usize::try_from(at).ok().and_then(|at| whole.get(at..));
    if tail.is_some_and(|tail| text.as_bytes().starts_with(tail)) {
        disk::cut(root, &path, at)?;
        return disk::append(root, &path, text);
    }
    let (_, torn) = disk::end(root, &path)?;
    let text = text.trim_start_matches('\n');
    disk::append(root, &path, &if torn { format!("\n{text}") } else { text.to_owned() })
}

/// True where the history has this turn at this sequence.
fn has_entry(root: &Root, path: &Path, key: &Object) -> bool {
    let mut found = false;
    let read = lines::backwards(root, path, |entry| {
        found = ["turn_id", "accepted_sequence", "run_id"].iter().all(|k| entry.get(*k) == key.get(*k));
        !found
    });
    read.is_ok() && found
}

fn write_state(root: &Root, journal: &Object) -> Result<(), GovernedError> {
    let Some(next) = json::object(journal, "next_state") else { return Ok(()) };
    let current = match state::read(root)? {
        Some(current) => current.object().clone(),
        // Removed since, or never there: the operation was to write it.
        None => return state::write(root, &State::from_object(next.clone())),
    };
    if current == *next {
        return Ok(());
    }
    let previous = json::object(journal, "previous_state");
    if previous.is_some_and(|previous| current == *previous) {
        return state::write(root, &State::from_object(next.clone()));
    }
    if is_done(&current, journal) {
        return Ok(());
    }
    // Another tool has written it since: what it wrote stays, with this change in it.
    let Some(previous) = previous else { return state::write(root, &State::from_object(next.clone())) };
    state::write(root, &State::from_object(carried(&current, previous, next)))
}

/// True for a state that has gone on from this acceptance.
fn is_done(current: &Object, journal: &Object) -> bool {
    let Some(turn) = json::text(journal, "turn_id") else { return false };
    let has_turn = json::object(current, "active_turns").is_some_and(|turns| turns.contains_key(turn));
    let (reached, sequence) =
        (json::count(current, "turn_sequence"), json::count(journal, "accepted_sequence"));
    !has_turn && sequence.is_some() && reached >= sequence
}

/// `current` with what changed from `before` to `after`.
fn carried(current: &Object, before: &Object, after: &Object) -> Object {
    let mut result = current.clone();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        result.shift_remove(key);
    }
    for (key, value) in after {
        let old = before.get(key);
        if old == Some(value) {
            continue;
        }
        let merged = match (result.get(key), old, value) {
            (Some(Value::Object(now)), Some(Value::Object(old)), Value::Object(new)) => {
                Value::Object(carried(now, old, new))
            }
            _ => value.clone(),
        };
        result.insert(key.clone(), merged);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use serde_json::json;

    fn project() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path()).with_sync(false);
        (folder, root)
    }

    fn put(root: &Root, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn text(root: &Root, path: &str) -> String {
        std::fs::read_to_string(root.join(path)).unwrap_or_default()
    }

    #[test]
    fn a_line_is_appended_once_whatever_stands_there() {
        let line = "{\"id\":1}\n";
        for (found, wanted) in [
            ("old\n", "old\n{\"id\":1}\n"),
            ("old\n{\"id\":1}\n", "old\n{\"id\":1}\n"),
            ("old\n{\"i", "old\n{\"id\":1}\n"),
            ("old\nother\n", "old\nother\n{\"id\":1}\n"),
            ("old\nother", "old\nother\n{\"id\":1}\n"),
            ("old\nother\n{\"id\":1}\nmore\n", "old\nother\n{\"id\":1}\nmore\n"),
            ("{\"id\":1}\n", "{\"id\":1}\n"),
            ("", "{\"id\":1}\n"),
        ] {
            let (_folder, root) = project();
            put(&root, "x.jsonl", found);
            for _ in 0..2 {
                append_once(&root, "x.jsonl", 4, line, None).unwrap();
                assert_eq!(text(&root, "x.jsonl"), wanted, "{found:?}");
            }
        }
    }

    #[test]
    fn a_journal_of_the_original_tool_is_redone_once() {
        let (_folder, root) = project();
        let entry = json!({ "turn_id": "turn_1", "run_id": "run_1", "accepted_sequence": 2 });
        let decision = json!({ "id": "DEC-001", "turn_id": "turn_1" });
        let journal = json!({
            "transaction_id": "txn_1", "kind": "accept_turn", "turn_id": "turn_1", "status": "prepared",
            "prepared_at": "2026-01-01T00:00:00.000Z", "accepted_sequence": 2, "history_entry": entry,
            "ledger_entries": [decision], "next_state": { "status": "active", "turn_sequence": 2, "active_turns": {} },
        });
        // Written by another hand: another order of keys.
        put(&root, HISTORY, "{\"accepted_sequence\":2,\"run_id\":\"run_1\",\"turn_id\":\"turn_1\"}\n");
        put(&root, ".agentxchain/state.json", "{\"turn_sequence\":1,\"active_turns\":{\"turn_1\":{}}}");
        put(&root, ".agentxchain/staging/turn_1/turn-result.json", "{}");
        put(&root, ".agentxchain/transactions/accept/txn_1.json", &journal.to_string());
        drop(acquire_lock(&root).unwrap());
        assert_eq!(text(&root, HISTORY).lines().count(), 1);
        assert_eq!(text(&root, LEDGER).lines().count(), 1);
        assert!(text(&root, ".agentxchain/state.json").contains("\"turn_sequence\": 2"));
        assert!(!root.join(".agentxchain/staging/turn_1").exists());
        assert!(!root.join(".agentxchain/transactions/accept/txn_1.json").exists());
    }

    #[test]
    fn what_another_tool_wrote_meanwhile_stays() {
        let before = json!({ "a": 1, "turns": { "x": {}, "y": {} }, "gone": 1 });
        let after = json!({ "a": 2, "turns": { "y": {} } });
        let current = json!({ "a": 1, "turns": { "x": {}, "y": {}, "z": {} }, "gone": 1, "theirs": true });
        let of = |value: &Value| value.as_object().cloned().unwrap();
        let merged = carried(&of(&current), &of(&before), &of(&after));
        assert_eq!(Value::Object(merged), json!({ "a": 2, "turns": { "y": {}, "z": {} }, "theirs": true }));
    }

    #[test]
    fn a_garbled_journal_stops_everything_and_a_wicked_one_does_nothing() {
        let (_folder, root) = project();
        put(&root, "victim.txt", "kept");
        put(&root, ".agentxchain/transactions/lifecycle/txn_1.json", "{ half");
        assert!(matches!(acquire_lock(&root), Err(GovernedError::UnreadableJournal { .. })));
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().join("profile");
        std::fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
        std::os::unix::fs::symlink(&target, root.join("TALK.md")).unwrap();
        let far = target.to_str().unwrap();
        let append = |file: &str| json!([{ "file": file, "at": 4, "text": "echo owned\n" }]);
        for wicked in [
            json!({ "kind": "x", "removals": ["a/../../victim.txt"], "appends": [] }),
            json!({ "kind": "x", "appends": append(far) }),
            json!({ "kind": "x", "appends": append("../victim.txt") }),
            json!({ "kind": "x", "appends": append("link/profile") }),
            json!({ "kind": "x", "appends": append("TALK.md") }),
            json!({ "kind": "x", "appends": [], "later_appends": append(far) }),
            json!({ "kind": "x", "appends": [], "writes": [{ "file": "link/profile", "text": "owned" }] }),
            json!({ "kind": "x", "appends": [], "moves": [{ "from": "victim.txt", "to": "link/profile" }] }),
            json!({ "kind": "x", "appends": [], "removals": ["link/profile"] }),
        ] {
            put(&root, ".agentxchain/transactions/lifecycle/txn_1.json", &wicked.to_string());
            assert!(acquire_lock(&root).is_err(), "{wicked}");
            assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept", "{wicked}");
            assert_eq!(text(&root, "victim.txt"), "kept", "{wicked}");
        }
    }
}

//! Does what a journal says and what is not done yet: after a crash, as often as it takes.
//!
//! The process that takes the lock redoes what killed processes left ([`recover`]). Redoing is idempotent. A
//! text is appended only where the file does not have it yet (a line of the history is also looked for by its
//! turn and sequence), and a torn one is cut off before. The state is written where it is still the one
//! before; where another tool has written it meanwhile, only what this change changed is carried over. A
//! journal of the original tool, which has neither offsets nor the state before, is redone the same way.
//! Implements G1.

use super::journal::{HISTORY, LEDGER, TALK};
use super::json::{self, Object};
use super::records::HistoryEntry;
use super::root::Root;
use super::state::State;
use super::{GovernedError, disk, lenient, lines, state};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Finishes what killed processes left: acceptances first, then other operations, of each kind the oldest
/// first. The caller holds the lock.
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
            let read: Result<Value, _> = serde_json::from_slice(&bytes);
            match read.map(|journal| lenient::read::<Journal>(&journal)) {
                Ok(Some(journal)) => journals.push((path, journal)),
                Ok(None) => return Err(GovernedError::UnreadableJournal { path, source: None }),
                Err(e) => return Err(GovernedError::UnreadableJournal { path, source: Some(e) }),
            }
        }
        journals.sort_by(|(_, a), (_, b)| a.prepared_at.cmp(&b.prepared_at));
        for (path, journal) in journals {
            redo(root, &journal, &path)?;
        }
    }
    // Swept last, because until now the files aside include those that a journal is to move.
    disk::sweep(root)
}

/// A journal as it is read: of this program, or of the original tool, which wrote entries and no appends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Journal {
    #[serde(deserialize_with = "lenient::value")]
    turn_id: Option<String>,
    #[serde(deserialize_with = "lenient::value")]
    prepared_at: Option<String>,
    #[serde(deserialize_with = "lenient::whole")]
    accepted_sequence: Option<u64>,
    #[serde(deserialize_with = "lenient::value")]
    history_entry: Option<Object>,
    #[serde(deserialize_with = "lenient::value")]
    ledger_entries: Option<Vec<Value>>,
    #[serde(deserialize_with = "lenient::value")]
    next_state: Option<Object>,
    #[serde(deserialize_with = "lenient::value")]
    previous_state: Option<Object>,
    #[serde(deserialize_with = "lenient::maybe_parts")]
    appends: Option<Vec<Append>>,
    #[serde(deserialize_with = "lenient::parts")]
    later_appends: Vec<Append>,
    #[serde(deserialize_with = "lenient::parts")]
    moves: Vec<Move>,
    #[serde(deserialize_with = "lenient::parts")]
    writes: Vec<Whole>,
    /// Missing in older journals, which meant the turn's own folders; a value that is not a list removes
    /// nothing.
    #[serde(deserialize_with = "lenient::present_texts")]
    removals: Option<Vec<String>>,
}

/// A text that is to stand in a file from this offset on.
#[derive(Debug, Clone, Deserialize)]
struct Append {
    file: String,
    #[serde(default, deserialize_with = "lenient::whole")]
    at: Option<u64>,
    text: String,
}

/// A file or folder that is to take another's place.
#[derive(Debug, Deserialize)]
struct Move {
    from: String,
    to: String,
}

/// A file that is to hold this text and no other.
#[derive(Debug, Deserialize)]
struct Whole {
    file: String,
    text: String,
}

/// Does what a journal says and what is not done yet, and removes the journal.
pub(super) fn redo(root: &Root, journal: &Journal, path: &Path) -> Result<(), GovernedError> {
    let key = journal.history_entry.clone().map(HistoryEntry::from_object);
    for Append { file, at, text } in journal.appends() {
        local(root, &file, path)?;
        append_once(root, &file, at.unwrap_or(0), &text, key.as_ref().filter(|_| file == HISTORY))?;
    }
    write_state(root, journal)?;
    for Append { file, at, text } in &journal.later_appends {
        local(root, file, path)?;
        append_once(root, file, at.unwrap_or(0), text, None)?;
    }
    for Move { from, to } in &journal.moves {
        let (from, to) = (local(root, from, path)?, local(root, to, path)?);
        // Where the source is gone, it was moved before the crash, and the target is what was moved.
        if disk::kind(root, &from)?.is_some() {
            disk::remove_tree(root, &to)?;
            disk::rename(root, &from, &to)?;
        }
    }
    for Whole { file, text } in &journal.writes {
        disk::write_whole(root, &local(root, file, path)?, text.as_bytes())?;
    }
    for removal in journal.removals() {
        disk::remove_tree(root, &local(root, &removal, path)?)?;
    }
    disk::remove_file(root, path)?;
    disk::sync_parent(root, path)
}

impl Journal {
    /// Returns the appends before the state; those of the original tool's journals are made of its entries.
    fn appends(&self) -> Vec<Append> {
        if let Some(all) = &self.appends {
            return all.clone();
        }
        let append = |file: &str, text: String| Append { file: file.to_owned(), at: None, text };
        let history = self.history_entry.iter().map(|entry| append(HISTORY, json::line(entry)));
        let ledger = self.ledger_entries.iter().flatten().map(|entry| append(LEDGER, json::line(entry)));
        history.chain(ledger).collect()
    }

    fn removals(&self) -> Vec<String> {
        let of_turn = || {
            let id = self.turn_id.as_deref().filter(|id| state::is_safe_id(id));
            id.map(|id| state::turn_folders(id).into()).unwrap_or_default()
        };
        self.removals.clone().unwrap_or_else(of_turn)
    }
}

/// Returns the place of a path in a journal, which is one of the run's own files. Any other path makes the journal
/// unreadable: a branch may bring a journal along, and what it names must not be a file of the project, let alone
/// Git's.
fn local(root: &Root, path: &str, journal: &Path) -> Result<PathBuf, GovernedError> {
    use std::path::Component;
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        _ => false,
    };
    let is_own = path == TALK || path.strip_prefix(".agentxchain/").is_some_and(|rest| !rest.is_empty());
    if !is_own || !Path::new(path).components().all(is_plain) {
        return Err(GovernedError::UnreadableJournal { path: journal.to_owned(), source: None });
    }
    Ok(root.join(path))
}

/// Appends a text that belongs at an offset, unless the file has it already.
fn append_once(
    root: &Root,
    file: &str,
    at: u64,
    text: &str,
    key: Option<&HistoryEntry>,
) -> Result<(), GovernedError> {
    let path = root.join(file);
    let (length, _) = disk::end(root, &path)?;
    if length == at {
        return disk::append(root, &path, text);
    }
    // The file has changed since the journal was written: the text may stand anywhere in it.
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
fn has_entry(root: &Root, path: &Path, key: &HistoryEntry) -> bool {
    let mut found = false;
    let read = lines::backwards(root, path, |entry| {
        found = HistoryEntry::from_object(entry).is_same(key);
        !found
    });
    read.is_ok() && found
}

fn write_state(root: &Root, journal: &Journal) -> Result<(), GovernedError> {
    let Some(next) = &journal.next_state else { return Ok(()) };
    let written = || state::write(root, &State::from_object(next.clone()));
    // The state was removed since, or never existed: the operation was to write it.
    let Some(current) = state::read(root)? else { return written() };
    if current.object() == next {
        return Ok(());
    }
    match &journal.previous_state {
        Some(previous) if current.object() == previous => written(),
        _ if is_done(&current, journal) => Ok(()),
        // Another tool has written the state since: what that tool wrote stays, with this change in it.
        Some(previous) => state::write(root, &State::from_object(carried(current.object(), previous, next))),
        None => written(),
    }
}

/// True for a state that has this acceptance behind it: the turn is not active, and the counter has got
/// there.
fn is_done(current: &State, journal: &Journal) -> bool {
    let (Some(turn), Some(sequence)) = (&journal.turn_id, journal.accepted_sequence) else { return false };
    !current.turns().is_some_and(|turns| turns.contains_key(turn)) && current.turn_sequence() >= sequence
}

/// Returns `current` with what changed from `before` to `after`.
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
        // Written by another tool: the keys have another order.
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
            json!({ "kind": "x", "appends": [], "removals": ["victim.txt"] }),
            json!({ "kind": "x", "appends": append("victim.txt") }),
            json!({ "kind": "x", "appends": [], "writes": [{ "file": ".git/config", "text": "owned" }] }),
            json!({ "kind": "x", "appends": [], "moves": [{ "from": ".agentxchain/x", "to": ".git" }] }),
            json!({ "kind": "x", "appends": [], "moves": [{ "from": "victim.txt", "to": ".agentxchain/x" }] }),
            json!({ "kind": "x", "appends": [], "writes": [{ "file": ".agentxchain/.Git/config", "text": "" }] }),
            json!({ "kind": "x", "appends": [], "removals": [".agentxchain"] }),
            json!({ "kind": "x", "appends": [], "removals": [".agentxchain/../victim.txt"] }),
        ] {
            put(&root, ".agentxchain/transactions/lifecycle/txn_1.json", &wicked.to_string());
            assert!(acquire_lock(&root).is_err(), "{wicked}");
            assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept", "{wicked}");
            assert_eq!(text(&root, "victim.txt"), "kept", "{wicked}");
        }
    }
}

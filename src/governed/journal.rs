//! What an operation changes, committed as a whole: written down first, then done, redone after a crash.
//!
//! `Change::new(kind, before, after)`, add records, moves and removals, then `commit`. A change of more than
//! one file is first a journal below `.agentxchain/transactions/`: whoever takes the lock next redoes what a
//! killed process left ([`recover`]). Redoing is idempotent: an appended line is looked for where it was to
//! stand (history by turn and accepted sequence too), a torn one is cut off, the state is written where it
//! is still the one before, and where another tool has written it meanwhile, only what this change changed
//! is carried over. A journal of the original tool is redone the same way. Implements G1.

use super::json::{self, Object};
use super::root::Root;
use super::state::State;
use super::{GovernedError, disk, lines, state};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) const HISTORY: &str = ".agentxchain/history.jsonl";
pub(super) const LEDGER: &str = ".agentxchain/decision-ledger.jsonl";
pub(super) const EVENTS: &str = ".agentxchain/events.jsonl";
pub(super) const REPO_DECISIONS: &str = ".agentxchain/repo-decisions.jsonl";
pub(super) const TALK: &str = "TALK.md";

/// What one operation does to a project's files.
#[derive(Debug)]
pub(super) struct Change {
    kind: &'static str,
    turn_id: Option<String>,
    accepted_sequence: Option<u64>,
    before: Option<State>,
    after: Option<State>,
    history: Option<Object>,
    /// Before the state is written: file and text.
    first: Vec<(&'static str, String)>,
    /// After it.
    then: Vec<(&'static str, String)>,
    ledger: Vec<Value>,
    /// What takes another's place.
    moves: Vec<(String, String)>,
    /// Whole files.
    writes: Vec<(String, String)>,
    removals: Vec<String>,
}

impl Change {
    /// A change of the state alone, so far.
    pub(super) fn new(kind: &'static str, before: &State, after: State) -> Self {
        Self { before: Some(before.clone()), after: Some(after), ..Self::of_files(kind) }
    }

    /// A change that leaves the state as it is.
    pub(super) fn of_files(kind: &'static str) -> Self {
        Self {
            kind,
            turn_id: None,
            accepted_sequence: None,
            before: None,
            after: None,
            history: None,
            first: Vec::new(),
            then: Vec::new(),
            ledger: Vec::new(),
            moves: Vec::new(),
            writes: Vec::new(),
            removals: Vec::new(),
        }
    }

    /// The turn that it is about.
    pub(super) fn turn(mut self, id: &str) -> Self {
        self.turn_id = Some(id.to_owned());
        self
    }

    /// The turn's line in the history; the key by which a redo knows it.
    pub(super) fn history(mut self, entry: Object) -> Self {
        self.accepted_sequence = json::count(&entry, "accepted_sequence");
        self.first.insert(0, (HISTORY, json::line(&Value::Object(entry.clone()))));
        self.history = Some(entry);
        self
    }

    /// Lines in the ledger.
    pub(super) fn ledger(mut self, entries: Vec<Value>) -> Self {
        let text: String = entries.iter().map(json::line).collect();
        if !text.is_empty() {
            self.first.push((LEDGER, text));
        }
        self.ledger.extend(entries);
        self
    }

    /// A text at the end of another file that is written before the state.
    pub(super) fn append(mut self, file: &'static str, text: String) -> Self {
        if !text.is_empty() {
            self.first.push((file, text));
        }
        self
    }

    /// Lines in the log of events, after the state.
    pub(super) fn events(mut self, events: Vec<Value>) -> Self {
        let text: String = events.iter().map(json::line).collect();
        if !text.is_empty() {
            self.then.push((EVENTS, text));
        }
        self
    }

    /// Has one file or folder take another's place.
    pub(super) fn replace(mut self, from: String, to: String) -> Self {
        self.moves.push((from, to));
        self
    }

    /// Writes a whole file.
    pub(super) fn write(mut self, file: &str, text: String) -> Self {
        self.writes.push((file.to_owned(), text));
        self
    }

    /// Removes a folder with everything in it.
    pub(super) fn remove(mut self, path: String) -> Self {
        self.removals.push(path);
        self
    }

    /// Does it, all or nothing. The lock is held. Returns the state that was written.
    pub(super) fn commit(self, root: &Root) -> Result<Option<State>, GovernedError> {
        let is_one_file = self.first.is_empty()
            && self.then.is_empty()
            && self.moves.is_empty()
            && self.writes.is_empty()
            && self.removals.is_empty();
        if is_one_file {
            if let Some(after) = &self.after {
                state::write(root, after)?;
            }
            return Ok(self.after);
        }
        let id = root.id("txn");
        let path = folder_of(root, self.kind).join(format!("{id}.json"));
        let journal = self.journal(root, &id)?;
        disk::write_whole(root, &path, json::page(&journal).as_bytes())?;
        let Value::Object(journal) = journal else { return Ok(self.after) };
        redo(root, &journal, &path)?;
        Ok(self.after)
    }

    fn journal(&self, root: &Root, id: &str) -> Result<Value, GovernedError> {
        let of = self.after.as_ref();
        let appends = |all: &[(&'static str, String)]| -> Result<Vec<Value>, GovernedError> {
            let mut appends = Vec::new();
            for (file, text) in all {
                let (at, torn) = disk::end(&root.join(file))?;
                let text = if torn { format!("\n{text}") } else { text.clone() };
                appends.push(json!({ "file": file, "at": at, "text": text }));
            }
            Ok(appends)
        };
        let pairs = |all: &[(String, String)], a: &str, b: &str| -> Vec<Value> {
            all.iter().map(|(x, y)| json!({ a: x, b: y })).collect()
        };
        let plain = |state: &Option<State>| state.as_ref().map_or(Value::Null, State::to_value);
        Ok(json!({
            "transaction_id": id,
            "kind": self.kind,
            "run_id": json::or_null(of.and_then(State::run_id)),
            "turn_id": json::or_null(self.turn_id.as_deref()),
            "phase": json::or_null(of.and_then(State::phase)),
            "status": "prepared",
            "prepared_at": root.now(),
            "accepted_sequence": self.accepted_sequence,
            "history_entry": self.history.clone().map(Value::Object),
            "ledger_entries": self.ledger,
            "next_state": plain(&self.after),
            "previous_state": plain(&self.before),
            "appends": appends(&self.first)?,
            "later_appends": appends(&self.then)?,
            "moves": pairs(&self.moves, "from", "to"),
            "writes": pairs(&self.writes, "file", "text"),
            "removals": self.removals,
        }))
    }
}

fn folder_of(root: &Root, kind: &str) -> PathBuf {
    let folder = if kind == "accept_turn" { "accept" } else { "lifecycle" };
    root.join(disk::TRANSACTIONS).join(folder)
}

/// Finishes what killed processes left, oldest first. The lock is held.
pub(super) fn recover(root: &Root) -> Result<(), GovernedError> {
    for folder in ["accept", "lifecycle"] {
        let folder = root.join(disk::TRANSACTIONS).join(folder);
        let mut journals = Vec::new();
        for name in disk::names(&folder)?.iter().filter(|name| name.ends_with(".json")) {
            let path = folder.join(name);
            let bytes = disk::read(&path)?.unwrap_or_default();
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
fn redo(root: &Root, journal: &Object, path: &Path) -> Result<(), GovernedError> {
    let key = json::object(journal, "history_entry");
    for (file, at, text) in appends(journal) {
        append_once(root, &file, at, &text, key.filter(|_| file == HISTORY))?;
    }
    write_state(root, journal)?;
    for append in json::list(journal, "later_appends").iter().filter_map(Value::as_object) {
        let (file, text) = (json::text(append, "file"), json::text(append, "text"));
        if let (Some(file), Some(text)) = (file, text) {
            append_once(root, file, json::count(append, "at").unwrap_or(0), text, None)?;
        }
    }
    for step in json::list(journal, "moves").iter().filter_map(Value::as_object) {
        if let (Some(from), Some(to)) = (json::text(step, "from"), json::text(step, "to")) {
            let (from, to) = (local(root, from, path)?, local(root, to, path)?);
            // Gone: it was moved before the crash, and what is there now is what took the place.
            if from.symlink_metadata().is_ok() {
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
    disk::remove_file(path)?;
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
    let (length, _) = disk::end(&path)?;
    if length == at {
        return disk::append(root, &path, text);
    }
    // A file that is shorter than it was is another one: all of it is looked through.
    let from = if length < at { 0 } else { at };
    let tail = disk::read_from(&path, from)?;
    let wanted = text.trim_start_matches('\n').as_bytes();
    let is_there = tail.windows(wanted.len().max(1)).any(|window| window == wanted)
        || key.is_some_and(|key| has_entry(&path, key));
    if is_there {
        return Ok(());
    }
    if from == at && text.as_bytes().starts_with(&tail) {
        disk::cut(root, &path, at)?;
        return disk::append(root, &path, text);
    }
    let (_, torn) = disk::end(&path)?;
    let text = text.trim_start_matches('\n');
    disk::append(root, &path, &if torn { format!("\n{text}") } else { text.to_owned() })
}

/// True where the history has this turn at this sequence.
fn has_entry(path: &Path, key: &Object) -> bool {
    let mut found = false;
    let read = lines::backwards(path, |entry| {
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

//! What an operation changes, committed as a whole: written down first, then done, redone after a crash.
//!
//! `Change::new(kind, before, after)`, add records, moves and removals, then `commit`. A change of more than
//! one file is first a journal below `.agentxchain/transactions/`, and then done by what redoes it after a
//! crash ([`super::redo`]). Implements G1.

use super::json;
use super::root::Root;
use super::state::{RunStatus, State};
use super::{GovernedError, disk, events, history, ledger, redo, state};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) const HISTORY: &str = ".agentxchain/history.jsonl";
pub(crate) const LEDGER: &str = ".agentxchain/decision-ledger.jsonl";
pub(super) const EVENTS: &str = ".agentxchain/events.jsonl";
pub(super) const REPO_DECISIONS: &str = ".agentxchain/repo-decisions.jsonl";
pub(super) const RUN_HISTORY: &str = ".agentxchain/run-history.jsonl";
pub(super) const TALK: &str = "TALK.md";
/// Of the bundles of active turns.
pub(super) const INDEX: &str = ".agentxchain/dispatch/index.json";

/// What one operation does to a project's files.
#[derive(Debug)]
pub(crate) struct Change {
    kind: &'static str,
    turn_id: Option<String>,
    accepted_sequence: Option<u64>,
    before: Option<State>,
    after: Option<State>,
    history: Option<history::Entry>,
    /// Before the state is written: file and text.
    first: Vec<(&'static str, String)>,
    /// After it.
    then: Vec<(&'static str, String)>,
    ledger: Vec<ledger::Line>,
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
    pub(crate) fn of_files(kind: &'static str) -> Self {
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
    pub(super) fn history(mut self, entry: history::Entry) -> Self {
        self.accepted_sequence = Some(entry.accepted_sequence);
        self.first.insert(0, (HISTORY, json::line(&entry)));
        self.history = Some(entry);
        self
    }

    /// Lines in the ledger.
    pub(super) fn ledger(mut self, entries: Vec<ledger::Line>) -> Self {
        let text: String = entries.iter().map(json::line).collect();
        if !text.is_empty() {
            self.first.push((LEDGER, text));
        }
        self.ledger.extend(entries);
        self
    }

    /// A text at the end of another file that is written before the state.
    pub(crate) fn append(mut self, file: &'static str, text: String) -> Self {
        if !text.is_empty() {
            self.first.push((file, text));
        }
        self
    }

    /// Lines in the log of events, after the state.
    pub(super) fn events(mut self, events: &[events::Line]) -> Self {
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
    pub(crate) fn write(mut self, file: &str, text: String) -> Self {
        self.writes.push((file.to_owned(), text));
        self
    }

    /// Removes a folder with everything in it.
    pub(super) fn remove(mut self, path: String) -> Self {
        self.removals.push(path);
        self
    }

    /// Does it, all or nothing. The lock is held. Returns the state that was written.
    pub(crate) fn commit(mut self, root: &Root) -> Result<Option<State>, GovernedError> {
        self.ends(root)?;
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
        redo::redo(root, &journal, &path)?;
        Ok(self.after)
    }

    /// A run that is completed has its line among the runs, and no turn is dispatched: the index is the same for all.
    fn ends(&mut self, root: &Root) -> Result<(), GovernedError> {
        let is_over = |state: &&State| state.status() == Some(RunStatus::Completed);
        let Some(after) = self.after.as_ref().filter(is_over) else { return Ok(()) };
        if self.before.as_ref().is_some_and(|before| is_over(&before)) {
            return Ok(());
        }
        if !history::has_run(root, after)? {
            self.first.push((RUN_HISTORY, json::line(&history::run(root, after))));
        }
        if disk::kind(root, &root.join(INDEX))?.is_some() {
            let none = json!({ "run_id": null, "phase": null, "updated_at": null, "active_turns": {} });
            self.writes.push((INDEX.to_owned(), json::page(&none)));
        }
        Ok(())
    }

    fn journal(&self, root: &Root, id: &str) -> Result<Value, GovernedError> {
        let of = self.after.as_ref();
        let appends = |all: &[(&'static str, String)]| -> Result<Vec<Value>, GovernedError> {
            let mut appends = Vec::new();
            for (file, text) in all {
                let (at, torn) = disk::end(root, &root.join(file))?;
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
            "history_entry": self.history,
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

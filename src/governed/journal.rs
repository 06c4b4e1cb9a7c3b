//! The changes of an operation, committed as a whole: they are written down first, then made, and made again
//! after a crash.
//!
//! A caller makes a `Change::new(kind, before, after)`, adds records, moves and removals, and then calls
//! `commit`. A change of more than one file is first written as a journal below `.agentxchain/transactions/`,
//! and then made by the code that also redoes it after a crash ([`super::redo`]). Implements G1.

use super::bundle::Index;
use super::json::{self, Object};
use super::root::Root;
use super::state::{RunStatus, State};
use super::{GovernedError, disk, events, history, ledger, lenient, redo, state};
use serde::Serialize;
use std::path::PathBuf;

pub(super) const HISTORY: &str = ".agentxchain/history.jsonl";
pub(crate) const LEDGER: &str = ".agentxchain/decision-ledger.jsonl";
pub(super) const EVENTS: &str = ".agentxchain/events.jsonl";
pub(super) const REPO_DECISIONS: &str = ".agentxchain/repo-decisions.jsonl";
pub(super) const RUN_HISTORY: &str = ".agentxchain/run-history.jsonl";
pub(super) const TALK: &str = "TALK.md";
/// The index of the bundles of active turns.
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
    /// Texts that are appended before the state is written, each with its file.
    first: Vec<(&'static str, String)>,
    /// Texts that are appended after the state is written, each with its file.
    then: Vec<(&'static str, String)>,
    ledger: Vec<ledger::Line>,
    /// Files and folders that take the places of others: from and to.
    moves: Vec<(String, String)>,
    /// Files that are written whole, each with its text.
    writes: Vec<(String, String)>,
    removals: Vec<String>,
}

impl Change {
    /// Makes a change that, so far, is one of the state alone.
    pub(super) fn new(kind: &'static str, before: &State, after: State) -> Self {
        Self { before: Some(before.clone()), after: Some(after), ..Self::of_files(kind) }
    }

    /// Makes a change that leaves the state as it is.
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

    /// Sets the turn that the change is about.
    pub(super) fn turn(mut self, id: &str) -> Self {
        self.turn_id = Some(id.to_owned());
        self
    }

    /// Adds the turn's line in the history; by its turn and sequence, a redo recognizes it there.
    pub(super) fn history(mut self, entry: history::Entry) -> Self {
        self.accepted_sequence = Some(entry.accepted_sequence);
        self.first.insert(0, (HISTORY, json::line(&entry)));
        self.history = Some(entry);
        self
    }

    /// Adds lines to the ledger.
    pub(super) fn ledger(mut self, entries: Vec<ledger::Line>) -> Self {
        let text: String = entries.iter().map(json::line).collect();
        if !text.is_empty() {
            self.first.push((LEDGER, text));
        }
        self.ledger.extend(entries);
        self
    }

    /// Adds a text to the end of another file, before the state is written.
    pub(crate) fn append(mut self, file: &'static str, text: String) -> Self {
        if !text.is_empty() {
            self.first.push((file, text));
        }
        self
    }

    /// Adds lines to the event log, after the state is written.
    pub(super) fn events(mut self, events: &[events::Line]) -> Self {
        let text: String = events.iter().map(json::line).collect();
        if !text.is_empty() {
            self.then.push((EVENTS, text));
        }
        self
    }

    /// Adds the move of one file or folder to the place of another, which is replaced.
    pub(super) fn replace(mut self, from: String, to: String) -> Self {
        self.moves.push((from, to));
        self
    }

    /// Adds a file that is written whole.
    pub(crate) fn write(mut self, file: &str, text: String) -> Self {
        self.writes.push((file.to_owned(), text));
        self
    }

    /// Adds the removal of a folder with everything in it.
    pub(super) fn remove(mut self, path: String) -> Self {
        self.removals.push(path);
        self
    }

    /// Makes the change, all or nothing, and returns the state that was written, if any. The caller holds the
    /// lock.
    pub(crate) fn commit(mut self, root: &Root) -> Result<Option<State>, GovernedError> {
        self.ends(root)?;
        if self.after.as_ref().is_some_and(|after| !state::fits(after)) {
            let errors = vec![format!("it must have at most {} bytes", state::STATE_MAX)];
            return Err(GovernedError::InvalidState { path: root.join(state::STATE), errors });
        }
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
        // Made from the journal's own JSON: what is done now is exactly what a redo would do.
        let journal = json::value(&self.journal(root, &id)?);
        disk::write_whole(root, &path, json::page(&journal).as_bytes())?;
        let unreadable = || GovernedError::UnreadableJournal { path: path.clone(), source: None };
        redo::redo(root, &lenient::read(&journal).ok_or_else(unreadable)?, &path)?;
        Ok(self.after)
    }

    /// Adds to a change that completes the run: the run gets its line in `run-history.jsonl`, and the index
    /// becomes empty, because no turn is dispatched. The empty index is the same for all runs.
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
            self.writes.push((INDEX.to_owned(), json::page(&Index::default())));
        }
        Ok(())
    }

    fn journal<'a>(&'a self, root: &Root, id: &'a str) -> Result<Journal<'a>, GovernedError> {
        let of = self.after.as_ref();
        let appends = |all: &[(&'static str, String)]| -> Result<Vec<Append>, GovernedError> {
            let mut appends = Vec::new();
            for (file, text) in all {
                let (at, torn) = disk::end(root, &root.join(file))?;
                let text = if torn { format!("\n{text}") } else { text.clone() };
                appends.push(Append { file, at, text });
            }
            Ok(appends)
        };
        Ok(Journal {
            transaction_id: id,
            kind: self.kind,
            run_id: of.and_then(State::run_id),
            turn_id: self.turn_id.as_deref(),
            phase: of.and_then(State::phase),
            status: "prepared",
            prepared_at: root.now(),
            accepted_sequence: self.accepted_sequence,
            history_entry: self.history.as_ref(),
            ledger_entries: &self.ledger,
            next_state: self.after.as_ref().map(State::object),
            previous_state: self.before.as_ref().map(State::object),
            appends: appends(&self.first)?,
            later_appends: appends(&self.then)?,
            moves: self.moves.iter().map(|(from, to)| Move { from, to }).collect(),
            writes: self.writes.iter().map(|(file, text)| Whole { file, text }).collect(),
            removals: &self.removals,
        })
    }
}

/// A journal; the order of the fields is the order on disk.
#[derive(Serialize)]
struct Journal<'a> {
    transaction_id: &'a str,
    kind: &'static str,
    run_id: Option<&'a str>,
    turn_id: Option<&'a str>,
    phase: Option<&'a str>,
    status: &'static str,
    prepared_at: String,
    accepted_sequence: Option<u64>,
    history_entry: Option<&'a history::Entry>,
    ledger_entries: &'a [ledger::Line],
    next_state: Option<&'a Object>,
    previous_state: Option<&'a Object>,
    appends: Vec<Append>,
    later_appends: Vec<Append>,
    moves: Vec<Move<'a>>,
    writes: Vec<Whole<'a>>,
    removals: &'a [String],
}

/// A text that is to stand in a file from this offset on.
#[derive(Serialize)]
struct Append {
    file: &'static str,
    at: u64,
    text: String,
}

/// A file or folder that is to take another's place.
#[derive(Serialize)]
struct Move<'a> {
    from: &'a str,
    to: &'a str,
}

/// A file that is to hold this text and no other.
#[derive(Serialize)]
struct Whole<'a> {
    file: &'a str,
    text: &'a str,
}

fn folder_of(root: &Root, kind: &str) -> PathBuf {
    let folder = if kind == "accept_turn" { "accept" } else { "lifecycle" };
    root.join(disk::TRANSACTIONS).join(folder)
}

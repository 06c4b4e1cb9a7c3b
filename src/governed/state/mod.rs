//! The governed state, `.agentxchain/state.json`, as it is on disk: every key kept, in its order.
//!
//! [`State`] holds one JSON object and has typed accessors, so that what another tool put there survives.
//! Shapes before `1.1` are understood on reading ([`migrate`]), and written in today's shape with the next
//! change, never by a read. [`check`] holds the invariants that `load_state` promises.

mod check;
mod layout;
mod migrate;
mod status;
mod turn;

pub use status::{RunStatus, TurnStatus};
pub use turn::Turn;

use super::json::{self, Object};
use super::records::{PendingCompletion, PendingTransition};
use super::root::Root;
use super::{Config, GovernedError, disk};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) const STATE: &str = ".agentxchain/state.json";

/// A run's state. Cloning it copies it; only an operation changes what is on disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct State(Object);

/// The key for the turn that left it to a person who goes next.
const LEFT_TO_HUMAN: &str = "left_to_human_by_turn";

impl State {
    /// Makes a state of its JSON; `None` where that is not an object. Nothing else is checked.
    pub fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(object) => Some(Self(migrate::migrated(object))),
            _ => None,
        }
    }

    pub(super) fn from_object(object: Object) -> Self {
        Self(object)
    }

    /// Makes the state of a project that has none: idle.
    pub(super) fn idle(project_id: &str, phase: &str, gates: &[&str]) -> Self {
        let gates: Object = gates.iter().map(|gate| ((*gate).to_owned(), json!("pending"))).collect();
        let state = json!({
            "schema_version": "1.1",
            "run_id": null,
            "project_id": project_id,
            "status": "idle",
            "phase": phase,
            "accepted_integration_ref": null,
            "active_turns": {},
            "turn_sequence": 0,
            "last_completed_turn_id": null,
            "next_recommended_role": null,
            "blocked_on": null,
            "blocked_reason": null,
            "escalation": null,
            "pending_phase_transition": null,
            "pending_run_completion": null,
            "queued_phase_transition": null,
            "queued_run_completion": null,
            "phase_gate_status": gates,
            "budget_status": { "spent_usd": 0, "remaining_usd": null },
            "budget_reservations": {},
            "completed_at": null,
        });
        Self(state.as_object().cloned().unwrap_or_default())
    }

    /// Returns the state as JSON, key by key as on disk.
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Returns the run's status; `None` for a name that is none of the six.
    pub fn status(&self) -> Option<RunStatus> {
        self.status_name().and_then(RunStatus::named)
    }

    /// Returns the name of the run's status, also one that is none of the six.
    pub(crate) fn status_name(&self) -> Option<&str> {
        json::text(&self.0, "status")
    }

    /// Returns the id of the run, once one was initialized.
    pub fn run_id(&self) -> Option<&str> {
        json::filled(&self.0, "run_id")
    }

    /// Returns the phase, by its name in `routing`.
    pub fn phase(&self) -> Option<&str> {
        json::filled(&self.0, "phase")
    }

    /// Returns what a blocked or paused run waits for, such as `human:<reason>` or `human_approval:<gate>`.
    pub fn blocked_on(&self) -> Option<&str> {
        json::filled(&self.0, "blocked_on")
    }

    /// Returns why the run is blocked: `{category, recovery, blocked_at, turn_id}`.
    pub fn blocked_reason(&self) -> Option<&Value> {
        self.set_value("blocked_reason")
    }

    /// Returns what is left of the run's budget, in USD; `None` where it has none.
    pub(crate) fn budget_left(&self) -> Option<f64> {
        let status = json::object(&self.0, "budget_status")?;
        let is_spent = || (status.get("exhausted") == Some(&Value::Bool(true))).then_some(0.0);
        status.get("remaining_usd").and_then(Value::as_f64).or_else(is_spent)
    }

    /// Returns what is reserved of the budget for a turn, in USD.
    pub(crate) fn reserved(&self, turn: &str) -> Option<&Value> {
        json::object(json::object(&self.0, "budget_reservations")?, turn)?.get("reserved_usd")
    }

    /// Returns what is reserved of the budget for all turns, in USD.
    pub(crate) fn all_reserved(&self) -> f64 {
        let all = json::object(&self.0, "budget_reservations").into_iter().flatten();
        all.filter_map(|(turn, _)| self.reserved(turn)?.as_f64()).sum()
    }

    /// Returns the ref of what the workspace was at with the last acceptance, such as `git:<commit>`.
    pub(crate) fn integration_ref(&self) -> Option<&Value> {
        self.0.get("accepted_integration_ref")
    }

    /// Returns why the run is blocked, in words.
    pub fn blocked_detail(&self) -> Option<&str> {
        self.blocked_reason()?.get("recovery")?.get("detail")?.as_str()
    }

    /// Returns the gates with the status of each; `None` for a status that is not a text.
    pub fn gates(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let all = json::object(&self.0, "phase_gate_status").into_iter().flatten();
        all.map(|(gate, status)| (gate.as_str(), status.as_str()))
    }

    /// Returns why the last request to a gate failed, in words; nothing where the gate was passed since.
    pub(crate) fn gate_failure(&self) -> Vec<&str> {
        json::object(&self.0, "last_gate_failure")
            .map(|failure| json::texts(failure, "reasons"))
            .unwrap_or_default()
    }

    /// Returns the phase transition that waits for a person.
    pub fn pending_phase_transition(&self) -> Option<PendingTransition> {
        self.record("pending_phase_transition").map(PendingTransition::from_object)
    }

    /// Returns the completion that waits for a person.
    pub fn pending_run_completion(&self) -> Option<PendingCompletion> {
        self.record("pending_run_completion").map(PendingCompletion::from_object)
    }

    /// Returns the role that is recommended to go next.
    pub fn next_recommended_role(&self) -> Option<&str> {
        json::filled(&self.0, "next_recommended_role")
    }

    /// True where the last accepted turn left it to a person who goes next. The format has no place for that: it
    /// recommends no role then, as before the first turn. The key names the turn, so that it holds no longer once
    /// another was accepted, by whatever tool.
    pub(crate) fn is_left_to_human(&self) -> bool {
        let last = json::filled(&self.0, "last_completed_turn_id");
        last.is_some() && json::filled(&self.0, LEFT_TO_HUMAN) == last
    }

    /// Notes whether this accepted turn left it to a person who goes next.
    pub(super) fn leave_to_human(&mut self, turn_id: &str, is_left: bool) {
        if is_left {
            self.set(LEFT_TO_HUMAN, turn_id);
        } else {
            self.0.shift_remove(LEFT_TO_HUMAN);
        }
    }

    /// Returns the counter that assignments and acceptances share.
    pub fn turn_sequence(&self) -> u64 {
        json::count(&self.0, "turn_sequence").unwrap_or(0)
    }

    /// Returns the active turn of this id.
    pub fn turn(&self, id: &str) -> Option<Turn> {
        self.turns()?.get(id)?.as_object().cloned().map(Turn::from_object)
    }

    /// Returns any field, as on disk.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    fn set_value(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// Returns the object under a key; `None` where the key is missing or null. A value that is not an object
    /// counts as there, and is read as an empty one.
    fn record(&self, key: &str) -> Option<Object> {
        self.set_value(key).map(|value| value.as_object().cloned().unwrap_or_default())
    }

    pub(super) fn object(&self) -> &Object {
        &self.0
    }

    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    /// Changes the object under a key; a value that is not an object becomes an empty one before.
    pub(super) fn edit(&mut self, key: &str, change: impl FnOnce(&mut Object)) {
        let value = self.0.entry(key).or_insert_with(|| json!({}));
        let mut object = std::mem::take(value).as_object().cloned().unwrap_or_default();
        change(&mut object);
        *value = Value::Object(object);
    }

    pub(super) fn turns(&self) -> Option<&Object> {
        json::object(&self.0, "active_turns")
    }

    /// Returns the active turns, in the order of their assignment.
    pub(crate) fn active_turns(&self) -> Vec<Turn> {
        let turns = self.turns().into_iter().flatten();
        turns.filter_map(|(_, turn)| turn.as_object().cloned().map(Turn::from_object)).collect()
    }

    pub(super) fn put_turn(&mut self, turn: &Turn) {
        self.edit("active_turns", |turns| {
            turns.insert(turn.id().to_owned(), turn.to_value());
        });
    }
}

/// Returns the active turns by their ids, in the order of their assignment; an entry that is not an object is
/// left out.
pub fn get_active_turns(state: &State) -> IndexMap<String, Turn> {
    state.active_turns().into_iter().map(|turn| (turn.id().to_owned(), turn)).collect()
}

/// Returns how many turns are active.
pub fn get_active_turn_count(state: &State) -> usize {
    state.turns().map_or(0, |turns| turns.values().filter(|turn| turn.is_object()).count())
}

/// Returns the active turn, where there is exactly one.
pub fn get_active_turn(state: &State) -> Option<Turn> {
    let mut turns = state.active_turns();
    if turns.len() == 1 { turns.pop() } else { None }
}

/// Returns where a turn's result is staged, below the root:
/// `.agentxchain/staging/<turn id>/turn-result.json`.
pub fn get_turn_staging_result_path(turn_id: &str) -> PathBuf {
    PathBuf::from(format!(".agentxchain/staging/{turn_id}/turn-result.json"))
}

/// Returns a turn's staging folder and its dispatch folder, below the root.
pub(super) fn turn_folders(id: &str) -> [String; 2] {
    [format!(".agentxchain/staging/{id}"), dispatch_folder(id)]
}

/// Returns the folder of a turn's dispatch bundle, below the root.
pub(crate) fn dispatch_folder(id: &str) -> String {
    format!(".agentxchain/dispatch/turns/{id}")
}

/// True for an id that is a plain file name, so that no path made of it leaves its folder.
pub(super) fn is_safe_id(id: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    !id.is_empty() && !id.starts_with('.') && id.len() <= 200 && id.bytes().all(is_plain)
}

/// Loads the state and checks it, also against the configuration: a run that is under way must be in one of
/// the phases of its `routing`. Reads nothing else, and writes nothing.
///
/// # Errors
/// [`GovernedError::NoState`] where there is none; [`GovernedError::UnreadableState`] where it is no JSON
/// object; [`GovernedError::InvalidState`] with every invariant that it breaks. The original tool answers
/// null instead.
pub fn load_state(root: &Root, config: &Config) -> Result<State, GovernedError> {
    checked(require(root)?, &root.join(STATE), config)
}

/// Reads and checks the state in these bytes; errors call it `path`.
///
/// # Errors
/// As [`load_state`].
pub(crate) fn state_of(bytes: &[u8], path: &Path, config: &Config) -> Result<State, GovernedError> {
    checked(parsed(bytes, path)?, path, config)
}

fn checked(state: State, path: &Path, config: &Config) -> Result<State, GovernedError> {
    let errors = check::errors(&state, config);
    if errors.is_empty() {
        return Ok(state);
    }
    Err(GovernedError::InvalidState { path: path.to_owned(), errors })
}

fn parsed(bytes: &[u8], path: &Path) -> Result<State, GovernedError> {
    let path = || path.to_owned();
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(State(migrate::migrated(object))),
        Ok(_) => Err(GovernedError::UnreadableState { path: path(), source: None }),
        Err(source) => Err(GovernedError::UnreadableState { path: path(), source: Some(source) }),
    }
}

/// Reads the state as operations take it, without the checks of [`load_state`]; `None` where there is none.
pub(super) fn read(root: &Root) -> Result<Option<State>, GovernedError> {
    let path = root.join(STATE);
    disk::read(root, &path)?.map(|bytes| parsed(&bytes, &path)).transpose()
}

/// Reads the state that an operation needs; without one, the operation fails.
pub(super) fn require(root: &Root) -> Result<State, GovernedError> {
    read(root)?.ok_or_else(|| GovernedError::NoState { path: root.join(STATE) })
}

/// The most bytes of a state's file, and of a configuration's: what JSON says in two bytes can take thirty in memory, and
/// any pusher of a branch writes it.
pub(crate) const STATE_MAX: u64 = 4 << 20;

/// True for a state that its readers take.
pub(super) fn fits(state: &State) -> bool {
    layout::page(state).len() as u64 <= STATE_MAX
}

pub(super) fn write(root: &Root, state: &State) -> Result<(), GovernedError> {
    disk::write_whole(root, &root.join(STATE), layout::page(state).as_bytes())
}

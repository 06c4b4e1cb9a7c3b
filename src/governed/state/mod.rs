//! The governed state, `.agentxchain/state.json`, as it is on disk: every key kept, in its order.
//!
//! [`State`] reads and writes one JSON object through typed questions, so that what another tool put there
//! survives. Shapes before `1.1` are understood on reading ([`migrate`]) and written back with the next
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

const STATE: &str = ".agentxchain/state.json";

/// A run's state. Cloning it copies it; only an operation changes what is on disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct State(Object);

impl State {
    /// A state from its JSON; `None` where that is no object. Nothing else is checked.
    pub fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(object) => Some(Self(migrate::migrated(object))),
            _ => None,
        }
    }

    pub(super) fn from_object(object: Object) -> Self {
        Self(object)
    }

    /// The state of a project that has none: idle.
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

    /// The state as JSON, key by key as on disk.
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Where the run is; `None` for a status that is none of the six.
    pub fn status(&self) -> Option<RunStatus> {
        self.status_name().and_then(RunStatus::named)
    }

    /// The name of its status, also of one that is none of ours.
    pub(crate) fn status_name(&self) -> Option<&str> {
        json::text(&self.0, "status")
    }

    /// The run, once one was initialized.
    pub fn run_id(&self) -> Option<&str> {
        json::filled(&self.0, "run_id")
    }

    /// The phase, by its name in `routing`.
    pub fn phase(&self) -> Option<&str> {
        json::filled(&self.0, "phase")
    }

    /// What a blocked or paused run waits for, such as `human:<reason>` or `human_approval:<gate>`.
    pub fn blocked_on(&self) -> Option<&str> {
        json::filled(&self.0, "blocked_on")
    }

    /// Why the run is blocked: `{category, recovery, blocked_at, turn_id}`.
    pub fn blocked_reason(&self) -> Option<&Value> {
        self.set_value("blocked_reason")
    }

    /// What is left of the run's budget, in USD; `None` where it has none.
    pub(crate) fn budget_left(&self) -> Option<f64> {
        json::object(&self.0, "budget_status")?.get("remaining_usd")?.as_f64()
    }

    /// What is reserved of the budget for a turn.
    pub(crate) fn reserved(&self, turn: &str) -> Option<&Value> {
        json::object(json::object(&self.0, "budget_reservations")?, turn)?.get("reserved_usd")
    }

    /// What is reserved of the budget for all turns, in USD.
    pub(crate) fn all_reserved(&self) -> f64 {
        let all = json::object(&self.0, "budget_reservations").into_iter().flatten();
        all.filter_map(|(turn, _)| self.reserved(turn)?.as_f64()).sum()
    }

    /// What the workspace was at with the last acceptance, such as `git:<commit>`.
    pub(crate) fn integration_ref(&self) -> Option<&Value> {
        self.0.get("accepted_integration_ref")
    }

    /// What the run is blocked for, in words.
    pub fn blocked_detail(&self) -> Option<&str> {
        self.blocked_reason()?.get("recovery")?.get("detail")?.as_str()
    }

    /// The gates and where each is; `None` for what is no text.
    pub fn gates(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let all = json::object(&self.0, "phase_gate_status").into_iter().flatten();
        all.map(|(gate, status)| (gate.as_str(), status.as_str()))
    }

    /// The phase transition that waits for a person.
    pub fn pending_phase_transition(&self) -> Option<PendingTransition> {
        self.record("pending_phase_transition").map(PendingTransition::from_object)
    }

    /// The completion that waits for a person.
    pub fn pending_run_completion(&self) -> Option<PendingCompletion> {
        self.record("pending_run_completion").map(PendingCompletion::from_object)
    }

    /// Who is recommended to go next.
    pub fn next_recommended_role(&self) -> Option<&str> {
        json::filled(&self.0, "next_recommended_role")
    }

    /// The counter that assignments and acceptances share.
    pub fn turn_sequence(&self) -> u64 {
        json::count(&self.0, "turn_sequence").unwrap_or(0)
    }

    /// The active turn of this id.
    pub fn turn(&self, id: &str) -> Option<Turn> {
        self.turns()?.get(id)?.as_object().cloned().map(Turn::from_object)
    }

    /// Any field, as on disk.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    fn set_value(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// What is set there; what is no object says nothing, and is there all the same.
    fn record(&self, key: &str) -> Option<Object> {
        self.set_value(key).map(|value| value.as_object().cloned().unwrap_or_default())
    }

    pub(super) fn object(&self) -> &Object {
        &self.0
    }

    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    /// Changes the object under a key, made one where it is none.
    pub(super) fn edit(&mut self, key: &str, change: impl FnOnce(&mut Object)) {
        let value = self.0.entry(key).or_insert_with(|| json!({}));
        let mut object = std::mem::take(value).as_object().cloned().unwrap_or_default();
        change(&mut object);
        *value = Value::Object(object);
    }

    pub(super) fn turns(&self) -> Option<&Object> {
        json::object(&self.0, "active_turns")
    }

    /// The active turns, in the order of their assignment.
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

/// The active turns by their ids, in the order of their assignment; what is no turn is left out.
pub fn get_active_turns(state: &State) -> IndexMap<String, Turn> {
    state.active_turns().into_iter().map(|turn| (turn.id().to_owned(), turn)).collect()
}

/// How many turns are active.
pub fn get_active_turn_count(state: &State) -> usize {
    state.turns().map_or(0, |turns| turns.values().filter(|turn| turn.is_object()).count())
}

/// The active turn, where there is exactly one.
pub fn get_active_turn(state: &State) -> Option<Turn> {
    let mut turns = state.active_turns();
    if turns.len() == 1 { turns.pop() } else { None }
}

/// Where a turn's result is staged, below the root: `.agentxchain/staging/<turn id>/turn-result.json`.
pub fn get_turn_staging_result_path(turn_id: &str) -> PathBuf {
    PathBuf::from(format!(".agentxchain/staging/{turn_id}/turn-result.json"))
}

/// A turn's staging folder and its dispatch folder.
pub(super) fn turn_folders(id: &str) -> [String; 2] {
    [format!(".agentxchain/staging/{id}"), dispatch_folder(id)]
}

/// The folder of a turn's dispatch bundle.
pub(crate) fn dispatch_folder(id: &str) -> String {
    format!(".agentxchain/dispatch/turns/{id}")
}

/// True for an id that is one name in a folder, so that no path made of it leaves its place.
pub(super) fn is_safe_id(id: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    !id.is_empty() && !id.starts_with('.') && id.len() <= 200 && id.bytes().all(is_plain)
}

/// Loads the state and checks it, also against the configuration: a run that is under way is in one of the phases of its
/// `routing`. Reads nothing else, and writes nothing.
///
/// # Errors
/// [`GovernedError::NoState`] where there is none; [`GovernedError::UnreadableState`] where it is no JSON
/// object; [`GovernedError::InvalidState`] with every invariant that it breaks. The seed answers each with
/// null.
pub fn load_state(root: &Root, config: &Config) -> Result<State, GovernedError> {
    checked(require(root)?, &root.join(STATE), config)
}

/// The state in these bytes, which are called `path` where they are wrong.
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

/// The state as operations take it: less is asked of it than of a loaded one. `None` where there is none.
pub(super) fn read(root: &Root) -> Result<Option<State>, GovernedError> {
    let path = root.join(STATE);
    disk::read(root, &path)?.map(|bytes| parsed(&bytes, &path)).transpose()
}

/// The state that an operation needs.
pub(super) fn require(root: &Root) -> Result<State, GovernedError> {
    read(root)?.ok_or_else(|| GovernedError::NoState { path: root.join(STATE) })
}

pub(super) fn write(root: &Root, state: &State) -> Result<(), GovernedError> {
    disk::write_whole(root, &root.join(STATE), layout::page(state).as_bytes())
}

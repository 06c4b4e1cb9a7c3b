//! The dispatch bundle: what a worker is given for a turn, as three files and an index of all bundles.
//!
//! `ASSIGNMENT.json` is for programs, `PROMPT.md` and `CONTEXT.md` for readers ([`super::prompt`]).
//! The old bundle of the turn, and nothing else, is replaced as a whole, and `turn_dispatched` is noted with
//! it. How a worker is started is not for this room. Implements G1, G3.

use super::events::{self, Happened};
use super::journal::{Change, INDEX};
use super::json;
use super::outcome::RESERVED;
use super::root::Root;
use super::state::{self, State, Turn, dispatch_folder, get_turn_staging_result_path};
use super::{Config, GovernedError, disk, lock, next, prompt};
use serde_json::{Value, json};
use std::path::PathBuf;

/// What a bundle is to be written with.
#[derive(Debug, Clone, Default)]
pub struct BundleOptions {
    /// The turn; the only active one where none is named.
    pub turn_id: Option<String>,
    /// What the worker is to be warned of.
    pub warnings: Vec<String>,
}

/// A bundle that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// Its folder.
    pub path: PathBuf,
    /// The turn that it is for.
    pub turn: Turn,
    /// What the worker is warned of.
    pub warnings: Vec<String>,
}

/// Writes the bundle of an active turn, the turn's old one replaced.
///
/// # Errors
/// [`GovernedError::Refused`] where the turn is not active, in `state` or on disk, or none is meant;
/// [`GovernedError::NoSuchRole`]; [`GovernedError::Locked`].
pub fn write_dispatch_bundle(
    root: &Root,
    state: &State,
    config: &Config,
    options: &BundleOptions,
) -> Result<Bundle, GovernedError> {
    let named = next::target(state, options.turn_id.as_deref())?;
    let _lock = lock::enter(root)?;
    let state = state::require(root)?;
    // The state that was given may be of yesterday; a turn that is over gets no bundle.
    let turn = next::target(&state, Some(named.id()))?;
    if !state::is_safe_id(turn.id()) {
        return Err(GovernedError::UnsafeTurnId { turn_id: turn.id().to_owned() });
    }
    if config.role(turn.role()).is_none() {
        return Err(GovernedError::NoSuchRole { role: turn.role().to_owned() });
    }
    let folder = dispatch_folder(turn.id());
    let aside = format!("{}/{}.aside", disk::TRANSACTIONS, turn.id());
    let full = root.join(&aside);
    disk::remove_tree(root, &full)?;
    disk::make_dirs(root, &full)?;
    let assignment = assignment(&state, config, &turn, &options.warnings);
    let files = [
        ("ASSIGNMENT.json", json::page(&assignment)),
        ("PROMPT.md", prompt::prompt(root, &state, config, &turn)?),
        ("CONTEXT.md", prompt::context(root, &state, config)?),
    ];
    for (name, text) in files {
        disk::write_new(root, &full.join(name), text.as_bytes())?;
    }
    disk::sync_parent(root, &full.join("ASSIGNMENT.json"))?;
    let dispatched = Happened::TurnDispatched { attempt: turn.attempt(), bundle_path: folder.clone() };
    let event = events::event(root, dispatched, &state, Some(&turn));
    Change::of_files("write_dispatch_bundle")
        .turn(turn.id())
        .replace(aside, folder.clone())
        .write(INDEX, json::page(&index(root, &state, &turn, &options.warnings)))
        .events(&[event])
        .commit(root)?;
    Ok(Bundle { path: root.join(folder), turn, warnings: options.warnings.clone() })
}

fn staging(turn: &Turn) -> String {
    get_turn_staging_result_path(turn.id()).to_string_lossy().into_owned()
}

fn assignment(state: &State, config: &Config, turn: &Turn, warnings: &[String]) -> Value {
    let route = state.phase().and_then(|phase| config.route(phase));
    let siblings: Vec<Value> = state
        .active_turns()
        .iter()
        .filter(|other| other.id() != turn.id())
        .map(|other| {
            json!({
                "turn_id": other.id(),
                "role": other.role(),
                "status": other.get("status"),
                "assigned_sequence": other.assigned_sequence(),
            })
        })
        .collect();
    let reservations = json::object(state.object(), "budget_reservations");
    let reserved = reservations.and_then(|all| json::object(all, turn.id())?.get("reserved_usd"));
    let mut assignment = json!({
        "run_id": json::or_null(state.run_id()),
        "turn_id": turn.id(),
        "phase": json::or_null(state.phase()),
        "role": turn.role(),
        "runtime_id": turn.runtime(),
        "write_authority": config.authority(turn.role()).name(),
        "accepted_integration_ref": state.get("accepted_integration_ref"),
        "staging_result_path": staging(turn),
        "reserved_paths": RESERVED,
        "allowed_next_roles": route.map(|route| json::texts(route, "allowed_next_roles")).unwrap_or_default(),
        "attempt": turn.attempt(),
        "deadline_at": turn.get("deadline_at"),
        "assigned_sequence": turn.assigned_sequence(),
        "budget_reservation_usd": reserved,
        "active_siblings": siblings,
    });
    if let Some(object) = assignment.as_object_mut() {
        for key in ["intake_context", "conflict_context", "delegation_context", "delegation_review"] {
            if let Some(context) = turn.get(key).filter(|context| context.is_object()) {
                object.insert(key.to_owned(), context.clone());
            }
        }
        if !warnings.is_empty() {
            object.insert("advisory_warnings".to_owned(), advisory(warnings));
        }
    }
    assignment
}

fn advisory(warnings: &[String]) -> Value {
    warnings.iter().map(|w| json!({ "code": "advisory_scope_overlap", "message": w })).collect()
}

fn index(root: &Root, state: &State, written: &Turn, warnings: &[String]) -> Value {
    let turns: json::Object = state
        .active_turns()
        .iter()
        .map(|turn| {
            let entry = json!({
                "turn_id": turn.id(),
                "role": turn.role(),
                "runtime_id": turn.runtime(),
                "attempt": turn.attempt(),
                "status": turn.get("status"),
                "bundle_path": dispatch_folder(turn.id()),
                "staging_result_path": staging(turn),
                "assigned_sequence": turn.assigned_sequence(),
                "advisory_warnings": if turn.id() == written.id() { advisory(warnings) } else { json!([]) },
            });
            (turn.id().to_owned(), entry)
        })
        .collect();
    json!({
        "run_id": json::or_null(state.run_id()),
        "phase": json::or_null(state.phase()),
        "updated_at": root.now(),
        "active_turns": turns,
    })
}

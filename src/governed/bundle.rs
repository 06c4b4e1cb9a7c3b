//! The dispatch bundle: what a worker is given for a turn, as three files and an index of all bundles.
//!
//! `ASSIGNMENT.json` is for programs, `PROMPT.md` and `CONTEXT.md` for readers ([`super::prompt`]). The old
//! bundle of the turn, and of no other, is replaced as a whole, and the same change logs `turn_dispatched`.
//! Starting a worker is for the caller. Implements G1, G3.

use super::config::model::Route;
use super::events::{self, Happened};
use super::journal::{Change, INDEX};
use super::json;
use super::outcome::RESERVED;
use super::root::Root;
use super::state::{self, State, Turn, dispatch_folder, get_turn_staging_result_path};
use super::{Config, GovernedError, disk, lock, next, prompt};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// Options for writing a bundle.
#[derive(Debug, Clone, Default)]
pub struct BundleOptions {
    /// The turn's id; without one, the only active turn is meant.
    pub turn_id: Option<String>,
    /// What the worker is to be warned of.
    pub warnings: Vec<String>,
}

/// A bundle that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// The bundle's folder.
    pub path: PathBuf,
    /// The turn that it is for.
    pub turn: Turn,
    /// What the worker is warned of.
    pub warnings: Vec<String>,
}

/// Writes the bundle of an active turn, in the place of the turn's old one.
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
    // The state that was given may be out of date, and a turn that is over gets no bundle.
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
    let turns = state.active_turns();
    let assignment = assignment(&state, &turns, config, &turn, &options.warnings);
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
        .write(INDEX, json::page(&index(root, &state, &turns, &turn, &options.warnings)))
        .events(&[event])
        .commit(root)?;
    Ok(Bundle { path: root.join(folder), turn, warnings: options.warnings.clone() })
}

fn staging(turn: &Turn) -> String {
    get_turn_staging_result_path(turn.id()).to_string_lossy().into_owned()
}

/// `ASSIGNMENT.json`; the order of the fields is the order on disk.
#[derive(Serialize)]
struct Assignment<'a> {
    run_id: Option<&'a str>,
    turn_id: &'a str,
    phase: Option<&'a str>,
    role: &'a str,
    runtime_id: &'a str,
    write_authority: &'static str,
    accepted_integration_ref: Option<&'a Value>,
    staging_result_path: String,
    reserved_paths: &'static [&'static str],
    allowed_next_roles: &'a [String],
    attempt: u64,
    deadline_at: Option<&'a Value>,
    assigned_sequence: u64,
    budget_reservation_usd: Option<&'a Value>,
    active_siblings: Vec<Sibling<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intake_context: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict_context: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegation_context: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegation_review: Option<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advisory_warnings: Vec<Advisory<'a>>,
}

/// Another turn that is active at the same time.
#[derive(Serialize)]
struct Sibling<'a> {
    turn_id: &'a str,
    role: &'a str,
    status: Option<&'a str>,
    assigned_sequence: u64,
}

#[derive(Serialize)]
struct Advisory<'a> {
    code: &'static str,
    message: &'a str,
}

fn assignment<'a>(
    state: &'a State,
    others: &'a [Turn],
    config: &'a Config,
    turn: &'a Turn,
    warnings: &'a [String],
) -> Assignment<'a> {
    let route = state.phase().and_then(|phase| config.route(phase));
    let siblings = others.iter().filter(|other| other.id() != turn.id()).map(|other| Sibling {
        turn_id: other.id(),
        role: other.role(),
        status: other.status_name(),
        assigned_sequence: other.assigned_sequence(),
    });
    let context = |key: &str| turn.get(key).filter(|context| context.is_object());
    Assignment {
        run_id: state.run_id(),
        turn_id: turn.id(),
        phase: state.phase(),
        role: turn.role(),
        runtime_id: turn.runtime(),
        write_authority: config.authority(turn.role()).name(),
        accepted_integration_ref: state.integration_ref(),
        staging_result_path: staging(turn),
        reserved_paths: &RESERVED,
        allowed_next_roles: route.map(Route::allowed).unwrap_or_default(),
        attempt: turn.attempt(),
        deadline_at: turn.deadline_at(),
        assigned_sequence: turn.assigned_sequence(),
        budget_reservation_usd: state.reserved(turn.id()),
        active_siblings: siblings.collect(),
        intake_context: context("intake_context"),
        conflict_context: context("conflict_context"),
        delegation_context: context("delegation_context"),
        delegation_review: context("delegation_review"),
        advisory_warnings: advisory(warnings),
    }
}

fn advisory(warnings: &[String]) -> Vec<Advisory<'_>> {
    warnings.iter().map(|message| Advisory { code: "advisory_scope_overlap", message }).collect()
}

/// `dispatch/index.json`: the bundles of active turns. The default has none: it is the index of a run that is
/// over.
#[derive(Serialize, Default)]
pub(super) struct Index<'a> {
    run_id: Option<&'a str>,
    phase: Option<&'a str>,
    updated_at: Option<String>,
    /// A [`Dispatched`] under each turn's id.
    active_turns: json::Object,
}

/// A turn in the index.
#[derive(Serialize)]
struct Dispatched<'a> {
    turn_id: &'a str,
    role: &'a str,
    runtime_id: &'a str,
    attempt: u64,
    status: Option<&'a str>,
    bundle_path: String,
    staging_result_path: String,
    assigned_sequence: u64,
    advisory_warnings: Vec<Advisory<'a>>,
}

fn index<'a>(
    root: &Root,
    state: &'a State,
    turns: &[Turn],
    written: &Turn,
    warnings: &[String],
) -> Index<'a> {
    let entry = |turn: &Turn| {
        json::value(&Dispatched {
            turn_id: turn.id(),
            role: turn.role(),
            runtime_id: turn.runtime(),
            attempt: turn.attempt(),
            status: turn.status_name(),
            bundle_path: dispatch_folder(turn.id()),
            staging_result_path: staging(turn),
            assigned_sequence: turn.assigned_sequence(),
            advisory_warnings: if turn.id() == written.id() { advisory(warnings) } else { Vec::new() },
        })
    };
    Index {
        run_id: state.run_id(),
        phase: state.phase(),
        updated_at: Some(root.now()),
        active_turns: turns.iter().map(|turn| (turn.id().to_owned(), entry(turn))).collect(),
    }
}

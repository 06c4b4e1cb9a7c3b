//! Projecting an accepted turn of one repository: the coordinator's history, the barriers of the workstream.
//!
//! A turn that changed files outside its repository is refused. A barrier that is satisfied stays so, and one
//! that a person has to open is never opened by a projection. All files of a projection are written as one
//! change.

use super::check;
use crate::governed::journal::Change;
use crate::governed::json::{self, Object};
use crate::governed::{GovernedError, Root, disk, lines, lock};
use serde_json::{Value, json};

const HISTORY: &str = ".agentxchain/multirepo/history.jsonl";
const BARRIERS: &str = ".agentxchain/multirepo/barriers.json";
const BARRIER_LEDGER: &str = ".agentxchain/multirepo/barrier-ledger.jsonl";
const STATE: &str = ".agentxchain/multirepo/state.json";

/// The accepted turn to project, and where it belongs.
#[derive(Debug, Clone, Copy)]
pub(in crate::conformance) struct Projection<'a> {
    pub repo_id: &'a str,
    pub workstream_id: &'a str,
    pub turn: &'a Object,
}

/// Why nothing is projected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::conformance) enum NoProjection {
    /// The repository is not of this coordinator, or not of this workstream.
    UnknownRepo,
    UnknownWorkstream,
    NoTurn,
    /// This changed file lies outside of the repository.
    CrossRepoWrite {
        file: String,
    },
}

/// What a projection did.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::conformance) struct Projected {
    pub projection_ref: String,
    /// `{barrier_id, previous_status, new_status}`.
    pub effects: Vec<Value>,
    /// All barriers, by id.
    pub barriers: Object,
    /// Turns of depending workstreams that were dispatched before this acceptance was known.
    pub context_invalidations: Vec<Value>,
}

fn read_object(root: &Root, file: &str) -> Result<Object, GovernedError> {
    let bytes = disk::read(root, &root.join(file))?.unwrap_or_default();
    Ok(serde_json::from_slice::<Object>(&bytes).unwrap_or_default())
}

/// Projects an accepted turn.
///
/// # Errors
/// The outer error is the file system's; the inner one says why nothing is projected.
pub(in crate::conformance) fn project(
    root: &Root,
    config: &Object,
    of: Projection<'_>,
) -> Result<Result<Projected, NoProjection>, GovernedError> {
    let _lock = lock::enter(root)?;
    let stream = match judge(config, of) {
        Ok(stream) => stream,
        Err(why) => return Ok(Err(why)),
    };
    let state = read_object(root, STATE)?;
    let mut history = lines::all(root, &root.join(HISTORY))?;
    let of_turn = |key: &str| of.turn.get(key).cloned().unwrap_or(Value::Null);
    let suffix: String = root.id("x").chars().skip(2).take(8).collect();
    let projection_ref = format!("proj_{}_{}_{suffix}", of.workstream_id, of.repo_id);
    let runs = json::object(&state, "repo_runs").and_then(|runs| json::object(runs, of.repo_id));
    let entry = json!({
        "type": "acceptance_projection",
        "timestamp": root.now(),
        "super_run_id": state.get("super_run_id"),
        "projection_ref": projection_ref,
        "workstream_id": of.workstream_id,
        "repo_id": of.repo_id,
        "repo_run_id": runs.and_then(|run| run.get("run_id")),
        "repo_turn_id": of_turn("turn_id"),
        "summary": of_turn("summary"),
        "files_changed": of.turn.get("files_changed").cloned().unwrap_or_else(|| json!([])),
        "decisions": of.turn.get("decisions").cloned().unwrap_or_else(|| json!([])),
        "verification": of_turn("verification"),
    });
    let context_invalidations = stale(config, &history, of);
    history.extend(entry.as_object().cloned());
    let mut barriers = read_object(root, BARRIERS)?;
    let (mut effects, mut ledger) = (Vec::new(), String::new());
    for (id, barrier) in &mut barriers {
        let Some(barrier) = barrier.as_object_mut() else { continue };
        if json::text(barrier, "workstream_id") != Some(of.workstream_id) {
            continue;
        }
        let before = json::text(barrier, "status").unwrap_or("pending").to_owned();
        let seen = Seen { stream, history: &history, workstream: of.workstream_id };
        let Some(after) = seen.status(barrier).filter(|after| before != "satisfied" && *after != before)
        else {
            seen.note(barrier);
            continue;
        };
        seen.note(barrier);
        barrier.insert("status".to_owned(), json!(after));
        effects.push(json!({ "barrier_id": id, "previous_status": before, "new_status": after }));
        ledger.push_str(&json::line(&json!({
            "type": "barrier_transition",
            "timestamp": root.now(),
            "barrier_id": id,
            "previous_status": before,
            "new_status": after,
            "causation": { "projection_ref": projection_ref, "repo_id": of.repo_id, "repo_turn_id": of_turn("turn_id") },
        })));
    }
    Change::of_files("project_repo_acceptance")
        .append(HISTORY, json::line(&entry))
        .append(BARRIER_LEDGER, ledger)
        .write(BARRIERS, json::page(&Value::Object(barriers.clone())))
        .commit(root)?;
    Ok(Ok(Projected { projection_ref, effects, barriers, context_invalidations }))
}

fn judge<'a>(config: &'a Object, of: Projection<'_>) -> Result<&'a Object, NoProjection> {
    let repos = json::object(config, "repos");
    if repos.and_then(|repos| json::object(repos, of.repo_id)).is_none() {
        return Err(NoProjection::UnknownRepo);
    }
    let stream =
        json::object(config, "workstreams").and_then(|streams| json::object(streams, of.workstream_id));
    let stream = stream.ok_or(NoProjection::UnknownWorkstream)?;
    if !json::texts(stream, "repos").contains(&of.repo_id) {
        return Err(NoProjection::UnknownRepo);
    }
    if json::filled(of.turn, "turn_id").is_none() {
        return Err(NoProjection::NoTurn);
    }
    let outside = json::texts(of.turn, "files_changed").into_iter().find(|file| !stays_inside(file));
    match outside {
        Some(file) => Err(NoProjection::CrossRepoWrite { file: file.to_owned() }),
        None => Ok(stream),
    }
}

/// True for a path that never leaves the repository's folder.
fn stays_inside(path: &str) -> bool {
    let mut depth = 0i64;
    let parts = path.split('/').map(|part| match part {
        "" | "." => 0,
        ".." => -1,
        _ => 1,
    });
    !path.starts_with('/')
        && parts.into_iter().all(|step| {
            depth += step;
            depth >= 0
        })
}

/// Returns the dispatched turns, not accepted since, of the workstreams that depend on this one.
fn stale(config: &Object, history: &[Object], of: Projection<'_>) -> Vec<Value> {
    let depends = |id: &str| {
        let stream = json::object(config, "workstreams").and_then(|streams| json::object(streams, id));
        stream.is_some_and(|stream| json::texts(stream, "depends_on").contains(&of.workstream_id))
    };
    let kind = |entry: &&Object, kind: &str| json::text(entry, "type") == Some(kind);
    let dispatched = history.iter().filter(|entry| kind(entry, "turn_dispatched"));
    let is_open = |entry: &&Object| {
        let same = |other: &&Object| other.get("repo_turn_id") == entry.get("repo_turn_id");
        !history.iter().filter(|other| kind(other, "acceptance_projection")).any(|other| same(&other))
    };
    dispatched
        .filter(|entry| json::text(entry, "workstream_id").is_some_and(depends))
        .filter(is_open)
        .map(|entry| {
            json!({
                "workstream_id": entry.get("workstream_id"),
                "repo_id": entry.get("repo_id"),
                "repo_turn_id": entry.get("repo_turn_id"),
            })
        })
        .collect()
}

/// The facts that a barrier is judged by.
struct Seen<'a> {
    stream: &'a Object,
    history: &'a [Object],
    workstream: &'a str,
}

impl Seen<'_> {
    fn projections(&self, repo: &str) -> impl Iterator<Item = &Object> {
        self.history.iter().filter(move |entry| {
            json::text(entry, "type") == Some("acceptance_projection")
                && json::text(entry, "workstream_id") == Some(self.workstream)
                && json::text(entry, "repo_id") == Some(repo)
        })
    }

    fn has_accepted(&self, repo: &str) -> bool {
        self.projections(repo).next().is_some()
    }

    /// Returns the ids of the decisions that a repository has accepted; a decision is an id, or an object
    /// with one.
    fn decided(&self, repo: &str) -> Vec<String> {
        let decisions = self.projections(repo).flat_map(|entry| json::list(entry, "decisions"));
        let id =
            |decision: &Value| decision.as_str().or_else(|| decision.get("id")?.as_str()).map(str::to_owned);
        decisions.filter_map(id).collect()
    }

    fn required<'b>(&'b self, barrier: &'b Object) -> Vec<&'b str> {
        let named = json::texts(barrier, "required_repos");
        if named.is_empty() { json::texts(self.stream, "repos") } else { named }
    }

    /// Returns the ids of the decisions that a barrier wants of a repository.
    fn wanted(&self, barrier: &Object, kind: &str, repo: &str) -> Vec<String> {
        let configured = json::object(self.stream, kind).and_then(check::by_repo);
        let maps = [check::by_repo(barrier), json::object(barrier, "alignment_decision_ids"), configured];
        let of_repo = maps.into_iter().flatten().next().map(|map| json::texts(map, repo));
        let all = of_repo.unwrap_or_else(|| json::texts(barrier, "alignment_decision_ids"));
        all.into_iter().map(str::to_owned).collect()
    }

    /// Returns the status that the barrier should have; `None` where the history can't decide it.
    fn status(&self, barrier: &Object) -> Option<&'static str> {
        let kind = json::text(barrier, "type").unwrap_or_default();
        let required = self.required(barrier);
        let any = required.iter().any(|repo| self.has_accepted(repo));
        let all_of =
            |holds: &dyn Fn(&str) -> bool| !required.is_empty() && required.iter().all(|repo| holds(repo));
        let is_satisfied = match kind {
            "all_repos_accepted" => all_of(&|repo| self.has_accepted(repo)),
            "ordered_repo_sequence" => {
                json::text(self.stream, "entry_repo").is_some_and(|entry| self.has_accepted(entry))
            }
            "interface_alignment" | "named_decisions" => all_of(&|repo| {
                let decided = self.decided(repo);
                self.has_accepted(repo)
                    && self.wanted(barrier, kind, repo).iter().all(|id| decided.contains(id))
            }),
            _ => return None,
        };
        Some(match (is_satisfied, any) {
            (true, _) => "satisfied",
            (false, true) => "partially_satisfied",
            (false, false) => "pending",
        })
    }

    /// Notes which repositories have accepted.
    fn note(&self, barrier: &mut Object) {
        let required = self.required(barrier);
        let done: Vec<Value> = required.iter().filter(|r| self.has_accepted(r)).map(|r| json!(r)).collect();
        barrier.insert("satisfied_repos".to_owned(), Value::Array(done));
    }
}

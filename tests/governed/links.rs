//! Links where a governed run reads or writes: each operation, with one planted in each place that a run has.
//!
//! What a link leads to is as it was afterwards, and nothing of it is in the project. Its tests are of row S31 of
//! CONTRACT.md's section on security.

use crate::rig::{Project, config};
use aynig::governed::*;
use aynig::run_loop::{Callbacks, Dispatch, Dispatched, Failure, LoopOptions, run_loop};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

type Done = Result<(), GovernedError>;

fn result(state: &State, turn: &Turn, more: Value) -> Value {
    let kind = if turn.role() == "pm" { "review" } else { "workspace" };
    let mut result = json!({
        "schema_version": "1.0", "run_id": state.run_id(), "turn_id": turn.id(), "role": turn.role(),
        "runtime_id": turn.runtime(), "status": "completed", "summary": "did it", "objections": [],
        "decisions": [{ "id": "DEC-001", "category": "scope", "statement": "s", "rationale": "r", "durability": "repo" }],
        "files_changed": [], "verification": { "status": "pass" }, "artifact": { "type": kind },
        "proposed_next_role": "dev",
    });
    result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    result
}

fn stage(root: &Root, config: &Config, more: Value) -> Done {
    let state = load_state(root, config)?;
    let turn = get_active_turn(&state).unwrap();
    stage_turn_result(root, turn.id(), &result(&state, &turn, more)).map(drop)
}

/// Who does each turn at once, and approves.
struct Willing;

impl Callbacks for Willing {
    fn select_role(&mut self, _: &State, _: &Config) -> Result<Option<String>, Failure> {
        Ok(Some("dev".to_owned()))
    }

    fn dispatch(&mut self, dispatch: &Dispatch<'_>) -> Result<Dispatched, Failure> {
        let ends = json!({ "run_completion_request": true });
        Ok(Dispatched::Accept(result(dispatch.state, dispatch.turn, ends)))
    }

    fn approve_gate(&mut self, _: GateKind, _: &State) -> Result<bool, Failure> {
        Ok(true)
    }
}

/// A whole run, operation by operation.
const STEPS: [fn(&Root, &Config) -> Done; 12] = [
    |root, config| init_run(root, config).map(drop),
    |root, config| assign_turn(root, config, "pm").map(drop),
    |root, config| {
        let state = load_state(root, config)?;
        write_dispatch_bundle(root, &state, config, &BundleOptions::default()).map(drop)
    },
    |root, config| stage(root, config, json!({})),
    |root, config| reject_turn(root, config, &Rejection::default(), "again").map(drop),
    |root, config| stage(root, config, json!({ "phase_transition_request": "build" })),
    |root, config| accept_turn(root, config, &AcceptOptions::default()).map(drop),
    |root, config| assign_turn(root, config, "dev").map(drop),
    |root, config| {
        escalate(root, config, &Escalation { reason: "a person", ..Escalation::default() }).map(drop)
    },
    |root, config| {
        let state = load_state(root, config)?;
        reactivate_run(root, &state, &Reactivation { config: Some(config), ..Reactivation::default() })
            .map(drop)
    },
    |root, config| {
        let all = json!({ "after_dispatch": config.get("hooks").unwrap()["after_acceptance"] });
        run_hooks(root, Some(&all), HookPhase::AfterDispatch, &json!({}), &HookOptions::default()).map(drop)
    },
    |root, config| {
        run_loop(root, config, &mut Willing, &LoopOptions::default());
        Ok(())
    },
];

/// Everything below a folder: bytes of files, where links lead, and folders.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let bytes = match (kind.is_dir(), kind.is_symlink()) {
                (true, _) => b"folder".to_vec(),
                (_, true) => std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                _ => std::fs::read(&path).unwrap(),
            };
            if kind.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for (path, bytes) in tree(from) {
        let (from, to) = (from.join(&path), to.join(&path));
        if from.is_dir() {
            std::fs::create_dir_all(to).unwrap();
        } else {
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(to, bytes).unwrap();
        }
    }
}

fn root(folder: &Path) -> Root {
    Root::new(folder).with_sync(false)
}

const SECRET: &str = "the-secret-of-the-account";

/// What a planted link leads to.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// What stood in its place, moved out of the project; something else of the account's where nothing did.
    Same,
    Folder,
    Nothing,
}

fn plant(at: &Path, away: &Path, target: Target) {
    std::fs::create_dir_all(away.join("folder")).unwrap();
    std::fs::write(away.join("folder/secret"), SECRET).unwrap();
    let to = match target {
        Target::Same => away.join("same"),
        Target::Folder => away.join("folder"),
        Target::Nothing => away.join("new"),
    };
    match (target, at.symlink_metadata()) {
        (Target::Same, Ok(_)) => std::fs::rename(at, &to).unwrap(),
        (Target::Same, Err(_)) => std::fs::write(&to, SECRET).unwrap(),
        (_, Ok(meta)) if meta.is_dir() => std::fs::remove_dir_all(at).unwrap(),
        (_, Ok(_)) => std::fs::remove_file(at).unwrap(),
        (_, Err(_)) => {}
    }
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    symlink(to, at).unwrap();
}

/// The project before each step, and every place that it ever had; those that are there for a moment too.
fn course() -> (Vec<tempfile::TempDir>, BTreeSet<PathBuf>, Config) {
    let mut config = config();
    let hook = json!([{ "name": "noted", "type": "process", "command": ["true"], "mode": "advisory", "timeout_ms": 5000 }]);
    config["hooks"] = json!({ "after_acceptance": hook });
    let project = Project::with(config);
    project.write("plan.md", "a plan\n");
    let moments = ["transactions", "transactions/accept", "transactions/lifecycle", "locks", "staging"];
    let aside = ["state.json", "index.json", "turn-result.json"].map(|f| format!("transactions/{f}.aside"));
    let names = moments.iter().map(|name| (*name).to_owned()).chain(aside);
    let names = names.chain(["locks/accept-turn.lock".to_owned()]);
    let mut places: BTreeSet<PathBuf> = names.map(|name| Path::new(".agentxchain").join(name)).collect();
    let mut before = Vec::new();
    for (n, step) in STEPS.iter().enumerate() {
        let kept = tempfile::tempdir().unwrap();
        copy(project.path(), kept.path());
        before.push(kept);
        step(&root(project.path()), &project.config).unwrap_or_else(|e| panic!("step {n}: {e}"));
        places.extend(tree(project.path()).into_keys());
    }
    assert_eq!(project.raw_state()["status"], "completed");
    places.remove(Path::new("agentxchain.json"));
    (before, places, project.config.clone())
}

/// S31, G13: no operation reads or writes through a link, wherever in the project one is.
#[test]
fn s31_no_operation_follows_a_link() {
    let (before, places, config) = course();
    assert!(places.len() > 20, "{places:?}");
    for (n, step) in STEPS.iter().enumerate() {
        for (at, place) in places.iter().enumerate() {
            let other = if (n + at) % 2 == 0 { Target::Folder } else { Target::Nothing };
            for target in [Target::Same, other] {
                let scratch = tempfile::tempdir().unwrap();
                let (folder, away) = (scratch.path().join("project"), scratch.path().join("away"));
                copy(before[n].path(), &folder);
                plant(&folder.join(place), &away, target);
                let outside = tree(&away);
                let done = step(&root(&folder), &config);
                let what = format!("step {n}, {target:?} at {}: {done:?}", place.display());
                assert_eq!(tree(&away), outside, "{what}");
                let leaked = tree(&folder)
                    .into_iter()
                    .find(|(_, bytes)| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
                assert!(leaked.is_none(), "{what}: {leaked:?}");
            }
        }
    }
}

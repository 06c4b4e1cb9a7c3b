//! A governed project in a folder of its own.

use aynig::governed::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How long a test waits for what is to come on a machine that is as slow as one may be.
pub const LONG: Duration = Duration::from_secs(180);

pub struct Project {
    pub folder: TempDir,
    pub config: Config,
}

pub fn role(authority: &str) -> Value {
    json!({ "title": "A role", "mandate": "Do it", "write_authority": authority, "runtime_id": "manual" })
}

/// Two phases, three roles, two turns at once in the second one.
pub fn config() -> Value {
    json!({
        "schema_version": "1.0",
        "project": { "id": "rig", "name": "Rig" },
        "roles": { "pm": role("review_only"), "dev": role("authoritative"), "ops": role("authoritative") },
        "runtimes": { "manual": { "type": "manual" } },
        "routing": {
            "plan": { "entry_role": "pm", "allowed_next_roles": ["pm", "dev", "human"], "exit_gate": "planned" },
            "build": {
                "entry_role": "dev",
                "allowed_next_roles": ["pm", "dev", "ops", "human"],
                "max_concurrent_turns": 2,
                "exit_gate": "built",
            },
        },
        "gates": {
            "planned": { "requires_files": ["plan.md"] },
            "built": { "requires_human_approval": true },
        },
        "rules": { "challenge_required": false, "max_turn_retries": 2 },
    })
}

impl Project {
    pub fn new() -> Self {
        Self::with(config())
    }

    pub fn with(config: Value) -> Self {
        Self::at(tempfile::tempdir().unwrap(), config)
    }

    /// One on the disk, whatever folder is for temporary files: that may be memory.
    pub fn on_disk() -> Self {
        Self::at(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), config()).with_a_run()
    }

    fn at(folder: tempfile::TempDir, config: Value) -> Self {
        std::fs::write(folder.path().join("agentxchain.json"), config.to_string()).unwrap();
        Self { folder, config: Config::from_value(config).unwrap() }
    }

    /// A project whose run has begun.
    pub fn begun() -> Self {
        Self::new().with_a_run()
    }

    fn with_a_run(self) -> Self {
        init_run(&self.root(), &self.config).unwrap();
        self
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Its root; nothing is synced, because no power is lost here.
    pub fn root(&self) -> Root {
        Root::new(self.path()).with_sync(false)
    }

    pub fn state(&self) -> State {
        load_state(&self.root(), &self.config).unwrap()
    }

    pub fn assign(&self, role: &str) -> Turn {
        assign_turn(&self.root(), &self.config, role).unwrap().turn
    }

    pub fn result(&self, turn: &Turn) -> Value {
        let is_review = turn.role() == "pm";
        json!({
            "schema_version": "1.0",
            "run_id": self.state().run_id(),
            "turn_id": turn.id(),
            "role": turn.role(),
            "runtime_id": turn.runtime(),
            "status": "completed",
            "summary": "did it",
            "decisions": [{ "id": "DEC-001", "category": "scope", "statement": "s", "rationale": "r" }],
            "objections": [],
            "files_changed": [],
            "verification": { "status": "pass" },
            "artifact": { "type": if is_review { "review" } else { "workspace" } },
            "proposed_next_role": "dev",
        })
    }

    /// Stages a turn's result, with these keys changed.
    pub fn stage(&self, turn: &Turn, more: Value) {
        let mut result = self.result(turn);
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.write(get_turn_staging_result_path(turn.id()), &result.to_string());
    }

    pub fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn accept(&self, turn: &Turn) -> Result<Accepted, GovernedError> {
        let turn_id = Some(turn.id().to_owned());
        accept_turn(&self.root(), &self.config, &AcceptOptions { turn_id, ..AcceptOptions::default() })
    }

    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path().join(".agentxchain").join(name)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn raw_state(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.path().join(".agentxchain/state.json")).unwrap()).unwrap()
    }

    /// Every file, with its bytes.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut folders) = (BTreeMap::new(), vec![self.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
                }
            }
        }
        found
    }
}

//! A fixture: it is read, filled up as the corpus says, and written into a folder of its own.
//!
//! The folder is removed when the fixture is dropped.

use super::NoVerdict;
use crate::governed::json::{self, Object};
use crate::governed::{Config, Root, State};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A folder that is removed when its value is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One fixture, materialized.
pub(super) struct Fixture {
    scratch: Scratch,
    pub setup: Object,
    pub operation: String,
    pub args: Object,
    pub expected: Value,
    pub config: Config,
}

const STATE: &str = ".agentxchain/state.json";
pub(super) const MULTIREPO: &str = ".agentxchain/multirepo";

impl Fixture {
    pub(super) fn read(document: Value) -> Result<Self, NoVerdict> {
        let wrong = |what: &str| NoVerdict::Error(format!("cannot read fixture: {what}"));
        let document = document.as_object().ok_or_else(|| wrong("it is no object"))?;
        let input = json::object(document, "input").ok_or_else(|| wrong("it has no input"))?;
        let operation =
            json::filled(input, "operation").ok_or_else(|| wrong("it has no operation"))?.to_owned();
        let expected = document.get("expected").cloned().ok_or_else(|| wrong("it expects nothing"))?;
        let setup = json::object(document, "setup").cloned().unwrap_or_default();
        let args = json::object(input, "args").cloned().unwrap_or_default();
        let config = filled_config(setup.get("config"));
        let folder = std::env::temp_dir().join(format!("aynig-conformance-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&folder)?;
        let scratch = Scratch(folder);
        let config = Config::from_value(config).ok_or_else(|| wrong("its configuration is none"))?;
        let fixture = Self { scratch, setup, operation, args, expected, config };
        fixture.materialize()?;
        Ok(fixture)
    }

    /// Returns the folder, as a project's root.
    pub(super) fn root(&self) -> Root {
        // A scratch folder need not survive a power loss. Hooks see what the process sees.
        Root::new(&self.scratch.0).with_sync(false)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.scratch.0
    }

    pub(super) fn arg(&self, key: &str) -> Option<&str> {
        json::text(&self.args, key)
    }

    /// Returns the bytes of the state's file, to see whether it changed.
    pub(super) fn state_bytes(&self) -> Vec<u8> {
        std::fs::read(self.folder().join(STATE)).unwrap_or_default()
    }

    /// Reads the state from its file.
    pub(super) fn state(&self) -> Result<State, NoVerdict> {
        let state = serde_json::from_slice(&self.state_bytes()).ok().and_then(State::from_value);
        state.ok_or_else(|| NoVerdict::Error("cannot read the state".to_owned()))
    }

    /// Writes a file below the folder.
    pub(super) fn write(&self, path: &str, text: &[u8]) -> std::io::Result<()> {
        let path = self.folder().join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)
    }

    fn materialize(&self) -> std::io::Result<()> {
        self.write("agentxchain.json", json::page(&self.config.to_value()).as_bytes())?;
        let state = filled_state(json::object(&self.setup, "state"), &self.config);
        self.write(STATE, json::page(&state).as_bytes())?;
        let result = self.args.get("turn_result").or_else(|| self.setup.get("turn_result"));
        if let Some(result) = result {
            self.write(".agentxchain/staging/turn-result.json", json::page(result).as_bytes())?;
        }
        for (key, file) in [
            ("history", ".agentxchain/history.jsonl"),
            ("ledger", ".agentxchain/decision-ledger.jsonl"),
            ("coordinator_history", ".agentxchain/multirepo/history.jsonl"),
        ] {
            if self.setup.contains_key(key) {
                let text: String = json::list(&self.setup, key).iter().map(json::line).collect();
                self.write(file, text.as_bytes())?;
            }
        }
        for (path, text) in json::object(&self.setup, "filesystem").into_iter().flatten() {
            self.write(path, text_of(text).as_bytes())?;
        }
        self.bundle_files("dispatch_bundle")?;
        self.coordinator()
    }

    /// Writes the files that the setup names under `key`, as `{turn id: {file: text}}`, into the bundles.
    pub(super) fn bundle_files(&self, key: &str) -> std::io::Result<()> {
        for (turn, files) in json::object(&self.setup, key).into_iter().flatten() {
            for (file, text) in files.as_object().into_iter().flatten() {
                self.write(&format!(".agentxchain/dispatch/turns/{turn}/{file}"), text_of(text).as_bytes())?;
            }
        }
        Ok(())
    }

    fn coordinator(&self) -> std::io::Result<()> {
        for (key, file) in [("coordinator_state", "state.json"), ("barriers", "barriers.json")] {
            if let Some(value) = self.setup.get(key) {
                self.write(&format!("{MULTIREPO}/{file}"), json::page(value).as_bytes())?;
            }
        }
        for (id, repo) in json::object(&self.setup, "repos").into_iter().flatten() {
            let Some(repo) = repo.as_object() else { continue };
            let path = json::text(repo, "path").unwrap_or(id);
            let config = Config::from_value(filled_config(repo.get("config")));
            let Some(config) = config else { continue };
            self.write(&format!("{path}/agentxchain.json"), json::page(&config.to_value()).as_bytes())?;
            let state = filled_state(json::object(repo, "state"), &config);
            self.write(&format!("{path}/{STATE}"), json::page(&state).as_bytes())?;
            for (file, text) in json::object(repo, "files").into_iter().flatten() {
                self.write(&format!("{path}/{file}"), text_of(text).as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Returns a text as it is, anything else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a configuration, with what fixtures leave out filled in.
pub(super) fn filled_config(given: Option<&Value>) -> Value {
    let mut config = given.and_then(Value::as_object).cloned().unwrap_or_default();
    config.entry("schema_version").or_insert_with(|| json!("1.0"));
    config
        .entry("project")
        .or_insert_with(|| json!({ "id": "conformance-target", "name": "Conformance Target" }));
    let mut needs_manual = false;
    let mut roles = json::object(&config, "roles").cloned().unwrap_or_default();
    for (id, role) in &mut roles {
        let Some(role) = role.as_object_mut() else { continue };
        role.entry("title").or_insert_with(|| json!(id.to_uppercase()));
        role.entry("mandate").or_insert_with(|| json!(format!("Act as {id}")));
        role.entry("write_authority").or_insert_with(|| json!("authoritative"));
        if !role.contains_key("runtime_id") {
            role.entry("runtime").or_insert_with(|| json!("manual"));
        }
        let runtime = role.get("runtime").or_else(|| role.get("runtime_id"));
        needs_manual |= runtime.is_some_and(|runtime| runtime == "manual");
    }
    config.insert("roles".to_owned(), Value::Object(roles));
    let mut runtimes = json::object(&config, "runtimes").cloned().unwrap_or_default();
    if needs_manual {
        runtimes.entry("manual").or_insert_with(|| json!({ "type": "manual" }));
    }
    for (_, runtime) in &mut runtimes {
        if let Some(runtime) = runtime.as_object_mut() {
            runtime.entry("type").or_insert_with(|| json!("manual"));
        }
    }
    config.insert("runtimes".to_owned(), Value::Object(runtimes));
    for key in ["routing", "gates"] {
        config.entry(key).or_insert_with(|| json!({}));
    }
    let mut rules = json::object(&config, "rules").cloned().unwrap_or_default();
    rules.entry("challenge_required").or_insert_with(|| json!(true));
    config.insert("rules".to_owned(), Value::Object(rules));
    Value::Object(config)
}

/// Returns a state, with what fixtures leave out filled in. The corpus counts acceptances, and so does
/// `turn_sequence`.
fn filled_state(given: Option<&Object>, config: &Config) -> Value {
    let mut state = given.cloned().unwrap_or_default();
    let project = config.get("project").and_then(|project| project.get("id")).cloned();
    let sequence = state.get("accepted_sequence").cloned().unwrap_or_else(|| json!(0));
    for (key, value) in [
        ("schema_version", json!("1.1")),
        ("project_id", project.unwrap_or_else(|| json!("conformance-target"))),
        ("status", json!("idle")),
        ("phase", json!("planning")),
        ("active_turns", json!({})),
        ("turn_sequence", sequence.clone()),
        ("accepted_sequence", sequence),
        ("run_id", Value::Null),
        ("accepted_integration_ref", Value::Null),
        ("last_completed_turn_id", Value::Null),
        ("blocked_on", Value::Null),
        ("blocked_reason", Value::Null),
        ("escalation", Value::Null),
        ("pending_phase_transition", Value::Null),
        ("pending_run_completion", Value::Null),
        ("queued_phase_transition", Value::Null),
        ("queued_run_completion", Value::Null),
    ] {
        state.entry(key).or_insert(value);
    }
    let run = state.get("run_id").cloned().unwrap_or(Value::Null);
    let mut turns = json::object(&state, "active_turns").cloned().unwrap_or_default();
    for (id, turn) in &mut turns {
        let Some(turn) = turn.as_object_mut() else { continue };
        let role =
            turn.get("assigned_role").or_else(|| turn.get("role")).and_then(Value::as_str).unwrap_or("dev");
        let (role, runtime) = (json!(role), config.runtime_of(role).unwrap_or("manual").to_owned());
        for (key, value) in [
            ("turn_id", json!(id)),
            ("run_id", run.clone()),
            ("assigned_role", role),
            ("runtime_id", json!(runtime)),
            ("status", json!("running")),
            ("attempt", json!(1)),
            ("assigned_sequence", json!(1)),
        ] {
            turn.entry(key).or_insert(value);
        }
    }
    state.insert("active_turns".to_owned(), Value::Object(turns));
    Value::Object(state)
}

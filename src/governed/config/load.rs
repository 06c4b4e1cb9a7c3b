//! Finding `agentxchain.json`, checking it, and the normalized form that operations receive.

use super::super::root::Root;
use super::super::{GovernedError, disk, observe};
use super::{Config, Object, check, json, keys};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const FILE: &str = "agentxchain.json";

/// A project as found.
#[derive(Debug, Clone)]
pub struct Context {
    /// The folder that holds `agentxchain.json`, with the surroundings that were given.
    pub root: Root,
    /// The file's content.
    pub raw_config: Value,
    /// The configuration, normalized: what operations take.
    pub config: Config,
    /// The version of the format: 4.
    pub version: u64,
    /// One sentence for each key that the file sets and nothing acts on, to be shown once.
    pub warnings: Vec<String>,
}

/// Finds the project that a folder is in and loads its configuration; writes nothing.
///
/// Looks for `agentxchain.json` in the folder of `start` and in those above it; a file of another owner is
/// refused, as Git refuses a repository.
///
/// # Errors
/// [`GovernedError::NoProject`], [`GovernedError::ForeignOwner`], [`GovernedError::UnreadableConfig`] and
/// [`GovernedError::InvalidConfig`] with everything that is wrong; the original tool answers each with null.
pub fn load_context(start: &Root) -> Result<Context, GovernedError> {
    let folder = std::fs::canonicalize(start.folder()).map_err(super::super::io("find", start.folder()))?;
    for folder in folder.ancestors() {
        let here = start.at(folder);
        let path = folder.join(FILE);
        if let Some(bytes) = disk::read(&here, &path)? {
            owned(&here, folder, &path)?;
            return checked(&bytes, path, Some(folder), here);
        }
    }
    Err(GovernedError::NoProject { folder })
}

/// Loads the project in this very folder, under any owner; the folders above it are not searched.
///
/// # Errors
/// As [`load_context`].
pub fn context_here(root: &Root) -> Result<Context, GovernedError> {
    let bytes = disk::read(root, &root.join(FILE))?;
    let bytes = bytes.ok_or_else(|| GovernedError::NoProject { folder: root.folder().to_owned() })?;
    context_of(root, &bytes, Path::new(FILE))
}

/// Refuses what Git would refuse: a folder, or a file in it, of another owner, unless `safe.directory` names it.
fn owned(root: &Root, folder: &Path, path: &Path) -> Result<(), GovernedError> {
    if observe::is_safe(root, folder, path)? {
        return Ok(());
    }
    Err(GovernedError::ForeignOwner { folder: folder.to_owned() })
}

/// Loads the project in a folder whose configuration comes from elsewhere: the programs that its hooks name
/// are looked for only when they run. Errors call the configuration `from`.
///
/// # Errors
/// [`GovernedError::UnreadableConfig`] and [`GovernedError::InvalidConfig`].
pub fn context_of(root: &Root, bytes: &[u8], from: &Path) -> Result<Context, GovernedError> {
    checked(bytes, from.to_owned(), None, root.clone())
}

fn checked(bytes: &[u8], path: PathBuf, folder: Option<&Path>, root: Root) -> Result<Context, GovernedError> {
    let raw: Value = serde_json::from_slice(bytes)
        .map_err(|source| GovernedError::UnreadableConfig { path: path.clone(), source })?;
    let errors: Vec<String> = check::problems(&raw, folder).iter().map(ToString::to_string).collect();
    let Value::Object(object) = &raw else { return Err(GovernedError::InvalidConfig { path, errors }) };
    if !errors.is_empty() {
        return Err(GovernedError::InvalidConfig { path, errors });
    }
    let config = Config::from_value(Value::Object(normalized(object)))
        .ok_or_else(|| GovernedError::InvalidConfig { path, errors: Vec::new() })?;
    let warnings = keys::told(&raw);
    Ok(Context { root, config, raw_config: raw, version: 4, warnings })
}

/// Returns the form that operations receive: defaults filled in, a role's runtime resolved, nothing dropped.
fn normalized(raw: &Object) -> Object {
    let mut config = Object::new();
    let or = |key: &str, default: Value| raw.get(key).filter(|v| !v.is_null()).cloned().unwrap_or(default);
    let mut project = json::object(raw, "project").cloned().unwrap_or_default();
    project.entry("default_branch").or_insert_with(|| json!("main"));
    let mut rules = json::object(raw, "rules").cloned().unwrap_or_default();
    for (key, value) in [
        ("challenge_required", json!(true)),
        ("max_turn_retries", json!(2)),
        ("max_deadlock_cycles", json!(2)),
    ] {
        rules.entry(key).or_insert(value);
    }
    let mut put = |key: &str, value: Value| config.insert(key.to_owned(), value);
    put("schema_version", json!(4));
    put("protocol_mode", json!("governed"));
    put("template", or("template", json!("generic")));
    put("project", Value::Object(project));
    put("roles", Value::Object(roles(raw)));
    for key in ["runtimes", "routing", "gates", "hooks", "notifications"] {
        put(key, or(key, json!({})));
    }
    put("budget", or("budget", Value::Null));
    put("retention", or("retention", json!({})));
    put("rules", Value::Object(rules));
    put("files", files());
    put(
        "compat",
        json!({ "next_owner_source": "state-json", "lock_based_coordination": false, "original_version": 4 }),
    );
    for (key, value) in raw {
        config.entry(key.clone()).or_insert_with(|| value.clone());
    }
    config
}

/// Returns where the files of a run are, in every project.
pub(super) fn files() -> Value {
    json!({
        "talk": "TALK.md",
        "history": ".agentxchain/history.jsonl",
        "state": ".agentxchain/state.json",
        "log": null,
    })
}

fn roles(raw: &Object) -> Object {
    let runtimes = json::object(raw, "runtimes");
    let mut roles = Object::new();
    for (id, role) in json::object(raw, "roles").into_iter().flatten() {
        let Some(mut role) = role.as_object().cloned() else { continue };
        if let Some(runtime) = role.shift_remove("runtime") {
            let named = runtime.as_str().and_then(|id| json::object(runtimes?, id));
            let class = named.and_then(|runtime| json::filled(runtime, "type")).unwrap_or("manual");
            role.insert("runtime_class".to_owned(), json!(class));
            role.insert("runtime_id".to_owned(), runtime);
        }
        roles.insert(id.clone(), Value::Object(role));
    }
    roles
}

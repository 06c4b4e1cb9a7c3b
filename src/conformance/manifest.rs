//! The manifest of a dispatch bundle: what is in the bundle, so that a worker can tell what was changed
//! since.
//!
//! The bundle is written and the hooks of `after_dispatch` are run before [`finalize`]; a worker calls
//! [`verify`] before it uses the bundle. Folders in the bundle are searched too, and a declared path that
//! leaves the bundle is refused.

use crate::governed::json::{self, Object};
use crate::governed::observe::digest;
use crate::governed::state::dispatch_folder;
use crate::governed::{GovernedError, Root, disk, io, lock};
use serde_json::{Value, json};
use std::path::Path;

const FILE: &str = "MANIFEST.json";

/// The run, turn and role that a bundle is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity<'a> {
    pub run_id: Option<&'a str>,
    pub turn_id: &'a str,
    pub role: &'a str,
}

/// Returns the files below a folder, without the manifest, sorted by path.
fn files(root: &Root, folder: &Path) -> Result<Vec<String>, GovernedError> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(below) = folders.pop() {
        for name in disk::text_names(root, &folder.join(&below))? {
            let path = if below.is_empty() { name } else { format!("{below}/{name}") };
            let full = folder.join(&path);
            if disk::kind(root, &full)? == Some(disk::Kind::Folder) {
                folders.push(path);
            } else if path != FILE {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Writes the manifest of a turn's bundle and returns it.
///
/// # Errors
/// An error of the file system, also where the bundle is missing or empty.
pub(crate) fn finalize(root: &Root, of: Identity<'_>) -> Result<Value, GovernedError> {
    let _lock = lock::enter(root)?;
    let folder = root.join(dispatch_folder(of.turn_id));
    let names = files(root, &folder)?;
    if names.is_empty() {
        let nothing = std::io::Error::new(std::io::ErrorKind::NotFound, "there is no bundle");
        return Err(io("read", &folder)(nothing));
    }
    let mut entries = Vec::new();
    for path in names {
        let full = folder.join(&path);
        let bytes = disk::read(root, &full)?.unwrap_or_default();
        entries.push(json!({ "path": path, "sha256": digest(&bytes), "size": bytes.len() }));
    }
    let manifest = json!({
        "manifest_version": "1.0",
        "run_id": of.run_id,
        "turn_id": of.turn_id,
        "role": of.role,
        "finalized_at": root.now(),
        "files": entries,
    });
    disk::write_whole(root, &folder.join(FILE), json::page(&manifest).as_bytes())?;
    Ok(manifest)
}

/// Returns one difference between a manifest and its bundle: `{type, path?, detail}`.
fn error(kind: &str, path: Option<&str>, detail: String) -> Value {
    match path {
        Some(path) => json!({ "type": kind, "path": path, "detail": detail }),
        None => json!({ "type": kind, "detail": detail }),
    }
}

/// Returns the manifest of a turn's bundle (`None` where there is no valid one), and all differences between
/// the two.
pub(crate) fn verify(root: &Root, turn_id: &str) -> Result<(Option<Value>, Vec<Value>), GovernedError> {
    let folder = root.join(dispatch_folder(turn_id));
    let path = folder.join(FILE);
    let Some(bytes) = disk::read(root, &path)? else {
        let detail = format!("'{}' is not there", path.display());
        return Ok((None, vec![error("missing_manifest", None, detail)]));
    };
    let parsed = serde_json::from_slice::<Value>(&bytes);
    let manifest = parsed.ok().filter(|manifest| {
        json::is_filled(manifest.get("manifest_version"))
            && manifest.get("files").is_some_and(Value::is_array)
    });
    let Some(manifest) = manifest else {
        let detail = format!("'{}' is no manifest", path.display());
        return Ok((None, vec![error("invalid_manifest", None, detail)]));
    };
    let declared = manifest.get("files").and_then(Value::as_array).cloned().unwrap_or_default();
    let declared: Vec<&Object> = declared.iter().filter_map(Value::as_object).collect();
    let present = files(root, &folder)?;
    let mut errors = Vec::new();
    for entry in &declared {
        let name = json::text(entry, "path").unwrap_or_default();
        let is_local = !name.is_empty()
            && Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_local {
            errors.push(error("invalid_manifest", Some(name), format!("'{name}' is no path in a bundle")));
            continue;
        }
        if !present.iter().any(|path| path == name) {
            errors.push(error("missing_file", Some(name), format!("'{name}' is declared and not there")));
            continue;
        }
        let full = folder.join(name);
        let bytes = disk::read(root, &full)?.unwrap_or_default();
        if json::count(entry, "size") != Some(bytes.len() as u64) {
            let detail = format!("'{name}' has {} bytes, not as many as declared", bytes.len());
            errors.push(error("size_mismatch", Some(name), detail));
        }
        if json::text(entry, "sha256") != Some(digest(&bytes).as_str()) {
            errors.push(error("digest_mismatch", Some(name), format!("'{name}' is not what it was")));
        }
    }
    for name in present {
        if !declared.iter().any(|entry| json::text(entry, "path") == Some(name.as_str())) {
            errors.push(error("unexpected_file", Some(&name), format!("'{name}' is not declared")));
        }
    }
    Ok((Some(manifest), errors))
}

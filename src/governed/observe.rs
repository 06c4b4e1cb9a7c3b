//! What is in the workspace, as Git sees it: the baseline of a turn, and what has changed since.
//!
//! One `git status` a look; where the root is in no repository, nothing is known and nothing compared. The
//! orchestrator's own files are no changes of anybody's.

use super::journal::HISTORY;
use super::json::{self, Object};
use super::root::Root;
use super::state::{State, Turn};
use super::{GovernedError, lines};
use crate::store::StoreError;
use crate::store::git_command::Git;
use crate::store::repository::OpenError;
use crate::store::workspace::Workspace;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Folders and files that are the orchestrator's.
const OPERATIONAL: [&str; 11] = [
    ".agentxchain/dispatch",
    ".agentxchain/staging/",
    ".agentxchain/locks/",
    ".agentxchain/transactions/",
    ".agentxchain/intake/",
    ".agentxchain/missions/",
    ".agentxchain/multirepo/",
    ".agentxchain/plugins/",
    ".agentxchain/prompts/",
    "TALK.md",
    "HUMAN_TASKS.md",
];
/// Folders that do not make a workspace unclean for the next turn.
const EXEMPT: [&str; 3] = [".agentxchain/reviews/", ".agentxchain/reports/", ".agentxchain/proposed/"];

/// A look at the workspace.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sight {
    /// It is in no repository.
    NoGit,
    Git {
        /// The commit that is checked out; `None` before the first.
        head: Option<String>,
        /// What differs from it, below the root, the orchestrator's files left out.
        dirty: Vec<String>,
        /// What of it no commit has.
        untracked: Vec<String>,
    },
}

/// True for a file of the orchestrator's own.
fn is_operational(path: &str) -> bool {
    // State, history, ledgers, audits: files directly in the folder.
    let is_own_file = path.strip_prefix(".agentxchain/").is_some_and(|name| !name.contains('/'));
    is_own_file || OPERATIONAL.iter().any(|own| path.starts_with(own))
}

fn failed(source: crate::store::StoreError) -> GovernedError {
    GovernedError::Workspace { source: Box::new(source) }
}

/// The working tree that the root lies in; `None` where Git sees none.
fn workspace(root: &Root) -> Result<Option<Workspace>, GovernedError> {
    let git = root.environment().map(|all| Git::find(all.iter().cloned())).transpose().map_err(failed)?;
    // Whoever looks holds the lock.
    let aside = root.join(format!(".agentxchain/locks/index-{}.aside", std::process::id()));
    Workspace::find(root.folder(), git, &aside).map_err(|error| {
        failed(match error {
            OpenError::Store(error) => error,
            OpenError::NotFound { .. } | OpenError::Refused { .. } => {
                StoreError::Git { verb: "status".to_owned(), message: error.to_string() }
            }
        })
    })
}

/// The root's place below the top of its working tree, as Git names what is there.
fn below(root: &Root, workspace: &Workspace) -> String {
    let folder = std::fs::canonicalize(root.folder()).unwrap_or_else(|_| root.folder().to_owned());
    let below = folder.strip_prefix(workspace.top()).unwrap_or(Path::new("")).to_string_lossy().into_owned();
    if below.is_empty() { below } else { format!("{below}/") }
}

/// Looks at the workspace.
pub(super) fn look(root: &Root) -> Result<Sight, GovernedError> {
    let Some(workspace) = workspace(root)? else { return Ok(Sight::NoGit) };
    let below = below(root, &workspace);
    let output = workspace.status(root.folder()).map_err(failed)?;
    let text = String::from_utf8_lossy(&output);
    let (mut head, mut dirty, mut untracked) = (None, Vec::new(), Vec::new());
    for entry in text.split('\0').filter(|entry| !entry.is_empty()) {
        if let Some(oid) = entry.strip_prefix("# branch.oid ") {
            head = Some(oid.to_owned()).filter(|oid| oid != "(initial)");
        }
        // Eight fields before the path of a changed file, ten before that of an unmerged one.
        let path = match entry.split_once(' ') {
            Some(("?", path)) => Some(path),
            Some(("1", _)) => entry.splitn(9, ' ').nth(8),
            Some(("u", _)) => entry.splitn(11, ' ').nth(10),
            _ => None,
        };
        let path = path.and_then(|path| path.strip_prefix(&below)).filter(|path| !is_operational(path));
        if entry.starts_with('?') {
            untracked.extend(path.map(str::to_owned));
        }
        dirty.extend(path.map(str::to_owned));
    }
    dirty.sort();
    dirty.dedup();
    Ok(Sight::Git { head, dirty, untracked })
}

/// A file's content in a word.
pub(super) fn marker(root: &Root, path: &str) -> String {
    let path = root.join(path);
    match std::fs::read(&path) {
        Ok(bytes) => format!("sha256:{}", digest(&bytes)),
        Err(_) if path.symlink_metadata().is_err() => "deleted".to_owned(),
        Err(_) => "unreadable".to_owned(),
    }
}

/// The SHA-256 of bytes, in lower-case hex.
pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

fn markers(root: &Root, files: &[String]) -> Object {
    files.iter().map(|file| (file.clone(), json!(marker(root, file)))).collect()
}

/// The baseline of a turn that begins now.
pub(super) fn baseline(root: &Root, sight: &Sight) -> Value {
    match sight {
        Sight::NoGit => json!({
            "kind": "no_git",
            "head_ref": null,
            "clean": true,
            "captured_at": root.now(),
            "dirty_snapshot": {},
        }),
        Sight::Git { head, dirty, .. } => json!({
            "kind": "git_worktree",
            "head_ref": head,
            "clean": dirty.is_empty(),
            "captured_at": root.now(),
            "dirty_snapshot": markers(root, dirty),
        }),
    }
}

/// The baseline of a turn's next attempt: the turn's own, so that what a rejected attempt left is still its
/// change; what others had accepted since is theirs.
pub(super) fn own_baseline(root: &Root, state: &State, turn: &Turn) -> Result<Option<Value>, GovernedError> {
    let Some(mut baseline) = turn.get("baseline").and_then(Value::as_object).cloned() else {
        return Ok(None);
    };
    let mut accepted = Object::new();
    lines::backwards(&root.join(HISTORY), |entry| {
        let sequence = json::count(&entry, "accepted_sequence").unwrap_or(0);
        let is_since = json::text(&entry, "run_id") == state.run_id() && sequence > turn.assigned_sequence();
        let markers = json::object(&entry, "observed_artifact").and_then(|o| json::object(o, "file_markers"));
        for file in json::texts(&entry, "files_changed").into_iter().filter(|_| is_since) {
            if let Some(marker) = markers.and_then(|markers| markers.get(file)) {
                // The newest counts.
                accepted.entry(file).or_insert_with(|| marker.clone());
            }
        }
        is_since
    })?;
    if !accepted.is_empty() {
        let mut snapshot = json::object(&baseline, "dirty_snapshot").cloned().unwrap_or_default();
        snapshot.extend(accepted);
        baseline.insert("dirty_snapshot".to_owned(), Value::Object(snapshot));
    }
    Ok(Some(Value::Object(baseline)))
}

/// What makes the workspace unclean for a role that writes.
pub(super) fn unclean(sight: &Sight) -> Vec<String> {
    match sight {
        Sight::NoGit => Vec::new(),
        Sight::Git { dirty, .. } => {
            dirty.iter().filter(|path| !EXEMPT.iter().any(|e| path.starts_with(e))).cloned().collect()
        }
    }
}

/// What changed since a turn's baseline.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Changes {
    /// False where there is nothing to compare with.
    pub available: bool,
    pub files: Vec<String>,
    pub markers: Object,
    untracked: Vec<String>,
}

impl Changes {
    /// `{added, modified, deleted}`.
    pub(super) fn to_value(&self) -> Value {
        let is_gone = |file: &&String| self.markers.get(*file).is_some_and(|marker| marker == "deleted");
        let (gone, there): (Vec<&String>, Vec<&String>) = self.files.iter().partition(is_gone);
        let (added, modified): (Vec<&String>, Vec<&String>) =
            there.into_iter().partition(|file| self.untracked.contains(file));
        json!({ "added": added, "modified": modified, "deleted": gone })
    }
}

/// Compares the workspace with a turn's baseline.
pub(super) fn changes(
    root: &Root,
    sight: &Sight,
    baseline: Option<&Value>,
) -> Result<Changes, GovernedError> {
    let baseline = baseline.and_then(Value::as_object);
    let (Sight::Git { head, dirty, untracked }, Some(baseline)) = (sight, baseline) else {
        return Ok(Changes::default());
    };
    if json::text(baseline, "kind") != Some("git_worktree") {
        return Ok(Changes::default());
    }
    let mut files = dirty.clone();
    let before = json::filled(baseline, "head_ref");
    if let (Some(before), Some(now)) = (before, head)
        && before != now
        && before.bytes().all(|byte| byte.is_ascii_hexdigit())
        && let Some(changed) = changed_since(root, before)?
    {
        // What was committed and undone again is no change.
        files = changed;
        files.extend(untracked.iter().cloned());
    }
    let snapshot = json::object(baseline, "dirty_snapshot").cloned().unwrap_or_default();
    files.retain(|file| snapshot.get(file).and_then(Value::as_str) != Some(marker(root, file).as_str()));
    files.sort();
    files.dedup();
    let markers = markers(root, &files);
    Ok(Changes { available: true, files, markers, untracked: untracked.clone() })
}

/// The files below the root that differ from a commit. `None`: it is gone (pruned, rewritten), and tells nothing.
fn changed_since(root: &Root, before: &str) -> Result<Option<Vec<String>>, GovernedError> {
    let Some(workspace) = workspace(root)? else { return Ok(None) };
    let Ok(output) = workspace.changed_since(root.folder(), before) else { return Ok(None) };
    let text = String::from_utf8_lossy(&output);
    let files = text.split('\0').filter(|file| !file.is_empty() && !is_operational(file));
    Ok(Some(files.map(str::to_owned).collect()))
}

/// What the workspace is at, once a turn's artifact is accepted.
pub(super) fn integration_ref(sight: &Sight, kind: &str, previous: Option<&str>) -> String {
    match sight {
        Sight::Git { head: Some(head), dirty, .. } if kind != "workspace" || dirty.is_empty() => {
            format!("git:{head}")
        }
        Sight::Git { .. } => "workspace:dirty".to_owned(),
        Sight::NoGit => match kind {
            "workspace" | "review" => "workspace:dirty".to_owned(),
            _ => previous.unwrap_or("unknown").to_owned(),
        },
    }
}

/// True where a path, however written, is below the root and there.
pub(super) fn existing(root: &Root, path: &str) -> Option<PathBuf> {
    let is_local = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    Some(root.join(path)).filter(|full| is_local && full.exists())
}

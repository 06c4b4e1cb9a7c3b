//! What is in the workspace, as Git sees it: the baseline of a turn, and what has changed since.
//!
//! One `git status` a look; where the root is in no repository, nothing is known and nothing compared. The
//! orchestrator's own files are no changes of anybody's.

use super::GovernedError;
use super::json::{self, Object};
use super::root::Root;
use crate::store::git_command::Git;
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

/// The repository's top folder, and the root's place below it.
fn repository(root: &Root) -> Option<String> {
    let folder = std::fs::canonicalize(root.folder()).ok()?;
    let top = folder.ancestors().find(|folder| folder.join(".git").exists())?;
    let below = folder.strip_prefix(top).ok()?.to_string_lossy().into_owned();
    Some(if below.is_empty() { below } else { format!("{below}/") })
}

fn git(root: &Root) -> Result<Git, GovernedError> {
    match root.environment() {
        Some(environment) => Git::find(environment.iter().cloned()),
        None => Git::find_here(),
    }
    .map_err(failed)
}

/// Looks at the workspace.
pub(super) fn look(root: &Root) -> Result<Sight, GovernedError> {
    let Some(below) = repository(root) else { return Ok(Sight::NoGit) };
    let command = git(root)?.plain(None).in_dir(root.folder()).env("GIT_OPTIONAL_LOCKS", "0").verb("status");
    let args = ["--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames", "--", "."];
    let output = command.args(args).ok().map_err(failed)?;
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
    {
        files.extend(committed(root, before, now)?);
    }
    let snapshot = json::object(baseline, "dirty_snapshot").cloned().unwrap_or_default();
    files.retain(|file| snapshot.get(file).and_then(Value::as_str) != Some(marker(root, file).as_str()));
    files.sort();
    files.dedup();
    let markers = markers(root, &files);
    Ok(Changes { available: true, files, markers, untracked: untracked.clone() })
}

/// The files that differ between two commits, below the root.
fn committed(root: &Root, before: &str, now: &str) -> Result<Vec<String>, GovernedError> {
    let command = git(root)?.plain(None).in_dir(root.folder()).verb("diff");
    let args = ["--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z", before, now, "--", "."];
    // A baseline that is gone (pruned, rewritten) tells nothing.
    let Ok(output) = command.args(args).ok() else { return Ok(Vec::new()) };
    let text = String::from_utf8_lossy(&output);
    let files = text.split('\0').filter(|file| !file.is_empty() && !is_operational(file));
    Ok(files.map(str::to_owned).collect())
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

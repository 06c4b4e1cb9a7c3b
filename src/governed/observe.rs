//! What is in the workspace, as Git sees it: the baseline of a turn, and what has changed since.
//!
//! Each look runs one `git status`. Where the root is in no repository, nothing is known and nothing
//! compared. The orchestrator's own files never count as changes of a turn.

use super::error::not_text;
use super::journal::HISTORY;
use super::json::{self, Object};
use super::outcome::plain;
use super::root::Root;
use super::state::{State, Turn};
use super::{GovernedError, disk, lines};
use crate::protocol::text::hex;
use crate::store::StoreError;
use crate::store::git_command::Git;
use crate::store::repository::OpenError;
use crate::store::workspace::{KnownTree, Workspace};
use crate::supervisor::beneath::Kind;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Folders and files that are the orchestrator's.
const OPERATIONAL: [&str; 11] = [
    ".agentxchain/dispatch/",
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
/// Folders whose changes do not make the workspace unclean for the next turn.
const EXEMPT: [&str; 3] = [".agentxchain/reviews/", ".agentxchain/reports/", ".agentxchain/proposed/"];

/// What a look at the workspace found.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WorkspaceSnapshot {
    /// The workspace is in no repository.
    NoGit,
    Git {
        /// The commit that is checked out; `None` before the first.
        head: Option<String>,
        /// The paths below the root that differ from that commit, without the orchestrator's files.
        dirty: Vec<String>,
        /// Those of them that Git does not track.
        untracked: Vec<String>,
    },
}

/// True for a file of the orchestrator's own.
fn is_operational(path: &str) -> bool {
    // State, history, ledgers, audits: files directly in the folder.
    let is_own_file = path.strip_prefix(".agentxchain/").is_some_and(|name| !name.contains('/'));
    let is = |own: &&str| if own.ends_with('/') { path.starts_with(own) } else { path == *own };
    is_own_file || OPERATIONAL.iter().any(is)
}

fn failed(source: crate::store::StoreError) -> GovernedError {
    GovernedError::Workspace { source: Box::new(source) }
}

/// Finds the working tree that the root lies in: the one that is known, else what Git sees; `None` where it sees none.
fn workspace(root: &Root) -> Result<Option<Workspace>, GovernedError> {
    let git = root.environment().map(|all| Git::find(all.iter().cloned())).transpose().map_err(failed)?;
    // Git may need a copy of the index; the process id in its name keeps it apart from other processes'
    // copies.
    let aside = format!(".agentxchain/locks/index-{}.aside", std::process::id());
    let found = match root.tree() {
        Some(tree) => Workspace::known(tree, root.folder(), git, Path::new(&aside)).map(Some),
        None => Workspace::find(root.folder(), git, Path::new(&aside)),
    };
    found.map_err(|error| {
        failed(match error {
            OpenError::Store(error) => error,
            OpenError::NotFound { .. } | OpenError::Refused { .. } => {
                StoreError::Git { verb: "status".to_owned(), message: error.to_string() }
            }
        })
    })
}

/// Returns the root's path below the top of its working tree, with a slash at its end, as Git's paths begin
/// with it.
fn below(root: &Root, workspace: &Workspace) -> Vec<u8> {
    let folder = std::fs::canonicalize(root.folder()).unwrap_or_else(|_| root.folder().to_owned());
    let below = folder.strip_prefix(workspace.top()).unwrap_or(Path::new("")).as_os_str().as_bytes().to_vec();
    if below.is_empty() { below } else { [&*below, b"/"].concat() }
}

/// Returns a path below the root as text; `None` for one of the orchestrator's. A path that is not UTF-8 is
/// an error: states, results and declarations name files in JSON, so that they could not name it as a turn's
/// change.
fn named(path: &[u8]) -> Result<Option<String>, GovernedError> {
    if is_operational(&String::from_utf8_lossy(path)) {
        return Ok(None);
    }
    match std::str::from_utf8(path) {
        Ok(path) => Ok(Some(path.to_owned())),
        Err(_) => Err(not_text(Path::new(OsStr::from_bytes(path)))),
    }
}

/// True where a folder and a file in it are the user's own, as Git judges it.
pub(super) fn is_safe(root: &Root, folder: &Path, file: &Path) -> Result<bool, GovernedError> {
    let git = root.environment().map(|all| Git::find(all.iter().cloned()));
    crate::store::workspace::is_safe(|| git.unwrap_or_else(Git::find_here), folder, file).map_err(failed)
}

/// Looks at the workspace.
pub(super) fn look(root: &Root) -> Result<WorkspaceSnapshot, GovernedError> {
    let Some(workspace) = workspace(root)? else { return Ok(WorkspaceSnapshot::NoGit) };
    let below = below(root, &workspace);
    let output = workspace.status(root.folder()).map_err(failed)?;
    let (mut head, mut dirty, mut untracked) = (None, Vec::new(), Vec::new());
    for entry in output.split(|b| *b == 0).filter(|entry| !entry.is_empty()) {
        if let Some(oid) = entry.strip_prefix(b"# branch.oid ") {
            let oid = String::from_utf8_lossy(oid).into_owned();
            head = Some(oid).filter(|oid| oid != "(initial)");
        }
        // Eight fields before the path of a changed file, ten before that of an unmerged one.
        let field = |nth: usize| entry.splitn(nth + 1, |b| *b == b' ').nth(nth);
        let path = match entry.first_chunk() {
            Some(b"? ") => field(1),
            Some(b"1 ") => field(8),
            Some(b"u ") => field(10),
            Some(_) | None => None,
        };
        let Some(path) = path.and_then(|path| path.strip_prefix(&*below)) else { continue };
        let Some(path) = named(path)? else { continue };
        if entry.starts_with(b"?") {
            untracked.push(path.clone());
        }
        dirty.push(path);
    }
    dirty.sort();
    dirty.dedup();
    Ok(WorkspaceSnapshot::Git { head, dirty, untracked })
}

/// Returns a word for a file's content: `sha256:` and a digest (of a link, that of its target), `deleted` or
/// `unreadable`.
pub(super) fn marker(root: &Root, path: &str) -> String {
    let full = root.join(path);
    let digest = match disk::kind(root, &full) {
        Ok(None) => return "deleted".to_owned(),
        Ok(Some(Kind::Link)) => disk::link(root, &full).ok().map(|target| digest(target.as_encoded_bytes())),
        Ok(Some(Kind::File | Kind::Folder | Kind::Other)) | Err(_) => {
            disk::open(root, &full).ok().flatten().and_then(|file| digest_of(file).ok())
        }
    };
    digest.map_or_else(|| "unreadable".to_owned(), |hex| format!("sha256:{hex}"))
}

/// Returns the SHA-256 of a whole file, however long it is, in lower-case hex.
fn digest_of(mut file: File) -> std::io::Result<String> {
    let (mut hash, mut piece) = (Sha256::new(), [0; 64 << 10]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&piece[..read]),
        }
    }
}

/// Returns the SHA-256 of bytes, in lower-case hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn markers(root: &Root, files: &[String]) -> Object {
    files.iter().map(|file| (file.clone(), json!(marker(root, file)))).collect()
}

/// Returns the baseline of a turn that begins now.
pub(super) fn baseline(root: &Root, snapshot: &WorkspaceSnapshot) -> Value {
    match snapshot {
        WorkspaceSnapshot::NoGit => json!({
            "kind": "no_git",
            "head_ref": null,
            "clean": true,
            "captured_at": root.now(),
            "dirty_snapshot": {},
        }),
        WorkspaceSnapshot::Git { head, dirty, .. } => json!({
            "kind": "git_worktree",
            "head_ref": head,
            "clean": dirty.is_empty(),
            "captured_at": root.now(),
            "dirty_snapshot": markers(root, dirty),
        }),
    }
}

/// Returns the baseline of a turn's next attempt; `None` where the turn has none. It is the turn's own
/// baseline, so that what a rejected attempt left still counts as the turn's change; what other turns had
/// accepted since is added to it.
pub(super) fn own_baseline(root: &Root, state: &State, turn: &Turn) -> Result<Option<Value>, GovernedError> {
    let Some(mut baseline) = turn.baseline().and_then(Value::as_object).cloned() else {
        return Ok(None);
    };
    let mut accepted = Object::new();
    lines::backwards(root, &root.join(HISTORY), |entry| {
        let sequence = json::count(&entry, "accepted_sequence").unwrap_or(0);
        let is_since = json::text(&entry, "run_id") == state.run_id() && sequence > turn.assigned_sequence();
        let markers = json::object(&entry, "observed_artifact").and_then(|o| json::object(o, "file_markers"));
        for file in json::texts(&entry, "files_changed").into_iter().filter(|_| is_since) {
            if let Some(marker) = markers.and_then(|markers| markers.get(file)) {
                // Lines come newest first, and the newest marker of a file counts.
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

/// Returns the files that make the workspace unclean for a role that writes.
pub(super) fn unclean(snapshot: &WorkspaceSnapshot) -> Vec<String> {
    match snapshot {
        WorkspaceSnapshot::NoGit => Vec::new(),
        WorkspaceSnapshot::Git { dirty, .. } => {
            dirty.iter().filter(|path| !EXEMPT.iter().any(|e| path.starts_with(e))).cloned().collect()
        }
    }
}

/// Whether a workspace can be compared with a turn's baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Sight {
    /// The baseline knows no commit, so that there is nothing to compare with.
    #[default]
    NoBaseline,
    /// The baseline knows a commit, and the workspace is in no repository any more, or in one that does not have it.
    Lost,
    /// It was compared.
    Clear,
}

/// What changed since a turn's baseline.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Changes {
    /// What can be said of the workspace.
    pub sight: Sight,
    pub files: Vec<String>,
    pub markers: Object,
    untracked: Vec<String>,
}

impl Changes {
    /// Returns the changes as `{added, modified, deleted}`, each a list of files.
    pub(super) fn to_value(&self) -> Value {
        let is_gone = |file: &&String| self.markers.get(*file).is_some_and(|marker| marker == "deleted");
        let (gone, there): (Vec<&String>, Vec<&String>) = self.files.iter().partition(is_gone);
        let (added, modified): (Vec<&String>, Vec<&String>) =
            there.into_iter().partition(|file| self.untracked.contains(file));
        json!({ "added": added, "modified": modified, "deleted": gone })
    }
}

/// Returns those of these files that exist and that `git add` would leave out, because ignore rules hide
/// them.
pub(crate) fn hidden(root: &Root, files: &[&str]) -> Result<Vec<String>, GovernedError> {
    let Some(workspace) = workspace(root)? else { return Ok(Vec::new()) };
    let there =
        |path: &String| matches!(disk::kind(root, &root.join(path)), Ok(Some(Kind::File | Kind::Link)));
    let files: Vec<String> = files.iter().filter_map(|path| plain(path)).filter(there).collect();
    workspace.ignored(root.folder(), &files).map_err(failed)
}

/// Compares the workspace with a turn's baseline.
pub(super) fn changes(
    root: &Root,
    snapshot: &WorkspaceSnapshot,
    baseline: Option<&Value>,
) -> Result<Changes, GovernedError> {
    let baseline = baseline.and_then(Value::as_object);
    let baseline = baseline.filter(|all| json::text(all, "kind") == Some("git_worktree"));
    // A slot holds what it was filled with and what the turn did, and nothing of other turns.
    let filled = root.tree().and_then(KnownTree::filled_with);
    if baseline.is_none() && filled.is_none() {
        return Ok(Changes::default());
    }
    let lost = || Ok(Changes { sight: Sight::Lost, ..Changes::default() });
    let WorkspaceSnapshot::Git { head, dirty, untracked } = snapshot else { return lost() };
    let mut files = dirty.clone();
    let head_ref = || baseline.and_then(|all| json::filled(all, "head_ref"));
    let before = filled.or_else(head_ref).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if let Some(before) = before.filter(|before| head.as_deref() != Some(before)) {
        let Some(changed) = changed_since(root, before)? else { return lost() };
        // Compared with the baseline's commit: what was committed and undone again is no change.
        files = changed;
        files.extend(untracked.iter().cloned());
    }
    let dirty_before =
        baseline.filter(|_| filled.is_none()).and_then(|all| json::object(all, "dirty_snapshot"));
    let before = dirty_before.cloned().unwrap_or_default();
    files.retain(|file| before.get(file).and_then(Value::as_str) != Some(marker(root, file).as_str()));
    files.sort();
    files.dedup();
    let markers = markers(root, &files);
    Ok(Changes { sight: Sight::Clear, files, markers, untracked: untracked.clone() })
}

/// Returns the files below the root that differ from a commit; `None` where the commit is gone (pruned,
/// rewritten), so that nothing can be compared with it.
fn changed_since(root: &Root, before: &str) -> Result<Option<Vec<String>>, GovernedError> {
    let Some(workspace) = workspace(root)? else { return Ok(None) };
    let Ok(output) = workspace.changed_since(root.folder(), before) else { return Ok(None) };
    let files = output.split(|b| *b == 0).filter(|file| !file.is_empty());
    let files: Result<Vec<_>, _> = files.map(named).collect();
    Ok(Some(files?.into_iter().flatten().collect()))
}

/// Returns the ref of what the workspace is at once a turn's artifact is accepted, such as `git:<commit>`.
pub(super) fn integration_ref(snapshot: &WorkspaceSnapshot, kind: &str, previous: Option<&str>) -> String {
    match snapshot {
        WorkspaceSnapshot::Git { head: Some(head), dirty, .. } if kind != "workspace" || dirty.is_empty() => {
            format!("git:{head}")
        }
        WorkspaceSnapshot::Git { .. } => "workspace:dirty".to_owned(),
        WorkspaceSnapshot::NoGit => match kind {
            "workspace" | "review" => "workspace:dirty".to_owned(),
            _ => previous.unwrap_or("unknown").to_owned(),
        },
    }
}

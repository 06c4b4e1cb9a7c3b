//! Small facts in the Git directory that outlive a process: the id of this runner, what it saw and when.
//!
//! Implements K7 (first seen), K47a (what a branch's line brought), the runner id ("Words" in the contract),
//! and what `gc` removes.

use super::{Runner, RunnerError, io};
use crate::protocol::brought::Line;
use crate::protocol::id::ObjectId;
use crate::store::repository::Repository;
use crate::store::{RefName, name_for};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::PathBuf;

/// When this runner first saw a head.
#[derive(Serialize, Deserialize)]
struct Seen {
    head: String,
    at: i64,
    /// How many dispatches led to the head, where its commit may not say so itself.
    #[serde(default)]
    hop: Option<u32>,
}

/// The end of the name of a note that says how far an inbox was read.
const READ: &str = ".read";
/// The end of the name of a note that says which messages a branch's line brought, and the most bytes of such
/// a note.
const BROUGHT: &str = ".brought";
const BROUGHT_MAX: u64 = 1 << 20;

fn runner_path(repo: &Repository) -> (String, PathBuf) {
    let host = nix::unistd::gethostname().ok().and_then(|h| h.into_string().ok()).unwrap_or_default();
    let host: String =
        host.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(60).collect();
    let host = if host.is_empty() { "host".to_owned() } else { host };
    let path = repo.aynig_dir().join(format!("runner-{host}"));
    (host, path)
}

/// Returns this runner's id, if it has one already: for verbs that only look.
pub(crate) fn known_runner_id(repo: &Repository) -> Option<String> {
    let id = std::fs::read_to_string(runner_path(repo).1).ok()?;
    Some(id.trim_end().to_owned()).filter(|id| !id.is_empty())
}

/// Returns this runner's id, `<host>-<random>`, which is made once per repository and host.
pub(crate) fn runner_id(repo: &Repository) -> Result<String, RunnerError> {
    if let Some(id) = known_runner_id(repo) {
        return Ok(id);
    }
    let (host, path) = runner_path(repo);
    let folder = repo.aynig_dir();
    repo.make(&folder)?;
    let random = uuid::Uuid::new_v4().simple().to_string();
    let id = format!("{host}-{}", &random[..8]);
    let aside = folder.join(format!(".runner-{random}"));
    std::fs::write(&aside, format!("{id}\n")).map_err(io("write", &aside))?;
    // Of two processes at once, one succeeds with its link, and both use the id of that one.
    repo.share(&aside);
    let placed = match std::fs::hard_link(&aside, &path) {
        // Where the file system has no such links, the later of two ids stays.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => std::fs::rename(&aside, &path),
        linked => linked,
    };
    let _ = std::fs::remove_file(&aside);
    match placed {
        Ok(()) => Ok(id),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            std::fs::read_to_string(&path).map(|s| s.trim_end().to_owned()).map_err(io("read", &path))
        }
        Err(error) => Err(io("create", &path)(error)),
    }
}

impl Runner<'_> {
    fn seen_path(&self, branch: &RefName) -> PathBuf {
        self.note_path(branch, "")
    }

    fn note_path(&self, branch: &RefName, ending: &str) -> PathBuf {
        let place = self.settings.remote.as_ref().map(|remote| format!("{remote}:")).unwrap_or_default();
        let name = name_for(&[place.as_bytes(), branch.as_bytes()].concat());
        self.repo.aynig_dir().join("seen").join(name + ending)
    }

    /// True where anything was noted of any head.
    pub(super) fn any_seen(&self) -> bool {
        self.repo.aynig_dir().join("seen").is_dir()
    }

    fn seen(&self, branch: &RefName, head: ObjectId) -> Option<Seen> {
        let raw = crate::store::read_plain(&self.seen_path(branch), 4096).ok()?;
        let seen: Seen = serde_json::from_slice(&raw).ok()?;
        (seen.head == head.to_string()).then_some(seen)
    }

    /// Returns when this runner first saw this head, on its own clock; `None` where it did not, or that time
    /// is in the future.
    pub(super) fn first_seen(&self, branch: &RefName, head: ObjectId) -> Option<i64> {
        self.seen(branch, head).map(|seen| seen.at).filter(|at| *at <= self.clock.now())
    }

    /// Returns how many dispatches led to this head, if this runner noted it (K9).
    pub(super) fn noted_hop(&self, branch: &RefName, head: ObjectId) -> Option<u32> {
        self.seen(branch, head)?.hop
    }

    /// Returns the ref of an inbox after which the next look continues; `None`: it begins at the oldest
    /// message.
    pub(super) fn read_until(&self, branch: &RefName) -> Option<RefName> {
        let raw = crate::store::read_plain(&self.note_path(branch, READ), 4096).ok()?;
        Some(RefName::new(raw))
    }

    /// Notes where the next look continues. If that can't be noted, the same messages are read again.
    pub(super) fn note_read(&self, branch: &RefName, until: Option<&RefName>) {
        let path = self.note_path(branch, READ);
        let _ = match (until, path.parent()) {
            (Some(until), Some(folder)) => {
                self.repo.make(folder).and_then(|()| self.repo.write(&path, until.as_bytes())).map_err(drop)
            }
            (Some(_), None) => Ok(()),
            (None, _) => std::fs::remove_file(&path).map_err(drop),
        };
    }

    /// Returns what the line of this branch (its commits along first parents) brought, as far as an earlier
    /// process noted it. The note holds whatever became of the branch since, because what is below a commit
    /// never changes.
    pub(super) fn known_line(&self, branch: &RefName) -> Option<Line> {
        Line::parse(&crate::store::read_plain(&self.note_path(branch, BROUGHT), BROUGHT_MAX).ok()?)
    }

    /// Notes what the line of this branch brought. If that can't be noted, the line is walked again.
    pub(super) fn note_line(&self, branch: &RefName, line: &Line) {
        let (path, content) = (self.note_path(branch, BROUGHT), line.render());
        let fits = content.len() as u64 <= BROUGHT_MAX;
        if let Some(folder) = path.parent().filter(|_| fits)
            && self.repo.make(folder).is_ok()
        {
            let _ = self.repo.write(&path, &content);
        }
    }

    /// Notes that this head was seen now.
    pub(super) fn note_seen(&self, branch: &RefName, head: ObjectId) -> Result<(), RunnerError> {
        self.note_head(branch, head, None)
    }

    /// Notes how many dispatches led to this head.
    pub(super) fn note_hop(&self, branch: &RefName, head: ObjectId, hop: u32) -> Result<(), RunnerError> {
        self.note_head(branch, head, Some(hop))
    }

    fn note_head(&self, branch: &RefName, head: ObjectId, hop: Option<u32>) -> Result<(), RunnerError> {
        let path = self.seen_path(branch);
        if let Some(folder) = path.parent() {
            self.repo.make(folder)?;
        }
        let seen = Seen { head: head.to_string(), at: self.clock.now(), hop };
        Ok(self.repo.write(&path, &serde_json::to_vec(&seen).unwrap_or_default())?)
    }
}

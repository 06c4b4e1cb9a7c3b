//! Verbs inside a sandbox: the run's runner is asked to carry them out, by a file in the run's folder, and
//! its answer becomes theirs.
//!
//! [`confined`] says whether this process is inside a sandbox. If it is, nothing of the repository is opened,
//! which need not even be readable there. Implements K59 (the hand-over).

use crate::protocol::handed::{ANSWER_MAX, Answer, FOLDER, Handed};
use crate::store::read_plain;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long to wait for an answer: longer than a verb may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often to look for the answer.
const LOOK: Duration = Duration::from_millis(20);

/// The run that this process is confined to.
pub struct Confined {
    dir: PathBuf,
    branch: OsString,
    /// True in a strict sandbox, where the repository can't be read as a whole either.
    pub is_strict: bool,
}

/// Returns the run in whose sandbox this process is; `None` outside of a sandbox.
pub fn confined() -> Option<Confined> {
    let text = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_strict = text("AYNIG_SANDBOX")? == "strict";
    let (dir, branch) = (PathBuf::from(text("AYNIG_RUN_DIR")?), text("AYNIG_BRANCH")?);
    Some(Confined { dir, branch, is_strict })
}

impl Confined {
    /// True where `branch` is the run's own, or was left out.
    pub fn is_own(&self, branch: Option<&OsStr>) -> bool {
        branch.is_none_or(|branch| *branch == *self.branch)
    }

    /// Asks the runner to carry out a request, and waits for its answer.
    ///
    /// # Errors
    /// Whatever kept the request from being written; [`std::io::ErrorKind::TimedOut`] where no answer came.
    pub fn ask(&self, request: &Handed) -> std::io::Result<Answer> {
        let folder = self.dir.join(FOLDER);
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let name = folder.join(uuid::Uuid::new_v4().to_string());
        let aside = name.with_extension("new");
        std::fs::write(&aside, serde_json::to_vec(request)?)?;
        std::fs::rename(&aside, &name)?;
        let (done, until) = (name.with_extension("done"), Instant::now() + PATIENCE);
        // JSON may take six bytes for each byte of the two streams.
        let most = 16 * ANSWER_MAX as u64;
        while Instant::now() < until {
            if let Ok(raw) = read_plain(&done, most) {
                let _ = std::fs::remove_file(&done);
                return Ok(serde_json::from_slice(&raw)?);
            }
            std::thread::sleep(LOOK);
        }
        let _ = std::fs::remove_file(&name);
        Err(std::io::ErrorKind::TimedOut.into())
    }
}

//! Protected files, which no hook may change: how they were before a hook, and how they are put back.
//!
//! They are the state, the history and the ledger, and what the caller protects besides; a file that does not
//! exist is protected too. The first file that differs is reported; all that differ are put back.

use super::super::root::Root;
use super::super::{GovernedError, disk};
use crate::supervisor::beneath::Kind;
use std::path::{Path, PathBuf};

const PROTECTED: [&str; 3] =
    [".agentxchain/state.json", ".agentxchain/history.jsonl", ".agentxchain/decision-ledger.jsonl"];

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    File(Vec<u8>),
    /// A folder, a link, a socket: no protected file is one.
    Other,
}

/// Protected files as they were before a hook.
#[derive(Debug)]
pub(super) struct Snapshot {
    files: Vec<(String, PathBuf, Found)>,
}

/// A file that a hook changed.
#[derive(Debug)]
pub(super) struct Tampered {
    pub file: String,
    pub code: &'static str,
}

impl Snapshot {
    pub(super) fn take(root: &Root, more: &[PathBuf]) -> Result<Self, GovernedError> {
        let names = PROTECTED.iter().map(|name| (*name).to_owned());
        let names = names.chain(more.iter().map(|path| path.to_string_lossy().into_owned()));
        let files = names.map(|name| {
            let path = root.join(&name);
            let found = look(root, &path)?;
            Ok((name, path, found))
        });
        Ok(Self { files: files.collect::<Result<_, GovernedError>>()? })
    }

    /// Returns the first file that is not as it was.
    pub(super) fn changed(&self, root: &Root) -> Result<Option<Tampered>, GovernedError> {
        for (name, path, before) in &self.files {
            if look(root, path)? != *before {
                return Ok(Some(Tampered { file: name.clone(), code: code(name) }));
            }
        }
        Ok(None)
    }

    /// Puts every file back that is not as it was.
    pub(super) fn restore(&self, root: &Root) -> Result<(), GovernedError> {
        for (_, path, before) in &self.files {
            let now = look(root, path)?;
            if now == *before {
                continue;
            }
            match before {
                Found::File(bytes) => {
                    if now == Found::Other {
                        disk::remove_tree(root, path)?;
                    }
                    disk::write_whole(root, path, bytes)?;
                }
                Found::Nothing => disk::remove_tree(root, path)?,
                Found::Other => {}
            }
        }
        Ok(())
    }
}

fn look(root: &Root, path: &Path) -> Result<Found, GovernedError> {
    match disk::kind(root, path) {
        Ok(Some(Kind::File)) => Ok(disk::read(root, path)?.map_or(Found::Nothing, Found::File)),
        // A link on the way counts as well: no protected file is behind one.
        Ok(Some(Kind::Folder | Kind::Link | Kind::Other)) | Err(GovernedError::Outside { .. }) => {
            Ok(Found::Other)
        }
        Ok(None) => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

/// Returns the original tool's code for a protected file that was changed.
fn code(name: &str) -> &'static str {
    if name.ends_with("state.json") {
        "hook_state_tamper"
    } else if name.ends_with("history.jsonl") {
        "hook_history_tamper"
    } else if name.ends_with("decision-ledger.jsonl") {
        "hook_ledger_tamper"
    } else {
        "hook_bundle_tamper"
    }
}

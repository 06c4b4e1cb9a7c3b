//! The record of a slot: what one process notes for the next, and the run whose work may be in the slot.

use super::affinity::LastRun;
use super::keep;
use super::place::Place;
use crate::protocol::id::ObjectId;
use crate::store::RefName;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Most bytes of a slot's record.
const RECORD_MAX: u64 = 1 << 20;

/// What one process notes about a slot for the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The tree that the index copy describes, in hex.
    pub(crate) tree: Option<String>,
    /// When the files were last known to be that tree, in nanoseconds since 1970.
    pub(crate) verified_at: u64,
    /// The permissions with which the slot's folders were made.
    #[serde(default)]
    pub(crate) folder_mode: Option<u32>,
    /// The place of the slot's folder; records of earlier versions do not have it.
    #[serde(default)]
    pub(crate) place: Option<Place>,
    /// The run whose work may still be in the slot.
    pub(crate) run: Option<Occupant>,
    /// The run for which the slot was last taken; records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<LastRun>,
    /// The branch whose files are kept in the slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keeps: Option<keep::Keeps>,
    /// The paths that were in the slot beside the commit when it was filled; folders end in a slash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) beside: Vec<Vec<u8>>,
    /// Those of `beside` that are never the work of the slot's run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) included: Vec<Vec<u8>>,
    /// The account that last filled the slot, by its number; records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<u32>,
    /// When the slot's folder was made, in nanoseconds since 1970; records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<u64>,
    /// Set where the record exists but can't be read: then it is not known whose work is in the slot.
    #[serde(skip)]
    pub(crate) unreadable: Option<Unreadable>,
}

/// The record of a slot that exists and can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// A run in a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Occupant {
    pub(crate) run_id: String,
    /// The full name of its branch, for readers.
    pub(crate) branch: String,
    /// The bytes of the branch's name, where they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch_bytes: Option<Vec<u8>>,
    /// The remote whose branch it is; `None` for a local branch.
    #[serde(default)]
    pub(crate) remote: Option<String>,
    /// The lease commit that the slot was filled with, in hex.
    pub(crate) lease: String,
    /// Set once the command has ended without a declaration, so that the lease lives on (K21).
    pub(crate) lingering: bool,
    /// The guardian's process id, while the hold is taken.
    pub(crate) guardian: Option<u32>,
    /// The outcome in hex, once a process that outlived the command has written it.
    #[serde(default)]
    pub(crate) outcome: Option<String>,
}

impl Occupant {
    /// Returns the note of a run that begins in a slot which was filled with this lease.
    pub(crate) fn new(run_id: &str, branch: &RefName, remote: Option<String>, lease: ObjectId) -> Self {
        let raw = branch.as_bytes();
        Self {
            run_id: run_id.to_owned(),
            branch: String::from_utf8_lossy(raw).into_owned(),
            branch_bytes: std::str::from_utf8(raw).is_err().then(|| raw.to_vec()),
            remote,
            lease: lease.to_string(),
            lingering: false,
            guardian: None,
            outcome: None,
        }
    }
    /// Returns the lease commit, with which the slot was filled.
    pub(crate) fn lease_id(&self) -> Option<ObjectId> {
        self.lease.parse().ok()
    }
    /// Returns the outcome that a process wrote from inside the slot.
    pub(crate) fn outcome_id(&self) -> Option<ObjectId> {
        self.outcome.as_ref().and_then(|id| id.parse().ok())
    }
    pub(crate) fn branch_name(&self) -> RefName {
        RefName::new(self.branch_bytes.as_deref().unwrap_or(self.branch.as_bytes()))
    }
}

/// Reads the record of a slot in the folder of the slots' notes.
pub(super) fn read_record(notes: &Path, number: usize) -> Record {
    let path = notes.join(format!("{number}.json"));
    let read = match crate::store::read_plain(&path, RECORD_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Record::default(),
        Err(error) => Err(error.to_string()),
        // A record that was not on the disk yet when the power failed keeps its name, but is empty or holds
        // only zeros. What its run had done by then is just as little on the disk, so an empty record loses
        // nothing.
        Ok(raw) if raw.iter().all(|byte| *byte == 0) => return Record::default(),
        Ok(raw) => serde_json::from_slice(&raw).map_err(|error| error.to_string()),
    };
    read.unwrap_or_else(|why| Record { unreadable: Some(Unreadable { path, why }), ..Record::default() })
}

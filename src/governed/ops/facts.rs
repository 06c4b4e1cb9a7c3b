//! What an operation finds staged for a turn.

use super::super::root::Root;
use super::super::staging::{FLAT, RESULT_MAX};
use super::super::state::{Turn, get_turn_staging_result_path};
use super::super::{GovernedError, disk};
use serde_json::Value;

/// A staged file.
pub(super) struct Staged {
    /// The file's path, relative to the root.
    pub path: String,
    /// `None` where the file is longer than any result may be.
    pub bytes: Option<Vec<u8>>,
    /// True for a file in the turn's own place, false for one in the flat place ([`FLAT`]).
    own: bool,
}

impl Staged {
    /// Returns the id of the turn that the file names.
    pub(super) fn names(&self) -> Option<String> {
        let value: Value = serde_json::from_slice(self.bytes.as_ref()?).ok()?;
        Some(value.get("turn_id")?.as_str()?.to_owned())
    }

    /// True where the file stands in the turn's own place, or names the turn.
    pub(super) fn is_of(&self, turn: &Turn) -> bool {
        self.own || self.names().as_deref() == Some(turn.id())
    }

    /// Returns the id of the other turn that a file in the flat place names.
    pub(super) fn is_of_another(&self, turn: &Turn) -> Option<String> {
        self.names().filter(|name| !self.own && name != turn.id())
    }
}

/// Returns what is staged for a turn: in its own place, else in the flat one.
pub(super) fn staged(root: &Root, turn: &Turn) -> Result<Option<Staged>, GovernedError> {
    let own = get_turn_staging_result_path(turn.id()).to_string_lossy().into_owned();
    for (path, is_own) in [(own.as_str(), true), (FLAT, false)] {
        let full = root.join(path);
        let bytes = match disk::end(root, &full)?.0 > RESULT_MAX {
            true => None,
            false => match disk::read(root, &full)? {
                Some(bytes) => Some(bytes),
                None => continue,
            },
        };
        return Ok(Some(Staged { path: path.to_owned(), bytes, own: is_own }));
    }
    Ok(None)
}

//! Where a turn's worker leaves its result, and the other ways in which a result gets to that place or leaves
//! it.

use super::root::Root;
use super::state::{Turn, dispatch_folder, get_turn_staging_result_path, is_safe_id};
use super::{GovernedError, disk, json};
use crate::supervisor::beneath::Kind;
use serde_json::Value;
use std::path::PathBuf;

/// The place of a result that belongs to the turn that it names, as older tools stage it.
pub(super) const FLAT: &str = ".agentxchain/staging/turn-result.json";
/// The folder for results that were not accepted.
pub(super) const REJECTED: &str = ".agentxchain/dispatch/rejected";
/// The most bytes of a result, as of a declaration.
pub(crate) const RESULT_MAX: u64 = 16 << 20;

/// What a worker left in the place of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing that could be a result.
    Nothing,
    /// A file that may be a result.
    Result,
    /// A file that was longer than any result may be, and is removed.
    TooLong,
}

/// Says that a result is longer than any may be.
pub(crate) fn too_long() -> String {
    format!("its result is larger than {RESULT_MAX} bytes")
}

/// Makes the folder for a turn's result, removes the result of an earlier attempt, and returns the result's
/// path.
///
/// # Errors
/// A turn whose id is no file name; a folder that can't be written, or that is not the project's own.
pub(crate) fn make_staging(root: &Root, turn_id: &str) -> Result<PathBuf, GovernedError> {
    let path = place(root, turn_id)?;
    if let Some(folder) = path.parent() {
        disk::make_dirs(root, folder)?;
    }
    disk::remove_tree(root, &path)?;
    Ok(path)
}

/// Puts a turn's result where [`accept_turn`](super::accept_turn) looks for it; returns the path of the file.
///
/// The file is written as a whole, so that no process reads half of it. It replaces an earlier result, and is
/// written below the root without following a link that a worker may have left on the way. The result is
/// validated only when it is accepted.
///
/// # Errors
/// [`GovernedError::UnsafeTurnId`]; [`GovernedError::Outside`] and [`GovernedError::Io`] where the file can't
/// be written.
pub fn stage_turn_result(root: &Root, turn_id: &str, result: &Value) -> Result<PathBuf, GovernedError> {
    stage_result(root, turn_id, json::page(result).as_bytes())?;
    place(root, turn_id)
}

/// Stages bytes as a turn's result, whatever they are; returns the bytes that were staged before, if any.
///
/// # Errors
/// As [`make_staging`].
pub(crate) fn stage_result(
    root: &Root,
    turn_id: &str,
    result: &[u8],
) -> Result<Option<Vec<u8>>, GovernedError> {
    let path = place(root, turn_id)?;
    // A result that can't be read could not be staged again either, so it counts as none.
    let before = match left(root, turn_id)? {
        Left::Result => disk::read_within(root, &path, RESULT_MAX).ok().flatten(),
        Left::Nothing | Left::TooLong => None,
    };
    disk::write_whole(root, &path, result)?;
    Ok(before)
}

/// Stages the bytes again that were staged before; if there were none, removes what is staged.
///
/// # Errors
/// As [`make_staging`].
pub(crate) fn stage_again(root: &Root, turn_id: &str, before: Option<&[u8]>) -> Result<(), GovernedError> {
    let path = place(root, turn_id)?;
    match before {
        Some(before) => disk::write_whole(root, &path, before),
        None => disk::remove_tree(root, &path),
    }
}

/// Returns what is in the place of a turn's result. What is no plain file there is no result, and is removed; so is
/// a file that is too long for one, since Git would take hours to hash what costs a worker nothing to make.
///
/// # Errors
/// As [`make_staging`].
pub(crate) fn left(root: &Root, turn_id: &str) -> Result<Left, GovernedError> {
    let path = place(root, turn_id)?;
    match disk::kind(root, &path) {
        Ok(Some(Kind::File)) if disk::end(root, &path)?.0 > RESULT_MAX => {
            disk::remove_file(root, &path).map(|()| Left::TooLong)
        }
        Ok(Some(Kind::File)) => Ok(Left::Result),
        Ok(None) => Ok(Left::Nothing),
        Ok(Some(Kind::Folder | Kind::Link | Kind::Other)) => {
            disk::remove_tree(root, &path).map(|()| Left::Nothing)
        }
        // A link is on the way: a worker has replaced the folder itself.
        Err(GovernedError::Outside { .. }) => {
            let folder = path.parent().unwrap_or(&path);
            disk::remove_tree(root, folder).map(|()| Left::Nothing)
        }
        Err(error) => Err(error),
    }
}

/// Reads the text of a turn's prompt, as it was dispatched; empty where there is none.
///
/// # Errors
/// As [`make_staging`].
pub(crate) fn read_prompt(root: &Root, turn_id: &str) -> Result<String, GovernedError> {
    let path = root.join(dispatch_folder(turn_id)).join("PROMPT.md");
    Ok(String::from_utf8_lossy(&disk::read(root, &path)?.unwrap_or_default()).into_owned())
}

/// Moves a result that is still staged to the rejected ones, because it must not be accepted without the
/// files that it was made with.
///
/// # Errors
/// As [`make_staging`].
pub(crate) fn set_aside_result(root: &Root, turn: &Turn) -> Result<(), GovernedError> {
    let from = place(root, turn.id())?;
    let stamp = root.now().replace([':', '.'], "-");
    let to = format!("{REJECTED}/{}-attempt-{}-{stamp}.json", turn.id(), turn.attempt());
    disk::rename(root, &from, &root.join(to))
}

fn place(root: &Root, turn_id: &str) -> Result<PathBuf, GovernedError> {
    if !is_safe_id(turn_id) {
        return Err(GovernedError::UnsafeTurnId { turn_id: turn_id.to_owned() });
    }
    Ok(root.join(get_turn_staging_result_path(turn_id)))
}

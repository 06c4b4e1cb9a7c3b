//! Reads the commit that was just made without opening the repository.
//!
//! Hooks run at every commit, and most commits are no state event, so a plain commit must cost little. As a
//! rule a branch that was just moved is a loose ref, and its commit a loose object. Where either is not so,
//! `None` tells the caller to open the repository and look. Implements K38 (what a plain commit pays).

use super::reading::{RefValue, path_of, read_loose, target_of};
use crate::protocol::id::ObjectId;
use crate::store::{Commit, commit};
use std::path::Path;

/// Returns the newest commit of the branch that is checked out in this Git directory; `None` where no branch
/// is checked out, or where its ref or the commit is not loose.
pub(crate) fn newest_commit(git_dir: &Path) -> Option<Commit> {
    let head = std::fs::read(git_dir.join("HEAD")).ok()?;
    let name = target_of(&head)?;
    let path = path_of(git_dir, &name).ok()?;
    let id = [40, 64].into_iter().find_map(|hex_len| match read_loose(&path, hex_len).ok()? {
        RefValue::Object(id) => Some(id),
        RefValue::Missing | RefValue::Symbolic(_) | RefValue::Unreadable(_) => None,
    })?;
    let raw = read_object(git_dir, id)?;
    commit::parse(id, &raw).ok()
}

fn read_object(git_dir: &Path, id: ObjectId) -> Option<Vec<u8>> {
    let id = crate::store::backends::gix_store::to_gix(id).ok()?;
    let loose = gix::odb::loose::Store::at(git_dir.join("objects"), id.kind());
    let mut buffer = Vec::new();
    let found = loose.try_find(&id, &mut buffer).ok()??;
    (found.kind == gix::objs::Kind::Commit).then(|| found.data.to_vec())
}

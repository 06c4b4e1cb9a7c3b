//! Trees that are small and stand for more files than any disk holds.
//!
//! A tree may name another one many times, and that one a third: a dozen objects are ten thousand million files.
//! Each object is read once here, however often it is named, so that this is known before anything is expanded.
//! Implements K14.

use crate::store::StoreError;
use gix::objs::TreeRefIter;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// More files than this are not brought into a slot.
const FILES_MAX: u64 = 20_000_000;
/// Nor folders in folders deeper than this: no system takes such a path.
const DEPTH_MAX: usize = 4096;

fn failed(message: impl Into<String>) -> StoreError {
    StoreError::Gix { what: "fill the worktree", message: message.into() }
}

/// Refuses a tree with too many files.
pub(super) fn defuse(
    repo: &gix::Repository,
    tree: gix::ObjectId,
    stop: &AtomicBool,
) -> Result<(), StoreError> {
    let mut known: HashMap<gix::ObjectId, u64> = HashMap::new();
    // Trees whose folders are being counted: own files so far, and folders that are left.
    let mut open = vec![read(repo, tree)?];
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(failed("it was stopped"));
        }
        let Some(level) = open.last_mut() else { return Ok(()) };
        match level.folders.last().copied() {
            Some(next) => match known.get(&next) {
                Some(files) => {
                    level.files = level.files.saturating_add(*files);
                    level.folders.pop();
                }
                None if open.len() >= DEPTH_MAX => return Err(failed("its folders are too deep")),
                None => open.push(read(repo, next)?),
            },
            None => {
                let Some(done) = open.pop() else { return Ok(()) };
                if done.files > FILES_MAX {
                    return Err(failed(format!("it has more than {FILES_MAX} files")));
                }
                known.insert(done.id, done.files);
            }
        }
    }
}

struct Level {
    id: gix::ObjectId,
    files: u64,
    folders: Vec<gix::ObjectId>,
}

fn read(repo: &gix::Repository, id: gix::ObjectId) -> Result<Level, StoreError> {
    let object = repo.find_object(id).map_err(|e| failed(format!("{e:?}")))?;
    let mut level = Level { id, files: 0, folders: Vec::new() };
    for entry in TreeRefIter::from_bytes(&object.data, id.kind()) {
        let entry = entry.map_err(|e| failed(format!("{e:?}")))?;
        match entry.mode.is_tree() {
            true => level.folders.push(entry.oid.to_owned()),
            false => level.files += 1,
        }
    }
    Ok(level)
}

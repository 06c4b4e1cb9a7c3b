//! Finds trees that are small but stand for more files than any disk holds.
//!
//! A tree may name another one many times, and that one a third: so a dozen objects can stand for ten
//! thousand million files. This module reads each object once, however often it is named, so that the number
//! of files is known before anything is expanded. Implements K14.

use crate::store::StoreError;
use gix::objs::TreeRefIter;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most files that are brought into a slot.
const FILES_MAX: u64 = 20_000_000;
/// How deep folders may be nested: no system accepts a path deeper than this.
const DEPTH_MAX: usize = 4096;

fn failed(message: impl Into<String>) -> StoreError {
    StoreError::Gix { what: "fill the worktree", message: message.into() }
}

/// Refuses a tree that has too many files, or whose folders are nested too deep.
pub(super) fn defuse(
    repo: &gix::Repository,
    tree: gix::ObjectId,
    stop: &AtomicBool,
) -> Result<(), StoreError> {
    let mut known: HashMap<gix::ObjectId, u64> = HashMap::new();
    // The trees that are being counted, from the top down: each with its files so far, and the folders that
    // are left.
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

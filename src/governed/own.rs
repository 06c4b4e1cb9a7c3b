//! A run's own files: the orchestrator writes them, and no turn may.
//!
//! They are `TALK.md`, and everything below `.agentxchain/` but the folders of reviews, reports and
//! proposals. Locks, and files that are being written, belong to a process at work, and are in no commit.
//! What a worker changes of the run's own files is put back, and so is `HUMAN_TASKS.md` ([`Own`]). Implements
//! G6, G12, G13.

use super::journal::TALK;
use super::lock::LOCK;
use super::root::Root;
use super::staging::FLAT;
use super::state::{State, Turn, get_turn_staging_result_path, is_safe_id};
use super::{GovernedError, disk};
use crate::supervisor::beneath::Kind;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folder of a run's own files.
const FOLDER: &str = ".agentxchain";
/// The entries of that folder that belong to a process at work, and are in no commit.
const AT_WORK: [&str; 2] = ["locks", "transactions"];
/// The entries of that folder that turns may write into.
const OF_TURNS: [&str; 3] = ["proposed", "reports", "reviews"];
/// The entry of that folder where workers leave their results, and whatever else they like.
const STAGING: &str = "staging";
/// The entries of the folder that a commit names even where they were removed.
const KNOWN: [&str; 2] = ["dispatch", "state.json"];

/// Returns the paths that a commit of the run takes even where ignore rules hide them, or where they are
/// gone.
///
/// # Errors
/// A folder that can't be listed.
pub(crate) fn own_paths(root: &Root, state: &State) -> Result<Vec<String>, GovernedError> {
    let mut names = disk::text_names(root, &root.join(FOLDER))?;
    names.extend(KNOWN.map(str::to_owned));
    names.sort();
    names.dedup();
    let is_own = |name: &str| name != STAGING && !AT_WORK.contains(&name) && !OF_TURNS.contains(&name);
    names.retain(|name| is_own(name));
    let mut paths: Vec<String> = names.into_iter().map(|name| format!("{FOLDER}/{name}")).collect();
    paths.push(FLAT.to_owned());
    let turns = state.active_turns();
    let ids = turns.iter().map(Turn::id).filter(|id| is_safe_id(id));
    paths.extend(ids.map(|id| get_turn_staging_result_path(id).to_string_lossy().into_owned()));
    paths.push(TALK.to_owned());
    Ok(paths)
}

/// True where a commit has brought what belongs to a process at work, given the names in its run's own folder.
pub(crate) fn brings_work<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> bool {
    names.into_iter().any(|name| AT_WORK.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name)))
}

/// Removes what belongs to a process at work from a folder in which none is: a commit has brought it, and what it says
/// was never begun here.
///
/// # Errors
/// A file operation that fails.
pub(crate) fn forget_work(root: &Root) -> Result<(), GovernedError> {
    AT_WORK.iter().try_for_each(|name| disk::remove_tree(root, &root.join(FOLDER).join(name)))
}

/// A run's own files as they were before a worker began, to be put back.
#[derive(Debug)]
pub(crate) struct Own {
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// The folder for the turn's result, which the worker may write into.
    staging: PathBuf,
}

/// The orchestrator's files that lie beside the folder.
const BESIDE: [&str; 2] = [TALK, "HUMAN_TASKS.md"];

impl Own {
    /// Reads the run's own files. The caller makes sure that no other process changes them until they are put
    /// back.
    ///
    /// # Errors
    /// A file operation that fails.
    pub(crate) fn take(root: &Root, turn_id: &str) -> Result<Self, GovernedError> {
        let staging = get_turn_staging_result_path(turn_id);
        let staging = staging.parent().unwrap_or(&staging).to_owned();
        let mut own = Self { files: BTreeMap::new(), staging };
        for path in own.found(root)? {
            let bytes = disk::read(root, &root.join(&path))?.unwrap_or_default();
            own.files.insert(path, bytes);
        }
        Ok(own)
    }

    /// Puts back the files that are not as they were, and returns their paths.
    ///
    /// # Errors
    /// A file operation that fails.
    pub(crate) fn put_back(&self, root: &Root) -> Result<Vec<String>, GovernedError> {
        let folder = root.join(FOLDER);
        let mut changed = Vec::new();
        if disk::kind(root, &folder)?.is_some_and(|kind| kind != Kind::Folder) {
            disk::remove_tree(root, &folder)?;
            changed.push(FOLDER.to_owned());
        }
        for path in self.found(root)? {
            let full = root.join(&path);
            let is_same = match disk::kind(root, &full)? {
                // Only a file of the right length is read: a worker may have made any other too long to read.
                Some(Kind::File) => match self.files.get(&path) {
                    Some(bytes) if disk::end(root, &full)?.0 == bytes.len() as u64 => {
                        disk::read(root, &full)?.as_ref() == Some(bytes)
                    }
                    Some(_) | None => false,
                },
                Some(Kind::Folder | Kind::Link | Kind::Other) | None => false,
            };
            if !is_same {
                changed.push(path.to_string_lossy().into_owned());
                disk::remove_tree(root, &full)?;
            }
        }
        for (path, bytes) in &self.files {
            let full = root.join(path);
            if disk::kind(root, &full)?.is_none() {
                let name = path.to_string_lossy().into_owned();
                if !changed.contains(&name) {
                    changed.push(name);
                }
                disk::write_whole(root, &full, bytes)?;
            }
        }
        changed.sort();
        Ok(changed)
    }

    /// Returns the paths of all of the run's own files that exist now, also of links and of other things that
    /// are not files.
    fn found(&self, root: &Root) -> Result<Vec<PathBuf>, GovernedError> {
        let mut found = Vec::new();
        let mut folders = vec![PathBuf::from(FOLDER)];
        for name in BESIDE {
            if disk::kind(root, &root.join(name))?.is_some() {
                found.push(PathBuf::from(name));
            }
        }
        while let Some(folder) = folders.pop() {
            if disk::kind(root, &root.join(&folder))? != Some(Kind::Folder) {
                continue;
            }
            for name in disk::names(root, &root.join(&folder))? {
                let path = folder.join(&name);
                let is_of_turns = folder == Path::new(FOLDER) && OF_TURNS.iter().any(|of| name == *of);
                let is_lock = path == Path::new(LOCK);
                if is_of_turns || is_lock || path == self.staging {
                    continue;
                }
                match disk::kind(root, &root.join(&path))? {
                    Some(Kind::Folder) => folders.push(path),
                    Some(Kind::File | Kind::Link | Kind::Other) => found.push(path),
                    None => {}
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    /// G12: a file that a worker adds to the run's own files is removed, whatever its name is.
    #[test]
    fn a_file_whose_name_is_no_text_is_put_back_too() {
        let folder = tempfile::tempdir().unwrap();
        let dispatch = folder.path().join(FOLDER).join("dispatch");
        std::fs::create_dir_all(&dispatch).unwrap();
        std::fs::write(dispatch.join("kept"), "x").unwrap();
        let root = Root::new(folder.path());
        let own = Own::take(&root, "turn_1").unwrap();
        let file = dispatch.join(std::ffi::OsStr::from_bytes(b"\xff"));
        std::fs::write(&file, "x").unwrap();
        assert_eq!(own.put_back(&root).unwrap().len(), 1);
        assert!(!file.exists() && dispatch.join("kept").exists());
        assert_eq!(own.put_back(&root).unwrap(), [""; 0]);
    }
}

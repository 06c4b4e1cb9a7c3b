//! What is in a slot at some paths, byte for byte, whatever rules for ignoring or converting say.
//!
//! A command may name paths that its outcome needs: they are staged here past `.gitignore`, `info/exclude` and
//! every filter, on top of a tree. Regular files only, and only below the slot. What was copied into the slot, or is
//! another branch's, comes with no folder: only where it is named itself. Implements K19, K25, K58.

use super::Slot;
use crate::protocol::id::ObjectId;
use crate::store::repository::Repository;
use crate::store::{StoreError, beneath, io_error};
use beneath::{BeneathError, Kind, Root, found};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Most bytes of one file.
const FILE_MAX: u64 = 256 << 20;
/// Most entries of one folder.
const ENTRIES_MAX: usize = 100_000;

impl Slot {
    /// The tree `base`, with what the slot has at these paths in the place of what it has there. What is never the run's
    /// work, and not named itself, is as it is in `base`: there it is only where the command staged it.
    ///
    /// # Errors
    /// A file that can't be read, or that is longer than 256 MiB; what Git says.
    pub(crate) fn with_paths(
        &self,
        repo: &Repository,
        base: ObjectId,
        paths: &[String],
    ) -> Result<ObjectId, StoreError> {
        if paths.is_empty() {
            return Ok(base);
        }
        let aside = self.notes.join(format!("{}.paths-{}", self.number, std::process::id()));
        let _ = crate::store::remove_tree(&aside);
        std::fs::create_dir(&aside).map_err(io_error("create", &aside))?;
        let made = self.put_paths(repo, base, paths, &aside);
        let _ = crate::store::remove_tree(&aside);
        if repo.durable {
            crate::store::sync_file_system(&repo.common_dir)?;
        }
        made
    }

    fn put_paths(
        &self,
        repo: &Repository,
        base: ObjectId,
        paths: &[String],
        aside: &Path,
    ) -> Result<ObjectId, StoreError> {
        let root = Root::open(&self.dir).map_err(cannot)?;
        let mut foreign = self.foreign();
        foreign.retain(|path| !paths.iter().any(|named| named.as_bytes() == path.as_slice()));
        let foreign: BTreeSet<PathBuf> =
            foreign.iter().map(|path| PathBuf::from(OsStr::from_bytes(path))).collect();
        let mut files = BTreeSet::new();
        for path in paths {
            collect(&root, Path::new(path), &foreign, &mut files)?;
        }
        let mut copies = Vec::new();
        let mut modes = Vec::new();
        for (number, path) in files.iter().enumerate() {
            let file = root.file(path).map_err(cannot)?;
            let meta = file.metadata().map_err(io_error("read", path))?;
            // A copy, so that what is hashed is what was opened.
            let copy = aside.join(number.to_string());
            let bytes = root.read(path, FILE_MAX).map_err(cannot)?;
            std::fs::write(&copy, bytes).map_err(io_error("write", &copy))?;
            modes.push(if meta.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" });
            copies.push(copy);
        }
        let ids = repo.git.hash_files(&copies)?;
        let put = files.iter().zip(modes).zip(&ids).map(|((path, mode), id)| (path.as_path(), mode, *id));
        let put: Vec<(&Path, &str, ObjectId)> = put.collect();
        let named: BTreeSet<&Path> = paths.iter().map(Path::new).collect();
        let stays = |path: &Path| {
            let nearest = path.ancestors().find(|at| named.contains(at) || foreign.contains(*at));
            nearest.is_some_and(|at| foreign.contains(at))
        };
        repo.git.tree_with(&aside.join("index"), base, paths, stays, &put)
    }
}

fn collect(
    root: &Root,
    path: &Path,
    without: &BTreeSet<PathBuf>,
    files: &mut BTreeSet<PathBuf>,
) -> Result<(), StoreError> {
    if without.contains(path) {
        return Ok(());
    }
    match root.kind(path) {
        Ok(Some(Kind::File)) => {
            files.insert(path.to_owned());
        }
        Ok(Some(Kind::Folder)) => {
            for entry in found(root.list(path, ENTRIES_MAX)).map_err(cannot)?.unwrap_or_default() {
                collect(root, &path.join(entry.name), without, files)?;
            }
        }
        // Nothing that the run's own files are.
        Ok(Some(Kind::Link | Kind::Other) | None) => {}
        Err(error) if error.refusal().is_some() => {}
        Err(error) => return Err(cannot(error)),
    }
    Ok(())
}

fn cannot(error: BeneathError) -> StoreError {
    let (BeneathError::Refused { what, path, .. } | BeneathError::Io { what, path, .. }) = &error;
    io_error(what, &path.clone())(error.into())
}

//! Stages what a slot has at some paths, byte for byte, whatever the rules for ignoring or converting files
//! say.
//!
//! A command may name paths that its outcome needs: they are staged past `.gitignore`, `info/exclude` and
//! every filter, on top of a tree. Only regular files are staged, and only from below the slot. A file that
//! was copied into the slot, or that is another branch's, is not staged with the folder that holds it, but
//! only where the command names the file itself. Implements K19, K25, K58.

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
    /// Writes the tree `base` in which what the slot has at these paths replaces what `base` has there. A
    /// path that is never the run's work, and that is not named itself, stays as it is in `base`, which has
    /// it only if the command staged it.
    ///
    /// # Errors
    /// A file that can't be read, or that is longer than 256 MiB; what Git reports.
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
            // A copy is hashed, so that it is the content of the file that was opened.
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
        // Links, fifos and the like are not files of the run's own.
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

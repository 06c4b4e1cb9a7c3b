//! Files that lead any Git elsewhere, and that a confined command can write all the same.
//!
//! Its slot's registration and the folder of objects have to be written for a commit. What in them names another
//! repository, another configuration or other objects is noted before, compared after, and put right. Implements K59.

use super::Slot;
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, read_plain, remove_tree, write_aside};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes of a file that is put right; a longer one is only noticed.
const FILE_MAX: u64 = 1 << 20;
/// Most files of `objects/info` that are looked at.
const FILES_MAX: usize = 10_000;

/// What `objects/info` was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leads {
    seen: BTreeMap<PathBuf, (u64, u64, i64, i64)>,
    alternates: Option<Vec<u8>>,
}

impl Slot {
    /// What leads Git now.
    pub(crate) fn watch_leads(&self, repo: &Repository) -> Leads {
        let info = repo.common_dir.join("objects/info");
        let (mut seen, mut folders) = (BTreeMap::new(), vec![info.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(meta) = entry.path().symlink_metadata() else { continue };
                // Git looks whether it is what it says, and a folder changes with what is in it.
                if meta.is_dir() && seen.len() < FILES_MAX {
                    folders.push(entry.path());
                } else {
                    seen.insert(entry.path(), (meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec()));
                }
            }
        }
        Leads { seen, alternates: read_plain(&info.join("alternates"), FILE_MAX).ok() }
    }

    /// Which of it a command changed; it is put right as far as that can be.
    pub(crate) fn changed_leads(
        &self,
        repo: &Repository,
        before: &Leads,
    ) -> Result<Option<String>, StoreError> {
        let admin = |name: &str| self.admin.join(name);
        let gitdir = self.dir.join(".git").into_os_string().into_encoded_bytes();
        let is = |name: &str, content: &[u8]| {
            read_plain(&admin(name), FILE_MAX).is_ok_and(|found| found.trim_ascii_end() == content)
        };
        let told = admin("config.worktree").symlink_metadata().is_ok();
        let now = self.watch_leads(repo);
        let changed = if !is("commondir", b"../..") {
            Some("commondir")
        } else if !is("gitdir", &gitdir) {
            Some("gitdir")
        } else if told {
            Some("config.worktree")
        } else if now != *before {
            Some("objects/info")
        } else {
            None
        };
        if changed == Some("objects/info") {
            self.put_right(&repo.common_dir.join("objects/info"), &now, before)?;
        }
        Ok(changed.map(str::to_owned))
    }

    /// Takes out of `objects/info` what was not there, and brings back where other objects are.
    fn put_right(&self, info: &Path, now: &Leads, before: &Leads) -> Result<(), StoreError> {
        for (path, what) in &now.seen {
            if before.seen.get(path) != Some(what) {
                remove_tree(path).map_err(io_error("remove", path))?;
            }
        }
        match &before.alternates {
            Some(content) if now.alternates != before.alternates => {
                write_aside(&info.join("alternates"), content)
            }
            Some(_) | None => Ok(()),
        }
    }
}

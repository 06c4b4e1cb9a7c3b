//! Files that lead any Git elsewhere, and that a confined command can write all the same.
//!
//! Its slot's registration and the folder of objects have to be written for a commit. What in them names another
//! repository, another configuration or other objects is noted before, compared after, and put right. The command may have
//! put a link anywhere there: none is followed, and what is removed is a name below the folder of objects. Implements K59.

use super::Slot;
use crate::store::beneath::{BeneathError, Kind, Root, found};
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, read_plain};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most bytes of a file that is put right; a longer one is only noticed.
const FILE_MAX: u64 = 1 << 20;
/// Most names below `objects/info` that are looked at. More are taken for changed.
const NAMES_MAX: usize = 10_000;
/// How deep folders may lie in one another there; deeper ones are taken for changed too.
const DEPTH_MAX: usize = 16;
/// What leads to other objects, below the folder of objects.
const INFO: &str = "info";
const ALTERNATES: &str = "info/alternates";

/// What `objects/info` was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leads {
    /// Its own kind, and each name below it but for folders, by its path below the folder of objects.
    seen: BTreeMap<PathBuf, Seen>,
    alternates: Option<Vec<u8>>,
}

/// What a name stood for: inode, bytes and change time of what is no folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Folder,
    Other(u64, i64, i64, i64),
}

impl Leads {
    fn of(objects: &Root) -> Result<Self, BeneathError> {
        let (mut seen, mut folders) = (BTreeMap::new(), Vec::new());
        let mut look = |path: PathBuf, folders: &mut Vec<PathBuf>| -> Result<(), BeneathError> {
            let Some((kind, stat)) = objects.look(&path)? else { return Ok(()) };
            match kind {
                // Git looks whether it is what it says, and a folder changes with what is in it.
                Kind::Folder => {
                    folders.push(path.clone());
                    if path == Path::new(INFO) {
                        seen.insert(path, Seen::Folder);
                    }
                }
                Kind::File | Kind::Link | Kind::Other => {
                    let of = Seen::Other(stat.st_ino, stat.st_size, stat.st_ctime, stat.st_ctime_nsec);
                    seen.insert(path, of);
                }
            }
            Ok(())
        };
        look(PathBuf::from(INFO), &mut folders)?;
        let mut left = NAMES_MAX;
        while let Some(folder) = folders.pop() {
            // One that went, or became something else meanwhile, is seen as what it is by the next look.
            let most = if folder.components().count() < DEPTH_MAX { left } else { 0 };
            let Some(entries) = found(objects.list(&folder, most))? else { continue };
            left -= entries.len();
            for entry in entries {
                look(folder.join(entry.name), &mut folders)?;
            }
        }
        let alternates = found(objects.read(Path::new(ALTERNATES), FILE_MAX)).ok().flatten();
        Ok(Self { seen, alternates })
    }

    /// Takes out of `objects/info` what was not there, and brings back where other objects are.
    fn put_right(&self, objects: &Root) -> Result<(), BeneathError> {
        let info = Path::new(INFO);
        match Self::of(objects) {
            Ok(now) => {
                for (path, what) in &now.seen {
                    if self.seen.get(path) != Some(what) && *what != Seen::Folder {
                        objects.remove(path)?;
                    }
                }
            }
            // More than can be looked at: none of it was there before, and Git makes the folder anew.
            Err(BeneathError::Refused { .. }) => objects.rename(info, Path::new(&aside()))?,
            Err(error) => return Err(error),
        }
        if let Some(content) = &self.alternates
            && found(objects.read(Path::new(ALTERNATES), FILE_MAX)).ok().flatten().as_ref() != Some(content)
        {
            objects.create_dirs(info, 0o777)?;
            objects.replace(Path::new(ALTERNATES), content, 0o644)?;
        }
        Ok(())
    }
}

/// A name below the folder of objects that Git never looks at.
fn aside() -> String {
    format!("info.{}", uuid::Uuid::new_v4().simple())
}

/// The folder of objects: which one it is the account says, whose link may lead to it.
fn objects(repo: &Repository) -> Result<Root, StoreError> {
    let path = repo.common_dir.join("objects");
    Root::open(&path).map_err(|error| io_error("open", &path)(error.into()))
}

impl Slot {
    /// What leads Git now.
    pub(crate) fn watch_leads(&self, repo: &Repository) -> Result<Leads, StoreError> {
        Leads::of(&objects(repo)?).map_err(|error| io_error("look at", &repo.common_dir)(error.into()))
    }

    /// Which of it a command changed; it is put right as far as that can be.
    pub(crate) fn changed_leads(
        &self,
        repo: &Repository,
        before: &Leads,
    ) -> Result<Option<String>, StoreError> {
        let objects = objects(repo)?;
        // What can't be looked at was changed: it was looked at before.
        let redirected = Leads::of(&objects).ok().as_ref() != Some(before);
        if redirected {
            before.put_right(&objects).map_err(|error| {
                io_error("put right", &repo.common_dir.join("objects/info"))(error.into())
            })?;
        }
        let admin = |name: &str| self.admin.join(name);
        let gitdir = self.dir.join(".git").into_os_string().into_encoded_bytes();
        let is = |name: &str, content: &[u8]| {
            read_plain(&admin(name), FILE_MAX).is_ok_and(|found| found.trim_ascii_end() == content)
        };
        // The registration's own are written again before the slot is used again.
        let changed = if !is("commondir", b"../..") {
            Some("commondir")
        } else if !is("gitdir", &gitdir) {
            Some("gitdir")
        } else if admin("config.worktree").symlink_metadata().is_ok() {
            Some("config.worktree")
        } else if redirected {
            Some("objects/info")
        } else {
            None
        };
        Ok(changed.map(str::to_owned))
    }
}

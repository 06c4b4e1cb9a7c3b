//! Files that lead Git elsewhere, and that a confined command can write nevertheless.
//!
//! A command must be able to write its slot's registration and the folder of objects, or it could not commit.
//! Those files in them that name another repository, another configuration or other objects are noted before
//! the command runs, compared afterwards, and put right. The command may have put a link anywhere there: none
//! is followed, and only names below the folder of objects are removed. Implements K59.

use super::Slot;
use crate::store::beneath::{BeneathError, Kind, Root, found};
use crate::store::repository::Repository;
use crate::store::{StoreError, io_error, read_plain};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most bytes of a file that is restored; a longer one is only removed where it was changed.
const FILE_MAX: u64 = 1 << 20;
/// Most names below `objects/info` that are looked at.
const NAMES_MAX: usize = 10_000;
/// How deep folders below `objects/info` are searched.
const DEPTH_MAX: usize = 16;
/// The folder that can lead to other objects, below the folder of objects.
const INFO: &str = "info";
const ALTERNATES: &str = "info/alternates";

/// The state of `objects/info`, and of whatever is not a folder in the place of a folder of objects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leads {
    /// What was at each path below the folder of objects.
    seen: BTreeMap<PathBuf, Seen>,
    alternates: Option<Vec<u8>>,
}

/// What was at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// A folder in the place of `alternates`. Other folders are not noted, as they change with their content.
    Folder,
    /// A folder that can't be listed, or that holds more entries than are examined.
    Unlisted,
    /// Anything else: its inode, its size in bytes, and its change time in seconds and nanoseconds.
    Other(u64, i64, i64, i64),
}

impl Leads {
    fn of(objects: &Root) -> Self {
        let (mut seen, mut folders) = (BTreeMap::new(), Vec::new());
        let mut look = |path: PathBuf, folders: &mut Vec<PathBuf>| {
            // A name that is gone by now does not count, and one that can't be examined is in a folder that
            // can't be listed, which is noted.
            let Ok(Some((kind, stat))) = objects.look(&path) else { return };
            match kind {
                Kind::Folder => {
                    folders.push(path.clone());
                    if path == Path::new(ALTERNATES) {
                        seen.insert(path, Seen::Folder);
                    }
                }
                Kind::File | Kind::Link | Kind::Other => {
                    let of = Seen::Other(stat.st_ino, stat.st_size, stat.st_ctime, stat.st_ctime_nsec);
                    seen.insert(path, of);
                }
            }
        };
        look(PathBuf::from(INFO), &mut folders);
        // A link or the like in the place of a folder of objects would lead what is written there elsewhere.
        let places = found(objects.list(Path::new(""), NAMES_MAX)).ok().flatten().unwrap_or_default();
        for place in
            places.into_iter().filter(|entry| entry.kind != Kind::Folder && holds_objects(&entry.name))
        {
            look(place.name.into(), &mut folders);
        }
        let (mut left, mut unlisted) = (NAMES_MAX, Vec::new());
        while let Some(folder) = folders.pop() {
            let most = if folder.components().count() < DEPTH_MAX { left } else { 0 };
            match found(objects.list(&folder, most)) {
                Ok(entries) => {
                    let entries = entries.unwrap_or_default();
                    left -= entries.len();
                    entries.into_iter().for_each(|entry| look(folder.join(entry.name), &mut folders));
                }
                Err(_) => unlisted.push(folder),
            }
        }
        seen.extend(unlisted.into_iter().map(|folder| (folder, Seen::Unlisted)));
        Self { seen, alternates: alternates(objects) }
    }

    /// True where these differ below `objects/info`.
    fn differ_in_info(&self, other: &Self) -> bool {
        let info = |leads: &Self| {
            let below = leads.seen.iter().filter(|(path, _)| path.starts_with(INFO));
            below.map(|(path, what)| (path.clone(), *what)).collect::<Vec<_>>()
        };
        self.alternates != other.alternates || info(self) != info(other)
    }

    /// Removes from `objects/info`, and from the places of folders of objects, what is new or changed, and
    /// restores `alternates`. The first failure is returned once everything else is done.
    fn put_right(&self, objects: &Root) -> Result<(), BeneathError> {
        let mut failed = Ok(());
        for (path, what) in &Self::of(objects).seen {
            if self.seen.get(path) == Some(what) {
                continue;
            }
            let gone = match what {
                Seen::Other(..) => found(objects.remove(path)),
                // Renamed within its parent: to move it elsewhere would need the right to write in it.
                Seen::Folder | Seen::Unlisted => found(objects.rename(path, &aside(path))),
            };
            failed = failed.and(gone.map(drop));
        }
        if let Some(content) = &self.alternates
            && alternates(objects).as_ref() != Some(content)
        {
            objects.create_dirs(Path::new(INFO), 0o777)?;
            objects.replace(Path::new(ALTERNATES), content, 0o644)?;
        }
        failed
    }
}

/// True for the name of a folder that Git keeps objects in.
fn holds_objects(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name == b"pack" || name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}

fn alternates(objects: &Root) -> Option<Vec<u8>> {
    objects.read(Path::new(ALTERNATES), FILE_MAX).ok()
}

/// Returns a new name in the same folder that Git never looks for.
fn aside(path: &Path) -> PathBuf {
    path.with_file_name(format!("taken-out-{}", uuid::Uuid::new_v4().simple()))
}

/// Opens the folder of objects. A link in its place is followed, as the account itself may have put it there.
fn objects(repo: &Repository) -> Result<Root, StoreError> {
    let path = repo.common_dir.join("objects");
    Root::open(&path).map_err(|error| io_error("open", &path)(error.into()))
}

impl Slot {
    /// Notes the files that lead Git elsewhere, as they are now.
    pub(crate) fn watch_leads(&self, repo: &Repository) -> Result<Leads, StoreError> {
        Ok(Leads::of(&objects(repo)?))
    }

    /// Returns which of these files the command changed, if any. Those below the folder of objects are put
    /// right.
    pub(crate) fn changed_leads(
        &self,
        repo: &Repository,
        before: &Leads,
    ) -> Result<Option<String>, StoreError> {
        let objects = objects(repo)?;
        let now = Leads::of(&objects);
        let redirected = now != *before;
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
        // Changed files of the registration are written again before the slot is used again.
        let changed = if !is("commondir", b"../..") {
            Some("commondir")
        } else if !is("gitdir", &gitdir) {
            Some("gitdir")
        } else if admin("config.worktree").symlink_metadata().is_ok() {
            Some("config.worktree")
        } else if redirected {
            Some(if now.differ_in_info(before) { "objects/info" } else { "objects" })
        } else {
            None
        };
        Ok(changed.map(str::to_owned))
    }
}

//! Whether refs may have moved, asked often at the cost of a few `stat`s.
//!
//! A ref in a file is moved by renaming its lock over it, so its folder changes with every move; all others are in
//! `packed-refs`, or in a reftable's list. [`Watch::new`] looks once, then [`Watch::has_moved`] says whether something
//! changed since it was asked last. It may say so where no ref moved, never the other way round: what changed in the
//! very moment of a look is looked at again. Implements K55 (what watching costs).

use crate::store::repository::Repository;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Within this time of a change the next one may carry the same date.
const UNSETTLED: Duration = Duration::from_millis(50);
/// Folders below others are followed this deep, and this many of them: refs need no more.
const DEPTH_MAX: usize = 64;
const FOLDERS_MAX: usize = 100_000;

/// What a file or folder looks like from outside: inode, length, seconds and nanoseconds of its last change.
type Face = Option<(u64, u64, i64, i64)>;

/// Files and folders that change when a ref moves.
#[derive(Debug)]
pub(crate) struct Watch {
    roots: Vec<PathBuf>,
    faces: Vec<(PathBuf, Face)>,
    unsettled: bool,
}

impl Watch {
    /// Watches the refs of a repository below these folders of it, such as `refs/heads`, and whatever else is named
    /// below its Git directory.
    pub(crate) fn new(repo: &Repository, places: &[&str]) -> Self {
        let common = &repo.common_dir;
        let refs = match repo.reftable {
            true => vec![common.join("reftable/tables.list")],
            false => vec![common.join("packed-refs")],
        };
        let is_wanted = |place: &&&str| !(repo.reftable && place.starts_with("refs/"));
        let places = places.iter().filter(is_wanted).map(|place| common.join(place));
        let mut watch =
            Self { roots: refs.into_iter().chain(places).collect(), faces: Vec::new(), unsettled: true };
        watch.look();
        watch
    }

    /// True where something may have moved since this was asked last, or since the watch began.
    pub(crate) fn has_moved(&mut self) -> bool {
        let is_same = |(path, face): &(PathBuf, Face)| face_of(path) == *face;
        if !self.unsettled && self.faces.iter().all(is_same) {
            return false;
        }
        self.look();
        true
    }

    fn look(&mut self) {
        self.faces.clear();
        let mut folders: Vec<(PathBuf, usize)> = self.roots.iter().map(|root| (root.clone(), 0)).collect();
        while let Some((path, depth)) = folders.pop() {
            // Its face first: what changes while it is read is seen next time.
            let face = face_of(&path);
            if face.is_some() && depth < DEPTH_MAX && self.faces.len() < FOLDERS_MAX {
                folders.extend(folders_in(&path).map(|folder| (folder, depth + 1)));
            }
            self.faces.push((path, face));
        }
        self.unsettled = self.faces.iter().any(|(_, face)| face.is_some_and(is_fresh));
    }
}

fn folders_in(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn face_of(path: &Path) -> Face {
    path.symlink_metadata().ok().map(|meta| (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// True where it changed a moment ago, by a clock that may be another machine's: then a date ahead is as good as old.
fn is_fresh((_, _, seconds, nanos): (u64, u64, i64, i64)) -> bool {
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(seconds), u32::try_from(nanos)) else { return false };
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
    SystemTime::now().duration_since(changed).is_ok_and(|since| since < UNSETTLED)
}

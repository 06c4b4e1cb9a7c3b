//! Says whether refs may have moved, and is asked often: an answer costs a few `stat` calls.
//!
//! A loose ref is moved by renaming its lock over it, so its folder changes with every move; all other refs
//! are in `packed-refs`, or in a reftable's list. [`Watch::new`] looks once; then [`Watch::has_moved`] says
//! whether anything has changed since the last call. The answer may be yes although no ref moved, but never
//! no although one did: a change at the very moment of a look makes the next call look again. Implements K55
//! (what watching costs).

use crate::store::repository::Repository;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Two changes within this time may have the same time stamp.
const UNSETTLED: Duration = Duration::from_millis(50);
/// How deep folders in folders are followed: refs need no more.
const DEPTH_MAX: usize = 64;
/// How many folders are followed.
const FOLDERS_MAX: usize = 100_000;

/// What `stat` says of a file or folder: inode, length, seconds and nanoseconds of its last modification;
/// `None` where it is missing.
type Face = Option<(u64, u64, i64, i64)>;

/// Files and folders that change when a ref moves.
#[derive(Debug)]
pub(crate) struct Watch {
    roots: Vec<PathBuf>,
    faces: Vec<(PathBuf, Face)>,
    unsettled: bool,
}

impl Watch {
    /// Watches the refs of a repository in `places` such as `refs/heads`, and any other files or folders that
    /// `places` names below its Git directory.
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

    /// True where a ref may have moved since the last call, or since the watch began.
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
            // The face is taken before the folder is read, so that a change meanwhile is seen by the next
            // call.
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

/// True where a file changed a moment ago. The time stamp may come from another machine's clock: one that
/// lies ahead of this clock counts as old.
fn is_fresh((_, _, seconds, nanos): (u64, u64, i64, i64)) -> bool {
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(seconds), u32::try_from(nanos)) else { return false };
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
    SystemTime::now().duration_since(changed).is_ok_and(|since| since < UNSETTLED)
}

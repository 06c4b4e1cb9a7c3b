//! Where a slot is, and which registered worktrees are slots of ours.
//!
//! Where slots live depends on the environment, and on where the repository is. A slot's record therefore
//! names its folder, so that work in a folder other than today's is found there. The record of a copied
//! repository names folders of the original, which must be left alone. One of the user's own worktrees may
//! have the name of a slot; a slot of ours has our text as the reason of its lock, or is where its record
//! says. Implements K14, K26, K45.

use super::{ADMIN_PREFIX, Slot, read_record};
use crate::store::read_plain;
use crate::store::repository::Repository;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The reason for a slot's lock, which `git worktree list` shows.
pub(super) const REASON: &[u8] = b"a slot of git-aynig: 'git aynig gc' removes it\n";
/// The beginning that this reason has had in every version.
const OURS: &[u8] = b"a slot of git-aynig";

/// The folder of a slot, as a record has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) dir: String,
    /// The path that the slot's registration had when this was noted.
    pub(crate) admin: String,
}

impl Place {
    /// Notes a slot's folder and registration; `None` for paths that are not UTF-8, which JSON can't hold.
    /// Such a slot is looked for where slots are now.
    pub(super) fn of(dir: &Path, admin: &Path) -> Option<Self> {
        Some(Self { dir: dir.to_str()?.to_owned(), admin: admin.to_str()?.to_owned() })
    }

    /// Returns the noted folder, if it still belongs to the slot with this registration and is not `home`; of a
    /// slot that a run is in (`inhabited`) also where this process can't look.
    pub(super) fn elsewhere(&self, home: &Path, admin: &Path, inhabited: bool) -> Option<PathBuf> {
        let (dir, then) = (PathBuf::from(&self.dir), Path::new(&self.admin));
        // A copied repository has a copy of the record too, but the folder belongs to the original.
        let copied = then != admin && !then.symlink_metadata().is_err_and(|error| is_gone(&error));
        if dir == home || copied || dir.file_name() != home.file_name() {
            return None;
        }
        let there = match dir.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) => return (inhabited && !is_gone(&error)).then_some(dir),
        };
        let same = home.symlink_metadata().is_ok_and(|h| (h.dev(), h.ino()) == (there.dev(), there.ino()));
        let ours = || match read_plain(&dir.join(".git"), 64 << 10) {
            Ok(link) => leads_to(&link, then),
            Err(error) => inhabited && error.kind() == ErrorKind::PermissionDenied,
        };
        (there.is_dir() && !same && ours()).then_some(dir)
    }
}

/// True if the text of a `.git` file leads to this registration.
fn leads_to(link: &[u8], admin: &Path) -> bool {
    link.strip_prefix(b"gitdir: ").is_some_and(|to| to.trim_ascii_end() == admin.as_os_str().as_bytes())
}

/// True for an error that says that there is nothing at a path, and not that it can't be looked at.
pub(super) fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Returns the number of a slot from the name of its registration; `None` for a name that no slot has.
pub(super) fn number_of(admin: &Path) -> Option<usize> {
    let number = admin.file_name()?.to_str()?.strip_prefix(ADMIN_PREFIX)?;
    number.parse().ok().filter(|n: &usize| n.to_string() == number)
}

/// True for the Git directory of a slot, whatever a command did to it; false for one of the user's own
/// worktrees that only has such a name.
pub(crate) fn is_slot(admin: &Path) -> bool {
    let Some(number) = number_of(admin) else { return false };
    let Some(parent) = admin.parent().filter(|p| p.ends_with("worktrees")) else { return false };
    // The reason of the lock comes first, as it identifies most slots.
    if read_plain(&admin.join("locked"), 64 << 10).is_ok_and(|reason| reason.starts_with(OURS)) {
        return true;
    }
    let record = read_record(&parent.with_file_name("aynig").join("slots"), number);
    if record.run.is_some() {
        // While a run is in the slot, its command may have written anything into the registration.
        return true;
    }
    // A registration without its `gitdir` is no worktree of the user's.
    let Ok(link) = read_plain(&admin.join("gitdir"), 64 << 10) else { return true };
    record.place.is_some_and(|place| [place.dir.as_bytes(), b"/.git"].concat() == link.trim_ascii_end())
}

/// True where the registration of this name belongs to one of the user's own worktrees.
pub(super) fn is_foreign(admin: &Path, home: &Path) -> bool {
    admin.symlink_metadata().is_ok() && !is_slot(admin) && {
        // An older record names no place, so a registration that leads to `home` counts as ours too.
        let link = read_plain(&admin.join("gitdir"), 64 << 10).unwrap_or_default();
        link.trim_ascii_end() != home.join(".git").as_os_str().as_bytes()
    }
}

impl Slot {
    /// True where the slot's registration exists, and is not that of a worktree of the user's.
    pub(super) fn is_registered(&self) -> bool {
        self.admin.symlink_metadata().is_ok() && !is_foreign(&self.admin, &self.home)
    }

    /// Moves the slot to where slots are now. The old folder is given up: the work in it was kept before.
    pub(super) fn go_home(&mut self, repo: &Repository) {
        if self.dir != self.home {
            // If the old folder can't be removed, that does no harm.
            let _ = self.retire(repo);
            let _ = self.dir.parent().map(std::fs::remove_dir);
            self.dir = self.home.clone();
        }
        self.record.place = Place::of(&self.dir, &self.admin);
    }
}

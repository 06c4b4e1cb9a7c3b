//! Where a slot is, and which registered worktrees are slots of ours.
//!
//! Where slots live hangs on the environment, and on where the repository is. A slot's record therefore names
//! its folder: work that is in another one than today's is found there. The record of a copied repository
//! names folders of the original, and leaves them alone. A worktree of the user's may be named as a slot is:
//! one of ours has our reason for its lock, or is where its record says. Implements K14, K26, K45.

use super::{ADMIN_PREFIX, Slot, read_record};
use crate::store::read_plain;
use crate::store::repository::Repository;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a slot is locked, for `git worktree list`.
pub(super) const REASON: &[u8] = b"a slot of git-aynig: 'git aynig gc' removes it\n";
/// What every version of that began with.
const OURS: &[u8] = b"a slot of git-aynig";

/// The folder of a slot, as noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) dir: String,
    /// Its registration, as it was called then.
    pub(crate) admin: String,
}

impl Place {
    /// `None` for names that JSON can't hold: such a slot is looked for where slots are now.
    pub(super) fn of(dir: &Path, admin: &Path) -> Option<Self> {
        Some(Self { dir: dir.to_str()?.to_owned(), admin: admin.to_str()?.to_owned() })
    }

    /// The noted folder where it is still that of the slot with this registration, and not `home`.
    pub(super) fn elsewhere(&self, home: &Path, admin: &Path) -> Option<PathBuf> {
        let (dir, then) = (PathBuf::from(&self.dir), Path::new(&self.admin));
        let there = dir.symlink_metadata().ok().filter(|meta| meta.is_dir())?;
        let same = home.symlink_metadata().is_ok_and(|h| (h.dev(), h.ino()) == (there.dev(), there.ino()));
        // A copied repository has a copy of the record too, but the folder is the original's.
        let copied = then != admin && then.exists();
        let ours = dir.file_name() == home.file_name() && links_to(&dir, then);
        (ours && !same && !copied).then_some(dir)
    }
}

/// True for a worktree that is registered under this name.
fn links_to(dir: &Path, admin: &Path) -> bool {
    let link = read_plain(&dir.join(".git"), 64 << 10).unwrap_or_default();
    link.strip_prefix(b"gitdir: ").is_some_and(|to| to.trim_ascii_end() == admin.as_os_str().as_bytes())
}

/// The number in the name of a registration, if it is one that a slot has.
pub(super) fn number_of(admin: &Path) -> Option<usize> {
    let number = admin.file_name()?.to_str()?.strip_prefix(ADMIN_PREFIX)?;
    number.parse().ok().filter(|n: &usize| n.to_string() == number)
}

/// True for the Git directory of a slot, whatever a command did to it; false for a worktree of the user's that
/// is only named so.
pub(crate) fn is_slot(admin: &Path) -> bool {
    let Some(number) = number_of(admin) else { return false };
    let Some(parent) = admin.parent().filter(|p| p.ends_with("worktrees")) else { return false };
    // First what tells most slots.
    if read_plain(&admin.join("locked"), 64 << 10).is_ok_and(|reason| reason.starts_with(OURS)) {
        return true;
    }
    let record = read_record(&parent.with_file_name("aynig").join("slots"), number);
    if record.run.is_some() {
        // While a run is in it, all that is said there may be its command's.
        return true;
    }
    // A folder without its link is no worktree.
    let Ok(link) = read_plain(&admin.join("gitdir"), 64 << 10) else { return true };
    record.place.is_some_and(|place| [place.dir.as_bytes(), b"/.git"].concat() == link.trim_ascii_end())
}

/// True where the registration of this name is the user's.
pub(super) fn is_foreign(admin: &Path, home: &Path) -> bool {
    admin.symlink_metadata().is_ok() && !is_slot(admin) && {
        // An older record names no place.
        let link = read_plain(&admin.join("gitdir"), 64 << 10).unwrap_or_default();
        link.trim_ascii_end() != home.join(".git").as_os_str().as_bytes()
    }
}

impl Slot {
    /// True where its registration is there, and is its own.
    pub(super) fn is_registered(&self) -> bool {
        self.admin.symlink_metadata().is_ok() && !is_foreign(&self.admin, &self.home)
    }

    /// Goes to where slots are now. What was in the old folder was kept.
    pub(super) fn go_home(&mut self, repo: &Repository) {
        if self.dir != self.home {
            // A folder that can't be removed does no harm.
            let _ = self.retire(repo);
            let _ = self.dir.parent().map(std::fs::remove_dir);
            self.dir = self.home.clone();
        }
        self.record.place = Place::of(&self.dir, &self.admin);
    }
}

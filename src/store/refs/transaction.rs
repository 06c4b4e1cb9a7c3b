//! Moves one or several refs of the files backend as one.
//!
//! The order is this. First the new values are written, and synced in one go with the objects that they name.
//! Then the locks are linked in the order of their names, so that two transactions never wait for one
//! another, and all old values are judged under all locks. Until then a failure, or a kill, leaves every ref
//! as it was. After that branches are moved and synced, then other refs are put and synced, then refs are
//! deleted and synced. So a kill, or a full disk, between two moves can leave a branch that says what was
//! taken, with refs that the runner which reads that branch deletes later. It never leaves a deleted ref of
//! which no branch tells. A process that is killed leaves locks that the next runner recognizes.
//!
//! A ref that is packed too is deleted by `git`. The folders of an inbox are removed with its last ref, so
//! that they do not stand in the way of another ref's name. Implements K42, K43, K44, K11 (the attempt).

use super::files::{FilesRefs, remove_empty_dirs};
use super::locks::{OwnerFile, RefLock};
use super::reading::{Packed, RefValue, path_of, read_loose};
use super::reflog;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::INBOX;
use crate::protocol::swap::Turn;
use crate::store::{Expected, RefChange, RefName, Signature, StoreError, io_error};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the turn in which a change is made.
fn turn_of(change: &RefChange) -> Turn {
    Turn::of(change.name.as_bytes(), change.new.is_some())
}

/// A change whose ref is locked.
struct Held<'a> {
    change: &'a RefChange,
    path: PathBuf,
    lock: RefLock,
    old: Option<ObjectId>,
    is_loose: bool,
}

/// The value that a ref was found to hold, and whether it has a loose file.
struct Found {
    value: Option<ObjectId>,
    is_loose: bool,
}

impl FilesRefs {
    /// Makes one attempt to move, create or delete refs; see [`crate::store::Store::try_swaps`].
    pub(crate) fn try_swaps(
        &self,
        changes: &[RefChange],
        by: &Signature,
        log: &str,
    ) -> Result<(), StoreError> {
        let changes = crate::store::in_name_order(changes)?;
        // The refs are judged without their locks first: a lost race then costs no lock and leaves no empty
        // folders.
        self.judge(&changes)?;
        let held = match self.hold(&changes) {
            Ok(held) => held,
            Err(error) => {
                changes.iter().for_each(|change| self.tidy(&change.name));
                return Err(error);
            }
        };
        self.make(held, by, log)
    }

    /// Locks all refs, and checks that they hold the expected values.
    fn hold<'a>(&self, changes: &[&'a RefChange]) -> Result<Vec<Held<'a>>, StoreError> {
        let content = |change: &RefChange| change.new.map(|new| format!("{new}\n")).unwrap_or_default();
        let owner_files = changes.iter().map(|change| OwnerFile::create(self, content(change).as_bytes()));
        let owner_files = owner_files.collect::<Result<Vec<_>, _>>()?;
        let named = changes.iter().zip(&owner_files).filter(|(change, _)| change.new.is_some());
        let mut named: Vec<&OwnerFile> = named.map(|(_, owner_file)| owner_file).collect();
        if let Some(last) = named.pop() {
            self.unsynced
                .add(named.iter().map(|owner_file| owner_file.path().to_owned()).filter(|_| self.durable()));
            last.sync_with_what_waits(self)?;
        }
        let mut locks = Vec::with_capacity(changes.len());
        for (n, (change, owner_file)) in changes.iter().zip(owner_files).enumerate() {
            locks.push(RefLock::link(self, &change.name, owner_file, content(change).as_bytes())?);
            if n == 0 && changes.len() > 1 {
                // While this process waited for the first lock it may have lost the race. It then must not
                // keep other processes from the rest of the refs.
                self.judge(changes)?;
            }
        }
        let found = self.judge(changes)?;
        let created = changes.iter().zip(&found).filter(|(c, f)| f.value.is_none() && c.new.is_some());
        let created: Vec<&RefName> = created.map(|(change, _)| &change.name).collect();
        self.refuse_conflicts(&created)?;
        let held = changes.iter().zip(locks).zip(found).map(|((change, lock), found)| {
            let path = path_of(self.common_dir(), &change.name)?;
            Ok(Held { change, path, lock, old: found.value, is_loose: found.is_loose })
        });
        held.collect()
    }

    /// Moves refs that are locked and hold the expected values.
    fn make(&self, mut held: Vec<Held<'_>>, by: &Signature, log: &str) -> Result<(), StoreError> {
        held.sort_by_key(|held| turn_of(held.change));
        let mut puts = held.split_off(held.partition_point(|held| turn_of(held.change) <= Turn::Branch));
        let deletions = puts.split_off(puts.partition_point(|held| turn_of(held.change) <= Turn::Put));
        for turn in [held, puts] {
            let mut folders = Folders::default();
            for held in turn {
                folders.add(&held.path);
                self.put(held, by, log)?;
            }
            folders.sync(self)?;
        }
        self.delete(deletions)
    }

    fn put(&self, held: Held<'_>, by: &Signature, log: &str) -> Result<(), StoreError> {
        let Held { change, path, lock, old, is_loose: _ } = held;
        let name = &change.name;
        reflog::append(self, name, &reflog::line(old, change.new, self.hex_len(), by, log))?;
        let moved = lock.rename_over(&path).or_else(|(held, error)| {
            if !path.is_dir() {
                return Err((held, error));
            }
            remove_empty_dirs(&path);
            held.rename_over(&path)
        });
        moved.map_err(|(held, error)| {
            held.release();
            match self.ref_below(name) {
                Some(other) => StoreError::NameConflict { name: name.clone(), other },
                None => io_error("rename the lock over", &path)(error),
            }
        })
    }

    fn delete(&self, deletions: Vec<Held<'_>>) -> Result<(), StoreError> {
        if deletions.is_empty() {
            return Ok(());
        }
        let changes: Vec<&RefChange> = deletions.iter().map(|held| held.change).collect();
        let packed = Packed::open(self.common_dir(), self.hex_len())?;
        let mut folders = Folders::default();
        for held in deletions.iter().filter(|held| held.is_loose) {
            if packed.find(&held.change.name)? == RefValue::Missing {
                fs::remove_file(&held.path).map_err(io_error("remove", &held.path))?;
                reflog::remove(self.common_dir(), &held.change.name)?;
                folders.add(&held.path);
            }
        }
        folders.sync(self)?;
        let name = &changes[0].name;
        drop(deletions);
        changes.iter().for_each(|change| self.tidy(&change.name));
        self.wait_for_packer(name)?;
        // These were packed before, or a `git pack-refs` brought them back that had read a loose file before
        // it was removed.
        let packed = Packed::open(self.common_dir(), self.hex_len())?;
        let mut left = Vec::new();
        for change in changes {
            match change.expected {
                Expected::At(old) if packed.find(&change.name)? != RefValue::Missing => {
                    left.push((&change.name, old));
                }
                Expected::At(_) | Expected::Missing => {}
            }
        }
        self.delete_packed(&left)
    }

    /// Returns what these refs hold; an error where one does not hold what its change expects. Loose files
    /// are read before `packed-refs`, as a ref that is packed meanwhile would be missed in the other order.
    fn judge(&self, changes: &[&RefChange]) -> Result<Vec<Found>, StoreError> {
        let mut values = Vec::with_capacity(changes.len());
        for change in changes {
            let path = path_of(self.common_dir(), &change.name)?;
            values.push(read_loose(&path, self.hex_len()).map_err(io_error("read", &path))?);
        }
        let needed = values.contains(&RefValue::Missing);
        let packed = needed.then(|| Packed::open(self.common_dir(), self.hex_len())).transpose()?;
        let found = changes.iter().zip(values).map(|(change, loose)| {
            let name = change.name.clone();
            let is_loose = loose != RefValue::Missing;
            let value = match (loose, &packed) {
                (RefValue::Missing, Some(packed)) => packed.find(&name)?,
                (loose, _) => loose,
            };
            let value = match value {
                RefValue::Missing => None,
                RefValue::Object(id) => Some(id),
                RefValue::Symbolic(target) => return Err(StoreError::SymbolicRef { name, target }),
                RefValue::Unreadable(cause) => return Err(StoreError::UnreadableRef { name, cause }),
            };
            match change.expected {
                Expected::At(id) if value == Some(id) => {}
                Expected::Missing if value.is_none() => {}
                expected => return Err(StoreError::Moved { name, expected, found: value }),
            }
            Ok(Found { value, is_loose })
        });
        found.collect()
    }

    /// Refuses a new ref whose name is a folder of another ref's name, or the other way round.
    fn refuse_conflicts(&self, created: &[&RefName]) -> Result<(), StoreError> {
        if created.is_empty() {
            return Ok(());
        }
        let loose = |name: &RefName| self.loose_above(name).or_else(|| self.ref_below(name));
        let loose: Vec<Option<RefName>> = created.iter().map(|name| loose(name)).collect();
        let packed = Packed::open(self.common_dir(), self.hex_len())?;
        for (name, loose) in created.iter().zip(loose) {
            let folder = [name.as_bytes(), b"/"].concat();
            let part = packed.below(&folder)?;
            let below = packed.entries(&part, &folder).next().map(|(other, _)| RefName::new(other));
            let conflict = |other| StoreError::NameConflict { name: (*name).clone(), other };
            if let Some(other) = below.or(loose) {
                return Err(conflict(other));
            }
            for above in name.folders() {
                if packed.find(&above)? != RefValue::Missing {
                    return Err(conflict(above));
                }
            }
        }
        Ok(())
    }

    /// Returns the loose ref whose name is a folder of this name.
    fn loose_above(&self, name: &RefName) -> Option<RefName> {
        name.folders().find(|above| {
            path_of(self.common_dir(), above)
                .is_ok_and(|path| !matches!(read_loose(&path, self.hex_len()), Ok(RefValue::Missing)))
        })
    }

    /// Removes those folders of a ref in an inbox that are empty.
    fn tidy(&self, name: &RefName) {
        if !name.as_bytes().starts_with(INBOX) {
            return;
        }
        let inbox = Path::new(OsStr::from_bytes(INBOX));
        for top in [self.common_dir().to_owned(), self.common_dir().join("logs")] {
            let path = top.join(OsStr::from_bytes(name.as_bytes()));
            let folders = path.ancestors().skip(1).take_while(|folder| **folder != top.join(inbox));
            // The first folder that is not empty stays, and so do all folders around it.
            let _ = folders.map(fs::remove_dir).find(Result::is_err);
        }
    }
}

/// The folders whose entries were changed, and that must be synced.
#[derive(Default)]
struct Folders(BTreeSet<PathBuf>);

impl Folders {
    fn add(&mut self, path: &Path) {
        self.0.extend(path.parent().map(Path::to_owned));
    }

    fn sync(self, refs: &FilesRefs) -> Result<(), StoreError> {
        self.0.iter().try_for_each(|folder| refs.sync_folder(folder))
    }
}

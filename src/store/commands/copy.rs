//! The read-only copy of an `.aynig/` tree that commands are started from, and the proof
//! that nothing has changed it.
//!
//! The copy is written once for each tree, below `aynig/commands/` in the Git directory. Commands run as the
//! user whom the copy belongs to, so "read-only" is a hint to them and no wall: before each start [`prove`]
//! compares every name, mode and byte with the ids in the tree, and writes the copy anew where anything
//! differs. No link is followed, and nothing but plain files is opened. Implements K13.

use super::tree::{DEPTH_MAX, EXECUTABLE, SYMLINK, TREE, follow};
use crate::protocol::id::ObjectId;
use crate::store::repository::Repository;
use crate::store::{Store, StoreError, TreeEntry, io_error};
use nix::fcntl::OFlag;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes above which a file is not compared, so that the copy is written anew: no
/// person can have reviewed it.
const SIZE_MAX: u64 = 1 << 30;

/// Most entries of a tree that is copied: nobody reviews more commands, and each is written and synced.
const ENTRIES_MAX: usize = 20_000;

/// What an entry of the tree becomes on disk.
enum Kind {
    Folder,
    Link,
    /// A plain file with this mode.
    File(u32),
}

/// Returns the entries of a tree that are copied. Names with a path in them, submodules, links that leave the
/// tree, and folders that are too deep are left out.
fn copied(
    store: &dyn Store,
    tree: ObjectId,
    path: &mut Vec<Vec<u8>>,
) -> Result<Vec<(TreeEntry, Kind)>, StoreError> {
    let mut all = Vec::new();
    for entry in store.read_tree(tree)? {
        if entry.name.contains(&b'/') || matches!(&*entry.name, b"" | b"." | b"..") {
            continue;
        }
        let kind = match entry.mode {
            TREE if path.len() + 1 < DEPTH_MAX => Kind::Folder,
            SYMLINK => {
                path.push(entry.name.clone());
                let stays = follow(path, path.len(), &store.read_blob(entry.id)?).is_some();
                path.pop();
                if !stays {
                    continue;
                }
                Kind::Link
            }
            mode if entry.is_file() => Kind::File(if mode == EXECUTABLE { 0o555 } else { 0o444 }),
            _ => continue,
        };
        all.push((entry, kind));
    }
    Ok(all)
}

/// Where all copies are.
pub(crate) fn folder(repo: &Repository) -> PathBuf {
    repo.aynig_dir().join("commands")
}

fn place_of(repo: &Repository, tree: ObjectId) -> PathBuf {
    folder(repo).join(tree.to_string())
}

/// What came of writing a copy.
#[derive(Debug)]
pub(crate) enum Copied {
    /// The copy is in this folder.
    At(PathBuf),
    /// The tree has more than [`ENTRIES_MAX`] entries: nothing was written.
    TooMany,
    /// The process was asked to end meanwhile: nothing is left of the copy.
    Stopped,
}

/// Writes the copy of a tree, unless there is one. `stops` is asked before each entry.
pub(crate) fn materialize(
    repo: &Repository,
    store: &dyn Store,
    tree: ObjectId,
    stops: &dyn Fn() -> bool,
) -> Result<Copied, StoreError> {
    let place = place_of(repo, tree);
    if is_folder(&place) {
        mark_used(&place);
        return Ok(Copied::At(place));
    }
    // A tree can hold itself in any number of places: one of a few KB may be any number of files.
    if !is_within(store, tree, 1, &mut { ENTRIES_MAX })? {
        return Ok(Copied::TooMany);
    }
    Ok(match write_anew(repo, store, tree, &place, stops)? {
        true => Copied::At(place),
        false => Copied::Stopped,
    })
}

/// True where a tree at this depth has no more entries than are left, which it then uses up.
fn is_within(store: &dyn Store, tree: ObjectId, depth: usize, left: &mut usize) -> Result<bool, StoreError> {
    let entries = store.read_tree(tree)?;
    let Some(fewer) = left.checked_sub(entries.len()) else { return Ok(false) };
    *left = fewer;
    for folder in entries.into_iter().filter(|entry| entry.mode == TREE && depth < DEPTH_MAX) {
        if !is_within(store, folder.id, depth + 1, left)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes sure that the copy holds what the tree says and nothing else. True where the copy had been changed.
pub(crate) fn prove(repo: &Repository, store: &dyn Store, tree: ObjectId) -> Result<bool, StoreError> {
    let place = place_of(repo, tree);
    if is_same(repo, store, tree, &place, &mut Vec::new())? {
        return Ok(false);
    }
    write_anew(repo, store, tree, &place, &|| false)?;
    Ok(true)
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|m| m.is_dir())
}

/// Writes a copy aside and puts it into place. What stood there is removed, unless it is a good copy by then. False
/// where that was stopped, and nothing was put there.
fn write_anew(
    repo: &Repository,
    store: &dyn Store,
    tree: ObjectId,
    place: &Path,
    stops: &dyn Fn() -> bool,
) -> Result<bool, StoreError> {
    let parent = folder(repo);
    let aside = parent.join(format!(".new-{}", uuid::Uuid::new_v4()));
    repo.make(&parent)?;
    fs::create_dir(&aside).map_err(io_error("create", &aside))?;
    let written = write_tree(store, tree, &aside, &mut Vec::new(), stops);
    if !matches!(written, Ok(true)) {
        let _ = crate::store::remove_tree(&aside);
        return written;
    }
    if let Err(source) = fs::rename(&aside, place) {
        if place.symlink_metadata().is_err() {
            let _ = crate::store::remove_tree(&aside);
            return Err(io_error("create", place)(source));
        }
        // The place has another process's copy, which may be good by now, or something that was put there.
        if is_same(repo, store, tree, place, &mut Vec::new())? {
            let _ = crate::store::remove_tree(&aside);
            return Ok(true);
        }
        let old = parent.join(format!(".old-{}", uuid::Uuid::new_v4()));
        let _ = fs::set_permissions(place, PermissionsExt::from_mode(0o700));
        fs::rename(place, &old).map_err(io_error("move aside", place))?;
        fs::rename(&aside, place).map_err(io_error("create", place))?;
        let _ = crate::store::remove_tree(&old);
    }
    // After the rename, because not every user can rename a folder without write permission.
    let _ = fs::set_permissions(place, PermissionsExt::from_mode(0o555));
    crate::store::sync(&parent)?;
    Ok(true)
}

/// Records, once a day, that a copy is in use: `gc` removes copies that were not used for long. Best effort.
fn mark_used(place: &Path) {
    let day = std::time::Duration::from_secs(24 * 3600);
    let used = place.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
    if used.is_some_and(|age| age > day)
        && let Ok(folder) = File::open(place)
    {
        let _ = folder.set_modified(std::time::SystemTime::now());
    }
}

/// Writes the files of a tree; false where that was stopped.
fn write_tree(
    store: &dyn Store,
    tree: ObjectId,
    dir: &Path,
    path: &mut Vec<Vec<u8>>,
    stops: &dyn Fn() -> bool,
) -> Result<bool, StoreError> {
    for (entry, kind) in copied(store, tree, path)? {
        if stops() {
            return Ok(false);
        }
        let to = dir.join(OsStr::from_bytes(&entry.name));
        match kind {
            Kind::Folder => {
                fs::create_dir(&to).map_err(io_error("create", &to))?;
                path.push(entry.name);
                let whole = write_tree(store, entry.id, &to, path, stops)?;
                path.pop();
                if !whole {
                    return Ok(false);
                }
                let _ = fs::set_permissions(&to, PermissionsExt::from_mode(0o555));
            }
            Kind::Link => {
                let target = store.read_blob(entry.id)?;
                std::os::unix::fs::symlink(OsStr::from_bytes(&target), &to)
                    .map_err(io_error("create", &to))?;
            }
            Kind::File(mode) => {
                let content = store.read_blob(entry.id)?;
                let mut options = File::options();
                options.write(true).create_new(true).mode(mode);
                let mut file = options.open(&to).map_err(io_error("create", &to))?;
                file.write_all(&content).map_err(io_error("write", &to))?;
                file.sync_all().map_err(io_error("sync", &to))?;
                // Gives back the bits that the umask took away, and nothing more.
                let _ = file.set_permissions(PermissionsExt::from_mode(mode));
            }
        }
    }
    crate::store::sync(dir)?;
    Ok(true)
}

/// True where a folder holds the tree: no name more or less, every file with its mode, and
/// all content as the ids say.
fn is_same(
    repo: &Repository,
    store: &dyn Store,
    tree: ObjectId,
    dir: &Path,
    path: &mut Vec<Vec<u8>>,
) -> Result<bool, StoreError> {
    if !is_folder(dir) {
        return Ok(false);
    }
    let Ok(listed) = fs::read_dir(dir) else { return Ok(false) };
    let mut found: BTreeMap<Vec<u8>, Metadata> = BTreeMap::new();
    for entry in listed {
        let Ok((name, Ok(meta))) = entry.map(|e| (e.file_name(), e.path().symlink_metadata())) else {
            return Ok(false);
        };
        found.insert(name.as_bytes().to_vec(), meta);
    }
    for (entry, kind) in copied(store, tree, path)? {
        let Some(meta) = found.remove(&entry.name) else { return Ok(false) };
        let at = dir.join(OsStr::from_bytes(&entry.name));
        let same = match kind {
            Kind::Folder => {
                path.push(entry.name);
                let same = is_same(repo, store, entry.id, &at, path)?;
                path.pop();
                same
            }
            Kind::Link => {
                let target = fs::read_link(&at).map(|t| t.as_os_str().as_bytes().to_vec());
                meta.is_symlink() && target.is_ok_and(|t| id_of(repo, &t) == Some(entry.id))
            }
            Kind::File(mode) => {
                meta.is_file()
                    && meta.permissions().mode() & 0o7777 == mode
                    && content(&at, meta.len()).is_some_and(|c| id_of(repo, &c) == Some(entry.id))
            }
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(found.is_empty())
}

/// Returns the content of a plain file; `None` where the file is not as long as `length` or can't be read.
fn content(path: &Path, length: u64) -> Option<Vec<u8>> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path).ok()?;
    if length > SIZE_MAX || !file.metadata().is_ok_and(|m| m.is_file() && m.len() == length) {
        return None;
    }
    let mut content = Vec::with_capacity(length as usize);
    file.take(length + 1).read_to_end(&mut content).ok()?;
    Some(content)
}

fn id_of(repo: &Repository, content: &[u8]) -> Option<ObjectId> {
    let id = gix::objs::compute_hash(repo.hash, gix::objs::Kind::Blob, content).ok()?;
    crate::store::backends::gix_store::from_gix(&id).ok()
}

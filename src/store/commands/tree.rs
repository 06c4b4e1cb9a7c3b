//! The `.aynig/` tree of a commit: which command answers a state, and its files on disk.
//!
//! Commands are looked up in the tree, never in a checkout, and started from a copy of the tree
//! ([`super::copy`]), so that a branch's own files are never executed by accident. Symbolic links count only
//! where they stay inside the tree. Implements K13.

use super::start::Unfit;
use crate::protocol::id::ObjectId;
use crate::protocol::name::{BadName, RoleName, StateName};
use crate::store::{Store, StoreError, TreeEntry};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// The folder of a tree that holds everything of this tool's.
pub(crate) const FOLDER: &str = ".aynig";
const LINKS_MAX: usize = 8;
/// How many entries of trees [`ReadOnce`] keeps: what a branch holds is its writers', and there are many branches.
const KEPT_MAX: usize = 100_000;
/// How many entries of command folders are looked at for a list: a small pack can hold one folder a million times over.
const LISTED_MAX: usize = 10_000;
/// The longest path that a link can lead to, as Linux has it.
const TARGET_MAX: u64 = 4096;
pub(crate) const DEPTH_MAX: usize = 64;
pub(crate) const TREE: u32 = crate::store::FOLDER;
pub(crate) const EXECUTABLE: u32 = 0o100755;
pub(crate) const SYMLINK: u32 = 0o120000;

/// A command that answers a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub(crate) tree: ObjectId,
    /// Its path below `.aynig/`.
    pub(crate) path: String,
    /// The blob that the path leads to, symbolic links followed.
    pub(crate) file: ObjectId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lookup {
    Found(Command),
    Missing,
    /// Something that can't be started: its path below `.aynig/`, and why.
    Unusable {
        /// Below `.aynig/`.
        path: String,
        why: Unfit,
    },
}

/// Where a lookup reads the trees and the links of `.aynig`: a store, or [`ReadOnce`].
pub(crate) trait Reads {
    fn entries_of(&self, tree: ObjectId) -> Result<Rc<[TreeEntry]>, StoreError>;
    /// Returns where a link leads to; `None` where that is too long for a path.
    fn link_of(&self, blob: ObjectId) -> Result<Option<Vec<u8>>, StoreError>;
}

impl Reads for dyn Store + '_ {
    fn entries_of(&self, tree: ObjectId) -> Result<Rc<[TreeEntry]>, StoreError> {
        Ok(self.read_tree(tree)?.into())
    }

    fn link_of(&self, blob: ObjectId) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_bounded(blob, TARGET_MAX)
    }
}

/// A store whose trees are read once, for lookups of many states: each has a tree or two to read, and with the `git`
/// binary each of these is a process.
pub(crate) struct ReadOnce<'a> {
    store: &'a dyn Store,
    trees: RefCell<HashMap<ObjectId, Rc<[TreeEntry]>>>,
    kept: Cell<usize>,
}

impl<'a> ReadOnce<'a> {
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        Self { store, trees: RefCell::default(), kept: Cell::default() }
    }
}

impl Reads for ReadOnce<'_> {
    fn entries_of(&self, tree: ObjectId) -> Result<Rc<[TreeEntry]>, StoreError> {
        if let Some(known) = self.trees.borrow().get(&tree) {
            return Ok(known.clone());
        }
        let read = self.store.entries_of(tree)?;
        if self.kept.get() > KEPT_MAX {
            self.trees.borrow_mut().clear();
            self.kept.set(0);
        }
        self.kept.set(self.kept.get() + 1 + read.len());
        self.trees.borrow_mut().insert(tree, read.clone());
        Ok(read)
    }

    fn link_of(&self, blob: ObjectId) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.link_of(blob)
    }
}

/// Returns the `.aynig` tree of a commit's tree; `None` where there is none.
pub(crate) fn find(store: &dyn Store, tree: ObjectId) -> Result<Option<ObjectId>, StoreError> {
    let entries = store.read_tree(tree)?;
    Ok(entries.into_iter().find(|e| e.name == FOLDER.as_bytes() && e.mode == TREE).map(|e| e.id))
}

/// Which commands a runner with a role takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleUse {
    /// The role's own command first, then the common one.
    First,
    /// Only the role's own commands: machines with other roles take the others.
    Only,
}

/// Looks up the command of a state, the role's own command first.
pub(crate) fn lookup<S: Reads + ?Sized>(
    store: &S,
    tree: ObjectId,
    role: Option<(&RoleName, RoleUse)>,
    state: &StateName,
) -> Result<Lookup, StoreError> {
    for path in paths(role, state) {
        let found = resolve(store, tree, &path)?;
        if found != Lookup::Missing {
            return Ok(found);
        }
    }
    Ok(Lookup::Missing)
}

/// Returns where below `.aynig/` the command of a state may be, the place that comes first first.
pub(crate) fn paths(role: Option<(&RoleName, RoleUse)>, state: &StateName) -> impl Iterator<Item = String> {
    let own = role.map(|(role, _)| format!("roles/{role}/command/{state}"));
    let common = !matches!(role, Some((_, RoleUse::Only)));
    own.into_iter().chain(common.then(|| format!("command/{state}")))
}

fn resolve<S: Reads + ?Sized>(store: &S, tree: ObjectId, path: &str) -> Result<Lookup, StoreError> {
    let unusable = |why| Ok(Lookup::Unusable { path: path.to_owned(), why });
    let mut at: Vec<Vec<u8>> = path.split('/').map(|s| s.as_bytes().to_vec()).collect();
    for _ in 0..LINKS_MAX {
        let (entry, depth) = match walk(store, tree, &at)? {
            Some(found) => found,
            None => return Ok(Lookup::Missing),
        };
        match entry.mode {
            EXECUTABLE if depth == at.len() => {
                return Ok(Lookup::Found(Command { tree, path: path.to_owned(), file: entry.id }));
            }
            SYMLINK => {
                let target = store.link_of(entry.id)?;
                match target.and_then(|target| follow(&at, depth, &target)) {
                    Some(next) => at = next,
                    None => return unusable(Unfit::Leaves),
                }
            }
            TREE if depth == at.len() => return Ok(Lookup::Missing),
            _ if entry.is_file() && depth == at.len() => {
                return unusable(Unfit::NotExecutable);
            }
            _ => return Ok(Lookup::Missing),
        }
    }
    unusable(Unfit::Links)
}

/// Follows a path down as far as it is made of trees. Returns the last entry and how many segments lead to
/// it; `None` where a segment is missing.
fn walk<S: Reads + ?Sized>(
    store: &S,
    tree: ObjectId,
    path: &[Vec<u8>],
) -> Result<Option<(TreeEntry, usize)>, StoreError> {
    let mut tree = tree;
    for (i, name) in path.iter().enumerate() {
        let entries = store.entries_of(tree)?;
        let Some(entry) = entries.iter().find(|e| e.name == *name).cloned() else { return Ok(None) };
        if entry.mode != TREE || i + 1 == path.len() {
            return Ok(Some((entry, i + 1)));
        }
        tree = entry.id;
    }
    Ok(None)
}

/// Returns the path that a link at `path[..depth]` leads to; `None` where it leaves the tree.
pub(crate) fn follow(path: &[Vec<u8>], depth: usize, target: &[u8]) -> Option<Vec<Vec<u8>>> {
    if target.starts_with(b"/") {
        return None;
    }
    let mut next = path[..depth - 1].to_vec();
    for part in target.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                next.pop()?;
            }
            name => next.push(name.to_vec()),
        }
    }
    next.extend_from_slice(&path[depth..]);
    Some(next)
}

/// Returns the states that have a command, each with the role where the command is a
/// role's own: `("build", None)`. No more than [`LISTED_MAX`] entries are looked at.
pub(crate) fn list(store: &dyn Store, tree: ObjectId) -> Result<Vec<(String, Option<String>)>, StoreError> {
    let (mut found, mut listing) = (BTreeSet::new(), Listing { store, left: LISTED_MAX });
    let top = store.read_tree(tree)?;
    let folder = |entries: &[TreeEntry], name: &str| {
        entries.iter().find(|e| e.name == name.as_bytes() && e.mode == TREE).map(|e| e.id)
    };
    let mut add = |path: Vec<u8>, mode: u32, role: Option<&str>| {
        // A name that is not UTF-8 is no state.
        if let (EXECUTABLE | SYMLINK, Ok(state)) = (mode, String::from_utf8(path)) {
            found.insert((state, role.map(str::to_owned)));
        }
    };
    if let Some(command) = folder(&top, "command") {
        listing.files(command, (&[], 0), &mut |path, mode| add(path, mode, None))?;
    }
    if let Some(roles) = folder(&top, "roles") {
        for role in listing.entries(roles)?.iter().filter(|e| e.mode == TREE) {
            // A runner can't have a role of another name.
            let Ok(name) = RoleName::new(&role.name) else { continue };
            if let Some(command) = folder(&listing.entries(role.id)?, "command") {
                listing.files(command, (&[], 0), &mut |path, mode| add(path, mode, Some(name.as_str())))?;
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// What a file of a command folder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A command that can be started, and the blob that its name leads to.
    Usable(ObjectId),
    /// A file that can't be started, and why.
    Unusable(Unfit),
    /// The file's name is no state, or the name of its role's folder no role.
    BadName(BadName),
}

/// Returns the files below the command folders, each with its path below `.aynig/`; no more than [`LISTED_MAX`] entries
/// are looked at.
pub(crate) fn entries(store: &dyn Store, tree: ObjectId) -> Result<Vec<(String, Entry)>, StoreError> {
    let (mut found, mut listing, read) =
        (Vec::new(), Listing { store, left: LISTED_MAX }, ReadOnce::new(store));
    let mut folders = vec![(vec![b"command".to_vec()], None)];
    if let Some((roles, _)) = walk(&read, tree, &[b"roles".to_vec()])?.filter(|(e, _)| e.mode == TREE) {
        let of = |role: TreeEntry| {
            let bad = RoleName::new(&role.name).err();
            (vec![b"roles".to_vec(), role.name, b"command".to_vec()], bad)
        };
        folders.extend(listing.entries(roles.id)?.into_iter().map(of));
    }
    for (at, bad_role) in folders {
        let Some((entry, depth)) = walk(&read, tree, &at)? else { continue };
        if entry.mode == TREE && depth == at.len() {
            let folder = String::from_utf8_lossy(&at.join(&b'/')).into_owned();
            let mut paths = Vec::new();
            listing.files(entry.id, (&[], 0), &mut |path, _| paths.push(path))?;
            for name in paths {
                let name = String::from_utf8_lossy(&name).into_owned();
                let path = format!("{folder}/{name}");
                let bad = bad_role.or_else(|| StateName::new(&name).err());
                let entry = match (bad, resolve(&read, tree, &path)?) {
                    (Some(why), _) => Entry::BadName(why),
                    (None, Lookup::Found(command)) => Entry::Usable(command.file),
                    (None, Lookup::Missing) => Entry::Unusable(Unfit::Nowhere),
                    (None, Lookup::Unusable { why, .. }) => Entry::Unusable(why),
                };
                found.push((path, entry));
            }
        }
    }
    Ok(found)
}

/// A look at the folders of commands that ends after so many entries.
struct Listing<'a> {
    store: &'a dyn Store,
    /// How many entries may still be looked at.
    left: usize,
}

impl Listing<'_> {
    /// Returns the entries of a folder, as many as may still be looked at.
    fn entries(&mut self, tree: ObjectId) -> Result<Vec<TreeEntry>, StoreError> {
        if self.left == 0 {
            return Ok(Vec::new());
        }
        let mut entries = self.store.read_tree(tree)?;
        entries.truncate(self.left);
        self.left -= entries.len();
        Ok(entries)
    }

    /// Calls `found` with the path and the mode of each entry below a folder that is no folder itself.
    fn files(
        &mut self,
        tree: ObjectId,
        (prefix, depth): (&[u8], usize),
        found: &mut dyn FnMut(Vec<u8>, u32),
    ) -> Result<(), StoreError> {
        for entry in self.entries(tree)? {
            let mut path = [prefix, &entry.name].concat();
            if entry.mode != TREE {
                found(path, entry.mode);
            } else if depth < DEPTH_MAX {
                path.push(b'/');
                self.files(entry.id, (&path, depth + 1), found)?;
            }
        }
        Ok(())
    }
}

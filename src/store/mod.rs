//! Everything that touches Git: heads, commits, compare-and-swap, slots, configuration.
//!
//! The only module that names gix or starts `git`. One trait, [`Store`], is served by gix with
//! our own durable swap (`refs::files`), by the `git` binary ([`binary`]) and in memory
//! ([`memory`]); all pass the same tests.
//!
//! By folder: `refs` (the files backend, its locks, the swap's verdict), `git` (the one builder of its children),
//! `backends`, `remote` (the push is the swap), `checkout` (working trees that have a branch), `slots` (worktrees that
//! commands run in), `commands` (the `.aynig/` tree), `config`, `hooks`, `pack`. Implements K11, K37, K42, K43.

pub(crate) mod backends;
pub(crate) mod checkout;
pub(crate) mod commands;
pub mod commit;
pub(crate) mod config;
pub(crate) mod disk;
mod error;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod hooks;
pub(crate) mod pack;
pub(crate) mod pattern;
pub(crate) mod refs;
pub(crate) mod remote;
pub mod repository;
pub(crate) mod slots;

pub use backends::{binary, gix_store, memory};
pub(crate) use checkout::{sparse, workspace, worktrees};
pub(crate) use commands::{copy as command_copy, start as command_start, tree as command_tree};
pub(crate) use config::protected;
pub use git::command as git_command;
pub(crate) use git::{
    calls as git_calls, children, compare as git_compare, merge as git_merge, pins as git_pins,
};
pub(crate) use refs::{glance, watch};
pub use refs::{locks, swap};

use disk::{copy_file, copy_index, make_readable, sync, sync_file_system, sync_tables};
pub(crate) use disk::{forbids_programs, is_plain, name_for, read_plain, remove_tree, write_aside};
use error::io_error;
pub use error::{RemoteFailure, StoreError, Unread};
pub(crate) use remote::network::tracking;

use crate::protocol::flow::slug_of;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::INBOX;
pub use crate::protocol::swap::Swap;
pub(crate) use crate::supervisor::beneath;
use std::fmt;
use std::time::Duration;

/// A full ref name, such as `refs/heads/work`. Bytes, because Git allows names that are not UTF-8.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefName(Vec<u8>);

impl RefName {
    /// Returns the ref of this full name; the caller has checked that Git would accept it.
    pub fn new(full: impl Into<Vec<u8>>) -> Self {
        Self(full.into())
    }
    /// Returns the local branch of this short name.
    pub fn branch(short: impl AsRef<[u8]>) -> Self {
        Self([b"refs/heads/", short.as_ref()].concat())
    }
    /// Returns the bytes of the full name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// Returns the name without `refs/heads/`; of a ref that is no branch, the full name.
    pub fn short(&self) -> &[u8] {
        self.0.strip_prefix(b"refs/heads/").unwrap_or(&self.0)
    }
    /// True where Git would create a ref of this name (`git check-ref-format`).
    pub fn is_valid(&self) -> bool {
        let bytes = &self.0;
        let has = |needle: &[u8]| bytes.windows(needle.len()).any(|w| w == needle);
        bytes.starts_with(b"refs/")
            && !has(b"..")
            && !has(b"@{")
            && !bytes.ends_with(b".")
            && bytes.iter().all(|b| *b > b' ' && *b != 0x7f && !b"~^:?*[\\".contains(b))
            && bytes
                .split(|b| *b == b'/')
                .all(|part| !part.is_empty() && part[0] != b'.' && !part.ends_with(b".lock"))
    }
    /// True where one of the two is a folder of the other: Git can't hold both.
    pub fn conflicts_with(&self, other: &RefName) -> bool {
        let is_below = |a: &[u8], b: &[u8]| a.strip_prefix(b).is_some_and(|rest| rest.starts_with(b"/"));
        is_below(&self.0, &other.0) || is_below(&other.0, &self.0)
    }
    /// Returns the names that are folders of this one, below `refs/<kind>`; the shortest first.
    pub(crate) fn folders(&self) -> impl Iterator<Item = RefName> {
        let slashes = self.0.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        slashes.skip(2).map(|at| RefName::new(&self.0[..at]))
    }
    /// True for the name of a flow's node, `refs/heads/flow/<flow>/<node>`: a branch that
    /// is deleted with its flow.
    pub fn is_node(&self) -> bool {
        self.0.strip_prefix(b"refs/heads/").is_some_and(|short| slug_of(short).is_some())
    }
    /// True for every name below `refs/aynig/`, no matter what created the ref.
    pub fn is_below_ours(&self) -> bool {
        self.0.starts_with(b"refs/aynig/")
    }
    /// True for the names that are the runner's own: flat ones, such as `refs/aynig/run/<id>`, and messages in an
    /// inbox, `refs/aynig/inbox/<branch>/<kind>/<id>`, whose branch may have several segments. Only these,
    /// and branches of nodes, are ever deleted.
    pub fn is_own(&self) -> bool {
        if !self.is_valid() || !self.is_below_ours() {
            return false;
        }
        match self.0.strip_prefix(INBOX) {
            Some(below) => below.split(|b| *b == b'/').count() >= 3 || !below.contains(&b'/'),
            None => self.0.split(|b| *b == b'/').count() == 4,
        }
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.short()))
    }
}

impl fmt::Debug for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

/// What a ref must hold for a swap to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Exactly this object.
    At(ObjectId),
    /// Nothing: the ref must not exist.
    Missing,
}

/// One ref of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefChange {
    /// The ref.
    pub name: RefName,
    /// What it must hold.
    pub expected: Expected,
    /// What it holds afterwards. `None` deletes it, and only where
    /// [`RefName::is_own`] or [`RefName::is_node`].
    pub new: Option<ObjectId>,
}

impl RefChange {
    /// Returns the change that creates a ref, which must not exist.
    pub fn create(name: RefName, new: ObjectId) -> Self {
        Self { name, expected: Expected::Missing, new: Some(new) }
    }

    /// Returns the change that deletes a ref, which must hold `old`.
    pub fn delete(name: RefName, old: ObjectId) -> Self {
        Self { name, expected: Expected::At(old), new: None }
    }
}

/// Returns the changes in the order of their names, where they can be made together: no name comes twice,
/// none is a folder of a new one, and nothing is deleted that is not the tool's own.
///
/// # Errors
/// [`StoreError::RefusedName`], [`StoreError::NameConflict`].
pub(crate) fn in_name_order(changes: &[RefChange]) -> Result<Vec<&RefChange>, StoreError> {
    let mut sorted: Vec<&RefChange> = changes.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let refused = |name: &RefName, cause| Err(StoreError::RefusedName { name: name.clone(), cause });
    let mut names = std::collections::HashSet::new();
    for change in &sorted {
        if !names.insert(&change.name) {
            return refused(&change.name, "it is to be moved twice at once");
        }
        if change.new.is_none() && !change.name.is_own() && !change.name.is_node() {
            return refused(&change.name, "it is not ours to delete");
        }
    }
    // A single change has no other one beside it.
    for change in sorted.iter().filter(|change| changes.len() > 1 && change.new.is_some()) {
        if let Some(other) = change.name.folders().find(|other| names.contains(other)) {
            return Err(StoreError::NameConflict { name: change.name.clone(), other });
        }
    }
    Ok(sorted)
}

/// A name, an address and a moment, as a commit carries them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The person or runner.
    pub name: String,
    /// The mail address, without brackets.
    pub email: String,
    /// Seconds since 1970.
    pub seconds: i64,
}

/// A commit as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its own id.
    pub id: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, first parent first.
    pub parents: Vec<ObjectId>,
    /// The committer's seconds since 1970; `None` where the header is missing or unreadable.
    pub committed: Option<i64>,
    /// The message, in UTF-8 where the commit declared another encoding that is known.
    pub message: Vec<u8>,
}

/// A commit to be written. Author and committer are the same: the runner or the user who asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCommit {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, first parent first.
    pub parents: Vec<ObjectId>,
    /// Author and committer.
    pub signature: Signature,
    /// The whole message.
    pub message: Vec<u8>,
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its mode, such as `0o100755`; of folders `0o40000`.
    pub mode: u32,
    /// Its name, one segment.
    pub name: Vec<u8>,
    /// The object that it names: a blob, a tree, or the commit of a submodule.
    pub id: ObjectId,
}

/// The mode of a folder in a tree.
pub(crate) const FOLDER: u32 = 0o040000;
/// The mode of a submodule's commit in a tree.
pub(crate) const SUBMODULE: u32 = 0o160000;

impl TreeEntry {
    /// True for a plain file, executable or not.
    pub fn is_file(&self) -> bool {
        self.mode & 0o170000 == 0o100000
    }
}

/// What a tree is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A file's content.
    Blob,
    /// The entries of a folder.
    Tree,
}

/// What a prefix holds. One ref that can't be read never hides the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The refs that can be read, by name.
    pub refs: Vec<(RefName, ObjectId)>,
    /// The refs whose value can't be read, each with the reason.
    pub unreadable: Vec<(RefName, Unread)>,
}

/// The newest commit of every ref under a prefix.
#[derive(Debug, Default)]
pub struct Heads {
    /// Refs with their commit, by name.
    pub heads: Vec<(RefName, Commit)>,
    /// Refs that can't be read, or whose commit can't.
    pub failed: Vec<(RefName, StoreError)>,
}

/// Takes a ref and its newest commit, or why that can't be read.
pub type Visit<'v> = dyn FnMut(RefName, Result<Commit, StoreError>) + 'v;

/// Refs and objects of one repository. Every swap names its old value.
pub trait Store: Send {
    /// Returns what the ref holds; `None` where it does not exist.
    fn tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError>;

    /// Returns what the ref held when this store last learned of it. That is enough where a swap
    /// follows, because the swap names that value as the old one. Costs nothing where
    /// [`Store::tip`] costs a network call.
    fn known_tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        self.tip(name)
    }

    /// Returns what the ref holds now. That commit need not be in this repository.
    fn bare_tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        self.tip(name)
    }

    /// True where no other repository can have this commit: this store wrote it, and every attempt to move a
    /// branch to it ended before the commit was sent.
    fn is_unsent(&self, id: ObjectId) -> bool {
        let _ = id;
        false
    }

    /// Fetches all branches anew. Local refs need no fetch.
    fn refresh(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Fetches all branches anew, and all other refs that machines share, at once. A caller that then reads
    /// what was last fetched misses nothing.
    fn refresh_all(&self) -> Result<(), StoreError> {
        self.refresh()
    }

    /// Learns what all branches hold, without fetching their commits where there are many branches. Returns
    /// the branches whose heads may not be in this repository yet, and what they hold. Until
    /// [`Store::fetch_heads`] brings these heads, what was known of the branches before is out of date.
    fn hear(&self) -> Result<Vec<(RefName, ObjectId)>, StoreError> {
        self.refresh().map(|()| Vec::new())
    }

    /// Fetches the heads of these branches, as they are now.
    fn fetch_heads(&self, names: &[RefName]) -> Result<(), StoreError> {
        let _ = names;
        Ok(())
    }

    /// Asks anew what all branches hold, where the last answer is old.
    fn listen(&self) {}

    /// Does what [`Store::listen`] does, once another machine was quicker since the last fetch.
    fn listen_where_contested(&self) {}

    /// True where the last answer says that another machine moved the branch away from this commit, so that a
    /// swap which expects the commit would be lost.
    fn has_moved(&self, name: &RefName, from: ObjectId) -> bool {
        let _ = (name, from);
        false
    }

    /// Syncs what was written, in a durable store, before a ref of another repository names it.
    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Puts one of the runner's own refs where the branches are, for runners on other machines.
    fn publish(&self, name: &RefName, commit: ObjectId) -> Result<(), StoreError> {
        let _ = (name, commit);
        Ok(())
    }

    /// Returns what one of the runner's own refs holds. The ref is fetched where a runner on
    /// another machine published it.
    fn obtain(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        self.tip(name)
    }

    /// Fetches the refs that all machines share below these prefixes (`refs/aynig/paused/`, or whole
    /// names), at the cost of one listing of just these. Afterwards their commits are in this
    /// repository, and [`Store::known_tip`] returns what the refs hold. Pauses and flows also come with
    /// the branches ([`Store::refresh`]), the others with [`Store::scan`], and any of them with
    /// [`Store::tip`]. Local refs need no fetch.
    fn hear_shared(&self, prefixes: &[&[u8]]) -> Result<(), StoreError> {
        let _ = prefixes;
        Ok(())
    }

    /// Lists refs as [`Store::scan`] does, by what was last fetched, as
    /// [`Store::known_tip`] does for one ref.
    fn known_scan(&self, prefix: &str) -> Result<Vec<(RefName, ObjectId)>, StoreError> {
        self.scan(prefix)
    }

    /// Returns what waits now in the inboxes of a branch, and of the branches below its name,
    /// by the names of the refs.
    fn waiting(&self, branch: &RefName) -> Result<Scan, StoreError> {
        let prefix = [INBOX, branch.short(), b"/"].concat();
        // A branch name that is not UTF-8 is looked for among all inboxes.
        let asked = std::str::from_utf8(&prefix).unwrap_or("refs/aynig/inbox/");
        let mut found = self.scan_all(asked)?;
        found.refs.retain(|(name, _)| name.as_bytes().starts_with(&prefix));
        found.unreadable.retain(|(name, _)| name.as_bytes().starts_with(&prefix));
        Ok(found)
    }

    /// Sets how long each network call may take from this call on.
    fn set_patience(&self, patience: Duration) {
        let _ = patience;
    }

    /// Returns all refs under a prefix that ends with a slash, such as `refs/heads/`. Symbolic refs are left
    /// out. A ref that can't be read is set aside, and so is a symbolic ref below `refs/aynig/`.
    fn scan_all(&self, prefix: &str) -> Result<Scan, StoreError>;

    /// Returns the readable refs of [`Store::scan_all`].
    fn scan(&self, prefix: &str) -> Result<Vec<(RefName, ObjectId)>, StoreError> {
        Ok(self.scan_all(prefix)?.refs)
    }

    /// Returns all refs under a prefix with their newest commits.
    fn read_heads(&self, prefix: &str) -> Result<Heads, StoreError> {
        let scan = self.scan_all(prefix)?;
        let mut heads = Heads::from_unreadable(scan.unreadable);
        for (name, id) in scan.refs {
            heads.push(name, self.read_commit(id));
        }
        Ok(heads)
    }

    /// Hands each ref under a prefix to `visit`, with its newest commit, as they are read fastest: in no order that
    /// a caller may rely on. `visit` is called by the caller's thread, and few commits wait for it.
    fn visit_heads(&self, prefix: &str, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let found = self.read_heads(prefix)?;
        found.heads.into_iter().for_each(|(name, commit)| visit(name, Ok(commit)));
        found.failed.into_iter().for_each(|(name, error)| visit(name, Err(error)));
        Ok(())
    }

    /// True for a commit whose parents a shallow clone does not have.
    fn history_ends_at(&self, id: ObjectId) -> Result<bool, StoreError>;

    /// Makes one attempt to move refs together, and does not read them again: `Ok` only where all of the move
    /// is certain (the renames under the locks were made, or `git` said so). `new: None` deletes, and only
    /// where [`RefName::is_own`] or [`RefName::is_node`]. Use [`swap::compare_and_swap`] and
    /// [`swap::compare_and_swap_with`], which find the verdict.
    ///
    /// Where one ref does not hold what it should, is locked or can't be read, none is moved. Stores with
    /// transactions of their own (reftable, a remote, memory) move all or none. In files all locks are held
    /// and all old values are judged before the first ref moves; then **branches move first**, then refs are
    /// put, then refs are deleted. A runner that is killed between two of these leaves a branch that names
    /// what it took in, and refs that the runner which reads the branch next takes away: the other order
    /// would lose a message that no branch knows of.
    fn try_swaps(&self, changes: &[RefChange], by: &Signature, log: &str) -> Result<(), StoreError>;

    /// Makes the attempt of [`Store::try_swaps`] for one ref.
    fn try_swap(
        &self,
        name: &RefName,
        expected: Expected,
        new: Option<ObjectId>,
        by: &Signature,
        log: &str,
    ) -> Result<(), StoreError> {
        self.try_swaps(&[RefChange { name: name.clone(), expected, new }], by, log)
    }

    /// Reads the commit of this id.
    fn read_commit(&self, id: ObjectId) -> Result<Commit, StoreError>;

    /// Returns the entries of a tree, in Git's order.
    fn read_tree(&self, id: ObjectId) -> Result<Vec<TreeEntry>, StoreError>;

    /// Returns the content of a blob.
    fn read_blob(&self, id: ObjectId) -> Result<Vec<u8>, StoreError>;

    /// Returns how many bytes a blob has, without reading them.
    fn blob_size(&self, id: ObjectId) -> Result<u64, StoreError>;

    /// Returns the content of a blob of at most `max` bytes; `None` where it is larger, as anyone who may push can make
    /// it.
    fn read_bounded(&self, id: ObjectId, max: u64) -> Result<Option<Vec<u8>>, StoreError> {
        if self.blob_size(id)? > max {
            return Ok(None);
        }
        self.read_blob(id).map(Some)
    }

    /// Writes a file's content, or the entries of a folder in Git's form, for a commit that is written next.
    fn write_part(&self, part: Part, content: &[u8]) -> Result<ObjectId, StoreError>;

    /// Writes a commit, running no hook, and makes it durable where the store is (K42).
    fn write_commit(&self, commit: &NewCommit) -> Result<ObjectId, StoreError>;
}

impl Heads {
    fn from_unreadable(unreadable: Vec<(RefName, Unread)>) -> Self {
        let failed = unreadable
            .into_iter()
            .map(|(name, cause)| (name.clone(), StoreError::UnreadableRef { name, cause }))
            .collect();
        Self { heads: Vec::new(), failed }
    }

    fn push(&mut self, name: RefName, read: Result<Commit, StoreError>) {
        match read {
            Ok(commit) => self.heads.push((name, commit)),
            Err(error) => self.failed.push((name, error)),
        }
    }
}

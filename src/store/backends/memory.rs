//! A store in memory, for tests and the model: it answers as the other stores do, and fails on demand.
//!
//! Clones share one repository, as runners on one machine do. Ids look real and depend on all of a commit's
//! content, so that two identical commits are one, as in Git. [`MemoryStore::fail_next`] arms one failure for
//! the next attempt; [`MemoryStore::hide_tips`] makes refs unreadable for a while.

use crate::protocol::id::ObjectId;
use crate::store::{
    Commit, Expected, NewCommit, Part, RefChange, RefName, Scan, Signature, Store, StoreError, Unread,
    commit, in_name_order,
};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How the next attempt of a swap fails.
pub enum Failure {
    /// The swap happens, but its answer is lost.
    LostAnswer,
    /// The swap happens, then this function runs, then the swap's answer is lost.
    LostAnswerThen(Box<dyn FnOnce(&MemoryStore) + Send>),
    /// This function runs, then the swap fails without having happened.
    FailsAfter(Box<dyn FnOnce(&MemoryStore) + Send>),
    /// The ref's lock is held by another process.
    LockHeld,
}

/// One shared repository in memory.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    refs: BTreeMap<RefName, ObjectId>,
    symbolic: BTreeMap<RefName, RefName>,
    commits: HashMap<ObjectId, Commit>,
    failure: Option<Failure>,
    hidden_tips: usize,
    log: Vec<(RefName, Option<ObjectId>, String)>,
}

impl MemoryStore {
    /// Returns an empty repository.
    pub fn new() -> Self {
        Self::default()
    }

    /// Arms a failure for the next attempt of a swap.
    pub fn fail_next(&self, failure: Failure) {
        self.lock().failure = Some(failure);
    }

    /// Makes the next `n` readings of a tip fail.
    pub fn hide_tips(&self, n: usize) {
        self.lock().hidden_tips = n;
    }

    /// Sets a ref without any check, as another process's `git update-ref` does; `None` deletes it.
    pub fn force(&self, name: &RefName, id: Option<ObjectId>) {
        let mut inner = self.lock();
        match id {
            Some(id) => inner.refs.insert(name.clone(), id),
            None => inner.refs.remove(name),
        };
    }

    /// Makes a branch a symbolic ref to `target`.
    pub fn make_symbolic(&self, name: &RefName, target: &RefName) {
        self.lock().symbolic.insert(name.clone(), target.clone());
    }

    /// Returns every swap that happened: ref, new value (`None`: deleted), message.
    pub fn log(&self) -> Vec<(RefName, Option<ObjectId>, String)> {
        self.lock().log.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn swap(&self, changes: &[RefChange], log: &str) -> Result<(), StoreError> {
        let mut inner = self.lock();
        for change in changes {
            inner.judge(change)?;
        }
        for RefChange { name, expected: _, new } in changes {
            match new {
                Some(id) => inner.refs.insert(name.clone(), *id),
                None => inner.refs.remove(name),
            };
            inner.log.push((name.clone(), *new, log.to_owned()));
        }
        Ok(())
    }
}

impl Inner {
    fn judge(&self, change: &RefChange) -> Result<(), StoreError> {
        let RefChange { name, expected, new } = change;
        if let Some(target) = self.symbolic.get(name) {
            return Err(StoreError::SymbolicRef { name: name.clone(), target: target.clone() });
        }
        let found = self.refs.get(name).copied();
        let fits = match expected {
            Expected::At(id) => found == Some(*id),
            Expected::Missing => found.is_none(),
        };
        if !fits {
            return Err(StoreError::Moved { name: name.clone(), expected: *expected, found });
        }
        match new {
            Some(id) if !self.commits.contains_key(id) => {
                Err(StoreError::Object { id: *id, cause: "it is missing".to_owned() })
            }
            Some(_) if found.is_none() => self.refuse_conflicts(name),
            Some(_) | None => Ok(()),
        }
    }

    fn refuse_conflicts(&self, name: &RefName) -> Result<(), StoreError> {
        match self.refs.keys().find(|other| name.conflicts_with(other)) {
            Some(other) => Err(StoreError::NameConflict { name: name.clone(), other: other.clone() }),
            None => Ok(()),
        }
    }
}

fn lost_answer() -> StoreError {
    StoreError::Git { verb: "update-ref".to_owned(), message: "the answer was lost".to_owned() }
}

/// Returns an id of twenty bytes that depend on all of the content.
fn id_of(raw: &[u8]) -> ObjectId {
    let mut bytes = [0; 24];
    for (salt, part) in bytes.chunks_exact_mut(8).enumerate() {
        let mut hasher = DefaultHasher::new();
        (salt, raw).hash(&mut hasher);
        part.copy_from_slice(&hasher.finish().to_be_bytes());
    }
    ObjectId::from_bytes(&bytes[..20]).unwrap_or_else(|_| unreachable!("twenty bytes are an id"))
}

impl Store for MemoryStore {
    fn tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        let mut inner = self.lock();
        if inner.hidden_tips > 0 {
            inner.hidden_tips -= 1;
            return Err(StoreError::UnreadableRef {
                name: name.clone(),
                cause: Unread::Content("hidden by the test".to_owned()),
            });
        }
        match inner.symbolic.get(name) {
            Some(target) => Err(StoreError::SymbolicRef { name: name.clone(), target: target.clone() }),
            None if !name.is_valid() => {
                Err(StoreError::RefusedName { name: name.clone(), cause: "Git accepts no such name" })
            }
            None => Ok(inner.refs.get(name).copied()),
        }
    }

    fn scan_all(&self, prefix: &str) -> Result<Scan, StoreError> {
        let inner = self.lock();
        let below = inner.refs.iter().filter(|(name, _)| name.as_bytes().starts_with(prefix.as_bytes()));
        let plain = below.filter(|(name, _)| !inner.symbolic.contains_key(name));
        Ok(Scan { refs: plain.map(|(n, id)| (n.clone(), *id)).collect(), unreadable: Vec::new() })
    }

    fn history_ends_at(&self, _id: ObjectId) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn try_swaps(&self, changes: &[RefChange], _by: &Signature, log: &str) -> Result<(), StoreError> {
        for change in in_name_order(changes)? {
            if !change.name.is_valid() {
                let (name, cause) = (change.name.clone(), "Git accepts no such name");
                return Err(StoreError::RefusedName { name, cause });
            }
        }
        let failure = self.lock().failure.take();
        match failure {
            None => self.swap(changes, log),
            Some(Failure::LostAnswer) => {
                self.swap(changes, log)?;
                Err(lost_answer())
            }
            Some(Failure::LostAnswerThen(then)) => {
                self.swap(changes, log)?;
                then(self);
                Err(lost_answer())
            }
            Some(Failure::FailsAfter(first)) => {
                first(self);
                Err(lost_answer())
            }
            Some(Failure::LockHeld) => {
                let Some(RefChange { name, .. }) = changes.first() else { return Ok(()) };
                let path = PathBuf::from(format!("{name}.lock"));
                Err(StoreError::LockHeld { name: name.clone(), path, age: Duration::from_secs(60) })
            }
        }
    }

    fn read_commit(&self, id: ObjectId) -> Result<Commit, StoreError> {
        let found = self.lock().commits.get(&id).cloned();
        found.ok_or_else(|| StoreError::Object { id, cause: "it is missing".to_owned() })
    }

    fn read_tree(&self, id: ObjectId) -> Result<Vec<crate::store::TreeEntry>, StoreError> {
        Err(StoreError::Object { id, cause: "there are no trees in memory".to_owned() })
    }

    fn read_blob(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        Err(StoreError::Object { id, cause: "there are no blobs in memory".to_owned() })
    }

    fn blob_size(&self, id: ObjectId) -> Result<u64, StoreError> {
        self.read_blob(id).map(|content| content.len() as u64)
    }

    fn write_part(&self, _: Part, _: &[u8]) -> Result<ObjectId, StoreError> {
        Err(StoreError::RefusedCommit { cause: "there are no files in memory" })
    }

    fn write_commit(&self, new: &NewCommit) -> Result<ObjectId, StoreError> {
        let raw = commit::encode(new)?;
        let id = id_of(&raw);
        let commit =
            commit::parse(id, &raw).map_err(|cause| StoreError::Object { id, cause: cause.to_owned() })?;
        self.lock().commits.insert(id, commit);
        Ok(id)
    }
}

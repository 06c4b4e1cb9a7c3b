//! The refs that all machines share beside the branches: messages, messages that were delivered, questions,
//! pauses, flows, what turns left, and templates.
//!
//! These refs are the remote's own, with the same names as in a repository that has no remote. What was last
//! fetched of them is kept below `refs/aynig/shared/<remote>/`. Pauses and flows come with every fetch of
//! branches, so that reading them costs nothing; the others are fetched when they are read, by one listing of
//! just these names. They are moved as branches are, by a push that names each old value; several are moved
//! by one atomic push. Implements K12 (several refs), K30 (what is heard).

use super::network::{Pushed, Remote};
use super::{RemoteStore, is_branch};
use crate::protocol::flow::{FLOWS, TEMPLATES, TURNS};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{ASKED, HEARD_REFS, INBOX, PAUSED};
use crate::store::{Expected, RefChange, RefName, Scan, Store, StoreError};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// The folder in which all refs of this program are.
const OWN: &[u8] = b"refs/aynig/";

/// The prefixes of the names of refs that all machines share.
pub(super) const ALL: [&[u8]; 7] = [INBOX, HEARD_REFS, ASKED, PAUSED, FLOWS, TURNS, TEMPLATES];

/// True for the name of a ref that all machines share.
pub(crate) fn is_shared(name: &[u8]) -> bool {
    ALL.iter().any(|folder| name.starts_with(folder))
}

/// The prefixes of the refs that hold branches: these are fetched together with the branches.
pub(super) const HOLDING: [&[u8]; 2] = [PAUSED, FLOWS];

/// True for the name of a ref that is fetched together with the branches.
pub(super) fn comes_with_heads(name: &[u8]) -> bool {
    HOLDING.iter().any(|folder| name.starts_with(folder))
}

/// True for a ref that belongs to the remote, and not to this repository.
pub(super) fn is_there(name: &RefName) -> bool {
    is_branch(name) || is_shared(name.as_bytes())
}

/// Returns the folder of the local refs that record what a remote's shared refs held when last fetched.
pub(super) fn kept(remote: &str) -> String {
    format!("refs/aynig/shared/{remote}/")
}

/// Returns the refspec that fetches all shared refs whose names begin with `prefix`.
pub(super) fn refspec(remote: &Remote, prefix: &[u8]) -> OsString {
    let below = prefix.strip_prefix(OWN).unwrap_or(prefix);
    OsString::from_vec([b"+", prefix, b"*:", kept(&remote.name).as_bytes(), below, b"*"].concat())
}

impl RemoteStore {
    /// Returns the local ref that records what a shared ref held when it was last fetched.
    pub(super) fn kept(&self, name: &RefName) -> RefName {
        let below = name.as_bytes().strip_prefix(OWN).unwrap_or_default();
        RefName::new([kept(&self.remote.name).as_bytes(), below].concat())
    }

    /// Returns the name that a shared ref has on the remote, from the name under which it is kept.
    fn shared_of(&self, kept_as: &RefName) -> RefName {
        let prefix = kept(&self.remote.name);
        let below = kept_as.as_bytes().strip_prefix(prefix.as_bytes()).unwrap_or_default();
        RefName::new([OWN, below].concat())
    }

    /// True where a ref is kept below one of these folders, or under one of these whole names: it may be gone
    /// from the remote.
    pub(super) fn keeps_any(&self, prefixes: &[&[u8]]) -> Result<bool, StoreError> {
        for prefix in prefixes {
            let kept_as = self.kept(&RefName::new(*prefix));
            let any = match std::str::from_utf8(kept_as.as_bytes()) {
                Ok(folder) if prefix.ends_with(b"/") => {
                    let scan = self.local.scan_all(folder)?;
                    !(scan.refs.is_empty() && scan.unreadable.is_empty())
                }
                // A folder whose name is not UTF-8 can't be listed, and may hold a ref.
                Err(_) if prefix.ends_with(b"/") => true,
                // A ref that can't be read exists.
                Ok(_) | Err(_) => self.local.tip(&kept_as).map_or(true, |tip| tip.is_some()),
            };
            if any {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Fetches what the remote has below these prefixes, which may be whole names. Does nothing offline.
    pub(super) fn bring(&self, prefixes: &[&[u8]]) -> Result<(), StoreError> {
        if self.offline || prefixes.is_empty() {
            return Ok(());
        }
        self.remote.fetch_shared(prefixes, self.keeps_any(prefixes)?, self.patience.get())?;
        let is_old = |name: &RefName| prefixes.iter().any(|prefix| name.as_bytes().starts_with(prefix));
        self.known.borrow_mut().retain(|name, _| !is_old(name));
        Ok(())
    }

    /// Returns what a shared ref holds on the remote now.
    pub(super) fn shared_tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        self.bring(&[name.as_bytes()])?;
        self.known_tip(name)
    }

    /// Returns the shared refs below a prefix as the remote has them now; those that hold branches, as they
    /// were when the branches were last fetched.
    pub(super) fn shared_scan(&self, prefix: &str) -> Result<Scan, StoreError> {
        if !comes_with_heads(prefix.as_bytes()) {
            self.bring(&[prefix.as_bytes()])?;
        }
        self.known_shared(prefix)
    }

    /// Returns the shared refs below a prefix as they were last fetched, with what this store's own pushes
    /// have changed since.
    pub(super) fn known_shared(&self, prefix: &str) -> Result<Scan, StoreError> {
        let kept_as = self.kept(&RefName::new(prefix));
        let mut scan = self.local.scan_all(&String::from_utf8_lossy(kept_as.as_bytes()))?;
        scan.refs.iter_mut().for_each(|(name, _)| *name = self.shared_of(name));
        scan.unreadable.iter_mut().for_each(|(name, _)| *name = self.shared_of(name));
        let known = self.known.borrow();
        scan.refs.retain(|(name, _)| !known.contains_key(name));
        let moved = known.iter().filter(|(name, _)| name.as_bytes().starts_with(prefix.as_bytes()));
        scan.refs.extend(moved.filter_map(|(name, tip)| Some((name.clone(), (*tip)?))));
        scan.refs.sort();
        Ok(scan)
    }

    /// Makes one attempt to move refs of the remote, by one push.
    pub(super) fn push_all(&self, changes: &[RefChange]) -> Result<(), StoreError> {
        for change in changes.iter().filter(|change| is_branch(&change.name)) {
            self.refuse_beside(change)?;
        }
        // All that is pushed is synced first: the next fetch makes a local ref to it before anything else is
        // synced.
        self.local.sync()?;
        // From here on a commit counts as sent, until the remote says that it took nothing: an answer that is lost
        // leaves it so.
        let sent: Vec<ObjectId> = changes.iter().filter_map(|change| change.new).collect();
        let unsent: Vec<ObjectId> =
            sent.into_iter().filter(|id| self.unsent.borrow_mut().remove(id)).collect();
        let (pushed, words) = self.remote.push(changes, self.patience(), self.words_apart)?;
        self.words.replace(words);
        match pushed {
            Pushed::Done => {
                for RefChange { name, expected: _, new } in changes {
                    self.learn(name, *new);
                    if let Some(new) = new.filter(|_| is_branch(name)) {
                        self.news.moved(name, new);
                    }
                }
                Ok(())
            }
            Pushed::Stale => {
                self.unsent.borrow_mut().extend(unsent);
                self.news.lost();
                Err(self.other_that_moved(changes).unwrap_or_else(|| {
                    let RefChange { name, expected, .. } = changes[0].clone();
                    StoreError::Moved { name, expected, found: None }
                }))
            }
            Pushed::Refused(said) => Err(self
                .other_that_moved(changes)
                .unwrap_or_else(|| self.refused(&changes[0].name, changes[0].expected, said))),
            Pushed::Failed(failure, message) => Err(StoreError::Remote {
                remote: self.remote.name.clone(),
                what: "push to",
                failure,
                message,
            }),
        }
    }

    /// Refuses to move a branch to a commit that does not descend from the old value, or to delete a branch
    /// that is no node of a flow. The remote compares the old value only. The first parent alone does not
    /// decide, as a command's own commits may lie in between (K29).
    fn refuse_beside(&self, change: &RefChange) -> Result<(), StoreError> {
        let RefChange { name, expected, new } = change;
        let Some(new) = *new else {
            // A node's branch is deleted with its flow.
            if name.is_node() {
                return Ok(());
            }
            return Err(StoreError::RefusedName {
                name: name.clone(),
                cause: "a remote's branch is never deleted",
            });
        };
        if let Expected::At(old) = *expected
            && self.local.read_commit(new)?.parents.first() != Some(&old)
            && !self.remote.git.is_ancestor(old, new)?
        {
            return Err(StoreError::RefusedCommit { cause: "it does not stand on what it replaces" });
        }
        Ok(())
    }

    /// Finds out, when several refs did not move, which of those after the first does not hold the expected
    /// value. Git reports all of them as rejected, whichever was the cause.
    fn other_that_moved(&self, changes: &[RefChange]) -> Option<StoreError> {
        let others = changes.iter().skip(1).filter(|change| is_shared(change.name.as_bytes()));
        let names: Vec<&[u8]> = others.clone().map(|change| change.name.as_bytes()).collect();
        // Without an answer this finds none; the caller then reads the first ref again, and gets no verdict
        // either.
        self.bring(&names).ok()?;
        others.into_iter().find_map(|RefChange { name, expected, .. }| {
            let found = self.known_tip(name).ok()?;
            let fits = match expected {
                Expected::At(id) => found == Some(*id),
                Expected::Missing => found.is_none(),
            };
            (!fits).then(|| StoreError::Moved { name: name.clone(), expected: *expected, found })
        })
    }
}

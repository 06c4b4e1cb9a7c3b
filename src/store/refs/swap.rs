//! Compare-and-swap with a verdict: won, lost or unknown.
//!
//! [`Store::try_swaps`] makes one attempt, and this module judges its answer. `Ok` means won. After any error
//! the ref is read again, and only its value decides, never the text of the error. The new commit, or one
//! that has it among its first-parent ancestors, means won. The expected value means that nothing was lost:
//! then the error itself is returned (a held lock, a full disk). Any other value means lost. A ref that can't
//! be read means unknown, and the swap is to be retried with the same expectation.
//!
//! Two identical commits would both win, so every commit that swaps carries something unique.
//! Implements K11, K31 (the reading again), K44.

use crate::protocol::id::ObjectId;
use crate::protocol::swap::{Reread, reread};
use crate::store::{Expected, RefChange, RefName, Signature, Store, StoreError, Swap};
use std::collections::HashSet;

/// The most attempts at one swap. Another one is made only where the last saw another value in the ref, and
/// the expected value was back when the ref was read again.
const ATTEMPTS: usize = 3;

/// Moves `name` from `expected` to the commit `new`, whose first parent is the expected one.
///
/// # Errors
/// What stopped the swap, where the ref still holds the expected value, or can't be read after an attempt
/// that was refused before anything could move; [`StoreError::SymbolicRef`] where the ref is a symbolic one;
/// a failed sync, although the ref has moved.
pub fn compare_and_swap(
    store: &dyn Store,
    name: &RefName,
    expected: Expected,
    new: ObjectId,
    by: &Signature,
    log: &str,
) -> Result<Swap, StoreError> {
    settle(store, RefChange { name: name.clone(), expected, new: Some(new) }, &[], by, log)
}

/// Moves `name` as [`compare_and_swap`] does, together with other refs, in one transaction
/// ([`Store::try_swaps`]). The verdict depends on `name` alone. If the process that moves the refs is stopped
/// between two moves, `name` may have moved and other refs not; the runner that reads the branch next moves
/// them.
///
/// # Errors
/// Those of [`compare_and_swap`], and [`StoreError::Moved`] with the name of another ref where that ref does
/// not hold its expected value. Then nothing moved.
pub fn compare_and_swap_with(
    store: &dyn Store,
    name: &RefName,
    expected: Expected,
    new: ObjectId,
    others: &[RefChange],
    by: &Signature,
    log: &str,
) -> Result<Swap, StoreError> {
    settle(store, RefChange { name: name.clone(), expected, new: Some(new) }, others, by, log)
}

/// Creates one of the runner's own refs. The swap is won also where the ref holds `new` already.
pub fn create_ref(
    store: &dyn Store,
    name: &RefName,
    new: ObjectId,
    by: &Signature,
    log: &str,
) -> Result<Swap, StoreError> {
    settle(store, RefChange::create(own(name)?.clone(), new), &[], by, log)
}

/// Moves one of the runner's own refs to `new`, whatever it holds now; creates it where it is missing.
pub fn put_ref(
    store: &dyn Store,
    name: &RefName,
    new: ObjectId,
    by: &Signature,
    log: &str,
) -> Result<Swap, StoreError> {
    let expected = match store.tip(own(name)?)? {
        Some(id) if id == new => return Ok(Swap::Won),
        Some(id) => Expected::At(id),
        None => Expected::Missing,
    };
    settle(store, RefChange { name: name.clone(), expected, new: Some(new) }, &[], by, log)
}

/// Deletes one of the runner's own refs if it holds `old`. The swap is won also where the ref is gone
/// already.
pub fn delete_ref(
    store: &dyn Store,
    name: &RefName,
    old: ObjectId,
    by: &Signature,
) -> Result<Swap, StoreError> {
    if store.tip(own(name)?)?.is_none() {
        return Ok(Swap::Won);
    }
    settle(store, RefChange::delete(name.clone(), old), &[], by, "")
}

fn own(name: &RefName) -> Result<&RefName, StoreError> {
    if name.is_own() {
        return Ok(name);
    }
    Err(StoreError::RefusedName { name: name.clone(), cause: "it is not one of the runner's own" })
}

fn settle(
    store: &dyn Store,
    change: RefChange,
    others: &[RefChange],
    by: &Signature,
    log: &str,
) -> Result<Swap, StoreError> {
    let all = [std::slice::from_ref(&change), others].concat();
    let RefChange { name, expected, new } = &change;
    let (expected, new) = (*expected, *new);
    let expected_value = match expected {
        Expected::At(id) => Some(id),
        Expected::Missing => None,
    };
    let mut error = match store.try_swaps(&all, by, log) {
        Ok(()) => return Ok(Swap::Won),
        Err(error) => error,
    };
    for _ in 1..ATTEMPTS {
        // No remote branch can have a commit that was never sent, so the branch's tip need not be fetched to
        // be compared with it.
        let unsent = new.is_some_and(|new| store.is_unsent(new));
        let tip = match if unsent { store.bare_tip(name) } else { store.tip(name) } {
            Ok(tip) => tip,
            // The ref has become, or always was, a symbolic ref, which is an answer and not a failure to
            // read.
            Err(symbolic @ StoreError::SymbolicRef { .. }) => return Err(symbolic),
            // The attempt was refused before anything could move, so its own error says what happened.
            Err(_) if refused_before_moving(&error) => return Err(error),
            Err(unread) => return Ok(Swap::Unknown { cause: unread.to_string() }),
        };
        let beyond = |tip, new| if unsent { Ok(false) } else { is_beyond(store, tip, new, expected) };
        match reread(expected_value, new, tip, beyond) {
            // The ref moved, but a power cut may undo that: once a sync has failed, a later one proves
            // nothing.
            Ok(Reread::Won) if error.is_unsynced() => return Err(error),
            Ok(Reread::Won) => return Ok(Swap::Won),
            Ok(Reread::Lost) => return Ok(Swap::Lost { tip }),
            Err(unread) => return Ok(Swap::Unknown { cause: unread.to_string() }),
            Ok(Reread::Untouched) => {}
        }
        if !matches!(&error, StoreError::Moved { name: moved, .. } if moved == name) {
            return Err(error);
        }
        // The ref held another value for a moment, and holds the expected one again: try again.
        error = match store.try_swaps(&all, by, log) {
            Ok(()) => return Ok(Swap::Won),
            Err(error) => error,
        };
    }
    Ok(Swap::Unknown { cause: error.to_string() })
}

/// True where `new` is among the first-parent ancestors of `tip`.
///
/// The ancestors of `tip` and those below `new` are walked in step, and the walk ends where the two lines
/// meet. So a branch that was rewound or moved elsewhere costs the distance to the fork, not the whole
/// history.
fn is_beyond(
    store: &dyn Store,
    tip: ObjectId,
    new: ObjectId,
    expected: Expected,
) -> Result<bool, StoreError> {
    let mut below_new = match expected {
        Expected::At(id) => Some(id),
        Expected::Missing => first_parent(store, new)?,
    };
    let mut at = Some(tip);
    let (mut old_line, mut tip_line) = (HashSet::new(), HashSet::new());
    while let Some(id) = at {
        if id == new {
            return Ok(true);
        }
        tip_line.insert(id);
        if let Some(below) = below_new {
            old_line.insert(below);
            // An ancestor of `new` can't have `new` among its own ancestors.
            if tip_line.contains(&below) {
                return Ok(false);
            }
        }
        if old_line.contains(&id) {
            return Ok(false);
        }
        at = first_parent(store, id)?;
        // The line below `new` only shortens the walk, so where it can't be read it is dropped.
        below_new = below_new.and_then(|below| first_parent(store, below).ok().flatten());
    }
    Ok(false)
}

fn first_parent(store: &dyn Store, id: ObjectId) -> Result<Option<ObjectId>, StoreError> {
    if store.history_ends_at(id)? {
        return Ok(None);
    }
    Ok(store.read_commit(id)?.parents.first().copied())
}

fn refused_before_moving(error: &StoreError) -> bool {
    match error {
        StoreError::LockHeld { .. }
        | StoreError::UnreadableRef { .. }
        | StoreError::SymbolicRef { .. }
        | StoreError::NameConflict { .. }
        | StoreError::RefusedName { .. }
        | StoreError::RefusedCommit { .. }
        | StoreError::Unsupported { .. }
        | StoreError::NotText { .. }
        | StoreError::Untrusted { .. } => true,
        StoreError::Moved { .. }
        | StoreError::Object { .. }
        | StoreError::Io { .. }
        | StoreError::Git { .. }
        | StoreError::TooLong { .. }
        | StoreError::Remote { .. }
        | StoreError::Gix { .. } => false,
    }
}

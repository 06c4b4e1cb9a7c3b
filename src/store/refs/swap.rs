//! Compare-and-swap with a verdict: won, lost or unknown.
//!
//! [`Store::try_swap`] makes one attempt; here its answer is judged. `Ok` is won. After any error the
//! ref is read again, and only what it holds decides: the new commit, or something that has it among
//! its first-parent ancestors, is won; anything else is lost; a ref that can't be read is unknown, to
//! be retried with the same expectation. No error text decides anything. A ref that still holds the
//! expected value was not lost: then the error itself is returned (a held lock, a full disk).
//!
//! Two identical commits would both win, so every commit that swaps carries something unique.
//! Implements K11, K44.

use crate::protocol::id::ObjectId;
use crate::protocol::swap::{Reread, reread};
use crate::store::{Expected, RefChange, RefName, Signature, Store, StoreError, Swap};
use std::collections::HashSet;

/// How often an attempt is made again that saw another value which was gone when it looked again.
const ATTEMPTS: usize = 3;

/// Moves `name` from `expected` to the commit `new`, whose first parent is the expected one.
///
/// # Errors
/// What stopped the swap where the ref still holds the expected value, or was never readable.
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

/// [`compare_and_swap`] together with changes of other refs, by one transaction ([`Store::try_swaps`]). The verdict is
/// judged by `name` alone: where it is won, and this process was stopped between two moves, the others may yet be
/// made; the runner that reads the branch next makes them.
///
/// # Errors
/// Those of [`compare_and_swap`]; [`StoreError::Moved`] with the other's name where one of the others does not hold what
/// was expected. Then nothing moved.
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

/// Creates one of the runner's own refs. One that holds `new` already is fine.
pub fn create_ref(
    store: &dyn Store,
    name: &RefName,
    new: ObjectId,
    by: &Signature,
    log: &str,
) -> Result<Swap, StoreError> {
    settle(store, RefChange::create(own(name)?.clone(), new), &[], by, log)
}

/// Moves one of the runner's own refs, whatever it holds now; creates it where it is missing.
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

/// Deletes one of the runner's own refs if it holds `old`. One that is gone already is fine.
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
        // No branch can have what was never sent, so what stands there now need not be fetched.
        let unsent = new.is_some_and(|new| store.is_unsent(new));
        let tip = match if unsent { store.bare_tip(name) } else { store.tip(name) } {
            Ok(tip) => tip,
            // It became, or always was, another name for a ref: that is an answer, not silence.
            Err(symbolic @ StoreError::SymbolicRef { .. }) => return Err(symbolic),
            // The attempt already refused before anything could move.
            Err(_) if refused_before_moving(&error) => return Err(error),
            Err(unread) => return Ok(Swap::Unknown { cause: unread.to_string() }),
        };
        let beyond = |tip, new| if unsent { Ok(false) } else { is_beyond(store, tip, new, expected) };
        match reread(expected_value, new, tip, beyond) {
            // It moved, and a power cut may take it back: a sync that failed once is not to be believed later.
            Ok(Reread::Won) if error.is_unsynced() => return Err(error),
            Ok(Reread::Won) => return Ok(Swap::Won),
            Ok(Reread::Lost) => return Ok(Swap::Lost { tip }),
            Err(unread) => return Ok(Swap::Unknown { cause: unread.to_string() }),
            Ok(Reread::Untouched) => {}
        }
        if !matches!(&error, StoreError::Moved { name: moved, .. } if moved == name) {
            return Err(error);
        }
        // It held something else for a moment and now holds the expected value again: try again.
        error = match store.try_swaps(&all, by, log) {
            Ok(()) => return Ok(Swap::Won),
            Err(error) => error,
        };
    }
    Ok(Swap::Unknown { cause: error.to_string() })
}

/// True where `new` is among the first-parent ancestors of `tip`.
///
/// Both lines are walked in step, and meeting below `new` ends the walk: a branch that was rewound or
/// put elsewhere costs the distance to the fork, not the whole history.
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
            // What `new` stands on can't have `new` below it.
            if tip_line.contains(&below) {
                return Ok(false);
            }
        }
        if old_line.contains(&id) {
            return Ok(false);
        }
        at = first_parent(store, id)?;
        // The old line only makes the walk shorter: where it can't be read it ends.
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

//! Since when an attempt is kept.
//!
//! A command that commits itself dates its commits as it likes, or as it must: one that brings in old history
//! keeps its dates. An attempt is therefore no older than any commit that it stands on, back to its run's lease,
//! whose date is a runner's. A date that is still to come says nothing. Implements K26 (its end).

use super::slot::LEFT_OUT;
use super::{Runner, Tip};
use crate::protocol::event::Event;
use crate::store::{Commit, RefName, StoreError};
use std::collections::{HashSet, VecDeque};

/// Longest way down to a lease.
const COMMITS: usize = 1000;

impl Runner<'_> {
    /// The moment since when an attempt is kept at least; `None` where nothing says one.
    pub(super) fn kept_since(&self, name: &RefName, attempt: Commit) -> Result<Option<i64>, StoreError> {
        let (now, run_id) = (self.clock.now(), run_of(name));
        let (mut met, mut next) = (HashSet::from([attempt.id]), VecDeque::from([attempt]));
        let mut newest = None;
        while let Some(commit) = next.pop_front() {
            newest = newest.max(commit.committed.filter(|at| *at <= now));
            let (parents, ends) = (commit.parents.clone(), self.store.history_ends_at(commit.id)?);
            if is_lease(&Tip::from(commit), &run_id) {
                break;
            }
            for parent in parents {
                if !ends && met.insert(parent) {
                    next.push_back(self.store.read_commit(parent)?);
                }
            }
            if met.len() > COMMITS {
                return Ok(None);
            }
        }
        Ok(newest)
    }
}

/// The run whose work an attempt is.
pub(super) fn run_of(name: &RefName) -> String {
    let id = name.as_bytes().strip_prefix(b"refs/aynig/attempts/").unwrap_or_default();
    String::from_utf8_lossy(id.strip_suffix(LEFT_OUT.as_bytes()).unwrap_or(id)).into_owned()
}

/// True for the lease that a run began with: a heartbeat says the same, but stands on no trigger.
fn is_lease(tip: &Tip, run_id: &str) -> bool {
    let of_run = |e: &&Event| e.is_working() && e.run_id() == Some(run_id);
    let trigger = tip.event.as_ref().filter(of_run).and_then(Event::trigger);
    trigger.is_some() && trigger == tip.commit.parents.first().copied()
}

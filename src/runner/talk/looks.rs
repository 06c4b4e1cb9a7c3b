//! When an inbox is looked at again: only once something may have changed there.
//!
//! Implements K48 (`--follow`), K49 (`--wait`), without a busy loop.

use super::super::Runner;
use crate::store::RefName;
use crate::store::watch::Watch;
use std::time::Duration;

/// The time between two looks: in this repository, and at a remote.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const REMOTE_LOOK_EVERY: Duration = Duration::from_secs(5);

/// Says when to look again.
pub(crate) struct Looks {
    watch: Option<Watch>,
    first: bool,
}

impl Looks {
    /// Prepares looks at the inbox of a branch. The first look is due at once.
    pub(crate) fn new(runner: &Runner<'_>, branch: &RefName) -> Self {
        let folder = std::str::from_utf8(branch.short()).map(|short| format!("refs/aynig/inbox/{short}"));
        let folder = folder.unwrap_or_else(|_| "refs/aynig/inbox".to_owned());
        let is_local = runner.settings.remote.is_none();
        Self { watch: is_local.then(|| Watch::new(runner.repo, &[&folder])), first: true }
    }

    /// True if a message may have arrived since the last call.
    pub(crate) fn is_due(&mut self) -> bool {
        let first = std::mem::replace(&mut self.first, false);
        self.watch.as_mut().is_none_or(Watch::has_moved) || first
    }

    /// Returns how long to wait between two looks.
    pub(crate) fn every(&self) -> Duration {
        if self.watch.is_none() { REMOTE_LOOK_EVERY } else { LOOK_EVERY }
    }
}

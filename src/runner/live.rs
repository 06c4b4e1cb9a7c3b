//! A run that is under way: its claim, its slot, what it has declared so far. Implements K17, K22.

use super::Runner;
use super::claim::Claimed;
use super::logs::Logs;
use crate::protocol::declaration::Declarations;
use crate::protocol::dialect::Dialect;
use crate::protocol::id::ObjectId;
use crate::store::slots::Slot;
use nix::fcntl::Flock;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A run that is under way.
pub(super) struct Live {
    pub claimed: Claimed,
    pub slot: Slot,
    pub dir: PathBuf,
    pub logs: Logs,
    pub declared: Declarations,
    pub started: Instant,
    /// The command's own state event, once it was seen on the branch (K22).
    pub own_event: Option<ObjectId>,
    /// Somebody still holds its output, now that it has ended.
    pub held_open: bool,
    /// The signal that the runner was asked to stop with.
    pub interrupted: Option<i32>,
    /// The slot's HEAD that was found unfit for the branch, and the lease that it was looked at on (K29).
    pub passed_over: Option<(ObjectId, ObjectId)>,
    _alive: Option<Flock<File>>,
}

impl Live {
    /// A run that begins now; `alive` is the lock that says so.
    pub fn new(claimed: Claimed, slot: Slot, dir: PathBuf, logs: Logs, alive: Option<Flock<File>>) -> Self {
        Self {
            claimed,
            slot,
            dir,
            logs,
            declared: Declarations::default(),
            started: Instant::now(),
            own_event: None,
            held_open: false,
            interrupted: None,
            passed_over: None,
            _alive: alive,
        }
    }

    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.claimed.run.id
    }

    /// When the lease ends, on the clock that counts suspend.
    pub fn lease_ends(&self) -> Duration {
        self.claimed.lease.born + Duration::from_secs(self.claimed.run.lease_seconds)
    }
}

impl Runner<'_> {
    /// How long the lease still counts, grace included.
    pub(super) fn lease_left(&self, live: &Live) -> Duration {
        let grace = match live.claimed.run.dialect {
            Dialect::Dwp => self.settings.grace,
            Dialect::Aynig => self.settings.aynig_grace,
        };
        (live.lease_ends() + Duration::from_secs(grace)).saturating_sub(self.clock.elapsed())
    }
}

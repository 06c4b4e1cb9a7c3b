//! Whether a guardian answers: asked where it has said nothing for a while, and judged by how often we looked.
//!
//! A command may stop its guardian, and nothing would end it then. Time is counted in looks of our own, not by a
//! clock: one that ran on while this process was stopped, or the machine slept, would say that a guardian is late
//! which has just been woken like us. [`Pulse::heard`] after each event, [`Pulse::look`] when it is due.
//! Implements K17, K18.

use super::guardian::kill::is_stopped;
use std::time::{Duration, Instant};

/// Silence after which it is asked.
const QUIET: Duration = Duration::from_secs(1);
/// Between two looks once it was asked.
const LOOK: Duration = Duration::from_millis(250);
/// So many looks in a row that find it stopped.
const STOPPED: u32 = 4;
/// So many looks without an answer, whatever it does: a disk may keep it waiting for long.
const SILENT: u32 = 120;

/// Both limits once the command should be dead.
const STOPPED_LATE: u32 = 2;
const SILENT_LATE: u32 = 8;

/// What is known of a guardian's life.
#[derive(Debug)]
pub(super) struct Pulse {
    asked: bool,
    looks: u32,
    stopped: u32,
    next: Instant,
    /// When the command is to be dead that it was ordered to end.
    over: Option<Instant>,
}

/// What a look says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Nothing new.
    Wait,
    /// It is to be asked.
    Ask,
    /// It does not answer any more.
    Gone,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { asked: false, looks: 0, stopped: 0, next: Instant::now() + QUIET, over: None }
    }

    /// It said something.
    pub(super) fn heard(&mut self) {
        *self = Self { over: self.over, ..Self::new() };
    }

    /// It was ordered to end the command within a time, and asked for an answer at once.
    pub(super) fn ordered(&mut self, within: Duration) {
        let over = Instant::now().checked_add(within);
        self.over = [self.over, over].into_iter().flatten().min();
        self.asked = true;
        self.next = self.next.min(Instant::now() + LOOK);
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Instant {
        self.next
    }

    /// Looks, where that is due; nothing was there to be read from it just now.
    pub(super) fn look(&mut self, guardian: u32) -> Sign {
        let now = Instant::now();
        if now < self.next {
            return Sign::Wait;
        }
        self.next = now + LOOK;
        if !std::mem::replace(&mut self.asked, true) {
            return Sign::Ask;
        }
        self.looks += 1;
        self.stopped = if is_stopped(guardian) { self.stopped + 1 } else { 0 };
        let (stopped, silent) = match self.over.is_some_and(|over| over <= now) {
            true => (STOPPED_LATE, SILENT_LATE),
            false => (STOPPED, SILENT),
        };
        if self.stopped >= stopped || self.looks >= silent { Sign::Gone } else { Sign::Wait }
    }
}

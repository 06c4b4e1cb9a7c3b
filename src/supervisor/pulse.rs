//! Whether a guardian still answers. A guardian that has been silent for a while is asked, and is judged by
//! how many looks it leaves without an answer.
//!
//! A command may stop its guardian, and nothing would end the command then. Time is counted in looks of this
//! process, not by a clock: if this process was stopped, or the machine slept, a clock would say that the
//! guardian is late, although it was woken only now, as this process was. Call [`Pulse::heard`] after each
//! event, and [`Pulse::look`] when it is due. Implements K17, K18.

use super::guardian::kill::is_stopped;
use std::time::{Duration, Instant};

/// The silence after which the guardian is asked to answer.
const QUIET: Duration = Duration::from_secs(1);
/// The time between two looks once the guardian was asked.
const LOOK: Duration = Duration::from_millis(250);
/// The guardian is given up after this many looks in a row that find it stopped.
const STOPPED: u32 = 4;
/// The guardian is given up after this many looks without an answer, whatever its state: a disk may keep it
/// waiting for long.
const SILENT: u32 = 120;

/// Both limits for the time after the moment at which the command should be dead.
const STOPPED_LATE: u32 = 2;
const SILENT_LATE: u32 = 8;

/// What is known of a guardian's life.
#[derive(Debug)]
pub(super) struct Pulse {
    asked: bool,
    looks: u32,
    stopped: u32,
    next: Instant,
    /// When the command should be dead, if the guardian was ordered to end it.
    over: Option<Instant>,
}

/// What follows from a look.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Nothing: go on waiting.
    Wait,
    /// The guardian is to be asked for an answer.
    Ask,
    /// The guardian is given up: it is stopped, or no longer answers.
    Gone,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { asked: false, looks: 0, stopped: 0, next: Instant::now() + QUIET, over: None }
    }

    /// Notes that the guardian sent something.
    pub(super) fn heard(&mut self) {
        *self = Self { over: self.over, ..Self::new() };
    }

    /// Notes that the guardian was ordered to end the command within this time, and asked to answer at once.
    pub(super) fn ordered(&mut self, within: Duration) {
        let over = Instant::now().checked_add(within);
        self.over = [self.over, over].into_iter().flatten().min();
        self.asked = true;
        self.next = self.next.min(Instant::now() + LOOK);
    }

    /// Returns when the next look is due.
    pub(super) fn due(&self) -> Instant {
        self.next
    }

    /// Looks at the guardian if a look is due. To be called when its pipe holds nothing to read.
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

//! What is heard of a remote's branches on the way, for all threads of this process that work on them.
//!
//! A question about one branch costs a remote as much as one about all, so every answer is kept whole: a head that
//! another machine moved since it was read is known without a push that would be lost. Once a race was lost the
//! remote is asked again before a claim, where the last answer is old: [`News::is_due`]. News only ever keep a runner
//! from trying; what a branch holds is decided by the swap. Implements K32 (what was heard).

use crate::protocol::id::ObjectId;
use crate::store::RefName;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An answer is old after this many times as long as it took: asking costs a part of the time at most.
const OLD: u32 = 12;

/// The branches of one remote.
#[derive(Debug, Default)]
pub(crate) struct News {
    heard: Mutex<Heard>,
    /// A round over the branches began.
    begun: AtomicBool,
}

#[derive(Debug, Default)]
struct Heard {
    tips: HashMap<RefName, ObjectId>,
    /// What pushes of ours moved branches to: an answer may be older.
    own: HashMap<RefName, ObjectId>,
    /// When the last answer came, and how long it took.
    last: Option<(Instant, Duration)>,
    /// Another machine was quicker since the last fetch.
    contested: bool,
    /// A thread asks just now.
    asking: bool,
}

impl News {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fetch heard of everything.
    pub(crate) fn forget(&self) {
        *self.heard() = Heard::default();
    }

    /// The remote answered.
    pub(crate) fn hear(&self, tips: HashMap<RefName, ObjectId>, asked: Instant) {
        let mut heard = self.heard();
        heard.tips = tips;
        heard.last = Some((Instant::now(), asked.elapsed()));
        heard.asking = false;
    }

    /// A fetch brought a branch here.
    pub(crate) fn fetched(&self, name: &RefName, tip: ObjectId) {
        self.heard().tips.insert(name.clone(), tip);
    }

    /// A push of ours moved a branch.
    pub(crate) fn moved(&self, name: &RefName, tip: ObjectId) {
        self.heard().own.insert(name.clone(), tip);
    }

    /// A push of ours came second.
    pub(crate) fn lost(&self) {
        self.heard().contested = true;
    }

    /// True where a branch was heard to hold something else than this commit, unless a push of ours put that commit
    /// there: the answer may be older. A branch that was not listed may only have been unreadable.
    pub(crate) fn has_moved(&self, name: &RefName, from: ObjectId) -> bool {
        let heard = self.heard();
        heard.tips.get(name).is_some_and(|tip| *tip != from) && heard.own.get(name) != Some(&from)
    }

    /// True where another machine was quicker since the last fetch.
    pub(crate) fn is_contested(&self) -> bool {
        self.heard().contested
    }

    /// True where the remote is worth asking; then the caller asks, and no other thread does meanwhile.
    pub(crate) fn is_due(&self) -> bool {
        let mut heard = self.heard();
        let due = !heard.asking && heard.last.is_none_or(|(at, took)| at.elapsed() > took * OLD);
        heard.asking |= due;
        due
    }

    /// Begins a round over the branches; true where it is not the first of this process.
    pub(crate) fn begin_round(&self) -> bool {
        self.begun.swap(true, Ordering::Relaxed)
    }

    /// The question that was due got no answer.
    pub(crate) fn unanswered(&self) {
        self.heard().asking = false;
    }
}

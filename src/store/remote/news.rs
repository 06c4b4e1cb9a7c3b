//! What the remote's answers say of its branches, kept for all threads of this process that work on them.
//!
//! A question about one branch costs a remote as much as one about all of them, so every answer is kept as a
//! whole. Then a head that another machine has moved since it was read is known, without a push that would
//! lose the race. Once a race was lost, the remote is asked again before a claim, if its last answer is old:
//! [`News::is_due`]. News can only keep a runner from trying; the swap decides what a branch holds.
//! Implements K32 (what was heard).

use crate::protocol::id::ObjectId;
use crate::store::RefName;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An answer is old after this many times as long as it took to arrive, so that asking takes only a small
/// part of the time.
const OLD: u32 = 12;

/// What is known of the branches of one remote.
#[derive(Debug, Default)]
pub(crate) struct News {
    heard: Mutex<Heard>,
    /// True once a round over the branches has begun.
    begun: AtomicBool,
}

#[derive(Debug, Default)]
struct Heard {
    tips: HashMap<RefName, ObjectId>,
    /// The values that our own pushes moved branches to. An answer may be older than such a push.
    own: HashMap<RefName, ObjectId>,
    /// When the last answer arrived, and how long it took.
    last: Option<(Instant, Duration)>,
    /// True where another machine has won a race since the last fetch.
    contested: bool,
    /// True while a thread asks the remote.
    asking: bool,
}

impl News {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all news: a fetch has brought everything.
    pub(crate) fn forget(&self) {
        *self.heard() = Heard::default();
    }

    /// Notes the remote's answer to a question that was asked at `asked`.
    pub(crate) fn hear(&self, tips: HashMap<RefName, ObjectId>, asked: Instant) {
        let mut heard = self.heard();
        heard.tips = tips;
        heard.last = Some((Instant::now(), asked.elapsed()));
        heard.asking = false;
    }

    /// Notes that a fetch brought a branch here.
    pub(crate) fn fetched(&self, name: &RefName, tip: ObjectId) {
        self.heard().tips.insert(name.clone(), tip);
    }

    /// Notes that a push of ours moved a branch.
    pub(crate) fn moved(&self, name: &RefName, tip: ObjectId) {
        self.heard().own.insert(name.clone(), tip);
    }

    /// Notes that a push of ours lost a race.
    pub(crate) fn lost(&self) {
        self.heard().contested = true;
    }

    /// True where the remote's answer says that a branch holds another commit than `from`. An answer does not
    /// count where a push of ours put `from` there, as it may be older than that push. Nor does a branch that
    /// the answer does not list: the remote may have been unable to read it.
    pub(crate) fn has_moved(&self, name: &RefName, from: ObjectId) -> bool {
        let heard = self.heard();
        heard.tips.get(name).is_some_and(|tip| *tip != from) && heard.own.get(name) != Some(&from)
    }

    /// True where another machine has won a race since the last fetch.
    pub(crate) fn is_contested(&self) -> bool {
        self.heard().contested
    }

    /// True where the remote should be asked; then the caller must ask it, and no other thread does
    /// meanwhile.
    pub(crate) fn is_due(&self) -> bool {
        let mut heard = self.heard();
        let due = !heard.asking && heard.last.is_none_or(|(at, took)| at.elapsed() > took * OLD);
        heard.asking |= due;
        due
    }

    /// Begins a round over the branches; true where this process has begun one before.
    pub(crate) fn begin_round(&self) -> bool {
        self.begun.swap(true, Ordering::Relaxed)
    }

    /// Notes that the question that was due got no answer, so that another thread may ask.
    pub(crate) fn unanswered(&self) {
        self.heard().asking = false;
    }
}

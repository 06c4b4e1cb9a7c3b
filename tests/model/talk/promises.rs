//! What messages, answers, pauses and waits promise, judged with everything in sight.
//!
//! A promise that is broken stays broken: one bit of the state each.

use super::commits;
use super::people::word_to;
use super::tick::state_of;
use super::world::{
    A, A_BESIDE, At, B, Commit, FIRST, For, NONE, Ref, SLOTS, State, WORD, World, branch_of, id_of,
    message_id, question_id, sent_bit,
};
use aynig::protocol::decide::{Decision, asked_by};
use aynig::protocol::dialect::{Dialect, RECOVERY_ID};
use aynig::protocol::heard::heard_of;
use aynig::protocol::inbox::{Letter, MessageId};
use aynig::protocol::waits::{After, not_before};

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    D1,
    D2,
    D3,
    S1,
    S2,
    A1,
    A2,
    P1,
    P2,
    P3,
    R1,
    R2,
    T1,
    T2,
    W,
    I1,
    F1,
    F2,
}

impl Promise {
    /// All of them.
    pub const ALL: [Promise; 18] = [
        Promise::D1,
        Promise::D2,
        Promise::D3,
        Promise::S1,
        Promise::S2,
        Promise::A1,
        Promise::A2,
        Promise::P1,
        Promise::P2,
        Promise::P3,
        Promise::R1,
        Promise::R2,
        Promise::T1,
        Promise::T2,
        Promise::W,
        Promise::I1,
        Promise::F1,
        Promise::F2,
    ];

    /// Its bit.
    pub fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        [
            "D1", "D2", "D3", "S1", "S2", "A1", "A2", "P1", "P2", "P3", "R1", "R2", "T1", "T2", "W", "I1",
            "F1", "F2",
        ][self as usize]
    }

    /// What it says.
    pub fn says(self) -> &'static str {
        match self {
            Promise::D1 => "a message is on its branch at most once",
            Promise::D2 => {
                "a message that was sent waits, or is on its branch; an answer that was given too, while its question \
                 is asked"
            }
            Promise::D3 => {
                "a run hears what its trigger brought, and one that is asked for again hears the same"
            }
            Promise::S1 => {
                "who sends under an id of which another was told that it was sent is told that it was, and sends nothing"
            }
            Promise::S2 => "no message that waits is written over",
            Promise::A1 => "of all that answer a question, one is told that its answer counts",
            Promise::A2 => "only the answer to the question that a head asks is delivered to it",
            Promise::P1 => "no command starts under a lease that was taken after a pause had returned",
            Promise::P2 => "nothing is delivered by an evaluation that began after a pause had returned",
            Promise::P3 => "nothing is delivered after a pause had returned",
            Promise::R1 => "no run that a pause ended is forgotten",
            Promise::R2 => "a resume asks again for nothing but what its pause ended",
            Promise::T1 => "no command starts before its head's hour",
            Promise::T2 => "no command starts while a branch that its head waits for is not there",
            Promise::W => "once every process has gone, and none was killed, nothing waits that could go on",
            Promise::I1 => {
                "no command starts while what was said to another run, so that it ends, waits for it"
            }
            Promise::F1 => "a head that stands on work which was handed over has its files",
            Promise::F2 => {
                "work that was handed over waits, or is in its branch, or is kept with what was heard"
            }
        }
    }
}

/// Whose message a commit is.
fn letter_of(commit: Commit) -> Option<MessageId> {
    let written = commits::read(commit);
    Letter::read(&written.message, &written.ids).ok().map(|letter| letter.id)
}

/// The messages that a commit took in, merged or not.
fn brought(commit: Commit) -> impl Iterator<Item = Commit> {
    commits::read(commit).brought.iter().copied()
}

/// The ids that a commit names as heard.
fn named(commit: Commit) -> Vec<MessageId> {
    let written = commits::read(commit);
    let event = written.event.as_ref();
    let heard = event.map(|event| heard_of(&event.message, event.dialect)).unwrap_or_default();
    heard.iter().map(|heard| heard.id).collect()
}

/// What the run of a trigger is to hear: what a delivery brought, through all that led to the same once more.
fn owed(trigger: Commit) -> Vec<MessageId> {
    let mut at = trigger;
    loop {
        if brought(at).next().is_some() && !named(at).is_empty() {
            return brought(at).filter_map(letter_of).collect();
        }
        let Some(below) = commits::read(at).parents.first().copied() else { return Vec::new() };
        let over = |commit| matches!(state_of(commit), "working" | "stalled" | "canceled");
        if !over(below) && !over(at) {
            return Vec::new();
        }
        at = below;
    }
}

impl World {
    /// Judges a step that process `p` took.
    pub(super) fn judge_step(&self, before: &State, s: &mut State, p: Option<usize>) {
        let mut broken = 0;
        let mut breaks = |promise: Promise, is: bool| broken |= if is { promise.bit() } else { 0 };
        for (head, was) in s.heads.into_iter().zip(before.heads).filter(|(head, was)| head != was) {
            let times = |id: MessageId| {
                commits::line(head).flat_map(brought).filter(|commit| letter_of(*commit) == Some(id)).count()
            };
            breaks(Promise::D1, (0..5).any(|id| times(message_id(id)) > 1));
            breaks(
                Promise::F1,
                [A, B].iter().filter_map(|slot| self.brings(*slot)).any(|work| {
                    commits::has(head, work) && commits::read(head).files & commits::read(work).files == 0
                }),
            );
            let delivered = !named(head).is_empty() && brought(head).next().is_some();
            let asked = commits::read(was).event.as_ref().and_then(asked_by);
            let to_other = |commit| {
                let question = commits::answers(commit);
                question.is_some() && question != asked.map(|asked| asked.to_string().into_bytes())
            };
            breaks(Promise::A2, delivered && brought(head).any(to_other));
            breaks(Promise::P3, delivered && s.stands);
            if let Some(process) = p.map(|p| &before.processes[p]) {
                breaks(Promise::P2, delivered && s.stands && process.began_paused);
                let named = commits::read(was).message.last("dwp-paused-by").is_some();
                breaks(Promise::R2, process.meant == For::AskAgain && !named);
            }
        }
        if let Some(p) = p.filter(|p| before.processes[*p].told && s.processes[*p].at == At::Done) {
            // It made the ref, and is told so.
            breaks(Promise::S1, matches!(before.processes[p].at, At::Moving(_) | At::Reread));
        }
        let over = |slot: &usize| {
            let (was, is) = (before.inbox[*slot], s.inbox[*slot]);
            was != is && was != NONE && is != NONE
        };
        breaks(Promise::S2, (0..SLOTS).any(|slot| over(&slot)));
        breaks(Promise::A1, s.won > 1);
        if let Some(p) =
            p.filter(|p| before.processes[*p].at == At::Looked && s.processes[*p].at == At::Running)
        {
            let process = &s.processes[p];
            let event = commits::read(process.trigger).event.as_ref().unwrap();
            let mut heard = named(process.trigger);
            heard.retain(|id| owed(process.trigger).contains(id));
            breaks(Promise::D3, heard.len() < owed(process.trigger).len());
            breaks(Promise::P1, process.claimed_paused && s.stands);
            let hour = not_before(event).and_then(Result::ok).unwrap_or(0);
            breaks(Promise::T1, hour > i64::from(s.time) * commits::TICK);
            let word = s.get(Ref::Inbox(WORD));
            let said = (word != NONE)
                .then(|| commits::read(word).message.last(RECOVERY_ID.of(Dialect::Dwp)))
                .flatten();
            breaks(Promise::I1, said.is_some_and(|to| to != word_to(process.trigger).as_bytes()));
            breaks(Promise::T2, !After::of(event).is_empty() && !s.other);
        }
        let moving = |at: At| matches!(at, At::First(1..) | At::Moving(1..));
        if !s.processes.iter().any(|process| moving(process.at)) {
            breaks(Promise::D2, [A, B, FIRST, FIRST + 1, A_BESIDE].iter().any(|slot| self.is_lost(s, *slot)));
            breaks(Promise::F2, [A, B].iter().any(|slot| self.is_work_lost(s, *slot)));
        }
        let resting = |at: At| matches!(at, At::Off | At::Done);
        let rests = s.processes.iter().all(|process| resting(process.at));
        if rests {
            let canceled = state_of(s.heads[0]) == "canceled" && s.paused == NONE;
            let by_pause = commits::read(s.heads[0]).message.last("dwp-paused-by").is_some();
            breaks(Promise::R1, canceled && by_pause);
        }
        if rests && self.by_hooks && !s.killed && s.calls == 0 && s.ghost.is_empty() {
            let (decision, _) = self.decision(s, 0, s.heads[0], s.paused != NONE);
            breaks(Promise::W, !matches!(decision, Decision::Nothing(_) | Decision::Leased { .. }));
        }
        s.broken |= broken;
    }

    /// True for a message that was sent, and is nowhere.
    fn is_lost(&self, s: &State, sent: u8) -> bool {
        let head = s.heads[branch_of(sent)];
        let wanted = !matches!(sent, FIRST..=4) || {
            let asked = commits::read(head).event.as_ref().filter(|event| !event.is_working());
            asked.and_then(asked_by) == Some(question_id(sent - FIRST))
        };
        let id = message_id(id_of(sent));
        let there = || commits::line(head).flat_map(brought).any(|commit| letter_of(commit) == Some(id));
        s.sent & sent_bit(sent) != 0 && !self.waits(s, sent) && wanted && !there()
    }

    /// True while a message waits there, or another of its id for the same branch.
    fn waits(&self, s: &State, sent: u8) -> bool {
        let same = (0..SLOTS as u8).filter(|slot| sent_bit(*slot) == sent_bit(sent));
        same.into_iter().any(|slot| s.get(Ref::Inbox(slot)) != NONE)
    }

    /// True for work that was handed over, and that nothing keeps.
    fn is_work_lost(&self, s: &State, sent: u8) -> bool {
        let Some(work) = self.brings(sent).filter(|_| s.sent & sent_bit(sent) != 0) else { return false };
        let kept = s.get(Ref::Heard(id_of(sent)));
        let keeps = kept != NONE && commits::attached(kept) == Some(work);
        !(keeps || self.waits(s, sent) || commits::has(s.heads[0], work))
    }
}

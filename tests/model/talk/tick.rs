//! A tick of the model of messages: read the head, look around, decide, deliver or run, and look once more.
//!
//! What is decided is the shipped functions' answer: `decide`, `standing`, `trigger`, `complete`, and the messages of
//! `transition`. A rule that is left out ignores such an answer. Tries K47, K47a, K49a, K50-K52.

use super::commits::{self, TICK, declared};
use super::world::{
    A, At, B, BRANCHES, Commit, For, Move, NONE, Ref, Rule, SLOTS, State, TWIN, Work, World, branch_of,
    id_of, place,
};
use aynig::protocol::accepts::Accepts;
use aynig::protocol::brought::{Brought, Standing, is_heard_already, standing};
use aynig::protocol::complete::{Completion, Declared, Exit, HeadIs, complete};
use aynig::protocol::decide::{
    Decision, Facts, Head, Paused, Policy, Takeover, Waiting, decide, is_undispatched_delivery, unmet,
};
use aynig::protocol::delivery::{Merge, Taken, trigger};
use aynig::protocol::dialect::{Dialect, RECOVERY_ID};
use aynig::protocol::event::Event;
use aynig::protocol::inbox::{Letter, MessageId, QUESTION};
use aynig::protocol::message::{Message, Trailer};
use aynig::protocol::name::StateName;
use aynig::protocol::pause::{Holder, Pause};
use aynig::protocol::transition::{Run, recovered, retried};
use aynig::protocol::waits::{After, not_before};

/// What waits for a head.
#[derive(Default)]
pub(super) struct Seen {
    waiting: Vec<Waiting>,
    slots: Vec<u8>,
    over: Vec<u8>,
}

impl World {
    /// What is found in the inbox of a head.
    fn look(&self, s: &State, branch: usize, head: Commit, event: &Event) -> Seen {
        let (mut seen, accepts, mut brought) = (Seen::default(), Accepts::of(event), Brought::default());
        let line = if self.keeps(Rule::LineIsRead) { self.line } else { 0 };
        for commit in commits::line(head).take(line).map(commits::read) {
            brought.add(&commit.raw, &commit.ids);
        }
        let mut found: Vec<u8> = (0..SLOTS as u8).filter(|slot| s.get(Ref::Inbox(*slot)) != NONE).collect();
        found.retain(|slot| branch_of(*slot) == branch);
        found.sort_by_key(|slot| (place(*slot).id, Ref::Inbox(*slot).name()));
        for slot in &found {
            let (at, commit) = (place(*slot), commits::id(s.get(Ref::Inbox(*slot))));
            let twin = found.iter().any(|other| other != slot && id_of(*other) == id_of(*slot));
            let own = self.keeps(Rule::OwnQuestion) || !at.kind.is_answer();
            let asked = if own { event.clone() } else { asking_what_waits(s, event, *slot) };
            match standing(&asked, &accepts, &brought, (&at, commit), twin) {
                Standing::Over => seen.over.push(*slot),
                Standing::Twin | Standing::Waits => {}
                Standing::Brings(_) => {
                    let heard = s.get(Ref::Heard(id_of(*slot)));
                    if heard != NONE && self.heard_by_another(branch, heard) {
                        continue;
                    }
                    let heard = (heard != NONE).then(|| commits::id(heard));
                    let over = match self.without {
                        Some(Rule::HeardIsNoProof) => heard.is_some(),
                        Some(Rule::HeardElsewhere) => false,
                        _ => is_heard_already(heard, commit),
                    };
                    if over {
                        seen.over.push(*slot);
                    } else if seen.waiting.last().is_none_or(|last| last.id != at.id) {
                        seen.waiting.push(Waiting { id: at.id, kind: at.kind });
                        seen.slots.push(*slot);
                    }
                }
            }
        }
        seen
    }

    /// What is decided about a head, with all that is around it now but pauses.
    pub(super) fn decision(
        &self,
        s: &State,
        branch: usize,
        head: Commit,
        is_paused: bool,
    ) -> (Decision, Seen) {
        let commit = commits::read(head);
        let event = commit.event.as_ref().unwrap();
        let state = event.state_name().unwrap().as_str();
        let has_command = declared(state, 0).is_some();
        let hears = !event.is_working()
            && !is_undispatched_delivery(event, has_command)
            && !Accepts::of(event).is_empty();
        let mut asked = event.clone();
        let seen = if hears { self.look(s, branch, head, event) } else { Seen::default() };
        if !self.keeps(Rule::OwnQuestion)
            && let Some(slot) = seen.slots.iter().find(|slot| place(**slot).kind.is_answer())
        {
            asked = asking_what_waits(s, event, *slot);
        }
        let paused = Paused {
            id: MessageId::v7(30, 0, [0; 8]),
            holder: Holder::parse("person a"),
            reason: String::new(),
        };
        let after = unmet(After::of(event), |_| s.other).filter(|_| self.keeps(Rule::After));
        let facts = Facts {
            paused: is_paused.then_some(&paused),
            waiting: &seen.waiting,
            after: after.as_ref(),
            ..Facts::default()
        };
        let now = i64::from(s.time) * TICK;
        let until = not_before(event).and_then(Result::ok).filter(|_| !self.keeps(Rule::NotBefore));
        let head = Head { event: Some(&asked), committed: Some(i64::from(commit.time) * TICK) };
        (decide(head, None, now.max(until.unwrap_or(0)), policy(facts, has_command)), seen)
    }

    /// True where another branch has heard a message of the same id: this one's stays where it is.
    fn heard_by_another(&self, branch: usize, heard: Commit) -> bool {
        let other = commits::sent_to(heard).is_some_and(|named| named != BRANCHES[branch]);
        other && self.keeps(Rule::HeardByAnother)
    }

    /// The trigger that takes these messages in, the work of each merged into what was merged before it.
    fn take_in(
        &self,
        event: &Event,
        (head, state): (Commit, &StateName),
        letters: &[Commit],
        time: u8,
    ) -> Commit {
        let (mut files, mut all, mut parents) = (commits::read(head).files, Vec::new(), vec![head]);
        for letter in letters {
            let written = commits::read(*letter);
            let merge = match commits::attached(*letter) {
                None => Merge::Text,
                Some(work) if parents.iter().any(|parent| commits::has(*parent, work)) => Merge::Nothing,
                Some(_) if self.work == Work::Conflicts && files != 0 => {
                    Merge::Conflict(vec!["file".to_owned()])
                }
                Some(work) => {
                    let interim =
                        if self.keeps(Rule::IntoTheInterim) { files } else { commits::read(head).files };
                    files = interim | commits::read(work).files;
                    Merge::Merged
                }
            };
            if !matches!(merge, Merge::Conflict(_)) || !self.keeps(Rule::ConflictIsNoParent) {
                parents.push(*letter);
            }
            let read = Letter::read(&written.message, &written.ids).unwrap();
            all.push(Taken { letter: read, commit: commits::id(*letter), merge });
        }
        let mut message = trigger(event, state, &all);
        if !self.keeps(Rule::ConflictIsNamed) {
            let conflicts = all.iter().filter(|taken| matches!(taken.merge, Merge::Conflict(_)));
            let ids: Vec<String> = conflicts.map(|taken| taken.letter.id.to_string()).collect();
            message.trailers.retain(|trailer| {
                trailer.key != "dwp-heard" || !ids.iter().any(|id| trailer.value.starts_with(id.as_bytes()))
            });
        }
        commits::bring(&message, &parents, time, files, letters)
    }

    /// One evaluation, from what it found to what it is about to do.
    pub(super) fn judge(&self, s: &mut State, p: usize) {
        let (head, paused) = (s.processes[p].head, s.processes[p].paused);
        let of = Ref::Head(self.branch(p) as u8);
        let (decision, seen) = self.decision(s, self.branch(p), head, paused);
        let mut process = s.processes[p].clone();
        if !seen.over.is_empty() {
            process.meant = For::Judging;
            process.moves = s.hearing(&seen.over);
            process.at = At::Moving(0);
            s.processes[p] = process;
            return;
        }
        match decision {
            Decision::Nothing(_) | Decision::Leased { .. } => process.stop(At::Off),
            Decision::Deliver { state, take } => {
                let event = commits::read(head).event.as_ref().unwrap();
                let mut slots = seen.slots;
                slots.retain(|slot| take.contains(&place(*slot).id));
                // One that was taken away since then is found by the swap.
                let letters: Vec<Commit> = slots.iter().map(|slot| s.get(Ref::Inbox(*slot))).collect();
                let to = self.take_in(event, (head, &state), &letters, s.time);
                let mut moves = vec![Move { of, from: head, to }];
                moves.extend(s.hearing(&slots));
                self.plan(&mut process, For::Judging, moves);
            }
            Decision::Expired { .. } => {
                let lease = commits::read(head).event.as_ref().unwrap();
                let message = recovered(lease, &format!("x{p}-{head}"), "");
                let to = commits::write(&message, &[head], s.time);
                self.plan(&mut process, For::Judging, vec![Move { of, from: head, to }]);
            }
            Decision::Dispatch { .. } => {
                let message = run(head, s.runs).lease(&commits::read(head).message);
                let to = commits::write(&message, &[head], s.time);
                (process.trigger, process.run) = (head, s.runs);
                s.runs += 1;
                self.plan(&mut process, For::Claim, vec![Move { of, from: head, to }]);
            }
        }
        s.processes[p] = process;
    }

    /// A pause that was made between the claim and the start: the trigger is written once more.
    pub(super) fn look_again(&self, s: &mut State, p: usize) {
        let mut process = s.processes[p].clone();
        if s.paused == NONE || !self.keeps(Rule::LooksAgain) || !holds(s.paused) {
            s.processes[p].at = At::Looked;
            return;
        }
        let mut message = self.again(process.trigger);
        message.trailers.push(Dialect::Dwp.trailer(RECOVERY_ID, format!("p{p}-{}", process.lease)));
        let to = commits::write(&message, &[process.lease], s.time);
        let moves = vec![Move { of: Ref::Head(self.branch(p) as u8), from: process.lease, to }];
        self.plan(&mut process, For::End, moves);
        s.processes[p] = process;
    }

    /// A trigger's event once more.
    pub(super) fn again(&self, trigger: Commit) -> Message {
        let event = commits::read(trigger).event.as_ref().unwrap();
        let mut message = retried(event.state_name().unwrap(), event, None);
        if !self.keeps(Rule::HeardAgain) {
            message.trailers.retain(|trailer| trailer.key != "dwp-heard");
        }
        message
    }

    /// The command goes on: it asks, or ends well.
    pub(super) fn command(&self, s: &mut State, p: usize) {
        let mut process = s.processes[p].clone();
        let asks = state_of(process.trigger) == "ask" && process.asked == 0;
        if asks && usize::from(s.questions) < s.asked.len() {
            let n = s.questions;
            let to = commits::question(n, &run(process.trigger, process.run).id, process.lease);
            s.questions += 1;
            process.asked = n + 1;
            self.plan(&mut process, For::Ask, vec![Move { of: Ref::Asked(n), from: NONE, to }]);
        } else {
            process.at = At::Ended { ok: true };
        }
        s.processes[p] = process;
    }

    /// The command marks a message as heard.
    pub(super) fn mark(&self, s: &mut State, p: usize) -> Option<()> {
        let slot = [A, B, TWIN].into_iter().find(|slot| s.get(Ref::Inbox(*slot)) != NONE)?;
        let mut process = s.processes[p].clone();
        (process.at == At::Running && process.mark == 0).then_some(())?;
        s.left.take = s.left.take.checked_sub(1)?;
        process.mark = slot + 1;
        if !self.keeps(Rule::TakenWithTheOutcome) {
            process.moves = s.hearing(&[slot]);
            (process.meant, process.at) = (For::Mark, At::Moving(0));
        }
        s.processes[p] = process;
        Some(())
    }

    /// The run ends: `complete`, and what it asks for.
    pub(super) fn complete(&self, s: &mut State, p: usize, ok: bool) {
        let mut process = s.processes[p].clone();
        let lease = process.lease;
        let head =
            if s.heads[self.branch(p)] == lease { HeadIs::Lease(commits::id(lease)) } else { HeadIs::Other };
        let exit = Exit::Code(i32::from(!ok));
        let said = declared(state_of(process.trigger), process.asked.saturating_sub(1)).unwrap();
        let run = run(process.trigger, process.run);
        let message = &commits::read(lease).message;
        let mut slots: Vec<u8> = Vec::new();
        let written = match complete(Dialect::Dwp, &exit, Declared::State(said), head) {
            Completion::Outcome(next) => {
                let waits = |slot: &u8| {
                    let letter = s.get(Ref::Inbox(*slot));
                    letter != NONE && (!self.keeps(Rule::WorkIsIn) || is_in(letter, lease))
                };
                slots.extend(process.mark.checked_sub(1).filter(waits));
                run.outcome(&next, message)
            }
            Completion::Stalled(why) => run.stalled(&why, "", message),
            Completion::Fenced => {
                process.stop(At::Pauses);
                self.begin_evaluation(s, p, &mut process);
                s.processes[p] = process;
                return;
            }
            Completion::KeepLease | Completion::AlreadyWritten(_) | Completion::LeaveLease => unreachable!(),
        };
        let letters: Vec<Commit> = slots.iter().map(|slot| s.get(Ref::Inbox(*slot))).collect();
        let parents: Vec<Commit> = std::iter::once(lease).chain(letters.iter().copied()).collect();
        let to = commits::bring(&written, &parents, s.time, commits::read(lease).files, &letters);
        let mut moves = vec![Move { of: Ref::Head(self.branch(p) as u8), from: lease, to }];
        moves.extend(s.hearing(&slots));
        self.plan(&mut process, For::End, moves);
        s.processes[p] = process;
    }

    /// Reads the head.
    pub(super) fn begin_evaluation(&self, s: &State, p: usize, process: &mut super::world::Process) {
        process.stop(At::Pauses);
        process.head = s.heads[self.branch(p)];
        process.began_paused = s.stands;
    }

    /// A person asks again for what failed.
    pub(super) fn retry(&self, s: &mut State) -> Option<()> {
        let event = commits::read(s.heads[0]).event.as_ref()?;
        (event.state_name()?.as_str() == "stalled").then_some(())?;
        let to = commits::write(&self.again(commits::number(event.trigger()?)), &[s.heads[0]], s.time);
        s.set(Move { of: Ref::Head(0), from: s.heads[0], to });
        s.calls += 1;
        Some(())
    }
}

fn policy(facts: Facts<'_>, has_command: bool) -> Policy<'_> {
    let (takeover, runner_id) = (Takeover::Date, "host-1");
    Policy { grace: 0, aynig_grace: 0, takeover, runner_id, max_hops: 20, has_command, facts }
}

/// This head, as though it asked what is answered there.
fn asking_what_waits(s: &State, event: &Event, slot: u8) -> Event {
    let mut event = event.clone();
    if let Some(question) = commits::answers(s.get(Ref::Inbox(slot))) {
        event.message.trailers.push(Trailer::new(QUESTION, question));
    }
    event
}

/// True for a message that brings no work, or work that this commit has.
fn is_in(letter: Commit, at: Commit) -> bool {
    commits::attached(letter).is_none_or(|work| commits::has(at, work))
}

fn holds(pause: Commit) -> bool {
    Pause::read(&commits::read(pause).message).holds(|_| false)
}

/// The state of a commit's event.
pub(super) fn state_of(commit: Commit) -> &'static str {
    let event = commits::read(commit).event.as_ref();
    event.and_then(Event::state_name).map_or("", |state| state.as_str())
}

pub(super) fn run(trigger: Commit, number: u8) -> Run {
    let event = commits::read(trigger).event.as_ref().unwrap();
    Run {
        id: format!("run-{number}"),
        dialect: Dialect::Dwp,
        runner_id: "host-1".to_owned(),
        state: event.state_name().unwrap().clone(),
        trigger: commits::id(trigger),
        hop: event.hop().saturating_add(1),
        lease_seconds: 1,
        remote: None,
    }
}

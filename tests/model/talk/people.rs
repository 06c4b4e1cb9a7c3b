//! Who speaks, answers, pauses and lets go in the model of messages; and what follows from a move that was made.
//!
//! Who was killed begins again, and may have been heard. Tries K46, K46a, K49a, K50.

use super::commits;
use super::world::{
    A, At, B, Commit, FIRST, For, IDS, Move, NONE, OTHER, Process, Ref, Role, Rule, State, WORD, Work, World,
    id_of, place, question_id, sent_bit,
};
use aynig::protocol::id::ObjectId;
use aynig::protocol::inbox::MessageId;
use aynig::protocol::message::Trailer;
use aynig::protocol::pause::ended_for;
use aynig::protocol::question::{Asker, Offered, Question};
use aynig::protocol::transition::canceled;

/// The trailer by which a pause names what it ended.
const STOPPED: &str = "dwp-stopped";

impl World {
    /// A process begins.
    pub(super) fn begin_role(&self, s: &mut State, p: usize) -> Option<()> {
        let mut process = s.processes[p].clone();
        (process.at == At::Off).then_some(())?;
        match self.roles[p] {
            Role::Ticker | Role::Beside => {
                if self.by_hooks {
                    s.calls = s.calls.checked_sub(1)?;
                }
                self.begin_evaluation(s, p, &mut process);
            }
            Role::Collector => self.collect(s, &mut process)?,
            // A sender that was cut off sends again under the same id, and asks first.
            Role::Sender(slot) => {
                let inbox_first = self.keeps(Rule::InboxBeforeHeard);
                process.at = if inbox_first { At::AsksInbox } else { At::AsksHeard };
                process.told = s.told & sent_bit(slot) != 0;
            }
            Role::Answerer => {
                (s.get(Ref::Asked(0)) != NONE).then_some(())?;
                process.at = At::Question;
            }
            Role::Pauser { .. } => {
                (process.tries == 0).then_some(())?;
                let to = commits::pause(&format!("p{p}"));
                self.plan(&mut process, For::Pause, vec![Move { of: Ref::Paused, from: NONE, to }]);
            }
            Role::Resumer => {
                let over = |other: &Process| matches!(other.at, At::Done) || other.tries > 0;
                let pausers = self.roles.iter().zip(&s.processes);
                let mut pausers = pausers.filter(|(role, _)| matches!(role, Role::Pauser { .. }));
                (s.paused != NONE && pausers.all(|(_, other)| over(other) && other.at != At::Moving(0)))
                    .then_some(())?;
                process.head = s.paused;
                process.at = if self.keeps(Rule::AskedBeforeItLetsGo) { At::Again } else { At::LettingGo };
            }
        }
        s.processes[p] = process;
        Some(())
    }

    /// What was heard long ago goes, unless it is all that keeps work which no branch has.
    fn collect(&self, s: &State, process: &mut Process) -> Option<()> {
        let keeps = |letter: Commit| {
            let has = |work| s.heads.iter().any(|head| commits::has(*head, work));
            self.keeps(Rule::KeptWhileNotIn) && !commits::attached(letter).is_none_or(has)
        };
        let heard = (0..IDS as u8).map(|id| (Ref::Heard(id), s.get(Ref::Heard(id))));
        let old = heard.filter(|(_, letter)| *letter != NONE && !keeps(*letter));
        let moves: Vec<Move> = old.map(|(of, from)| Move { of, from, to: NONE }).take(1).collect();
        (!moves.is_empty()).then_some(())?;
        self.plan(process, For::Collect, moves);
        Some(())
    }

    /// The work that is sent with what waits there.
    pub(super) fn brings(&self, slot: u8) -> Option<Commit> {
        let is_sent = matches!(slot, A | B) && self.work != Work::Nothing;
        is_sent.then(|| commits::work(1 + id_of(slot)))
    }

    /// A sender's next read, or what it makes.
    pub(super) fn speak(&self, s: &mut State, p: usize, slot: u8) {
        let mut process = s.processes[p].clone();
        let waits = (0..s.inbox.len() as u8)
            .any(|other| sent_bit(other) == sent_bit(slot) && s.get(Ref::Inbox(other)) != NONE);
        let heard = s.get(Ref::Heard(id_of(slot))) != NONE;
        let inbox_first = self.keeps(Rule::InboxBeforeHeard);
        match process.at {
            At::AsksInbox if waits => process.stop(At::Done),
            At::AsksHeard if heard => process.stop(At::Done),
            At::AsksInbox if inbox_first => process.at = At::AsksHeard,
            At::AsksHeard if !inbox_first => process.at = At::AsksInbox,
            _ => {
                let place = place(slot);
                let work = self.brings(slot);
                let to = commits::letter(&place, work, &format!("{p}-{}", process.tries));
                self.plan(&mut process, For::Send, vec![Move { of: Ref::Inbox(slot), from: NONE, to }]);
            }
        }
        s.processes[p] = process;
    }

    /// One who answers looks at the question, at what was answered, and at who waits; then makes the answer.
    pub(super) fn answer(&self, s: &mut State, p: usize) {
        let mut process = s.processes[p].clone();
        let asked = s.get(Ref::Asked(0));
        let slot = if self.keeps(Rule::OneAnswer) || p.is_multiple_of(2) { FIRST } else { OTHER };
        let answered = s.get(Ref::Inbox(slot)) != NONE || s.get(Ref::Heard(id_of(slot))) != NONE;
        let question = (asked != NONE)
            .then(|| Question::read(question_id(0), &commits::read(asked).message).unwrap())
            .filter(|question| !answered && question.offers("yes") == Offered::Yes);
        let head = commits::read(s.heads[0]).event.as_ref().unwrap();
        let Some(question) = question.filter(|question| question.asker(head) != Asker::Nobody) else {
            process.stop(At::Done);
            s.processes[p] = process;
            return;
        };
        let mut letter = question.answer("yes".into(), String::new(), format!("ada {p}"), 0);
        letter.id = place(slot).id;
        let to = commits::write(&letter.message().unwrap(), &[], process.tries);
        let mut moves = vec![Move { of: Ref::Inbox(slot), from: NONE, to }];
        if self.keeps(Rule::OneAnswer) {
            moves.push(Move { of: Ref::Asked(0), from: asked, to: NONE });
        }
        self.plan(&mut process, For::Answer, moves);
        s.processes[p] = process;
    }

    /// `--stop`: what runs is named in the pause, then canceled.
    pub(super) fn stop_runs(&self, s: &mut State, p: usize) {
        let mut process = s.processes[p].clone();
        let event = commits::read(s.heads[0]).event.as_ref().unwrap();
        let trigger = event.trigger().filter(|_| event.is_working());
        match (process.at, trigger) {
            (At::Runs, Some(trigger)) => {
                process.trigger = commits::number(trigger);
                if self.keeps(Rule::NotedFirst) {
                    self.note(s, &mut process);
                } else {
                    process.at = At::Saying;
                }
            }
            (At::Saying, _) => {
                // One word to one run: to whom is what it says.
                let to = commits::letter(&place(WORD), None, &word_to(process.trigger));
                self.plan(&mut process, For::Say, vec![Move { of: Ref::Inbox(WORD), from: NONE, to }]);
            }
            (At::Unsaying, _) if s.get(Ref::Inbox(WORD)) != NONE => self.unsay(s, &mut process, For::Unsay),
            (At::Canceling, Some(trigger)) if commits::number(trigger) == process.trigger => {
                let paused_by = pause_id();
                let message = canceled(event, &format!("c{p}-{}", s.heads[0]), "", Some(paused_by));
                let to = commits::write(&message, &[s.heads[0]], s.time);
                self.plan(&mut process, For::Cancel, vec![Move { of: Ref::Head(0), from: s.heads[0], to }]);
            }
            // It has ended by itself.
            (At::Canceling, _) => process.at = At::Unsaying,
            _ => process.stop(At::Done),
        }
        s.processes[p] = process;
    }

    /// What was said to a run is taken away.
    fn unsay(&self, s: &State, process: &mut Process, meant: For) {
        let from = s.get(Ref::Inbox(WORD));
        self.plan(process, meant, vec![Move { of: Ref::Inbox(WORD), from, to: NONE }]);
    }

    fn note(&self, s: &State, process: &mut Process) {
        let pause = commits::read(s.paused);
        let mut message = pause.message.clone();
        let line = format!("{} refs/heads/work", commits::id(process.trigger));
        message.trailers.push(Trailer::new(STOPPED, line));
        let to = commits::write(&message, &[s.paused], 0);
        self.plan(process, For::Note, vec![Move { of: Ref::Paused, from: s.paused, to }]);
    }

    /// `resume`: what was ended is asked for again.
    pub(super) fn ask_again(&self, s: &mut State, p: usize) {
        let mut process = s.processes[p].clone();
        let stopped = commits::read(process.head).message.last(STOPPED);
        if stopped.is_some() && s.get(Ref::Inbox(WORD)) != NONE && self.keeps(Rule::SaidGoesFirst) {
            self.unsay(s, &mut process, For::Clear);
            s.processes[p] = process;
            return;
        }
        let event = commits::read(s.heads[0]).event.as_ref().unwrap();
        let trigger = stopped.and_then(|line| ObjectId::from_hex(&line[..40]).ok()).filter(|trigger| {
            let ended = ended_for(event, *trigger, pause_id()) || !self.keeps(Rule::OnlyWhatItEnded);
            ended && commits::line(s.heads[0]).any(|commit| commits::id(commit) == *trigger)
        });
        if let Some(trigger) = trigger {
            let to = commits::write(&self.again(commits::number(trigger)), &[s.heads[0]], s.time);
            self.plan(&mut process, For::AskAgain, vec![Move { of: Ref::Head(0), from: s.heads[0], to }]);
            s.processes[p] = process;
        } else {
            s.processes[p] = process;
            self.then(s, p, At::Again);
        }
    }

    /// `resume`: the pause goes.
    pub(super) fn let_go(&self, s: &mut State, p: usize) {
        let mut process = s.processes[p].clone();
        let from = process.head;
        self.plan(&mut process, For::LetGo, vec![Move { of: Ref::Paused, from, to: NONE }]);
        s.processes[p] = process;
    }

    /// What `resume` does after this.
    fn then(&self, s: &mut State, p: usize, done: At) {
        let next = match (done, self.keeps(Rule::AskedBeforeItLetsGo)) {
            (At::Again, true) => At::LettingGo,
            (At::LettingGo, false) => At::Again,
            _ => At::Done,
        };
        if next == At::Done {
            s.processes[p].stop(At::Done);
            self.call(s, Rule::ResumeStarts);
        }
        s.processes[p].at = next;
    }

    pub(super) fn call(&self, s: &mut State, rule: Rule) {
        s.calls += u8::from(self.keeps(rule) && s.calls < 3);
    }

    /// What follows where all moves of a process were made.
    pub(super) fn won(&self, s: &mut State, p: usize) {
        let mut process = s.processes[p].clone();
        match process.meant {
            For::Judging => self.begin_evaluation(s, p, &mut process),
            For::End if self.keeps(Rule::LastLook) => self.begin_evaluation(s, p, &mut process),
            For::End => process.stop(At::Off),
            For::Claim => {
                (process.lease, process.at) = (process.moves[0].to, At::Claimed);
                process.claimed_paused = s.stands;
            }
            For::Ask | For::Mark => process.at = At::Running,
            For::Send | For::Answer => {
                if let (For::Send, Ref::Inbox(slot)) = (process.meant, process.moves[0].of) {
                    s.told |= sent_bit(slot);
                } else {
                    s.won += 1;
                }
                process.stop(At::Done);
                self.call(s, Rule::SenderStarts);
            }
            For::Pause => {
                s.stands = true;
                let stops = self.roles[p] == Role::Pauser { stop: true };
                process.at = if stops { At::Runs } else { At::Done };
            }
            For::Note if self.keeps(Rule::NotedFirst) => process.at = At::Saying,
            For::Say => process.at = At::Canceling,
            For::Cancel if !self.keeps(Rule::NotedFirst) => self.note(s, &mut process),
            For::Note | For::Cancel => process.at = At::Unsaying,
            For::Unsay | For::Collect => process.stop(At::Done),
            For::Clear => process.at = At::Again,
            For::AskAgain => return self.then(s, p, At::Again),
            For::LetGo => return self.then(s, p, At::LettingGo),
        }
        s.processes[p] = process;
    }

    /// What follows where a ref was found to hold something else.
    pub(super) fn lost(&self, s: &mut State, p: usize) {
        let mut process = s.processes[p].clone();
        match process.meant {
            // Another process took one of the messages away: the run is completed without it.
            For::End if s.heads[self.branch(p)] == process.lease => process.at = At::Ended { ok: true },
            For::Judging | For::End => self.begin_evaluation(s, p, &mut process),
            For::Ask | For::Mark => process.at = At::Running,
            For::Claim | For::AskAgain | For::LetGo => process.stop(At::Off),
            For::Send => process.at = At::AsksInbox,
            For::Answer | For::Pause | For::Note | For::Unsay | For::Collect => process.stop(At::Done),
            For::Cancel | For::Say => process.at = At::Canceling,
            For::Clear => process.at = At::Again,
        }
        s.processes[p] = process;
    }
}

/// What a word says to whom it is said: the run of this trigger.
pub(super) fn word_to(trigger: Commit) -> String {
    format!("stop {trigger}")
}

fn pause_id() -> MessageId {
    MessageId::v7(30, 0, [0; 8])
}

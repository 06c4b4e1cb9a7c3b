//! A node's branch as facts: what its commits say, with each turn's event lines between its lease and its
//! outcome.
//!
//! Commits are read along first parents, from the head down to what was taken before, and become facts from
//! the oldest on. Renewals, and leases of `route`, say nothing. If what was taken before is not below the
//! head any more, the branch was rewound: the caller learns that, and projects everything anew. Implements N3
//! (what a head says), N13 (steps).

use super::lines;
use super::position::{Branch, Turn};
use super::{Project, ProjectError};
use crate::contract::event::{Body, StallEvidence};
use crate::contract::flow::{Flow, NodeFile};
use crate::contract::id::{NodeId, TurnId};
use crate::contract::node::Usage;
use crate::contract::projection::{Ended, Fact, Heard, Rest, Step, Turned};
use crate::contract::shown;
use crate::contract::time::Time;
use crate::contract::words::Provider;
use crate::flow::letter;
use crate::flow::outcome::{BLOCKED, Outcome};
use crate::flow::route::done::Done;
use crate::flow::senders::Senders;
use crate::protocol::dialect::Dialect;
use crate::protocol::event::Event;
use crate::protocol::flow::{IDLE, ROUTE, TURN};
use crate::protocol::heard::heard_of;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::Letter;
use crate::protocol::message::Message;
use crate::protocol::name::STALLED;
use crate::store::{Commit, RefName};

/// The number of the first line about what `route` did. Lower numbers are those of the event lines of its
/// run.
const DONE: u64 = 1 << 63;

/// What a branch says that was not taken before.
pub(super) struct Read {
    /// The facts, oldest first.
    pub facts: Vec<Fact>,
    /// How far the branch is taken with these facts; `None` where it was rewound.
    pub position: Option<Branch>,
}

/// A branch while it is read.
struct Reading<'a, 'p> {
    project: &'a Project<'p>,
    flow: &'a Flow,
    senders: &'a Senders<'a>,
    id: NodeId,
    node: &'a NodeFile,
    turn: Option<Turn>,
    facts: Vec<Fact>,
}

impl Project<'_> {
    /// Reads what a node's branch says that was not taken before; `from` is how far it was taken.
    pub(super) fn branch(
        &self,
        (flow, senders): (&Flow, &Senders<'_>),
        id: NodeId,
        node: &NodeFile,
        from: &Branch,
    ) -> Result<Read, ProjectError> {
        let name = RefName::branch(&node.branch);
        let Some(tip) = self.runner.store.known_tip(&name)? else {
            // The branch is not made yet, or gone with its node.
            return Ok(Read { facts: Vec::new(), position: Some(from.clone()) });
        };
        let mut reading =
            Reading { project: self, flow, senders, id, node, turn: from.turn.clone(), facts: Vec::new() };
        if from.tip.as_deref() != Some(&*tip.to_string()) {
            let Some(commits) = self.new_commits(tip, from.tip.as_deref(), &flow.run.base)? else {
                return Ok(Read { facts: Vec::new(), position: None });
            };
            for commit in commits.iter().rev() {
                reading.commit(commit)?;
            }
        }
        reading.live()?;
        let Reading { turn, facts, .. } = reading;
        Ok(Read { facts, position: Some(Branch { tip: Some(tip.to_string()), turn }) })
    }

    /// Returns the commits above `known`, newest first; without `known`, all commits above the base. `None`
    /// where `known` is not below the tip.
    pub(super) fn new_commits(
        &self,
        tip: ObjectId,
        known: Option<&str>,
        base: &str,
    ) -> Result<Option<Vec<Commit>>, ProjectError> {
        let store = &*self.runner.store;
        let (mut commits, mut next) = (Vec::new(), Some(tip));
        while let Some(id) = next {
            let text = id.to_string();
            if known == Some(&*text) {
                return Ok(Some(commits));
            }
            if text == base {
                break;
            }
            let commit = store.read_commit(id)?;
            next = match store.history_ends_at(id)? {
                true => None,
                false => commit.parents.first().copied(),
            };
            commits.push(commit);
        }
        Ok(known.is_none().then_some(commits))
    }
}

impl Reading<'_, '_> {
    fn step(&mut self, commit: &Commit, step: Step) {
        let at = Time::from_seconds(commit.committed.unwrap_or(0));
        self.facts.push(Fact::Step { node: self.id, at, commit: commit.id, step });
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), ProjectError> {
        let Some(event) = Event::in_message(&commit.message) else { return Ok(()) };
        let origin = event.origin_state();
        let origin = origin.as_ref().map(|state| state.as_str());
        if event.is_working() {
            // A lease stands on its trigger; a renewal stands on a lease, and its trigger is further below.
            let begins = event.trigger().is_some() && event.trigger() == commit.parents.first().copied();
            if let (true, Some(TURN), Some(run), Some(trigger)) =
                (begins, origin, event.run_id(), event.trigger())
                && let Ok(turn) = TurnId::parse(run)
            {
                let at = Time::from_seconds(commit.committed.unwrap_or(0));
                self.turn = Some(Turn::new(turn, trigger, at));
                self.step(commit, Step::Leased);
            }
            return Ok(());
        }
        let state = event.state_name().map_or("", |state| state.as_str());
        if let Some(outcome) = Outcome::read(commit, &event) {
            return self.turned(commit, &outcome);
        }
        // A turn that is still open at this commit is over, whatever commit replaced its lease. The reason is
        // the turn's own where its lines give one.
        let over = self.ended()?;
        let line = || shown::line(&event.message.subject);
        if over.as_ref().is_some_and(|turn| turn.why.is_none()) {
            let ended = if state == STALLED { Ended::Failed } else { Ended::Interrupted };
            self.step(commit, Step::Cut(ended, line()));
        }
        if state == STALLED {
            let why = over.and_then(|turn| turn.why).unwrap_or_else(line);
            self.step(commit, Step::Rests(Rest::Failed(why)));
            return Ok(());
        }
        let delivered = self.delivered(&event);
        if !delivered.is_empty() {
            self.step(commit, Step::Delivered(delivered));
        }
        if origin == Some(ROUTE) && event.run_id().is_some() {
            self.routed(commit, &event);
        }
        self.rests(commit, &event, state);
        Ok(())
    }

    /// Adds how the node rests on this head, if it does.
    fn rests(&mut self, commit: &Commit, event: &Event, state: &str) {
        let why = || shown::line(&event.message.subject);
        let stalled = matches!(self.facts.last(), Some(Fact::Stalled { commit: of, .. }) if *of == commit.id);
        match state {
            IDLE => self.step(commit, Step::Rests(Rest::Idle)),
            // The stall already says why the node rests.
            BLOCKED if stalled => {}
            BLOCKED => self.step(commit, Step::Rests(Rest::Blocked(why()))),
            "failed" => self.step(commit, Step::Rests(Rest::Failed(why()))),
            "canceled" => self.step(commit, Step::Rests(Rest::Idle)),
            _ => {}
        }
    }

    /// Returns the messages that a head takes in, as far as this repository has them.
    fn delivered(&self, event: &Event) -> Vec<Heard> {
        let taken = heard_of(&event.message, Dialect::Dwp);
        let read = |id: ObjectId| {
            let commit = self.project.runner.store.read_commit(id).ok()?;
            let letter = Letter::read(&Message::parse(&commit.message), &commit.parents).ok()?;
            letter::heard(&letter, self.id, self.senders)
        };
        taken.iter().filter_map(|heard| read(heard.commit)).collect()
    }

    /// Adds what `route` did, as its outcome says.
    fn routed(&mut self, commit: &Commit, event: &Event) {
        let at = Time::from_seconds(commit.committed.unwrap_or(0));
        let Some(turn) = event.run_id().and_then(|run| TurnId::parse(run).ok()) else { return };
        let mut number = DONE;
        for done in Done::read(&event.message.body) {
            match done {
                Done::Call { id: tool_id, result, error, .. } => {
                    let body = Body::ToolCompleted { node_id: self.id, tool_id, result, error };
                    self.facts.push(Fact::Line { node: self.id, at, turn, number, body: Box::new(body) });
                    number += 1;
                }
                Done::Stalled(evidence) => self.stalled(commit, at, evidence),
                // The head's own state and subject say why the node rests.
                Done::Hops(_) => {}
            }
        }
    }

    fn stalled(&mut self, commit: &Commit, at: Time, evidence: StallEvidence) {
        self.facts.push(Fact::Stalled { commit: commit.id, at, node: self.id, evidence });
    }

    fn turned(&mut self, commit: &Commit, outcome: &Outcome) -> Result<(), ProjectError> {
        if self.turn.as_ref().is_none_or(|turn| turn.id != outcome.turn) {
            let trigger = outcome.trigger.unwrap_or(commit.id);
            self.turn = Some(Turn::new(outcome.turn, trigger, outcome.at));
        }
        let told = self.ended()?.is_some_and(|turn| turn.told);
        let used = crate::protocol::usage::total(&outcome.usage);
        let model = match outcome.usage.as_slice() {
            [one] => one.model.clone(),
            _ => None,
        };
        let provider = outcome.usage.iter().find_map(|one| one.provider.as_ref()?.parse::<Provider>().ok());
        let turned = Turned {
            turn: outcome.turn,
            ended: outcome.ended,
            summary: outcome.summary.clone(),
            text: outcome.text.clone(),
            told,
            session: outcome.session.clone(),
            provider: provider.unwrap_or(self.node.config.provider),
            model: model.unwrap_or_default(),
            usage: Usage::of(used.input, used.output),
            artifacts: self.project.artifacts_of(self.flow, self.id, outcome)?,
        };
        self.step(commit, Step::Turned(Box::new(turned)));
        Ok(())
    }

    /// Adds the lines that the turn under way has written since they were last read.
    fn live(&mut self) -> Result<(), ProjectError> {
        if let Some(mut turn) = self.turn.take() {
            if let Some(text) = self.project.live_lines(&turn, turn.read)? {
                let lines = lines::read(&text, self.id, &mut turn, 0);
                turn.read += lines.read;
                self.facts.extend(lines.facts);
            }
            self.turn = Some(turn);
        }
        Ok(())
    }

    /// Adds the remaining lines of a turn that is over, and returns that turn.
    fn ended(&mut self) -> Result<Option<Turn>, ProjectError> {
        let Some(mut turn) = self.turn.take() else { return Ok(None) };
        if let Some(text) = self.project.live_lines(&turn, turn.read)? {
            let mut copy = turn.clone();
            let lines = lines::read(&text, self.id, &mut copy, 0);
            if !lines.cut {
                self.facts.extend(lines.facts);
                return Ok(Some(copy));
            }
        }
        if let Some(text) = self.project.kept_lines(turn.id)? {
            let known = turn.finals;
            let lines = lines::read(&text, self.id, &mut turn, known);
            self.facts.extend(lines.facts);
        }
        Ok(Some(turn))
    }
}

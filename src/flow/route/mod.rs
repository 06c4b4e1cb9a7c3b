//! `route` does what follows from a turn whose outcome is on its branch, once, however often it is started.
//!
//! [`route`] reads the outcomes of those turns at or below the trigger that were not routed yet: one, unless
//! a `route` was given up on and a message brought the next turn. It performs their calls one after the
//! other, with ids made from each call, so that what was done before is recognized. It judges whether the
//! node goes in a circle, or too far without a person, and says in which state the node goes on. A turn whose
//! outcome did not land is not on the branch, so nothing of it is performed. A process that is killed at any
//! point can be started again, and ends as it would have. Nothing is printed; what was sent is returned, so
//! that the caller can have it delivered. Implements N5, N6, N7 (performing), N11, N14 (each thing once, in
//! whichever process).

pub mod done;
mod perform;
pub mod plan;

use super::outcome::Outcome;
use super::{FlowError, Flows};
use crate::contract;
use crate::contract::shown;
use crate::contract::stall::{Signals, judge};
use crate::protocol::declaration::{Declaration, NotBefore, Take};
use crate::protocol::event::Event;
use crate::protocol::flow::{ROUTE, accepts};
use crate::protocol::id::ObjectId;
use crate::protocol::message::Trailer;
use crate::protocol::name::{STALLED, StateName};
use crate::runner::Runner;
use crate::runner::change::Inside;
use crate::runner::talk::send::Sent;
use crate::store::Commit;
use done::Done;
use perform::Performing;
use plan::{Next, Wants, next};

/// How many commits of a branch are searched for outcomes of turns.
const LOOK_BACK: usize = 10_000;

/// How far a flow goes without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most dispatches that may lead to one another (`aynig.flowHops`).
    pub hops: u32,
    /// How many repetitions after the first count as a circle (`aynig.stallTurns`).
    pub stall: u32,
}

/// Why a turn was not routed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// No turn ended at or below the trigger.
    #[error("no turn ended below {0}")]
    NoTurn(ObjectId),
    /// The next state can't be declared.
    #[error("cannot declare what comes next: {0}")]
    Declaration(String),
    /// An error of the flow, a branch or a message.
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// What `route` did.
#[derive(Debug)]
pub struct Routed {
    /// What the run declares as the node's next state.
    pub declaration: Declaration,
    /// The messages that were sent and wait now.
    pub sent: Vec<Sent>,
}

/// Does what follows from the turn that ended at or below the trigger of the run that this process belongs
/// to.
///
/// # Errors
/// [`RouteError`]; a process that begins again recognizes what was done until then.
pub fn route(
    runner: &Runner<'_>,
    inside: &Inside,
    trigger: ObjectId,
    limits: Limits,
) -> Result<Routed, RouteError> {
    let flows = Flows::new(runner);
    let (kept, node) = flows.of_branch(&inside.branch)?;
    let base = kept.flow.run.base.clone();
    let turns = Turns { runner, base: &base };
    let open = turns.open(trigger)?;
    let turn = open.first().ok_or(RouteError::NoTurn(trigger))?;
    let mut performing = Performing::new(runner, inside, kept, node)?;
    let resumed = performing.kept.flow.nodes.get(&node).and_then(|node| node.resumed_after.clone());
    let signals = turns.signals(turn, resumed.as_deref(), limits.stall)?;
    let stalled = judge(&signals, resumed.as_deref(), limits.stall);
    let wants = Wants::of(&performing.kept.flow, node, &open);
    let next = next(&performing.kept.flow, node, turn, wants, (inside.hop, limits.hops), stalled);
    if next.pauses() {
        // The flow is paused before anything is handed on, so that the node that receives it waits for the
        // person, too.
        performing.pause(&next)?;
    }
    for turn in open.iter().rev() {
        performing.turn(turn)?;
        performing.tell(turn)?;
    }
    // A node that is told something gets a turn for it, in which it may still give its own answer. Only a
    // node without that is reported as not having answered.
    let is_told = open.iter().any(|turn| !turn.answers.is_empty() || !turn.refused.is_empty());
    if next == Next::Idle && !is_told && turn.ended == contract::projection::Ended::Completed {
        performing.tell_who_waits(turn)?;
    }
    // An interrupt of this turn that says nothing more is not for the next turn. It still waits if its sender
    // was killed.
    flows.drop_bare_interrupts(&inside.branch)?;
    let Performing { mut done, sent, .. } = performing;
    done.extend(match &next {
        Next::Idle | Next::Turn => None,
        Next::Stalled(evidence) => Some(Done::Stalled(evidence.clone())),
        Next::Hops(hops) => Some(Done::Hops(*hops)),
    });
    Ok(Routed { declaration: declaration(&next, turn, &done)?, sent })
}

/// Returns the declaration that asks for `route` again, later.
///
/// # Errors
/// [`RouteError::Declaration`].
pub fn again(why: &str, not_before: NotBefore) -> Result<Declaration, RouteError> {
    let subject = format!("{ROUTE} again later: {}", shown::line(why.as_bytes()));
    let state = StateName::new(ROUTE).map_err(|why| RouteError::Declaration(why.to_string()))?;
    Ok(Declaration {
        state,
        subject,
        body: String::new(),
        keep_trailers: false,
        trailers: Vec::new(),
        take: Take::default(),
        not_before: Some(not_before),
        usage: None,
    })
}

fn declaration(next: &Next, turn: &Outcome, done: &[Done]) -> Result<Declaration, RouteError> {
    let subject = match next {
        Next::Idle | Next::Turn => turn.summary.clone(),
        Next::Stalled(_) => "stalled: the same again and again".to_owned(),
        Next::Hops(hops) => format!("hop limit: {hops} runs led to one another without a person"),
    };
    let state = StateName::new(next.state()).map_err(|why| RouteError::Declaration(why.to_string()))?;
    Ok(Declaration {
        state,
        subject: if subject.trim().is_empty() { next.state().to_owned() } else { subject },
        body: Done::body(done),
        keep_trailers: false,
        // The head takes in messages that arrive meanwhile, even if the node goes on by itself.
        trailers: vec![Trailer::new(crate::protocol::accepts::ACCEPTS, accepts())],
        take: Take::default(),
        not_before: None,
        usage: None,
    })
}

/// What a commit of a node's branch ended.
enum Ended {
    Turn(Box<Outcome>),
    /// The `route` that followed from a turn.
    Route,
}

impl Ended {
    fn of(commit: &Commit, event: &Event) -> Option<Self> {
        if let Some(outcome) = Outcome::read(commit, event) {
            return Some(Self::Turn(Box::new(outcome)));
        }
        let is = |state: Option<&StateName>, word: &str| state.is_some_and(|state| state.as_str() == word);
        let routed = event.run_id().is_some() && is(event.origin_state().as_ref(), ROUTE);
        // A `route` that was put off, or given up on, is still to be done.
        let open = event.is_working() || is(event.state_name(), ROUTE) || is(event.state_name(), STALLED);
        (routed && !open).then_some(Self::Route)
    }
}

/// The turns of a branch, read from its commits.
struct Turns<'t, 'r> {
    runner: &'t Runner<'r>,
    /// The base of the flow, at which the branches of its nodes begin.
    base: &'t str,
}

impl Turns<'_, '_> {
    /// Passes what ended at or below a commit, turns and the `route` runs that followed, to `more`, newest
    /// first, until that returns false.
    fn each(&self, from: ObjectId, more: &mut dyn FnMut(Ended) -> bool) -> Result<(), FlowError> {
        let store = &*self.runner.store;
        let mut at = Some(from);
        for _ in 0..LOOK_BACK {
            let Some(id) = at.filter(|id| id.to_string() != self.base) else { break };
            let commit = store.read_commit(id)?;
            let event = Event::in_message(&commit.message);
            if let Some(ended) = event.and_then(|event| Ended::of(&commit, &event))
                && !more(ended)
            {
                break;
            }
            at = match store.history_ends_at(id)? {
                true => None,
                false => commit.parents.first().copied(),
            };
        }
        Ok(())
    }

    /// Returns the turns that were not routed yet, newest first; at least the last turn.
    fn open(&self, trigger: ObjectId) -> Result<Vec<Outcome>, FlowError> {
        let mut open = Vec::new();
        self.each(trigger, &mut |ended| match ended {
            Ended::Turn(outcome) => {
                open.push(*outcome);
                true
            }
            // If a user asks for `route` again by hand, the turn before the last `route` is meant.
            Ended::Route => open.is_empty(),
        })?;
        Ok(open)
    }

    /// Returns what the last turns can be compared by, oldest first: as many of them as a judgment needs.
    fn signals(&self, turn: &Outcome, seen: Option<&str>, limit: u32) -> Result<Vec<Signals>, FlowError> {
        let most = (limit as usize).saturating_add(1).max(3);
        let mut turns = Vec::new();
        self.each(turn.commit, &mut |ended| {
            let Ended::Turn(outcome) = ended else { return true };
            let was_seen = seen == Some(&*outcome.signals.turn);
            turns.push(outcome.signals);
            !was_seen && turns.len() < most
        })?;
        turns.reverse();
        Ok(turns)
    }
}

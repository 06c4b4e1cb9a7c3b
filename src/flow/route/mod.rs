//! `route`: what follows from a turn whose outcome is on its branch, done once however often it is begun.
//!
//! [`route`] reads the outcomes of turns below the trigger that nothing followed from yet (one, but where a `route` was given up
//! on and a message brought the next turn), performs their calls one after the other (each with
//! ids made from the call, so that what was done is found done), judges whether the node goes in a circle or too far
//! without a person, and says in which state the node goes on. A turn whose outcome did not land is not on the branch, so
//! nothing of it is performed. Who is killed anywhere begins again and ends where it would have. Nothing is printed;
//! who was sent something is returned, for the caller to have it heard. Implements N5, N6, N7 (performing), N11,
//! N14 (each thing once, in whichever process).

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

/// How many commits of a branch are looked through for a turn's outcome.
const LOOK_BACK: usize = 10_000;

/// How far a flow goes without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Dispatches that may lead to one another (`aynig.flowHops`).
    pub hops: u32,
    /// Repetitions after the first that are taken for a circle (`aynig.stallTurns`).
    pub stall: u32,
}

/// Why a turn was not routed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// There is no turn below the trigger.
    #[error("no turn ended below {0}")]
    NoTurn(ObjectId),
    /// The next state can't be declared.
    #[error("cannot declare what comes next: {0}")]
    Declaration(String),
    /// The flow, a branch, a message.
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// What was done.
#[derive(Debug)]
pub struct Routed {
    /// What comes next.
    pub declaration: Declaration,
    /// What was sent, to whom.
    pub sent: Vec<Sent>,
}

/// Does what follows from the turn that ended at or below the trigger of the run that we are inside of.
///
/// # Errors
/// [`RouteError`]; what was done until then is found done by the process that begins again.
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
        // Before anything is handed on: the node that is handed it waits for the person, too.
        performing.pause(&next)?;
    }
    for turn in open.iter().rev() {
        performing.turn(turn)?;
        performing.tell(turn)?;
    }
    // Who is told something has a turn for that before it is said to have left its own answer out.
    let is_told = open.iter().any(|turn| !turn.answers.is_empty() || !turn.refused.is_empty());
    if next == Next::Idle && !is_told && turn.ended == contract::projection::Ended::Completed {
        performing.tell_who_waits(turn)?;
    }
    // What asked this turn to end and says nothing more is not for the next one, though its sender was killed.
    flows.drop_bare_interrupts(&inside.branch)?;
    let Performing { mut done, sent, .. } = performing;
    done.extend(match &next {
        Next::Idle | Next::Turn => None,
        Next::Stalled(evidence) => Some(Done::Stalled(evidence.clone())),
        Next::Hops(hops) => Some(Done::Hops(*hops)),
    });
    Ok(Routed { declaration: declaration(&next, turn, &done)?, sent })
}

/// Declares that what follows from the turn is done later.
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
        // What comes meanwhile is taken in, before the node goes on by itself too.
        trailers: vec![Trailer::new(crate::protocol::accepts::ACCEPTS, accepts())],
        take: Take::default(),
        not_before: None,
        usage: None,
    })
}

/// What a commit of a node's branch ended.
enum Ended {
    /// A turn.
    Turn(Box<Outcome>),
    /// What followed from one.
    Route,
}

impl Ended {
    fn of(commit: &Commit, event: &Event) -> Option<Self> {
        if let Some(outcome) = Outcome::read(commit, event) {
            return Some(Self::Turn(Box::new(outcome)));
        }
        let is = |state: Option<&StateName>, word: &str| state.is_some_and(|state| state.as_str() == word);
        let routed = event.run_id().is_some() && is(event.origin_state().as_ref(), ROUTE);
        // One that could not be done yet, or was given up, is still to be done.
        let open = event.is_working() || is(event.state_name(), ROUTE) || is(event.state_name(), STALLED);
        (routed && !open).then_some(Self::Route)
    }
}

/// The turns of a branch, as its commits tell them.
struct Turns<'t, 'r> {
    runner: &'t Runner<'r>,
    /// Where nodes' branches begin.
    base: &'t str,
}

impl Turns<'_, '_> {
    /// What ended turns, and what followed from them, at or below a commit, newest first, as long as `more` wants them.
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

    /// The turns that nothing followed from yet, newest first; the last one in any case.
    fn open(&self, trigger: ObjectId) -> Result<Vec<Outcome>, FlowError> {
        let mut open = Vec::new();
        self.each(trigger, &mut |ended| match ended {
            Ended::Turn(outcome) => {
                open.push(*outcome);
                true
            }
            // A user who asks for it once more by hand means the turn before it.
            Ended::Route => open.is_empty(),
        })?;
        Ok(open)
    }

    /// What the last turns can be compared by, oldest first: as many as a judgement needs.
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

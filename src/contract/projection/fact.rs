//! Facts: what a projection is made of, as a reader of Git finds it.

use crate::contract::edge::Envelope;
use crate::contract::event::{ApprovalRequest, ApprovalResolution, Body, StallEvidence};
use crate::contract::flow::Flow;
use crate::contract::id::{ApprovalId, MessageId, NodeId, PayloadId, TurnId};
use crate::contract::node::Usage;
use crate::contract::run::Artifact;
use crate::contract::time::Time;
use crate::contract::words::Provider;
use crate::protocol::decide::AHEAD_MAX;
use crate::protocol::id::ObjectId;

/// One fact.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A commit of the flow's branch.
    Flow {
        /// The commit.
        commit: ObjectId,
        /// When.
        at: Time,
        /// The flow as it is there.
        flow: Box<Flow>,
    },
    /// A node was found to go in a circle, and the run paused for it.
    Stalled {
        /// The outcome that it was seen from.
        commit: ObjectId,
        /// When.
        at: Time,
        /// The node.
        node: NodeId,
        /// Why.
        evidence: StallEvidence,
    },
    /// A commit of a node's branch.
    Step {
        /// The node.
        node: NodeId,
        /// When.
        at: Time,
        /// The commit.
        commit: ObjectId,
        /// What it is.
        step: Step,
    },
    /// A message waits in a node's inbox.
    Waits {
        /// The node.
        node: NodeId,
        /// When it was sent.
        at: Time,
        /// The message.
        heard: Heard,
    },
    /// A person is asked.
    Asked {
        /// When.
        at: Time,
        /// What.
        request: ApprovalRequest,
    },
    /// A person answered.
    Answered {
        /// When.
        at: Time,
        /// What was asked.
        id: ApprovalId,
        /// The answer.
        resolution: ApprovalResolution,
    },
    /// A line of a turn's events, read as one of the contract's.
    Line {
        /// The node.
        node: NodeId,
        /// When.
        at: Time,
        /// The turn.
        turn: TurnId,
        /// The line's number in the turn.
        number: u64,
        /// What it says. The node in it is the turn's, whatever the line says.
        body: Box<Body>,
    },
}

/// A message to a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A person's or a program's words.
    Message {
        /// Its id.
        id: MessageId,
        /// When it was sent.
        at: Time,
        /// The text.
        text: String,
        /// Whether it ends the turn that is under way.
        interrupt: bool,
    },
    /// A handoff.
    Handoff(Box<Envelope>),
}

impl Heard {
    /// Its id.
    pub fn id(&self) -> PayloadId {
        match self {
            Self::Message { id, .. } => PayloadId(id.0),
            Self::Handoff(envelope) => envelope.id,
        }
    }
}

/// What a commit of a node's branch is.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// It takes in messages.
    Delivered(Vec<Heard>),
    /// A turn was leased.
    Leased,
    /// A turn's outcome.
    Turned(Box<Turned>),
    /// A turn that was leased is over without an outcome and without a word of its own: it was killed, or taken away.
    Cut(Ended, String),
    /// The node rests: it waits for a message, or for a person.
    Rests(Rest),
}

/// How a node rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// It waits for a message.
    Idle,
    /// It waits for a person, for this reason.
    Blocked(String),
    /// It failed, for this reason.
    Failed(String),
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Completed,
    /// It was stopped.
    Interrupted,
    /// Badly.
    Failed,
}

/// A turn's outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Turned {
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub ended: Ended,
    /// Its first line.
    pub summary: String,
    /// Its final text; empty where there was none.
    pub text: String,
    /// Whether lines of the turn had the final text already.
    pub told: bool,
    /// The session that goes on.
    pub session: Option<String>,
    /// Who had it, with what model.
    pub provider: Provider,
    /// The model; empty where it is not told.
    pub model: String,
    /// What it used: an increment.
    pub usage: Usage,
    /// The files that came of it.
    pub artifacts: Vec<Artifact>,
}

impl Fact {
    /// When it was.
    pub fn at(&self) -> Time {
        match self {
            Self::Flow { at, .. }
            | Self::Stalled { at, .. }
            | Self::Step { at, .. }
            | Self::Waits { at, .. }
            | Self::Asked { at, .. }
            | Self::Answered { at, .. }
            | Self::Line { at, .. } => *at,
        }
    }

    /// The same as it is told where the clock says `now`: what is dated more than an hour ahead of that, as whoever may push can
    /// date what they push, was now. So none that comes after it is told as of a day that is yet to come.
    pub fn bounded(mut self, now: Time) -> Self {
        let last = Time(now.0.saturating_add(AHEAD_MAX * 1000));
        let bound = |at: &mut Time| {
            if *at > last {
                *at = now;
            }
        };
        let heard = |heard: &mut Heard| match heard {
            Heard::Message { at, .. } => bound(at),
            Heard::Handoff(envelope) => bound(&mut envelope.created_at),
        };
        match &mut self {
            Self::Step { at, step: Step::Delivered(messages), .. } => {
                bound(at);
                messages.iter_mut().for_each(heard);
            }
            Self::Waits { at, heard: waits, .. } => {
                bound(at);
                heard(waits);
            }
            Self::Flow { at, .. }
            | Self::Stalled { at, .. }
            | Self::Step { at, .. }
            | Self::Asked { at, .. }
            | Self::Answered { at, .. }
            | Self::Line { at, .. } => bound(at),
        }
        self
    }

    /// What it reports: that of which the ids of its events are made.
    pub(super) fn name(&self) -> Vec<Vec<u8>> {
        let id = |kind: &str, id: &[u8]| vec![kind.as_bytes().to_vec(), id.to_vec()];
        match self {
            Self::Flow { commit, .. } => id("flow", commit.as_bytes()),
            Self::Stalled { commit, .. } => id("stalled", commit.as_bytes()),
            Self::Step { commit, .. } => id("step", commit.as_bytes()),
            Self::Waits { heard, .. } => id("message", heard.id().0.as_bytes()),
            Self::Asked { request, .. } => id("asked", request.approval_id.0.as_bytes()),
            Self::Answered { id: asked, .. } => id("answered", asked.0.as_bytes()),
            Self::Line { turn, number, .. } => {
                vec![b"line".to_vec(), turn.0.as_bytes().to_vec(), number.to_be_bytes().to_vec()]
            }
        }
    }
}

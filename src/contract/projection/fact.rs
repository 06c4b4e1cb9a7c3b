//! Facts: the input of a projection, as a reader of Git finds it.

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

/// One fact about a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A commit of the flow's branch.
    Flow {
        /// The commit.
        commit: ObjectId,
        /// The commit's time.
        at: Time,
        /// The flow in the commit's tree.
        flow: Box<Flow>,
    },
    /// A node goes in a circle, and its run was paused for that.
    Stalled {
        /// The commit that reports the stall, an outcome of `route`.
        commit: ObjectId,
        /// The commit's time.
        at: Time,
        /// The node.
        node: NodeId,
        /// What was repeated.
        evidence: StallEvidence,
    },
    /// A commit of a node's branch.
    Step {
        /// The node.
        node: NodeId,
        /// The commit's time.
        at: Time,
        /// The commit.
        commit: ObjectId,
        /// What the commit means.
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
    /// A person is asked for an approval.
    Asked {
        /// When it was asked for.
        at: Time,
        /// What the person is asked.
        request: ApprovalRequest,
    },
    /// A person answered a request for an approval.
    Answered {
        /// When the answer was given.
        at: Time,
        /// The approval that was asked for.
        id: ApprovalId,
        /// The answer.
        resolution: ApprovalResolution,
    },
    /// A line of a turn's events, read as one of the contract's events.
    Line {
        /// The node.
        node: NodeId,
        /// When it was written.
        at: Time,
        /// The turn.
        turn: TurnId,
        /// The line's number in the turn.
        number: u64,
        /// The event that the line holds. A node that it names is ignored: the line counts for the turn's
        /// node.
        body: Box<Body>,
    },
}

/// A message to a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A text from a person or a program.
    Message {
        /// Its id.
        id: MessageId,
        /// When it was sent.
        at: Time,
        /// The text.
        text: String,
        /// Whether the message ends the turn that is under way.
        interrupt: bool,
    },
    /// A handoff.
    Handoff(Box<Envelope>),
}

impl Heard {
    /// Returns the message's id; an envelope's id is that of the message that carries it.
    pub fn id(&self) -> PayloadId {
        match self {
            Self::Message { id, .. } => PayloadId(id.0),
            Self::Handoff(envelope) => envelope.id,
        }
    }
}

/// What a commit of a node's branch means.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The commit takes in messages.
    Delivered(Vec<Heard>),
    /// A turn began: the runner leased it.
    Leased,
    /// A turn's outcome.
    Turned(Box<Turned>),
    /// A turn that was leased ended without an outcome and without a reason of its own, as it was killed or
    /// its lease was taken away. The text is the first line of the commit that followed.
    Cut(Ended, String),
    /// The node rests: it waits for a message, or for a person.
    Rests(Rest),
}

/// The state in which a node rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// It waits for a message.
    Idle,
    /// It waits for a person, for this reason.
    Blocked(String),
    /// It failed, for this reason.
    Failed(String),
}

/// The way in which a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It completed.
    Completed,
    /// It was stopped.
    Interrupted,
    /// It failed.
    Failed,
}

/// A turn's outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Turned {
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub ended: Ended,
    /// The first line of the outcome's message.
    pub summary: String,
    /// The agent's final text; empty if there was none.
    pub text: String,
    /// Whether the turn's lines reported the final text already.
    pub told: bool,
    /// The session that the next turn can resume.
    pub session: Option<String>,
    /// The provider whose program ran the turn.
    pub provider: Provider,
    /// The model; empty if the program did not name it, or used several.
    pub model: String,
    /// The tokens that the turn used, not a total.
    pub usage: Usage,
    /// The files that the turn left.
    pub artifacts: Vec<Artifact>,
}

impl Fact {
    /// Returns when the fact happened.
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

    /// Returns the fact with every time that is more than an hour after `now` replaced by `now`. A pusher
    /// chooses the dates of what it pushes, and as the times of a log never go back, one date in the future
    /// would be the time of every later event.
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

    /// Returns what the fact reports; the ids of its events are derived from this.
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

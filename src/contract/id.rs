//! The ids of the wire contract: UUIDs as text, with one type for each kind of thing that has an id.
//!
//! An id is read in the one form with hyphens, in any case, and written in lower case. An event's id is
//! derived from what the event reports (UUID version 5), so that every clone that projects the same thing
//! gives it the same id.

use super::time::Time;
use crate::protocol::inbox::{MessageId as MessageName, derived_id};
use std::fmt;
use uuid::Uuid;

/// A text that is no UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is no UUID")]
pub struct NotAnId {
    /// The text as it was given, shortened.
    pub given: String,
}

/// Reads a UUID, which has to be spelled with its hyphens.
fn read(text: &str) -> Result<Uuid, NotAnId> {
    // The parser also takes braces, URNs and bare digits. One form is enough, and ids in it can be compared
    // as text.
    let spelled = (text.len() == 36).then(|| Uuid::try_parse(text).ok()).flatten();
    spelled.ok_or_else(|| NotAnId {
        given: crate::protocol::text::escape(text.chars().take(64).collect::<String>().as_bytes()),
    })
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Reads an id from its text.
            pub fn parse(text: &str) -> Result<Self, NotAnId> {
                read(text).map(Self)
            }

            /// Returns the first eight digits of the id, for use in names.
            pub fn short(&self) -> String {
                self.0.simple().to_string()[..8].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                Self::parse(text)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let mut text = Uuid::encode_buffer();
                to.serialize_str(self.0.hyphenated().encode_lower(&mut text))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

ids! {
    /// The id of a run, which is the id of its flow.
    RunId
    /// The id of a node.
    NodeId
    /// The id of an edge.
    EdgeId
    /// The id of an envelope, and of the message that carries the envelope.
    PayloadId
    /// The id of an artifact.
    ArtifactId
    /// The id of an event.
    EventId
    /// The id of a tool call. The agent's own id of the call is stored beside it.
    ToolId
    /// The id of an approval, and of the question that asks for it.
    ApprovalId
    /// The id of a chat message.
    MessageId
    /// The id of a turn: the run id that the runner gave the turn.
    TurnId
}

impl EventId {
    /// Returns the id of the event of a run that `parts` describe. The parts are kept apart, so that two
    /// different lists of parts never give the same id.
    pub fn of(run: RunId, parts: &[&[u8]]) -> Self {
        Self(derived(run.0, parts))
    }
}

impl ToolId {
    /// Returns the id of an agent's call in a turn, from the agent's own id of the call.
    pub fn of(turn: TurnId, own: &str) -> Self {
        Self(derived(turn.0, &[b"tool", own.as_bytes()]))
    }
}

impl NodeId {
    /// Returns the id of the node that a call spawns. Every process that performs the call derives the same
    /// id.
    pub fn of_call(call: ToolId) -> Self {
        Self(derived(call.0, &[b"node"]))
    }
}

impl EdgeId {
    /// Returns the id of the edge that a call makes.
    pub fn of_call(call: ToolId) -> Self {
        Self(derived(call.0, &[b"edge"]))
    }
}

impl PayloadId {
    /// Returns the id of the handoff that a call sends. The handoff is sent as a message, so its id is a
    /// message id (K46) and begins with milliseconds: the date of the commit that triggered the turn, which
    /// the turn and the process that performs the call both know.
    pub fn of_call(call: ToolId, trigger: Time) -> Self {
        let millis = u64::try_from(trigger.0).unwrap_or(0);
        Self::of_message(derived_id(millis, &[b"handoff", call.0.as_bytes()]))
    }

    /// Returns the id of the envelope that a message carries.
    pub fn of_message(message: MessageName) -> Self {
        Self(Uuid::from_bytes(*message.as_bytes()))
    }

    /// Returns the id of the message that carries the envelope; `None` if no message can have this id.
    pub fn message(self) -> Option<MessageName> {
        MessageName::parse(self.to_string()).ok()
    }
}

impl ArtifactId {
    /// Returns the id of the artifact that has this name in a turn.
    pub fn of(turn: TurnId, name: &str) -> Self {
        Self(derived(turn.0, &[b"artifact", name.as_bytes()]))
    }
}

/// Returns the UUID, version 5, of a list of parts within a namespace.
pub(crate) fn derived(namespace: Uuid, parts: &[&[u8]]) -> Uuid {
    let mut name = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        name.extend_from_slice(&(part.len() as u64).to_be_bytes());
        name.extend_from_slice(part);
    }
    Uuid::new_v5(&namespace, &name)
}

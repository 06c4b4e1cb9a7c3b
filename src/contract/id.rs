//! The ids of the wire contract: UUID text, one type for each thing that has one.
//!
//! An id is read in its one form with hyphens, in any case, and written in lower case. The ids of events are made
//! from what they report (version 5), so that every clone that projects the same thing gives it the same id.

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

/// The UUID that a text spells, with its hyphens.
fn read(text: &str) -> Result<Uuid, NotAnId> {
    // The parser takes braces, URNs and bare digits too; one form is enough, and can be compared as text.
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
            /// The id that this text spells.
            pub fn parse(text: &str) -> Result<Self, NotAnId> {
                read(text).map(Self)
            }

            /// The first eight digits, for names.
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
    /// A run's, which is a flow's.
    RunId
    /// A node's.
    NodeId
    /// An edge's.
    EdgeId
    /// An envelope's; the message that carries it has the same.
    PayloadId
    /// An artifact's.
    ArtifactId
    /// An event's.
    EventId
    /// A tool call's. The agent's own name for it is kept beside.
    ToolId
    /// An approval's; the question has the same.
    ApprovalId
    /// A chat message's.
    MessageId
    /// A turn's: the kernel's run id.
    TurnId
}

impl EventId {
    /// The id of the event that reports this of a run. The parts are kept apart, so that no two lists of them make
    /// one id.
    pub fn of(run: RunId, parts: &[&[u8]]) -> Self {
        Self(derived(run.0, parts))
    }
}

impl ToolId {
    /// The id of an agent's call in a turn, from the name that the agent gave it.
    pub fn of(turn: TurnId, own: &str) -> Self {
        Self(derived(turn.0, &[b"tool", own.as_bytes()]))
    }
}

impl NodeId {
    /// The id of the node that a call spawns: every process that performs the call makes this one.
    pub fn of_call(call: ToolId) -> Self {
        Self(derived(call.0, &[b"node"]))
    }
}

impl EdgeId {
    /// The id of the edge that a call makes.
    pub fn of_call(call: ToolId) -> Self {
        Self(derived(call.0, &[b"edge"]))
    }
}

impl PayloadId {
    /// The id of the handoff that a call sends: a message's (K46), so it begins with milliseconds, those of what the turn
    /// answered, which the turn knows as well as the process that performs the call.
    pub fn of_call(call: ToolId, trigger: Time) -> Self {
        let millis = u64::try_from(trigger.0).unwrap_or(0);
        Self::of_message(derived_id(millis, &[b"handoff", call.0.as_bytes()]))
    }

    /// The id of the envelope that a message carries.
    pub fn of_message(message: MessageName) -> Self {
        Self(Uuid::from_bytes(*message.as_bytes()))
    }

    /// The message that carries it; none where the id is not one that a message can have.
    pub fn message(self) -> Option<MessageName> {
        MessageName::parse(self.to_string()).ok()
    }
}

impl ArtifactId {
    /// The id of a turn's artifact of this name.
    pub fn of(turn: TurnId, name: &str) -> Self {
        Self(derived(turn.0, &[b"artifact", name.as_bytes()]))
    }
}

/// The UUID, version 5, of these parts within a namespace.
pub(crate) fn derived(namespace: Uuid, parts: &[&[u8]]) -> Uuid {
    let mut name = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        name.extend_from_slice(&(part.len() as u64).to_be_bytes());
        name.extend_from_slice(part);
    }
    Uuid::new_v5(&namespace, &name)
}

//! The enumerations of the wire contract, with the word for each value.
//!
//! On the wire a word is read exactly as it is written; a word that a person types may be in any case. An
//! unknown word is an error that names it, and the words that there are.

use std::fmt;

/// A word that an enumeration does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is no {what}: it is one of {}", .known.join(", "))]
pub struct UnknownWord {
    /// The name of the enumeration: `mode`.
    pub what: &'static str,
    /// The word as it was given.
    pub given: String,
    /// The words that there are.
    pub known: Vec<&'static str>,
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $what:literal { $($variant:ident = $word:literal: $vdoc:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $(#[doc = $vdoc] #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the word for the value on the wire.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownWord;

            fn from_str(given: &str) -> Result<Self, UnknownWord> {
                let found = Self::ALL.iter().find(|value| value.word().eq_ignore_ascii_case(given));
                found.copied().ok_or_else(|| UnknownWord {
                    what: $what,
                    given: crate::protocol::text::escape(given.as_bytes()),
                    known: Self::ALL.iter().map(|value| value.word()).collect(),
                })
            }
        }
    )+};
}

words! {
    /// What a run is doing.
    RunStatus: "run status" {
        Queued = "queued": "It was set aside by a person.",
        Running = "running": "Its nodes may have turns.",
        Paused = "paused": "Its nodes are held until it is resumed.",
        Stopped = "stopped": "Its nodes are held and their turns ended.",
        Completed = "completed": "It was finished, well.",
        Failed = "failed": "It was finished, badly.",
    }
    /// Whether an orchestrator goes on by itself.
    Mode: "mode" {
        Auto = "AUTO": "An orchestrator goes on after a completed turn.",
        Interactive = "INTERACTIVE": "A node runs on messages.",
    }
    /// What turns may change.
    GlobalMode: "global mode" {
        Planning = "PLANNING": "Nothing but what is below `docs/`.",
        Implementation = "IMPLEMENTATION": "Whatever their capabilities allow.",
    }
    /// What a node is doing.
    NodeStatus: "node status" {
        Idle = "idle": "It waits for a message.",
        Running = "running": "A turn is under way.",
        Blocked = "blocked": "It waits for a person.",
        Failed = "failed": "Its last turn failed.",
    }
    /// The provider whose program runs a node's turns.
    Provider: "provider" {
        Codex = "codex": "OpenAI's.",
        Claude = "claude": "Anthropic's.",
        Gemini = "gemini": "Google's.",
        Custom = "custom": "Any that speaks lines.",
    }
    /// What an edge is for.
    EdgeType: "edge type" {
        Handoff = "handoff": "Tasks go along it.",
        Report = "report": "Results go along it.",
    }
    /// What an artifact is.
    ArtifactKind: "artifact kind" {
        Diff = "diff": "What a turn changed.",
        Prompt = "prompt": "What was sent to an agent.",
        Log = "log": "What a turn wrote that is no protocol.",
        Transcript = "transcript": "What a turn's program printed.",
        Contextpack = "contextpack": "What a new session was told of what went before.",
        Report = "report": "The text of a report.",
    }
    /// Whether a node's tools wait for a person.
    CliPermissionsMode: "permissions mode" {
        Skip = "skip": "They do not.",
        Gated = "gated": "Every one does.",
    }
    /// Which edges a node may make.
    EdgeManagement: "edge management" {
        None = "none": "None.",
        SelfOnly = "self": "Those that it is an end of.",
        All = "all": "Any; and it may spawn nodes.",
    }
    /// How an approval ended.
    ApprovalStatus: "resolution" {
        Approved = "approved": "The call is made as it was proposed.",
        Denied = "denied": "The call is not made.",
        Modified = "modified": "The call is made with other arguments.",
    }
    /// The kind of an envelope.
    EnvelopeKind: "envelope kind" {
        Handoff = "handoff": "Work that is handed on.",
    }
    /// Whether the sender of a handoff wants an answer.
    Expectation: "expectation" {
        None = "none": "It does not.",
        Optional = "optional": "It would read one.",
        Required = "required": "The promise stays open until one is there.",
    }
    /// Whether a node can be reached.
    ConnectionStatus: "connection status" {
        Connected = "connected": "A turn is leased.",
        Idle = "idle": "No turn is.",
        Disconnected = "disconnected": "Its stop flag is set.",
    }
    /// Where a turn stands.
    TurnStatus: "turn status" {
        Started = "turn.started": "Its program was started.",
        WaitingForModel = "waiting_for_model": "Nothing came yet.",
        ToolPending = "tool.pending": "A tool runs.",
        AwaitingApproval = "awaiting_approval": "A person is asked.",
        Completed = "turn.completed": "It ended well.",
        Interrupted = "turn.interrupted": "It was stopped.",
        Failed = "turn.failed": "It ended badly.",
    }
    /// Which of a program's streams a line came from.
    LogSource: "log source" {
        Stdout = "stdout": "Its standard output.",
        Stderr = "stderr": "Its standard error.",
    }
    /// How far a task of a node's list is.
    TodoStatus: "todo status" {
        Pending = "pending": "Not begun.",
        InProgress = "in_progress": "Begun.",
        Completed = "completed": "Done.",
    }
    /// The author of a message.
    MessageRole: "message role" {
        User = "user": "A person's, or another node's.",
        Assistant = "assistant": "The agent's.",
        System = "system": "This program's.",
    }
    /// How an agent's message ended, if that is reported.
    FinalStatus: "final status" {
        Final = "final": "As it should.",
        Interrupted = "interrupted": "In the middle.",
    }
    /// Where a template comes from.
    TemplateSource: "template source" {
        Repo = "repo": "The repository.",
        System = "system": "This program.",
    }
}

impl RunStatus {
    /// True if a run of this status holds its nodes' branches.
    pub fn holds(self) -> bool {
        match self {
            Self::Running => false,
            Self::Queued | Self::Paused | Self::Stopped | Self::Completed | Self::Failed => true,
        }
    }
}

//! What programs say, of any provider: one type for each thing that a line can mean.

use super::spent::Spent;
use crate::contract::event::ApprovalResolution;
use crate::contract::time::Time;
use crate::contract::words::ApprovalStatus;
use serde_json::{Map, Value};

/// What a line said, and what is to be written in answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heard {
    /// In the line's order.
    pub said: Vec<Said>,
    /// Written to the program's standard input; empty for nothing.
    pub send: Vec<u8>,
}

/// One thing that a program said.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Its session has this name. One that differs from the one that was asked for is a new session.
    Session(String),
    /// A piece of what the agent says.
    Piece(String),
    /// All of one message of the agent's.
    Text(String),
    /// A piece of what it thinks.
    ThoughtPiece(String),
    /// All of one thought.
    Thought(String),
    /// A tool of the program's own runs.
    ToolStarted {
        /// The program's id of the call.
        id: String,
        /// The tool's name.
        name: String,
        /// What it is called with.
        args: Map<String, Value>,
    },
    /// A tool has run.
    ToolEnded {
        /// The program's id of the call.
        id: String,
        /// Whether it went well.
        ok: bool,
        /// What it gave, shortened.
        output: String,
    },
    /// A person is asked.
    Asked(Asked),
    /// What was asked under this id need not be answered any more.
    Unasked(String),
    /// It tries again, for this reason.
    Retries(String),
    /// Something that is worth a line in the log.
    Note(String),
    /// A line that is no protocol.
    Noise(String),
    /// Its turn is over: the last line that it says of it.
    Over,
}

/// What a program asks a person before it does it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The id that the answer names.
    pub id: String,
    /// The program's id of the call, where it has one.
    pub call: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// What it would be called with.
    pub args: Map<String, Value>,
    /// Whether an answer may change the arguments.
    pub takes_changes: bool,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// As it was asked.
    Approved,
    /// Not at all, for this reason.
    Denied(String),
    /// With these arguments instead.
    Modified(Map<String, Value>),
}

impl Decision {
    /// The same as the contract has it.
    pub fn resolution(&self) -> ApprovalResolution {
        let (status, modified_args, reason) = match self {
            Self::Approved => (ApprovalStatus::Approved, None, None),
            Self::Denied(why) => (ApprovalStatus::Denied, None, Some(why.clone())),
            Self::Modified(args) => (ApprovalStatus::Modified, Some(args.clone()), None),
        };
        ApprovalResolution { status, modified_args, reason }
    }
}

/// What comes of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Written to the program's standard input.
    pub send: Vec<u8>,
    /// What the gate had no words for, and the agent is to be told with the next message.
    pub untold: Option<String>,
}

/// The last line's judgement of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It went well.
    Good,
    /// It was stopped.
    Aborted,
    /// It failed.
    Bad(Cause, String),
}

/// Why a turn failed, as far as a program tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The program is not logged in, or its key is wrong.
    Login,
    /// What may be used is used up.
    Quota(Wait),
    /// The service has too much to do.
    Overload(Wait),
    /// The service can't be reached, or broke off.
    Unreachable,
    /// The service takes no such request.
    Request,
    /// A limit that was set for the program.
    Limit,
    /// There is no such session.
    SessionLost,
    /// The program can't work as it is called or set up.
    Setup,
    /// It does not say.
    Unknown,
}

/// How long something lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The program does not say.
    Unknown,
    /// Until then.
    Until(Time),
    /// That many seconds from now.
    Seconds(u64),
}

/// What a program has told of its turn so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Told {
    /// The name of its session.
    pub session: Option<String>,
    /// The folder that it says it works in.
    pub cwd: Option<String>,
    /// The agent's last whole message.
    pub text: Option<String>,
    /// What came of a message that was not ended.
    pub open: String,
    /// How many bytes of that came.
    pub came: usize,
    /// What was used. Codex tells the sum over its thread: see [`Spent::since`].
    pub spent: Spent,
    /// The last line's judgement.
    pub verdict: Option<Verdict>,
    /// When a limit that was told goes by.
    pub resets: Option<Time>,
    /// Why it tries again, or last did.
    pub retries: Option<String>,
}

/// Most bytes that are kept of a message that comes in pieces, and of a tool's output.
pub const KEPT_MAX: usize = 4 << 20;
/// Most bytes of a tool's output that are passed on.
pub const OUTPUT_MAX: usize = 64 << 10;

impl Told {
    /// A piece of a message came. Of one that is too long the middle goes: it begins with what came of the turn, and ends with
    /// what is wanted.
    pub(super) fn piece(&mut self, piece: &str) -> Said {
        self.open.push_str(piece);
        self.came += piece.len();
        if self.open.len() > KEPT_MAX {
            let from = head(&self.open, KEPT_MAX / 4).len();
            let begins = |at: &usize| self.open.is_char_boundary(*at);
            let to = (self.open.len() - KEPT_MAX / 4..).find(begins).unwrap_or(from);
            self.open.replace_range(from..to, &format!("\n[of {} bytes, without their middle]\n", self.came));
        }
        Said::Piece(piece.to_owned())
    }

    /// A whole message came.
    pub(super) fn whole(&mut self, text: &str) -> Said {
        self.open.clear();
        self.came = 0;
        self.text = Some(text.to_owned());
        Said::Text(text.to_owned())
    }

    /// What came in pieces is all of a message.
    pub(super) fn closed(&mut self) -> Option<Said> {
        if self.open.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.open);
        Some(self.whole(&text))
    }

    /// The session's name, if it is not known by that yet.
    pub(super) fn is_session(&mut self, name: &str) -> Option<Said> {
        if name.is_empty() || self.session.as_deref() == Some(name) {
            return None;
        }
        self.session = Some(name.to_owned());
        Some(Said::Session(name.to_owned()))
    }
}

/// The first bytes of a text, whole characters of it.
pub(super) fn head(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// A tool's output, as it is passed on.
pub(super) fn output(text: &str) -> String {
    let kept = head(text, OUTPUT_MAX);
    if kept.len() == text.len() { text.to_owned() } else { format!("{kept}\n[of {} bytes]", text.len()) }
}

//! What programs say, whatever the provider: one variant for each thing that a line can mean.

use super::spent::Spent;
use crate::contract::event::ApprovalResolution;
use crate::contract::time::Time;
use crate::contract::words::ApprovalStatus;
use serde_json::{Map, Value};

/// What a line means, and what is to be written in answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heard {
    /// What the program said, in order.
    pub said: Vec<Said>,
    /// What is to be written to the program's standard input; empty for nothing.
    pub send: Vec<u8>,
}

/// One thing that a program said.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// The name of its session. If it differs from the name that was asked for, the session is a new one.
    Session(String),
    /// A piece of the agent's message.
    Piece(String),
    /// A whole message of the agent.
    Text(String),
    /// A piece of the agent's thought.
    ThoughtPiece(String),
    /// A whole thought.
    Thought(String),
    /// A tool started to run.
    ToolStarted {
        /// The program's id of the call.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments of the call.
        args: Map<String, Value>,
    },
    /// A call of a tool ended.
    ToolEnded {
        /// The program's id of the call.
        id: String,
        /// Whether it went well.
        ok: bool,
        /// What the tool returned, cut to [`OUTPUT_MAX`] bytes.
        output: String,
    },
    /// A person is asked for an approval.
    Asked(Asked),
    /// The request with this id needs no answer any more.
    Unasked(String),
    /// The program tries again, for this reason.
    Retries(String),
    /// Something that is worth a line in the log.
    Note(String),
    /// A line that is not part of the protocol.
    Noise(String),
    /// The turn is over; nothing more follows about it.
    Over,
}

/// A request for a person's approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The id that the answer has to name.
    pub id: String,
    /// The program's own id of the call, if it has one.
    pub call: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The arguments of the proposed call.
    pub args: Map<String, Value>,
    /// Whether an answer may change the arguments.
    pub takes_changes: bool,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The call is made as it was proposed.
    Approved,
    /// The call is not made, for this reason.
    Denied(String),
    /// The call is made with these arguments instead.
    Modified(Map<String, Value>),
}

impl Decision {
    /// Returns the decision in the contract's form.
    pub fn resolution(&self) -> ApprovalResolution {
        let (status, modified_args, reason) = match self {
            Self::Approved => (ApprovalStatus::Approved, None, None),
            Self::Denied(why) => (ApprovalStatus::Denied, None, Some(why.clone())),
            Self::Modified(args) => (ApprovalStatus::Modified, Some(args.clone()), None),
        };
        ApprovalResolution { status, modified_args, reason }
    }
}

/// What is to be done with an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// What is to be written to the program's standard input.
    pub send: Vec<u8>,
    /// What the gate could not express; the agent is told it with the next message.
    pub untold: Option<String>,
}

/// The judgement of a turn by its last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It succeeded.
    Good,
    /// It was stopped.
    Aborted,
    /// It failed, for this cause, with the program's own words.
    Bad(Cause, String),
}

/// Why a turn failed, as far as the program says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The program is not logged in, or its key is wrong.
    Login,
    /// The quota is used up.
    Quota(Wait),
    /// The service is overloaded.
    Overload(Wait),
    /// The service can't be reached, or broke the connection.
    Unreachable,
    /// The service refused the request.
    Request,
    /// The program reached a limit that was set for it.
    Limit,
    /// The session does not exist.
    SessionLost,
    /// The program can't work with its arguments or its setup.
    Setup,
    /// The program does not say.
    Unknown,
}

/// How long a quota or an overload lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The program does not say.
    Unknown,
    /// Until this time.
    Until(Time),
    /// That many seconds from now.
    Seconds(u64),
}

/// What a program reported of its turn so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Told {
    /// The name of its session.
    pub session: Option<String>,
    /// The folder in which it says that it works.
    pub cwd: Option<String>,
    /// The agent's last whole message.
    pub text: Option<String>,
    /// The pieces of a message that is not complete yet.
    pub open: String,
    /// How many bytes of these pieces came.
    pub came: usize,
    /// The tokens used. Codex reports the sum over its thread: see [`Spent::since`].
    pub spent: Spent,
    /// The judgement of the last line.
    pub verdict: Option<Verdict>,
    /// When a limit that the program reported ends.
    pub resets: Option<Time>,
    /// Why it tries again, or did last.
    pub retries: Option<String>,
}

/// Most bytes that are stored of a message or a thought that comes in pieces.
pub const KEPT_MAX: usize = 4 << 20;
/// Most bytes of a tool's output that are passed on.
pub const OUTPUT_MAX: usize = 64 << 10;

impl Told {
    /// Takes a piece of a message. A message that is too long loses its middle: it begins with the result of
    /// the turn, and ends with what the agent wants.
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

    /// Takes a whole message.
    pub(super) fn whole(&mut self, text: &str) -> Said {
        self.open.clear();
        self.came = 0;
        self.text = Some(text.to_owned());
        Said::Text(text.to_owned())
    }

    /// Takes the pieces so far as a whole message; `None` if there are none.
    pub(super) fn closed(&mut self) -> Option<Said> {
        if self.open.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.open);
        Some(self.whole(&text))
    }

    /// Takes the session's name; `None` if it is known already.
    pub(super) fn is_session(&mut self, name: &str) -> Option<Said> {
        if name.is_empty() || self.session.as_deref() == Some(name) {
            return None;
        }
        self.session = Some(name.to_owned());
        Some(Said::Session(name.to_owned()))
    }
}

/// Returns the first bytes of a text, at most `most`, without cutting a character.
pub(super) fn head(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// Returns a tool's output as it is passed on: cut to [`OUTPUT_MAX`] bytes.
pub(super) fn output(text: &str) -> String {
    let kept = head(text, OUTPUT_MAX);
    if kept.len() == text.len() { text.to_owned() } else { format!("{kept}\n[of {} bytes]", text.len()) }
}

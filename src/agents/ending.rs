//! How a turn ended: each way has a name, the program's own words, and what mends it.
//!
//! Success is the last line's verdict and exit status 0. A stream without its last line was interrupted. Implements N9.

use super::said::{Cause, Told, Verdict, Wait};
use crate::contract::shown;
use crate::contract::words::Provider;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was never started: there is no such program.
    Missing(String),
    /// It could not be started, for this reason.
    NotStarted(String),
}

/// What the caller knows of a process that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End<'a> {
    /// How it ended.
    pub exit: Exit,
    /// The last of what it wrote to its standard error.
    pub stderr: &'a [u8],
    /// Why the caller ended it, if it did.
    pub stopped: Option<Stop>,
}

/// Why a caller ends a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A person or the flow asked for it.
    Asked,
    /// It said nothing for that many seconds.
    Silence(u64),
    /// The turn's time, that many seconds, was over.
    Time(u64),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "`words` are the program's own")]
pub enum Ending {
    /// Well.
    Completed,
    /// It was stopped, or its stream ended without its last line.
    Interrupted { words: String },
    /// There is no such program.
    MissingProgram { program: String },
    /// The program is logged in no more, or its key is wrong.
    LoginEnded { words: String },
    /// What may be used is used up.
    Quota { words: String, wait: Wait },
    /// The service has too much to do.
    Overload { words: String, wait: Wait },
    /// The service can't be reached, or broke off.
    Unreachable { words: String },
    /// The service takes no such request.
    RequestRefused { words: String },
    /// A limit that was set for the program.
    LimitReached { words: String },
    /// There is no such session: the same turn goes into a new one.
    SessionLost { words: String },
    /// The program can't work as it is set up.
    Misconfigured { words: String },
    /// It said nothing for that many seconds.
    Silent { seconds: u64 },
    /// The turn's time was over.
    OutOfTime { seconds: u64 },
    /// In another way.
    Crashed { exit: Exit, words: String },
}

/// What is to be done after an ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing: it went well.
    Nothing,
    /// The same once more, in a new session.
    Afresh,
    /// The same once more, after this.
    Later(Wait),
    /// A person has to mend something first.
    Mend,
}

impl Ending {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Interrupted { .. } => "interrupted",
            Self::MissingProgram { .. } => "missing-program",
            Self::LoginEnded { .. } => "login-ended",
            Self::Quota { .. } => "quota",
            Self::Overload { .. } => "overload",
            Self::Unreachable { .. } => "unreachable",
            Self::RequestRefused { .. } => "request-refused",
            Self::LimitReached { .. } => "limit-reached",
            Self::SessionLost { .. } => "session-lost",
            Self::Misconfigured { .. } => "misconfigured",
            Self::Silent { .. } => "silent",
            Self::OutOfTime { .. } => "out-of-time",
            Self::Crashed { .. } => "crashed",
        }
    }

    /// What follows from it.
    pub fn next(&self) -> Next {
        match self {
            Self::Completed => Next::Nothing,
            Self::SessionLost { .. } => Next::Afresh,
            Self::Quota { wait, .. } | Self::Overload { wait, .. } => Next::Later(*wait),
            Self::Unreachable { .. } => Next::Later(Wait::Unknown),
            Self::Interrupted { .. }
            | Self::MissingProgram { .. }
            | Self::LoginEnded { .. }
            | Self::RequestRefused { .. }
            | Self::LimitReached { .. }
            | Self::Misconfigured { .. }
            | Self::Silent { .. }
            | Self::OutOfTime { .. }
            | Self::Crashed { .. } => Next::Mend,
        }
    }

    /// The program's own words, where it had some.
    pub fn words(&self) -> &str {
        match self {
            Self::Interrupted { words }
            | Self::LoginEnded { words }
            | Self::Quota { words, .. }
            | Self::Overload { words, .. }
            | Self::Unreachable { words }
            | Self::RequestRefused { words }
            | Self::LimitReached { words }
            | Self::SessionLost { words }
            | Self::Misconfigured { words }
            | Self::Crashed { words, .. } => words,
            Self::Completed | Self::MissingProgram { .. } | Self::Silent { .. } | Self::OutOfTime { .. } => {
                ""
            }
        }
    }

    /// What mends it, for a person; empty where nothing has to be.
    pub fn mend(&self, provider: Provider) -> String {
        match self {
            Self::Completed | Self::SessionLost { .. } => String::new(),
            Self::Interrupted { .. } => "send the node a message to go on".to_owned(),
            Self::MissingProgram { program } => {
                format!("install '{program}', or set 'aynig.provider.{provider}.command' to where it is")
            }
            Self::LoginEnded { .. } => match provider {
                Provider::Claude => "run 'claude /login', or set ANTHROPIC_API_KEY".to_owned(),
                Provider::Codex => "run 'codex login', or set the provider's key".to_owned(),
                Provider::Gemini => "run 'gemini' once to log in, or set GEMINI_API_KEY".to_owned(),
                Provider::Custom => "log the program in".to_owned(),
            },
            Self::Quota { .. } | Self::Overload { .. } | Self::Unreachable { .. } => {
                "nothing: it is tried again later".to_owned()
            }
            Self::RequestRefused { .. } => {
                "reset the node, so that the next turn begins a new session".to_owned()
            }
            Self::LimitReached { .. } => "raise the limit, or send the node a message to go on".to_owned(),
            Self::Misconfigured { .. } => {
                format!("set up the program of '{provider}' so that it works by hand")
            }
            Self::Silent { .. } | Self::OutOfTime { .. } => "send the node a message to try again".to_owned(),
            Self::Crashed { .. } => "read the node's log, then send it a message to try again".to_owned(),
        }
    }
}

/// The exit statuses by which a program says that a signal ended it.
fn by_signal(code: i32) -> bool {
    [129, 130, 137, 143].contains(&code)
}

/// Judges an end by what the program told; `cause` reads its standard error and exit status where it told nothing.
pub(super) fn judge(told: &Told, end: &End, cause: impl Fn(&str, i32) -> Cause) -> Ending {
    let stderr = shown::tail(end.stderr);
    let code = match &end.exit {
        Exit::Missing(program) => return Ending::MissingProgram { program: program.clone() },
        Exit::NotStarted(words) => {
            return Ending::Crashed { exit: end.exit.clone(), words: shown::block(words.as_bytes()) };
        }
        Exit::Code(code) => Some(*code),
        Exit::Signal(_) => None,
    };
    let good = told.verdict == Some(Verdict::Good) && code == Some(0);
    match end.stopped {
        Some(Stop::Asked) if good => return Ending::Completed,
        Some(Stop::Asked) => return Ending::Interrupted { words: "it was asked to stop".to_owned() },
        Some(Stop::Silence(seconds)) => return Ending::Silent { seconds },
        Some(Stop::Time(seconds)) => return Ending::OutOfTime { seconds },
        None => {}
    }
    match (&told.verdict, code) {
        (Some(Verdict::Good), Some(0)) => Ending::Completed,
        (Some(Verdict::Good), _) => Ending::Crashed { exit: end.exit.clone(), words: stderr },
        (Some(Verdict::Aborted), _) => Ending::Interrupted { words: "its turn was aborted".to_owned() },
        (Some(Verdict::Bad(why, words)), _) => of_cause(why, shown::block(words.as_bytes()), end),
        (None, Some(code)) if code != 0 && !by_signal(code) => of_cause(&cause(&stderr, code), stderr, end),
        (None, _) => Ending::Interrupted { words: "its stream ended without its last line".to_owned() },
    }
}

fn of_cause(cause: &Cause, words: String, end: &End) -> Ending {
    match cause {
        Cause::Login => Ending::LoginEnded { words },
        Cause::Quota(wait) => Ending::Quota { words, wait: *wait },
        Cause::Overload(wait) => Ending::Overload { words, wait: *wait },
        Cause::Unreachable => Ending::Unreachable { words },
        Cause::Request => Ending::RequestRefused { words },
        Cause::Limit => Ending::LimitReached { words },
        Cause::SessionLost => Ending::SessionLost { words },
        Cause::Setup => Ending::Misconfigured { words },
        Cause::Unknown => Ending::Crashed { exit: end.exit.clone(), words },
    }
}

/// The cause that a service's answer means: its HTTP status, and the words that came with it.
pub(super) fn of_status(status: Option<u64>, words: &str, wait: Wait) -> Cause {
    let says = |part: &str| words.to_ascii_lowercase().contains(part);
    let used_up = says("quota") || says("usage limit") || says("session limit") || says("hit your");
    match status {
        Some(401 | 403) => Cause::Login,
        Some(402) => Cause::Quota(wait),
        Some(429) if used_up => Cause::Quota(wait),
        Some(429 | 500..=599) => Cause::Overload(wait),
        Some(400..=499) => Cause::Request,
        Some(_) | None if used_up => Cause::Quota(wait),
        Some(_) | None => Cause::Unknown,
    }
}

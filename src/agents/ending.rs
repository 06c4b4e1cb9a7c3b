//! How a turn ended: each ending has a name, the program's own words, and what a person can do about it.
//!
//! A turn succeeded only if its last line says so and the exit status is 0. A stream without its last line
//! counts as interrupted. Implements N9.

use super::said::{Cause, Told, Verdict, Wait};
use crate::contract::shown;
use crate::contract::words::Provider;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It was never started, as there is no program of this name.
    Missing(String),
    /// It could not be started, for this reason.
    NotStarted(String),
}

/// What the caller knows of a process that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End<'a> {
    /// How the process ended.
    pub exit: Exit,
    /// The last bytes that it wrote to standard error.
    pub stderr: &'a [u8],
    /// Why the caller ended it, if the caller did.
    pub stopped: Option<Stop>,
}

/// Why a caller ended a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A person or the flow asked for it.
    Asked,
    /// The program printed nothing for that many seconds.
    Silence(u64),
    /// The turn's time, that many seconds, ran out.
    Time(u64),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "`words` are the program's own")]
pub enum Ending {
    /// It succeeded.
    Completed,
    /// It was stopped, or its output ended without the last line.
    Interrupted { words: String },
    /// There is no such program.
    MissingProgram { program: String },
    /// The program is not logged in any more, or its key is wrong.
    LoginEnded { words: String },
    /// The quota is used up.
    Quota { words: String, wait: Wait },
    /// The service is overloaded.
    Overload { words: String, wait: Wait },
    /// The service can't be reached, or broke the connection.
    Unreachable { words: String },
    /// The service refused the request.
    RequestRefused { words: String },
    /// The program reached a limit that was set for it.
    LimitReached { words: String },
    /// The session does not exist: the same turn is to run in a new one.
    SessionLost { words: String },
    /// The program can't work with its setup.
    Misconfigured { words: String },
    /// The program printed nothing for that many seconds.
    Silent { seconds: u64 },
    /// The turn's time, that many seconds, ran out.
    OutOfTime { seconds: u64 },
    /// It ended in any other way.
    Crashed { exit: Exit, words: String },
}

/// What is to be done after an ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing, as the turn succeeded.
    Nothing,
    /// The same turn runs again, in a new session.
    Afresh,
    /// The same turn runs again, after this wait.
    Later(Wait),
    /// A person has to fix something first.
    Mend,
}

impl Ending {
    /// Returns the name of the ending.
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

    /// Returns what is to be done after it.
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

    /// Returns the program's own words; empty if it had none.
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

    /// Returns what a person can do about it; empty if nothing needs to be done.
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

/// True for the exit statuses by which a program says that a signal ended it.
fn by_signal(code: i32) -> bool {
    [129, 130, 137, 143].contains(&code)
}

/// Judges an end by what the program reported. If it reported no verdict, `cause` judges its standard error
/// and its exit status.
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

/// Returns the cause that a service's answer means, by its HTTP status and the words that came with it.
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

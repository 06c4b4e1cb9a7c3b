//! Arguments of the verbs by which people, commands and branches talk: messages, questions, pauses.
//!
//! They are kept as typed; the code of each verb interprets them. Implements K46, K48, K49, K49a, K50
//! (flags).

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// `send`.
#[derive(Debug, Args)]
pub struct Send {
    /// The branch
    pub branch: OsString,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// The text: each is a paragraph
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// Read the text from a file, '-' for standard input
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "message")]
    pub file: Option<PathBuf>,
    /// What kind of message it is, one lower-case word
    #[arg(long, value_name = "KIND", default_value = "message")]
    pub kind: String,
    /// Hand over this commit's work
    #[arg(long, value_name = "COMMIT")]
    pub attach: Option<OsString>,
    /// Add a trailer
    #[arg(long, value_name = "KEY: VALUE")]
    pub trailer: Vec<String>,
    /// Its id, a UUID of version 7 or 8: one that was sent already is not sent again [default: a new one]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `inbox`.
#[derive(Debug, Args)]
pub struct Inbox {
    /// The branch [default: the run's own, else the current one]
    pub branch: Option<OsString>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Only messages of this kind
    #[arg(long, value_name = "KIND", conflicts_with = "take")]
    pub kind: Option<String>,
    /// Show what waits, then each message as it comes
    #[arg(short, long, conflicts_with = "take")]
    pub follow: bool,
    /// Inside a run: this message is heard, and goes with the run's outcome
    #[arg(long, value_name = "ID")]
    pub take: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `ask`.
#[derive(Debug, Args)]
pub struct Ask {
    /// The question
    pub question: String,
    /// An answer that is offered; without any, every answer is
    #[arg(long, value_name = "CHOICE")]
    pub choice: Vec<String>,
    /// Wait for the answer, and print it
    #[arg(long)]
    pub wait: bool,
    /// Wait no longer than this
    #[arg(long, value_name = "DURATION", requires = "wait")]
    pub timeout: Option<String>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// Flags that all answers share.
#[derive(Debug, Args)]
pub struct Answering {
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// A word to go with it: each is a paragraph
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// The commit that was looked at: refused where the question is about another one by now
    #[arg(long, value_name = "COMMIT")]
    pub seen: Option<OsString>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `answer`.
#[derive(Debug, Args)]
pub struct Answer {
    /// The branch that asks, or the question's id
    #[arg(value_name = "BRANCH|ID")]
    pub what: OsString,
    /// The answer, one of those that are offered
    pub choice: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answering: Answering,
}

/// `approve` and `reject`.
#[derive(Debug, Args)]
pub struct YesOrNo {
    /// The branch that asks, or the question's id
    #[arg(value_name = "BRANCH|ID")]
    pub what: OsString,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answering: Answering,
}

/// `pause`.
#[derive(Debug, Args)]
pub struct Pause {
    /// Branches, as 'aynig.branches' has them; without any, every branch
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Why, for those who meet it
    #[arg(short, long, value_name = "WHY", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// Also end the commands that run: asked first, canceled after the kill grace
    #[arg(long)]
    pub stop: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// Only these pauses, also those of others
    #[arg(value_name = "ID", conflicts_with = "all")]
    pub ids: Vec<String>,
    /// Also the pauses of others
    #[arg(long)]
    pub all: bool,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

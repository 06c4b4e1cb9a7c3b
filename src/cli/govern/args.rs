//! The arguments of `govern`.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// `govern`.
#[derive(Debug, Args)]
pub struct Govern {
    /// What to do about the run
    #[command(subcommand)]
    pub verb: GovernVerb,
}

/// The verbs of a governed run.
#[derive(Debug, Subcommand)]
pub enum GovernVerb {
    /// Begin a run, with a command for each role
    Start(Start),
    /// Show where the run is, and what it waits for
    Status(Look),
    /// Give the next turn to a role
    Assign(Assign),
    /// Accept the result that is staged for a turn
    Accept(Accept),
    /// Reject a turn's result: it is done again
    Reject(Reject),
    /// Let the run enter the next phase
    ApprovePhase(Look),
    /// Let the run end
    ApproveCompletion(Look),
    /// Stop the run until a person unblocks it
    Block(Block),
    /// Let a blocked run go on
    Unblock(Unblock),
    /// Stop the run for a person's decision
    Escalate(Escalate),
    /// Take turns in a plain folder until a person is needed
    Loop(Loop),
    /// Take one turn: what the commands of the roles call
    Turn(Turn),
}

/// Where the run is.
#[derive(Debug, Clone, Args, Default)]
pub struct Where {
    /// The run's branch [default: the current one]
    #[arg(short, long, value_name = "BRANCH", conflicts_with = "root")]
    pub branch: Option<OsString>,
    /// A plain folder that holds agentxchain.json; Git is not asked
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME", conflicts_with = "root")]
    pub remote: Option<String>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// A verb that needs to know no more than where.
#[derive(Debug, Args)]
pub struct Look {
    #[command(flatten)]
    pub place: Where,
}

/// `start`.
#[derive(Debug, Args)]
pub struct Start {
    #[command(flatten)]
    pub place: Where,
    /// The first turn's role [default: the first phase's entry role]
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
}

/// `assign`.
#[derive(Debug, Args)]
pub struct Assign {
    #[command(flatten)]
    pub place: Where,
    /// The role [default: the recommended one]
    #[arg(value_name = "ROLE")]
    pub role: Option<String>,
}

/// `accept`.
#[derive(Debug, Args)]
pub struct Accept {
    #[command(flatten)]
    pub place: Where,
    /// The turn [default: the only active one]
    #[arg(value_name = "TURN")]
    pub turn: Option<String>,
    /// Stage this file as the turn's result first; '-' is standard input
    #[arg(short = 'F', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The conflict that stopped this turn was merged by hand
    #[arg(long)]
    pub human_merge: bool,
}

/// `reject`.
#[derive(Debug, Args)]
pub struct Reject {
    #[command(flatten)]
    pub place: Where,
    /// The turn [default: the only active one]
    #[arg(value_name = "TURN")]
    pub turn: Option<String>,
    /// Why
    #[arg(short, long, value_name = "REASON", allow_hyphen_values = true)]
    pub message: String,
}

/// `block`.
#[derive(Debug, Args)]
pub struct Block {
    #[command(flatten)]
    pub place: Where,
    /// What the run waits for
    #[arg(short, long, value_name = "REASON", allow_hyphen_values = true)]
    pub message: String,
}

/// `unblock`.
#[derive(Debug, Args)]
pub struct Unblock {
    #[command(flatten)]
    pub place: Where,
    /// A note for the decision ledger
    #[arg(short, long, value_name = "NOTE", allow_hyphen_values = true)]
    pub message: Option<String>,
}

/// `escalate`.
#[derive(Debug, Args)]
pub struct Escalate {
    #[command(flatten)]
    pub place: Where,
    /// What has to be decided
    #[arg(short, long, value_name = "REASON", allow_hyphen_values = true)]
    pub message: String,
    /// The turn that it is about [default: the only active one]
    #[arg(long, value_name = "TURN")]
    pub turn: Option<String>,
}

/// `loop`.
#[derive(Debug, Args)]
pub struct Loop {
    /// The folder that holds agentxchain.json
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
    /// Accepted turns after which it ends
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub max_turns: u64,
    /// Approve gates as they come
    #[arg(long)]
    pub approve: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// The worker [default: the command of each role's runtime]
    #[arg(last = true, value_name = "WORKER")]
    pub worker: Vec<OsString>,
}

/// `turn`.
#[derive(Debug, Args)]
pub struct Turn {
    /// The role [default: what follows 'turn/' in the state that is answered]
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// A plain folder that holds agentxchain.json [default: the worktree of the run]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The worker [default: the command of the role's runtime]
    #[arg(last = true, value_name = "WORKER")]
    pub worker: Vec<OsString>,
}

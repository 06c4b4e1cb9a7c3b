//! Arguments as typed: one definition that feeds parsing, `-h`, man pages and completions.
//!
//! The arguments are kept as typed; `app::config` turns flags and configuration into settings. Implements the
//! verbs and flags of git-aynig(1).

pub use super::args_flow::Flow;
pub use super::args_land::{Choose, Compare, Fan, Land};
pub use super::args_serve::{Mcp, Serve};
pub use super::args_talk::{Answer, Answering, Ask, Inbox, Pause, Resume, Send, YesOrNo};
pub use super::choices::{CurrentBranchArg, DialectArg, HooksVerb, UsageBy};
pub use super::deferred::Deferred;
pub use super::govern::args::Govern;
use super::manual;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The heading of flags that every verb takes.
const ANYWHERE: &str = "Options of every verb";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "git-aynig",
    bin_name = "git aynig",
    version,
    about = "Run workflows through Git: a commit that names a state is an event, a tick answers it",
    long_about = manual::AYNIG,
    after_help = "Start with 'git aynig init', or see it play: 'git aynig demo'.",
    after_long_help = manual::AYNIG_MORE,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub anywhere: Anywhere,
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
}

/// Flags that every verb takes.
#[derive(Debug, Args)]
pub struct Anywhere {
    /// Run as if started in this folder
    #[arg(short = 'C', value_name = "PATH", global = true, help_heading = ANYWHERE)]
    pub directory: Vec<PathBuf>,
    /// The repository's Git directory
    #[arg(long, value_name = "PATH", global = true, help_heading = ANYWHERE)]
    pub git_dir: Option<PathBuf>,
    /// Say less: no progress, no notes
    #[arg(short, long, global = true, help_heading = ANYWHERE)]
    pub quiet: bool,
    /// Say more: branches with nothing to do, commits and leases in status
    #[arg(short, long, global = true, help_heading = ANYWHERE, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Scaffold .aynig/ with a first command
    #[command(long_about = manual::INIT, after_long_help = manual::INIT_MORE)]
    Init(Deferred<Init>),
    /// Evaluate branches once
    #[command(long_about = manual::TICK, after_long_help = manual::TICK_MORE)]
    Tick(Deferred<Tick>),
    /// Tick until nothing is actionable
    #[command(long_about = manual::RUN, after_long_help = manual::RUN_MORE)]
    Run(Deferred<Run>),
    /// Write a state event
    #[command(long_about = manual::SET_STATE, after_long_help = manual::SET_STATE_MORE)]
    SetState(Deferred<SetState>),
    /// Take or renew a lease by hand
    #[command(long_about = manual::SET_WORKING, after_long_help = manual::SET_WORKING_MORE)]
    SetWorking(Deferred<SetWorking>),
    /// Show how branches stand, and who waits for a person (--waiting)
    #[command(long_about = manual::STATUS, after_long_help = manual::STATUS_MORE)]
    Status(Deferred<Status>),
    /// Show a branch's state events
    #[command(long_about = manual::EVENTS, after_long_help = manual::EVENTS_MORE)]
    Events(Deferred<Events>),
    /// Show what a command printed
    #[command(long_about = manual::LOGS, after_long_help = manual::LOGS_MORE)]
    Logs(Deferred<Logs>),
    /// Show what a run changed
    #[command(long_about = manual::DIFF, after_long_help = manual::DIFF_MORE)]
    Diff(Deferred<Diff>),
    /// Open a shell where a run's files are
    #[command(long_about = manual::SHELL, after_long_help = manual::SHELL_MORE)]
    Shell(Deferred<Shell>),
    /// Wait until a branch rests, or is in a state
    #[command(long_about = manual::WAIT, after_long_help = manual::WAIT_MORE)]
    Wait(Deferred<Wait>),
    /// Add up what runs have used and cost
    #[command(long_about = manual::USAGE, after_long_help = manual::USAGE_MORE)]
    Usage(Deferred<Usage>),
    /// Say something to a branch, whether it is at work or not
    #[command(long_about = manual::SEND, after_long_help = manual::SEND_MORE)]
    Send(Deferred<Send>),
    /// Show the messages that wait for a branch
    #[command(long_about = manual::INBOX, after_long_help = manual::INBOX_MORE)]
    Inbox(Deferred<Inbox>),
    /// Inside a run: ask a person
    #[command(long_about = manual::ASK, after_long_help = manual::ASK_MORE)]
    Ask(Deferred<Ask>),
    /// Answer a branch's question
    #[command(long_about = manual::ANSWER, after_long_help = manual::ANSWER_MORE)]
    Answer(Deferred<Answer>),
    /// Answer a question with yes
    #[command(long_about = manual::APPROVE, after_long_help = manual::YES_OR_NO_MORE)]
    Approve(Deferred<YesOrNo>),
    /// Answer a question with no
    #[command(long_about = manual::REJECT, after_long_help = manual::YES_OR_NO_MORE)]
    Reject(Deferred<YesOrNo>),
    /// Hold all branches, or some: nothing is started on them; --stop ends what runs
    #[command(long_about = manual::PAUSE, after_long_help = manual::PAUSE_MORE)]
    Pause(Deferred<Pause>),
    /// Have what was paused go on
    #[command(long_about = manual::RESUME, after_long_help = manual::RESUME_MORE)]
    Resume(Deferred<Resume>),
    /// Land branches on another, once the check that its .aynig/land names has passed
    #[command(long_about = manual::LAND, after_long_help = manual::LAND_MORE)]
    Land(Deferred<Land>),
    /// Have several branches answer one trigger
    #[command(long_about = manual::FAN, after_long_help = manual::FAN_MORE)]
    Fan(Deferred<Fan>),
    /// Choose one of the attempts that were begun
    #[command(long_about = manual::CHOOSE, after_long_help = manual::CHOOSE_MORE)]
    Choose(Deferred<Choose>),
    /// Show attempts side by side
    #[command(long_about = manual::COMPARE, after_long_help = manual::COMPARE_MORE)]
    Compare(Deferred<Compare>),
    /// Open the page: what runs, what waits, in a browser
    #[command(long_about = manual::SERVE, after_long_help = manual::SERVE_MORE)]
    Serve(Deferred<Serve>),
    /// Offer a flow's tools to an agent's program, in its turn
    #[command(long_about = manual::MCP, after_long_help = manual::MCP_MORE)]
    Mcp(Deferred<Mcp>),
    /// Take a lease away, wherever its runner is
    #[command(long_about = manual::CANCEL, after_long_help = manual::CANCEL_MORE)]
    Cancel(Deferred<Branches>),
    /// Ask for a stalled branch's work again
    #[command(long_about = manual::RETRY, after_long_help = manual::RETRY_MORE)]
    Retry(Deferred<Branches>),
    /// Say which commands may run in this repository
    #[command(long_about = manual::TRUST, after_long_help = manual::TRUST_MORE)]
    Trust(Deferred<Trust>),
    /// Have commits, merges and pushes start their workflows by themselves
    #[command(long_about = manual::HOOKS, after_long_help = manual::HOOKS_MORE)]
    Hooks(Deferred<Hooks>),
    /// Runs of several roles: turns, gates, approvals
    #[command(long_about = manual::GOVERN, after_long_help = manual::GOVERN_MORE)]
    Govern(Deferred<Govern>),
    /// Flows: agents that hand work to one another, each on its branch
    #[command(long_about = manual::FLOW, after_long_help = manual::FLOW_MORE)]
    Flow(Deferred<Flow>),
    /// Copy a workflow pack into .aynig/
    #[command(long_about = manual::INSTALL, after_long_help = manual::INSTALL_MORE)]
    Install(Deferred<Install>),
    /// Take everything of git-aynig out of this repository
    #[command(long_about = manual::UNINSTALL, after_long_help = manual::UNINSTALL_MORE)]
    Uninstall(Deferred<Uninstall>),
    /// Remove dead slots, old logs and old attempts
    #[command(long_about = manual::GC, after_long_help = manual::GC_MORE)]
    Gc(Deferred<Gc>),
    /// Show what would stop a tick here, and what mends it
    #[command(long_about = manual::DOCTOR, after_long_help = manual::DOCTOR_MORE)]
    Doctor(Deferred<Doctor>),
    /// Play a three-state workflow in a throwaway repository
    #[command(long_about = manual::DEMO, after_long_help = manual::DEMO_MORE)]
    Demo(Deferred<Demo>),
}

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Also trust the commands of the current branch
    #[arg(long)]
    pub trust: bool,
}

/// Flags that `tick` and `run` share.
#[derive(Debug, Args)]
pub struct Ticking {
    /// Branches; without any, every local branch
    #[arg(value_name = "BRANCH")]
    pub branches: Vec<OsString>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Prefer commands of this role
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// What to do about the branch that is checked out here
    #[arg(long, value_enum, value_name = "WHAT", default_value = "include")]
    pub current_branch: CurrentBranchArg,
    /// How long a lease holds without renewal [default: 5m]
    #[arg(long, value_name = "DURATION")]
    pub lease: Option<String>,
    /// How long after its end a lease still counts [default: 0; 30s with a remote, and in the aynig dialect]
    #[arg(long, value_name = "DURATION")]
    pub grace: Option<String>,
    /// End a command that runs longer
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
    /// Commands at a time [default: CPUs]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<usize>,
    /// Show what would be done, and do nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
    /// Show the command's output as it comes, with its branch before each line where several may run at once
    #[arg(long)]
    pub tee: bool,
    /// The LOG_LEVEL that commands are given
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `tick`.
#[derive(Debug, Args)]
pub struct Tick {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub ticking: Ticking,
    /// Go on with a branch until its head is not actionable
    #[arg(long)]
    pub chain: bool,
    /// Return at once; the tick goes on in the background
    #[arg(long, conflicts_with_all = ["dry_run", "tee", "json"])]
    pub detach: bool,
    /// Leave the session that it was started in
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// `run`.
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub ticking: Ticking,
    /// Look again after this long, until stopped
    #[arg(long, value_name = "DURATION")]
    pub every: Option<String>,
}

/// `set-state`.
#[derive(Debug, Args)]
pub struct SetState {
    /// The state
    pub state: String,
    /// The branch; made at HEAD if missing [default: the current one]
    #[arg(short, long, value_name = "BRANCH")]
    pub branch: Option<OsString>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// The message: the first gives the subject, further ones paragraphs of the body
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// Read the message from a file, '-' for standard input
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "message")]
    pub file: Option<PathBuf>,
    /// Add a trailer
    #[arg(long, value_name = "KEY: VALUE")]
    pub trailer: Vec<String>,
    /// Copy the head's dwp-* trailers (or aynig-*, in that dialect)
    #[arg(long)]
    pub keep_trailers: bool,
    /// Push the branch to its remote afterwards
    #[arg(long, conflicts_with_all = ["remote", "emit"])]
    pub push: bool,
    /// Which trailers [default: those of the branch's newest state event, else dwp]
    #[arg(long, value_enum, value_name = "DIALECT", conflicts_with = "emit")]
    pub dialect: Option<DialectArg>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    /// Print the SET_STATE line instead of writing a commit
    #[arg(long, conflicts_with = "branch")]
    pub emit: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `set-working`.
#[derive(Debug, Args)]
pub struct SetWorking {
    /// The branch [default: the current one]
    #[arg(short, long, value_name = "BRANCH")]
    pub branch: Option<OsString>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// How long the lease holds [default: 5m]
    #[arg(long, value_name = "DURATION")]
    pub lease: Option<String>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Branches; without any, those whose head is a state event
    #[arg(value_name = "BRANCH")]
    pub branches: Vec<OsString>,
    /// Those that wait for a person, the oldest first, with the command that answers
    #[arg(long)]
    pub waiting: bool,
    /// Those that a run holds
    #[arg(long)]
    pub running: bool,
    /// Those whose head is newer: as old as this, or since this day or moment
    #[arg(long, value_name = "DURATION|DATE")]
    pub since: Option<String>,
    /// Stay, and redraw what changes; with --json, print each object that changed
    #[arg(short, long, conflicts_with = "porcelain")]
    pub watch: bool,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// One JSON object a line
    #[arg(long, conflicts_with = "porcelain")]
    pub json: bool,
    /// Stable lines for scripts
    #[arg(long)]
    pub porcelain: bool,
}

/// `events`.
#[derive(Debug, Args)]
pub struct Events {
    /// The branch [default: the current one]
    pub branch: Option<OsString>,
    /// Those of all branches, the newest first
    #[arg(long, conflicts_with = "branch")]
    pub all: bool,
    /// Only those that are newer: as old as this, or since this day or moment
    #[arg(long, value_name = "DURATION|DATE")]
    pub since: Option<String>,
    /// Only those of this state; several: of any of them
    #[arg(long = "state", value_name = "STATE")]
    pub states: Vec<String>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Leases and renewals too
    #[arg(long)]
    pub history: bool,
    /// At most this many
    #[arg(short, value_name = "N")]
    pub n: Option<usize>,
    /// Begin with the last ones [10, or -n], then show each as it lands, oldest first
    #[arg(short, long)]
    pub follow: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `logs`.
#[derive(Debug, Args)]
pub struct Logs {
    /// A branch or a commit [default: the current branch]
    #[arg(value_name = "BRANCH|COMMIT")]
    pub what: Option<OsString>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Wait for more while the command runs
    #[arg(short, long)]
    pub follow: bool,
    /// What it complained about instead of what it printed
    #[arg(long)]
    pub stderr: bool,
    /// What it appended to the file that AYNIG_EVENTS names, as JSON lines
    #[arg(long, conflicts_with = "stderr")]
    pub events: bool,
    /// Print the file's path
    #[arg(long)]
    pub path: bool,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// A branch, a run's id or a commit of one [default: the current branch]
    #[arg(value_name = "BRANCH|RUN")]
    pub what: Option<OsString>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Options and paths for git diff
    #[arg(last = true, value_name = "OPTION OR PATH")]
    pub options: Vec<OsString>,
}

/// `shell`.
#[derive(Debug, Args)]
pub struct Shell {
    /// A branch, a run's id or a commit of one [default: the current branch]
    #[arg(value_name = "BRANCH|RUN")]
    pub what: Option<OsString>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
}

/// `wait`.
#[derive(Debug, Args)]
pub struct Wait {
    /// The branch
    pub branch: OsString,
    /// Until it is, or has been meanwhile, in this state; several: in any of them [default: until it rests]
    #[arg(long = "for", value_name = "STATE")]
    pub states: Vec<String>,
    /// At most this long [default: for ever]
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `usage`.
#[derive(Debug, Args)]
pub struct Usage {
    /// What ended since then: a duration ago, a day (in UTC) or a moment [default: ever]
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// What is added up together, besides all of it
    #[arg(long, value_enum)]
    pub by: Option<UsageBy>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// A verb about branches that a run holds, or stalled on.
#[derive(Debug, Args)]
pub struct Branches {
    /// Branches; one with '*', '?' or '[' is a pattern
    #[arg(value_name = "BRANCH", required_unless_present = "all")]
    pub branches: Vec<OsString>,
    /// Every branch whose head says that there is something to do
    #[arg(long, conflicts_with = "branches")]
    pub all: bool,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    /// One JSON object a branch
    #[arg(long)]
    pub json: bool,
}

/// `trust`.
#[derive(Debug, Args)]
pub struct Trust {
    /// Commands come from this ref, whatever a branch holds [default: the current branch]
    #[arg(long, value_name = "REF", conflicts_with_all = ["branches", "revoke", "list"])]
    pub r#ref: Option<OsString>,
    /// Commands come from the branch that asks for them
    #[arg(long, conflicts_with_all = ["revoke", "list"])]
    pub branches: bool,
    /// Trust this repository no longer
    #[arg(long, conflicts_with = "list")]
    pub revoke: bool,
    /// List what is trusted
    #[arg(long)]
    pub list: bool,
}

/// `hooks`.
#[derive(Debug, Args)]
pub struct Hooks {
    /// What to do
    #[arg(value_enum, value_name = "WHAT")]
    pub what: HooksVerb,
}

/// `install`.
#[derive(Debug, Args)]
pub struct Install {
    /// A path, a URL, or owner/name on GitHub
    pub repo: OsString,
    /// A branch, a tag or a whole commit id [default: HEAD]
    #[arg(value_name = "REF")]
    pub reference: Option<String>,
    /// The folder whose .aynig/ is the pack [default: the top]
    pub subfolder: Option<String>,
    /// Show what would come, and write nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// `uninstall`.
#[derive(Debug, Args)]
pub struct Uninstall {
    /// Show what would be removed
    #[arg(long, short = 'n')]
    pub dry_run: bool,
    /// Remove it without a question
    #[arg(long, short)]
    pub force: bool,
    /// Also the work that is on no branch
    #[arg(long)]
    pub attempts: bool,
    /// Also what your own configuration says of this repository
    #[arg(long)]
    pub trust: bool,
}

/// `gc`.
#[derive(Debug, Args)]
pub struct Gc {
    /// Show what would be removed
    #[arg(long, short = 'n')]
    pub dry_run: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Also ask the remote of 'aynig.remote', for ten seconds at most
    #[arg(long)]
    pub network: bool,
    /// Also judge what this branch's commits say, or those of every branch
    #[arg(long, value_name = "BRANCH", num_args = 0..=1)]
    pub history: Option<Option<OsString>>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Keep the repository, here
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

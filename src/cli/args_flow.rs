//! Arguments of `flow`, as typed; the code of each verb interprets them. Implements N2, N5, N13 (forms).

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// `flow`.
#[derive(Debug, Args)]
pub struct Flow {
    /// What to do about flows
    #[command(subcommand)]
    pub verb: FlowVerb,
}

/// The verbs of flows.
#[derive(Debug, Subcommand)]
pub enum FlowVerb {
    /// Write .aynig/command/turn and .aynig/command/route
    Init(Init),
    /// Make a flow
    New(New),
    /// List flows
    List(Look),
    /// Show a flow: its nodes, what they do, what waits
    Show(One),
    /// Add, change or remove a node
    Node(Node),
    /// Add, change or remove an edge
    Edge(Edge),
    /// Say something to a node
    Send(Say),
    /// End a node's turn; with a text, that is its next one
    Interrupt(Say),
    /// Begin a new session with a node's next turn, and drop what waits for it
    Reset(OneNode),
    /// Hold a flow, and interrupt the turns that run
    Pause(One),
    /// Let a flow go on, and nodes that went in a circle
    Resume(Start),
    /// Stop a flow, or one of its nodes
    Stop(MaybeNode),
    /// Let a node that was stopped go on
    Start(OneNode),
    /// Say what turns may change, and whether an orchestrator goes on by itself
    Mode(Mode),
    /// Write a flow's status by hand
    Set(Set),
    /// Remove a flow or a node, with its branches and all that waits for it
    Rm(MaybeNode),
    /// List the calls that wait for a person
    Approvals(Approvals),
    /// Let a call be made
    Approve(Decide),
    /// Have a call not made
    Deny(Decide),
    /// Have a call made with other arguments
    Modify(Modify),
    /// Show or write the texts of roles
    Template(Template),
    /// Show what happened in a flow
    Events(FlowEvents),
    /// List the files that came of a flow's turns
    Artifacts(FlowArtifacts),
    /// Do what follows from a turn: the command of the state 'route'
    Route(FlowRoute),
    /// Have a node's turn: the command of the state 'turn'
    Turn(FlowTurn),
}

impl FlowVerb {
    /// Returns the flow that the verb is about, as typed, and the remote where it is; `None` where the verb is about none, or
    /// finds it by something else.
    pub fn flow(&self) -> Option<(&str, Option<&str>)> {
        let (flow, remote): (_, &Option<String>) = match self {
            Self::Show(args) | Self::Pause(args) => (&args.flow, &args.place.remote),
            Self::Node(args) => match &args.verb {
                NodeVerb::Add(args) => (&args.flow, &args.place.remote),
                NodeVerb::Set(args) => (&args.flow, &args.place.remote),
                NodeVerb::Remove(args) => (&args.flow, &args.place.remote),
            },
            Self::Edge(args) => match &args.verb {
                EdgeVerb::Add(args) => (&args.flow, &args.place.remote),
                EdgeVerb::Set(args) => (&args.flow, &args.place.remote),
                EdgeVerb::Remove(args) => (&args.flow, &args.place.remote),
            },
            Self::Send(args) | Self::Interrupt(args) => (&args.flow, &args.place.remote),
            Self::Reset(args) | Self::Start(args) => (&args.flow, &args.place.remote),
            Self::Resume(args) => (&args.flow, &args.place.remote),
            Self::Stop(args) | Self::Rm(args) => (&args.flow, &args.place.remote),
            Self::Mode(args) => (&args.flow, &args.place.remote),
            Self::Set(args) => (&args.flow, &args.place.remote),
            Self::Events(args) => (&args.flow, &args.remote),
            Self::Artifacts(args) => (&args.flow, &args.remote),
            Self::Approvals(args) => (args.flow.as_ref()?, &args.place.remote),
            Self::Init(_)
            | Self::New(_)
            | Self::List(_)
            | Self::Approve(_)
            | Self::Deny(_)
            | Self::Modify(_)
            | Self::Template(_)
            | Self::Route(_)
            | Self::Turn(_) => return None,
        };
        Some((flow, remote.as_deref()))
    }
}

/// Where flows are, and how is answered.
#[derive(Debug, Clone, Args, Default)]
pub struct Where {
    /// The flows of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `flow init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Trust the commands of the branch that is checked out
    #[arg(long)]
    pub trust: bool,
}

/// `flow new`.
#[derive(Debug, Args)]
pub struct New {
    /// What it is called [default: flow-<8 of its id>]
    pub name: Option<String>,
    /// auto or interactive: whether an orchestrator goes on by itself
    #[arg(long, value_name = "MODE", default_value = "auto")]
    pub mode: String,
    /// Turns change nothing but what is below docs/
    #[arg(long, conflicts_with = "implement")]
    pub plan: bool,
    /// Turns change what their nodes may: the default
    #[arg(long)]
    pub implement: bool,
    /// The commit that its nodes begin at [default: HEAD]
    #[arg(long, value_name = "COMMIT")]
    pub base: Option<OsString>,
    /// The folder of their worktrees that turns start in [default: the top]
    #[arg(long, value_name = "PATH")]
    pub folder: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow list`.
#[derive(Debug, Args)]
pub struct Look {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// A verb about one flow.
#[derive(Debug, Args)]
pub struct One {
    /// The flow, by its name or id
    pub flow: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// A verb that lets something go on.
#[derive(Debug, Args)]
pub struct Start {
    /// The flow, by its name or id
    pub flow: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
}

/// A verb about one node.
#[derive(Debug, Args)]
pub struct OneNode {
    /// The flow, by its name or id
    pub flow: String,
    /// The node, by its alias, label or id
    pub node: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
}

/// A verb about a flow or one of its nodes.
#[derive(Debug, Args)]
pub struct MaybeNode {
    /// The flow, by its name or id
    pub flow: String,
    /// Only this node, by its alias, label or id
    pub node: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow node`.
#[derive(Debug, Args)]
pub struct Node {
    /// What to do about nodes
    #[command(subcommand)]
    pub verb: NodeVerb,
}

/// The verbs of nodes.
#[derive(Debug, Subcommand)]
pub enum NodeVerb {
    /// Add a node, and make its branch
    Add(AddNode),
    /// Change a node
    Set(SetNode),
    /// Remove a node, its branch and all that waits for it
    Remove(OneNode),
}

/// What is said of a node.
#[derive(Debug, Args)]
pub struct Said {
    /// A short name, unique in the flow in any case; empty takes it away
    #[arg(long, value_name = "ALIAS")]
    pub alias: Option<String>,
    /// The text that stands in for the role's template
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// The same from a file, '-' for standard input
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// What it may do, as edgeManagement=none|self|all, writeCode=, writeDocs=, runCommands=, delegateOnly=true|false,
    /// cliPermissionsMode=skip|gated, agentManagementRequiresApproval=, resume=true|false
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// `flow node add`.
#[derive(Debug, Args)]
pub struct AddNode {
    /// The flow, by its name or id
    pub flow: String,
    /// What it is called
    #[arg(long, value_name = "LABEL")]
    pub label: String,
    /// Its role: a template's name, or a word of yours
    #[arg(long, value_name = "ROLE")]
    pub role: String,
    /// claude, codex, gemini or custom
    #[arg(long, value_name = "PROVIDER")]
    pub provider: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub said: Said,
    /// Its id, a UUID: the same twice is one node [default: a new one]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow node set`.
#[derive(Debug, Args)]
pub struct SetNode {
    /// The flow, by its name or id
    pub flow: String,
    /// The node, by its alias, label or id
    pub node: String,
    /// What it is called
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Its role
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// claude, codex, gemini or custom: the next turn begins a new session
    #[arg(long, value_name = "PROVIDER")]
    pub provider: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub said: Said,
    /// The role's template counts again
    #[arg(long, conflicts_with_all = ["prompt", "prompt_file"])]
    pub no_prompt: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow edge`.
#[derive(Debug, Args)]
pub struct Edge {
    /// What to do about edges
    #[command(subcommand)]
    pub verb: EdgeVerb,
}

/// The verbs of edges.
#[derive(Debug, Subcommand)]
pub enum EdgeVerb {
    /// Join two nodes
    Add(AddEdge),
    /// Change an edge
    Set(SetEdge),
    /// Remove an edge
    Remove(RemoveEdge),
}

/// `flow edge add`.
#[derive(Debug, Args)]
pub struct AddEdge {
    /// The flow, by its name or id
    pub flow: String,
    /// The node where it begins
    pub from: String,
    /// The node where it ends
    pub to: String,
    /// Work goes from the first to the second alone
    #[arg(long)]
    pub one_way: bool,
    /// handoff or report [default: by the roles of its ends]
    #[arg(long = "type", value_name = "TYPE")]
    pub edge_type: Option<String>,
    /// What it says [default: task or report]
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Its id, a UUID: an edge of that id is replaced [default: a new one]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow edge set`.
#[derive(Debug, Args)]
pub struct SetEdge {
    /// The flow, by its name or id
    pub flow: String,
    /// The edge's id
    pub edge: String,
    /// Work goes one way alone
    #[arg(long, conflicts_with = "both_ways")]
    pub one_way: bool,
    /// Work goes both ways
    #[arg(long)]
    pub both_ways: bool,
    /// handoff or report
    #[arg(long = "type", value_name = "TYPE")]
    pub edge_type: Option<String>,
    /// What it says
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow edge remove`.
#[derive(Debug, Args)]
pub struct RemoveEdge {
    /// The flow, by its name or id
    pub flow: String,
    /// The edge's id
    pub edge: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow send` and `flow interrupt`.
#[derive(Debug, Args)]
pub struct Say {
    /// The flow, by its name or id
    pub flow: String,
    /// The node, by its alias, label or id
    pub node: String,
    /// The text: each is a paragraph
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// Read the text from a file, '-' for standard input
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "message")]
    pub file: Option<PathBuf>,
    /// Its id, a UUID of version 7 or 8: one that was sent already is not sent again [default: a new one]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow mode`.
#[derive(Debug, Args)]
pub struct Mode {
    /// The flow, by its name or id
    pub flow: String,
    /// auto or interactive: whether an orchestrator goes on by itself
    pub mode: Option<String>,
    /// Turns change nothing but what is below docs/
    #[arg(long, conflicts_with = "implement")]
    pub plan: bool,
    /// Turns change what their nodes may
    #[arg(long)]
    pub implement: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
}

/// `flow set`.
#[derive(Debug, Args)]
pub struct Set {
    /// The flow, by its name or id
    pub flow: String,
    /// queued, running, paused, stopped, completed or failed
    #[arg(long, value_name = "STATUS")]
    pub status: String,
    /// How it ended, in a few words
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
    pub message: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
}

/// `flow approvals`.
#[derive(Debug, Args)]
pub struct Approvals {
    /// Only those of this flow
    pub flow: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow approve` and `flow deny`.
#[derive(Debug, Args)]
pub struct Decide {
    /// The approval's id
    pub approval: String,
    /// A word for the agent
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow modify`.
#[derive(Debug, Args)]
pub struct Modify {
    /// The approval's id
    pub approval: String,
    /// The arguments that are wanted, a JSON object
    #[arg(required_unless_present = "file")]
    pub args: Option<String>,
    /// Read them from a file, '-' for standard input
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "args")]
    pub file: Option<PathBuf>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow template`.
#[derive(Debug, Args)]
pub struct Template {
    /// What to do about templates
    #[command(subcommand)]
    pub verb: TemplateVerb,
}

/// The verbs of templates.
#[derive(Debug, Subcommand)]
pub enum TemplateVerb {
    /// List them
    List(Look),
    /// Show one
    Show(OneTemplate),
    /// Write one of the repository's own
    Set(SetTemplate),
    /// Remove one of the repository's own
    Rm(OneTemplate),
}

/// A verb about one template.
#[derive(Debug, Args)]
pub struct OneTemplate {
    /// Its name
    pub name: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow template set`.
#[derive(Debug, Args)]
pub struct SetTemplate {
    /// Its name: letters, digits, '_' and '-'
    pub name: String,
    /// The text: each is a paragraph
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// Read the text from a file, '-' for standard input
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "message")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub place: Where,
}

/// `flow events`.
#[derive(Debug, Args)]
pub struct FlowEvents {
    /// The flow, by name or id
    pub flow: String,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Where its log is kept [default: aynig.dataDir, else aynig/data in the Git directory]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Then each event as it comes
    #[arg(short, long)]
    pub follow: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `flow artifacts`.
#[derive(Debug, Args)]
pub struct FlowArtifacts {
    /// The flow, by name or id
    pub flow: String,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Where they are kept [default: aynig.dataDir, else aynig/data in the Git directory]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `flow route`.
#[derive(Debug, Args)]
pub struct FlowRoute {}

/// `flow turn`.
#[derive(Debug, Args)]
pub struct FlowTurn {}

//! `flow list` and `flow show`: the flows and their nodes, read from refs as they are now.
//!
//! A ref that holds no flow is listed with the reason, and hides no other. Implements N3 (what a node does),
//! N2 (looking).

use crate::app::AppError;
use crate::app::config::Flags;
use crate::app::session::Session;
use crate::contract::flow::NodeFile;
use crate::contract::id::NodeId;
use crate::contract::words::NodeStatus;
use crate::flow::approval::TOOL;
use crate::flow::nodes::status_of;
use crate::flow::store::Listed;
use crate::flow::{FlowError, Flows, Kept};
use crate::protocol::inbox::parse_inbox_ref;
use crate::protocol::message::Message;
use crate::runner::talk::ask::Asked;
use crate::runner::{Runner, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;

/// A node as it is now.
#[derive(Debug)]
pub struct NodeView {
    pub id: NodeId,
    /// The node's file in the flow.
    pub file: NodeFile,
    /// What the node is doing.
    pub status: NodeStatus,
    /// The first line of its head's message; `None` where its branch is gone.
    pub summary: Option<String>,
    /// How many messages wait for it.
    pub waiting: usize,
    /// The questions that it asks; true for one that is to have a call of a tool allowed.
    pub asks: Vec<(Asked, bool)>,
    /// Whether its branch is held by the flow.
    pub held: bool,
}

/// A flow as it is now.
#[derive(Debug)]
pub struct FlowView {
    /// The flow.
    pub kept: Kept,
    /// Its nodes, in the order in which they were made.
    pub nodes: Vec<NodeView>,
}

fn look<T>(
    session: &Session,
    flags: &Flags,
    work: impl FnOnce(&Runner<'_>) -> Result<T, FlowError>,
) -> Result<T, AppError> {
    let settings = session.settings(flags)?;
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    runner.store.refresh()?;
    work(&runner).map_err(|error| match error {
        FlowError::Talk(error) => AppError::talked(error, settings.remote.clone()),
        error => error.into(),
    })
}

/// Returns all flows, in the order of their creation.
pub fn list(session: &Session, flags: &Flags) -> Result<Vec<Listed>, AppError> {
    look(session, flags, |runner| Flows::new(runner).all())
}

/// Returns one flow with its nodes.
pub fn show(session: &Session, flags: &Flags, name: &str) -> Result<FlowView, AppError> {
    look(session, flags, |runner| view(runner, Flows::new(runner).named(name)?))
}

/// Looks at the nodes of a flow as they are now.
pub fn view(runner: &Runner<'_>, kept: Kept) -> Result<FlowView, FlowError> {
    let open = runner.open_questions(None)?;
    let inbox = runner.store.scan(&format!("refs/aynig/inbox/flow/{}/", kept.flow.run.slug))?;
    let mut nodes = Vec::new();
    for (id, file) in &kept.flow.nodes {
        let branch = RefName::branch(&file.branch);
        let tip = runner.read_tip(&branch)?;
        let mut asks = Vec::new();
        for (asked, _) in open.iter().filter(|(asked, _)| asked.branch() == branch) {
            asks.push((asked.clone(), is_call(runner, asked)?));
        }
        let is_for =
            |name: &RefName| parse_inbox_ref(name.as_bytes()).is_some_and(|at| at.branch == branch.short());
        nodes.push(NodeView {
            id: *id,
            file: file.clone(),
            status: status_of(tip.as_ref(), !asks.is_empty()),
            summary: tip.as_ref().map(summary),
            waiting: inbox.iter().filter(|(name, _)| is_for(name)).count(),
            asks,
            held: kept.flow.holds(*id),
        });
    }
    Ok(FlowView { kept, nodes })
}

/// True where a question is to have a call of a tool allowed: a person approves or denies such a question,
/// and answers any other.
fn is_call(runner: &Runner<'_>, asked: &Asked) -> Result<bool, FlowError> {
    let commit = runner.store.read_commit(asked.commit)?;
    let said = Message::parse(&commit.message);
    Ok(said.last(TOOL).is_some())
}

fn summary(tip: &Tip) -> String {
    let line = tip.commit.message.split(|b| *b == b'\n').next().unwrap_or_default();
    crate::contract::shown::line(line)
}

//! `flow`: agents that hand work to one another, each on a branch of its own; one file per group of verbs.
//!
//! Each verb takes arguments, and prints lines, or objects with `--json`. Implements N2, N5, N13.

mod approvals;
mod build;
mod events;
mod init;
mod look;
mod route;
mod steer;
mod templates;
mod turn;

use super::args_flow::{FlowVerb, Where};
use super::fail::Failure;
use super::hints::remote_option;
use super::output;
use super::session::Global;
use crate::app::change::Change;
use crate::app::config::Flags;
use crate::app::flow::lines::ChangeLine;
use crate::app::session::Session;
use crate::contract::id::{EdgeId, NodeId};
use crate::flow::Kept;
use crate::protocol::text::{escape, shell_word};

/// Runs `git aynig flow`.
pub(super) fn run(global: &Global, verb: &FlowVerb) -> Result<i32, Failure> {
    perform(global, verb).map_err(|mut failed| {
        // A hint about 'a flow' means the one that was typed.
        if let Some((flow, remote)) = verb.flow() {
            let flow = typed(flow, remote);
            failed.hints.iter_mut().for_each(|hint| *hint = hint.replace(" <flow>", &flow));
        }
        failed
    })
}

/// Returns the arguments of a command, with a space before them, that name a flow as it was typed.
fn typed(flow: &str, remote: Option<&str>) -> String {
    let dashes = if flow.starts_with('-') { "-- " } else { "" };
    format!("{} {dashes}{}", remote_option(remote), shell_word(flow.as_bytes()))
}

fn perform(global: &Global, verb: &FlowVerb) -> Result<i32, Failure> {
    match verb {
        FlowVerb::Events(args) => events::run(global, args),
        FlowVerb::Artifacts(args) => events::artifacts(global, args),
        FlowVerb::Route(_) => route::run(global),
        FlowVerb::Turn(_) => turn::run(global),
        FlowVerb::Init(args) => init::run(global, args),
        FlowVerb::New(args) => build::new(global, args),
        FlowVerb::List(args) => look::list(global, args),
        FlowVerb::Show(args) => look::show(global, args),
        FlowVerb::Node(args) => build::node(global, &args.verb),
        FlowVerb::Edge(args) => build::edge(global, &args.verb),
        FlowVerb::Send(args) => steer::send(global, args),
        FlowVerb::Interrupt(args) => steer::interrupt(global, args),
        FlowVerb::Reset(args) => steer::reset(global, args),
        FlowVerb::Pause(args) => steer::pause(global, args),
        FlowVerb::Resume(args) => steer::resume(global, args),
        FlowVerb::Stop(args) => steer::stop(global, args),
        FlowVerb::Start(args) => steer::start(global, args),
        FlowVerb::Mode(args) => steer::mode(global, args),
        FlowVerb::Set(args) => steer::set(global, args),
        FlowVerb::Rm(args) => steer::rm(global, &args.place, &args.flow, args.node.as_deref()),
        FlowVerb::Approvals(args) => approvals::list(global, args),
        FlowVerb::Approve(args) => approvals::approve(global, args),
        FlowVerb::Deny(args) => approvals::deny(global, args),
        FlowVerb::Modify(args) => approvals::modify(global, args),
        FlowVerb::Template(args) => templates::run(global, &args.verb),
    }
}

fn flags(place: &Where) -> Flags {
    Flags { remote: place.remote.clone(), ..Flags::default() }
}

/// Opens the repository, and runs `work` with a [`Change`] of the flows that `place` means: the local ones,
/// or those of a remote.
fn changing<T>(
    global: &Global,
    place: &Where,
    work: impl FnOnce(&Change<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let session: Session = global.open()?;
    let change = Change::begin(&session, &flags(place))?;
    work(&change)
}

/// Prints what became of a flow: an object with `--json`, else `line`.
fn told(place: &Where, kept: &Kept, part: Part, line: &str) {
    let (node, edge) = match part {
        Part::Whole => (None, None),
        Part::Node(id) => (Some(id), None),
        Part::Edge(id) => (None, Some(id)),
    };
    match place.json {
        true => output::line(&output::json(&ChangeLine::of(kept, node, edge))),
        false => output::line(line),
    }
}

/// The part of a flow that a verb was about.
#[derive(Debug, Clone, Copy)]
enum Part {
    Whole,
    Node(NodeId),
    Edge(EdgeId),
}

fn name(kept: &Kept) -> String {
    escape(kept.flow.run.name.as_bytes())
}

/// Returns a node's name for people, escaped: its alias or label, or its id where the flow has no such node.
fn node_name(kept: &Kept, node: NodeId) -> String {
    let config = kept.flow.nodes.get(&node).map(|file| &file.config);
    let name = config.map(|config| config.called().to_owned());
    escape(name.unwrap_or_else(|| node.to_string()).as_bytes())
}

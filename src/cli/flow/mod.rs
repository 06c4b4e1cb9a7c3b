//! `flow`: agents that hand work to one another, each on a branch of its own; one file a verb.
//!
//! Implements N5, N13.

mod events;
mod route;
mod turn;

use super::args_flow::FlowVerb;
use super::fail::Failure;
use super::session::Global;

/// `git aynig flow`.
pub(super) fn run(global: &Global, verb: &FlowVerb) -> Result<i32, Failure> {
    match verb {
        FlowVerb::Events(args) => events::run(global, args),
        FlowVerb::Artifacts(args) => events::artifacts(global, args),
        FlowVerb::Route(_) => route::run(global),
        FlowVerb::Turn(_) => turn::run(global),
    }
}

//! `govern`: governed runs, where roles take turns, gates hold phases, and people approve.
//!
//! `start` begins a run on a branch. A tick then answers the state `turn/<role>` with that role's command,
//! which calls `turn`. Each act of a person (`people`) is one commit. The acts themselves are in
//! [`crate::app::govern`]; this folder has their arguments, their output, and the commands that mend their
//! failures (`failure`). Implements G6-G9.

pub(crate) mod args;
mod failure;
mod looping;
mod people;
mod place;
mod start;
mod status;
mod turn;

use super::fail::Failure;
use super::output;
use super::session::Global;
use crate::app::govern::driver::Audience;
use args::GovernVerb;

/// Passes on what workers print, to standard error: on standard output a worker's line could pass for a
/// declaration of this program.
struct Aloud;

impl Audience for Aloud {
    fn printed(&self, bytes: &[u8]) {
        output::raw(true, bytes);
    }

    fn survived(&self, processes: u32) {
        output::note(&format!("warning: {processes} processes of the worker can't be killed"));
    }
}

/// Runs `git aynig govern`.
pub(crate) fn run(global: &Global, verb: &GovernVerb) -> Result<i32, Failure> {
    match verb {
        GovernVerb::Start(args) => start::run(global, args),
        GovernVerb::Status(args) => status::run(global, args),
        GovernVerb::Assign(args) => people::assign(global, args),
        GovernVerb::Accept(args) => people::accept(global, args),
        GovernVerb::Reject(args) => people::reject(global, args),
        GovernVerb::ApprovePhase(args) => people::approve_phase(global, args),
        GovernVerb::ApproveCompletion(args) => people::approve_completion(global, args),
        GovernVerb::Block(args) => people::block(global, args),
        GovernVerb::Unblock(args) => people::unblock(global, args),
        GovernVerb::Escalate(args) => people::escalate(global, args),
        GovernVerb::Loop(args) => looping::run(global, args),
        GovernVerb::Turn(args) => turn::run(global, args),
    }
}

/// Runs `git aynig govern conformance`: reads a fixture of the public corpus from standard input, and prints
/// the verdict. Returns the exit code: 0 for pass, 1 for fail, 2 for error, 3 for not implemented. Implements
/// G10.
#[cfg(feature = "conformance")]
pub(crate) fn conformance() -> i32 {
    let mut fixture = Vec::new();
    if let Err(error) = std::io::Read::read_to_end(&mut std::io::stdin(), &mut fixture) {
        output::error(&Failure::fatal(format!("cannot read fixture: {error}")).render());
        return 2;
    }
    let (verdict, code) = crate::conformance::conformance(&fixture);
    output::line(verdict.trim_end());
    code
}

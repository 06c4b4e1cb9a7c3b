//! `govern`: governed runs, where roles take turns, gates hold phases, and people approve.
//!
//! `start` begins a run on a branch; the kernel then answers `turn/<role>` with that role's command, which
//! calls `turn`; what people do (`people`) is a commit each. `place` is how anything is written, `next` what
//! it is followed by, `worker` who does the work of a turn. Implements G6-G9.

pub mod args;
mod dispatch;
mod looping;
mod merges;
mod next;
mod people;
mod place;
mod start;
mod status;
mod turn;
mod worker;

use super::fail::Failure;
use super::session::Global;
use args::GovernVerb;

/// `git aynig govern`.
pub fn run(global: &Global, verb: &GovernVerb) -> Result<i32, Failure> {
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

/// `git aynig govern conformance`: a fixture of the public corpus on standard input, the verdict on standard output.
/// Exits with 0 for pass, 1 for fail, 2 for error, 3 for not implemented. Implements G10.
#[cfg(feature = "conformance")]
pub fn conformance() -> i32 {
    let mut fixture = Vec::new();
    if let Err(error) = std::io::Read::read_to_end(&mut std::io::stdin(), &mut fixture) {
        super::output::error(&Failure::fatal(format!("cannot read fixture: {error}")).render());
        return 2;
    }
    let (verdict, code) = crate::conformance::conformance(&fixture);
    super::output::line(verdict.trim_end());
    code
}

//! The verbs by which people act on a governed run.

use super::super::fail::Failure;
use super::super::session::Global;
use super::args::{Accept, Assign, Block, Escalate, Look, Reject, Unblock};
use super::place::change;
use crate::app::govern::acts;
use crate::governed::{RESULT_MAX, Resolution};
use std::io::Read;

/// Runs `git aynig govern assign`.
pub(crate) fn assign(global: &Global, args: &Assign) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| acts::assign(root, config, args.role.as_deref()))
}

/// Runs `git aynig govern accept`.
pub(crate) fn accept(global: &Global, args: &Accept) -> Result<i32, Failure> {
    let given = args.file.as_ref().map(|path| read(path)).transpose()?;
    let resolution = if args.human_merge { Resolution::HumanMerge } else { Resolution::Standard };
    change(global, &args.place, |root, config| {
        acts::accept(root, config, args.turn.as_deref(), given.as_deref(), resolution)
    })
}

/// Reads a result; of one that is larger than any that is taken, a byte too many, so that it is refused as such.
fn read(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(RESULT_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(RESULT_MAX + 1).read_to_end(&mut bytes))
    };
    read.map_err(|e| Failure::fatal(format!("cannot read '{}': {e}", path.display())))?;
    Ok(bytes)
}

/// Runs `git aynig govern reject`.
pub(crate) fn reject(global: &Global, args: &Reject) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| {
        acts::reject(root, config, args.turn.as_deref(), &args.message)
    })
}

/// Runs `git aynig govern approve-phase`.
pub(crate) fn approve_phase(global: &Global, args: &Look) -> Result<i32, Failure> {
    change(global, &args.place, acts::approve_phase)
}

/// Runs `git aynig govern approve-completion`.
pub(crate) fn approve_completion(global: &Global, args: &Look) -> Result<i32, Failure> {
    change(global, &args.place, acts::approve_completion)
}

/// Runs `git aynig govern block`.
pub(crate) fn block(global: &Global, args: &Block) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| acts::block(root, config, &args.message))
}

/// Runs `git aynig govern unblock`.
pub(crate) fn unblock(global: &Global, args: &Unblock) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| acts::unblock(root, config, args.message.as_deref()))
}

/// Runs `git aynig govern escalate`.
pub(crate) fn escalate(global: &Global, args: &Escalate) -> Result<i32, Failure> {
    change(global, &args.place, |root, config| {
        acts::escalate(root, config, args.turn.as_deref(), &args.message)
    })
}

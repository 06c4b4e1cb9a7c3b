//! `flow route`: the command of the state `route`. It declares what comes next, as any command does.
//! Implements N5.

use super::super::declare;
use super::super::fail::Failure;
use super::super::session::Global;
use crate::app::change::Change;
use crate::app::config::Flags;
use crate::app::flow::route::route;

/// Runs `git aynig flow route`.
pub(super) fn run(global: &Global) -> Result<i32, Failure> {
    let session = global.open()?;
    let change = Change::begin(&session, &Flags::default())?;
    let routed = route(&change)?;
    declare::aloud(&routed.declaration.to_json())?;
    Ok(0)
}

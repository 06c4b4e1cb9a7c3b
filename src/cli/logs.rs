//! `logs`.
use super::args::Logs;
use super::fail::Failure;
use super::session::Global;

/// `git aynig logs`.
pub fn run(_: &Global, _: &Logs) -> Result<i32, Failure> {
    Ok(0)
}

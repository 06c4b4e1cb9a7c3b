//! `events`.
use super::args::Events;
use super::fail::Failure;
use super::session::Global;

/// `git aynig events`.
pub fn run(_: &Global, _: &Events) -> Result<i32, Failure> {
    Ok(0)
}

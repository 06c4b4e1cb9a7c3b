//! `status`.
use super::args::Status;
use super::fail::Failure;
use super::session::Global;

/// `git aynig status`.
pub fn run(_: &Global, _: &Status) -> Result<i32, Failure> {
    Ok(0)
}

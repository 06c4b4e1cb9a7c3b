//! `demo`.
use super::args::Demo;
use super::fail::Failure;
use super::session::Global;

/// `git aynig demo`.
pub fn run(_: &Global, _: &Demo) -> Result<i32, Failure> {
    Ok(0)
}

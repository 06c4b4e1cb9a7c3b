//! `gc`.
use super::args::Gc;
use super::fail::Failure;
use super::session::Global;

/// `git aynig gc`.
pub fn run(_: &Global, _: &Gc) -> Result<i32, Failure> {
    Ok(0)
}

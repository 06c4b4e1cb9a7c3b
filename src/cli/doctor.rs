//! `doctor`.
use super::args::Doctor;
use super::fail::Failure;
use super::session::Global;

/// `git aynig doctor`.
pub fn run(_: &Global, _: &Doctor) -> Result<i32, Failure> {
    Ok(0)
}

//! A declaration of a verb that is itself a command: written to the file that the run reads, or printed.
//!
//! Implements K19 (a result file alone counts where it has content).

use super::fail::Failure;
use super::output;
use crate::protocol::declaration::LINE_PREFIX;
use crate::store::beneath;
use std::path::Path;

/// Declares; a worker that knows where a declaration may be written instead of printed has not made this one.
pub fn over(declared: &str) -> Result<(), Failure> {
    let Some(path) = std::env::var_os("AYNIG_RESULT").filter(|path| !path.is_empty()) else { return Ok(()) };
    let (folder, name) = beneath::apart(Path::new(&path)).map_err(|e| Failure::caused(&e))?;
    folder.replace(name, declared.as_bytes(), 0o600).map_err(|e| Failure::caused(&e))
}

/// The same, and says it on standard output as a line that declares.
pub fn aloud(declared: &str) -> Result<(), Failure> {
    over(declared)?;
    output::line(&format!("{LINE_PREFIX}{declared}"));
    Ok(())
}

//! Declarations of verbs that are themselves a run's command: written to the run's result file, and printed.
//!
//! Implements K19 (a result file alone counts where it has content).

use super::fail::Failure;
use super::output;
use crate::protocol::declaration::LINE_PREFIX;
use crate::store::beneath;
use std::path::Path;

/// Writes the declaration to the file that `AYNIG_RESULT` names, where it names one, over whatever is there:
/// a worker of this verb inherits the variable, and what the worker declared must not count in place of this
/// declaration.
pub fn over(declared: &str) -> Result<(), Failure> {
    let Some(path) = std::env::var_os("AYNIG_RESULT").filter(|path| !path.is_empty()) else { return Ok(()) };
    let (folder, name) = beneath::apart(Path::new(&path)).map_err(|e| Failure::caused(&e))?;
    folder.replace(name, declared.as_bytes(), 0o600).map_err(|e| Failure::caused(&e))
}

/// Writes the declaration as [`over`] does, and also prints it to standard output as a `SET_STATE` line.
pub fn aloud(declared: &str) -> Result<(), Failure> {
    over(declared)?;
    output::line(&format!("{LINE_PREFIX}{declared}"));
    Ok(())
}

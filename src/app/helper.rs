//! `git-aynig-serve`, the package beside this one: the page, and the server of a flow's tools.
//!
//! It lies beside this program, or on PATH, as Git has its helpers; who needs it looks for it. Implements W1.

use std::path::PathBuf;

/// The program.
pub const PROGRAM: &str = "git-aynig-serve";

/// Where it is; `None` where it is not installed.
pub fn find() -> Option<PathBuf> {
    beside().or_else(|| which::which(PROGRAM).ok())
}

/// The program in the folder of this one.
fn beside() -> Option<PathBuf> {
    let here = std::fs::canonicalize(std::env::current_exe().ok()?).ok()?;
    let program = here.with_file_name(PROGRAM);
    program.is_file().then_some(program)
}

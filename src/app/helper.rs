//! `git-aynig-serve`, a program of a package beside this one: it serves the page, and a flow's tools.
//!
//! It is looked for beside this program, then on PATH, as Git does with its helpers, and only when it is
//! needed. Implements W1.

use std::path::PathBuf;

/// The name of the helper program.
pub const PROGRAM: &str = "git-aynig-serve";

/// Returns the helper's path; `None` where it is not installed.
pub fn find() -> Option<PathBuf> {
    // An entry of PATH that is relative would lead into the folder that this process is in, a branch's.
    beside().or_else(|| which::which_in(PROGRAM, std::env::var_os("PATH"), "/").ok())
}

/// Returns the helper's path where it lies in the folder of this program, links resolved.
fn beside() -> Option<PathBuf> {
    let here = std::fs::canonicalize(std::env::current_exe().ok()?).ok()?;
    let program = here.with_file_name(PROGRAM);
    program.is_file().then_some(program)
}

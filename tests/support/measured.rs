//! While lines are counted (`tests/campaign/coverage`): what the processes of a test need for that.

use std::ffi::OsString;
use std::path::Path;

const PLACE: &str = "LLVM_PROFILE_FILE";

/// Where each process leaves its count.
pub fn variable() -> Option<(&'static str, OsString)> {
    Some((PLACE, std::env::var_os(PLACE)?))
}

/// A configuration in which the counts of processes that were not told where are not seen.
pub fn config(config: &str, home: &Path) -> String {
    if variable().is_none() {
        return config.to_owned();
    }
    let ignored = home.join("ignored");
    std::fs::write(&ignored, "*.profraw\n").unwrap();
    format!("{config}[core]\n\texcludesFile = {}\n", ignored.display())
}

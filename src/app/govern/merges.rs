//! How Git merges the files of two runs: by rules that any Git knows, without a driver of ours.
//!
//! Files that runs append to take both sides' lines. So does the state of a completed run, whose file is laid
//! out for that. For the state of a run that is under way a person chooses, as in any conflict; its rule is
//! therefore in `.gitattributes` only while the run is completed. Implements G15.

use crate::governed::{GovernedError, Root, RunStatus, State, disk};
use std::path::Path;

const FILE: &str = ".agentxchain/.gitattributes";
const MERGED: &str = "*.jsonl merge=union\n/.gitattributes merge=union\n";
const STATE_MERGED: &str = "/state.json merge=union";
const TALK_MERGED: &str = "/TALK.md merge=union";

/// Writes the rules by which Git merges logs and talk, unless the project has its own.
pub(crate) fn logs(root: &Root) -> Result<(), GovernedError> {
    disk::scaffold(root, &root.folder().join(FILE), MERGED, 0o666)?;
    let path = root.folder().join(".gitattributes");
    let rules = read(root, &path)?.unwrap_or_default();
    if rules.lines().any(|line| line.contains("TALK.md")) {
        return Ok(());
    }
    let between = if rules.is_empty() || rules.ends_with('\n') { "" } else { "\n" };
    disk::append(root, &path, &format!("{between}{TALK_MERGED}\n"))
}

/// Writes the rule by which Git merges the state while the run is completed, and removes it otherwise.
pub(crate) fn follow(root: &Root, state: &State) -> Result<(), GovernedError> {
    let path = root.folder().join(FILE);
    let is_over = state.status() == Some(RunStatus::Completed);
    let found = read(root, &path)?;
    let rules = found.clone().unwrap_or_else(|| if is_over { MERGED.to_owned() } else { String::new() });
    let mut lines: Vec<&str> = rules.lines().filter(|line| *line != STATE_MERGED).collect();
    lines.extend(is_over.then_some(STATE_MERGED));
    let wanted: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    if wanted == found.unwrap_or_default() {
        return Ok(());
    }
    disk::write_whole(root, &path, wanted.as_bytes())
}

fn read(root: &Root, path: &Path) -> Result<Option<String>, GovernedError> {
    Ok(disk::read(root, path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

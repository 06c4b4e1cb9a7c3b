//! How Git keeps and merges the files of two runs: by rules that any Git knows, without a driver of ours.
//!
//! Files that runs append to take both sides' lines. So does the state of a completed run, whose file is laid
//! out for that. For the state of a run that is under way a person chooses, as in any conflict; its rule is
//! therefore in `.gitattributes` only while the run is completed. Nothing of a run's own files is converted: what
//! is committed is what was written, and a checkout of it is clean. Implements G12, G15.

use crate::governed::{GovernedError, Root, RunStatus, State, disk, observe};
use std::path::Path;

const FILE: &str = ".agentxchain/.gitattributes";
/// The file of rules that is the project's own, with a line of ours.
const PROJECTS: &str = ".gitattributes";
/// Nothing is converted. An encoding can only be unset with '!': of '-' Git says that it is no encoding, and stops.
const KEPT: &str = "* -text -ident -filter !working-tree-encoding";
const MERGED: &str =
    "* -text -ident -filter !working-tree-encoding\n*.jsonl merge=union\n/.gitattributes merge=union\n";
const STATE_MERGED: &str = "/state.json merge=union";
const TALK_MERGED: &str = "/TALK.md merge=union -text -ident -filter !working-tree-encoding";
/// Lines of ours, as they were before line ends had a rule, and before other conversions had one.
const LOGS_MERGED_ONLY: &str = "*.jsonl merge=union";
const LINES_KEPT: &str = "* -text";
const TALK_BEFORE: [&str; 2] = ["/TALK.md merge=union", "/TALK.md merge=union -text"];

/// Writes the rules by which Git keeps and merges logs and talk, unless the project has its own; what an
/// older version wrote gets what it lacks. Returns the paths that are to be committed although rules for
/// ignoring hide them.
pub(crate) fn logs(root: &Root) -> Result<Vec<String>, GovernedError> {
    let path = root.folder().join(FILE);
    disk::scaffold(root, &path, MERGED, 0o666)?;
    let rules = read(root, &path)?.unwrap_or_default();
    let has = |rule: &str| rules.lines().any(|line| line == rule);
    if has(LOGS_MERGED_ONLY) && !has(KEPT) {
        let others: String =
            rules.split_inclusive('\n').filter(|line| line.trim_end() != LINES_KEPT).collect();
        disk::write_whole(root, &path, format!("{KEPT}\n{others}").as_bytes())?;
    }
    talk(root)?;
    // Where the project tracks the file, it is committed as any file is, with what attributes make of it.
    observe::hidden(root, &[PROJECTS])
}

fn talk(root: &Root) -> Result<(), GovernedError> {
    let path = root.folder().join(PROJECTS);
    let rules = read(root, &path)?.unwrap_or_default();
    let is_text = !rules.contains(char::REPLACEMENT_CHARACTER);
    if is_text && rules.lines().any(|line| TALK_BEFORE.contains(&line)) {
        let whole = |line: &str| match TALK_BEFORE.contains(&line.trim_end()) {
            true => line.replace(line.trim_end(), TALK_MERGED),
            false => line.to_owned(),
        };
        let rules: String = rules.split_inclusive('\n').map(whole).collect();
        return disk::write_whole(root, &path, rules.as_bytes());
    }
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

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
    let has = |rule: &str| lines(&rules).any(|line| line == rule.as_bytes());
    if has(LOGS_MERGED_ONLY) && !has(KEPT) {
        let raw = rules.split_inclusive(|byte| *byte == b'\n');
        let others = raw.filter(|line| line.trim_ascii_end() != LINES_KEPT.as_bytes()).flatten();
        let wanted: Vec<u8> = KEPT.as_bytes().iter().chain(b"\n").chain(others).copied().collect();
        disk::write_whole(root, &path, &wanted)?;
    }
    talk(root)?;
    // Where the project tracks the file, it is committed as any file is, with what attributes make of it.
    observe::hidden(root, &[PROJECTS])
}

fn talk(root: &Root) -> Result<(), GovernedError> {
    let path = root.folder().join(PROJECTS);
    let rules = read(root, &path)?.unwrap_or_default();
    let is_before = |line: &[u8]| TALK_BEFORE.iter().any(|before| before.as_bytes() == line);
    if lines(&rules).any(is_before) {
        let whole = |raw: &[u8]| {
            let (line, end) = raw.split_at(raw.trim_ascii_end().len());
            [if is_before(line) { TALK_MERGED.as_bytes() } else { line }, end].concat()
        };
        let rules: Vec<u8> = rules.split_inclusive(|byte| *byte == b'\n').flat_map(whole).collect();
        return disk::write_whole(root, &path, &rules);
    }
    if lines(&rules).any(|line| line.windows(7).any(|part| part == b"TALK.md")) {
        return Ok(());
    }
    let between = if rules.is_empty() || rules.ends_with(b"\n") { "" } else { "\n" };
    disk::append(root, &path, &format!("{between}{TALK_MERGED}\n"))
}

/// Writes the rule by which Git merges the state while the run is completed, and removes it otherwise.
pub(crate) fn follow(root: &Root, state: &State) -> Result<(), GovernedError> {
    let path = root.folder().join(FILE);
    let is_over = state.status() == Some(RunStatus::Completed);
    let found = read(root, &path)?;
    let rules = found.clone().unwrap_or_else(|| if is_over { MERGED.into() } else { Vec::new() });
    let others = lines(&rules).filter(|line| *line != STATE_MERGED.as_bytes());
    let all = others.chain(is_over.then_some(STATE_MERGED.as_bytes()));
    let wanted: Vec<u8> = all.flat_map(|line| [line, b"\n"]).flatten().copied().collect();
    if wanted == found.unwrap_or_default() {
        return Ok(());
    }
    disk::write_whole(root, &path, &wanted)
}

/// Reads rules as bytes: the paths in them may be in any encoding, and are written back as they were.
fn read(root: &Root, path: &Path) -> Result<Option<Vec<u8>>, GovernedError> {
    disk::read(root, path)
}

/// Returns the lines of rules, without their ends.
fn lines(rules: &[u8]) -> impl Iterator<Item = &[u8]> {
    let without_end = |line: &[u8]| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line).len()
    };
    rules.split_inclusive(|byte| *byte == b'\n').map(move |line| &line[..without_end(line)])
}

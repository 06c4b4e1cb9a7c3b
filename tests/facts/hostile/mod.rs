//! Input from a user who can push: messages, names, trees, dates, links. None of it runs, leaves its place,
//! forges a transition, blocks a branch for good, or reaches a terminal raw.

mod leases;
mod messages;
mod places;

use crate::support::flow::{FILES, Place, head, repo};
use crate::support::world::{Said, World, now};
use std::path::{Path, PathBuf};

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

fn log_of(dir: &Path, trigger: &str, kind: &str) -> String {
    let path = dir.join(format!(".aynig/logs/{trigger}.{kind}.log"));
    String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"))).into_owned()
}

/// Nothing of what was said can steer a terminal.
#[track_caller]
fn assert_tame(said: &Said) {
    let steers = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}');
    assert!(!said.out.contains(steers), "{:?}", said.out);
    assert!(!said.err.contains(steers), "{:?}", said.err);
}

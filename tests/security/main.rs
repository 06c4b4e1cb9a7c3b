//! The threats of CONTRACT.md's section "Security", row by row: a test named `s07_...` tries row S7.
//!
//! `rows` checks that no row is without one. `AYNIG_CAMPAIGN=full` tries as often as the rows ask for; without
//! it a sample. Tests of a row that another file had long before are there, under the row's name.

mod before_trust;
mod believed;
mod bomb;
mod confined;
mod environment;
mod escapes;
mod files;
mod folder;
mod forged;
mod in_the_way;
mod notices;
mod options;
mod own_words;
mod programs;
mod rows;
mod sandbox;
mod secrets;
mod server;
mod signatures;
#[path = "../support/mod.rs"]
mod support;
mod swaps;
mod terminal;
mod trailers;
mod wake;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use support::flow::{Place, head, repo};
use support::world::{Said, World};

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

/// Sets a state on a branch and ticks it.
fn tick(world: &World, dir: &Path, state: &str, branch: &str) -> Said {
    world.aynig(dir, &["set-state", state, "-b", branch]).expect(0);
    world.aynig(dir, &["tick", branch])
}

fn global(world: &World, args: &[&str]) {
    world.git(&world.root(), &[&["config", "--global"], args].concat());
}

fn executable(path: &Path, script: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    crate::support::write_program(path, script);
}

/// How often: all of it for the campaign, else a part.
fn times(all: usize, sample: usize) -> usize {
    if std::env::var("AYNIG_CAMPAIGN").is_ok_and(|v| v == "full") { all } else { sample }
}

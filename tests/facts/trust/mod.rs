//! What may run: nothing until the account's owner says so, and then only what that says (K33-K35).

mod anew;
mod commands;
mod policy;
mod scopes;

use crate::support::flow::{FILES, Place};
use crate::support::skipped;
use crate::support::world::{Said, World, gits};
use std::path::{Path, PathBuf};

/// A repository with the usual command on `main`, and `work` asking for it; nothing is trusted.
fn asked(world: &World) -> PathBuf {
    let dir = world.init("repo");
    Place::new(world, &dir).seed();
    world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(0);
    dir
}

fn global(world: &World, args: &[&str]) {
    world.git(&world.root(), &[&["config", "--global"], args].concat());
}

fn head(world: &World, dir: &Path, branch: &str) -> String {
    world.git(dir, &["rev-parse", &format!("refs/heads/{branch}")])
}

fn hint(said: &Said) -> String {
    said.err
        .lines()
        .find_map(|l| l.strip_prefix("hint: "))
        .unwrap_or_else(|| panic!("{}", said.err))
        .to_owned()
}

fn paste(world: &World, from: &Path, line: &str) -> Said {
    world.command("sh", from).args(["-c", line]).output().unwrap().into()
}

/// Commits a command of this name on `main` and trusts `main`.
fn command(world: &World, dir: &Path, name: &str, script: &str) {
    let path = format!(".aynig/command/{name}");
    world.commit_files(dir, "main", &[(&path, &format!("#!/bin/sh\nset -eu\n{script}\n"))], name);
    world.aynig(dir, &["trust", "--ref", "main"]).expect(0);
}

/// Has a state's command run on a branch: what it printed.
fn output_of(world: &World, dir: &Path, state: &str, branch: &str) -> String {
    output_with(world, dir, state, branch, &[])
}

fn output_with(world: &World, dir: &Path, state: &str, branch: &str, args: &[&str]) -> String {
    // Two branches at one commit that ask for the same in the same second are one trigger, with one log.
    world.aynig(dir, &["set-state", state, "-b", branch, "-m", branch]).expect(0);
    let trigger = head(world, dir, branch);
    world.aynig(dir, &[&["tick", branch], args].concat()).expect(0);
    std::fs::read_to_string(dir.join(format!(".aynig/logs/{trigger}.stdout.log"))).unwrap()
}

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

//! The basic flow in every kind of repository, for each git of this machine. Implements nothing; asks K37.

mod calls;
mod drivers;
mod forms;

use crate::support::flow::Place;
use crate::support::world::{World, gits};
use crate::support::write_program;
use std::path::{Path, PathBuf};

/// Runs a fact once for each git.
fn each_git(fact: impl Fn(&World)) {
    for git in gits() {
        eprintln!("with {}", git.version);
        fact(&World::new(&git));
    }
}

fn seeded<'a>(world: &'a World, dir: &Path) -> Place<'a> {
    let place = Place::new(world, dir);
    place.seed();
    place
}

fn origin(world: &World) -> PathBuf {
    let dir = world.init("origin");
    world.git(&dir, &["config", "uploadpack.allowFilter", "true"]);
    world.git(&dir, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    world.commit_files(&dir, "main", &[("old.txt", "older\n")], "older");
    seeded(world, &dir);
    dir
}

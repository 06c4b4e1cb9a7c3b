//! Governed runs on branches, by the real binary.

mod rig;
mod runs;
#[path = "../support/mod.rs"]
mod support;
mod turns;

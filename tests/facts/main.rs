//! Facts about the program, each tried on real repositories with the real binary in a cleared environment.
//!
//! One binary for all of them, as each links the whole library: `cargo test --test facts life::slots` runs a part.

mod agents;
mod contract;
mod dialect;
mod flow;
mod govern;
mod hooks;
mod hostile;
mod kinds;
mod life;
mod package;
mod remote;
mod store;
#[path = "../support/mod.rs"]
mod support;
mod trust;
mod verbs;

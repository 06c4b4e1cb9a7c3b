//! Governed runs, from outside: the public corpus, the boundary, formats, hooks, notifications, races.
//!
//! Everything happens in folders of the tests' own. What has to be inside the crate (the process killed between
//! any two file operations) is in `tests/crash/`.

mod adapter;
mod boundary;
mod bytes;
mod corpus;
mod hooks;
mod https;
mod keys;
mod lifecycle;
mod limits;
mod links;
mod loops;
mod notify;
mod prompts;
// The third proof takes the project of the second, and both are run.
#[allow(clippy::duplicate_mod)]
mod proofs;
mod races;
mod refusals;
mod rig;
#[path = "../support/skipped.rs"]
mod skipped;
mod speed;
mod workspace;

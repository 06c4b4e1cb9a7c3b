//! The fault campaign: everything that can go wrong, made to go wrong, and counted.
//!
//! Each sweep is one test, `<sweep>::<what>`. `cargo test --test campaign` runs a seeded sample of each;
//! `tests/campaign/run` runs all of them in full and writes `RESULTS.md` from what they counted. A sweep that
//! fails prints the one line that replays it. What cannot run here (no root, no strace) is skipped with its
//! reason, which stands in the results too.

#[path = "../support/mod.rs"]
mod support;

mod results;
mod row;

mod clocks;
mod endurance;
mod interventions;
mod processes;
mod races;
mod soak;
mod user;

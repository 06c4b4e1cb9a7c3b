//! The fault campaign: everything that can go wrong, made to go wrong, and counted.
//!
//! Each sweep is one test, `<sweep>::<what>`. `cargo test --test campaign` runs a seeded sample of each;
//! `tests/campaign/run` runs all of them in full and writes `RESULTS.md` from what they counted. A sweep that
//! fails prints the one line that replays it. What cannot run here (no root, no strace) is skipped with its
//! reason, which stands in the results too.

#[path = "../support/mod.rs"]
mod support;

mod cut;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod errors;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod flow;
mod judge;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod kill;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod next;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod notices;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod points;
mod power;
mod relay;
mod results;
mod row;
mod scene;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[path = "../facts/flow/stage.rs"]
#[allow(dead_code, reason = "a part of it is needed here")]
mod stage;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod talk;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod trace;

/// Says so where the tracer does not know the system's calls.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
#[test]
fn kill_and_errors() {
    support::skipped("the kill and error sweeps trace system calls of Linux on x86-64");
}

mod clocks;
mod crowd;
mod endurance;
mod interventions;
mod processes;
mod races;
mod soak;
mod user;

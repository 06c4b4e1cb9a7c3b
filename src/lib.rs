//! git-aynig: a crash-safe, auditable workflow engine in any Git repository.
//!
//! The modules, lowest layer first; each uses some of those listed before it (`tests/house.rs` says which) and none
//! listed after it: `protocol`
//! (pure values and decisions), `contract` (the wire types of flows), `supervisor` (child processes),
//! `agents` (agents' programs: calls, lines, endings), `store` (everything that touches Git), `runner` (one
//! tick as a straight line), `governed` (governed runs), `run_loop` (drives a governed run), `conformance`
//! (the adapter for the public corpus; behind the feature of that name), `flow` (flows in Git), `app` (what
//! each subcommand does), `cli` (arguments, output, exit codes).

pub mod agents;
mod app;
pub use app::served;
pub mod cli;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod contract;
mod flow;
pub mod governed;
pub mod protocol;
pub mod run_loop;
mod runner;
pub mod store;
pub mod supervisor;

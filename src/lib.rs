//! git-aynig: a crash-safe, auditable workflow engine in any Git repository.
//!
//! The rooms, lowest first; each may use those above it in this list and nothing below:
//! `protocol` (pure values and decisions), `contract` (the wire types of flows), `supervisor` (child processes),
//! `agents` (agents' programs: calls, lines, endings), `store` (everything
//! that touches Git), `runner` (one tick as a straight line), `governed` (governed runs), `run_loop` (driving
//! one), `conformance` (the public corpus; the feature of that name), `flow` (flows in Git), `app` (what verbs do), `cli` (arguments,
//! output, exit codes).

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

//! The contract as pure values: messages, names, events, decisions, completions.
//!
//! Nothing here does I/O, reads a clock or the environment, or names a Git library. Every function
//! is total: bad input becomes a value that says what was wrong. The runner, the model checker and
//! the property tests all call these same functions.

pub mod accepts;
pub mod body_line;
pub mod brought;
pub mod complete;
pub mod decide;
pub mod declaration;
pub mod delivery;
pub mod depends;
pub mod dialect;
pub mod environment;
pub mod event;
pub mod fan;
pub mod flow;
pub mod handed;
pub mod heard;
pub mod holding;
pub mod id;
pub mod inbox;
pub mod invariants;
pub mod landing;
pub mod launch;
pub mod message;
pub mod name;
pub mod obstacle;
pub mod order;
pub mod pause;
pub mod question;
pub mod queue;
pub mod resemble;
pub mod run_events;
pub mod secrets;
pub mod swap;
pub mod text;
pub mod transition;
pub mod usage;
pub mod waits;

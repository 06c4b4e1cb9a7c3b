//! Several governed repositories under one coordinator: its configuration, and what an acceptance in one of
//! them means for the whole.
//!
//! Outside the declared boundary, and inside the crate alone. [`check`] judges a configuration;
//! [`project`] projects an accepted turn into the coordinator's history and recomputes the barriers of its
//! workstream.

pub(crate) mod check;
pub(crate) mod project;

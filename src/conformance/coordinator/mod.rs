//! Several governed repositories under one coordinator: its configuration, and what an acceptance in one of
//! them means for the whole.
//!
//! This is no part of the product: only the corpus asks for it. [`check`] judges a configuration; [`project`]
//! projects an accepted turn into the coordinator's history and recomputes the barriers of its workstream.

pub(super) mod check;
pub(super) mod project;

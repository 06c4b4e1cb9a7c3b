//! Governed runs on branches and in plain folders: the acts on them, the one driver of turns, and how each is written.
//!
//! An act ([`acts`], [`turn`], [`begin`]) takes a project and a configuration, does one operation of the boundary
//! ([`crate::governed`]) and returns what was [`Done`], or a [`GovernError`]. [`place`] is where the run is: on a branch
//! each act is one commit. [`driver`] starts workers, for `turn` and for the loop alike. Implements G6-G9.

pub mod acts;
pub mod begin;
mod done;
pub mod driver;
mod error;
mod hooks;
pub mod look;
pub mod looping;
mod merges;
pub mod next;
pub mod place;
pub mod turn;
mod worker;

pub use done::{Done, Facts};
pub use error::{Act, GovernError};
pub use worker::KILL_GRACE;

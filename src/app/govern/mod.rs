//! Governed runs on branches and in plain folders: the acts on them, the one driver of turns, and how each is written.
//!
//! An act ([`acts`], [`turn`], [`begin`]) takes a project and a configuration, does one operation of the
//! boundary ([`crate::governed`]) and returns what was [`Done`], or a [`GovernError`]. [`place`] says where
//! the run is: on a branch, each act is one commit. [`driver`] starts workers, for `turn` and for the loop
//! alike. Implements G6-G9.

pub(crate) mod acts;
pub(crate) mod begin;
mod done;
pub(crate) mod driver;
mod error;
mod hooks;
pub(crate) mod look;
pub(crate) mod looping;
mod merges;
pub(crate) mod next;
pub(crate) mod place;
pub(crate) mod turn;
mod worker;

pub(crate) use done::{Done, Facts};
pub(crate) use error::{Act, GovernError};
pub(crate) use worker::{KILL_GRACE, TURN_OF};

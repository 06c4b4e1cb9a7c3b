//! The supervisor room against programs that are nasty on purpose (K16-K18, K21).
//!
//! Real guardians (the built binary), real shells, cleared environments. Facts are polled for with
//! deadlines; nothing sleeps in the hope that something has happened.

mod bounded;
mod endings;
mod escapes;
mod output;
mod rig;

//! The supervisor room against programs that are nasty on purpose (K16-K18, K21).
//!
//! A binary of its own: who loses a guardian ends every orphan that came to its process, and in `facts` those are the
//! chains of other tests.
//!
//! Real guardians (the built binary), real shells, cleared environments. Facts are polled for with
//! deadlines; nothing sleeps in the hope that something has happened.

mod bounded;
mod endings;
mod escapes;
#[path = "../support/leaving.rs"]
mod leaving;
mod output;
mod rig;

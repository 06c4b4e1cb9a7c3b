//! The stores that serve [`Store`](super::Store): gix, the `git` binary, and memory. All pass the same tests.

pub(crate) mod batch;
pub mod binary;
pub(crate) mod bulk;
pub(crate) mod gix_report;
pub mod gix_store;
pub mod memory;

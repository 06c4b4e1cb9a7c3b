//! Refs of the files backend: read fresh, locked so that a dead owner is seen, swapped durably.

pub(crate) mod files;
pub(crate) mod glance;
pub mod locks;
pub(crate) mod reading;
pub(crate) mod reflog;
pub mod swap;
mod transaction;
pub(crate) mod unsynced;
pub(crate) mod watch;

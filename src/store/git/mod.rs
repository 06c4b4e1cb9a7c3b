//! The `git` binary: the one builder of its children, what they are pinned to, and what is asked of them.

pub(crate) mod calls;
pub(crate) mod children;
pub mod command;
pub mod compare;
pub(crate) mod confined;
mod judge;
pub(crate) mod merge;
pub(crate) mod pins;
mod replay;
mod shown;
pub(crate) mod staging;
mod trace;

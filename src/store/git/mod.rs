//! The `git` binary: the one builder of its children, what they are pinned to, and what is asked of them.

pub mod calls;
pub mod children;
pub mod command;
pub(crate) mod confined;
pub mod merge;
pub mod pins;

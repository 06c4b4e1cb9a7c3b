//! The commands of a commit's `.aynig/` tree: looked up, copied to be started, and judged whether they can be.

pub mod copy;
pub mod start;
pub mod tree;

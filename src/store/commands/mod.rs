//! The commands of a commit's `.aynig/` tree: looked up, copied to be started, and judged
//! by whether they can start.

pub(crate) mod copy;
pub(crate) mod start;
pub(crate) mod tree;

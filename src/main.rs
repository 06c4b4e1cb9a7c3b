//! The `git-aynig` binary.

fn main() {}

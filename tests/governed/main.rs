//! Governed runs, from outside: the public corpus, the boundary, formats, hooks, notifications, races.
//!
//! Everything happens in folders of the tests' own. What has to be inside the crate (the process killed between
//! any two file operations) is in `src/governed/crash.rs`.

mod corpus;

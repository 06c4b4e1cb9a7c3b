//! A flow as it is stored: the tree of its branch, and the changes to it as pure functions.
//!
//! The tree holds `run.json`, `nodes/<id>.json` and `edges/<id>.json`: [`Flow::read`] reads these files from
//! a commit's tree, [`Flow::files`] returns those of the next commit. [`apply`] applies a [`Mutation`] to a
//! flow as it was read. It returns the changed flow, with one line that says what was done; or it refuses the
//! change by name, and changes nothing. A command that loses the race for the ref reads the flow again and
//! applies the mutation again. Keys and files that a later version wrote are kept as they are. Implements N1.

mod change;
mod files;
mod mutation;
mod name;
mod refused;

pub use change::{Done, apply};
pub use files::{BadFlow, EdgeFile, FILE_MAX, FILES_MAX, Flow, NodeFile, OpenPromise, RunFile};
pub use mutation::{Mutation, NewRun, create};
pub use name::{branch_of, slug};
pub use refused::Refused;

//! A flow as it is kept: the tree of its branch, and the changes of it as pure functions.
//!
//! `run.json`, `nodes/<id>.json`, `edges/<id>.json`: [`Flow::read`] takes the files of a commit's tree, [`Flow::files`] gives
//! those of the next. A [`Mutation`] is applied to a flow as it was read, and gives the flow as it would be, with one line
//! of what was done, or is refused by name and changes nothing; who loses the race for the ref reads again and applies it
//! again. Keys and files that a later version wrote are kept as they are. Implements N1.

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

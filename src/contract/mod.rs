//! The shared contract of runs, nodes and edges: the types on the wire, as plain values.
//!
//! Nothing in this module does I/O, reads a clock or opens a socket. Names, words and the order of keys are
//! those of version "1" of the contract; data of another version is refused when it is read. Times are
//! written with milliseconds, ids in lower case. Implements N13.

pub mod door;
pub mod edge;
pub mod event;
pub mod flow;
pub mod id;
pub mod limits;
pub mod node;
pub mod offered;
pub mod projection;
pub mod prompt;
pub mod run;
pub mod shown;
pub mod stall;
pub mod time;
pub mod tools;
pub mod words;

//! The shared contract of runs, nodes and edges: its types on the wire, as pure values.
//!
//! Nothing here does I/O, reads a clock or knows a socket. Names, order of keys and words are the contract's, version
//! "1"; what another version says is refused where it is read. Times are written with milliseconds, ids in lower case.
//! Implements N13.

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

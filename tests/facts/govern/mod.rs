//! Governed runs on branches, by the real binary.

mod again;
mod guarded;
mod limits;
mod links;
mod rig;
mod runs;
mod turns;

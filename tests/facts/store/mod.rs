//! The compare-and-swap and what stands on it, each implementation beside real Git.

mod edges;
mod suite;
mod together;

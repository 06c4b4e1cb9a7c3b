//! Ticks against a remote, and several runners that share one repository or server.

mod basic;
mod daemon;
mod far;
mod servers;
mod shared_repository;
mod swap;
mod talk;
mod together;

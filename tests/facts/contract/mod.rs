//! The shared contract: its types against its schema and its own samples, and what is made of it by pure functions.

mod flows;
mod projection;
mod prompts;
mod samples;
pub mod schema;
mod stall;
mod tools;
mod types;

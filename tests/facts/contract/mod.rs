//! The shared contract: its types against its schema and its own samples, and what is made of it by pure functions.

mod flows;
mod prompts;
mod samples;
mod schema;
mod stall;
mod types;

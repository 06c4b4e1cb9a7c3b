//! `mcp`: becomes the server of a flow's tools, which is in the same package as the web page. Implements N7,
//! W1.

use super::args::Mcp;
use super::fail::Failure;
use super::serve::become_it;

/// Runs `git aynig mcp`.
pub fn run(args: &Mcp) -> Result<i32, Failure> {
    become_it(vec!["mcp".into(), "--socket".into(), args.socket.clone().into()])
}

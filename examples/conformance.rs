//! Judges one fixture of the public conformance corpus: JSON on standard input, a verdict on standard output.
//!
//! The exit status is 0 for pass, 1 for fail, 2 for error and 3 for not implemented. Give it to the corpus's
//! own runner as the target: `cargo run --quiet --features conformance --example conformance`. Implements G10.

use std::io::{Read, Write};
use std::process::ExitCode;

/// Reads a fixture, writes its verdict, and returns the exit status.
///
/// # Errors
/// What reading or writing refuses.
pub fn judge(mut fixture: impl Read, mut verdict: impl Write) -> std::io::Result<u8> {
    let mut bytes = Vec::new();
    fixture.read_to_end(&mut bytes)?;
    let (line, code) = aynig::conformance::conformance(&bytes);
    verdict.write_all(line.as_bytes())?;
    Ok(u8::try_from(code).unwrap_or(2))
}

#[allow(dead_code)]
fn main() -> std::io::Result<ExitCode> {
    Ok(ExitCode::from(judge(std::io::stdin(), std::io::stdout())?))
}

//! Agents' programs: how each is called, what its lines say, and how its turn ended.
//!
//! One module a provider. `turn(&Turn)` gives a [`Call`]: arguments, environment, and a [`Talk`] that is fed the
//! program's lines. The caller starts the program under supervision, writes what `opening` and each answer say to
//! its standard input, feeds [`lines::Lines`] with its output, and asks `ending` when it is gone. Nothing here starts
//! a process, reads a file or a clock. Whatever a program prints is read as an enemy's: bounded, and never a panic.
//! Implements N9, N9a; N7 for calls in text; N8 for the programs' own gates.

pub mod call;
pub mod claude;
pub mod codex;
pub mod custom;
pub mod ending;
pub mod gemini;
pub mod lines;
pub mod report;
mod rpc;
pub mod said;
pub mod spent;
pub mod tool_calls;

use crate::contract::event::{ToolError, ToolResult};
use crate::contract::words::Provider;
pub use call::{Call, Refused, Resume, Tools, Turn};
pub use ending::{End, Ending, Exit, Stop};
pub use said::{Answer, Asked, Decision, Heard, Said, Told};
use serde_json::Value;

/// A conversation with a running program: its lines in, what it says and what to answer out.
pub trait Talk {
    /// What is written to its standard input first.
    fn opening(&mut self) -> Vec<u8>;

    /// Whether its standard input is closed after the opening. Otherwise it is once a verdict is there.
    fn closes(&self) -> bool {
        true
    }

    /// Takes in one line of its standard output, without the line feed.
    fn line(&mut self, line: &[u8]) -> Heard {
        match rpc::object(line) {
            Ok(value) => self.object(line, &value),
            Err(heard) => heard,
        }
    }

    /// Takes in the object that a line is.
    fn object(&mut self, line: &[u8], value: &Value) -> Heard;

    /// What is written when a person has answered what was asked under this id; a program that never asks is not
    /// answered.
    fn answer(&mut self, _asked: &str, _decision: &Decision) -> Answer {
        Answer::default()
    }

    /// What is written when a tool that it called by a line of its text has run, under its own id for it; `None` for one
    /// that can't be told before its next prompt.
    fn result(&mut self, _call: &str, _result: &ToolResult, _error: Option<&ToolError>) -> Option<Vec<u8>> {
        None
    }

    /// Its turn goes on after what it said last: its verdict is that of its next last word.
    fn goes_on(&mut self) {}

    /// What is written to end the turn; empty where nothing but a signal does.
    fn interrupt(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// What it has told so far.
    fn told(&self) -> &Told;

    /// How its turn ended.
    fn ending(&self, end: &End) -> Ending;
}

/// The program that a provider's name means where nothing else is configured; `custom` has none.
pub fn program(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::Claude => Some("claude"),
        Provider::Codex => Some("codex"),
        Provider::Gemini => Some("gemini"),
        Provider::Custom => None,
    }
}

/// The call for a turn of one of the three providers whose programs are known; `custom` has its own form.
pub fn turn(provider: Provider, turn: &Turn) -> Option<Call> {
    match provider {
        Provider::Claude => Some(claude::turn(turn)),
        Provider::Codex => Some(codex::turn(turn)),
        Provider::Gemini => Some(gemini::turn(turn)),
        Provider::Custom => None,
    }
}

/// The files of a branch that this provider would take settings or credentials from, whatever its arguments say. A
/// tree that has one is not given to it, unless the repository is trusted with its agents' settings.
pub fn shut_out(provider: Provider) -> &'static [&'static str] {
    match provider {
        // '--setting-sources user' and '--strict-mcp-config' shut out all that there is.
        Provider::Claude => &[],
        // Not read until the project is trusted; but trust is kept by the main repository's path, for good.
        Provider::Codex => &[".codex"],
        // Read with every flag that there is.
        Provider::Gemini => &[".env", ".gemini/.env"],
        Provider::Custom => &[],
    }
}

/// Refuses a tree whose paths name a file that can't be shut out. Paths are relative to the tree's top.
pub fn admit<'a>(
    provider: Provider,
    project_settings: bool,
    paths: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(), Refused> {
    if project_settings {
        return Ok(());
    }
    for path in paths {
        for file in shut_out(provider) {
            // A file system may not know upper case from lower.
            let (head, rest) = path.split_at(path.len().min(file.len()));
            if head.eq_ignore_ascii_case(file.as_bytes()) && (rest.is_empty() || rest.starts_with(b"/")) {
                return Err(Refused { provider, path: crate::contract::shown::line(path) });
            }
        }
    }
    Ok(())
}

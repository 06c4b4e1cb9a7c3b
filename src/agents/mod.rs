//! The agents' programs: how each is called, what its lines mean, and how its turn ended.
//!
//! There is one module per provider. `turn(&Turn)` returns a [`Call`]: arguments, environment, and a
//! [`Talk`], which takes the program's lines. The caller starts the program under supervision, writes what
//! `opening` and each answer return to its standard input, feeds its output to [`lines::Lines`], and calls
//! `ending` when the program is gone. This module starts no process, and reads no file and no clock. A
//! program's output is read as if an enemy had written it: bounded, and never with a panic. Implements N9,
//! N9a; N7 for calls in text; N8 for the programs' own gates.

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

/// A conversation with a running program: takes its lines, and returns what they mean and what to answer.
pub trait Talk {
    /// Returns what is to be written to the program's standard input first.
    fn opening(&mut self) -> Vec<u8>;

    /// True if its standard input is to be closed after the opening; otherwise it is closed once there is a
    /// verdict.
    fn closes(&self) -> bool {
        true
    }

    /// Takes one line of the program's standard output, without the line feed.
    fn line(&mut self, line: &[u8]) -> Heard {
        match rpc::object(line) {
            Ok(value) => self.object(line, &value),
            Err(heard) => heard,
        }
    }

    /// Takes a line that is a JSON object.
    fn object(&mut self, line: &[u8], value: &Value) -> Heard;

    /// Returns what is to be written when a person has answered the request with this id; nothing for a
    /// program that never asks.
    fn answer(&mut self, _asked: &str, _decision: &Decision) -> Answer {
        Answer::default()
    }

    /// Returns what is to be written when a tool has run that the program called by a line of its text;
    /// `_call` is the program's own id of the call. `None` if the program can't be told before its next
    /// prompt.
    fn result(&mut self, _call: &str, _result: &ToolResult, _error: Option<&ToolError>) -> Option<Vec<u8>> {
        None
    }

    /// Continues the turn after a final message, as the program waits for results: the next final message
    /// gives the verdict.
    fn goes_on(&mut self) {}

    /// Returns what is to be written to end the turn; empty if only a signal ends it.
    fn interrupt(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Returns what the program reported so far.
    fn told(&self) -> &Told;

    /// Judges how the turn ended.
    fn ending(&self, end: &End) -> Ending;
}

/// Returns the program of a provider, unless another is configured; `None` for `custom`, which has no
/// default.
pub fn program(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::Claude => Some("claude"),
        Provider::Codex => Some("codex"),
        Provider::Gemini => Some("gemini"),
        Provider::Custom => None,
    }
}

/// Returns the call for a turn of a provider whose program is known; `None` for `custom`, which is called in
/// its own way.
pub fn turn(provider: Provider, turn: &Turn) -> Option<Call> {
    match provider {
        Provider::Claude => Some(claude::turn(turn)),
        Provider::Codex => Some(codex::turn(turn)),
        Provider::Gemini => Some(gemini::turn(turn)),
        Provider::Custom => None,
    }
}

/// Returns the files of a branch from which this provider's program would take settings or credentials,
/// whatever its arguments say. A tree that has one is refused, unless the repository is trusted with the
/// settings of its agents.
pub fn shut_out(provider: Provider) -> &'static [&'static str] {
    match provider {
        // `--setting-sources user` and `--strict-mcp-config` keep all settings of the branch out.
        Provider::Claude => &[],
        // The program does not read it until the project is trusted; but trust is remembered by the path of
        // the main repository, for good.
        Provider::Codex => &[".codex"],
        // The program reads these, whatever its flags are.
        Provider::Gemini => &[".env", ".gemini/.env"],
        Provider::Custom => &[],
    }
}

/// Refuses a tree that has a file from which this provider would take settings. Paths are relative to the
/// tree's top.
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
            // Some file systems do not tell upper case from lower.
            let (head, rest) = path.split_at(path.len().min(file.len()));
            if head.eq_ignore_ascii_case(file.as_bytes()) && (rest.is_empty() || rest.starts_with(b"/")) {
                return Err(Refused { provider, path: crate::contract::shown::line(path) });
            }
        }
    }
    Ok(())
}

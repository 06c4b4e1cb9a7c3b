//! The lines of `codex exec --json`. A message comes whole, `error` does not end the turn, and `usage` is the
//! sum over the thread.

use super::super::Talk;
use super::super::ending::{End, Ending, judge};
use super::super::rpc::{number, text};
use super::super::said::{Heard, Said, Told, Verdict, output};
use super::super::spent::Spent;
use super::{cause, cause_of_stderr, mcp};
use crate::contract::shown;
use serde_json::{Map, Value};

/// A conversation with `codex exec`: one prompt, then its lines.
#[derive(Debug)]
pub struct Exec {
    prompt: String,
    told: Told,
}

impl Exec {
    /// Returns a conversation that begins with this prompt.
    pub fn new(prompt: &str) -> Self {
        Self { prompt: prompt.to_owned(), told: Told::default() }
    }

    fn item(&mut self, item: &Value, done: bool) -> Vec<Said> {
        let id = text(item, "id").to_owned();
        match text(item, "type") {
            "agent_message" if done => vec![self.told.whole(text(item, "text"))],
            "agent_message" => vec![],
            "reasoning" if done => vec![Said::Thought(text(item, "text").to_owned())],
            "reasoning" => vec![],
            "error" => vec![Said::Note(shown::block(text(item, "message").as_bytes()))],
            _ if !done => {
                let (name, args) = called(item);
                vec![Said::ToolStarted { id, name, args }]
            }
            _ => {
                let exit = &item["exit_code"];
                let ok = text(item, "status") == "completed" && exit.as_i64().is_none_or(|code| code == 0);
                let gave = mcp::gave(item).unwrap_or_else(|| text(item, "aggregated_output").to_owned());
                vec![Said::ToolEnded { id, ok, output: output(&gave) }]
            }
        }
    }
}

/// Returns a tool's name and arguments. The arguments are what the item has besides its id, its state and its
/// result.
fn called(item: &Value) -> (String, Map<String, Value>) {
    if let Some(called) = mcp::called(item) {
        return called;
    }
    let mut args = item.as_object().cloned().unwrap_or_default();
    for key in ["id", "type", "status", "aggregated_output", "exit_code"] {
        args.shift_remove(key);
    }
    (text(item, "type").to_owned(), args)
}

impl Talk for Exec {
    fn opening(&mut self) -> Vec<u8> {
        self.prompt.clone().into_bytes()
    }

    fn object(&mut self, raw: &[u8], value: &Value) -> Heard {
        let said = match text(value, "type") {
            "thread.started" => self.told.is_session(text(value, "thread_id")).into_iter().collect(),
            "turn.started" => vec![],
            "item.started" => self.item(&value["item"], false),
            "item.updated" => vec![],
            "item.completed" => self.item(&value["item"], true),
            "error" => {
                let why = shown::line(text(value, "message").as_bytes());
                self.told.retries = Some(why.clone());
                vec![Said::Retries(why)]
            }
            "turn.completed" => {
                let usage = &value["usage"];
                self.told.spent = Spent {
                    input: number(usage, "input_tokens"),
                    output: number(usage, "output_tokens"),
                    cached: number(usage, "cached_input_tokens"),
                    ..Spent::default()
                };
                self.told.verdict = Some(Verdict::Good);
                vec![Said::Over]
            }
            "turn.failed" => {
                let words = text(&value["error"], "message");
                self.told.verdict = Some(Verdict::Bad(cause(words), words.to_owned()));
                vec![Said::Over]
            }
            _ => vec![Said::Noise(shown::line(raw))],
        };
        Heard { said, send: Vec::new() }
    }

    fn told(&self) -> &Told {
        &self.told
    }

    fn ending(&self, end: &End) -> Ending {
        judge(&self.told, end, cause_of_stderr)
    }
}

//! The lines of `gemini -o stream-json`: a message comes in pieces, and ends when anything else begins.

use super::super::Talk;
use super::super::ending::{End, Ending, judge};
use super::super::rpc::{map, number, text};
use super::super::said::{Cause, Heard, Said, Told, Verdict, output};
use super::super::spent::Spent;
use super::{cause, cause_of_exit};
use crate::contract::shown;
use serde_json::Value;

/// A conversation with `gemini`: one prompt, then its lines.
#[derive(Debug)]
pub struct Stream {
    prompt: String,
    told: Told,
}

impl Stream {
    /// Returns a conversation that begins with this prompt.
    pub fn new(prompt: &str) -> Self {
        Self { prompt: prompt.to_owned(), told: Told::default() }
    }

    fn message(&mut self, value: &Value) -> Vec<Said> {
        let content = text(value, "content");
        match (text(value, "role"), value["delta"].as_bool()) {
            ("assistant", Some(true)) => vec![self.told.piece(content)],
            ("assistant", _) => vec![self.told.whole(content)],
            _ => vec![],
        }
    }

    fn tool(&mut self, value: &Value) -> Vec<Said> {
        let id = text(value, "tool_id").to_owned();
        let said = match text(value, "type") {
            "tool_use" => Said::ToolStarted {
                id,
                name: text(value, "tool_name").to_owned(),
                args: map(value, "parameters"),
            },
            _ => {
                let ok = text(value, "status") == "success";
                let gave = if ok { text(value, "output") } else { text(&value["error"], "message") };
                Said::ToolEnded { id, ok, output: output(gave) }
            }
        };
        self.told.closed().into_iter().chain([said]).collect()
    }

    fn result(&mut self, value: &Value) -> Vec<Said> {
        let stats = &value["stats"];
        let models = stats["models"].as_object();
        self.told.spent = Spent {
            input: number(stats, "input_tokens"),
            output: number(stats, "output_tokens"),
            cached: number(stats, "cached"),
            micro_usd: None,
            model: models.and_then(|models| models.keys().next_back().cloned()).or(self
                .told
                .spent
                .model
                .take()),
        };
        let error = &value["error"];
        self.told.verdict = Some(match text(value, "status") {
            "success" => Verdict::Good,
            _ if text(error, "type") == "FatalTurnLimitedError" => {
                Verdict::Bad(Cause::Limit, text(error, "message").to_owned())
            }
            _ => Verdict::Bad(cause(text(error, "message")), text(error, "message").to_owned()),
        });
        self.told.closed().into_iter().chain([Said::Over]).collect()
    }
}

impl Talk for Stream {
    fn opening(&mut self) -> Vec<u8> {
        self.prompt.clone().into_bytes()
    }

    fn object(&mut self, raw: &[u8], value: &Value) -> Heard {
        let said = match text(value, "type") {
            "init" => {
                self.told.spent.model = value["model"].as_str().map(str::to_owned);
                self.told.is_session(text(value, "session_id")).into_iter().collect()
            }
            "message" => self.message(value),
            "tool_use" | "tool_result" => self.tool(value),
            "error" => vec![Said::Note(shown::line(text(value, "message").as_bytes()))],
            "result" => self.result(value),
            _ => vec![Said::Noise(shown::line(raw))],
        };
        Heard { said, send: Vec::new() }
    }

    fn told(&self) -> &Told {
        &self.told
    }

    fn ending(&self, end: &End) -> Ending {
        judge(&self.told, end, cause_of_exit)
    }
}

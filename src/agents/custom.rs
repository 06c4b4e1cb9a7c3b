//! `custom`: any program, in one of two protocols. `raw`: the prompt is written to standard input, everything
//! that the program prints is its message, and its exit status is the verdict. `jsonl`: the program prints
//! the contract's events without their envelope, one per line; `message.assistant.final` ends a turn.
//!
//! A jsonl program reads these lines: `{"kind":"prompt","prompt","promptKind","turnId"}`,
//! `{"type":"approval.resolved","approvalId","resolution"}`, and
//! `{"kind":"tool.result","toolId","result","error"?}` for a tool that it called. Implements N9.

use super::Talk;
use super::ending::{End, Ending, Exit, judge};
use super::rpc::{line, map, object, text};
use super::said::{Answer, Asked, Cause, Decision, Heard, Said, Told, Verdict, output};
use super::spent::Spent;
use crate::contract::event::{ToolError, ToolResult};
use crate::contract::id::TurnId;
use crate::contract::prompt::PromptKind;
use crate::contract::shown;
use serde_json::{Value, json};

/// The protocol of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Lines of JSON.
    Jsonl,
    /// Text.
    Raw,
}

impl Protocol {
    /// Returns the protocol that configuration calls by this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "jsonl" => Some(Self::Jsonl),
            "raw" => Some(Self::Raw),
            _ => None,
        }
    }
}

/// A conversation with a custom program.
#[derive(Debug)]
pub struct Custom {
    protocol: Protocol,
    prompt: String,
    kind: PromptKind,
    turn: TurnId,
    told: Told,
    asked: Vec<String>,
}

impl Custom {
    /// Returns a conversation that begins with this prompt.
    pub fn new(protocol: Protocol, prompt: &str, kind: PromptKind, turn: TurnId) -> Self {
        let (told, asked) = (Told::default(), Vec::new());
        Self { protocol, prompt: prompt.to_owned(), kind, turn, told, asked }
    }

    fn event(&mut self, raw: &[u8], value: &Value) -> Vec<Said> {
        let tool = &value["tool"];
        match text(value, "type") {
            "session" => self.told.is_session(text(value, "sessionId")).into_iter().collect(),
            "message.assistant.delta" => vec![self.told.piece(text(value, "delta"))],
            "message.assistant.final" => {
                let whole = self.told.whole(text(value, "content"));
                let aborted = text(value, "status") == "interrupted";
                self.told.verdict = Some(if aborted { Verdict::Aborted } else { Verdict::Good });
                vec![whole, Said::Over]
            }
            "message.assistant.thinking.delta" => vec![Said::ThoughtPiece(text(value, "delta").to_owned())],
            "message.assistant.thinking.final" => vec![Said::Thought(text(value, "content").to_owned())],
            // A proposed tool is started at once or asked about, and reported then.
            "tool.proposed" => vec![],
            "tool.started" => vec![Said::ToolStarted {
                id: text(tool, "id").to_owned(),
                name: text(tool, "name").to_owned(),
                args: map(tool, "args"),
            }],
            "tool.completed" => {
                let result = &value["result"];
                let gave =
                    result["output"].as_str().map_or_else(|| result["output"].to_string(), str::to_owned);
                let ok = result["ok"].as_bool() == Some(true);
                let why = if ok { gave } else { text(&value["error"], "message").to_owned() };
                vec![Said::ToolEnded { id: text(value, "toolId").to_owned(), ok, output: output(&why) }]
            }
            "approval.requested" => {
                let id = text(value, "approvalId").to_owned();
                self.asked.push(id.clone());
                vec![Said::Asked(Asked {
                    id,
                    call: tool["id"].as_str().map(str::to_owned),
                    tool: text(tool, "name").to_owned(),
                    args: map(tool, "args"),
                    takes_changes: true,
                })]
            }
            "approval.resolved" => {
                let id = text(value, "approvalId");
                self.asked.retain(|asked| asked != id);
                vec![Said::Unasked(id.to_owned())]
            }
            "telemetry.usage" => {
                let usage = &value["usage"];
                let count = |key: &str| usage[key].as_u64().unwrap_or(0);
                let more = Spent {
                    input: count("promptTokens"),
                    output: count("completionTokens"),
                    ..Spent::default()
                };
                self.told.spent.add(more);
                self.told.spent.model =
                    value["model"].as_str().map(str::to_owned).or(self.told.spent.model.take());
                vec![]
            }
            _ => vec![Said::Noise(shown::line(raw))],
        }
    }
}

impl Talk for Custom {
    fn opening(&mut self) -> Vec<u8> {
        match self.protocol {
            Protocol::Raw => self.prompt.clone().into_bytes(),
            Protocol::Jsonl => line(&json!({
                "kind": "prompt", "prompt": self.prompt, "promptKind": self.kind.word(), "turnId": self.turn,
            })),
        }
    }

    fn closes(&self) -> bool {
        self.protocol == Protocol::Raw
    }

    fn line(&mut self, raw: &[u8]) -> Heard {
        match self.protocol {
            Protocol::Raw => {
                let said = vec![self.told.piece(&format!("{}\n", String::from_utf8_lossy(raw)))];
                Heard { said, send: Vec::new() }
            }
            Protocol::Jsonl => match object(raw) {
                Ok(value) => self.object(raw, &value),
                Err(heard) => heard,
            },
        }
    }

    fn object(&mut self, raw: &[u8], value: &Value) -> Heard {
        Heard { said: self.event(raw, value), send: Vec::new() }
    }

    fn answer(&mut self, asked: &str, decision: &Decision) -> Answer {
        let Some(at) = self.asked.iter().position(|id| id == asked) else { return Answer::default() };
        let id = self.asked.remove(at);
        let send = line(
            &json!({"type": "approval.resolved", "approvalId": id, "resolution": decision.resolution()}),
        );
        Answer { send, untold: None }
    }

    fn result(&mut self, call: &str, result: &ToolResult, error: Option<&ToolError>) -> Option<Vec<u8>> {
        if self.protocol == Protocol::Raw {
            return None;
        }
        let mut fields = json!({"kind": "tool.result", "toolId": call, "result": result});
        if let Some(error) = error {
            fields["error"] = json!(error);
        }
        Some(line(&fields))
    }

    fn goes_on(&mut self) {
        self.told.verdict = None;
    }

    fn told(&self) -> &Told {
        &self.told
    }

    fn ending(&self, end: &End) -> Ending {
        let mut told = self.told.clone();
        if self.protocol == Protocol::Raw && end.exit == Exit::Code(0) {
            told.verdict = Some(Verdict::Good);
        }
        judge(&told, end, |_, _| Cause::Unknown)
    }
}

/// Returns the text of a raw program: everything that it printed. (The text of a jsonl program is its last
/// final message.)
pub fn text_of(told: &Told) -> String {
    told.text.clone().unwrap_or_else(|| told.open.trim_end().to_owned())
}

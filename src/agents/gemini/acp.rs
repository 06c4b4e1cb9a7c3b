//! `gemini --acp`: JSON-RPC 2.0 lines. It asks before each tool that needs a permission; its gate takes no
//! changed arguments and no reason. Implements N8.

use super::super::Talk;
use super::super::codex::wanted;
use super::super::ending::{End, Ending, judge};
use super::super::rpc::{Form, blocks, number, text};
use super::super::said::{
    Answer, Asked, Cause, Decision, Heard, KEPT_MAX, Said, Told, Verdict, head, output,
};
use super::{cause, cause_of_exit};
use crate::contract::shown;
use serde_json::{Map, Value, json};

const INITIALIZE: u64 = 1;
const SESSION: u64 = 2;
const PROMPT: u64 = 3;

/// A conversation with `gemini --acp`.
#[derive(Debug)]
pub struct Acp {
    prompt: String,
    cwd: String,
    /// The session to resume.
    resume: Option<String>,
    told: Told,
    /// The thought so far; it ends when anything else begins.
    thought: String,
    /// The open requests: the id of each, the option that allows the call once, and the option that refuses
    /// it once.
    asked: Vec<(String, Option<String>, Option<String>)>,
}

impl Acp {
    /// Returns a conversation in this folder that begins with this prompt, in an existing session or a new
    /// one.
    pub fn new(prompt: &str, cwd: &str, resume: Option<&str>) -> Self {
        Self {
            prompt: prompt.to_owned(),
            cwd: cwd.to_owned(),
            resume: resume.map(str::to_owned),
            told: Told::default(),
            thought: String::new(),
            asked: Vec::new(),
        }
    }

    fn answered(&mut self, id: u64, value: &Value) -> Heard {
        if value["error"].is_object() {
            let words = text(&value["error"], "message");
            // A resume that fails counts as a lost session, for which a new session is the remedy.
            let why = if id == SESSION && self.resume.is_some() { Cause::SessionLost } else { cause(words) };
            self.told.verdict = Some(Verdict::Bad(why, words.to_owned()));
            let said = self.closed().chain([Said::Over]).collect();
            return Heard { said, send: Vec::new() };
        }
        let result = &value["result"];
        match id {
            INITIALIZE => {
                let mut params = json!({"cwd": self.cwd, "mcpServers": []});
                if let Some(session) = &self.resume {
                    params["sessionId"] = session.as_str().into();
                }
                let method = if self.resume.is_some() { "session/load" } else { "session/new" };
                Heard { said: Vec::new(), send: Form::Named.call(SESSION, method, params) }
            }
            SESSION => {
                let session = result["sessionId"].as_str().map(str::to_owned).or_else(|| self.resume.clone());
                let session = session.unwrap_or_default();
                // When a session is loaded, the program repeats what was said before, which does not belong
                // to this turn.
                (self.told.open, self.told.came) = (String::new(), 0);
                self.told.text = None;
                let prompt = json!([{"type": "text", "text": self.prompt}]);
                let params = json!({"sessionId": session, "prompt": prompt});
                let said = self.told.is_session(&session).into_iter().collect();
                Heard { said, send: Form::Named.call(PROMPT, "session/prompt", params) }
            }
            _ => Heard { said: self.over(result), send: Vec::new() },
        }
    }

    fn over(&mut self, result: &Value) -> Vec<Said> {
        let stopped = text(result, "stopReason");
        let count = &result["_meta"]["quota"]["token_count"];
        self.told.spent.input += number(count, "input_tokens");
        self.told.spent.output += number(count, "output_tokens");
        let models = result["_meta"]["quota"]["model_usage"].as_array();
        if let Some(model) = models.and_then(|models| models.last()).and_then(|last| last["model"].as_str()) {
            self.told.spent.model = Some(model.to_owned());
        }
        self.told.verdict = Some(match stopped {
            "end_turn" => Verdict::Good,
            "cancelled" => Verdict::Aborted,
            "max_tokens" | "max_turn_requests" => Verdict::Bad(Cause::Limit, stopped.to_owned()),
            _ => Verdict::Bad(Cause::Unknown, shown::line(stopped.as_bytes())),
        });
        self.closed().chain([Said::Over]).collect()
    }

    /// Completes what came in pieces: the thought, and the message.
    fn closed(&mut self) -> impl Iterator<Item = Said> + use<> {
        self.thought().into_iter().chain(self.told.closed())
    }

    /// Completes the thought that came in pieces, if there is one.
    fn thought(&mut self) -> Option<Said> {
        let thought = std::mem::take(&mut self.thought);
        (!thought.is_empty()).then_some(Said::Thought(thought))
    }

    fn update(&mut self, update: &Value) -> Vec<Said> {
        let id = text(update, "toolCallId").to_owned();
        let said = match text(update, "sessionUpdate") {
            "agent_message_chunk" => {
                let thought = self.thought();
                let piece = self.told.piece(text(&update["content"], "text"));
                return thought.into_iter().chain([piece]).collect();
            }
            "agent_thought_chunk" => {
                let piece = text(&update["content"], "text");
                self.thought.push_str(head(piece, KEPT_MAX.saturating_sub(self.thought.len())));
                return vec![Said::ThoughtPiece(piece.to_owned())];
            }
            "tool_call" => Said::ToolStarted { id, name: name(update), args: args(update) },
            "tool_call_update" => match text(update, "status") {
                status @ ("completed" | "failed") => {
                    let gave = output(&blocks(&update["content"]));
                    Said::ToolEnded { id, ok: status == "completed", output: gave }
                }
                _ => return vec![],
            },
            _ => return vec![],
        };
        self.closed().chain([said]).collect()
    }

    fn permission(&mut self, id: &Value, params: &Value) -> Vec<Said> {
        let option = |kind: &str| {
            let options = params["options"].as_array().into_iter().flatten();
            let found = options.into_iter().find(|option| text(option, "kind") == kind);
            found.and_then(|option| option["optionId"].as_str()).map(str::to_owned)
        };
        let call = &params["toolCall"];
        let id = id.to_string();
        self.asked.push((id.clone(), option("allow_once"), option("reject_once")));
        let asked = Asked {
            id,
            call: call["toolCallId"].as_str().map(str::to_owned),
            tool: name(call),
            args: args(call),
            takes_changes: false,
        };
        self.closed().chain([Said::Asked(asked)]).collect()
    }
}

/// Returns a tool's name. The ids of calls begin with it, twice: `write_file__write_file_...`. For an id of
/// another form the call's kind is returned.
fn name(call: &Value) -> String {
    let id = text(call, "toolCallId");
    match id.split_once("__") {
        Some((name, _)) if !name.is_empty() => name.to_owned(),
        _ => text(call, "kind").to_owned(),
    }
}

/// Returns the arguments of a call, as far as the program reports them.
fn args(call: &Value) -> Map<String, Value> {
    let told = ["title", "kind", "content", "locations", "rawInput"];
    told.iter().filter_map(|key| call.get(*key).map(|value| ((*key).to_owned(), value.clone()))).collect()
}

impl Talk for Acp {
    fn opening(&mut self) -> Vec<u8> {
        Form::Named.call(INITIALIZE, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}))
    }

    fn closes(&self) -> bool {
        false
    }

    fn object(&mut self, raw: &[u8], value: &Value) -> Heard {
        let params = &value["params"];
        let said = match (&value["id"], text(value, "method")) {
            (Value::Null, "session/update") => self.update(&params["update"]),
            (Value::Null, "") => vec![Said::Noise(shown::line(raw))],
            (Value::Null, _) => vec![],
            (id, "") => return id.as_u64().map_or_else(Heard::default, |id| self.answered(id, value)),
            (id, "session/request_permission") => self.permission(id, params),
            (id, method) => return Form::Named.unknown(id, method),
        };
        Heard { said, send: Vec::new() }
    }

    fn answer(&mut self, asked: &str, decision: &Decision) -> Answer {
        let Some(at) = self.asked.iter().position(|(id, ..)| id == asked) else { return Answer::default() };
        let (id, allow, reject) = self.asked.remove(at);
        let (option, untold) = match decision {
            Decision::Approved => (allow, None),
            Decision::Denied(why) => (reject, Some(why.clone())),
            Decision::Modified(args) => (reject, Some(wanted(args))),
        };
        let outcome = match option {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            // The program offers no such option; `cancelled` refuses the call.
            None => json!({"outcome": "cancelled"}),
        };
        Answer { send: Form::Named.answer(&id, json!({ "outcome": outcome })), untold }
    }

    fn interrupt(&mut self) -> Vec<u8> {
        let Some(session) = &self.told.session else { return Vec::new() };
        Form::Named.notice("session/cancel", Some(json!({ "sessionId": session })))
    }

    fn told(&self) -> &Told {
        &self.told
    }

    fn ending(&self, end: &End) -> Ending {
        judge(&self.told, end, cause_of_exit)
    }
}

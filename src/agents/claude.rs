//! `claude`: stream-json lines; if the node is gated, it asks through its permission tool on stdio.
//!
//! The branch's own settings run hooks and key helpers, start servers and change the address that the key is
//! sent to. So `--strict-mcp-config` is always given, and `--setting-sources user` unless the branch's
//! settings are trusted; `--bare` and `--safe-mode` only seem to have that effect. The program does not
//! remember permission mode and model, so both are given each time. A session is resumed by its file (see
//! `session_file`): by its id the program finds it only from few directories. Implements N9, N9a.

use super::Talk;
use super::call::{Call, Resume, SERVER_TIME, TOOL_TIME, Turn, args, temporary};
use super::ending::{End, Ending, judge, of_status};
use super::rpc::{blocks, line, map, number, text};
use super::said::{Answer, Asked, Cause, Decision, Heard, Said, Told, Verdict, Wait, output};
use super::spent::{Spent, micro_usd};
use crate::contract::shown;
use crate::contract::time::Time;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What the program prints if a session does not exist.
const LOST: [&str; 2] = ["No conversation found", "requires a valid session ID"];

/// Returns the call for a turn.
pub fn turn(turn: &Turn) -> Call {
    let mut words = args(["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]);
    if !turn.project_settings {
        words.extend(args(["--setting-sources", "user"]));
    }
    words.extend(args(["--strict-mcp-config"]));
    let mut allowed = vec![];
    if turn.gated {
        words.extend(args(["--input-format", "stream-json", "--permission-mode", "default"]));
        words.extend(args(["--permission-prompt-tool", "stdio"]));
    } else {
        words.extend(args(["--permission-mode", "acceptEdits"]));
        allowed.push("Bash".to_owned());
    }
    if let Some(tools) = turn.tools {
        let server = json!({"command": tools.program, "args": tools.args});
        words.extend(args(["--mcp-config", &json!({"mcpServers": {tools.name: server}}).to_string()]));
        // The flow's tools have gates of their own.
        allowed.push(format!("mcp__{}", tools.name));
    }
    if !allowed.is_empty() {
        words.extend(args(["--allowedTools", &allowed.join(",")]));
    }
    if let Some(model) = turn.model {
        words.extend(args(["--model", model]));
    }
    match turn.resume {
        Resume::New => {}
        Resume::Id(id) => words.extend(args(["--resume", id])),
        Resume::File(file) => words.extend(["--resume".into(), file.into()]),
    }
    words.extend(turn.extra.iter().map(Into::into));
    let mut env = vec![("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", Some("1".into())), temporary(turn)];
    if turn.tools.is_some() {
        env.push(("MCP_TOOL_TIMEOUT", Some(TOOL_TIME.as_millis().to_string().into())));
        env.push(("MCP_TIMEOUT", Some(SERVER_TIME.as_millis().to_string().into())));
    }
    Call { args: words, env, talk: Box::new(Claude::new(turn.prompt, turn.gated)) }
}

/// Returns the file of a session, by which it is resumed from any directory; `None` for an id that is not a
/// plain name. `home` is the value of `CLAUDE_CONFIG_DIR`, or `~/.claude`; `cwd` is the directory in which
/// the program said it works.
pub fn session_file(home: &Path, cwd: &str, id: &str) -> Option<PathBuf> {
    // The id comes from the program's output: it has to be the name of a file, not a path.
    let plain = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let folder: String = cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    plain.then(|| home.join("projects").join(folder).join(format!("{id}.jsonl")))
}

/// A conversation with `claude`.
#[derive(Debug)]
pub struct Claude {
    prompt: String,
    gated: bool,
    told: Told,
    /// The open requests for permission: the id of each, and the arguments of the tool.
    asked: Vec<(String, Value)>,
    /// The kind of error that a message made up by the program reported.
    error: Option<String>,
    interrupts: u64,
}

impl Claude {
    /// Returns a conversation that begins with this prompt; if `gated`, the program asks before each tool.
    pub fn new(prompt: &str, gated: bool) -> Self {
        let (told, asked) = (Told::default(), Vec::new());
        Self { prompt: prompt.to_owned(), gated, told, asked, error: None, interrupts: 0 }
    }

    fn system(&mut self, value: &Value) -> Vec<Said> {
        match text(value, "subtype") {
            "init" => {
                self.told.cwd = value["cwd"].as_str().map(str::to_owned);
                self.told.spent.model = value["model"].as_str().map(str::to_owned);
                self.told.is_session(text(value, "session_id")).into_iter().collect()
            }
            "api_retry" => {
                let (error, status) = (text(value, "error"), &value["error_status"]);
                let why = shown::line(format!("{error} ({status}), attempt {}", value["attempt"]).as_bytes());
                self.told.retries = Some(why.clone());
                vec![Said::Retries(why)]
            }
            // The number of thinking tokens is not reported, as the thoughts themselves are.
            "status" | "thinking_tokens" => vec![],
            other => vec![Said::Note(shown::line(format!("system {other}").as_bytes()))],
        }
    }

    fn stream(&mut self, event: &Value) -> Vec<Said> {
        let delta = &event["delta"];
        match (text(event, "type"), text(delta, "type")) {
            ("content_block_delta", "text_delta") => vec![self.told.piece(text(delta, "text"))],
            ("content_block_delta", "thinking_delta") => {
                vec![Said::ThoughtPiece(text(delta, "thinking").to_owned())]
            }
            _ => vec![],
        }
    }

    fn assistant(&mut self, value: &Value) -> Vec<Said> {
        if let Some(error) = value["error"].as_str() {
            // The verdict, which follows, has the text of this message.
            self.error = Some(error.to_owned());
            return vec![];
        }
        let mut said = Vec::new();
        for block in value["message"]["content"].as_array().into_iter().flatten() {
            match text(block, "type") {
                "text" => said.push(self.told.whole(text(block, "text"))),
                "thinking" => said.push(Said::Thought(text(block, "thinking").to_owned())),
                "tool_use" => said.push(Said::ToolStarted {
                    id: text(block, "id").to_owned(),
                    name: text(block, "name").to_owned(),
                    args: map(block, "input"),
                }),
                _ => {}
            }
        }
        said
    }

    fn user(&self, value: &Value) -> Vec<Said> {
        let mut said = Vec::new();
        for block in value["message"]["content"].as_array().into_iter().flatten() {
            if text(block, "type") == "tool_result" {
                let gave = match &block["content"] {
                    Value::String(text) => output(text),
                    Value::Null => String::new(),
                    other => output(&blocks(other)),
                };
                let ok = block["is_error"].as_bool() != Some(true);
                said.push(Said::ToolEnded { id: text(block, "tool_use_id").to_owned(), ok, output: gave });
            }
        }
        said
    }

    fn request(&mut self, value: &Value) -> Heard {
        let (id, request) = (text(value, "request_id"), &value["request"]);
        if text(request, "subtype") != "can_use_tool" {
            let error = json!({"subtype": "error", "request_id": id, "error": "not known"});
            let note = format!("asked for '{}', which is not known", text(request, "subtype"));
            let send = line(&json!({"type": "control_response", "response": error}));
            return Heard { said: vec![Said::Note(shown::line(note.as_bytes()))], send };
        }
        self.asked.push((id.to_owned(), request["input"].clone()));
        let asked = Asked {
            id: id.to_owned(),
            call: request["tool_use_id"].as_str().map(str::to_owned),
            tool: text(request, "tool_name").to_owned(),
            args: map(request, "input"),
            takes_changes: true,
        };
        Heard { said: vec![Said::Asked(asked)], send: Vec::new() }
    }

    fn result(&mut self, value: &Value) -> Vec<Said> {
        let said: Vec<Said> = self.told.is_session(text(value, "session_id")).into_iter().collect();
        let usage = &value["usage"];
        let cached = number(usage, "cache_read_input_tokens");
        let input = number(usage, "input_tokens") + number(usage, "cache_creation_input_tokens") + cached;
        let more = Spent { input, output: number(usage, "output_tokens"), cached, ..Spent::default() };
        self.told.spent.add(more);
        // The price is that of the process so far, not of the turn.
        self.told.spent.micro_usd = value["total_cost_usd"].as_f64().and_then(micro_usd);
        self.told.verdict = Some(self.verdict(value));
        said.into_iter().chain([Said::Over]).collect()
    }

    fn verdict(&self, value: &Value) -> Verdict {
        let (subtype, reason) = (text(value, "subtype"), text(value, "terminal_reason"));
        if value["is_error"].as_bool() == Some(false) && subtype == "success" {
            return Verdict::Good;
        }
        if reason.starts_with("aborted") {
            return Verdict::Aborted;
        }
        let errors: Vec<&str> =
            value["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let words = if errors.is_empty() { text(value, "result").to_owned() } else { errors.join("\n") };
        let wait = self.told.resets.map_or(Wait::Unknown, Wait::Until);
        let cause = if subtype.starts_with("error_max") {
            Cause::Limit
        } else if LOST.iter().any(|part| words.contains(part)) {
            Cause::SessionLost
        } else if words.starts_with("Not logged in") || self.error.as_deref() == Some("authentication_failed")
        {
            Cause::Login
        } else if words.contains("Unable to connect") {
            Cause::Unreachable
        } else if self.told.resets.is_some() {
            Cause::Quota(wait)
        } else {
            of_status(value["api_error_status"].as_u64(), &words, wait)
        };
        Verdict::Bad(cause, words)
    }
}

impl Talk for Claude {
    fn opening(&mut self) -> Vec<u8> {
        if !self.gated {
            return self.prompt.clone().into_bytes();
        }
        let message = json!({"role": "user", "content": self.prompt});
        line(&json!({"type": "user", "message": message}))
    }

    fn closes(&self) -> bool {
        !self.gated
    }

    fn object(&mut self, raw: &[u8], value: &Value) -> Heard {
        let said = match text(value, "type") {
            "system" => self.system(value),
            "stream_event" => self.stream(&value["event"]),
            "assistant" => self.assistant(value),
            "user" => self.user(value),
            "rate_limit_event" => {
                let info = &value["rate_limit_info"];
                let until = info["resetsAt"].as_i64().map(Time::from_seconds);
                if text(info, "status") == "rejected" {
                    self.told.resets = until;
                }
                let until = until.map_or_else(String::new, |until| format!(", resets {until}"));
                vec![Said::Note(shown::line(
                    format!("rate limit: {}{until}", text(info, "status")).as_bytes(),
                ))]
            }
            "control_request" => return self.request(value),
            "control_cancel_request" => {
                let id = text(value, "request_id");
                self.asked.retain(|(asked, _)| asked != id);
                vec![Said::Unasked(id.to_owned())]
            }
            "control_response" => vec![],
            "result" => self.result(value),
            _ => vec![Said::Noise(shown::line(raw))],
        };
        Heard { said, send: Vec::new() }
    }

    fn answer(&mut self, asked: &str, decision: &Decision) -> Answer {
        let Some(at) = self.asked.iter().position(|(id, _)| id == asked) else { return Answer::default() };
        let (id, input) = self.asked.remove(at);
        let said = match decision {
            Decision::Approved => json!({"behavior": "allow", "updatedInput": input}),
            Decision::Modified(args) => json!({"behavior": "allow", "updatedInput": args}),
            Decision::Denied(why) => json!({"behavior": "deny", "message": why}),
        };
        let response = json!({"subtype": "success", "request_id": id, "response": said});
        let send = line(&json!({"type": "control_response", "response": response}));
        Answer { send, untold: None }
    }

    fn interrupt(&mut self) -> Vec<u8> {
        if !self.gated {
            return Vec::new();
        }
        self.interrupts += 1;
        let request = json!({"subtype": "interrupt"});
        line(
            &json!({"type": "control_request", "request_id": format!("stop-{}", self.interrupts), "request": request}),
        )
    }

    fn told(&self) -> &Told {
        &self.told
    }

    fn ending(&self, end: &End) -> Ending {
        judge(&self.told, end, |stderr, _| {
            if stderr.contains("No conversation found") {
                Cause::SessionLost
            } else if stderr.contains("already in use")
                || stderr.contains("--")
                || stderr.contains("Input must be")
            {
                Cause::Setup
            } else {
                Cause::Unknown
            }
        })
    }
}

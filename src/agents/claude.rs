//! `claude`: stream-json lines; asks through its permission tool on stdio where the node is gated.
//!
//! The branch's own settings run hooks and key helpers, start servers and move the address that the key goes to, so
//! `--setting-sources user --strict-mcp-config` is always there unless they are trusted; `--bare` and `--safe-mode` only
//! seem to do it. Permission mode and model are not remembered, so both are given each time. A session is resumed by
//! its file, whose place `session_file` tells: by id it is found from few directories. Implements N9, N9a.

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

/// What it says of a session that there is not.
const LOST: [&str; 2] = ["No conversation found", "requires a valid session ID"];

/// The call for a turn.
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
        // Our own tools have gates of their own.
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

/// The file of a session, which resumes it from any directory. `home` is what `CLAUDE_CONFIG_DIR` says, or
/// `~/.claude`; `cwd` the directory that the program said it works in.
pub fn session_file(home: &Path, cwd: &str, id: &str) -> Option<PathBuf> {
    // An id comes from a line: it is a name of a file, and no path.
    let plain = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let folder: String = cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    plain.then(|| home.join("projects").join(folder).join(format!("{id}.jsonl")))
}

/// A conversation with it.
#[derive(Debug)]
pub struct Claude {
    prompt: String,
    gated: bool,
    told: Told,
    /// What is asked and not answered yet, with the arguments.
    asked: Vec<(String, Value)>,
    /// The kind of error that its made-up message told.
    error: Option<String>,
    interrupts: u64,
}

impl Claude {
    /// One that begins with this prompt; `gated` asks before each tool.
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
            // How much was thought is in what was thought.
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
            // Its text is the verdict's, which follows.
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
        // The price is the process's so far, not the turn's.
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

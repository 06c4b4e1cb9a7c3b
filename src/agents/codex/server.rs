//! `codex app-server`: JSON-RPC lines without the field that names the protocol. It asks before it changes
//! anything, as the policy is `untrusted`: with `on-request` it does not ask about a command that the sandbox
//! stops. The sandbox is the same as in a turn that is not gated: an approved command runs in it first, and
//! codex runs it again outside of a read-only sandbox only if it failed at once. The gate takes no changed
//! arguments. Implements N8.

use super::super::Talk;
use super::super::ending::{End, Ending, judge};
use super::super::rpc::{Form, map, number, text};
use super::super::said::{Answer, Asked, Cause, Decision, Heard, Said, Told, Verdict, output};
use super::{cause, cause_of_stderr, mcp};
use crate::contract::shown;
use serde_json::{Map, Value, json};

const INITIALIZE: u64 = 1;
const THREAD: u64 = 2;
const TURN: u64 = 3;

/// The method by which it asks about a tool of a server.
const ELICITATION: &str = "mcpServer/elicitation/request";

/// Most items that are remembered for the requests that name them.
const ITEMS_MAX: usize = 256;

/// A conversation with `codex app-server`.
#[derive(Debug)]
pub struct Server {
    prompt: String,
    /// The parameters with which a thread is started or resumed.
    thread: Value,
    resumes: bool,
    told: Told,
    turn: Option<String>,
    /// The items that are under way (id, tool, arguments): a request for approval names only the id.
    items: Vec<(String, String, Map<String, Value>)>,
    asked: Vec<String>,
    /// Those of `asked` that are about a tool of a server.
    elicited: Vec<String>,
    calls: u64,
}

impl Server {
    /// Returns a conversation in this folder that begins with this prompt, in an existing thread or a new
    /// one.
    pub fn new(prompt: &str, cwd: &str, model: Option<&str>, thread: Option<&str>) -> Self {
        let mut params = json!({"cwd": cwd, "approvalPolicy": "untrusted", "sandbox": "workspace-write"});
        if let Some(model) = model {
            params["model"] = model.into();
        }
        if let Some(thread) = thread {
            params["threadId"] = thread.into();
        }
        Self {
            prompt: prompt.to_owned(),
            thread: params,
            resumes: thread.is_some(),
            told: Told::default(),
            turn: None,
            items: Vec::new(),
            asked: Vec::new(),
            elicited: Vec::new(),
            calls: TURN,
        }
    }

    /// Sets the sandbox that codex makes.
    pub fn within(mut self, sandbox: &str) -> Self {
        self.thread["sandbox"] = sandbox.into();
        self
    }

    fn answered(&mut self, id: u64, value: &Value) -> Heard {
        if value["error"].is_object() {
            let words = text(&value["error"], "message");
            self.told.verdict = Some(Verdict::Bad(cause(words), words.to_owned()));
            return Heard { said: vec![Said::Over], send: Vec::new() };
        }
        let result = &value["result"];
        match id {
            INITIALIZE => {
                let begin = if self.resumes { "thread/resume" } else { "thread/start" };
                let mut send = Form::Bare.notice("initialized", None);
                send.extend(Form::Bare.call(THREAD, begin, self.thread.clone()));
                Heard { said: Vec::new(), send }
            }
            THREAD => {
                let thread = text(&result["thread"], "id");
                self.told.cwd = result["thread"]["environments"][0]["cwd"].as_str().map(str::to_owned);
                self.told.spent.model = result["thread"]["model"].as_str().map(str::to_owned);
                let input = json!([{"type": "text", "text": self.prompt}]);
                let send = Form::Bare.call(TURN, "turn/start", json!({"threadId": thread, "input": input}));
                Heard { said: self.told.is_session(thread).into_iter().collect(), send }
            }
            _ => Heard::default(),
        }
    }

    fn item(&mut self, item: &Value, done: bool) -> Vec<Said> {
        let id = text(item, "id").to_owned();
        match text(item, "type") {
            "userMessage" => vec![],
            "agentMessage" if done => vec![self.told.whole(text(item, "text"))],
            "agentMessage" => vec![],
            "reasoning" if done => {
                let parts = item["summary"].as_array().into_iter().flatten().filter_map(Value::as_str);
                vec![Said::Thought(output(&parts.collect::<Vec<_>>().join("\n\n")))]
            }
            "reasoning" => vec![],
            name if !done => {
                let (name, args) = mcp::called(item).unwrap_or_else(|| {
                    let mut args = item.as_object().cloned().unwrap_or_default();
                    for key in ["id", "type", "status", "startedAtMs", "completedAtMs"] {
                        args.shift_remove(key);
                    }
                    (name.to_owned(), args)
                });
                if self.items.len() < ITEMS_MAX {
                    self.items.push((id.clone(), name.clone(), args.clone()));
                }
                vec![Said::ToolStarted { id, name, args }]
            }
            _ => {
                self.items.retain(|(known, ..)| *known != id);
                let ok = text(item, "status") == "completed"
                    && item["exitCode"].as_i64().is_none_or(|code| code == 0);
                let gave = mcp::gave(item).unwrap_or_else(|| text(item, "aggregatedOutput").to_owned());
                vec![Said::ToolEnded { id, ok, output: output(&gave) }]
            }
        }
    }

    /// Takes a request of the program: for an approval of an item, or one that this version does not know.
    fn request(&mut self, id: &Value, method: &str, params: &Value) -> Heard {
        if method == ELICITATION && text(&params["_meta"], "codex_approval_kind") == "mcp_tool_call" {
            return self.elicited(id, params);
        }
        let Some(kind) = method.strip_prefix("item/").and_then(|rest| rest.strip_suffix("/requestApproval"))
        else {
            return Form::Bare.unknown(id, method);
        };
        let item = text(params, "itemId");
        let known = self.items.iter().find(|(id, ..)| id == item);
        let (tool, mut args) = known
            .map_or_else(|| (kind.to_owned(), Map::new()), |(_, tool, args)| (tool.clone(), args.clone()));
        // What is asked for counts, and not only what was reported: another command, another folder.
        args.extend(map(&json!({ "params": params }), "params"));
        ["itemId", "threadId", "turnId"].iter().for_each(|id| drop(args.shift_remove(*id)));
        let id = id.to_string();
        self.asked.push(id.clone());
        let asked = Asked { id, call: Some(item.to_owned()), tool, args, takes_changes: false };
        Heard { said: vec![Said::Asked(asked)], send: Vec::new() }
    }

    /// Takes a request about a tool of a server. It names no item, so the item is found by the tool and its
    /// arguments.
    fn elicited(&mut self, id: &Value, params: &Value) -> Heard {
        let meta = &params["_meta"];
        let (tool, args) =
            (mcp::name(text(params, "serverName"), text(meta, "tool_name")), map(meta, "tool_params"));
        let is_it =
            |(_, name, given): &&(String, String, Map<String, Value>)| *name == tool && *given == args;
        let call = self.items.iter().find(is_it).map(|(id, ..)| id.clone());
        let id = id.to_string();
        self.asked.push(id.clone());
        self.elicited.push(id.clone());
        Heard {
            said: vec![Said::Asked(Asked { id, call, tool, args, takes_changes: false })],
            send: Vec::new(),
        }
    }

    fn notice(&mut self, raw: &[u8], method: &str, params: &Value) -> Vec<Said> {
        match method {
            "item/agentMessage/delta" => vec![self.told.piece(text(params, "delta"))],
            "item/started" => self.item(&params["item"], false),
            "item/completed" => self.item(&params["item"], true),
            "turn/started" => {
                self.turn = params["turn"]["id"].as_str().map(str::to_owned);
                vec![]
            }
            "serverRequest/resolved" => {
                let id = params["requestId"].to_string();
                let waits = self.asked.contains(&id);
                self.asked.retain(|asked| *asked != id);
                if waits { vec![Said::Unasked(id)] } else { vec![] }
            }
            "thread/tokenUsage/updated" => {
                let total = &params["tokenUsage"]["total"];
                self.told.spent.input = number(total, "inputTokens");
                self.told.spent.output = number(total, "outputTokens");
                self.told.spent.cached = number(total, "cachedInputTokens");
                vec![]
            }
            "error" => {
                let why = shown::line(text(&params["error"], "message").as_bytes());
                self.told.retries = Some(why.clone());
                vec![Said::Retries(why)]
            }
            "configWarning" => vec![Said::Note(shown::line(text(params, "summary").as_bytes()))],
            "turn/completed" => self.completed(&params["turn"]),
            // A notification about the program's own state.
            _ if method.contains('/') => vec![],
            _ => vec![Said::Noise(shown::line(raw))],
        }
    }

    fn completed(&mut self, turn: &Value) -> Vec<Said> {
        let words = text(&turn["error"], "message");
        self.told.verdict = Some(match text(turn, "status") {
            "completed" => Verdict::Good,
            "interrupted" => Verdict::Aborted,
            _ if words.is_empty() => Verdict::Bad(Cause::Unknown, turn["status"].to_string()),
            _ => Verdict::Bad(cause(words), words.to_owned()),
        });
        vec![Said::Over]
    }
}

impl Talk for Server {
    fn opening(&mut self) -> Vec<u8> {
        let version = env!("CARGO_PKG_VERSION");
        let client = json!({"name": "git-aynig", "title": "git-aynig", "version": version});
        Form::Bare.call(INITIALIZE, "initialize", json!({ "clientInfo": client }))
    }

    fn closes(&self) -> bool {
        false
    }

    fn object(&mut self, raw: &[u8], value: &Value) -> Heard {
        let (id, method) = (&value["id"], text(value, "method"));
        match (id, method) {
            (Value::Null, "") => Heard { said: vec![Said::Noise(shown::line(raw))], send: Vec::new() },
            (Value::Null, method) => {
                Heard { said: self.notice(raw, method, &value["params"]), send: Vec::new() }
            }
            (id, "") => id.as_u64().map_or_else(Heard::default, |id| self.answered(id, value)),
            (id, method) => self.request(id, method, &value["params"]),
        }
    }

    fn answer(&mut self, asked: &str, decision: &Decision) -> Answer {
        let Some(at) = self.asked.iter().position(|id| id == asked) else { return Answer::default() };
        let id = self.asked.remove(at);
        let (word, untold) = match decision {
            Decision::Approved => ("accept", None),
            Decision::Denied(why) => ("decline", Some(why.clone())),
            Decision::Modified(args) => ("decline", Some(wanted(args))),
        };
        let said = match self.elicited.iter().position(|elicited| *elicited == id) {
            Some(at) => {
                self.elicited.remove(at);
                json!({"action": word, "content": {}})
            }
            None => json!({ "decision": word }),
        };
        Answer { send: Form::Bare.answer(&id, said), untold }
    }

    fn interrupt(&mut self) -> Vec<u8> {
        let (Some(thread), Some(turn)) = (&self.told.session, &self.turn) else { return Vec::new() };
        self.calls += 1;
        Form::Bare.call(self.calls, "turn/interrupt", json!({"threadId": thread, "turnId": turn}))
    }

    fn told(&self) -> &Told {
        &self.told
    }

    fn ending(&self, end: &End) -> Ending {
        judge(&self.told, end, cause_of_stderr)
    }
}

/// Returns the words for an agent whose gate can't take the changed arguments that a person wants.
pub(in super::super) fn wanted(args: &Map<String, Value>) -> String {
    format!("denied as it was asked; wanted instead: {}", Value::Object(args.clone()))
}

//! A flow whose agents do what a test wrote down: a message that says `do:<name>` has the node run that script.

use crate::runs::{agent, flowing, good, live, send};
use crate::support::{Answer, PATIENCE, Server, UPGRADE, World, head, until, while_it_goes_on};
use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The contract's schema, and what holds a value against it.
#[path = "../../../tests/facts/contract/schema.rs"]
pub mod schema;

/// A world, its server, and one run.
pub struct Play {
    pub world: World,
    pub server: Server,
    pub run: String,
    runner: Option<Child>,
}

impl Drop for Play {
    fn drop(&mut self) {
        self.rest();
    }
}

impl Play {
    /// One whose run waits for messages.
    pub fn new() -> Self {
        Self::with(&json!({"mode": "INTERACTIVE"}), &[])
    }

    pub fn with(run: &Value, args: &[&str]) -> Self {
        let world = flowing();
        let dir = world.home.path().join("play");
        std::fs::create_dir(&dir).unwrap();
        let dir = dir.display();
        agent(
            &world,
            &format!(
                "T='{dir}'\nname=$(printf '%s' \"$prompt\" | grep -o 'do:[a-z0-9]*' | tail -1 | cut -c4-)\n\
                 if [ -e \"$T/$name.sh\" ]; then . \"$T/$name.sh\"; fi"
            ),
        );
        let server = world.serve(args);
        let made = good(server.post("/api/runs", &run.to_string()))["run"].clone();
        Self { world, server, run: made["id"].as_str().unwrap().to_owned(), runner: None }
    }

    pub fn at(&self, below: &str) -> String {
        format!("/api/runs/{}{below}", self.run)
    }

    /// What `do:<name>` does.
    pub fn script(&self, name: &str, script: &str) {
        std::fs::write(self.world.home.path().join("play").join(format!("{name}.sh")), script).unwrap();
    }

    /// A file that scripts can wait for, and leave: `$T/<name>`.
    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.world.home.path().join("play").join(name)
    }

    /// A node, with these fields besides.
    pub fn node(&self, label: &str, role: &str, more: &Value) -> String {
        let mut node = json!({"label": label, "alias": label.to_lowercase(), "roleTemplate": role, "provider": "custom",
            "capabilities": {"edgeManagement": "all"}, "permissions": {"cliPermissionsMode": "skip", "agentManagementRequiresApproval": false},
            "session": {"resume": true, "resetCommands": ["/new", "/clear"]}});
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = good(self.server.post(&self.at("/nodes"), &json!({"node": node}).to_string()));
        made["node"]["id"].as_str().unwrap().to_owned()
    }

    pub fn edge(&self, from: &str, to: &str) -> Value {
        let edge = json!({"edge": {"from": from, "to": to}}).to_string();
        good(self.server.post(&self.at("/edges"), &edge))["edge"].clone()
    }

    pub fn say(&self, node: &str, text: &str) -> String {
        let body = json!({"nodeId": node, "content": text, "interrupt": false}).to_string();
        let said = good(self.server.post(&self.at("/chat"), &body));
        said["messageId"].as_str().unwrap().to_owned()
    }

    pub fn patch(&self, patch: &Value) -> Value {
        good(send(&self.server, "PATCH", &self.at(""), &json!({ "patch": patch })))["run"].clone()
    }

    pub fn verb(&self, node: &str, verb: &str) -> Answer {
        self.server.post(&self.at(&format!("/nodes/{node}/{verb}")), "")
    }

    pub fn delete(&self, below: &str) -> Answer {
        send(&self.server, "DELETE", &self.at(below), &json!({}))
    }

    /// Has everything run that is ready, again and again, beside the test.
    pub fn go(&mut self) {
        let mut runner = self.world.runner();
        runner.args(["--every", "200ms"]).stdout(Stdio::null()).stderr(Stdio::null());
        self.runner = Some(runner.spawn().unwrap());
    }

    /// Ends that, and what runs with it.
    pub fn rest(&mut self) {
        if let Some(mut runner) = self.runner.take() {
            let pid = nix::unistd::Pid::from_raw(runner.id().cast_signed());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
            let _ = runner.wait();
        }
    }

    pub fn state(&self) -> Value {
        good(self.server.get(&self.at("")))["run"].clone()
    }

    pub fn of(&self, node: &str) -> Value {
        self.state()["nodes"][node].clone()
    }

    /// Waits until a node is so.
    #[track_caller]
    pub fn until_is(&self, node: &str, status: &str) {
        until(&format!("{node} is {status}: {}", self.of(node)), || {
            (self.of(node)["status"] == status).then_some(())
        });
    }

    /// Waits until nothing is to be done any more: every node rests, and nothing waits for any.
    #[track_caller]
    pub fn until_all_rest(&self) {
        let format = "--format=%(objectname) %(trailers:key=dwp-state,valueonly,separator=)";
        let heads = || self.world.git(&["for-each-ref", format, "refs/heads/flow"]);
        // However long that takes: a branch moves with all that is done.
        while_it_goes_on("all rest", || {
            let before = heads();
            let state = self.state();
            let mut nodes = state["nodes"].as_object().unwrap().values();
            let rest = before.lines().all(|line| line.ends_with(" idle"))
                && nodes.all(|node| node["status"] == "idle" && node["inboxCount"] == 0);
            if rest && heads() == before { Ok(()) } else { Err(before) }
        });
    }

    /// Waits for an event, and gives it.
    #[track_caller]
    pub fn until_said(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        until(what, || {
            self.state();
            self.log().into_iter().find(|event| is_it(event))
        })
    }

    /// The log, as it stands on the disk.
    pub fn log(&self) -> Vec<Value> {
        let path = self.world.repo().join(format!(".git/aynig/data/runs/{}/events.jsonl", self.run));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    pub fn of_type(&self, kind: &str) -> Vec<Value> {
        self.state();
        self.log().into_iter().filter(|event| event["type"] == kind).collect()
    }

    pub fn waiting(&self) -> Vec<Value> {
        good(self.server.get("/api/approvals"))["approvals"].as_array().unwrap().clone()
    }

    /// The call that waits for a person, as soon as one does.
    #[track_caller]
    pub fn until_asked(&self) -> Value {
        until("a call waits", || self.waiting().into_iter().next())["approval"].clone()
    }

    pub fn resolve(&self, approval: &Value, resolution: &Value) -> Answer {
        let id = approval["approvalId"].as_str().unwrap();
        let body = json!({ "resolution": resolution }).to_string();
        self.server.post(&format!("/api/approvals/{id}/resolve"), &body)
    }

    pub fn live(&self) -> TcpStream {
        live(&self.server, &format!("?runId={}", self.run))
    }
}

/// The last words of a turn, with calls in them.
pub fn finally(text: &str, calls: &[Value]) -> String {
    let calls: String = calls.iter().map(|call| format!("\n{}", json!({ "tool_call": call }))).collect();
    crate::runs::says(&json!({"type": "message.assistant.final", "content": format!("{text}{calls}")}))
}

/// Waits in a script for a file of the play.
pub fn waits(name: &str) -> String {
    format!("while [ ! -e \"$T/{name}\" ]; do sleep 0.02; done")
}

/// It is what the contract's schema says of this.
#[track_caller]
pub fn fits(name: &str, value: &Value) {
    let mut value = value.clone();
    if let (Some(object), "event") = (value.as_object_mut(), name) {
        // Where it stands in the log is ours, and beside the contract.
        let seq: Option<Value> = Map::remove(object, "seq");
        assert!(seq.is_none_or(|seq| seq.is_u64()));
    }
    let wrong = schema::wrong(&schema::contract(), name, &value);
    assert!(wrong.is_empty(), "{wrong:#?} in {value}");
}

/// A page of others, as a browser has it: its own name, a cookie, an origin, and nothing else.
pub struct Theirs<'s> {
    server: &'s Server,
    host: String,
    cookie: String,
}

impl<'s> Theirs<'s> {
    pub fn enter(server: &'s Server) -> Self {
        let (address, code) = server.said["ui"].as_str().unwrap().split_once('#').unwrap();
        let host = address.strip_prefix("http://").unwrap().strip_suffix("/.aynig/enter").unwrap().to_owned();
        let mut page = Self { server, host, cookie: String::new() };
        let answer = page.ask("POST", "/.aynig/enter", &json!({ "code": code }));
        page.cookie = answer.headers["set-cookie"].split(';').next().unwrap().to_owned();
        page
    }

    /// A call as that page makes it: JSON is said of every one.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let lines = [
            format!("Host: {}", self.host),
            format!("Origin: http://{}", self.host),
            format!("Cookie: {}", self.cookie),
            "Content-Type: application/json".to_owned(),
            "Sec-Fetch-Site: same-origin".to_owned(),
        ];
        self.server.ask_as(method, path, &lines.each_ref().map(String::as_str), &body)
    }

    #[track_caller]
    pub fn good(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.ask(method, path, body);
        assert!((200..300).contains(&answer.status), "{method} {path} {body}: {}", answer.text());
        answer.json()
    }

    /// Its socket, with no subprotocol.
    pub fn socket(&self, run: &str) -> TcpStream {
        let mut stream = self.server.connect();
        let (host, cookie) = (&self.host, &self.cookie);
        let asked = format!(
            "GET /ws?runId={run} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie}\r\n{UPGRADE}\r\n"
        );
        stream.write_all(asked.as_bytes()).unwrap();
        let head = head(&mut stream);
        assert!(head.starts_with("HTTP/1.1 101 ") && !head.to_lowercase().contains("protocol:"), "{head}");
        stream
    }
}

/// Nothing comes for so long.
pub fn is_silent(stream: &mut TcpStream, so_long: Duration) -> bool {
    stream.set_read_timeout(Some(so_long)).unwrap();
    let silent = stream.read(&mut [0]).is_err();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    silent
}

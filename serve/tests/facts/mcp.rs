//! `mcp` as a program of an agent's speaks to it; the turn at the other end is the test. (N7)

use super::support::SERVE;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A server that has come up, and the turn's end of its socket.
struct Tools {
    child: Child,
    stdin: Option<ChildStdin>,
    said: BufReader<ChildStdout>,
    turn: BufReader<UnixStream>,
    _folder: tempfile::TempDir,
}

fn line(from: &mut impl BufRead) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
}

impl Tools {
    /// One that a program has begun to speak with, as of this version of the protocol.
    fn new(version: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Longer than a socket's name can be.
        let deep = folder.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let socket = deep.join("socket");
        let listener = aynig::supervisor::socket::listen(&socket).unwrap();
        let mut child = Command::new(SERVE)
            .args(["mcp", "--socket"])
            .arg(&socket)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let turn = BufReader::new(listener.accept().unwrap().0);
        let (stdin, said) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut tools = Self { child, stdin, said, turn, _folder: folder };
        let client = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        tools.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}));
        let began = tools.hear();
        assert_eq!(
            (&began["id"], &began["result"]["protocolVersion"]),
            (&json!(0), &json!(version)),
            "{began}"
        );
        assert!(began["result"]["capabilities"]["tools"].is_object(), "{began}");
        tools.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        tools
    }

    fn send(&mut self, message: &Value) {
        self.stdin.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn call(&mut self, id: u64, name: &str, args: &Value, meta: &Value) {
        let params = json!({"name": name, "arguments": args, "_meta": meta});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn hear(&mut self) -> Value {
        line(&mut self.said)
    }

    fn asked(&mut self) -> Value {
        line(&mut self.turn)
    }

    fn answer(&mut self, answer: &Value) {
        self.turn.get_mut().write_all(format!("{answer}\n").as_bytes()).unwrap();
    }
}

/// What the three programs spoke when they were recorded.
const VERSIONS: [&str; 2] = ["2025-06-18", "2025-11-25"];

#[test]
fn tools_and_calls_are_the_turns() {
    for version in VERSIONS {
        let mut tools = Tools::new(version);
        tools.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        let asked = tools.asked();
        assert_eq!(asked["call"], Value::Null, "{asked}");
        let schema = json!({"type": "object", "properties": {"question": {"type": "string"}}});
        let tool = json!({"name": "ask", "description": "Asks.", "schema": schema});
        tools.answer(&json!({"id": asked["id"], "tools": [tool]}));
        let listed = tools.hear();
        assert_eq!(listed["result"]["tools"][0]["name"], "ask");
        assert_eq!(listed["result"]["tools"][0]["inputSchema"], schema);
        // Two at once, answered the other way round, each under its program's own id.
        tools.call(
            2,
            "ask",
            &json!({"question": "a?"}),
            &json!({"claudecode/toolUseId": "toolu_1", "progressToken": 2}),
        );
        let first = tools.asked();
        assert_eq!(first["call"], json!({"name": "ask", "args": {"question": "a?"}, "id": "toolu_1"}));
        tools.call(3, "send_handoff", &json!({}), &json!({"callId": "call_9"}));
        let second = tools.asked();
        assert_eq!(second["call"], json!({"name": "send_handoff", "args": {}, "id": "call_9"}));
        tools.answer(&json!({"id": second["id"], "result": {"ok": false}, "error": {"message": "no edge"}}));
        let refused = tools.hear();
        assert_eq!((&refused["id"], &refused["result"]["isError"]), (&json!(3), &json!(true)), "{refused}");
        assert_eq!(refused["result"]["content"][0]["text"], "no edge");
        tools.answer(&json!({"id": first["id"], "result": {"ok": true, "output": {"answer": "b"}}}));
        let done = tools.hear();
        assert_eq!(
            (&done["id"], &done["result"]["content"][0]["text"]),
            (&json!(2), &json!("{\"answer\":\"b\"}"))
        );
        assert_ne!(done["result"]["isError"], true);
        // Its program is gone, and so is it.
        drop(tools.stdin.take());
        assert!(tools.child.wait().unwrap().success());
    }
}

#[test]
fn a_turn_that_is_over_answers_nothing_and_nothing_hangs() {
    let mut tools = Tools::new(VERSIONS[1]);
    tools.call(1, "ask", &json!({}), &json!({}));
    tools.asked();
    tools.turn.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
    for id in [1, 2] {
        let said = tools.hear();
        assert_eq!((&said["id"], &said["result"]["isError"]), (&json!(id), &json!(true)), "{said}");
        assert_eq!(said["result"]["content"][0]["text"], "the turn is over");
        tools.call(2, "ask", &json!({}), &json!({}));
    }
    drop(tools.stdin.take());
    assert!(tools.child.wait().unwrap().success());
}

#[test]
fn nobody_to_speak_to_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none");
    drop(UnixListener::bind(&socket).unwrap());
    let output = Command::new(SERVE).args(["mcp", "--socket"]).arg(&socket).output().unwrap();
    assert_eq!(output.status.code(), Some(128));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no program listens on '") && said.contains("hint: "), "{said}");
    assert_eq!(Command::new(SERVE).arg("mcp").output().unwrap().status.code(), Some(129));
    // A turn that ends before its program has said a word.
    let listener = UnixListener::bind(folder.path().join("some")).unwrap();
    let mut child = Command::new(SERVE)
        .args(["mcp", "--socket"])
        .arg(folder.path().join("some"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(listener.accept().unwrap());
    child.wait().unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

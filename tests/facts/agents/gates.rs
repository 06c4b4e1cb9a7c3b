//! What programs ask a person, and what they are answered: claude on stdio, codex's app-server, gemini's ACP, a custom
//! program. (N8)

use super::transcripts::{of, play};
use aynig::agents::codex::Server;
use aynig::agents::custom::{Custom, Protocol, text_of};
use aynig::agents::gemini::Acp;
use aynig::agents::{Asked, Decision, End, Ending, Exit, Said, Talk};
use aynig::contract::event::{ToolError, ToolResult};
use aynig::contract::id::TurnId;
use aynig::contract::prompt::PromptKind;
use serde_json::{Map, Value, json};

fn asked(said: &[Said]) -> Asked {
    let mut asked =
        said.iter().filter_map(|said| if let Said::Asked(asked) = said { Some(asked.clone()) } else { None });
    let one = asked.next().expect("something is asked");
    assert_eq!(asked.next(), None);
    one
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    std::str::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn args(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// The lines of a transcript up to the first that holds a word.
fn until(name: &str, word: &str) -> (Box<dyn Talk>, Vec<Said>) {
    let transcript = of(name);
    let mut talk = transcript.talk();
    let end = transcript.stdout.find(word).unwrap();
    let end = end + transcript.stdout[end..].find('\n').unwrap();
    let said = play(&mut *talk, &transcript.stdout.as_bytes()[..end], 4096);
    (talk, said)
}

#[test]
fn claude_asks_on_stdio_and_takes_changed_arguments() {
    for decision in 0..3 {
        let (mut talk, said) = until("claude/ask-stdio-allow", "can_use_tool");
        let asked = asked(&said);
        assert_eq!(
            (asked.tool.as_str(), asked.call.as_deref(), asked.takes_changes),
            ("Write", Some("toolu_msg_fake00000107"), true)
        );
        let changed = args(json!({"file_path": "other.txt", "content": ""}));
        let (decision, want) = match decision {
            0 => (Decision::Approved, json!({"behavior": "allow", "updatedInput": asked.args})),
            1 => (Decision::Denied("no".into()), json!({"behavior": "deny", "message": "no"})),
            _ => (Decision::Modified(changed.clone()), json!({"behavior": "allow", "updatedInput": changed})),
        };
        let answer = talk.answer(&asked.id, &decision);
        let response = json!({"subtype": "success", "request_id": asked.id, "response": want});
        assert_eq!(lines(&answer.send), [json!({"type": "control_response", "response": response})]);
        assert_eq!(answer.untold, None);
        // Once is enough.
        assert!(talk.answer(&asked.id, &decision).send.is_empty());
    }
}

#[test]
fn a_denied_call_is_an_answer_and_the_turn_goes_on() {
    for (name, tools) in [("claude/ask-stdio-deny", 2), ("codex/app-decline", 1), ("gemini/acp-reject", 0)] {
        let transcript = of(name);
        let mut talk = transcript.talk();
        let said = play(&mut *talk, transcript.stdout.as_bytes(), 4096);
        asked(&said);
        let started = said.iter().filter(|said| matches!(said, Said::ToolStarted { .. })).count();
        assert_eq!((started, talk.ending(&transcript.end())), (tools, Ending::Completed), "{name}");
    }
}

#[test]
fn a_turn_is_interrupted_by_words_where_words_do() {
    let mut claude = of("claude/interrupt").talk();
    let stop = &lines(&claude.interrupt())[0];
    assert_eq!(
        (&stop["type"], &stop["request"]),
        (&json!("control_request"), &json!({"subtype": "interrupt"}))
    );
    // One that has no open standard input takes nothing but a signal.
    for name in ["claude/text", "codex/text", "gemini/text"] {
        assert!(of(name).talk().interrupt().is_empty());
    }
    let (mut codex, _) = until("codex/app-interrupt", "\"turn/started\"");
    let stop = &lines(&codex.interrupt())[0];
    let ids = json!({"threadId": "01a203e5-0963-75a0-b4e8-48110dad9616", "turnId": "01a203e5-0982-75c2-838f-f1cd3816a891"});
    assert_eq!((&stop["method"], &stop["params"]), (&json!("turn/interrupt"), &ids));
    let (mut gemini, _) = until("gemini/acp-cancel", "agent_message_chunk");
    assert_eq!(lines(&gemini.interrupt())[0]["method"], "session/cancel");
    // Before there is anything to interrupt there is nothing to say.
    assert!(of("codex/app-interrupt").talk().interrupt().is_empty());
    assert!(of("gemini/acp-cancel").talk().interrupt().is_empty());
}

/// Feeds a transcript line by line, and gives what was sent in answer to each, the opening first.
fn sent(talk: &mut dyn Talk, stdout: &str) -> Vec<Value> {
    let mut sent = lines(&talk.opening());
    for line in stdout.lines() {
        sent.extend(lines(&talk.line(line.as_bytes()).send));
    }
    sent
}

#[test]
fn codex_is_led_through_its_opening_as_it_was_seen_to_take_it() {
    let transcript = of("codex/app-approve");
    let mut talk = Server::new("@fake:write One.", "/srv/place/codex/app-approve/tree", None, None);
    let sent = sent(&mut talk, &transcript.stdout);
    let mut seen: Vec<Value> =
        transcript.sent.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Recorded with the policy that does not ask about commands, and where only what is asked about writes.
    let (policy, sandbox) = ("untrusted", "workspace-write");
    assert_eq!(seen[2]["params"]["approvalPolicy"], "on-request");
    assert_eq!(seen[2]["params"]["sandbox"], "read-only");
    (seen[2]["params"]["approvalPolicy"], seen[2]["params"]["sandbox"]) = (policy.into(), sandbox.into());
    assert_eq!(sent[0]["method"], seen[0]["method"]);
    assert_eq!(sent[1..3], seen[1..3]);
    let params = json!({"threadId": "01a203e5-23a5-7f33-9e4a-da3861d99d75", "input": [{"type": "text", "text": "@fake:write One."}]});
    assert_eq!(sent[3], json!({"id": 3, "method": "turn/start", "params": params}));
    assert_eq!(sent.len(), 4);
    let mut resumed = Server::new("go on", "/tree", Some("m"), Some("thread"));
    resumed.opening();
    let begun = lines(&resumed.line(br#"{"id":1,"result":{}}"#).send).remove(1);
    let params = json!({"cwd": "/tree", "approvalPolicy": "untrusted", "sandbox": "workspace-write", "model": "m", "threadId": "thread"});
    assert_eq!((&begun["method"], &begun["params"]), (&json!("thread/resume"), &params));
}

#[test]
fn codex_asks_about_an_item_and_is_told_accept_or_decline() {
    for (decision, word, untold) in [
        (Decision::Approved, "accept", None),
        (Decision::Denied("no".into()), "decline", Some("no".to_owned())),
        (
            Decision::Modified(args(json!({"a": 1}))),
            "decline",
            Some("denied as it was asked; wanted instead: {\"a\":1}".to_owned()),
        ),
    ] {
        let (mut talk, said) = until("codex/app-approve", "requestApproval");
        let asked = asked(&said);
        assert_eq!((asked.tool.as_str(), asked.takes_changes), ("fileChange", false));
        assert!(asked.args["changes"][0]["path"].as_str().unwrap().ends_with("made-by-agent.txt"));
        let answer = talk.answer(&asked.id, &decision);
        assert_eq!(lines(&answer.send), [json!({"id": 0, "result": {"decision": word}})]);
        assert_eq!(answer.untold, untold);
    }
    // Answered elsewhere, or not wanted any more.
    let said = play(&mut *of("codex/app-approve").talk(), of("codex/app-approve").stdout.as_bytes(), 4096);
    assert!(said.contains(&Said::Unasked("0".into())));
}

#[test]
fn gemini_is_led_through_its_opening_and_offered_options_are_chosen() {
    let transcript = of("gemini/acp-allow");
    let mut talk = Acp::new("@fake:write One.", "/srv/place/gemini/acp-allow/tree", None);
    let sent = sent(&mut talk, &transcript.stdout);
    let seen: Vec<Value> = transcript.sent.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(sent[..2], seen[..2]);
    let params = json!({"sessionId": "98637292-b056-442d-9d95-0a23dd6ec092", "prompt": [{"type": "text", "text": "@fake:write One."}]});
    assert_eq!(sent[2], json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params}));
    for (decision, option) in
        [(Decision::Approved, "proceed_once"), (Decision::Denied("no".into()), "cancel")]
    {
        let (mut talk, said) = until("gemini/acp-allow", "request_permission");
        let asked = asked(&said);
        assert_eq!(asked.tool, "write_file");
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let answer = talk.answer(&asked.id, &decision);
        assert_eq!(lines(&answer.send), [json!({"jsonrpc": "2.0", "id": 0, "result": outcome})]);
    }
}

#[test]
fn a_gate_that_offers_no_option_for_an_answer_refuses() {
    let mut talk = Acp::new("x", "/tree", None);
    let heard = talk.line(br#"{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{}}"#);
    let asked = asked(&heard.said);
    let answer = talk.answer(&asked.id, &Decision::Approved);
    assert_eq!(lines(&answer.send)[0]["result"], json!({"outcome": {"outcome": "cancelled"}}));
}

#[test]
fn a_call_that_nobody_knows_is_answered_so_that_nothing_hangs() {
    let mut codex = Server::new("x", "/tree", None, None);
    let answer = lines(&codex.line(br#"{"id":7,"method":"item/later/ask","params":{}}"#).send).remove(0);
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32601)));
    let mut gemini = Acp::new("x", "/tree", None);
    let answer =
        lines(&gemini.line(br#"{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","params":{}}"#).send)
            .remove(0);
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("a"), &json!(-32601)));
    let mut claude = of("claude/ask-stdio-allow").talk();
    let heard = claude.line(br#"{"type":"control_request","request_id":"r","request":{"subtype":"later"}}"#);
    assert_eq!(lines(&heard.send)[0]["response"]["subtype"], "error");
}

#[test]
fn a_custom_program_speaks_the_contracts_lines() {
    let turn = TurnId::parse("0b5c4a53-3c57-4e3e-9d8f-3d0d3e2d1c00").unwrap();
    let mut talk = Custom::new(Protocol::Jsonl, "do it", PromptKind::Full, turn);
    let said = play(
        &mut talk,
        br#"{"type":"message.assistant.delta","delta":"All "}
{"type":"approval.requested","approvalId":"a-1","tool":{"id":"t-1","name":"command","args":{"cmd":"ls"}}}
{"type":"tool.started","tool":{"id":"t-1","name":"command","args":{"cmd":"ls"}}}
{"type":"tool.completed","toolId":"t-1","result":{"ok":true,"output":"a"}}
{"type":"telemetry.usage","model":"m","usage":{"promptTokens":3,"completionTokens":4}}
not json
{"type":"message.assistant.final","content":"All done."}"#,
        4096,
    );
    let asked = asked(&said);
    let answer = talk.answer(&asked.id, &Decision::Modified(args(json!({"cmd": "pwd"}))));
    let resolution = json!({"status": "modified", "modifiedArgs": {"cmd": "pwd"}});
    assert_eq!(
        lines(&answer.send),
        [json!({"type": "approval.resolved", "approvalId": "a-1", "resolution": resolution})]
    );
    assert!(
        said.contains(&Said::Noise("not json".into()))
            && said.ends_with(&[Said::Text("All done.".into()), Said::Over])
    );
    assert_eq!((talk.told().spent.input, talk.told().spent.output), (3, 4));
    let end = End { exit: Exit::Code(0), stderr: b"", stopped: None };
    assert_eq!((talk.ending(&end), text_of(talk.told())), (Ending::Completed, "All done.".to_owned()));
    let result = ToolResult { ok: false, output: None };
    let told = talk.result("t-1", &result, Some(&ToolError { message: "no".into() })).unwrap();
    assert_eq!(
        lines(&told),
        [
            json!({"kind": "tool.result", "toolId": "t-1", "result": {"ok": false}, "error": {"message": "no"}})
        ]
    );
}

#[test]
fn an_empty_final_ends_a_turn_too() {
    let turn = TurnId::parse("0b5c4a53-3c57-4e3e-9d8f-3d0d3e2d1c00").unwrap();
    let mut talk = Custom::new(Protocol::Jsonl, "x", PromptKind::Full, turn);
    let said = play(&mut talk, br#"{"type":"message.assistant.final","content":""}"#, 9);
    assert_eq!(said, [Said::Text(String::new()), Said::Over]);
}

#[test]
fn what_a_raw_program_prints_is_its_message_and_its_status_the_verdict() {
    let turn = TurnId::parse("0b5c4a53-3c57-4e3e-9d8f-3d0d3e2d1c00").unwrap();
    let mut talk = Custom::new(Protocol::Raw, "x", PromptKind::Full, turn);
    play(&mut talk, b"one\n{\"type\":\"message.assistant.final\",\"content\":\"\"}\n\xff two\n", 5);
    let ended = |exit| talk.ending(&End { exit, stderr: b"words", stopped: None });
    assert_eq!(ended(Exit::Code(0)), Ending::Completed);
    assert_eq!((ended(Exit::Code(3)).name(), ended(Exit::Signal(15)).name()), ("crashed", "interrupted"));
    assert_eq!(
        text_of(talk.told()),
        "one\n{\"type\":\"message.assistant.final\",\"content\":\"\"}\n\u{fffd} two"
    );
}

//! What the programs print for tools that come by the Model Context Protocol, and for what their models think. (N7, N9)

use super::transcripts::{of, play};
use aynig::agents::Said;
use serde_json::{Value, json};

/// What calls tools, thinks and asks, of a transcript; ids and log lines left out.
fn told(name: &str) -> Vec<Value> {
    let said = play(&mut *of(name).talk(), of(name).stdout.as_bytes(), 4096);
    let row = |said| match said {
        Said::ToolStarted { name, args, .. } => Some(json!({"calls": name, "text": args.get("text")})),
        Said::ToolEnded { ok, output, .. } => Some(json!({"ok": ok, "gave": output})),
        Said::Asked(asked) => Some(json!({"asks": asked.tool, "text": asked.args.get("text")})),
        Said::Thought(text) => Some(json!({ "thought": text })),
        Said::Text(text) => Some(json!({ "text": text })),
        Said::Session(_)
        | Said::Piece(_)
        | Said::ThoughtPiece(_)
        | Said::Unasked(_)
        | Said::Retries(_)
        | Said::Note(_)
        | Said::Noise(_)
        | Said::Over => None,
    };
    said.into_iter().filter_map(row).collect()
}

fn calls(prefix: &str, refused: &str) -> Vec<Value> {
    vec![
        json!({"calls": format!("{prefix}tell"), "text": "hello"}),
        json!({"ok": true, "gave": "told: hello"}),
        json!({"calls": format!("{prefix}refuse"), "text": "that"}),
        json!({"ok": false, "gave": refused}),
    ]
}

const FIRST: &str = "I wonder.";
const LAST: &str = "Both done.";

#[test]
fn claudes_calls_have_the_servers_name_before_the_tools() {
    for name in ["claude/mcp", "claude/mcp-gated"] {
        let mut want = calls("mcp__aynig__", "no: that");
        want.insert(0, json!({ "thought": FIRST }));
        want.extend([json!({ "thought": LAST }), json!({"text": "Told and refused."})]);
        // No permission is asked for what '--allowedTools' names, gated or not.
        assert_eq!(told(name), want, "{name}");
    }
}

#[test]
fn codex_tells_server_and_tool_apart_and_both_are_the_name() {
    for name in ["codex/mcp", "codex/app-mcp"] {
        let mut want = calls("mcp__aynig__", "no: that");
        want.insert(0, json!({ "thought": FIRST }));
        want.extend([json!({ "thought": LAST }), json!({"text": "Told and refused."})]);
        assert_eq!(told(name), want, "{name}");
    }
    // A server whose tools are not approved beforehand is of no use where no person is asked.
    let never = told("codex/mcp-never");
    assert_eq!(
        never[2],
        json!({"ok": false, "gave": "MCP tool call requires approval, but approval policy is never"})
    );
}

/// N8: what another server would do is asked about, as any tool.
#[test]
fn codex_asks_about_tools_of_servers_that_are_not_approved() {
    let told = told("codex/app-mcp-asks");
    assert_eq!(told[1], json!({"calls": "mcp__aynig__tell", "text": "hello"}));
    assert_eq!(told[2], json!({"asks": "mcp__aynig__tell", "text": "hello"}));
    let transcript = of("codex/app-mcp-asks");
    let mut talk = transcript.talk();
    let said = play(&mut *talk, transcript.stdout.as_bytes(), 4096);
    let (mut started, mut asked) = (Vec::new(), Vec::new());
    for said in said {
        match said {
            Said::ToolStarted { id, .. } => started.push(id),
            Said::Asked(one) => asked.push(one.call.unwrap()),
            _ => {}
        }
    }
    // The same call: one approval, one tool.
    assert_eq!(started, asked);
}

#[test]
fn geminis_calls_and_thoughts_are_read_in_both_of_its_forms() {
    let mut want = calls("mcp_aynig_", "");
    want[3] = told("gemini/mcp")[3].clone();
    assert!(want[3]["gave"].as_str().unwrap().starts_with("MCP tool 'refuse' reported tool error"));
    assert_eq!(want[3]["ok"], false);
    want.push(json!({"text": "Told and refused."}));
    assert_eq!(told("gemini/mcp"), want);
    // It prints nothing of what its model thinks, but in a conversation.
    assert_eq!(told("gemini/think"), [json!({"text": "Thought."})]);
    assert_eq!(
        told("gemini/acp-think"),
        [json!({"thought": "****\nI wonder about this."}), json!({"text": "Thought."})]
    );
    let acp = told("gemini/acp-mcp");
    let names: Vec<&Value> = acp.iter().filter_map(|row| row.get("calls")).collect();
    assert_eq!(names, ["mcp_aynig_tell", "mcp_aynig_refuse"]);
    assert!(acp.contains(&json!({"ok": true, "gave": "told: hello"})), "{acp:#?}");
    assert!(!acp.iter().any(|row| row.get("asks").is_some()), "a server that is trusted is not asked about");
    assert!(told("gemini/acp-mcp-asks").iter().any(|row| row["asks"] == "mcp_aynig_tell"));
}

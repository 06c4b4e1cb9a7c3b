//! Approvals: questions of the kernel that hold the call which they are about.
//!
//! An approval's id is its question's; `approve`, `deny` and `modify` are what it offers, and the text of the last is the
//! arguments that are wanted instead, as a JSON object. Implements N8 (what is asked, what an answer means).

use crate::agents::Decision;
use crate::contract::event::ToolCall;
use crate::protocol::inbox::Letter;
use crate::protocol::message::Trailer;
use crate::protocol::text::escape_block;
use serde_json::{Map, Value};

/// The trailer of a question that is an approval: the call, as JSON on one line.
pub const TOOL: &str = "dwp-flow-tool";
/// What is offered: the call as it is, none, another.
pub const CHOICES: [&str; 3] = [APPROVE, DENY, MODIFY];
/// The call is made as it was proposed.
pub const APPROVE: &str = "approve";
/// The call is not made.
pub const DENY: &str = "deny";
/// The call is made with the arguments that the answer's text holds.
pub const MODIFY: &str = "modify";

/// Most bytes of a question's text.
const TEXT_MAX: usize = 16 << 10;
/// Most bytes of one text in it: the first of these with which all of them fit.
const SHORTENED: [usize; 4] = [4096, 1024, 256, 64];

/// The question's trailers.
pub fn trailers(call: &ToolCall) -> Vec<Trailer> {
    serde_json::to_vec(call).map(|call| Trailer::new(TOOL, call)).into_iter().collect()
}

/// The question's text: its first line says which tool, the rest with what. Long texts among the arguments are shortened,
/// each with its length, so that none hides another; where there are too many for that, it is said before them.
pub fn text(call: &ToolCall, who: &str) -> String {
    let head = escape_block(format!("may {who} call {}?\n\n", call.name).as_bytes());
    let shown = |most: usize| {
        let args: Map<String, Value> = call.args.iter().map(|(key, value)| pair(key, value, most)).collect();
        escape_block(serde_json::to_string_pretty(&args).unwrap_or_default().as_bytes())
    };
    let fits = SHORTENED.iter().map(|most| shown(*most)).find(|text| text.len() <= TEXT_MAX);
    fits.map_or_else(
        || {
            let text = shown(64);
            let warning =
                format!("not all of it is shown: its arguments are in '{TOOL}' of this question\n\n");
            format!("{}{warning}{}", start(&head, TEXT_MAX), start(&text, TEXT_MAX))
        },
        |text| format!("{}{text}", start(&head, TEXT_MAX)),
    )
}

/// The first bytes of a text, and how many there are.
fn start(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}[of {} bytes]", &text[..end], text.len())
}

fn pair(key: &str, value: &Value, most: usize) -> (String, Value) {
    (start(key, most), shortened(value, most))
}

/// A value with no text in it that is longer.
fn shortened(value: &Value, most: usize) -> Value {
    match value {
        Value::String(text) => start(text, most).into(),
        Value::Array(all) => all.iter().map(|value| shortened(value, most)).collect(),
        Value::Object(all) => Value::Object(all.iter().map(|(key, value)| pair(key, value, most)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// What an answer means. A wish that can't be read is no yes.
pub fn decision(answer: &Letter) -> Decision {
    let said = answer.text.trim();
    match answer.choice.as_deref() {
        Some(APPROVE) => Decision::Approved,
        Some(MODIFY) => match serde_json::from_str::<Map<String, Value>>(said) {
            Ok(args) => Decision::Modified(args),
            Err(_) => Decision::Denied("other arguments are wanted, and could not be read".to_owned()),
        },
        Some(_) | None if said.is_empty() => Decision::Denied(format!("{} said no", answer.from)),
        Some(_) | None => Decision::Denied(said.to_owned()),
    }
}

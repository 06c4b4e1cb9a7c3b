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

/// Most bytes of what a question says first: who, and which tool.
const HEAD_MAX: usize = 1 << 10;
/// Most bytes of the arguments in a question's text.
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
        let args = object(&call.args, most)?;
        Some(escape_block(serde_json::to_string_pretty(&args).unwrap_or_default().as_bytes()))
    };
    let head = start(&head, HEAD_MAX);
    let mut texts = SHORTENED.iter().filter_map(|most| shown(*most));
    match texts.find(|text| text.len() <= TEXT_MAX) {
        Some(text) => format!("{head}{text}"),
        None => {
            let all = escape_block(serde_json::to_string_pretty(&call.args).unwrap_or_default().as_bytes());
            let warning =
                format!("not all of it is shown: its arguments are in '{TOOL}' of this question\n\n");
            format!("{head}{warning}{}", start(&all, TEXT_MAX))
        }
    }
}

/// The first bytes of a text, and how many there are.
fn start(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}[of {} bytes]", &text[..end], text.len())
}

/// A value with no text in it that is longer; `None` where two of its keys would be one.
fn shortened(value: &Value, most: usize) -> Option<Value> {
    Some(match value {
        Value::String(text) => start(text, most).into(),
        Value::Array(all) => {
            Value::Array(all.iter().map(|value| shortened(value, most)).collect::<Option<_>>()?)
        }
        Value::Object(all) => Value::Object(object(all, most)?),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

fn object(all: &Map<String, Value>, most: usize) -> Option<Map<String, Value>> {
    let mut shorter = Map::new();
    for (key, value) in all {
        if shorter.insert(start(key, most), shortened(value, most)?).is_some() {
            return None;
        }
    }
    Some(shorter)
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

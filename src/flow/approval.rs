//! Approvals: questions of the kernel that hold the tool call that they are about.
//!
//! An approval has its question's id. The question offers `approve`, `deny` and `modify`; the text of a
//! `modify` answer holds the arguments that are wanted instead, as a JSON object. Implements N8 (what is
//! asked, what an answer means).

use crate::agents::Decision;
use crate::contract::event::ToolCall;
use crate::protocol::inbox::Letter;
use crate::protocol::message::Trailer;
use crate::protocol::text::{escape, escape_block};
use serde_json::{Map, Value};

/// The trailer of a question that is an approval: the call, as JSON on one line.
pub const TOOL: &str = "dwp-flow-tool";
/// The choices that an approval offers.
pub const CHOICES: [&str; 3] = [APPROVE, DENY, MODIFY];
/// The choice to make the call as it was proposed.
pub const APPROVE: &str = "approve";
/// The choice not to make the call.
pub const DENY: &str = "deny";
/// The choice to make the call with the arguments that the answer's text holds.
pub const MODIFY: &str = "modify";

/// Most bytes of the question's first line, which names the node and the tool.
const HEAD_MAX: usize = 1 << 10;
/// Most bytes of the arguments in a question's text.
const TEXT_MAX: usize = 16 << 10;
/// The lengths, in bytes, to which each text among the arguments may be cut: the first with which all of the
/// arguments fit is taken.
const SHORTENED: [usize; 4] = [4096, 1024, 256, 64];

/// Returns the trailers of the question about a call.
pub fn trailers(call: &ToolCall) -> Vec<Trailer> {
    serde_json::to_vec(call).map(|call| Trailer::new(TOOL, call)).into_iter().collect()
}

/// Returns the question's text: its first line names the tool, the rest are the arguments. Long texts among
/// the arguments are shortened and say their length, so that none pushes another out of sight. If the
/// arguments are too many even then, the text says so before it shows the beginning of them.
pub fn text(call: &ToolCall, who: &str) -> String {
    let head = format!("may {} call {}?\n\n", escape(who.as_bytes()), escape(call.name.as_bytes()));
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

/// Returns the beginning of a text, at most `most` bytes of it, followed by the text's length if some was cut
/// off.
fn start(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}[of {} bytes]", &text[..end], text.len())
}

/// Returns the value with every text in it cut to `most` bytes; `None` where two keys of an object would
/// become the same.
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

/// Returns what an answer means. Wanted arguments that can't be read are a denial.
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

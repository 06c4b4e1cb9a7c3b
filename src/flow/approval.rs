//! Approvals: questions of the kernel that hold the call which they are about.
//!
//! An approval's id is its question's; `approve`, `deny` and `modify` are what it offers, and the text of the last is the
//! arguments that are wanted instead, as a JSON object. Implements N8 (what is asked, what an answer means).

use crate::agents::Decision;
use crate::contract::event::ToolCall;
use crate::protocol::inbox::Letter;
use crate::protocol::message::Trailer;
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

/// The question's trailers.
pub fn trailers(call: &ToolCall) -> Vec<Trailer> {
    serde_json::to_vec(call).map(|call| Trailer::new(TOOL, call)).into_iter().collect()
}

/// The question's text: its first line says which tool, the rest with what.
pub fn text(call: &ToolCall, who: &str) -> String {
    let args = serde_json::to_string_pretty(&call.args).unwrap_or_default();
    let text = format!("may {who} call {}?\n\n{args}", call.name);
    let text = crate::protocol::text::escape_block(text.as_bytes());
    let end = (0..=TEXT_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[..end].to_owned()
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

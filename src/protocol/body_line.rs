//! The line that serves as a body in a commit of this program that would have none.
//!
//! Readers of the older contract look only at a message's body, and take the body's first paragraph for a
//! title: a trailer block with nothing before it is none to them. So every state event that this program
//! writes has a body. The line is made from the event's own state, so that this program can tell it from text
//! that a person wrote: a command, and `retry`, see an empty body instead. Implements K2, K15, K20.

use super::dialect::Dialect;
use super::event::STATE;
use super::message::Message;
use super::name::WORKING;
use std::borrow::Cow;

/// Returns the line for a message; `None` for one that is no state event.
fn line(message: &Message) -> Option<String> {
    let state = [Dialect::Dwp, Dialect::Aynig].iter().find_map(|d| message.last(STATE.of(*d)))?;
    let state = std::str::from_utf8(state).ok()?;
    Some(match state {
        WORKING => "A runner has leased this branch, as the trailers say.".to_owned(),
        state => format!("This branch is in state {state} now."),
    })
}

/// Returns the message with that line as its body, if it is a state event without a body; otherwise
/// unchanged.
pub fn with_body_line(message: &Message) -> Cow<'_, Message> {
    match line(message).filter(|_| message.body.is_empty()) {
        Some(line) => Cow::Owned(Message { body: line.into_bytes(), ..message.clone() }),
        None => Cow::Borrowed(message),
    }
}

/// Returns the body as its writer wrote it; empty where only that line stands there.
pub fn body_said(message: &Message) -> &[u8] {
    match line(message) {
        Some(line) if line.as_bytes() == message.body => b"",
        Some(_) | None => &message.body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::Trailer;

    /// K2, K20: an empty body is read as none, and a written one as it is
    #[test]
    fn the_line_comes_and_goes_without_a_trace() {
        for (key, state) in [("dwp-state", "working"), ("dwp-state", "done"), ("aynig-state", "a/b")] {
            let bare = Message::new("s", "", vec![Trailer::new(key, state), Trailer::new("x", "y")]);
            let written = Message::parse(&with_body_line(&bare).render().unwrap());
            assert!(!written.body.is_empty() && body_said(&written).is_empty(), "{written:?}");
            assert_eq!(written.trailers, bare.trailers);
            assert_eq!(with_body_line(&written).into_owned(), written);
            let other = Message { trailers: vec![Trailer::new(key, "other")], ..written.clone() };
            assert_eq!(body_said(&other), written.body);
            let said = Message { body: b"Why.".to_vec(), ..bare };
            assert_eq!((&*with_body_line(&said), body_said(&said)), (&said, &b"Why."[..]));
        }
        let plain = Message::new("s", "", Vec::new());
        assert_eq!((&*with_body_line(&plain), body_said(&plain)), (&plain, &b""[..]));
    }
}

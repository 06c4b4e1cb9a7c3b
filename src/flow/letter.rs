//! Handoffs as messages of the kernel, and back: an envelope is a message of kind `handoff`.
//!
//! The message's text is the payload's, for a user who reads a branch without knowing flows; the rest of the envelope is one
//! trailer. The message's id is the envelope's, and its attached commit the sender's outcome. A message of that kind without a
//! readable trailer, or one that the node which it names did not send, is a text like any other, of who sent it: no words are
//! lost for it. Implements N6 (what a handoff is).

use super::senders::Senders;
use crate::contract::edge::{Envelope, Payload};
use crate::contract::id::{MessageId, NodeId, PayloadId};
use crate::contract::projection::Heard;
use crate::contract::time::Time;
use crate::protocol::flow::HANDOFF;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{Kind, Letter, MessageId as Name};
use crate::protocol::message::Trailer;
use crate::runner::talk::send::Sending;

/// The trailer that holds an envelope, as JSON on one line, without its text.
pub const ENVELOPE: &str = "dwp-flow-envelope";

/// The message that an envelope is, with the sender's work; none where its id is not one that a message can have.
pub fn sending(envelope: &Envelope, work: Option<ObjectId>) -> Option<Sending> {
    let bare = Envelope {
        payload: Payload { message: String::new(), ..envelope.payload.clone() },
        ..envelope.clone()
    };
    Some(Sending {
        kind: Kind::new(HANDOFF).ok()?,
        id: Some(envelope.id.message()?),
        text: envelope.payload.message.clone(),
        trailers: vec![Trailer::new(ENVELOPE, serde_json::to_vec(&bare).ok()?)],
        attach: work,
    })
}

/// Why no message can be what an envelope says; none where one can.
pub fn objection(envelope: &Envelope) -> Option<String> {
    let Some(Sending { kind, id: Some(id), text, trailers, attach }) = sending(envelope, None) else {
        return Some("its id is no message's".to_owned());
    };
    let letter = Letter {
        id,
        kind,
        from: String::new(),
        hop: 0,
        seen: None,
        attached: attach,
        question: None,
        choice: None,
        trailers,
        text,
    };
    letter.message().err().map(|why| why.to_string())
}

/// The envelope of a message to that node, from its id, the work that it brings, its trailers' values and its text; none where
/// no node sent it.
pub fn envelope<'a>(
    senders: &Senders<'_>,
    (id, to): (Name, NodeId),
    work: Option<ObjectId>,
    trailers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    text: &str,
) -> Option<Envelope> {
    let (_, raw) = trailers.into_iter().filter(|(key, _)| *key == ENVELOPE).last()?;
    let mut envelope: Envelope = serde_json::from_slice(raw).ok()?;
    // What the message is by its ref counts: no trailer makes it another's.
    envelope.id = PayloadId::of_message(id);
    envelope.to_node_id = to;
    envelope.payload.message = text.to_owned();
    senders.vouch(envelope, work)
}

/// A message to a node as the projection takes it; none for an answer, which belongs to its question.
pub fn heard(letter: &Letter, to: NodeId, senders: &Senders<'_>) -> Option<Heard> {
    if letter.kind.is_answer() {
        return None;
    }
    let trailers = letter.trailers.iter().map(|trailer| (trailer.key.as_str(), &*trailer.value));
    if letter.kind.as_str() == HANDOFF
        && let Some(envelope) = envelope(senders, (letter.id, to), letter.attached, trailers, &letter.text)
    {
        return Some(Heard::Handoff(Box::new(envelope)));
    }
    Some(Heard::Message {
        id: MessageId(PayloadId::of_message(letter.id).0),
        at: Time(i64::try_from(letter.id.millis()).unwrap_or(i64::MAX)),
        text: letter.text.clone(),
        interrupt: letter.kind.as_str() == Kind::INTERRUPT,
    })
}

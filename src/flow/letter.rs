//! Handoffs as the kernel's messages, and back: an envelope travels as a message of kind `handoff`.
//!
//! The message's text is the payload's, for a user who reads a branch without knowing flows; one trailer
//! holds the rest of the envelope. The message has the envelope's id, and its attached commit is the sender's
//! outcome. If the trailer can't be read, or the node that it names did not send the message, the message
//! counts as ordinary text from its sender, so that no words are lost. Implements N6 (what a handoff is).

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

/// Returns the message that carries an envelope, with the sender's work; `None` where the envelope's id is
/// not one that a message can have.
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

/// Returns why no message can carry an envelope; `None` where one can.
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

/// Returns the envelope of a message to the node `to`, read from the message's id, the work that it brings,
/// its trailers and its text; `None` where no node sent it.
pub fn envelope<'a>(
    senders: &Senders<'_>,
    (id, to): (Name, NodeId),
    work: Option<ObjectId>,
    trailers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    text: &str,
) -> Option<Envelope> {
    let (_, raw) = trailers.into_iter().filter(|(key, _)| *key == ENVELOPE).last()?;
    let mut envelope: Envelope = serde_json::from_slice(raw).ok()?;
    // The id and the receiver are those of the message's ref, so that no trailer makes it another message.
    envelope.id = PayloadId::of_message(id);
    envelope.to_node_id = to;
    envelope.payload.message = text.to_owned();
    senders.vouch(envelope, work)
}

/// Returns a message to a node as the projection takes it; `None` for an answer, which belongs to its
/// question.
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

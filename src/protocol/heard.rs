//! Which messages a trigger brings: `dwp-heard: <id> <commit>`, one trailer for each message; all of them
//! count.
//!
//! Every commit after which the same run may be asked for again copies these trailers: lease, `stalled`,
//! `canceled`, recovery, `retry`. Outcomes never do. A trailer of any other form is passed over, and no more
//! are read than one delivery takes. Implements K47 (what a run hears).

use super::dialect::{CONFLICT, Dialect, HEARD};
use super::id::ObjectId;
use super::inbox::{MESSAGES_MAX, MessageId};
use super::message::{Message, Trailer};

/// A message that a trigger brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The message's id.
    pub id: MessageId,
    /// The message's commit.
    pub commit: ObjectId,
}

impl Heard {
    /// Returns the trailer that names this message.
    pub fn trailer(&self, dialect: Dialect) -> Trailer {
        dialect.trailer(HEARD, format!("{} {}", self.id, self.commit))
    }

    fn read(value: &[u8]) -> Option<Self> {
        let (id, commit) = std::str::from_utf8(value).ok()?.split_once(' ')?;
        Some(Self { id: id.parse().ok()?, commit: commit.parse().ok()? })
    }
}

/// Returns the messages that a commit brings, in the order written.
pub fn heard_of(message: &Message, dialect: Dialect) -> Vec<Heard> {
    message.all(HEARD.of(dialect)).filter_map(Heard::read).take(MESSAGES_MAX).collect()
}

/// Returns the commits of attached work that a trigger could not take in.
pub fn conflicts_of(message: &Message, dialect: Dialect) -> Vec<ObjectId> {
    let read = |value: &[u8]| ObjectId::from_hex(value).ok();
    message.all(CONFLICT.of(dialect)).filter_map(read).take(MESSAGES_MAX).collect()
}

/// Returns the trailers that another commit of the same run copies.
pub fn heard_trailers(message: &Message, dialect: Dialect) -> Vec<Trailer> {
    heard_of(message, dialect).iter().map(|heard| heard.trailer(dialect)).collect()
}

/// Returns the trailers that a commit copies to ask for the same run once more: those of [`heard_trailers`],
/// and the conflicts.
pub fn heard_again(message: &Message, dialect: Dialect) -> Vec<Trailer> {
    let conflicts = conflicts_of(message, dialect);
    let conflicts = conflicts.iter().map(|commit| dialect.trailer(CONFLICT, commit));
    heard_trailers(message, dialect).into_iter().chain(conflicts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMMIT: &str = "1111111111111111111111111111111111111111";

    /// K47.
    #[test]
    fn every_heard_message_counts_and_what_is_none_is_passed_over() {
        let id = MessageId::v7(7, 0, [1; 8]);
        let good = format!("{id} {COMMIT}");
        let bad =
            ["", "x", COMMIT, &format!("{id}  {COMMIT}"), &format!("{id} {COMMIT} x"), &format!("{id} 11")];
        let trailers = bad.into_iter().chain([good.as_str(), good.as_str()]);
        let trailers: Vec<_> = trailers.map(|value| Trailer::new("dwp-heard", value)).collect();
        let message = Message::new("s", "", trailers);
        let heard = Heard { id, commit: COMMIT.parse().unwrap() };
        assert_eq!(heard_of(&message, Dialect::Dwp), [heard, heard]);
        assert_eq!(heard_trailers(&message, Dialect::Dwp), vec![Trailer::new("dwp-heard", &good); 2]);
        let many = vec![Trailer::new("dwp-heard", &good); 1000];
        assert_eq!(heard_of(&Message::new("s", "", many), Dialect::Dwp).len(), MESSAGES_MAX);
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in any::<Vec<u8>>()) {
            let message = Message::new("s", "", vec![Trailer::new("dwp-heard", &value), Trailer::new("dwp-conflict", value)]);
            let _ = heard_again(&message, Dialect::Dwp);
        }
    }
}

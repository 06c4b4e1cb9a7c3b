//! Which kinds of message a head accepts, and the state that each brings: its `dwp-accepts` trailers.
//!
//! All of these trailers count, an exception to K3. Each is a list of `kind=state`, with commas or blanks
//! between, and the last item for a kind wins. An unreadable item is kept so that it can be reported, and
//! takes nothing else away. A head of the dialect `aynig` accepts nothing. Implements K47 (what is
//! receptive).

use super::dialect::Dialect;
use super::event::Event;
use super::flow;
use super::inbox::Kind;
use super::name::StateName;

/// The trailer's key.
pub const ACCEPTS: &str = "dwp-accepts";
/// Most kinds that a head accepts, and most unreadable items that are kept to be reported.
pub const ACCEPTS_MAX: usize = 64;

/// What a head accepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepts {
    kinds: Vec<(Kind, StateName)>,
    /// Items that are not `kind=state`, as they were written.
    pub unreadable: Vec<Vec<u8>>,
}

impl Accepts {
    /// Returns what this event accepts. Whether an answer is one to the question that the event names is
    /// judged by [`may_hear`](super::decide::may_hear).
    pub fn of(event: &Event) -> Self {
        let mut accepts = Self::default();
        match event.dialect {
            Dialect::Aynig => {}
            Dialect::Dwp => {
                accepts.kinds = flow::taken_by(event).unwrap_or_default();
                event.message.all(ACCEPTS).for_each(|value| accepts.add(value));
            }
        }
        accepts
    }

    fn add(&mut self, value: &[u8]) {
        for item in value.split(|b| matches!(b, b',' | b' ' | b'\t')).filter(|item| !item.is_empty()) {
            match read(item) {
                Some((kind, state)) => {
                    self.kinds.retain(|(known, _)| *known != kind);
                    if self.kinds.len() < ACCEPTS_MAX {
                        self.kinds.push((kind, state));
                    }
                }
                None if self.unreadable.len() < ACCEPTS_MAX => self.unreadable.push(item.to_vec()),
                None => {}
            }
        }
    }

    /// Returns the state that a message of this kind brings; `None` where the kind is not accepted.
    pub fn state(&self, kind: &Kind) -> Option<&StateName> {
        self.kinds.iter().find(|(known, _)| known == kind).map(|(_, state)| state)
    }

    /// True where no kind is accepted.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns the kinds and their states.
    pub fn kinds(&self) -> &[(Kind, StateName)] {
        &self.kinds
    }
}

fn read(item: &[u8]) -> Option<(Kind, StateName)> {
    let at = item.iter().position(|b| *b == b'=')?;
    let state = StateName::new(&item[at + 1..]).ok().filter(|state| !state.is_working())?;
    Some((Kind::new(&item[..at]).ok()?, state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::{Message, Trailer};
    use proptest::prelude::*;

    fn accepts(trailers: &[(&str, &str)]) -> Accepts {
        let trailers = trailers.iter().map(|(k, v)| Trailer::new(*k, v)).collect();
        Accepts::of(&Event::of(Message::new("s", "", trailers)).unwrap())
    }

    fn kind(name: &str) -> Kind {
        Kind::new(name).unwrap()
    }

    /// K47.
    #[test]
    fn every_trailer_counts_and_the_last_one_for_a_kind_wins() {
        let taken = accepts(&[
            ("dwp-state", "review"),
            ("dwp-accepts", "message=rework, answer=go"),
            ("dwp-accepts", "handoff=merge  message=turn/qa"),
        ]);
        let state = |name| taken.state(&kind(name)).map(StateName::as_str);
        assert_eq!(
            (state("message"), state("answer"), state("handoff")),
            (Some("turn/qa"), Some("go"), Some("merge"))
        );
        assert_eq!((state("interrupt"), taken.kinds().len(), taken.unreadable.len()), (None, 3, 0));
    }

    /// K47: an unreadable item is reported, and the rest counts.
    #[test]
    fn an_unreadable_item_takes_nothing_away() {
        let taken = accepts(&[
            ("dwp-state", "review"),
            ("dwp-accepts", "message=../x, A=b, message=working x, =y handoff=merge message"),
        ]);
        let said: Vec<_> = taken.unreadable.iter().map(|item| String::from_utf8_lossy(item)).collect();
        assert_eq!(said, ["message=../x", "A=b", "message=working", "x", "=y", "message"]);
        assert_eq!(taken.kinds(), [(kind("handoff"), StateName::new("merge").unwrap())]);
        let many = "a=../b ".repeat(1000);
        assert_eq!(accepts(&[("dwp-state", "x"), ("dwp-accepts", &many)]).unreadable.len(), ACCEPTS_MAX);
    }

    /// K47, K29: in the other dialect only the command moves the branch.
    #[test]
    fn an_aynig_head_takes_nothing() {
        assert!(accepts(&[("aynig-state", "review"), ("dwp-accepts", "message=rework")]).is_empty());
        assert!(accepts(&[("dwp-state", "review")]).is_empty());
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in any::<Vec<u8>>()) {
            let trailers = vec![Trailer::new("dwp-state", "a"), Trailer::new(ACCEPTS, value)];
            let _ = Accepts::of(&Event::of(Message::new("s", "", trailers)).unwrap());
        }
    }
}

//! Pauses: refs `refs/aynig/paused/<id>` whose commits say which branches, who holds them, and why.
//!
//! A pause that can't be read holds every branch, and says so: a user who may push one may stop a branch
//! anyway, and a pause that was not understood must not let a branch run. Implements K50 (the commit, and
//! what is asked for again).

use super::dialect::PAUSED_BY;
use super::event::Event;
use super::id::ObjectId;
use super::inbox::MessageId;
use super::message::{Message, RenderError, Trailer};
use super::name::CANCELED;
use super::text::escape;
use std::fmt;

/// The trailer of a pattern of branches. A pause without one holds every branch.
pub const PATTERN: &str = "dwp-paused";
/// The trailer that names who holds the pause.
pub const HOLDER: &str = "dwp-holder";
/// Most patterns of a pause.
pub const PATTERNS_MAX: usize = 256;

/// Who holds a pause.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A person, by mail address.
    Person(String),
    /// A run, by its id.
    Run(String),
    /// A stall, by what stalled.
    Stall(String),
    /// A flow, by its name.
    Flow(String),
    /// Any other holder, as written.
    Other(String),
}

impl Holder {
    /// Reads a holder as it is written in the trailer.
    pub fn parse(text: &str) -> Self {
        let (what, who) = text.split_once(' ').unwrap_or((text, ""));
        let who = who.to_owned();
        match what {
            "person" => Holder::Person(who),
            "run" => Holder::Run(who),
            "stall" => Holder::Stall(who),
            "flow" => Holder::Flow(who),
            _ => Holder::Other(text.to_owned()),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Person(who) => write!(f, "person {who}"),
            Holder::Run(who) => write!(f, "run {who}"),
            Holder::Stall(who) => write!(f, "stall {who}"),
            Holder::Flow(who) => write!(f, "flow {who}"),
            Holder::Other(who) => f.write_str(who),
        }
    }
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The branches, as patterns like those of `aynig.branches`; none: every branch.
    pub patterns: Vec<String>,
    /// Who holds the pause.
    pub holder: Holder,
    /// Why the branches are paused.
    pub reason: String,
}

impl Pause {
    /// Returns the message of the pause's commit.
    ///
    /// # Errors
    /// If the message can't be written so that it reads back the same.
    pub fn message(&self) -> Result<Message, RenderError> {
        let mut trailers = vec![Trailer::new(HOLDER, self.holder.to_string())];
        trailers.extend(self.patterns.iter().map(|pattern| Trailer::new(PATTERN, pattern)));
        let message = Message::new("aynig: pause", self.reason.as_bytes(), trailers);
        message.render().map(|_| message)
    }

    /// Reads a pause; one that can't be read holds every branch.
    pub fn read(message: &Message) -> Self {
        let text =
            |raw: &[u8]| std::str::from_utf8(raw).ok().map(str::to_owned).filter(|text| !text.is_empty());
        let reason: String = String::from_utf8_lossy(&message.body).chars().take(10_000).collect();
        let holder = message.last(HOLDER).and_then(text);
        let patterns: Option<Vec<String>> = message.all(PATTERN).take(PATTERNS_MAX + 1).map(text).collect();
        match (holder, patterns.filter(|patterns| patterns.len() <= PATTERNS_MAX)) {
            (Some(holder), Some(patterns)) => Self { patterns, holder: Holder::parse(&holder), reason },
            (holder, _) => Self {
                patterns: Vec::new(),
                holder: Holder::parse(holder.as_deref().unwrap_or("unknown")),
                reason: format!("this pause can't be read, so it holds every branch: {reason}"),
            },
        }
    }

    /// Returns a stand-in for a pause of which nothing can be read: it holds every branch, and its reason
    /// says which ref is unreadable, why, and that `mend` takes the pause away.
    pub fn unreadable(name: &str, why: &str, mend: &str) -> Self {
        let reason =
            format!("'{name}' can't be read ({why}), so it holds every branch; {mend} takes it away");
        Self { patterns: Vec::new(), holder: Holder::parse("unknown"), reason }
    }

    /// Returns the branches that the pause holds, in words: `every branch`, or its patterns in quotes.
    pub fn held(&self) -> String {
        let quoted = |pattern: &String| format!("'{}'", escape(pattern.as_bytes()));
        match &self.patterns[..] {
            [] => "every branch".to_owned(),
            some => some.iter().map(quoted).collect::<Vec<_>>().join(", "),
        }
    }

    /// Returns who holds the pause, and why (the first line of the reason), in words.
    pub fn by(&self) -> String {
        let holder = self.holder.to_string();
        let why = self.reason.lines().next().map(|first| format!(": {}", escape(first.as_bytes())));
        format!("{}{}", escape(holder.as_bytes()), why.unwrap_or_default())
    }

    /// True where the pause holds a branch; `any` says whether one of these patterns matches that branch.
    pub fn holds(&self, any: impl FnOnce(&[String]) -> bool) -> bool {
        self.patterns.is_empty() || any(&self.patterns)
    }
}

/// True for a head that ended the run of this trigger for this pause: no other run is asked for again.
pub fn ended_for(head: &Event, trigger: ObjectId, pause: MessageId) -> bool {
    head.trigger() == Some(trigger)
        && head.state_name().is_some_and(|state| state.as_str() == CANCELED)
        && head.text(PAUSED_BY).and_then(|id| MessageId::parse(id).ok()) == Some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// K50.
    #[test]
    fn a_pause_reads_as_it_was_written() {
        for patterns in [&[][..], &["feature/*", "main"]] {
            for holder in ["person ada@example.com", "run r1", "stall x", "flow deploy", "somebody"] {
                let pause = Pause {
                    patterns: patterns.iter().map(|p| (*p).to_owned()).collect(),
                    holder: Holder::parse(holder),
                    reason: "The quota is used up.".into(),
                };
                assert_eq!(pause.holder.to_string(), holder);
                let message = Message::parse(&pause.message().unwrap().render().unwrap());
                assert_eq!(Pause::read(&message), pause);
            }
        }
    }

    /// K50.
    #[test]
    fn a_pause_holds_what_its_patterns_match_and_without_one_everything() {
        let pause = |patterns: &[&str]| Pause {
            patterns: patterns.iter().map(|p| (*p).to_owned()).collect(),
            holder: Holder::Person("a".into()),
            reason: String::new(),
        };
        assert!(pause(&[]).holds(|_| false));
        assert!(pause(&["main"]).holds(|patterns| patterns == ["main"]));
        assert!(!pause(&["main"]).holds(|_| false));
    }

    /// K50.
    #[test]
    fn only_the_head_that_ended_that_run_for_that_pause_is_asked_for_again() {
        let (one, other) = (MessageId::v7(1, 0, [1; 8]), MessageId::v7(2, 0, [2; 8]));
        let id = |n| ObjectId::from_bytes(&[n; 20]).unwrap();
        let head = |state: &str, pause: MessageId| {
            let said = [
                ("dwp-state", state.into()),
                ("dwp-trigger", id(1).to_string()),
                ("dwp-paused-by", pause.to_string()),
            ];
            let said = said.iter().map(|(key, value)| Trailer::new(*key, value)).collect();
            Event::of(Message::new("s", "", said)).unwrap()
        };
        assert!(ended_for(&head("canceled", one), id(1), one));
        assert!(
            !ended_for(&head("canceled", other), id(1), one)
                && !ended_for(&head("canceled", one), id(2), one)
        );
        assert!(!ended_for(&head("stalled", one), id(1), one));
    }

    /// K50: rather one pause too many than a run that a person wanted stopped.
    #[test]
    fn a_pause_that_cannot_be_read_holds_everything_and_says_so() {
        let of = |trailers: Vec<Trailer>| Pause::read(&Message::new("s", "why", trailers));
        let bad = [
            of(Vec::new()),
            of(vec![Trailer::new(PATTERN, "main")]),
            of(vec![Trailer::new(HOLDER, "run r"), Trailer::new(PATTERN, b"\xff")]),
            of(vec![Trailer::new(HOLDER, "run r"), Trailer::new(PATTERN, "")]),
            of([vec![Trailer::new(HOLDER, "run r")], vec![Trailer::new(PATTERN, "a"); PATTERNS_MAX + 1]]
                .concat()),
        ];
        for pause in bad {
            assert!(pause.holds(|_| false) && pause.reason.contains("can't be read"), "{pause:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_pause(raw in any::<Vec<u8>>()) {
            let _ = Pause::read(&Message::parse(&raw));
        }
    }
}

//! The trigger that brings messages: one commit, whose parents are the head and what the trigger takes in.
//!
//! The trigger's body holds the texts, and its trailers name each message. The head's workflow trailers
//! travel on; those that concern that head alone do not. Any user who may push can write a text: whatever it
//! holds, the trigger can be written, and nothing of the text is read as a trailer. Implements K47 (the
//! trigger).

use super::declaration::travelling;
use super::dialect::{CONFLICT, Dialect, HOP, STATE};
use super::event::Event;
use super::heard::Heard;
use super::id::ObjectId;
use super::inbox::Letter;
use super::message::Message;
use super::name::StateName;
use super::text::{escape, tail_block};

/// Most paths of a conflict that are named.
pub const PATHS_MAX: usize = 100;

/// What became of the work that a message brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// The message brings no work.
    Text,
    /// The work was merged.
    Merged,
    /// The work changes nothing: it was merged before.
    Nothing,
    /// The work could not be merged; these paths conflict, where they are known.
    Conflict(Vec<String>),
}

/// A message that a trigger brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// What the message says.
    pub letter: Letter,
    /// The message's commit.
    pub commit: ObjectId,
    /// What became of the work that the message brings.
    pub merge: Merge,
}

/// Returns the message of the trigger that brings these messages to a head.
pub fn trigger(head: &Event, state: &StateName, taken: &[Taken]) -> Message {
    let dialect = Dialect::Dwp;
    let hop = taken.iter().map(|taken| taken.letter.hop).max().unwrap_or(0);
    let mut trailers = vec![dialect.trailer(STATE, state)];
    trailers.extend((hop > 0).then(|| dialect.trailer(HOP, hop)));
    trailers.extend(taken.iter().map(|t| Heard { id: t.letter.id, commit: t.commit }.trailer(dialect)));
    for taken in taken.iter().filter(|taken| matches!(taken.merge, Merge::Conflict(_))) {
        trailers.extend(taken.letter.attached.map(|work| dialect.trailer(CONFLICT, work)));
    }
    trailers.extend(travelling(&head.message, dialect));
    let subject = match taken {
        [one] => format!("aynig: {} brings {state}", one.letter.kind),
        more => format!("aynig: {} messages bring {state}", more.len()),
    };
    let body = taken.iter().map(text).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let message = Message::new(subject, body.as_bytes(), trailers);
    match message.render() {
        Ok(_) => message,
        // Once it is indented and escaped, nothing is left in the body that Git interprets.
        Err(_) => {
            Message::new(message.subject, tail_block(body.as_bytes(), usize::MAX / 8), message.trailers)
        }
    }
}

/// Returns what a message says, as the trigger's body has it.
fn text(taken: &Taken) -> String {
    let letter = &taken.letter;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(letter.choice.clone().filter(|choice| !choice.is_empty()));
    parts.extend(Some(letter.text.clone()).filter(|text| !text.is_empty()));
    match &taken.merge {
        Merge::Text | Merge::Merged | Merge::Nothing => {}
        Merge::Conflict(paths) => {
            let work = letter.attached.map(|work| work.to_string()).unwrap_or_default();
            let mut lines =
                format!("The work that message {} brings ({work}) could not be merged", letter.id);
            lines.push_str(if paths.is_empty() { "." } else { ":" });
            for path in paths.iter().take(PATHS_MAX) {
                lines.push_str("\n    ");
                lines.push_str(&escape(path.as_bytes()));
            }
            if paths.len() > PATHS_MAX {
                lines.push_str(&format!("\n    and {} more", paths.len() - PATHS_MAX));
            }
            parts.push(lines);
        }
    }
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::heard::{conflicts_of, heard_of};
    use crate::protocol::inbox::{Kind, MessageId};
    use crate::protocol::message::Trailer;
    use proptest::prelude::*;

    fn commit(n: u8) -> ObjectId {
        ObjectId::from_bytes(&[n; 20]).unwrap()
    }

    fn taken(n: u8, hop: u32, text: &str, merge: Merge) -> Taken {
        let letter = Letter {
            id: MessageId::v7(u64::from(n), 0, [n; 8]),
            kind: Kind::new("message").unwrap(),
            from: "ada".into(),
            hop,
            seen: None,
            attached: (merge != Merge::Text).then(|| commit(n + 100)),
            question: None,
            choice: None,
            trailers: Vec::new(),
            text: text.into(),
        };
        Taken { letter, commit: commit(n), merge }
    }

    fn head() -> Event {
        let trailers = [
            ("dwp-state", "review"),
            ("dwp-accepts", "message=rework"),
            ("dwp-ticket", "7"),
            ("dwp-hop", "9"),
            ("dwp-question", "x"),
        ];
        let trailers = trailers.into_iter().map(|(k, v)| Trailer::new(k, v)).collect();
        Event::of(Message::new("s", "The head's own words.", trailers)).unwrap()
    }

    fn read(message: &Message) -> Message {
        let read = Message::parse(&message.render().unwrap());
        assert_eq!(read, *message);
        read
    }

    /// K47.
    #[test]
    fn a_trigger_names_what_it_brings_and_says_what_that_says() {
        let state = StateName::new("rework").unwrap();
        let all = [
            taken(1, 3, "First.\n\ndwp-state: x", Merge::Merged),
            taken(2, 0, "", Merge::Text),
            taken(3, 1, "Third.", Merge::Text),
        ];
        let message = read(&trigger(&head(), &state, &all));
        assert_eq!(message.body, b"First.\n\ndwp-state: x\n\nThird.");
        assert_eq!(
            heard_of(&message, Dialect::Dwp),
            [1, 2, 3].map(|n| Heard { id: MessageId::v7(u64::from(n), 0, [n; 8]), commit: commit(n) })
        );
        let keys: Vec<&str> = message.trailers.iter().map(|t| t.key.as_str()).collect();
        assert_eq!(keys, ["dwp-state", "dwp-hop", "dwp-heard", "dwp-heard", "dwp-heard", "dwp-ticket"]);
        assert_eq!(
            (message.last("dwp-state"), message.last("dwp-hop")),
            (Some(&b"rework"[..]), Some(&b"3"[..]))
        );
        assert_eq!(message.subject, b"aynig: 3 messages bring rework");
    }

    /// K47: work that could not be merged is named, with the paths in conflict.
    #[test]
    fn a_conflict_is_named_with_its_paths() {
        let state = StateName::new("rework").unwrap();
        let clash = taken(1, 0, "Take mine.", Merge::Conflict(vec!["a b".into(), "c\x1bd".into()]));
        let message = read(&trigger(&head(), &state, &[clash, taken(2, 0, "", Merge::Nothing)]));
        assert_eq!(conflicts_of(&message, Dialect::Dwp), [commit(101)]);
        let body = String::from_utf8(message.body).unwrap();
        assert!(
            body.starts_with("Take mine.\n\nThe work that message ")
                && body.ends_with("\n    a b\n    c\\x1bd"),
            "{body}"
        );
    }

    /// K49a: the choice comes first.
    #[test]
    fn an_answers_choice_is_its_first_line() {
        let state = StateName::new("go").unwrap();
        let mut answer = taken(1, 0, "Mind the cache.", Merge::Text);
        answer.letter.choice = Some("yes".into());
        assert_eq!(read(&trigger(&head(), &state, &[answer])).body, b"yes\n\nMind the cache.");
    }

    proptest! {
        /// K47, K2: any message can be delivered, whatever its text.
        #[test]
        fn any_texts_make_a_trigger(one in "\\PC*", two in "(# ------------------------ >8 ------------------------|[a\\r\\n \\t#:\\x00\\x0b]){0,20}") {
            let state = StateName::new("go").unwrap();
            let all = [taken(1, 0, &one, Merge::Text), taken(2, 0, &two, Merge::Text), taken(3, 0, &one, Merge::Text)];
            let message = trigger(&head(), &state, &all);
            let read = Message::parse(&message.render().unwrap());
            prop_assert_eq!(heard_of(&read, Dialect::Dwp).len(), 3);
            prop_assert_eq!(read.all("dwp-state").count(), 1);
        }
    }
}

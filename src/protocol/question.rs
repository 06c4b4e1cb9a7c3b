//! Questions to which a run or a head waits for an answer: commits under `refs/aynig/asked/<id>`.
//!
//! The commit's parent is the work that is asked about; its trailers name the branch, the run and the choices
//! that are offered. A question without choices takes any answer. A question is read like anything that came
//! by a push: bounded, and with a reason where the commit is none. Implements K49 (the commit), K49a (the
//! answer).

use super::decide::asked_by;
use super::dialect::{BRANCH, Dialect, RUN_ID};
use super::event::Event;
use super::inbox::{CHOICE, Kind, Letter, MessageId, QUESTION, TEXT_MAX, answer_id};
use super::message::{Message, RenderError, Trailer};
use std::fmt;

/// Most choices of a question.
pub const CHOICES_MAX: usize = 64;
/// Longest choice, in bytes.
pub const CHOICE_MAX: usize = 1000;

/// A question, as its commit says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question's id.
    pub id: MessageId,
    /// The branch that waits, without `refs/heads/`.
    pub branch: Vec<u8>,
    /// The run that asked.
    pub run_id: Option<String>,
    /// The choices that are offered; where there are none, any answer will do.
    pub choices: Vec<String>,
    /// The words of the question.
    pub text: String,
}

/// Why a commit is no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadQuestion {
    /// It names no id, or not the one of its ref.
    Id,
    /// It names no branch.
    Branch,
    /// More than [`CHOICES_MAX`] choices, or one that is empty or too long.
    Choices,
    /// Its text is longer than a message's may be.
    TooLong,
}

impl fmt::Display for BadQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadQuestion::Id => write!(f, "its '{QUESTION}' is not the id of its ref"),
            BadQuestion::Branch => write!(f, "it has no '{}'", BRANCH.of(Dialect::Dwp)),
            BadQuestion::Choices => {
                f.write_str("a question offers at most 64 choices, each of 1 to 1000 bytes on one line")
            }
            BadQuestion::TooLong => f.write_str("its text is longer than 1 MiB"),
        }
    }
}

impl std::error::Error for BadQuestion {}

/// Who waits for the answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// A run that is under way asked, and its lease is the head.
    Run,
    /// The head names the question.
    Head,
    /// Neither: the question is no longer open.
    Nobody,
}

/// Whether a question offers a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// The choice may be made.
    Yes,
    /// The choice was not offered.
    No,
}

impl Question {
    /// Returns the message of the question's commit.
    ///
    /// # Errors
    /// If the message can't be written so that it reads back the same.
    pub fn message(&self) -> Result<Message, RenderError> {
        let own = |key: super::dialect::Key, value: &[u8]| Trailer::new(key.of(Dialect::Dwp), value);
        let mut trailers = vec![Trailer::new(QUESTION, self.id.to_string()), own(BRANCH, &self.branch)];
        trailers.extend(self.run_id.as_ref().map(|run| own(RUN_ID, run.as_bytes())));
        trailers.extend(self.choices.iter().map(|choice| Trailer::new(CHOICE, choice)));
        let message = Message::new("aynig: question", self.text.as_bytes(), trailers);
        message.render().map(|_| message)
    }

    /// Reads the question of this id.
    ///
    /// # Errors
    /// If the commit is not a question, or not the one of this id.
    pub fn read(id: MessageId, message: &Message) -> Result<Self, BadQuestion> {
        let said = message.last(QUESTION).and_then(|said| MessageId::parse(said).ok());
        if said != Some(id) {
            return Err(BadQuestion::Id);
        }
        let branch = message.last(BRANCH.of(Dialect::Dwp)).filter(|branch| !branch.is_empty());
        let branch = branch.ok_or(BadQuestion::Branch)?.to_vec();
        if message.body.len() > TEXT_MAX {
            return Err(BadQuestion::TooLong);
        }
        let text = |raw: &[u8]| std::str::from_utf8(raw).ok().map(str::to_owned);
        let choices: Option<Vec<String>> = message.all(CHOICE).take(CHOICES_MAX + 1).map(text).collect();
        let choices = choices.filter(|choices| is_offer(choices)).ok_or(BadQuestion::Choices)?;
        let run_id = message.last(RUN_ID.of(Dialect::Dwp)).and_then(text);
        Ok(Self { id, branch, run_id, choices, text: String::from_utf8_lossy(&message.body).into_owned() })
    }

    /// Returns whether this choice may be made.
    pub fn offers(&self, choice: &str) -> Offered {
        match self.choices.is_empty() || self.choices.iter().any(|offered| offered == choice) {
            true => Offered::Yes,
            false => Offered::No,
        }
    }

    /// Returns who waits for the answer, on a branch with this head.
    pub fn asker(&self, head: &Event) -> Asker {
        if head.is_working() {
            let run_id = self.run_id.as_deref();
            return if run_id.is_some() && head.run_id() == run_id { Asker::Run } else { Asker::Nobody };
        }
        if asked_by(head) == Some(self.id) { Asker::Head } else { Asker::Nobody }
    }

    /// Returns the one answer to the question. It can't be given twice, because its id is derived from the
    /// question's.
    pub fn answer(&self, choice: String, text: String, from: String, hop: u32) -> Letter {
        Letter {
            id: answer_id(self.id),
            kind: Kind::answer(),
            from,
            hop,
            seen: None,
            attached: None,
            question: Some(self.id),
            choice: Some(choice),
            trailers: Vec::new(),
            text,
        }
    }
}

/// True for choices that a question may offer.
pub fn is_offer(choices: &[String]) -> bool {
    let fits = |choice: &String| {
        (1..=CHOICE_MAX).contains(&choice.len()) && choice.trim_matches([' ', '\t']).len() == choice.len()
    };
    choices.len() <= CHOICES_MAX
        && choices.iter().all(|choice| fits(choice) && !choice.contains(['\n', '\r']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::inbox::derived_id;
    use proptest::prelude::*;

    fn question(choices: &[&str]) -> Question {
        Question {
            id: derived_id(7, &[b"q"]),
            branch: b"feature/x".to_vec(),
            run_id: Some("r1".into()),
            choices: choices.iter().map(|c| (*c).to_owned()).collect(),
            text: "Deploy to production?".into(),
        }
    }

    /// K49.
    #[test]
    fn a_question_reads_as_it_was_asked() {
        for choices in [&["yes", "no", "not today"][..], &[]] {
            let asked = question(choices);
            let message = Message::parse(&asked.message().unwrap().render().unwrap());
            assert_eq!(Question::read(asked.id, &message), Ok(asked));
        }
    }

    /// K49a.
    #[test]
    fn a_choice_that_was_not_offered_is_told_apart() {
        let asked = question(&["yes", "no"]);
        assert_eq!(
            (asked.offers("yes"), asked.offers("Yes"), asked.offers("")),
            (Offered::Yes, Offered::No, Offered::No)
        );
        assert_eq!(question(&[]).offers("anything"), Offered::Yes);
    }

    /// K49: a run's question waits while the run's lease is the head, a head's question while the head names
    /// it.
    #[test]
    fn a_question_is_waited_for_by_its_run_or_by_the_head_that_names_it() {
        let asked = question(&[]);
        let head = |trailers: &[(&str, &str)]| {
            Event::of(Message::new("s", "", trailers.iter().map(|(k, v)| Trailer::new(*k, v)).collect()))
                .unwrap()
        };
        let id = asked.id.to_string();
        let lease = |run| head(&[("dwp-state", "working"), ("dwp-run-id", run), (QUESTION, &id)]);
        assert_eq!((asked.asker(&lease("r1")), asked.asker(&lease("r2"))), (Asker::Run, Asker::Nobody));
        assert_eq!(asked.asker(&head(&[("dwp-state", "waiting"), (QUESTION, &id)])), Asker::Head);
        assert_eq!(asked.asker(&head(&[("dwp-state", "waiting"), ("dwp-run-id", "r1")])), Asker::Nobody);
        let nobodys = Question { run_id: None, ..asked };
        assert_eq!(nobodys.asker(&head(&[("dwp-state", "working")])), Asker::Nobody);
    }

    /// K49a: two answers have the same id, so that their ref can be made only once.
    #[test]
    fn an_answers_id_is_its_questions() {
        let asked = question(&["yes", "no"]);
        let yes = asked.answer("yes".into(), String::new(), "Ada".into(), 0);
        let no = asked.answer("no".into(), "later".into(), "Eve".into(), 0);
        assert_eq!((yes.id, yes.question), (no.id, Some(asked.id)));
        let written = Message::parse(&no.message().unwrap().render().unwrap());
        assert_eq!(Letter::read(&written, &[]), Ok(no));
    }

    /// K49: what was pushed as a question is bounded.
    #[test]
    fn what_is_no_question_is_told_why() {
        let asked = question(&["yes"]);
        let good = asked.message().unwrap();
        assert_eq!(Question::read(derived_id(8, &[]), &good), Err(BadQuestion::Id));
        let without = |key: &str| Message {
            trailers: good.trailers.iter().filter(|t| t.key != key).cloned().collect(),
            ..good.clone()
        };
        assert_eq!(Question::read(asked.id, &without("dwp-branch")), Err(BadQuestion::Branch));
        assert_eq!(Question::read(asked.id, &without("dwp-question")), Err(BadQuestion::Id));
        let mut many = good.clone();
        many.trailers.extend((0..CHOICES_MAX).map(|n| Trailer::new(CHOICE, n.to_string())));
        assert_eq!(Question::read(asked.id, &many), Err(BadQuestion::Choices));
        let mut empty = good.clone();
        empty.trailers.push(Trailer::new(CHOICE, ""));
        assert_eq!(Question::read(asked.id, &empty), Err(BadQuestion::Choices));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_question_or_none(raw in any::<Vec<u8>>()) {
            let _ = Question::read(derived_id(1, &[]), &Message::parse(&raw));
        }
    }
}

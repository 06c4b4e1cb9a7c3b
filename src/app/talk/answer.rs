//! `answer`, `approve`, `reject`: answers what a run or a branch waits for.
//!
//! A question is named by its id, or by its branch where the branch asks only one. Implements K49a.

use super::super::AppError;
use super::super::change::Change;
use crate::protocol::inbox::MessageId;
use crate::protocol::question::Question;
use crate::runner::talk::TalkError;
use crate::runner::talk::answer::{Answering, short_form};
use crate::runner::talk::ask::Asked;
use crate::runner::talk::send::Sent;
use std::ffi::OsStr;

/// What is said to a question.
#[derive(Debug, Clone, Copy)]
pub enum Choice<'a> {
    /// This choice.
    Named(&'a str),
    /// The one of the question's choices that means yes.
    Yes,
    /// The one of the question's choices that means no.
    No,
}

impl Choice<'_> {
    fn of(self, question: &Question) -> Result<String, TalkError> {
        match self {
            Choice::Named(choice) => Ok(choice.to_owned()),
            Choice::Yes => short_form(question, true),
            Choice::No => short_form(question, false),
        }
    }
}

/// Answers the question of a branch, or the question of an id.
pub fn answer(
    change: &Change<'_>,
    what: &OsStr,
    choice: Choice<'_>,
    text: &str,
    seen: Option<&OsStr>,
) -> Result<(Asked, Sent), AppError> {
    let seen = seen.map(|name| change.commit(name)).transpose()?;
    let id = what.to_str().and_then(|text| MessageId::parse(text).ok());
    let branch = if id.is_none() { Some(change.session.branch(what)?) } else { None };
    change.talk(|runner| {
        let asked = match (id, &branch) {
            (Some(id), _) => runner.question_of_id(id)?,
            (None, Some(branch)) => runner.question_of(branch)?,
            (None, None) => return Err(TalkError::Outside),
        };
        let answering =
            Answering { choice: choice.of(&asked.question)?, text: text.trim_matches('\n').to_owned(), seen };
        let sent = runner.answer(&asked, &answering, change.inside.as_ref())?;
        Ok((asked, sent))
    })
}

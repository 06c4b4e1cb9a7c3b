//! How people, commands and branches talk: `send`, `inbox`, `ask`, `answer`, `pause`, and what programs are
//! told of each.
//!
//! Each verb begins as a [`super::change::Change`] does: with the settings, the run that this process is
//! inside of, and the mending of what an earlier process left. Implements K46, K48, K49, K49a, K50.

pub mod answer;
pub mod ask;
pub mod inbox;
pub mod lines;
pub mod pause;
pub mod send;

pub use lines::{MessageLine, PauseLine, QuestionLine};

use super::change::Change;
use super::{AppError, Misuse};
use crate::protocol::declaration::parse_trailer;
use crate::protocol::inbox::{Kind, MessageId};
use crate::protocol::message::Trailer;
use crate::runner::talk::TalkError;
use crate::runner::{Runner, Silent};
use crate::supervisor::interrupt::Interrupt;

pub const MESSAGE_SCHEMA: &str = "aynig.message/1";
pub const QUESTION_SCHEMA: &str = "aynig.question/1";
pub const PAUSE_SCHEMA: &str = "aynig.pause/1";

impl Change<'_> {
    /// Calls `talk` with a runner for this change.
    pub(in crate::app) fn talk<T>(
        &self,
        talk: impl FnOnce(&Runner<'_>) -> Result<T, TalkError>,
    ) -> Result<T, AppError> {
        let interrupt = Interrupt::never()?;
        self.talk_until(&interrupt, talk)
    }

    /// Does what [`Change::talk`] does, but signals end it.
    fn talk_until<T>(
        &self,
        interrupt: &Interrupt,
        talk: impl FnOnce(&Runner<'_>) -> Result<T, TalkError>,
    ) -> Result<T, AppError> {
        let runner = self.session.runner(&self.settings, interrupt, &Silent)?;
        talk(&runner).map_err(|error| self.talked(error))
    }

    pub(in crate::app) fn talked(&self, error: TalkError) -> AppError {
        AppError::talked(error, self.settings.remote.clone())
    }
}

impl AppError {
    /// Makes the error of what was not said on a remote's branches, or on the local ones.
    pub(in crate::app) fn talked(error: TalkError, remote: Option<String>) -> Self {
        match error {
            TalkError::Change(error) => AppError::Change { error, remote },
            error => AppError::Talk { error: Box::new(error), remote },
        }
    }
}

/// Reads a kind as it was typed.
pub fn kind(text: &str) -> Result<Kind, AppError> {
    Kind::new(text).map_err(|why| Misuse::Kind { kind: text.to_owned(), why: why.to_string() }.into())
}

/// Reads an id as it was typed; `listing` is the verb that lists such ids, where the id is to be one that exists.
pub fn id(text: &str, listing: Option<&'static str>) -> Result<MessageId, AppError> {
    MessageId::parse(text)
        .map_err(|why| Misuse::Id { id: text.to_owned(), why: why.to_string(), listing }.into())
}

/// Reads trailers as they were typed.
fn trailers(typed: &[String]) -> Result<Vec<Trailer>, AppError> {
    let trailers = typed.iter().map(|trailer| parse_trailer(trailer)).collect::<Result<_, _>>();
    trailers.map_err(|why| Misuse::Trailer(why.to_string()).into())
}

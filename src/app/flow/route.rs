//! `flow route`: the command of the state `route`, run for a node's branch when its turn is over.
//!
//! What was sent is heard where that may be: the runner of this run starts it once the run is over. Implements N5.

use super::limits;
use crate::app::AppError;
use crate::app::change::Change;
use crate::app::talk::send::hear;
use crate::flow::route::{Routed, route as routed};
use crate::protocol::id::ObjectId;
use crate::runner::Silent;
use crate::runner::talk::TalkError;
use crate::supervisor::interrupt::Interrupt;

/// Does what follows from the turn that the run which we are inside of answers.
pub fn route(change: &Change<'_>) -> Result<Routed, AppError> {
    let outside = || AppError::Talk { error: Box::new(TalkError::Outside), remote: None };
    let inside = change.inside.as_ref().ok_or_else(outside)?;
    let trigger = std::env::var("AYNIG_COMMIT_HASH").ok().and_then(|id| id.parse::<ObjectId>().ok());
    let trigger = trigger.ok_or_else(outside)?;
    let limits = limits(change.session, &change.settings)?;
    let interrupt = Interrupt::never()?;
    let runner = change.session.runner(&change.settings, &interrupt, &Silent)?;
    let done = routed(&runner, inside, trigger, limits)?;
    for sent in &done.sent {
        hear(change, sent)?;
    }
    Ok(done)
}

//! `flow route`: the command of the state `route`, run for a node's branch when its turn is over.
//!
//! Messages that the command sends are answered where that may be now: the runner of this run starts their
//! branches' chains once the run is over. Implements N5.

use super::limits;
use crate::app::change::Change;
use crate::app::talk::send::hear;
use crate::app::{AppError, Exit};
use crate::flow::route::{Routed, again, route as routed};
use crate::protocol::declaration::NotBefore;
use crate::protocol::id::ObjectId;
use crate::runner::Silent;
use crate::runner::talk::TalkError;
use crate::supervisor::interrupt::Interrupt;

/// After how many seconds a failure that may pass is tried again.
const LATER: u64 = 15;

/// Declares the same state once more, for later.
fn later(why: &str) -> Result<Routed, AppError> {
    Ok(Routed { declaration: again(why, NotBefore::In(LATER))?, sent: Vec::new() })
}

/// Does what follows from the turn that the run around this process answers.
pub fn route(change: &Change<'_>) -> Result<Routed, AppError> {
    let outside = || AppError::Talk { error: Box::new(TalkError::Outside), remote: None };
    let inside = change.inside.as_ref().ok_or_else(outside)?;
    let trigger = std::env::var("AYNIG_COMMIT_HASH").ok().and_then(|id| id.parse::<ObjectId>().ok());
    let trigger = trigger.ok_or_else(outside)?;
    let limits = limits(change.session, &change.settings)?;
    let interrupt = Interrupt::never()?;
    let runner = change.session.runner(&change.settings, &interrupt, &Silent)?;
    let done = match routed(&runner, inside, trigger, limits).map_err(AppError::from) {
        // A failure that may pass is no reason to give up what other nodes wait for.
        Err(error) if matches!(Exit::from(&error), Exit::Later | Exit::Held) => later(&error.to_string())?,
        done => done?,
    };
    for sent in &done.sent {
        hear(change, sent)?;
    }
    Ok(done)
}

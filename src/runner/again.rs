//! Asks again for a node's work that was cut off, at most three times: a `route` that ended without an
//! outcome, and a turn whose machine is gone.
//!
//! `route` does each thing once, however often it is started, and a turn whose handoffs no runner sends would
//! be lost to every node that waits for them. It does not matter whether the runner was killed, or `route`
//! alone, or whether `route` failed: what fails each time ends as a run that stalled. A turn that ended badly
//! said why, and waits for a message. A turn whose lease expired said nothing, so another machine gets it,
//! together with the messages that it was given. Implements N3 (a killed `route`, a lost turn).

use super::{Runner, RunnerError, Tip};
use crate::protocol::event::{Event, RECOVERY_ID, STALLED_RUN};
use crate::protocol::flow::{ROUTE, TURN};
use crate::protocol::id::ObjectId;
use crate::protocol::name::STALLED;
use crate::protocol::transition::retried;
use crate::store::RefName;

/// How often the same work is asked for again.
const AGAIN_MAX: usize = 3;
/// How many commits are read to count how often it was cut off.
const LOOK_BACK: usize = 10_000;

/// True for a head that says that a `route` ended without an outcome, or that the lease of a turn expired.
fn is_cut_off(event: &Event) -> bool {
    let of = |name: &str| event.origin_state().is_some_and(|state| state.as_str() == name);
    event.state_name().is_some_and(|state| state.as_str() == STALLED)
        && event.text(STALLED_RUN).is_some()
        && (of(ROUTE) || (of(TURN) && event.text(RECOVERY_ID).is_some()))
}

impl Runner<'_> {
    /// True where this head alone shows that it is a node's, and that its work was cut off and may be asked
    /// for again.
    pub(super) fn may_route_again(&self, tip: &Tip) -> bool {
        tip.event.as_ref().is_some_and(|event| event.is_node && is_cut_off(event))
    }

    /// Writes the trigger of a `route` or turn that was cut off once more; false where it is not to be asked
    /// for again, or another process moved the branch first.
    pub(super) fn route_again(&self, branch: &RefName, tip: &Tip) -> Result<bool, RunnerError> {
        let Some(event) = tip.event.as_ref().filter(|_| self.may_route_again(tip)) else { return Ok(false) };
        let Some(trigger) = event.trigger() else { return Ok(false) };
        if self.rebased(branch)?.is_some() {
            return Ok(false);
        }
        if self.ends(tip, trigger)?.is_none_or(|ends| ends > AGAIN_MAX) {
            return Ok(false);
        }
        let trigger = Tip::from(self.store.read_commit(trigger)?);
        if self.not_vouched(branch, &trigger)?.is_some() {
            return Ok(false);
        }
        let Some(asked) = &trigger.event else { return Ok(false) };
        let Some(state) = asked.state_name() else { return Ok(false) };
        let mut message = retried(state, asked, Some(asked.hop()).filter(|hop| *hop > 0));
        message.subject = format!("aynig: {state} again: it was cut off").into_bytes();
        message.trailers.push(asked.dialect.trailer(RECOVERY_ID, uuid::Uuid::new_v4()));
        let commit = self.write(branch, tip.commit.tree, vec![tip.id()], &message)?;
        self.advance(branch, tip.id(), commit, &format!("aynig: {state} again"))
    }

    /// Counts how often in a row the work of this trigger was cut off; `None` where the trigger is not found
    /// below the head.
    fn ends(&self, tip: &Tip, trigger: ObjectId) -> Result<Option<usize>, RunnerError> {
        let (mut at, mut ends, mut met) = (tip.commit.clone(), 0, false);
        let cut_off = tip.event.as_ref().and_then(Event::origin_state);
        for _ in 0..LOOK_BACK {
            let event = Event::in_message(&at.message);
            met |= at.id == trigger;
            match &event {
                Some(event) if is_cut_off(event) => ends += 1,
                Some(event) if event.is_working() => {}
                // The trigger, written once more or as it was. The latter may be a run's outcome, which ends
                // the count.
                Some(event) if event.state_name() == cut_off.as_ref() => {
                    if event.run_id().is_some() {
                        break;
                    }
                }
                Some(_) | None => break,
            }
            if self.store.history_ends_at(at.id)? {
                break;
            }
            let Some(parent) = at.parents.first() else { break };
            at = self.store.read_commit(*parent)?;
        }
        Ok(met.then_some(ends))
    }
}

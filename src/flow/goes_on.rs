//! How a waiting node goes on: by itself in AUTO, or once a person has resumed it after `route` left it
//! blocked.
//!
//! The change is one commit on the very head that was judged. If the branch has moved since, the node went on
//! in another way, and is left as it is. Implements N10 (switching to AUTO), N11 (resuming).

use super::{FlowError, Flows, Kept};
use crate::contract::flow::Mutation;
use crate::contract::id::NodeId;
use crate::contract::node::orchestrates;
use crate::contract::words::Mode;
use crate::protocol::accepts::ACCEPTS;
use crate::protocol::dialect::{Dialect, RECOVERY_ID};
use crate::protocol::event::{Event, STATE};
use crate::protocol::flow::{FLOW, IDLE, NODE, ROUTE, TURN, accepts};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::QUESTION;
use crate::protocol::message::{Message, Trailer};
use crate::runner::Tip;
use crate::store::Commit;

/// How many commits of a branch are searched for its last turn.
const LOOK_BACK: usize = 10_000;

/// True for a head on which a node waits because `route` judged that it went in a circle, or too far without
/// a person.
fn waits_for_a_person(tip: &Tip) -> bool {
    let Some(event) = &tip.event else { return false };
    let is = |state: Option<&str>, word| state == Some(word);
    is(event.state_name().map(|state| state.as_str()), "blocked")
        && event.origin_state().is_some_and(|state| is(Some(state.as_str()), ROUTE))
        && event.message.last(QUESTION).is_none()
}

impl Flows<'_, '_> {
    /// Returns the mutations with which a flow is resumed. For each node that `route` left blocked they
    /// record its last turn, up to which a person has seen the circle.
    pub fn unstall(&self, kept: &Kept) -> Result<Vec<Mutation>, FlowError> {
        let mut seen = Vec::new();
        for (id, file) in kept.flow.nodes.iter().filter(|(_, file)| super::nodes::owns(&kept.flow, file)) {
            let tip = self.runner.fresh_tip(&crate::store::RefName::branch(&file.branch))?;
            let Some(tip) = tip.filter(waits_for_a_person) else { continue };
            if let Some(after) = self.last_turn(&tip.commit)? {
                seen.push(Mutation::ResumeNode { id: *id, after });
            }
        }
        Ok(seen)
    }

    /// Returns the run id of the newest turn that ended at or below a commit; `None` where there is none.
    fn last_turn(&self, head: &Commit) -> Result<Option<String>, FlowError> {
        let mut commit = head.clone();
        for _ in 0..LOOK_BACK {
            let event = Event::in_message(&commit.message).filter(|event| !event.is_working());
            let of_turn = |event: &Event| event.origin_state().is_some_and(|state| state.as_str() == TURN);
            if let Some(id) = event.filter(of_turn).and_then(|event| event.run_id().map(str::to_owned)) {
                return Ok(Some(id));
            }
            let Some(parent) = commit.parents.first() else { return Ok(None) };
            commit = self.runner.store.read_commit(*parent)?;
        }
        Ok(None)
    }

    /// Lets a node go on. If `resumed`, a node that waits for a person is set idle; in AUTO an orchestrator
    /// has its next turn instead, and so has an idle orchestrator that has had a turn before. Returns the
    /// commit that says so; `None` where the node is left as it is.
    pub fn go_on(&self, kept: &Kept, node: NodeId, resumed: bool) -> Result<Option<ObjectId>, FlowError> {
        let Some(branch) = kept.branch(node) else { return Ok(None) };
        let Some(tip) = self.runner.fresh_tip(&branch)? else { return Ok(None) };
        let waits = resumed && waits_for_a_person(&tip);
        let has_had_one = tip.event.as_ref().is_some_and(|event| {
            event.state_name().is_some_and(|state| state.as_str() == IDLE) && event.run_id().is_some()
        });
        if !waits && !has_had_one {
            return Ok(None);
        }
        let leads = kept.flow.nodes.get(&node).is_some_and(|file| orchestrates(&file.config.role_template));
        if self.runner.rebased(&branch).map_err(|error| FlowError::Talk(error.into()))?.is_some() {
            return Ok(None);
        }
        let state = match (kept.flow.run.mode, leads, waits) {
            (Mode::Auto, true, _) => TURN,
            (Mode::Auto, false, true) | (Mode::Interactive, _, true) => IDLE,
            (Mode::Auto, false, false) | (Mode::Interactive, _, false) => return Ok(None),
        };
        let mut trailers = vec![Dialect::Dwp.trailer(STATE, state)];
        trailers.extend((state == IDLE).then(|| Trailer::new(ACCEPTS, accepts())));
        trailers.extend([
            Trailer::new(FLOW, kept.id.to_string()),
            Trailer::new(NODE, node.to_string()),
            Dialect::Dwp.trailer(RECOVERY_ID, uuid::Uuid::new_v4()),
        ]);
        let subject = if waits { "flow: resumed" } else { "flow: goes on by itself" };
        let message = Message::new(subject, "", trailers);
        let commit = self.runner.write(&branch, tip.commit.tree, vec![tip.id()], &message)?;
        let moved = self.runner.advance(&branch, tip.id(), commit, &format!("aynig: {state}"));
        Ok(moved.map_err(|error| FlowError::Talk(error.into()))?.then_some(commit))
    }
}

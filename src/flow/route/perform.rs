//! Performs a turn's calls, one after the other, with ids that are made from each call.
//!
//! A call that was performed before is recognized: its node or edge is in the flow, or its message waits or
//! was heard. Nothing that was done is refused later, whatever became of the flow since. If a call is refused
//! now, because the flow changed since the turn asked, the agent is told by a message. Implements N5 (once),
//! N6, N7 (who performs).

use super::RouteError;
use super::done::Done;
use super::plan::{Act, Moments, Next, act};
use crate::contract::edge::Envelope;
use crate::contract::event::ToolCall;
use crate::contract::flow::{Mutation, OpenPromise};
use crate::contract::id::{EdgeId, NodeId, PayloadId, ToolId};
use crate::contract::node::orchestrates;
use crate::contract::shown;
use crate::contract::words::{Mode, RunStatus};
use crate::flow::outcome::Outcome;
use crate::flow::{FlowError, Flows, Kept, letter};
use crate::protocol::inbox::{Kind, MessageId, derived_id, heard_ref, parse_inbox_ref};
use crate::protocol::pause::Holder;
use crate::runner::Runner;
use crate::runner::change::Inside;
use crate::runner::talk::TalkError;
use crate::runner::talk::send::{Sending, Sent};
use crate::store::RefName;

/// A turn, with the times that ids are made from.
struct Turn<'t> {
    turn: &'t Outcome,
    at: Moments,
}

/// Returns a message in `route`'s own words.
fn said(id: MessageId, text: String) -> Result<Sending, RouteError> {
    let kind =
        Kind::new(Kind::MESSAGE).map_err(|why| FlowError::from(TalkError::Message(why.to_string())))?;
    Ok(Sending { kind, id: Some(id), text, trailers: Vec::new(), attach: None })
}

/// What `route` performs for a node, and what came of it.
pub(super) struct Performing<'p, 'r> {
    runner: &'p Runner<'r>,
    inside: Inside,
    node: NodeId,
    by: Holder,
    /// The flow as it is after the calls so far.
    pub kept: Kept,
    /// What came of each call.
    pub done: Vec<Done>,
    /// The messages that were sent and wait now.
    pub sent: Vec<Sent>,
}

impl<'p, 'r> Performing<'p, 'r> {
    pub fn new(
        runner: &'p Runner<'r>,
        inside: &Inside,
        kept: Kept,
        node: NodeId,
    ) -> Result<Self, RouteError> {
        Ok(Self {
            runner,
            inside: inside.clone(),
            node,
            by: runner.speaker(Some(inside)),
            kept,
            done: Vec::new(),
            sent: Vec::new(),
        })
    }

    /// Performs the calls of a turn.
    pub fn turn(&mut self, turn: &Outcome) -> Result<(), RouteError> {
        let trigger = turn.began(&*self.runner.store).map_err(FlowError::from)?;
        let at = Moments { trigger, outcome: turn.at };
        for call in &turn.calls {
            self.call(&Turn { turn, at }, call)?;
        }
        Ok(())
    }

    /// Sends the node the answers and refusals that its program did not hear, so that its next turn begins
    /// with them. After a person's answer, dispatches are counted anew.
    pub fn tell(&mut self, turn: &Outcome) -> Result<(), RouteError> {
        let millis = u64::try_from(turn.at.0).unwrap_or(0);
        let answers = turn.answers.iter().enumerate().map(|(nth, text)| ("answered", "answer", 0, nth, text));
        let hop = self.inside.hop;
        let refused = turn.refused.iter().enumerate().map(|(nth, text)| ("told", "refusal", hop, nth, text));
        for (how, what, hop, nth, text) in answers.chain(refused) {
            let nth = nth.to_string();
            let id = derived_id(millis, &[how.as_bytes(), turn.turn.0.as_bytes(), nth.as_bytes()]);
            let sending = said(id, text.clone())?;
            let from = Inside { hop, ..self.inside.clone() };
            if let Some(why) = self.send_from(&from, &self.inside.branch.clone(), &sending)? {
                let id = ToolId::of(turn.turn, &format!("{what} {nth}"));
                self.done.push(Done::refused(id, "ask", &why));
            }
        }
        Ok(())
    }

    /// Performs a call, or tells the agent why not.
    fn call(&mut self, of: &Turn<'_>, call: &Result<ToolCall, String>) -> Result<(), RouteError> {
        let call = match call {
            Ok(call) => call,
            Err(why) => {
                // Nothing is known of the call but its place among the others.
                let id = ToolId::of(of.turn.turn, &format!("unreadable {}", self.done.len()));
                return self.refuse(of, id, "?", &format!("the call can't be read: {why}"));
            }
        };
        match act(&self.kept.flow, self.node, call, of.at) {
            Ok(Act::InTurn) => Ok(()),
            Ok(act) => self.perform(of, call, act),
            Err(_) if self.was_done(of, call.id)? => {
                self.done.push(Done::call(call.id, &call.name, serde_json::Value::Null));
                Ok(())
            }
            Err(why) => self.refuse(of, call.id, &call.name, &why.to_string()),
        }
    }

    fn perform(&mut self, of: &Turn<'_>, call: &ToolCall, act: Act) -> Result<(), RouteError> {
        let handed = match act.envelope() {
            Some(envelope) => self.was_sent(envelope.id)?,
            None => false,
        };
        let flows = Flows::new(self.runner);
        let changed = flows.change(self.kept.id, &self.by, |kept| {
            let mut branch = String::new();
            if let Act::Spawn { id, spec, .. } = &act {
                let alias = spec.alias.as_deref().map(str::trim).filter(|alias| !alias.is_empty());
                branch = flows.branch_for(kept, *id, alias.unwrap_or(&spec.label))?;
            }
            Ok(act.mutations(&kept.flow, &branch, handed))
        });
        match changed {
            Ok(kept) => self.kept = kept,
            Err(FlowError::Refused(why)) => return self.refuse(of, call.id, &call.name, &why.to_string()),
            Err(error) => return Err(error.into()),
        }
        if let Some(envelope) = act.envelope()
            && let Some(why) = self.hand(of, envelope)?
        {
            // The question was never sent, so it will never be answered.
            self.release(envelope.id)?;
            return self.refuse(of, call.id, &call.name, &why);
        }
        self.done.push(Done::call(call.id, &call.name, act.output(&self.kept.flow)));
        Ok(())
    }

    /// Sends a handoff, with the turn's outcome attached, once. Returns why it never can be sent, where that
    /// is so.
    fn hand(&mut self, of: &Turn<'_>, envelope: &Envelope) -> Result<Option<String>, RouteError> {
        // The receiving node was removed since, so nothing is sent.
        let Some(branch) = self.kept.branch(envelope.to_node_id) else { return Ok(None) };
        let Some(sending) = letter::sending(envelope, Some(of.turn.commit)) else { return Ok(None) };
        self.send(&branch, &sending)
    }

    /// Sends a message. Returns why it never can be sent, where that is so: as an error this would hold up
    /// for good all that comes after it.
    fn send(&mut self, branch: &RefName, sending: &Sending) -> Result<Option<String>, RouteError> {
        self.send_from(&self.inside.clone(), branch, sending)
    }

    fn send_from(
        &mut self,
        inside: &Inside,
        branch: &RefName,
        sending: &Sending,
    ) -> Result<Option<String>, RouteError> {
        match self.runner.send(branch, sending, Some(inside)) {
            Ok(sent) if sent.waiting => self.sent.push(sent),
            Ok(_) => {}
            Err(
                error @ (TalkError::Message(_)
                | TalkError::IdTaken(..)
                | TalkError::Unreadable(..)
                | TalkError::NoBranch(_)),
            ) => return Ok(Some(error.to_string())),
            Err(error) => return Err(FlowError::from(error).into()),
        }
        Ok(None)
    }

    /// True if what a call makes exists, whatever the flow says by now.
    fn was_done(&self, of: &Turn<'_>, call: ToolId) -> Result<bool, RouteError> {
        let flow = &self.kept.flow;
        Ok(flow.nodes.contains_key(&NodeId::of_call(call))
            || flow.edges.contains_key(&EdgeId::of_call(call))
            || self.was_sent(PayloadId::of_call(call, of.at.trigger))?)
    }

    /// True if a handoff waits in an inbox of the flow, or was heard.
    fn was_sent(&self, id: PayloadId) -> Result<bool, RouteError> {
        let Some(id) = id.message() else { return Ok(false) };
        let store = &*self.runner.store;
        let waits = |name: &RefName| parse_inbox_ref(name.as_bytes()).is_some_and(|at| at.id == id);
        let folder = format!("refs/aynig/inbox/flow/{}/", self.kept.flow.run.slug);
        let found = || Ok(store.scan(&folder)?.iter().any(|(name, _)| waits(name)));
        let heard = |id: MessageId| Ok(store.tip(&RefName::new(heard_ref(id)))?.is_some());
        let either = found().and_then(|waits: bool| if waits { Ok(true) } else { heard(id) });
        either.map_err(|error: crate::store::StoreError| FlowError::from(error).into())
    }

    /// Records that a call is refused, and tells the agent.
    fn refuse(&mut self, of: &Turn<'_>, id: ToolId, name: &str, why: &str) -> Result<(), RouteError> {
        let millis = u64::try_from(of.at.trigger.0).unwrap_or(0);
        let text = shown::line(format!("Your call of {name} was not performed: {why}").as_bytes());
        let sending = said(derived_id(millis, &[b"refused", id.0.as_bytes()]), text)?;
        // If the agent can't be told, the record still says it.
        let _ = self.send(&self.inside.branch.clone(), &sending)?;
        self.done.push(Done::refused(id, name, why));
        Ok(())
    }

    /// In AUTO, tells the orchestrators that wait for this node's answer that its turn ended without one,
    /// because nothing else would make them go on. The promise ends with that, and the orchestrators decide
    /// what to do about it.
    pub fn tell_who_waits(&mut self, turn: &Outcome) -> Result<(), RouteError> {
        let flow = &self.kept.flow;
        let leads =
            |id: &NodeId| flow.nodes.get(id).is_some_and(|node| orchestrates(&node.config.role_template));
        let owed =
            flow.run.promises.iter().filter(|(_, promise)| promise.from == self.node && leads(&promise.to));
        let owed: Vec<(PayloadId, OpenPromise)> = match flow.run.mode {
            Mode::Auto => owed.map(|(id, promise)| (*id, promise.clone())).collect(),
            Mode::Interactive => Vec::new(),
        };
        let name = flow.nodes.get(&self.node).map(|node| {
            let config = &node.config;
            shown::line(config.called().as_bytes())
        });
        let millis = u64::try_from(turn.at.0).unwrap_or(0);
        for (id, promise) in owed {
            // A handoff that came during the turn was not heard by it, and is the next turn's to answer.
            let Some(asked) = id.message() else { continue };
            let heard = self.runner.store.tip(&RefName::new(heard_ref(asked))).map_err(FlowError::from)?;
            let Some(branch) = self.kept.branch(promise.to).filter(|_| heard.is_some()) else { continue };
            let name = name.as_deref().unwrap_or("a node");
            let text = format!(
                "{name} ended its turn without the answer that you wait for ({}). It said: {}",
                promise.about, turn.summary
            );
            let sending = said(derived_id(millis, &[b"unanswered", id.0.as_bytes()]), text)?;
            self.send(&branch, &sending)?;
            self.release(id)?;
        }
        Ok(())
    }

    /// Ends one promise: no answer will come to its handoff.
    fn release(&mut self, id: PayloadId) -> Result<(), RouteError> {
        let flows = Flows::new(self.runner);
        self.kept = flows.change(self.kept.id, &self.by, |kept| {
            let open = kept.flow.run.promises.contains_key(&id);
            Ok(if open { vec![Mutation::Release(id)] } else { Vec::new() })
        })?;
        Ok(())
    }

    /// Pauses the flow, so that a person decides how it goes on. A flow that was finished meanwhile stays
    /// finished.
    pub fn pause(&mut self, next: &Next) -> Result<(), RouteError> {
        if let Next::Hops(_) = next {
            // The person who resumes the flow lets everything that was sent go on, so dispatches are counted
            // anew.
            self.inside.hop = 0;
        }
        let flows = Flows::new(self.runner);
        self.kept = flows.change(self.kept.id, &self.by, |kept| {
            let pause = Mutation::SetRun {
                status: Some(RunStatus::Paused),
                mode: None,
                global_mode: None,
                summary: None,
            };
            Ok(if kept.flow.run.status == RunStatus::Running { vec![pause] } else { Vec::new() })
        })?;
        Ok(())
    }
}

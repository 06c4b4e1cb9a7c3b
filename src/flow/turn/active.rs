//! A turn that is under way: the state that lasts from its first program to its declaration.
//!
//! [`Active`] holds what people are asked, which calls were made, and what the agent is to be told with its
//! next prompt. Implements N7, N8.

use super::asking::Asking;
use super::calls::{Called, Calls, Wish, result, told, with};
use super::door::{Door, Reply};
use super::events::Events;
use super::round::Talking;
use super::workspace::{Place, Work};
use super::{Ground, TurnError};
use crate::agents::report::Reporter;
use crate::agents::{Asked, Decision};
use crate::contract::event::{Body, ToolCall};
use crate::contract::id::{ApprovalId, PayloadId, ToolId};
use crate::contract::node::NodePatch;
use crate::contract::shown;
use crate::contract::words::LogSource;
use crate::flow::approval;
use crate::protocol::inbox::{Letter, MessageId, TEXT_MAX};
use crate::runner::change::ChangeError;
use crate::runner::talk::TalkError;
use crate::runner::talk::ask::Asked as Question;
use crate::runner::talk::looks::Looks;
use serde_json::Value;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

/// Most bytes of a person's answer in a message to its node; the rest of the message is room for the
/// question.
const ANSWER_MAX: usize = TEXT_MAX - (16 << 10);

/// What a question is about.
pub enum About {
    /// A call of one of the program's own tools.
    Gate(Asked),
    /// A call of one of our tools: it needs a person's consent, or it is `ask` and itself the question.
    Call(Box<Called>),
}

/// Something that an agent was not told while its program ran.
#[derive(Debug, Clone)]
pub struct Untold {
    /// What the agent is to be told, in words.
    pub line: String,
    /// Whether the node gets another turn to be told this, if this turn has no room for a further prompt.
    pub due: Due,
}

/// What makes a turn necessary in which an agent is told something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing: the agent is told with a prompt that is sent for another reason.
    Never,
    /// The agent's call was refused, and its program has no session in which that could be told.
    Refused,
    /// A person answered.
    Answered,
}

impl From<String> for Untold {
    fn from(line: String) -> Self {
        Self { line, due: Due::Never }
    }
}

/// A turn that is under way.
pub struct Active<'t> {
    pub(super) ground: &'t Ground<'t>,
    pub(super) events: Events<'t>,
    pub(super) reporter: Reporter,
    pub(super) calls: Calls<'t>,
    pub(super) asking: Asking<'t, About>,
    pub(super) looks: Looks,
    pub(super) look_at: Instant,
    /// When the wait for a person began; `None` while none is waited for.
    pub(super) waits_since: Option<Instant>,
    /// Whether the turn was told to stop: `interrupted` by a message, `terminated` by a signal.
    pub(super) interrupted: bool,
    pub(super) terminated: bool,
    /// The interrupts that told the turn to stop.
    pub(super) interrupts: Vec<MessageId>,
    /// What the agent is to be told with its next prompt.
    pub(super) untold: Vec<Untold>,
    /// The socket through which the program's server of tools reaches the turn; `None` where there is no such
    /// server.
    pub(super) door: Option<Rc<Door>>,
    /// Where the results of calls go that came through the door.
    pub(super) replies: HashMap<ToolId, Reply>,
}

impl<'t> Active<'t> {
    /// Reports a line of the program's log.
    pub(super) fn say_log(&mut self, body: &Body) {
        self.events.say(body);
    }

    /// Reports a log line of our own.
    pub(super) fn note(&mut self, text: &str) {
        let line = shown::line(text.as_bytes());
        self.events.say(&Body::NodeLog { node_id: self.ground.node, source: LogSource::Stderr, line });
    }

    /// Asks a person about a call of one of the program's own tools.
    pub(super) fn ask_gate(&mut self, asked: Asked, talking: &mut Talking<'_>) -> Result<(), TurnError> {
        if self.reporter.is_ours(&asked.tool) {
            // A person is asked about a tool of ours when it is called, so the program's own question is
            // approved.
            let answer = talking.talk.answer(&asked.id, &Decision::Approved);
            talking.program.say(&answer.send);
            return Ok(());
        }
        let Some(call) = self.reporter.call(&asked) else { return Ok(()) };
        if !self.ground.is_gated() {
            // The program asks although no person has to be asked.
            let id = ApprovalId(crate::contract::id::derived(call.id.0, &[b"approval"]));
            self.requested(id, &call);
            return self.decided(id, &asked, &Decision::Approved, talking);
        }
        self.ask_about(&call, About::Gate(asked))
    }

    fn ask_about(&mut self, call: &ToolCall, about: About) -> Result<(), TurnError> {
        let choices = approval::CHOICES.map(str::to_owned);
        let text = approval::text(call, self.ground.name());
        let question = self.asking.ask(&text, &choices, approval::trailers(call), about)?;
        let id = approval_id(question);
        self.requested(id, call);
        self.events.progress(&format!("waits for a person: may it call {}?", call.name));
        Ok(())
    }

    fn requested(&mut self, approval_id: ApprovalId, call: &ToolCall) {
        let (node_id, tool) = (self.ground.node, call.clone());
        self.events.say(&Body::ApprovalRequested { approval_id, node_id, tool, context: None });
    }

    /// Takes in what people answered, and does what follows from it.
    pub(super) fn hear_answers(&mut self, mut talking: Option<&mut Talking<'_>>) -> Result<(), TurnError> {
        for (question, about, letter) in self.asking.answers() {
            let id = approval_id(&question);
            match (about, &mut talking) {
                (About::Gate(asked), Some(talking)) => {
                    self.decided(id, &asked, &approval::decision(&letter), talking)?;
                }
                (About::Gate(_), None) => {}
                (About::Call(called), talking) => {
                    self.call_answered(id, *called, &letter, talking.as_deref_mut());
                }
            }
        }
        Ok(())
    }

    fn decided(
        &mut self,
        approval_id: ApprovalId,
        asked: &Asked,
        decision: &Decision,
        talking: &mut Talking<'_>,
    ) -> Result<(), TurnError> {
        self.events.say(&Body::ApprovalResolved { approval_id, resolution: decision.resolution() });
        let events = self.reporter.answered(asked, decision);
        self.events.say_all(&events);
        let answer = talking.talk.answer(&asked.id, decision);
        talking.program.say(&answer.send);
        self.untold.extend(answer.untold.map(Untold::from));
        Ok(())
    }

    /// Reports that a question is over because no call waits for it any more.
    pub(super) fn unasked(&mut self, question: &Question, about: &About, why: &str) {
        let resolution = Decision::Denied(why.to_owned()).resolution();
        match about {
            About::Call(called) if matches!(called.wish, Wish::Ask { .. }) => {}
            About::Gate(_) | About::Call(_) => {
                let approval_id = approval_id(question);
                self.events.say(&Body::ApprovalResolved { approval_id, resolution });
            }
        }
    }

    /// Makes a call of one of our tools, or asks a person first.
    pub(super) fn make(
        &mut self,
        call: ToolCall,
        talking: Option<&mut Talking<'_>>,
    ) -> Result<(), TurnError> {
        let node_id = self.ground.node;
        self.events.say(&Body::ToolProposed { node_id, tool: call.clone() });
        match self.calls.judge(call.clone()) {
            Err(why) => self.came_of(&call, &Err(why), talking),
            Ok(called) => match &called.wish {
                Wish::Ask { question, choices } => {
                    let (question, choices) = (question.clone(), choices.clone());
                    self.events.say(&Body::ToolStarted { node_id, tool: call.clone() });
                    self.events.progress("waits for a person's answer");
                    let about = About::Call(Box::new(called));
                    let asked = self.asking.ask(&question, &choices, Vec::new(), about).map(|_| ());
                    self.asked(&call, asked.map_err(TurnError::from), talking)?;
                }
                _ if called.gated => {
                    let asked = self.ask_about(&call, About::Call(Box::new(called)));
                    self.asked(&call, asked, talking)?;
                }
                Wish::Flow | Wish::Todos(_) | Wish::Work(_) => self.perform(called, talking),
            },
        }
        Ok(())
    }

    /// Notes that a call waits for a person. If no person could be asked, the call has failed; only a lost
    /// lease is an error, since the turn is over without it.
    fn asked(
        &mut self,
        call: &ToolCall,
        asked: Result<(), TurnError>,
        talking: Option<&mut Talking<'_>>,
    ) -> Result<(), TurnError> {
        match asked {
            Ok(()) => talking.into_iter().for_each(|talking| talking.open_calls += 1),
            Err(error @ TurnError::Talk(TalkError::Change(ChangeError::LeaseLost(..)))) => return Err(error),
            Err(error) => self.came_of(call, &Err(shown::line(error.to_string().as_bytes())), talking),
        }
        Ok(())
    }

    fn call_answered(
        &mut self,
        approval_id: ApprovalId,
        called: Called,
        letter: &Letter,
        mut talking: Option<&mut Talking<'_>>,
    ) {
        let now = self.ground.runner.clock.instant();
        talking.iter_mut().for_each(|talking| talking.open_calls = talking.open_calls.saturating_sub(1));
        let (words, before) = (in_words(&called.wish, letter), self.untold.len());
        self.follow_answer(approval_id, called, letter, talking.as_deref_mut());
        // The program is gone, or takes no results.
        for untold in self.untold.iter_mut().skip(before) {
            let line = words.clone().unwrap_or_else(|| std::mem::take(&mut untold.line));
            *untold = Untold { line, due: Due::Answered };
        }
        talking.into_iter().for_each(|talking| talking.rest(now));
    }

    fn follow_answer(
        &mut self,
        approval_id: ApprovalId,
        called: Called,
        letter: &Letter,
        talking: Option<&mut Talking<'_>>,
    ) {
        if let Wish::Ask { .. } = called.wish {
            let choice = letter.choice.clone().unwrap_or_default();
            let answer = serde_json::json!({"answer": choice, "text": letter.text, "by": letter.from});
            return self.came_of(&called.call, &Ok(answer), talking);
        }
        let decision = approval::decision(letter);
        self.events.say(&Body::ApprovalResolved { approval_id, resolution: decision.resolution() });
        match decision {
            Decision::Approved => self.perform(called, talking),
            Decision::Denied(why) => {
                self.came_of(&called.call, &Err(format!("a person said no: {why}")), talking);
            }
            Decision::Modified(args) => match self.calls.judge(with(&called.call, &args)) {
                Ok(called) => self.perform(called, talking),
                Err(why) => self.came_of(&called.call, &Err(why), talking),
            },
        }
    }

    /// Performs a call that may be made.
    fn perform(&mut self, called: Called, talking: Option<&mut Talking<'_>>) {
        let (node_id, call) = (self.ground.node, called.call);
        self.events.say(&Body::ToolStarted { node_id, tool: call.clone() });
        match called.wish {
            Wish::Flow => match self.calls.want(call.clone()) {
                // `route` performs the call, and reports its completion.
                Ok(output) => self.tell(&call, &Ok(output), talking, true),
                Err(why) => self.came_of(&call, &Err(why), talking),
            },
            Wish::Todos(todos) => {
                let patch = Box::new(NodePatch { todos: Some(todos), ..NodePatch::default() });
                self.events.say(&Body::NodePatch { node_id, patch });
                self.came_of(&call, &Ok(Value::from("noted")), talking);
            }
            Wish::Work(work) => {
                let done = self.work(&work);
                let now = self.ground.runner.clock.instant();
                let mut talking = talking;
                talking.iter_mut().for_each(|talking| talking.served(now));
                self.came_of(&call, &done, talking);
            }
            Wish::Ask { .. } => {}
        }
    }

    fn work(&self, work: &Work) -> Result<Value, String> {
        let ground = self.ground;
        let stop = ground.stops();
        let place = Place {
            slot: &ground.slot,
            env: &ground.agent_env,
            confine: ground.confinement(),
            clock: ground.runner.clock,
            stop: &stop,
        };
        work.perform(&place)
    }

    /// Ends the calls that `route` was to perform, and tells the agent: the turn ends without an outcome that
    /// they could be read from.
    pub(super) fn drop_calls(&mut self, why: &str) {
        for call in std::mem::take(&mut self.calls.wanted) {
            self.came_of(&call, &Err(format!("not performed: {why}")), None);
        }
    }

    /// Reports that a call is over, and tells the agent.
    fn came_of(&mut self, call: &ToolCall, done: &Result<Value, String>, talking: Option<&mut Talking<'_>>) {
        let (result, error) = result(done);
        let (node_id, tool_id): (_, ToolId) = (self.ground.node, call.id);
        self.events.say(&Body::ToolCompleted { node_id, tool_id, result, error });
        self.tell(call, done, talking, false);
    }

    /// Tells the agent what came of its call: at once if its program takes that, or else with its next
    /// prompt.
    fn tell(
        &mut self,
        call: &ToolCall,
        done: &Result<Value, String>,
        talking: Option<&mut Talking<'_>>,
        as_wished: bool,
    ) {
        let (result, error) = result(done);
        if self.replies.remove(&call.id).is_some_and(|reply| reply.result(&result, error.as_ref())) {
            return;
        }
        let own = call.provider_id.clone().unwrap_or_else(|| call.id.to_string());
        let line = talking.and_then(|talking| {
            let line = talking.talk.result(&own, &result, error.as_ref())?;
            talking.program.say(&line);
            Some(())
        });
        // If all goes as the agent wished, there is nothing to tell it.
        if line.is_none() && !as_wished {
            self.untold.push(told(call, done).into());
        }
    }
}

/// Returns what a person answered to a question, in words, for an agent that does not wait for it any more;
/// `None` where the call is no question.
fn in_words(wish: &Wish, letter: &Letter) -> Option<String> {
    let Wish::Ask { question, .. } = wish else { return None };
    let said = format!("{}\n{}", letter.choice.as_deref().unwrap_or_default(), letter.text);
    let (question, from) = (shown::line(question.as_bytes()), shown::line(letter.from.as_bytes()));
    Some(format!(
        "You asked: {question}\n{from} answered: {}",
        shown::block_within(said.trim().as_bytes(), ANSWER_MAX)
    ))
}

/// Returns the id of an approval, which is its question's.
pub fn approval_id(question: &Question) -> ApprovalId {
    let id = PayloadId::parse(&question.question.id.to_string());
    ApprovalId(id.map_or_else(|_| uuid::Uuid::nil(), |id| id.0))
}

//! A turn that is under way: what lasts from its first program to its declaration.
//!
//! What is asked of people, which calls were made, what is to be told with the next prompt. Implements N7, N8.

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

/// Most bytes of a person's answer in a message to its node, which has room for the question besides.
const ANSWER_MAX: usize = TEXT_MAX - (16 << 10);

/// What a question is about.
pub enum About {
    /// A tool of the program's own.
    Gate(Asked),
    /// A call of one of our tools, and whether it is the question itself.
    Call(Box<Called>),
}

/// What an agent was not told while its program was there.
#[derive(Debug, Clone)]
pub struct Untold {
    /// In words.
    pub line: String,
    /// Whether the node has a turn for it, where this one has no more room.
    pub due: Due,
}

/// What asks for a turn in which an agent is told something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing: it is told with a prompt that there is for something else.
    Never,
    /// That its call was refused, and its program has no session in which it could be told.
    Refused,
    /// A person, who said it.
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
    /// Since when a person is waited for.
    pub(super) waits_since: Option<Instant>,
    /// It was told to stop, by a message or by a signal.
    pub(super) interrupted: bool,
    pub(super) terminated: bool,
    /// The messages that told it.
    pub(super) interrupts: Vec<MessageId>,
    /// What the agent is to be told with its next prompt.
    pub(super) untold: Vec<Untold>,
    /// Where its program's server of tools comes in; none where it has none.
    pub(super) door: Option<Rc<Door>>,
    /// Who waits there for what comes of which call.
    pub(super) replies: HashMap<ToolId, Reply>,
}

impl<'t> Active<'t> {
    /// Says what stands in the log.
    pub(super) fn say_log(&mut self, body: &Body) {
        self.events.say(body);
    }

    /// A line of the log that is ours.
    pub(super) fn note(&mut self, text: &str) {
        let line = shown::line(text.as_bytes());
        self.events.say(&Body::NodeLog { node_id: self.ground.node, source: LogSource::Stderr, line });
    }

    /// Asks a person about a tool of the program's own.
    pub(super) fn ask_gate(&mut self, asked: Asked, talking: &mut Talking<'_>) -> Result<(), TurnError> {
        if self.reporter.is_ours(&asked.tool) {
            // It has its gate here, when it is called.
            let answer = talking.talk.answer(&asked.id, &Decision::Approved);
            talking.program.say(&answer.send);
            return Ok(());
        }
        let Some(call) = self.reporter.call(&asked).cloned() else { return Ok(()) };
        if !self.ground.is_gated() {
            // It asks by itself where no person has to be asked.
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

    /// Takes what people answered, and does what follows.
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

    /// A question that no call waits for any more.
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

    /// A call waits for a person; where no person could be asked, that is what came of it. A turn without its lease is over.
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
        // Its program is gone, or takes no answers.
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

    /// Does what a call asks for that may be made.
    fn perform(&mut self, called: Called, talking: Option<&mut Talking<'_>>) {
        let (node_id, call) = (self.ground.node, called.call);
        self.events.say(&Body::ToolStarted { node_id, tool: call.clone() });
        match called.wish {
            Wish::Flow => match self.calls.want(call.clone()) {
                // `route` performs it, and says so.
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

    /// The turn ends without an outcome that `route` would perform calls of: they are over, and its agent is told.
    pub(super) fn drop_calls(&mut self, why: &str) {
        for call in std::mem::take(&mut self.calls.wanted) {
            self.came_of(&call, &Err(format!("not performed: {why}")), None);
        }
    }

    /// A call is over.
    fn came_of(&mut self, call: &ToolCall, done: &Result<Value, String>, talking: Option<&mut Talking<'_>>) {
        let (result, error) = result(done);
        let (node_id, tool_id): (_, ToolId) = (self.ground.node, call.id);
        self.events.say(&Body::ToolCompleted { node_id, tool_id, result, error });
        self.tell(call, done, talking, false);
    }

    /// Tells the agent what came of its call: at once where its program takes that, else with its next prompt.
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
        // What goes as it was wished is no news.
        if line.is_none() && !as_wished {
            self.untold.push(told(call, done).into());
        }
    }
}

/// What a person said to a question, for an agent that does not wait for it any more.
fn in_words(wish: &Wish, letter: &Letter) -> Option<String> {
    let Wish::Ask { question, .. } = wish else { return None };
    let said = format!("{}\n{}", letter.choice.as_deref().unwrap_or_default(), letter.text);
    let (question, from) = (shown::line(question.as_bytes()), shown::line(letter.from.as_bytes()));
    Some(format!(
        "You asked: {question}\n{from} answered: {}",
        shown::block_within(said.trim().as_bytes(), ANSWER_MAX)
    ))
}

/// The id of an approval, which is its question's.
pub fn approval_id(question: &Question) -> ApprovalId {
    let id = PayloadId::parse(&question.question.id.to_string());
    ApprovalId(id.map_or_else(|_| uuid::Uuid::nil(), |id| id.0))
}

//! A node's turn: the command of the state `turn`.
//!
//! The turn reads the flow, the node and what came for it, keeps the prompt before any of it is sent, has the
//! provider's program answer it, and ends with a declaration of state `route`. What the program does
//! meanwhile is reported as event lines; what it asks, a person answers; what it was not allowed to change is
//! not in the outcome. [`run`] does all of this, once, inside of a run. What the turn leaves is kept, however
//! it ends. Implements N4, N7, N8, N9, N9a, N10.

mod active;
mod asking;
mod before;
mod calls;
mod changed;
mod declared;
mod door;
mod events;
mod home;
mod launch;
mod lines;
mod program;
mod prompting;
mod round;
mod session;
pub mod settings;
mod tools;
mod verify;
mod workspace;

use super::FlowError;
use super::store::Kept;
use super::turns::{self, Record, Sum};
use crate::agents::custom::Protocol;
use crate::agents::ending::Next;
use crate::agents::report::Reporter;
use crate::agents::{Ending, Told};
use crate::contract::id::{NodeId, TurnId};
use crate::contract::node::NodeConfig;
use crate::contract::prompt::{Prompt, PromptKind};
use crate::contract::words::{CliPermissionsMode, Provider};
use crate::flow::route::plan::Moments;
use crate::protocol::declaration::Declaration;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::Kind;
use crate::runner::change::Inside;
use crate::runner::sandbox::OwnSandbox;
use crate::runner::talk::TalkError;
use crate::runner::talk::looks::Looks;
use crate::runner::{Runner, RunnerError, io};
use crate::store::files::Files;
use crate::supervisor::SupervisorError;
use crate::supervisor::confine::Confinement;
use active::{Active, Due, Untold};
use asking::Asking;
use before::Before;
use calls::Calls;
use events::Events;
pub use launch::environment;
use round::Round;
use session::Going;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Most programs that one turn starts: the first, one if the session was lost, and those that are told what
/// came of their calls.
const ROUNDS_MAX: u32 = 4;

/// Why there was no turn.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each says itself what it holds")]
pub enum TurnError {
    #[error(transparent)]
    Flow(#[from] FlowError),
    #[error(transparent)]
    Talk(#[from] TalkError),
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    #[error("the run of a turn has no id that is one")]
    NoTurn,
    #[error("what it started changed '{0}', which leads Git")]
    Redirected(String),
}

impl From<RunnerError> for TurnError {
    fn from(error: RunnerError) -> Self {
        Self::Talk(error.into())
    }
}

/// What a turn works with: it does not change while the turn runs.
pub struct Ground<'t> {
    /// The runner that reads and writes.
    pub runner: &'t Runner<'t>,
    /// The run that the turn is.
    pub inside: &'t Inside,
    /// The flow as it was read when the turn began.
    pub kept: Kept,
    /// The node whose turn it is.
    pub node: NodeId,
    /// The text of its role's template.
    pub template: String,
    /// The provider's program, as the account configures it.
    pub program: settings::Program,
    /// The command that verifies what changed; empty for none.
    pub verify: Vec<String>,
    /// The slot: the worktree of the run.
    pub slot: PathBuf,
    /// The folder of the slot in which the agent's program starts.
    pub start: PathBuf,
    /// The file for the run's event lines; `None` where there is none.
    pub events: Option<PathBuf>,
    /// The trigger: the commit that the turn answers.
    pub trigger: ObjectId,
    /// The turn's id, which is the run's.
    pub turn: TurnId,
    /// The environment of the agent's program, and of the commands that it has the turn run.
    pub agent_env: Vec<(OsString, OsString)>,
    /// The environment of the verification: it lacks what the account configures for the provider's program.
    pub check_env: Vec<(OsString, OsString)>,
    /// The turn's own folder, which is removed when the turn is over.
    pub folder: PathBuf,
    /// The sandbox to which everything that the turn starts is confined (K59); `None` where it is confined to
    /// nothing.
    pub sandbox: Option<OwnSandbox>,
    /// The program that serves our tools; `None` where it is not installed, or could not be used from within
    /// the sandbox.
    pub server: Option<PathBuf>,
}

/// How a turn ended.
#[derive(Debug)]
pub enum Ended {
    /// The turn ended with this declaration.
    Declared(Box<Declaration>),
    /// The turn failed, and the run stalls.
    Failed {
        /// Why it failed, in the provider's own words where there are any.
        why: String,
        /// What mends it; empty where nothing has to be.
        mend: String,
    },
    /// The turn was ended by this signal.
    Terminated(i32),
}

/// What came of a turn's programs.
struct Came {
    ending: Ending,
    told: Told,
    session: Option<String>,
    /// The tokens that the session has used in all, where its program reports sums.
    sum: Option<Sum>,
    texts: Files,
}

impl<'t> Ground<'t> {
    fn config(&self) -> &NodeConfig {
        // `of_branch` gave the node of this very flow.
        &self.kept.flow.nodes[&self.node].config
    }

    /// True if every tool waits for a person.
    fn is_gated(&self) -> bool {
        match self.config().permissions.cli_permissions_mode {
            CliPermissionsMode::Gated => true,
            CliPermissionsMode::Skip => false,
        }
    }

    /// True if the program is told what comes of its calls while it runs.
    fn is_jsonl(&self) -> bool {
        self.config().provider == Provider::Custom && self.program.protocol == Protocol::Jsonl
    }

    /// Returns what everything that the turn starts is confined to; `None` where it is confined to nothing.
    fn confinement(&self) -> Option<&Confinement> {
        self.sandbox.as_ref().map(|sandbox| &sandbox.confinement)
    }

    /// Refuses to go on if something confined has changed files that lead Git, because everything that
    /// follows asks Git.
    fn prove_leads(&self) -> Result<(), TurnError> {
        let Some(sandbox) = &self.sandbox else { return Ok(()) };
        self.runner.changed_leads(sandbox)?.map_or(Ok(()), |what| Err(TurnError::Redirected(what)))
    }

    /// Returns what people call the node.
    fn name(&self) -> &str {
        let config = self.config();
        config.called()
    }

    /// Returns a function that is true once what the turn started is to stop: an interrupt stops a command as
    /// it stops the agent's program.
    fn stops(&self) -> impl Fn() -> bool + '_ {
        let clock = self.runner.clock;
        let looks = RefCell::new((clock.instant(), Looks::new(self.runner, &self.inside.branch)));
        move || {
            let (next, looks) = &mut *looks.borrow_mut();
            let now = clock.instant();
            let is_due = *next <= now && looks.is_due();
            if *next <= now {
                *next = now + looks.every();
            }
            self.runner.interrupt.signal().is_some() || (is_due && self.is_interrupted())
        }
    }

    /// True if a message tells this turn to stop.
    fn is_interrupted(&self) -> bool {
        let kind = Kind::new(Kind::INTERRUPT).ok();
        let found = kind.map(|kind| self.runner.inbox(&self.inside.branch, Some(&kind), &|_, _| false));
        found.is_some_and(|found| found.is_ok_and(|found| found.iter().any(|waiting| waiting.letter.is_ok())))
    }
}

/// Runs the turn.
///
/// # Errors
/// Where there is no lease or no flow, or something can't be written; nothing was declared then.
pub fn run(ground: &Ground<'_>) -> Result<Ended, TurnError> {
    if let Some(refused) = ground.refused()? {
        let why = refused.to_string();
        Events::new(ground.events.as_deref(), ground.runner.clock).failed(ground.node, &why);
        return Ok(Ended::Failed { why, mend: String::new() });
    }
    let before = ground.before()?;
    if before.is_nothing {
        return declared::nothing();
    }
    ground.make_folder()?;
    let mut active = Active::new(ground)?;
    let came = active.programs(&before)?;
    active.settle(&before, came)
}

impl<'t> Active<'t> {
    fn new(ground: &'t Ground<'t>) -> Result<Self, TurnError> {
        let clock = ground.runner.clock;
        let at = |id| -> Result<_, TurnError> {
            let commit = ground.runner.store.read_commit(id).map_err(TalkError::from)?;
            Ok(crate::contract::time::Time::from_seconds(commit.committed.unwrap_or(0)))
        };
        let now = crate::contract::time::Time(i64::try_from(clock.millis()).unwrap_or(i64::MAX));
        let moments = Moments { trigger: at(ground.trigger)?, outcome: now };
        let slot = ground.is_jsonl().then_some(&*ground.slot);
        let mut this = Self {
            ground,
            events: Events::new(ground.events.as_deref(), clock),
            reporter: Reporter::new(ground.node, ground.turn, ground.is_gated()),
            door: None,
            replies: HashMap::new(),
            calls: Calls::new(ground.kept.flow.clone(), ground.node, moments, slot),
            asking: Asking::new(ground.runner, ground.inside),
            looks: Looks::new(ground.runner, &ground.inside.branch),
            look_at: clock.instant(),
            waits_since: None,
            interrupted: false,
            terminated: false,
            interrupts: Vec::new(),
            untold: Vec::new(),
        };
        this.open_door();
        Ok(this)
    }

    /// Has the provider's program answer, started anew for each prompt of the turn.
    fn programs(&mut self, before: &Before) -> Result<Came, TurnError> {
        let ground = self.ground;
        let mut texts = Files::new();
        let mut going = ground.session(before);
        let lost = going.is_none().then(|| before::catch_up(before)).flatten();
        let mut catch_up = lost;
        let untold = before.record.as_ref().map(|record| record.untold.clone()).unwrap_or_default();
        let mut untold: Vec<Untold> = untold.into_iter().map(Untold::from).collect();
        let mut brought = &before.brought[..];
        let mut sum = before.record.as_ref().filter(|_| going.is_some()).and_then(|record| record.sum);
        let mut good: Option<Came> = None;
        for round in 1.. {
            let kind = if going.is_some() { PromptKind::Delta } else { PromptKind::Full };
            let tools = self.tools();
            let prompt = ground.prompt(kind, brought, &untold, catch_up.as_deref(), tools.is_some());
            ground.keep_prompt(&prompt, catch_up.as_deref(), round, &mut texts)?;
            if catch_up.is_some() {
                self.note("its session is not there any more: it is told what went before");
            }
            let (launch, talk) = ground.launch(&prompt, going.as_ref(), tools.as_ref());
            let Round { ending, told } = self.round(&launch, talk)?;
            self.used(&told, &mut sum);
            self.say_rest(&told, &ending);
            if ending.next() == Next::Afresh && going.is_some() && round < ROUNDS_MAX && !self.interrupted {
                (going, catch_up, sum) = (None, before::catch_up(before), None);
                continue;
            }
            if ending != Ending::Completed
                && let Some(good) = good.take()
            {
                return Ok(self.fall_back(Came { texts, sum, ..good }, &ending, untold));
            }
            let text = declared::text_of(ground, &told);
            if ending == Ending::Completed && !ground.is_jsonl() {
                self.calls_at_end(&text)?;
            }
            self.wait_for_people()?;
            let session = told.session.clone().or_else(|| match &going {
                Some(Going::Id(id)) => Some(id.clone()),
                Some(Going::File(_)) | None => None,
            });
            let next = session.as_deref().and_then(|id| ground.going_on(id, &told));
            let more = !self.untold.is_empty() && round < ROUNDS_MAX && !self.interrupted && !self.terminated;
            let more = more && ending == Ending::Completed;
            if more && next.is_none() {
                let waits = self.untold.iter_mut().filter(|untold| untold.due == Due::Never);
                waits.for_each(|untold| untold.due = Due::Refused);
            }
            match next.filter(|_| more) {
                Some(next) => {
                    (going, catch_up, brought) = (Some(next), None, &[]);
                    untold = std::mem::take(&mut self.untold);
                    good = Some(Came { ending, told, session, sum, texts: Files::new() });
                }
                None => return Ok(Came { ending, told, session, sum, texts }),
            }
        }
        Err(TurnError::NoTurn)
    }

    /// Returns what came of the turn where a round that was only to tell the agent more did not end well:
    /// what the earlier rounds said and called stands, and what this one told the agent is told again.
    fn fall_back(&mut self, good: Came, ending: &Ending, untold: Vec<Untold>) -> Came {
        self.note(&declared::words(self.ground.config().provider, ending));
        self.untold.splice(0..0, untold);
        let words = ending.words().to_owned();
        let ending = if self.interrupted { Ending::Interrupted { words } } else { good.ending };
        Came { ending, ..good }
    }

    /// Waits for the answers to questions whose program is gone.
    fn wait_for_people(&mut self) -> Result<(), TurnError> {
        let runner = self.ground.runner;
        while self.asking.is_open() && !self.interrupted && !self.terminated {
            if self.looks.is_due() {
                self.hear_answers(None)?;
                self.hear_interrupts();
            }
            if self.asking.is_open() {
                runner.interrupt.wait(self.looks.every());
            }
            self.terminated = runner.interrupt.signal().is_some();
        }
        for (question, about) in self.asking.withdraw(|_| true) {
            self.unasked(&question, &about, "its turn ended");
        }
        Ok(())
    }

    /// Keeps what the turn leaves, and says how it ends.
    fn settle(mut self, before: &Before, came: Came) -> Result<Ended, TurnError> {
        let ground = self.ground;
        let signal = ground.runner.interrupt.signal().filter(|_| self.terminated);
        let waits = before.record.as_ref().map_or(0, |record| record.waits);
        let ended = match signal {
            Some(signal) => {
                self.drop_calls("its turn was told to stop");
                Ended::Terminated(signal)
            }
            None => self.end(&came, waits)?,
        };
        let left_out = self.events.left_out();
        if left_out > 0 {
            self.note(&format!("{left_out} more lines are in the transcript alone"));
        }
        if let Ended::Failed { .. } = ended {
            let why = declared::in_short(ground.config().provider, &came.ending);
            self.events.failed(ground.node, &why);
        }
        let waits = if matches!(came.ending.next(), Next::Later(_)) { waits + 1 } else { 0 };
        if came.ending != Ending::Completed && !self.interrupted {
            // A program that did not answer may not have read what it was told, either.
            let told = before.record.as_ref().map(|record| record.untold.clone()).unwrap_or_default();
            self.untold.splice(..0, told.into_iter().map(Untold::from));
        }
        let session = came.session.clone().or_else(|| {
            // A program that did not get as far as a session has not lost the earlier one.
            before.record.as_ref().filter(|_| came.ending.next() != Next::Afresh)?.session.clone()
        });
        let record = Record {
            run_id: ground.kept.id,
            node_id: ground.node,
            provider: ground.config().provider,
            resets: ground.kept.flow.nodes[&ground.node].resets,
            ending: came.ending.name().to_owned(),
            cwd: came
                .told
                .cwd
                .clone()
                .or_else(|| before.record.as_ref().and_then(|record| record.cwd.clone())),
            session,
            sum: came.sum.filter(|_| ground.config().provider == Provider::Codex),
            untold: std::mem::take(&mut self.untold).into_iter().map(|one| one.line).collect(),
            waits,
        };
        let mut files = came.texts;
        ground.gather(&mut files);
        files.insert(turns::EVENTS.to_owned(), self.events.kept().to_vec());
        files.insert(turns::RECORD.to_owned(), serde_json::to_vec_pretty(&record).unwrap_or_default());
        turns::keep(ground.runner, &ground.inside.run_id, &files)?;
        ground.drop_folder();
        Ok(ended)
    }
}

impl Ground<'_> {
    /// Keeps a prompt before any of it is sent.
    fn keep_prompt(
        &self,
        prompt: &Prompt,
        catch_up: Option<&str>,
        round: u32,
        texts: &mut Files,
    ) -> Result<(), TurnError> {
        let nth = if round > 1 { format!(".{round}") } else { String::new() };
        let mut put = |name: String, text: &str| -> Result<(), TurnError> {
            let path = self.folder.join(&name);
            std::fs::write(&path, text)
                .and_then(|()| std::fs::File::open(&path)?.sync_all())
                .map_err(io("write", &path))?;
            texts.insert(name, text.as_bytes().to_vec());
            Ok(())
        };
        put(format!("prompt{nth}.full.txt"), &prompt.text)?;
        put(format!("prompt{nth}.blocks.json"), &prompt.blocks.to_json())?;
        catch_up.map_or(Ok(()), |text| put(turns::CONTEXT.to_owned(), text))
    }

    fn make_folder(&self) -> Result<(), TurnError> {
        // No earlier process of this run left the folder; if something is in its place, a command put it
        // there.
        let _ = crate::store::remove_tree(&self.folder);
        let tmp = self.folder.join("tmp");
        std::fs::create_dir_all(&tmp).map_err(io("create", &tmp))?;
        Ok(())
    }

    fn drop_folder(&self) {
        let _ = crate::store::remove_tree(&self.folder);
    }

    /// Adds what the program printed to the files.
    fn gather(&self, files: &mut Files) {
        for name in [program::TRANSCRIPT, program::STDERR] {
            let printed = crate::store::read_plain(&self.folder.join(name), launch::KEPT_MAX + 4096);
            files.extend(printed.ok().filter(|text| !text.is_empty()).map(|text| (name.to_owned(), text)));
        }
    }
}

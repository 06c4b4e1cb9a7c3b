//! `status`: how branches stand, and what programs are told of each: schema `aynig.status/1`.
//!
//! Reads only, and works in a repository that is not trusted. JSON holds what came from the repository as it is.
//! Implements git-aynig-status(1), K49b, K55.

use super::asking::{AskedLine, Asking, may_ask};
use super::config::Flags;
use super::paused::{HoldingLine, Pauses};
use super::session::Session;
use super::shown::{Shown, full, short};
use super::{AppError, mend};
use crate::flow::Flows;
use crate::protocol::dialect::PAUSED_BY;
use crate::protocol::event::{Event, ORIGIN_STATE, RUN_ID, RUNNER_ID, STALLED_RUN};
use crate::protocol::flow::{rests, slug_of};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::MessageId;
use crate::protocol::message::Message;
use crate::protocol::name::{ENDS, STALLED};
use crate::protocol::resemble::missed_state;
use crate::runner::settings::{CommandsFrom, Settings};
use crate::runner::survey::{BranchStatus, Standing, Survey, Surveyed};
use crate::runner::{Runner, RunnerError};
use crate::store::RefName;
use crate::store::worktrees::Busy;
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use std::borrow::{Borrow, Cow};
use std::ffi::OsString;

/// The schema of a branch's status.
pub const STATUS_SCHEMA: &str = "aynig.status/1";

/// Most characters that are shown of why a run stalled.
const WHY_MAX: usize = 120;

/// How branches stand.
pub struct Statuses {
    /// The branches that were looked at.
    pub surveyed: Surveyed,
    /// Branches that were named and do not exist.
    pub missing: Vec<RefName>,
    /// The questions that branches ask.
    pub asking: Asking,
    /// The pauses that stand.
    pub pauses: Pauses,
    /// Answers that nodes of flows still owe one another; read only where one of the branches can be a
    /// node's.
    pub owed: Vec<Owed>,
    /// The ref that commands come from, where it does not exist.
    pub absent: Option<RefName>,
    /// The settings that were used.
    pub settings: Settings,
    /// The time by which leases were judged, in seconds since 1970.
    pub now: i64,
}

/// An answer that a node of a flow still waits for (N6).
#[derive(Debug, Clone)]
pub struct Owed {
    /// The branch of the node that waits, and what people call it.
    pub to: (RefName, String),
    /// The branch of the node that owes the answer, and what people call that node.
    pub from: (RefName, String),
    /// What the answer is about.
    pub about: String,
}

/// Returns the answers that nodes of flows owe one another. A ref that holds no flow owes nothing.
fn owed(runner: &Runner<'_>) -> Result<Vec<Owed>, AppError> {
    let mut owed = Vec::new();
    for kept in Flows::new(runner).all()?.into_iter().filter_map(|listed| listed.read.ok()) {
        let end = |id| {
            let config = &kept.flow.nodes.get(&id)?.config;
            Some((kept.branch(id)?, config.called().to_owned()))
        };
        for promise in kept.flow.run.promises.values() {
            if let (Some(to), Some(from)) = (end(promise.to), end(promise.from)) {
                owed.push(Owed { to, from, about: promise.about.clone() });
            }
        }
    }
    Ok(owed)
}

/// What a branch means to a person who looks at many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A run holds it, or held it when it died.
    Running,
    /// It waits for a person.
    Waiting,
    /// A run stalled on it, which waits for a person too.
    Stalled,
    /// It has a command, but waits for a slot or for the end of what holds it.
    Queued,
    /// The next tick runs its command.
    Ready,
    /// Nothing is to be done.
    Done,
    /// It is not dispatched here, or its head is no state event.
    Other,
}

impl Group {
    /// Returns the group of a branch.
    pub fn of(status: &BranchStatus) -> Self {
        let event = status.tip.event.as_ref();
        let state = event.and_then(Event::state_name).map_or("", |state| state.as_str());
        match &status.standing {
            Standing::Leased { .. } | Standing::Expired { .. } => Group::Running,
            Standing::Waits if state == STALLED && event.is_some_and(by_a_run) => Group::Stalled,
            Standing::Waits if event.is_some_and(is_paused) => Group::Queued,
            Standing::Waits if ENDS.contains(&state) || event.is_some_and(rests) => Group::Done,
            // A person has to mend what is wrong with these branches.
            Standing::Waits
            | Standing::InvalidState(..)
            | Standing::Unusable(..)
            | Standing::HopLimit { .. } => Group::Waiting,
            Standing::Ready if status.pending.is_some() => Group::Queued,
            Standing::Held(_) => Group::Queued,
            Standing::Ready => Group::Ready,
            Standing::NoState | Standing::NotTrusted | Standing::LeftOut => Group::Other,
        }
    }

    /// Returns the group's name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Group::Running => "running",
            Group::Waiting => "waiting",
            Group::Stalled => "stalled",
            Group::Queued => "queued",
            Group::Ready => "ready",
            Group::Done => "done",
            Group::Other => "other",
        }
    }
}

/// Which branches are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Branches by name; empty for all whose head is a state event or, unless a program asks, may have been meant
    /// as one.
    pub named: Vec<RefName>,
    /// True where a program asks.
    pub programs: bool,
    /// Only branches that wait for a person.
    pub waiting: bool,
    /// Only branches that a run holds; with `waiting`, those of both kinds.
    pub running: bool,
    /// Only branches whose head was committed no earlier, in seconds since 1970.
    pub since: Option<i64>,
}

impl Filter {
    /// True for a branch that is wanted.
    pub fn wants(&self, status: &BranchStatus, asking: &Asking) -> bool {
        let group = Group::of(status);
        // A run that sleeps until it is answered waits for a person too.
        let is_waiting =
            matches!(group, Group::Waiting | Group::Stalled) || asking.is_asked_by(&status.branch);
        let is_in_group = !self.waiting && !self.running
            || self.waiting && is_waiting
            || self.running && group == Group::Running;
        let is_new = self.since.is_none_or(|since| status.tip.commit.committed.is_some_and(|at| at >= since));
        let is_named = match &*self.named {
            [] => {
                let missed = || missed_state(&status.tip.commit.message).is_some();
                status.tip.event.is_some() || !self.programs && missed()
            }
            named => named.contains(&status.branch),
        };
        is_in_group && is_new && is_named
    }

    /// Where only branches that wait are wanted, sorts them by how long they wait, the longest first.
    pub fn order<S: Borrow<BranchStatus>>(&self, statuses: &mut [S]) {
        if self.waiting && !self.running {
            statuses.sort_by_key(|status| status.borrow().tip.commit.committed);
        }
    }
}

/// Passes the line of every branch whose head is a state event to `visit` as it is read, in no order, and the
/// error of every branch that can't be read: the lines of many branches at once would take much memory.
/// Returns the time by which leases were judged, in seconds since 1970.
pub fn each(
    session: &Session,
    visit: &mut dyn FnMut(RefName, Result<StatusLine<'_>, RunnerError>),
) -> Result<i64, AppError> {
    let settings = session.settings(&Flags::default())?;
    mend::all(session);
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    runner.store.refresh()?;
    let (survey, pauses, now) = (Survey::new(&runner)?, Pauses::look(&runner)?, runner.clock.now());
    // Questions are read with the first branch that may ask one.
    let (mut asking, none, mut failed) = (None, Asking::default(), None);
    survey.each(true, &mut |name, read| {
        let status = match read {
            Ok(status) => status,
            Err(error) => {
                visit(name, Err(error));
                return true;
            }
        };
        if asking.is_none() && may_ask(&status) {
            match Asking::all(&runner) {
                Ok(asked) => asking = Some(asked),
                Err(error) => failed = Some(error),
            }
        }
        let around = (asking.as_ref().unwrap_or(&none), &pauses);
        visit(name, Ok(StatusLine::of(&status, around, &settings, now)));
        failed.is_none()
    })?;
    failed.map_or(Ok(now), Err)
}

/// Looks at these branches, or at all whose head is a state event.
pub fn look(session: &Session, branches: &[OsString], remote: Option<String>) -> Result<Statuses, AppError> {
    let settings = session.settings(&Flags { remote, ..Flags::default() })?;
    mend::all(session);
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    runner.store.refresh()?;
    let survey = Survey::new(&runner)?;
    let mut missing = Vec::new();
    let surveyed = if branches.is_empty() {
        survey.all(|tip| tip.event.is_some() || missed_state(&tip.commit.message).is_some())?
    } else {
        let mut surveyed = Surveyed::default();
        for arg in branches {
            let branch = session.branch(arg)?;
            match survey.one(&branch) {
                Ok(Some(status)) => surveyed.branches.push(status),
                Ok(None) => missing.push(branch),
                Err(error) => surveyed.failed.push((branch, error)),
            }
        }
        surveyed
    };
    let (now, absent) = (runner.clock.now(), survey.absent().cloned());
    let asking = Asking::look(&runner, surveyed.branches.iter())?;
    let pauses = Pauses::look(&runner)?;
    let has_nodes = surveyed.branches.iter().any(|status| slug_of(status.branch.short()).is_some());
    let owed = if has_nodes { owed(&runner)? } else { Vec::new() };
    drop(survey);
    drop(runner);
    Ok(Statuses { surveyed, missing, asking, pauses, owed, absent, settings, now })
}

/// True where a run ended in this `stalled` event, so that `retry` asks for it again; a person may write
/// `stalled` too.
pub fn by_a_run(stalled: &Event) -> bool {
    stalled.trigger().is_some() || stalled.text(STALLED_RUN).is_some()
}

/// True where a pause ended the run. When the pause is over, the run is asked for again, and this event is no
/// longer the head.
pub fn is_paused(canceled: &Event) -> bool {
    canceled.text(PAUSED_BY).is_some_and(|id| MessageId::parse(id.as_bytes()).is_ok())
}

/// Returns the id of the run that the head is about: of a lease its own, else of the run that the head ended.
pub fn run_of(status: &BranchStatus) -> Option<&str> {
    let event = status.tip.event.as_ref()?;
    event.text(STALLED_RUN).or_else(|| event.text(RUN_ID))
}

/// Returns why a run ended `stalled`, as the commit's subject says it.
pub fn stalled_why(status: &BranchStatus) -> Option<String> {
    let event = status.tip.event.as_ref().filter(|event| by_a_run(event))?;
    let subject = String::from_utf8_lossy(&event.message.subject);
    let what = event.text(ORIGIN_STATE).unwrap_or("run");
    let why = subject.strip_prefix(&format!("aynig: {what} stalled: "))?;
    Some(why.chars().take(WHY_MAX).collect())
}

/// Returns how long a branch has waited for a slot, in seconds.
pub fn waits(status: &BranchStatus) -> Option<i64> {
    let since = std::time::SystemTime::now().duration_since(status.pending?).unwrap_or_default();
    i64::try_from(since.as_secs()).ok()
}

/// Returns the standing's name in `--porcelain` and `--json`.
pub fn standing_name(standing: &Standing) -> &'static str {
    match standing {
        Standing::NoState => "no-state",
        Standing::InvalidState(..) => "invalid-state",
        Standing::Waits => "waits",
        Standing::Ready => "ready",
        Standing::NotTrusted => "not-trusted",
        Standing::LeftOut => "left-out",
        Standing::Unusable(..) => "unusable",
        Standing::HopLimit { .. } => "hop-limit",
        Standing::Held(by) => by.name(),
        Standing::Leased { .. } => "leased",
        Standing::Expired { .. } => "expired",
    }
}

/// Returns the seconds of lease that are left, negative once the lease has expired, and whether the lease is
/// judged by observation.
pub fn left(standing: &Standing, now: i64) -> Option<(i64, bool)> {
    match standing {
        Standing::Leased { until, malformed, .. } => Some((until.saturating_sub(now), *malformed)),
        Standing::Expired { since, malformed } => Some((since.saturating_sub(now), *malformed)),
        Standing::NoState
        | Standing::InvalidState(..)
        | Standing::Waits
        | Standing::Ready
        | Standing::NotTrusted
        | Standing::LeftOut
        | Standing::Unusable(..)
        | Standing::HopLimit { .. }
        | Standing::Held(_) => None,
    }
}

/// How far a command says that it has got.
#[derive(Serialize)]
struct ProgressLine<'a> {
    text: &'a str,
    ratio: Option<f64>,
}

/// A branch's status as programs read it.
#[derive(Serialize)]
pub struct StatusLine<'a> {
    schema: &'static str,
    branch: Cow<'a, str>,
    commit: Shown<ObjectId>,
    committed: Option<i64>,
    subject: Cow<'a, str>,
    state: Option<Cow<'a, str>>,
    standing: &'static str,
    why: Option<String>,
    command: Option<&'a str>,
    origin_state: Option<&'a str>,
    run_id: Option<&'a str>,
    runner_id: Option<&'a str>,
    trigger: Option<Shown<ObjectId>>,
    seconds_left: Option<i64>,
    began: Option<i64>,
    malformed: bool,
    attempt: Option<Cow<'a, str>>,
    hop: Option<u32>,
    dialect: Option<&'static str>,
    max_hops: u32,
    trusted: bool,
    pending_seconds: Option<i64>,
    busy: Option<Shown<Busy>>,
    progress: Option<ProgressLine<'a>>,
    last_line: Option<&'a str>,
    group: &'static str,
    questions: Vec<AskedLine<'a>>,
    paused: Vec<HoldingLine<'a>>,
}

impl<'a> StatusLine<'a> {
    /// Makes the line of a branch that is gone, as the branch was last.
    pub fn gone(
        status: &'a BranchStatus,
        around: (&'a Asking, &'a Pauses),
        settings: &Settings,
        now: i64,
    ) -> Self {
        Self { standing: "gone", ..Self::of(status, around, settings, now) }
    }

    /// Makes the line of a branch, with what it asks and what holds it.
    pub fn of(
        status: &'a BranchStatus,
        (asking, pauses): (&'a Asking, &'a Pauses),
        settings: &Settings,
        now: i64,
    ) -> Self {
        let event = status.tip.event.as_ref();
        let text = |key| event.and_then(|e| e.text(key));
        let state = event.map(|e| match &e.state {
            Ok(state) => state.as_str().into(),
            Err((raw, _)) => String::from_utf8_lossy(raw),
        });
        let why = match &status.standing {
            Standing::InvalidState(_, why) => Some(why.to_string()),
            Standing::Unusable(_, why) => Some(why.to_string()),
            Standing::Waits => stalled_why(status),
            Standing::Held(by) => Some(by.to_string()),
            Standing::NoState
            | Standing::Ready
            | Standing::NotTrusted
            | Standing::LeftOut
            | Standing::HopLimit { .. }
            | Standing::Leased { .. }
            | Standing::Expired { .. } => None,
        };
        let lease = left(&status.standing, now);
        let subject = match event {
            Some(event) => String::from_utf8_lossy(&event.message.subject),
            None => {
                let subject = Message::parse(&status.tip.commit.message).subject;
                String::from_utf8_lossy(&subject).into_owned().into()
            }
        };
        Self {
            schema: STATUS_SCHEMA,
            branch: short(&status.branch),
            commit: Shown(status.tip.id()),
            committed: status.tip.commit.committed,
            subject,
            state,
            standing: standing_name(&status.standing),
            why,
            command: status.command.as_deref(),
            origin_state: text(ORIGIN_STATE),
            run_id: run_of(status),
            runner_id: text(RUNNER_ID),
            trigger: event.and_then(Event::trigger).map(Shown),
            seconds_left: lease.map(|(left, _)| left),
            began: status.began,
            malformed: lease.is_some_and(|(_, malformed)| malformed),
            attempt: status.attempt.as_ref().map(full),
            hop: event.map(Event::hop),
            dialect: event.map(|e| e.dialect.name()),
            max_hops: settings.max_hops,
            trusted: settings.commands_from != CommandsFrom::Nowhere,
            pending_seconds: waits(status),
            busy: status.busy.as_ref().map(|(busy, _)| Shown(*busy)),
            progress: status.progress.as_ref().map(|p| ProgressLine { text: &p.text, ratio: p.ratio }),
            last_line: status.last_line.as_deref(),
            group: Group::of(status).name(),
            questions: asking.lines(&status.branch),
            paused: pauses.lines(&status.branch),
        }
    }
}

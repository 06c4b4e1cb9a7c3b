//! Notices: the program that the account names is told what a person should know: schema `aynig.notice/1`.
//!
//! [`after`] looks at what a run came to, and [`make_up`] at what is still owed because its runner was killed
//! before it gave notice. The program is started by a process in the background ([`deliver`]), so that
//! nothing waits for the program, whatever it does. That process is handed the note that the notice is owed,
//! and settles it once the program has ended: if any of these processes is killed before, or all of them, the
//! note is left to the next verb. Implements K53.

use super::background;
use super::config::Flags;
use super::session::Session;
use super::shown::{Shown, short};
use super::status::stalled_why;
use crate::protocol::decide::Held;
use crate::protocol::event::{Event, ORIGIN_STATE, RUN_ID, STALLED_RUN};
use crate::protocol::flow::rests;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::QUESTION;
use crate::protocol::name::{ENDS, STALLED, WORKING};
use crate::protocol::text::{escape, with_causes};
use crate::runner::notice::{Due, Owed, left, settle};
use crate::runner::report::{Outcome, Report, Verdict};
use crate::runner::settings::{CommandsFrom, Settings};
use crate::runner::survey::{BranchStatus, Standing, Survey};
use crate::runner::talk::ask::Asked;
use crate::runner::{Runner, RunnerError};
use crate::supervisor::bounded::{Bounded, Input, Output, Verdict as Ended};
use crate::supervisor::interrupt::Interrupt;
use serde::Serialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

pub const NOTICE_SCHEMA: &str = "aynig.notice/1";
/// How long the program may take, and how much of that time it has left after it was asked to end.
const PATIENCE: Duration = Duration::from_secs(10);
const TERM_GRACE: Duration = Duration::from_millis(500);
/// Most characters of a commit's text that are passed on.
const TEXT_MAX: usize = 4000;
/// Most bytes of a notice that are read.
pub const NOTICE_MAX: u64 = 64 << 10;

/// What a person should know of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// No command answers its state, and the state is no end.
    Waiting,
    /// The branch asks something.
    Question,
    /// A run failed, and no command answers that.
    Stalled,
    /// The branch is not dispatched any more: too many dispatches led to its head.
    HopLimit,
    /// The branch is not dispatched: a budget is used up.
    Budget,
}

/// The JSON object that the program reads.
#[derive(Serialize)]
struct Notice<'a> {
    schema: &'static str,
    kind: Kind,
    repository: Cow<'a, str>,
    branch: Cow<'a, str>,
    remote: Option<&'a str>,
    commit: Shown<ObjectId>,
    state: &'a str,
    why: Option<String>,
    subject: String,
    body: String,
    question: Option<&'a str>,
    run_id: Option<&'a str>,
    origin_state: Option<&'a str>,
}

/// Gives notice of what this evaluation's runs came to. A notice that fails is no failure of theirs.
pub fn after(session: &Session, settings: &Settings, report: &Report) {
    if report.owed.is_empty() {
        return;
    }
    let settings = settings.on_remote(report.remote.as_deref());
    for owed in &report.owed {
        let commit = match &owed.due {
            Due::Run(run_id) => ended_with(report, run_id),
            Due::Commit(commit) => report.unlanded().filter(|unlanded| unlanded == commit),
        };
        if let Some(commit) = commit {
            let told = with_survey(session, &settings, |survey, _| {
                Ok(tell(session, owed, &survey.of_commit(&owed.branch, commit)?))
            });
            // A notice that could not be prepared or handed over is left to the next verb.
            if told.is_ok_and(Told::is_settled) {
                owed.settle();
            }
        } else if !report.kept_lease() && !matches!(report.verdict, Verdict::Failed(_)) {
            owed.settle();
        }
    }
}

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// There is nothing that a person should know.
    Nothing,
    /// The background process that gives the notice has it, and settles it.
    HandedOver,
    /// It could not be handed over.
    Not,
}

impl Told {
    /// True where nothing is owed any more.
    fn is_settled(self) -> bool {
        self == Told::Nothing
    }
}

/// Returns the commit that ended a run; `None` where none did.
fn ended_with(report: &Report, run_id: &str) -> Option<ObjectId> {
    if let Some(recovered) = report.recovered.iter().find(|recovered| recovered.run_id == run_id) {
        return Some(recovered.commit);
    }
    let Verdict::Ran(ran) = &report.verdict else { return None };
    match &ran.outcome {
        Outcome::Advanced { commit, .. } | Outcome::Own { commit, .. } | Outcome::Stalled { commit, .. }
            if ran.run_id == run_id =>
        {
            Some(*commit)
        }
        Outcome::Advanced { .. }
        | Outcome::Own { .. }
        | Outcome::Stalled { .. }
        | Outcome::KeptLease { .. }
        | Outcome::LeaseLeft { .. }
        | Outcome::Fenced { .. } => None,
    }
}

/// Gives the notices that killed processes still owed. If the branch has gone on since, the notice asks
/// nothing of a person any more, and is only settled.
pub fn make_up(session: &Session) {
    if session.config.all("notify").is_empty() || !session.repo.aynig_dir().join("notices").is_dir() {
        return;
    }
    let Ok(settings) = session.settings(&Flags::here()) else { return };
    if settings.commands_from == CommandsFrom::Nowhere {
        return;
    }
    let status = |owed: &Owed| {
        let settings = settings.on_remote(owed.remote.as_deref());
        with_survey(session, &settings, |survey, _| survey.one(&owed.branch)).ok().flatten()
    };
    let of_run =
        |event: &Event, run: &str| event.text(RUN_ID).or_else(|| event.text(STALLED_RUN)) == Some(run);
    let is_due = |owed: &Owed, status: &BranchStatus| match &owed.due {
        Due::Run(run_id) => status.tip.event.as_ref().is_some_and(|event| of_run(event, run_id)),
        Due::Commit(commit) => status.tip.id() == *commit,
    };
    let may_still_end = |owed: &Owed| {
        let status = status(owed).filter(|status| is_due(owed, status));
        status.is_some_and(|status| status.tip.event.is_some_and(|event| event.is_working()))
    };
    for owed in left(&session.repo, &may_still_end) {
        let told = status(&owed).filter(|status| is_due(&owed, status));
        if told.map_or(Told::Nothing, |status| tell(session, &owed, &status)).is_settled() {
            owed.settle();
        }
    }
}

fn with_survey<T>(
    session: &Session,
    settings: &Settings,
    look: impl FnOnce(&Survey<'_>, &Runner<'_>) -> Result<T, RunnerError>,
) -> Result<T, RunnerError> {
    let interrupt = Interrupt::never().map_err(RunnerError::Supervisor)?;
    let runner = session.reader(settings, &interrupt)?;
    look(&Survey::new(&runner)?, &runner)
}

/// Has the program told what a person should know of this branch, if there is anything.
fn tell(session: &Session, owed: &Owed, status: &BranchStatus) -> Told {
    let (branch, remote) = owed.at();
    let Some(event) = &status.tip.event else { return Told::Nothing };
    let Some(state) = event.state_name().map(|state| state.as_str()) else { return Told::Nothing };
    let question = event.message.last(QUESTION).and_then(|id| std::str::from_utf8(id).ok());
    let kind = kind_of(&status.standing, state, question.is_some()).filter(|_| !rests(event));
    let Some(kind) = kind else { return Told::Nothing };
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).chars().take(TEXT_MAX).collect();
    let notice = Notice {
        schema: NOTICE_SCHEMA,
        kind,
        repository: repository(session),
        branch: short(branch),
        remote,
        commit: Shown(status.tip.id()),
        state,
        why: stalled_why(status),
        subject: text(&event.message.subject),
        body: text(&event.message.body),
        question,
        run_id: owed.run_id(),
        origin_state: event.text(ORIGIN_STATE),
    };
    give(session, &notice, Some(owed))
}

/// Gives notice of a question at which a running command waits: no commit of the command's branch says so.
pub fn asked(session: &Session, settings: &Settings, asked: &Asked, run_id: &str) {
    if settings.notify.is_empty() {
        return;
    }
    let (text, id) = (String::from_utf8_lossy(asked.question.text.as_ref()), asked.question.id.to_string());
    let branch = asked.branch();
    let notice = Notice {
        schema: NOTICE_SCHEMA,
        kind: Kind::Question,
        repository: repository(session),
        branch: short(&branch),
        remote: settings.remote.as_deref(),
        commit: Shown(asked.commit),
        state: WORKING,
        why: None,
        subject: text.lines().next().unwrap_or_default().chars().take(TEXT_MAX).collect(),
        body: text.chars().take(TEXT_MAX).collect(),
        question: Some(&id),
        run_id: Some(run_id),
        origin_state: None,
    };
    // No note is kept: a command that is killed together with the process that gives the notice asks nothing
    // any more.
    give(session, &notice, None);
}

fn repository(session: &Session) -> Cow<'_, str> {
    session.repo.main_dir.as_ref().unwrap_or(&session.repo.common_dir).to_string_lossy()
}

/// Hands a notice to a background process that gives it, together with the note that it is owed. A notice
/// that can't be given fails no run and no verb. Where the background process's log can't be opened, there is
/// also no log that could say so.
fn give(session: &Session, notice: &Notice<'_>, owed: Option<&Owed>) -> Told {
    let line = serde_json::to_vec(notice).unwrap_or_default();
    let (mut args, mut held) = (vec!["notify".into(), "--detached".into()], None);
    if let Some(owed) = owed {
        let Ok((name, file)) = owed.hand_over() else { return Told::Not };
        args.extend(["--owed".into(), name.into()]);
        held = Some(file);
    }
    match background::detach_holding(session, &args, background::Input::Bytes(&line), held) {
        Ok(()) => Told::HandedOver,
        Err(_) => Told::Not,
    }
}

/// Returns what a person should know of a branch with this standing; `None` for nothing.
fn kind_of(standing: &Standing, state: &str, asks: bool) -> Option<Kind> {
    match standing {
        Standing::Waits if state == STALLED => Some(Kind::Stalled),
        Standing::Waits if asks => Some(Kind::Question),
        Standing::Waits if ENDS.contains(&state) => None,
        Standing::Waits | Standing::Unusable(..) => Some(Kind::Waiting),
        Standing::HopLimit { .. } => Some(Kind::HopLimit),
        Standing::Held(Held::Budget(_)) => Some(Kind::Budget),
        Standing::Held(Held::Paused(_) | Held::NotBefore(_) | Held::After(_)) => None,
        Standing::NoState
        | Standing::InvalidState(..)
        | Standing::Ready
        | Standing::NotTrusted
        | Standing::LeftOut
        | Standing::Leased { .. }
        | Standing::Expired { .. } => None,
    }
}

/// Why a notice was not given.
#[derive(Debug)]
pub enum NotGiven {
    /// The program failed, or could not be started; it is not tried again.
    Failed(String),
    /// The program was killed: the next verb gives the notice once more.
    Killed(String),
}

/// Runs the program with a notice on its standard input: for 10 seconds at most, in a process group of its
/// own, its standard output discarded. This is called in the background; an error is one line of text. The
/// note of the name `owed` is settled then, unless the program was killed. A notice that was cut off is
/// neither given nor settled: the process that wrote it was killed, and the next verb gives it.
pub fn deliver(session: &Session, notice: Vec<u8>, owed: Option<&str>) -> Result<(), String> {
    if serde_json::from_slice::<IgnoredAny>(&notice).is_err() {
        return Ok(());
    }
    let given = give_now(session, notice);
    if let Some(name) = owed.filter(|_| !matches!(given, Err(NotGiven::Killed(_)))) {
        settle(&session.repo, name);
    }
    given.map_err(|(NotGiven::Failed(why) | NotGiven::Killed(why))| why)
}

fn give_now(session: &Session, notice: Vec<u8>) -> Result<(), NotGiven> {
    let settings = session.settings(&Flags::here()).map_err(|error| NotGiven::Failed(with_causes(&error)))?;
    let Some((program, args)) = settings.notify.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    // Not a working tree, so that no relative path finds what a branch has there.
    command.args(args).current_dir(&session.repo.common_dir);
    let bounded = Bounded {
        input: Input::Bytes([notice, b"\n".to_vec()].concat()),
        stdout: Output::Null,
        stderr: Output::Capture(4096),
        deadline: Some(Instant::now() + PATIENCE - TERM_GRACE),
        term_grace: TERM_GRACE,
        own_group: true,
        ..Bounded::new(command)
    };
    let said = |why: String| format!("aynig.notify: '{}' {why}", escape(program.as_bytes()));
    let failed = |why: String| Err(NotGiven::Failed(said(why)));
    let ended =
        bounded.run().map_err(|error| NotGiven::Failed(format!("aynig.notify: {}", with_causes(&error))))?;
    match ended.verdict {
        Ended::Ended if ended.status.success() => Ok(()),
        Ended::Ended if ended.status.signal().is_some() => {
            Err(NotGiven::Killed(said(format!("was killed ({})", ended.status))))
        }
        Ended::Ended => {
            let last = ended.stderr.bytes.trim_ascii_end().rsplit(|b| *b == b'\n').next().unwrap_or_default();
            let said = if last.is_empty() { String::new() } else { format!(": {}", escape(last)) };
            failed(format!("failed ({}){said}", ended.status))
        }
        Ended::Deadline { .. } | Ended::Interrupted { .. } => failed("took longer than 10 s".to_owned()),
    }
}

//! What Git's hooks call: it looks at what landed, starts its chain, and returns.
//!
//! What is worth a line goes to the caller as a [`Notice`]; a hook that has nothing to report says nothing.
//! Implements K34 (hooks), K38, K39.

use super::background::{self, Cause};
use super::chain;
use super::config::{Flags, HookMode};
use super::session::Session;
use super::{AppError, Audience};
use crate::protocol::accepts::Accepts;
use crate::protocol::inbox::{Kind, parse_inbox_ref};
use crate::protocol::name::BadName;
use crate::protocol::resemble::{Missed, missed_state};
use crate::runner::report::{Note, Refusal};
use crate::runner::resolve::Resolved;
use crate::runner::settings::{CommandsFrom, Settings};
use crate::runner::survey::{Standing, Survey};
use crate::runner::{Runner, Tip};
use crate::store::command_start::Unfit;
use crate::store::protected::Unsure;
use crate::store::slots::is_slot;
use crate::store::{RefName, glance};
use crate::supervisor::interrupt::Interrupt;
use std::io::{BufRead, Read};
use std::path::PathBuf;

/// What a hook says.
#[derive(Debug)]
pub enum Notice {
    /// A commit is no state event, but says something that is nearly one. The branch is named for a push.
    Missed(Option<RefName>, Missed),
    /// No command answers this state, but commands answer these states, which are nearly the same. The branch
    /// is named for a push.
    Alike(Option<RefName>, String, Vec<String>),
    /// Nothing says which commands may run. The path is a folder of the repository.
    NotTrusted(PathBuf),
    /// Nothing may run, since whether this key holds here is for others to say. The path is a folder of the
    /// repository.
    Unsure(Unsure, PathBuf),
    /// The branch's chain has become too long. The number is the limit.
    HopLimit(RefName, u32),
    /// The branch's command, at this path below `.aynig/`, can't be started.
    Unusable(RefName, String, Unfit),
    /// `aynig.branches` leaves this branch out.
    LeftOut(RefName),
    /// The branch's state can't name a command.
    InvalidState(RefName, Vec<u8>, BadName),
    /// The ref that commands come from does not exist. The path is a folder of the repository.
    Absent(RefName, PathBuf),
    /// The branch's head is not signed as the policy requires.
    NotVouched(RefName, Refusal),
    /// A branch's chain begins, with this run.
    Dispatched {
        branch: RefName,
        /// The branch's state.
        state: String,
        /// The id that the branch's next run will have.
        run_id: String,
        /// True where no slot is free, so that the branch waits for one.
        queued: bool,
    },
}

/// The most branches of a push whose signatures are verified before the pusher gets an answer, because each
/// verification takes a process or two. The branches beyond wait for a slot anyway, and a tick refuses those
/// that are not signed.
const VERIFIED_MAX: usize = 64;

/// Hears what a hook says.
pub trait Hearer {
    /// The type of the audience of a chain.
    type Audience: Audience;
    /// Takes several notices, to be shown in one piece.
    fn hear(&self, notices: Vec<Notice>);
    /// Makes the audience of a chain that the user watches.
    fn audience(&self, session: &Session) -> Self::Audience;
}

/// Looks at what is new on the branch that is checked out in this working tree; `rebased` after a rebase.
pub fn here(
    open: impl FnOnce() -> Result<Session, AppError>,
    rebased: bool,
    hearer: &impl Hearer,
) -> Result<(), AppError> {
    let git_dir = std::env::var_os("GIT_DIR").map_or_else(|| ".git".into(), PathBuf::from);
    if let Some(tip) = glance::newest_commit(&git_dir).map(Tip::from)
        && tip.event.is_none()
    {
        hearer.hear(missed(None, &tip).into_iter().collect());
        return Ok(());
    }
    let mut session = open()?;
    let git_dir = &session.repo.git_dir;
    if is_slot(git_dir) || (!rebased && chain::is_rebasing(git_dir)) {
        return Ok(());
    }
    let Some(branch) = session.current_branch()? else { return Ok(()) };
    let store = session.repo.open_store(false)?;
    let Some(id) = store.tip(&branch)? else { return Ok(()) };
    let tip = Tip::from(store.read_commit(id)?);
    let Some(event) = &tip.event else {
        hearer.hear(missed(None, &tip).into_iter().collect());
        return Ok(());
    };
    let mode = session.config.hooks()?;
    if mode == HookMode::Off || background::left_to_the_runner(&session, &branch) {
        return Ok(());
    }
    let settings = session.settings(&Flags::here())?;
    if settings.commands_from == CommandsFrom::Nowhere {
        hearer.hear(vec![not_trusted(&session)]);
        return Ok(());
    }
    if let Some(state) = event.state_name() {
        let interrupt = Interrupt::never()?;
        let runner = session.reader(&settings, &interrupt)?;
        if matches!(runner.resolve(&tip), Ok(Resolved::Missing))
            && let Some(Note::NearlyAState(state, meant)) = runner.command_elsewhere(&tip, state)?
        {
            hearer.hear(alike(None, state.to_string(), meant).into_iter().collect());
        }
    }
    match mode {
        HookMode::Off => Ok(()),
        HookMode::Wait if !rebased => stream(&mut session, vec![branch], &[], hearer),
        HookMode::Wait | HookMode::Detach => {
            let cause = if rebased { Cause::Rebase } else { Cause::Here };
            background::start(&session, &[branch], cause)
        }
    }
}

/// Runs the chains of these branches while the user watches.
fn stream(
    session: &mut Session,
    branches: Vec<RefName>,
    run_ids: &[String],
    hearer: &impl Hearer,
) -> Result<(), AppError> {
    let audience = hearer.audience(session);
    chain::stream(session, branches, run_ids, &audience).map(drop)
}

fn missed(branch: Option<&RefName>, tip: &Tip) -> Option<Notice> {
    missed_state(&tip.commit.message).map(|missed| Notice::Missed(branch.cloned(), missed))
}

fn alike(branch: Option<&RefName>, state: String, meant: Vec<String>) -> Option<Notice> {
    (!meant.is_empty()).then(|| Notice::Alike(branch.cloned(), state, meant))
}

/// Returns the notice why nothing runs. Where a key that is unsure takes trust away, giving trust would change
/// nothing.
fn not_trusted(session: &Session) -> Notice {
    let place = session.place().to_owned();
    match session.config.unsure.first() {
        Some(unsure) => Notice::Unsure(unsure.clone(), place),
        None => Notice::NotTrusted(place),
    }
}

/// A push, as Git reports it to a hook.
pub struct Push {
    /// The branches that were made or moved.
    pub branches: Vec<RefName>,
    /// The messages that came, with the branches that they are for, which count as pushed too (K39).
    pub messages: Vec<(RefName, Kind)>,
    /// True where the push came with the option that nothing is to be started.
    pub skip: bool,
    /// True where the push came with the option that the user waits.
    pub wait: bool,
}

impl Push {
    /// Reads what Git tells a `post-receive` hook: one update per line on its input, and push options in the
    /// environment.
    pub fn read(updates: impl Read) -> Self {
        let (branches, messages) = updated(updates);
        Self { branches, messages, skip: is_option("aynig.skip"), wait: is_option("aynig.wait") }
    }
}

/// Starts the chains of branches that were pushed to this repository.
pub fn pushed(
    mut session: Session,
    read: impl FnOnce() -> Push,
    hearer: &impl Hearer,
) -> Result<(), AppError> {
    let push = read();
    let mode = session.config.hooks()?;
    if mode == HookMode::Off || push.branches.is_empty() && push.messages.is_empty() || push.skip {
        return Ok(());
    }
    let settings = session.settings(&Flags::here())?;
    session.short_environment = session.repo.bare;
    let ready = judge(&session, &settings, &push, hearer)?;
    if ready.is_empty() {
        return Ok(());
    }
    if settings.commands_from == CommandsFrom::Nowhere {
        hearer.hear(vec![not_trusted(&session)]);
        return Ok(());
    }
    if ready.iter().filter(|(branch, _)| background::left_to_the_runner(&session, branch)).count() > 0 {
        return Ok(());
    }
    let interrupt = Interrupt::never()?;
    let reader = session.reader(&settings, &interrupt)?;
    // No run could begin, and the pusher is not told that one does.
    reader.has_room_for_refs()?;
    let ids: Vec<String> = ready.iter().map(|_| uuid::Uuid::new_v4().to_string()).collect();
    // As many runs begin at once as slots are free. The other branches wait for one, noted or in the chain's
    // own hand.
    let free = reader.free_slots(settings.chain_jobs)?;
    drop(reader);
    let (mut told, mut branches) = (Vec::new(), Vec::new());
    for (at, ((branch, state), id)) in ready.into_iter().zip(&ids).enumerate() {
        branches.push(branch.clone());
        told.push(Notice::Dispatched { branch, state, run_id: id.clone(), queued: at >= free });
    }
    if mode == HookMode::Wait || push.wait {
        hearer.hear(told);
        return stream(&mut session, branches, &ids, hearer);
    }
    background::start_promised(&session, &branches, &ids, Cause::in_repository(&session.repo))?;
    // Reported only now, so that nothing is reported that did not begin.
    hearer.hear(told);
    Ok(())
}

/// Returns the branches of a push that were made or moved, and the messages that it brought; deletions are
/// left out.
fn updated(input: impl Read) -> (Vec<RefName>, Vec<(RefName, Kind)>) {
    let (mut branches, mut messages) = (Vec::new(), Vec::new());
    for line in std::io::BufReader::new(input).split(b'\n').map_while(Result::ok) {
        let mut fields = line.splitn(3, |b| *b == b' ');
        let (Some(_), Some(new), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if new.iter().all(|b| *b == b'0') {
            continue;
        }
        if name.starts_with(b"refs/heads/") {
            branches.push(RefName::new(name));
        } else if let Some(at) = parse_inbox_ref(name) {
            messages.push((RefName::branch(at.branch), at.kind));
        }
    }
    (branches, messages)
}

/// Returns the branches that a tick would run, or would run if the repository were trusted, with their
/// states. Of the others, reports what is worth a line.
fn judge(
    session: &Session,
    settings: &Settings,
    push: &Push,
    hearer: &impl Hearer,
) -> Result<Vec<(RefName, String)>, AppError> {
    let interrupt = Interrupt::never()?;
    let runner = session.reader(settings, &interrupt)?;
    let survey = Survey::new(&runner)?;
    let (mut ready, mut notices, mut waits, mut looked) = (Vec::new(), Vec::new(), false, 0);
    for status in survey.these(&push.branches)? {
        let state = || {
            let state = status.tip.event.as_ref().and_then(|e| e.state_name());
            state.map(|s| s.to_string()).unwrap_or_default()
        };
        let branch = status.branch;
        match status.standing {
            Standing::Ready if looked < VERIFIED_MAX => {
                looked += 1;
                let state = state();
                match runner.not_vouched(&branch, &status.tip)? {
                    Some(refusal) => notices.push(Notice::NotVouched(branch, refusal)),
                    None => ready.push((branch, state)),
                }
            }
            Standing::Ready | Standing::NotTrusted | Standing::Expired { .. } => {
                let state = state();
                ready.push((branch, state));
            }
            Standing::HopLimit { max, .. } => notices.push(Notice::HopLimit(branch, max)),
            Standing::Unusable(path, why) => notices.push(Notice::Unusable(branch, path, why)),
            Standing::LeftOut => notices.push(Notice::LeftOut(branch)),
            Standing::InvalidState(state, why) => notices.push(Notice::InvalidState(branch, state, why)),
            Standing::Waits => {
                waits = true;
                notices.extend(alike(Some(&branch), state(), status.alike));
            }
            Standing::NoState => notices.extend(missed(Some(&branch), &status.tip)),
            // Such a branch goes on by itself, or once what holds it is dealt with.
            Standing::Held(_) | Standing::Leased { .. } => {}
        }
    }
    ready.extend(receptive(&runner, &push.messages, &ready)?);
    if let Some(name) = survey.absent().filter(|_| waits) {
        notices.push(Notice::Absent(name.clone(), session.place().to_owned()));
    }
    hearer.hear(notices);
    Ok(ready)
}

/// Returns the branches that take in the messages that were pushed for them, with the states that the
/// messages bring. Branches that are evaluated anyway are left out.
fn receptive(
    runner: &Runner<'_>,
    messages: &[(RefName, Kind)],
    ready: &[(RefName, String)],
) -> Result<Vec<(RefName, String)>, AppError> {
    let mut found: Vec<(RefName, String)> = Vec::new();
    for (branch, kind) in messages {
        if ready.iter().chain(&found).any(|(known, _)| known == branch) || !runner.may_tick(branch) {
            continue;
        }
        let event = runner.read_tip(branch)?.and_then(|tip| tip.event).filter(|event| !event.is_working());
        let state = event.and_then(|event| Accepts::of(&event).state(kind).map(ToString::to_string));
        found.extend(state.map(|state| (branch.clone(), state)));
    }
    Ok(found)
}

/// True where the push came with this option.
fn is_option(name: &str) -> bool {
    let count =
        std::env::var("GIT_PUSH_OPTION_COUNT").ok().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
    (0..count.min(1000)).any(|n| {
        let value = std::env::var(format!("GIT_PUSH_OPTION_{n}")).unwrap_or_default();
        value == name || value.strip_prefix(name).is_some_and(|rest| rest == "=true")
    })
}

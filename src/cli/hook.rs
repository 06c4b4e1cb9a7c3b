//! What Git's hooks call: look at what landed, start its chain, return.
//!
//! Never changes the exit status of what it was called by, and says nothing where there is nothing to say.
//! Implements K34 (hooks), K38, K39.

use super::chain::Onlooker;
use super::fail::Failure;
use super::inner::Hook;
use super::session::{Global, Session};
use super::{hints, output, reader, render};
use crate::app::background::{self, Cause};
use crate::app::chain;
use crate::app::config::{Flags, HookMode};
use crate::protocol::resemble::missed_state;
use crate::protocol::text::escape;
use crate::runner::resolve::Resolved;
use crate::runner::settings::{CommandsFrom, Settings};
use crate::runner::survey::{Standing, Survey};
use crate::runner::{Tip, logs};
use crate::store::hooks::HookEvent;
use crate::store::slots::is_slot;
use crate::store::{RefName, glance};
use crate::supervisor::interrupt::Interrupt;
use std::io::{BufRead, Read};

/// `git aynig hook <event>`. Always 0: the commit, the merge or the push is done already.
pub fn run(global: &Global, args: &Hook) -> i32 {
    if std::env::var_os("AYNIG").is_some_and(|v| v == "0") {
        return 0;
    }
    let done = match HookEvent::named(&args.event) {
        Some(HookEvent::PostCommit | HookEvent::PostMerge) => here(global, false),
        // An amended commit had its own post-commit.
        Some(HookEvent::PostRewrite) => match args.args.first().map(|a| a.as_os_str()) {
            Some(what) if what == "rebase" => here(global, true),
            Some(_) | None => Ok(()),
        },
        Some(HookEvent::PostReceive) => pushed(global),
        None => Err(Failure::usage(format!("no such hook: '{}'", escape(args.event.as_bytes())))),
    };
    if let Err(failure) = done {
        for line in failure.render().lines() {
            output::note(&format!("aynig: {line}"));
        }
    }
    0
}

/// Something new on the branch that is checked out here.
fn here(global: &Global, rebased: bool) -> Result<(), Failure> {
    let git_dir = std::env::var_os("GIT_DIR").map_or_else(|| ".git".into(), std::path::PathBuf::from);
    if let Some(tip) = glance::newest_commit(&git_dir).map(Tip::from)
        && tip.event.is_none()
    {
        say_missed(&tip, "");
        return Ok(());
    }
    let mut session = global.open()?;
    let git_dir = &session.repo.git_dir;
    if is_slot(git_dir) || (!rebased && chain::is_rebasing(git_dir)) {
        return Ok(());
    }
    let Some(branch) = session.current_branch()? else { return Ok(()) };
    let store = session.repo.open_store(false)?;
    let Some(id) = store.tip(&branch)? else { return Ok(()) };
    let tip = Tip::from(store.read_commit(id)?);
    let Some(event) = &tip.event else {
        say_missed(&tip, "");
        return Ok(());
    };
    let mode = session.config.hooks()?;
    if mode == HookMode::Off || background::left_to_the_runner(&session, &branch) {
        return Ok(());
    }
    let settings = session.settings(&Flags::here())?;
    if settings.commands_from == CommandsFrom::Nowhere {
        return one_line(&session);
    }
    if let Some(state) = event.state_name() {
        let interrupt = Interrupt::never()?;
        let runner = session.reader(&settings, &interrupt)?;
        if matches!(runner.lookup(&tip, state), Ok(Resolved::Missing)) {
            say_alike(state.as_str(), &runner.alike(state, tip.commit.tree)?, "");
        }
    }
    match mode {
        HookMode::Off => Ok(()),
        HookMode::Wait if !rebased => stream(&mut session, vec![branch], &[]),
        HookMode::Wait | HookMode::Detach => {
            let cause = if rebased { Cause::Rebase } else { Cause::Here };
            Ok(background::start(&session, &[branch], cause)?)
        }
    }
}

/// Runs the chains of these branches before the user's eyes.
fn stream(session: &mut Session, branches: Vec<RefName>, run_ids: &[String]) -> Result<(), Failure> {
    let onlooker = Onlooker::watching(logs::open_hook_log(&session.repo).ok());
    chain::stream(session, branches, run_ids, &onlooker)?;
    Ok(())
}

/// What of a commit that is no state event may have been meant as one.
fn say_missed(tip: &Tip, whose: &str) {
    if let Some(missed) = missed_state(&tip.commit.message) {
        output::note(&format!("aynig: {whose}{}", render::missed_state(&missed)));
    }
}

fn say_alike(state: &str, meant: &[String], whose: &str) {
    if !meant.is_empty() {
        output::note(&format!("aynig: {whose}no command answers '{state}': {}", render::did_you_mean(meant)));
    }
}

fn one_line(session: &Session) -> Result<(), Failure> {
    let on = if reader::is_away() { "; on the server" } else { "" };
    output::note(&format!(
        "aynig: not trusted, nothing runs{on}: git -C {} aynig trust",
        hints::place(session.place())
    ));
    Ok(())
}

/// Branches that somebody pushed here, one update a line on standard input.
fn pushed(global: &Global) -> Result<(), Failure> {
    reader::is_pusher();
    let mut session = global.open()?;
    let branches = updated(std::io::stdin().lock());
    let mode = session.config.hooks()?;
    if mode == HookMode::Off || branches.is_empty() || is_option("aynig.skip") {
        return Ok(());
    }
    let settings = session.settings(&Flags::here())?;
    session.short_environment = session.repo.bare;
    let ready = judge(&session, &settings, &branches)?;
    if ready.is_empty() {
        return Ok(());
    }
    if settings.commands_from == CommandsFrom::Nowhere {
        return one_line(&session);
    }
    if ready.iter().filter(|(branch, _)| background::left_to_the_runner(&session, branch)).count() > 0 {
        return Ok(());
    }
    let ids: Vec<String> = ready.iter().map(|_| uuid::Uuid::new_v4().to_string()).collect();
    // As many as there are slots; the others wait for one, noted or in the chain's own hand.
    let interrupt = Interrupt::never()?;
    let free = session.reader(&settings, &interrupt)?.free_slots(settings.chain_jobs)?;
    let mut told = Vec::new();
    for (at, ((branch, state), id)) in ready.iter().zip(&ids).enumerate() {
        let (what, why) = if at < free { ("dispatched", "") } else { ("queued", ": no worktree is free") };
        told.push(format!("aynig: {state} {what} on {} (run {}){why}", escape(branch.short()), &id[..8]));
    }
    let ready: Vec<RefName> = ready.into_iter().map(|(branch, _)| branch).collect();
    if mode == HookMode::Wait || is_option("aynig.wait") {
        told.iter().for_each(|line| output::note(line));
        return stream(&mut session, ready, &ids);
    }
    background::start_promised(&session, &ready, &ids, Cause::in_repository(&session.repo))?;
    // Nobody is told of what did not begin.
    output::error(&told.into_iter().map(|line| line + "\n").collect::<String>());
    Ok(())
}

/// The branches of a push that were made or moved.
fn updated(input: impl Read) -> Vec<RefName> {
    let mut branches = Vec::new();
    for line in std::io::BufReader::new(input).split(b'\n').map_while(Result::ok) {
        let mut fields = line.splitn(3, |b| *b == b' ');
        let (Some(_), Some(new), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if name.starts_with(b"refs/heads/") && new.iter().any(|b| *b != b'0') {
            branches.push(RefName::new(name));
        }
    }
    branches
}

/// Those that a tick would run, or would if it were trusted, with their states; of the others, what is worth a
/// line is said.
fn judge(
    session: &Session,
    settings: &Settings,
    branches: &[RefName],
) -> Result<Vec<(RefName, String)>, Failure> {
    let interrupt = Interrupt::never()?;
    let runner = session.reader(settings, &interrupt)?;
    let survey = Survey::new(&runner)?;
    let (mut ready, mut waits) = (Vec::new(), false);
    for status in survey.these(branches)? {
        let branch = &status.branch;
        let shown = escape(branch.short());
        match status.standing {
            Standing::Ready | Standing::NotTrusted | Standing::Expired { .. } => {
                let state = status.tip.event.as_ref().and_then(|e| e.state_name());
                ready.push((branch.clone(), state.map(|s| s.to_string()).unwrap_or_default()));
            }
            Standing::HopLimit { max, .. } => {
                output::note(&format!("aynig: {shown}: not dispatched: its chain has reached {max} hops"));
            }
            Standing::Unusable(path, why) => {
                output::note(&format!("aynig: {shown}: not dispatched: .aynig/{path}: {why}"));
            }
            Standing::LeftOut => output::note(&format!("aynig: {shown}: left out by aynig.branches")),
            Standing::InvalidState(state, why) => {
                output::note(&format!("aynig: {shown}: state '{}' is not usable: {why}", escape(&state)));
            }
            Standing::Waits => {
                waits = true;
                let state = status.tip.event.as_ref().and_then(|e| e.state_name()).map_or("", |s| s.as_str());
                say_alike(state, &status.alike, &format!("{shown}: "));
            }
            Standing::NoState => say_missed(&status.tip, &format!("{shown}: ")),
            Standing::Leased { .. } => {}
        }
    }
    if let Some(name) = survey.absent().filter(|_| waits) {
        super::status::absent(session, name);
    }
    Ok(ready)
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

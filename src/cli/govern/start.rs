//! `govern start`: a run on a branch, with a command for each role.
//!
//! The commands go where commands are taken from. Where the branch's own are trusted, that is the branch;
//! where a ref is, they must be on it before a run is begun, and are written into the working tree to be
//! committed there. Nothing that exists is overwritten. Implements G7, G8.

use super::super::fail::Failure;
use super::super::output;
use super::super::session::Global;
use super::args::{Start, Where};
use super::place;
use crate::app::config::Flags;
use crate::app::govern::begin::{begin, begin_on_branch, commands};
use crate::app::govern::next::TURN;
use crate::governed::Root;
use crate::protocol::name::StateName;
use crate::protocol::text::{escape, shell_word};
use crate::runner::resolve::Resolved;
use crate::runner::settings::CommandsFrom;
use crate::runner::{Runner, Silent, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::path::Path;

/// `git aynig govern start`.
pub fn run(global: &Global, args: &Start) -> Result<i32, Failure> {
    if args.place.root.is_some() {
        return place::change_or_begin(global, &args.place, true, |root, config| {
            begin(root, config, args.role.as_deref(), false)
        });
    }
    prepare(global, &args.place).map_err(|failed| args.place.there(failed))?;
    let adopts = is_another_tools(global, &args.place)?;
    place::change_or_begin(global, &args.place, true, |root, config| {
        begin_on_branch(root, config, args.role.as_deref(), adopts)
    })
}

/// True for a branch whose head says no state: no command of ours could answer for the run that it holds.
fn is_another_tools(global: &Global, place: &Where) -> Result<bool, Failure> {
    let session = global.open()?;
    let settings = session.settings(&Flags { remote: place.remote.clone(), ..Flags::default() })?;
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    let branch = session.branch_or_current(place.branch.as_deref(), "govern start -b <branch>")?;
    Ok(runner.fresh_tip(&branch)?.is_some_and(|tip| tip.event.is_none()))
}

/// Makes sure that a command answers each role.
fn prepare(global: &Global, place: &Where) -> Result<(), Failure> {
    let session = global.open()?;
    let settings = session.settings(&Flags { remote: place.remote.clone(), ..Flags::default() })?;
    session.require_trust(&settings)?;
    let CommandsFrom::Ref(from) = &settings.commands_from else { return Ok(()) };
    let interrupt = Interrupt::never()?;
    let runner = session.runner(&settings, &interrupt, &Silent)?;
    let missing = unanswered(&runner, from)?;
    if missing.is_empty() {
        return Ok(());
    }
    let shown = escape(from.short());
    let states: Vec<String> = missing.iter().map(|role| format!("'{TURN}{role}'")).collect();
    let failed = Failure::refused(format!(
        "'{shown}', where commands are taken from, has none for {}",
        states.join(", ")
    ));
    let is_here = session.current_branch()?.as_ref() == Some(from);
    let Some(dir) = session.repo.work_dir.as_deref().filter(|_| is_here) else {
        return Err(failed.hint(format!("git switch {} && git aynig govern start", shell_word(from.short()))));
    };
    let roles = missing.iter().map(String::as_str);
    commands(&Root::new(dir), roles)?;
    if !place.json {
        output::line("Wrote .aynig/command/turn/ for them");
    }
    // Written down, but stopped: a refusal would have changed nothing.
    Err(Failure { code: 1, ..failed }
        .hint("git add .aynig && git commit -m 'govern: a command for each role' && git aynig govern start"))
}

/// The roles that no command on the trusted ref answers.
fn unanswered(runner: &Runner<'_>, from: &RefName) -> Result<Vec<String>, Failure> {
    let config = place::project(runner, from, Path::new("."))?.config;
    let id =
        runner.store.known_tip(from)?.ok_or_else(|| Failure::fatal(format!("'{from}' does not exist")))?;
    let tip: Tip = runner.store.read_commit(id)?.into();
    let mut missing = Vec::new();
    for role in config.roles() {
        let state = StateName::new(format!("{TURN}{role}"))
            .map_err(|why| Failure::fatal(format!("role '{role}' can't be a command's name: {why}")))?;
        match runner.lookup(&tip, &state)? {
            Resolved::Found(_) => {}
            Resolved::NotAsked | Resolved::Missing | Resolved::Unusable { .. } | Resolved::Refused(_) => {
                missing.push(role.to_owned());
            }
        }
    }
    Ok(missing)
}

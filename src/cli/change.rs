//! `set-state`, `set-working`, `cancel`, `retry`: the verbs that write one commit.

use super::args::{DialectArg, OneBranch, SetState, SetWorking};
use super::fail::Failure;
use super::output;
use super::session::{Global, Session};
use super::written;
use crate::app::config::Flags;
use crate::app::{background, mend};
use crate::protocol::declaration::{Declaration, LINE_PREFIX, Take, parse_trailer};
use crate::protocol::dialect::Dialect;
use crate::protocol::name::StateName;
use crate::protocol::text::{branch_word, escape, shell_word};
use crate::runner::Silent;
use crate::runner::change::{ChangeError, Inside, Written};
use crate::runner::report::Note;
use crate::store::remote::push_branch;
use crate::store::{RefName, Swap};
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsStr;
use std::io::Read;

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

/// What `set-state` was asked to write.
fn declaration(args: &SetState) -> Result<Declaration, Failure> {
    let shown = escape(args.state.as_bytes());
    let state = StateName::new(&args.state)
        .map_err(|why| Failure::usage(format!("state '{shown}' is not usable: {why}")))?;
    if state.is_working() {
        return Err(Failure::usage("state 'working' is reserved for leases").hint("git aynig set-working"));
    }
    let text = match &args.file {
        Some(path) if path.as_os_str() == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Failure::fatal(format!("cannot read the message from standard input: {e}")))?;
            text
        }
        Some(path) => std::fs::read_to_string(path)
            .map_err(|e| Failure::fatal(format!("cannot read '{}': {e}", path.display())))?,
        None => args.message.join("\n\n"),
    };
    let text = text.trim_start_matches('\n');
    let (subject, body) = text.split_once('\n').unwrap_or((text, ""));
    let subject = match subject.trim() {
        "" => format!("chore: set {state}"),
        subject => subject.to_owned(),
    };
    let trailers = args.trailer.iter().map(|t| parse_trailer(t)).collect::<Result<_, _>>().map_err(usage)?;
    let body = body.trim_matches('\n').to_owned();
    let (keep_trailers, take) = (args.keep_trailers, Take::default());
    let declaration = Declaration { state, subject, body, keep_trailers, trailers, take };
    declaration
        .message(Dialect::Dwp, &[])
        .render()
        .map_err(|why| Failure::usage(format!("cannot write the commit message: {why}")))?;
    Ok(declaration)
}

/// `git aynig set-state`.
pub fn set_state(global: &Global, args: &SetState) -> Result<i32, Failure> {
    let declaration = declaration(args)?;
    if args.emit {
        output::line(&format!("{LINE_PREFIX}{}", declaration.to_json()));
        return Ok(0);
    }
    let asked = args.dialect.map(|dialect| match dialect {
        DialectArg::Dwp => Dialect::Dwp,
        DialectArg::Aynig => Dialect::Aynig,
    });
    let write = |session: &Session, runner: &crate::runner::Runner<'_>, inside: Option<&Inside>| {
        let branch = session.branch_or_current(args.branch.as_deref(), "set-state <state> -b <branch>")?;
        let written = runner.set_state(&branch, &declaration, asked, inside);
        written.map_err(|e| failed(runner, e))
    };
    let then = |session: &Session, runner: &crate::runner::Runner<'_>, written: &Written| {
        if args.push && runner.settings.remote.is_none() {
            return push(session, runner, written);
        }
        Ok(())
    };
    let flags = Flags { remote: args.remote.clone(), ..Flags::default() };
    change_then(global, &flags, (args.json, !args.no_tick), write, then)
}

/// Brings what was written to the branch's remote. The event is on the local branch whatever comes of it.
fn push(session: &Session, runner: &crate::runner::Runner<'_>, written: &Written) -> Result<(), Failure> {
    let branch = &written.branch;
    let (shown, word) = (escape(branch.short()), branch_word(branch.short()));
    let remote = session.repo.git.push_remote(branch)?;
    let remote = remote.or_else(|| session.repo.has_remote("origin").then(|| "origin".to_owned()));
    let remote = remote.ok_or_else(|| {
        Failure::fatal(format!("'{shown}' is written here, but has no remote to push to"))
            .hint(format!("git push -u <remote> {word}"))
    })?;
    let (there, at) = (escape(remote.as_bytes()), shell_word(remote.as_bytes()));
    let pushed = push_branch(&session.repo, &remote, branch, written.commit, &runner.signature());
    let pushed = pushed.map_err(|error| {
        let failure = Failure::from(error);
        let message = format!("'{shown}' is written here, and not on '{there}': {}", failure.message);
        Failure { message, ..failure }.hint(format!("git push {at} {word}"))
    })?;
    match pushed {
        Swap::Won => Ok(()),
        Swap::Unknown { cause } => Err(Failure {
            code: 75,
            ..Failure::fatal(format!(
                "'{shown}' is written here; whether '{there}' has {} is not known: {}",
                written.commit.short(10),
                escape(cause.as_bytes())
            ))
        }
        .hint(format!("git ls-remote {at} {}", shell_word(branch.as_bytes())))
        .hint(format!("git push {at} {word}"))),
        Swap::Lost { .. } => Err(Failure {
            code: 3,
            ..Failure::fatal(format!("'{shown}' is written here, but '{there}' has other commits on it"))
        }
        .hint(format!("git pull --rebase {at} {word} && git push {at} {word}"))),
    }
}

/// `git aynig set-working`.
pub fn set_working(global: &Global, args: &SetWorking) -> Result<i32, Failure> {
    let flags = Flags { lease: args.lease.clone(), remote: args.remote.clone(), ..Flags::default() };
    change(global, &flags, (args.json, false), |session, runner, inside| {
        let branch = session.branch_or_current(args.branch.as_deref(), "set-working -b <branch>")?;
        runner.set_working(&branch, inside).map_err(|e| failed(runner, e))
    })
}

/// `git aynig cancel`.
pub fn cancel(global: &Global, args: &OneBranch) -> Result<i32, Failure> {
    one_branch(global, args, |runner, branch, _| runner.cancel(branch))
}

/// `git aynig retry`.
pub fn retry(global: &Global, args: &OneBranch) -> Result<i32, Failure> {
    one_branch(global, args, |runner, branch, inside| runner.retry(branch, inside))
}

fn one_branch(
    global: &Global,
    args: &OneBranch,
    write: impl Fn(&crate::runner::Runner<'_>, &RefName, Option<&Inside>) -> Result<Written, ChangeError>,
) -> Result<i32, Failure> {
    let name: &OsStr = &args.branch;
    let flags = Flags { remote: args.remote.clone(), ..Flags::default() };
    change(global, &flags, (args.json, !args.no_tick), |session, runner, inside| {
        write(runner, &session.branch(name)?, inside).map_err(|e| failed(runner, e))
    })
}

/// What is told of it names the branch where it is.
fn failed(runner: &crate::runner::Runner<'_>, error: ChangeError) -> Failure {
    Failure::changing(&error, runner.settings.remote.as_deref())
}

fn change(
    global: &Global,
    flags: &Flags,
    ways: (bool, bool),
    write: impl Fn(&Session, &crate::runner::Runner<'_>, Option<&Inside>) -> Result<Written, Failure>,
) -> Result<i32, Failure> {
    change_then(global, flags, ways, write, |_, _, _| Ok(()))
}

/// Writes, and then does more about it; whatever comes of that, the event is on its branch and is answered.
fn change_then(
    global: &Global,
    flags: &Flags,
    (json, tick): (bool, bool),
    write: impl Fn(&Session, &crate::runner::Runner<'_>, Option<&Inside>) -> Result<Written, Failure>,
    then: impl Fn(&Session, &crate::runner::Runner<'_>, &Written) -> Result<(), Failure>,
) -> Result<i32, Failure> {
    let session = global.open()?;
    let inside = session.inside();
    // What a run says of its own branch is said where that branch is.
    let remote =
        flags.remote.clone().or_else(|| inside.as_ref().map(|i| i.remote.clone().unwrap_or(".".into())));
    let settings = session.settings(&Flags { remote, ..flags.clone() })?;
    if let Some(remote) = session.unasked(&settings) {
        // How that remote is reached, and with which programs, is what the repository's own configuration says.
        let shown = escape(remote.as_bytes());
        return Err(Failure::refused(format!(
            "not trusted: remote '{shown}' is not asked unless you name it"
        ))
        .hint(super::hints::same_with_remote(remote)));
    }
    mend::all(&session);
    let interrupt = Interrupt::never()?;
    let runner = session.runner(&settings, &interrupt, &Silent)?;
    let written = write(&session, &runner, inside.as_ref())?;
    written::print(&written, settings.remote.as_deref(), json, global.quiet);
    let more = then(&session, &runner, &written);
    if tick {
        background::as_the_hook_would(&session, &settings, &written.branch)?;
    }
    // What a working tree does not have yet is said, and is not nothing.
    let behind = written.notes.iter().any(|note| matches!(note, Note::CheckoutBlocked(..)));
    more.map(|()| i32::from(behind))
}

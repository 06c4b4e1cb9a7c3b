//! `set-state`, `set-working`, `cancel`, `retry`: the verbs that write one commit.

use super::args::{DialectArg, OneBranch, SetState, SetWorking};
use super::fail::Failure;
use super::session::Global;
use super::{exit, output, written};
use crate::app::AppError;
use crate::app::change::{Change, declaration, end, state};
use crate::app::config::Flags;
use crate::protocol::declaration::LINE_PREFIX;
use crate::protocol::dialect::Dialect;
use crate::runner::change::Written;
use std::io::Read;

/// The message that `set-state` was given.
fn message(args: &SetState) -> Result<String, Failure> {
    match &args.file {
        Some(path) if path.as_os_str() == "-" => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            let failed = |e| Failure::fatal(format!("cannot read the message from standard input: {e}"));
            read.map(|_| text).map_err(failed)
        }
        Some(path) => std::fs::read_to_string(path)
            .map_err(|e| Failure::fatal(format!("cannot read '{}': {e}", path.display()))),
        None => Ok(args.message.join("\n\n")),
    }
}

/// `git aynig set-state`.
pub fn set_state(global: &Global, args: &SetState) -> Result<i32, Failure> {
    let state = state(&args.state)?;
    let declaration = declaration(state, &message(args)?, &args.trailer, args.keep_trailers)?;
    if args.emit {
        output::line(&format!("{LINE_PREFIX}{}", declaration.to_json()));
        return Ok(0);
    }
    let asked = args.dialect.map(|dialect| match dialect {
        DialectArg::Dwp => Dialect::Dwp,
        DialectArg::Aynig => Dialect::Aynig,
    });
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let written = change.set_state(args.branch.as_deref(), &declaration, asked)?;
    written::print(&written, change.remote(), args.json, global.quiet);
    let pushed = if args.push { change.push(&written) } else { Ok(()) };
    if !args.no_tick {
        change.answer(&written)?;
    }
    pushed?;
    Ok(exit::code(end(&written)))
}

/// `git aynig set-working`.
pub fn set_working(global: &Global, args: &SetWorking) -> Result<i32, Failure> {
    let flags = Flags { lease: args.lease.clone(), remote: args.remote.clone(), ..Flags::default() };
    let session = global.open()?;
    let change = Change::begin(&session, &flags)?;
    let written = change.set_working(args.branch.as_deref())?;
    written::print(&written, change.remote(), args.json, global.quiet);
    Ok(exit::code(end(&written)))
}

/// `git aynig cancel`.
pub fn cancel(global: &Global, args: &OneBranch) -> Result<i32, Failure> {
    one_branch(global, args, |change| change.cancel(&args.branch))
}

/// `git aynig retry`.
pub fn retry(global: &Global, args: &OneBranch) -> Result<i32, Failure> {
    one_branch(global, args, |change| change.retry(&args.branch))
}

fn one_branch(
    global: &Global,
    args: &OneBranch,
    write: impl Fn(&Change<'_>) -> Result<Written, AppError>,
) -> Result<i32, Failure> {
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let written = write(&change)?;
    written::print(&written, change.remote(), args.json, global.quiet);
    if !args.no_tick {
        change.answer(&written)?;
    }
    Ok(exit::code(end(&written)))
}

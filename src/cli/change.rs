//! `set-state`, `set-working`, `cancel`, `retry`: the verbs that write one commit.

use super::args::{Branches, DialectArg, SetState, SetWorking};
use super::fail::Failure;
use super::session::{Global, Session};
use super::{exit, handed, output, written};
use crate::app::change::{About, Change, declaration, end, state};
use crate::app::config::Flags;
use crate::app::{AppError, Exit, Misuse};
use crate::protocol::declaration::LINE_PREFIX;
use crate::protocol::dialect::Dialect;
use crate::protocol::name::STALLED;
use crate::protocol::text::escape;
use crate::runner::change::{ChangeError, Written};
use crate::store::RefName;
use std::io::Read;
use std::path::Path;

/// Returns the text that a verb was given: the content of a file, standard input (`-`), or the paragraphs,
/// joined by blank lines.
pub fn text(paragraphs: &[String], file: Option<&Path>) -> Result<String, Failure> {
    match file {
        Some(path) if path.as_os_str() == "-" => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            let failed = |e| Failure::fatal(format!("cannot read the message from standard input: {e}"));
            read.map(|_| text).map_err(failed)
        }
        Some(path) => std::fs::read_to_string(path)
            .map_err(|e| Failure::fatal(format!("cannot read '{}': {e}", path.display()))),
        None => Ok(paragraphs.join("\n\n")),
    }
}

/// Runs `git aynig set-state`.
pub fn set_state(global: &Global, args: &SetState) -> Result<i32, Failure> {
    let state = state(&args.state, args.branch.as_deref(), args.remote.as_deref())?;
    let declaration =
        declaration(state, &text(&args.message, args.file.as_deref())?, &args.trailer, args.keep_trailers)?;
    if args.emit {
        if declaration.state.as_str() == STALLED && std::env::var_os("AYNIG_RUN_ID").is_none() {
            return Err(AppError::from(Misuse::StalledOutside).into());
        }
        output::line(&format!("{LINE_PREFIX}{}", declaration.to_json()));
        return Ok(0);
    }
    if let Some(code) = handed::set_state(args)? {
        return Ok(code);
    }
    let asked = args.dialect.map(|dialect| match dialect {
        DialectArg::Dwp => Dialect::Dwp,
        DialectArg::Aynig => Dialect::Aynig,
    });
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let written = change.set_state(args.branch.as_deref(), &declaration, asked)?;
    written::print(&written, change.remote(), args.json, global.quiet);
    let mut words = Vec::new();
    let pushed = if args.push { change.push(&written, &mut words) } else { Ok(()) };
    // A pusher hears what the other side's hook did with the event, as after `git push`. Why it refused is
    // part of the error.
    for words in words.iter().filter(|_| !global.quiet || pushed.is_err()) {
        output::note(&format!("remote: {}", escape(words.as_bytes())));
    }
    if !args.no_tick {
        change.answer(&written)?;
    }
    pushed?;
    Ok(exit::code(end(&written)))
}

/// Runs `git aynig set-working`.
pub fn set_working(global: &Global, args: &SetWorking) -> Result<i32, Failure> {
    if let Some(code) = handed::set_working(args)? {
        return Ok(code);
    }
    let flags = Flags { lease: args.lease.clone(), remote: args.remote.clone(), ..Flags::default() };
    let session = global.open()?;
    let change = Change::begin(&session, &flags)?;
    let written = change.set_working(args.branch.as_deref())?;
    written::print(&written, change.remote(), args.json, global.quiet);
    Ok(exit::code(end(&written)))
}

/// Runs `git aynig cancel`.
pub fn cancel(global: &Global, args: &Branches) -> Result<i32, Failure> {
    each(global, args, About::Leased, |change, branch| change.cancel(branch, None))
}

/// Runs `git aynig retry`.
pub fn retry(global: &Global, args: &Branches) -> Result<i32, Failure> {
    each(global, args, About::Stalled, |change, branch| change.retry(branch))
}

/// Writes to each branch that the arguments mean, and returns the worst exit code. A branch that cannot be
/// written to does not keep the others from being written to.
fn each(
    global: &Global,
    args: &Branches,
    about: About,
    write: impl Fn(&Change<'_>, &RefName) -> Result<Written, AppError>,
) -> Result<i32, Failure> {
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let chosen = change.choose(&args.branches, args.all, about)?;
    if chosen.is_empty() && !global.quiet {
        output::note(&format!("no branch is {}", about.word()));
    }
    let (mut worst, mut answered) = (Exit::Done, Vec::new());
    for branch in &chosen {
        match write(&change, branch) {
            Ok(written) => {
                written::print(&written, change.remote(), args.json, global.quiet);
                worst = worst.max(end(&written));
                answered.push(written.branch);
            }
            // A run may end while others are canceled. For a branch that only a pattern or `--all` found,
            // that is no failure.
            Err(AppError::Change {
                error: ChangeError::NotLeased(_) | ChangeError::NotStalled(_), ..
            }) if !is_named(&session, args, branch) => {
                output::note(&format!("{}: is not {} any more", escape(branch.short()), about.word()));
            }
            // Where one branch alone is meant, its failure is the verb's failure.
            Err(error) if chosen.len() == 1 => return Err(error.into()),
            Err(error) => {
                worst = worst.max(Exit::from(&error));
                output::error(&Failure::from(&error).render());
            }
        }
    }
    if !args.no_tick && !answered.is_empty() {
        change.answer_all(&answered)?;
    }
    Ok(exit::code(worst))
}

/// True where a branch was asked for by its name.
fn is_named(session: &Session, args: &Branches, branch: &RefName) -> bool {
    args.branches.iter().any(|arg| session.branch(arg).is_ok_and(|named| named == *branch))
}

//! `set-state`, `set-working`, `send`, `ask` and `inbox` inside a sandbox: the runner is handed what was
//! typed, and runs the verb. Implements K59.

use super::args::{Ask, DialectArg, Inbox, Send, SetState, SetWorking};
use super::fail::Failure;
use super::{change, exit, output};
use crate::app::change::is_in_turn;
use crate::app::handed::{Confined, confined};
use crate::app::{AppError, Exit, Misuse};
use crate::protocol::handed::{Handed, Verb};
use std::ffi::OsStr;

fn refused(what: &str) -> Failure {
    let why = format!("refused in the sandbox: {what}");
    Failure::of(&std::io::Error::other(why), exit::code(Exit::Refused))
}

fn only(may: bool, what: &str) -> Result<(), Failure> {
    if may { Ok(()) } else { Err(refused(what)) }
}

/// Refuses to set the state of any branch but the run's own, and of that one inside of a governed turn.
fn only_own(confined: &Confined, branch: Option<&OsStr>, remote: Option<&str>) -> Result<(), Failure> {
    only(confined.is_own(branch) && remote.is_none(), OWN)?;
    if is_in_turn() { Err(AppError::from(Misuse::InsideTurn).into()) } else { Ok(()) }
}

fn switches(named: &[(bool, &str)]) -> Vec<String> {
    named.iter().filter(|(set, _)| *set).map(|(_, name)| (*name).to_owned()).collect()
}

fn flags(name: &str, values: &[String]) -> Vec<(String, String)> {
    values.iter().map(|value| (name.to_owned(), value.clone())).collect()
}

/// Hands a request to the runner, prints what the runner's verb printed, and returns that verb's exit code.
fn hand(confined: &Confined, request: &Handed) -> Result<i32, Failure> {
    let answer = confined.ask(request).map_err(|error| {
        let why = std::io::Error::new(error.kind(), format!("the runner did not answer: {error}"));
        Failure::of(&why, exit::code(Exit::Later))
    })?;
    answer.out.lines().for_each(output::line);
    answer.err.lines().for_each(output::note);
    Ok(answer.code)
}

const OWN: &str = "a run changes no branch but its own";

/// Hands `set-state` to the runner; `None` outside of a sandbox.
pub fn set_state(args: &SetState) -> Result<Option<i32>, Failure> {
    let Some(confined) = confined() else { return Ok(None) };
    only_own(&confined, args.branch.as_deref(), args.remote.as_deref())?;
    only(!args.push, "'--push'")?;
    let text = change::text(&args.message, args.file.as_deref())?;
    let mut flags = flags("trailer", &args.trailer);
    flags.extend(args.dialect.map(|dialect| {
        let name = match dialect {
            DialectArg::Dwp => "dwp",
            DialectArg::Aynig => "aynig",
        };
        ("dialect".to_owned(), name.to_owned())
    }));
    let switches = switches(&[(args.keep_trailers, "keep-trailers"), (args.json, "json")]);
    let text = Some(text).filter(|text| !text.is_empty());
    let request = Handed { verb: Verb::SetState, what: Some(args.state.clone()), text, flags, switches };
    hand(&confined, &request).map(Some)
}

/// Hands `set-working` to the runner; `None` outside of a sandbox.
pub fn set_working(args: &SetWorking) -> Result<Option<i32>, Failure> {
    let Some(confined) = confined() else { return Ok(None) };
    only_own(&confined, args.branch.as_deref(), args.remote.as_deref())?;
    let flags = flags("lease", args.lease.as_slice());
    let switches = switches(&[(args.json, "json")]);
    hand(&confined, &Handed { verb: Verb::SetWorking, what: None, text: None, flags, switches }).map(Some)
}

/// Hands `send` to the runner; `None` outside of a sandbox.
pub fn send(args: &Send) -> Result<Option<i32>, Failure> {
    let Some(confined) = confined() else { return Ok(None) };
    let branch: &OsStr = &args.branch;
    only(confined.is_own(Some(branch)) && args.remote.is_none(), OWN)?;
    only(args.attach.is_none(), "'--attach'")?;
    let text = Some(change::text(&args.message, args.file.as_deref())?).filter(|text| !text.is_empty());
    let mut flags = flags("trailer", &args.trailer);
    flags.push(("kind".to_owned(), args.kind.clone()));
    flags.extend(args.id.clone().map(|id| ("id".to_owned(), id)));
    let switches = switches(&[(args.json, "json")]);
    hand(&confined, &Handed { verb: Verb::Send, what: None, text, flags, switches }).map(Some)
}

/// Hands `ask` to the runner; `None` outside of a sandbox.
pub fn ask(args: &Ask) -> Result<Option<i32>, Failure> {
    let Some(confined) = confined() else { return Ok(None) };
    only(!args.wait, "'--wait': declare the state in which the branch waits for the answer")?;
    let (flags, switches) = (flags("choice", &args.choice), switches(&[(args.json, "json")]));
    let what = Some(args.question.clone());
    hand(&confined, &Handed { verb: Verb::Ask, what, text: None, flags, switches }).map(Some)
}

/// Hands `inbox` to the runner; `None` outside of a sandbox, and in one where the repository can be read.
pub fn inbox(args: &Inbox) -> Result<Option<i32>, Failure> {
    let Some(confined) = confined().filter(|confined| confined.is_strict) else { return Ok(None) };
    let own = confined.is_own(args.branch.as_deref()) && args.remote.is_none();
    only(own, "a run reads no inbox but its own")?;
    only(!args.follow, "'--follow': ask again without it")?;
    let mut flags = flags("kind", args.kind.as_slice());
    flags.extend(args.take.clone().map(|id| ("take".to_owned(), id)));
    let switches = switches(&[(args.json, "json")]);
    hand(&confined, &Handed { verb: Verb::Inbox, what: None, text: None, flags, switches }).map(Some)
}

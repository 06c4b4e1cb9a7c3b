//! `answer`, `approve`, `reject`: answer the question that a branch asks.

use super::args::{Answer, Answering, YesOrNo};
use super::fail::Failure;
use super::output;
use super::session::Global;
use crate::app::change::Change;
use crate::app::config::Flags;
use crate::app::talk::MessageLine;
use crate::app::talk::answer::{Choice, answer};
use crate::app::talk::send::hear;
use crate::protocol::text::escape;
use std::ffi::OsStr;

/// Runs `git aynig answer`.
pub fn run(global: &Global, args: &Answer) -> Result<i32, Failure> {
    say(global, &args.what, Choice::Named(&args.choice), &args.answering)
}

/// Runs `git aynig approve`.
pub fn approve(global: &Global, args: &YesOrNo) -> Result<i32, Failure> {
    say(global, &args.what, Choice::Yes, &args.answering)
}

/// Runs `git aynig reject`.
pub fn reject(global: &Global, args: &YesOrNo) -> Result<i32, Failure> {
    say(global, &args.what, Choice::No, &args.answering)
}

fn say(global: &Global, what: &OsStr, choice: Choice<'_>, args: &Answering) -> Result<i32, Failure> {
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let (asked, sent) = answer(&change, what, choice, &args.message.join("\n\n"), args.seen.as_deref())?;
    output::line(&match args.json {
        true => output::json(&MessageLine::of_sent(&sent)),
        false => {
            let choice = escape(sent.letter.choice.as_deref().unwrap_or_default().as_bytes());
            format!("{}: answered '{choice}' to question {}", escape(sent.branch.short()), asked.question.id)
        }
    });
    if !args.no_tick {
        hear(&change, &sent)?;
    }
    Ok(0)
}

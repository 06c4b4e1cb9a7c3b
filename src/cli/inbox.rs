//! `inbox`: the messages that wait for a branch; with `--follow` as they come.
//!
//! A reader that goes away ends the verb, and is no failure. Implements K48, K36.

use super::args::Inbox;
use super::fail::Failure;
use super::session::Global;
use super::{exit, handed, output};
use crate::app::change::Change;
use crate::app::config::Flags;
use crate::app::events::date;
use crate::app::talk::MessageLine;
use crate::app::talk::inbox::{self, Waiting, take};
use crate::protocol::text::{escape, escape_block};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;

/// Runs `git aynig inbox`.
pub fn run(global: &Global, args: &Inbox) -> Result<i32, Failure> {
    if let Some(code) = handed::inbox(args)? {
        return Ok(code);
    }
    let session = global.open()?;
    if let Some(id) = &args.take {
        let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
        let (branch, taken) = take(&change, args.branch.as_deref(), id)?;
        output::line(&match args.json {
            true => output::json(&MessageLine::of_waiting(&branch, &taken)),
            false => format!("{}: {} {} taken", escape(branch.short()), taken.kind, taken.id),
        });
        return Ok(0);
    }
    let settings = inbox::settings(&session, args.remote.clone())?;
    let interrupt = if args.follow { Interrupt::by_signals()? } else { Interrupt::never()? };
    let (branch, kind) = (args.branch.as_deref(), args.kind.as_deref());
    let reading = inbox::open(&session, &settings, &interrupt, branch, kind)?;
    let line = |branch: &RefName, waiting: &Waiting| match args.json {
        true => output::json(&MessageLine::of_waiting(branch, waiting)),
        false => text(waiting),
    };
    if args.follow {
        let show = |waiting: &Waiting| output::offer(&line(&reading.branch, waiting));
        return Ok(exit::code(reading.follow(show, output::reader_gone)?));
    }
    let mut lines = output::Lines::begin();
    let waits = reading.list()?;
    let _ = waits.iter().all(|waiting| lines.offer(&line(&reading.branch, waiting)));
    drop(lines);
    if waits.is_empty() && !global.quiet {
        output::note(&format!("nothing waits for '{}'", escape(reading.branch.short())));
    }
    Ok(0)
}

/// Returns a message for people: a line about it, and then its text.
fn text(waiting: &Waiting) -> String {
    let date = date(waiting.committed).unwrap_or_else(|| "no date".to_owned()).replace('T', " ");
    let head = format!("{}  {date}  {}", waiting.id, waiting.kind);
    let letter = match &waiting.letter {
        Ok(letter) => letter,
        Err(why) => return format!("{head}  cannot be read: {}", escape(why.as_bytes())),
    };
    let mut text = format!("{head}  from {}", escape(letter.from.as_bytes()));
    if let Some(work) = letter.attached {
        text += &format!("  with {}", work.short(10));
    }
    if let Some(choice) = &letter.choice {
        text += &format!("  '{}'", escape(choice.as_bytes()));
    }
    for line in escape_block(letter.text.as_bytes()).lines() {
        text += &format!("\n    {line}");
    }
    text
}

//! `pause` and `resume`: no tick starts anything on these branches until a person takes that back.

use super::args::{Pause, Resume};
use super::fail::Failure;
use super::session::Global;
use super::{exit, hints, output};
use crate::app::change::Change;
use crate::app::config::Flags;
use crate::app::talk::PauseLine;
use crate::app::talk::pause::{Ended, Paused, Which, end, go_on, pause, resume, stop};
use crate::protocol::text::escape;
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;

/// Runs `git aynig pause`.
pub fn run(global: &Global, args: &Pause) -> Result<i32, Failure> {
    let interrupt = if args.stop { Interrupt::by_signals()? } else { Interrupt::never()? };
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let paused = pause(&change, &args.patterns, &args.message.join("\n\n"))?;
    if !args.json {
        output::line(&format!("{} paused ({})", what(&paused), paused.id));
    }
    let ended = match args.stop {
        true => stop(&change, paused, &interrupt)?,
        false => Ended { paused, left: Vec::new(), canceled: Vec::new(), signal: None },
    };
    if args.json {
        output::line(&output::json(&PauseLine::of(&ended.paused, &[])));
    } else {
        say(&ended.left, "ended by itself");
        say(&ended.canceled, "canceled");
    }
    Ok(exit::code(end(&ended)))
}

/// Runs `git aynig resume`.
pub fn resumed(global: &Global, args: &Resume) -> Result<i32, Failure> {
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let released = resume(&change, &Which::of(&args.ids, args.all)?)?;
    for one in &released.resumed {
        if args.json {
            output::line(&output::json(&PauseLine::of(&one.paused, &one.again)));
            continue;
        }
        output::line(&format!("{} resumed ({})", what(&one.paused), one.paused.id));
        say(&one.again, "asked for again");
    }
    if !global.quiet && !args.json {
        if released.resumed.is_empty() {
            output::note(match (args.all, args.ids.is_empty()) {
                (true, _) => "nothing is paused",
                (false, true) => "nothing of yours is paused",
                (false, false) => "no such pause stands any more",
            });
        }
        for paused in &released.standing {
            output::note(&format!("{} still paused by {}", what(paused), paused.pause.by()));
        }
        if !released.standing.is_empty() {
            let remote = change.remote().filter(|remote| *remote != ".");
            output::note(&format!("hint: git aynig resume --all{}", hints::remote_option(remote)));
        }
    }
    if !args.no_tick {
        go_on(&change, &released)?;
    }
    Ok(0)
}

fn say(branches: &[RefName], what: &str) {
    branches.iter().for_each(|branch| output::line(&format!("{}: {what}", escape(branch.short()))));
}

/// Returns the branches that a pause holds, as the beginning of a sentence.
fn what(paused: &Paused) -> String {
    let verb = if paused.pause.patterns.len() > 1 { "are" } else { "is" };
    format!("{} {verb}", paused.pause.held())
}

//! `send`: sends a message to a branch.

use super::args::Send;
use super::fail::Failure;
use super::session::Global;
use super::{change, handed, output};
use crate::app::Warning;
use crate::app::change::Change;
use crate::app::config::Flags;
use crate::app::talk::MessageLine;
use crate::app::talk::send::{Head, Sent, Typed, hear, send, sending};
use crate::protocol::text::escape;

/// Runs `git aynig send`.
pub fn run(global: &Global, args: &Send) -> Result<i32, Failure> {
    if let Some(code) = handed::send(args)? {
        return Ok(code);
    }
    let text = change::text(&args.message, args.file.as_deref())?;
    let session = global.open()?;
    let change = Change::begin(&session, &Flags { remote: args.remote.clone(), ..Flags::default() })?;
    let typed = Typed {
        kind: &args.kind,
        id: args.id.as_deref(),
        text: &text,
        trailers: &args.trailer,
        attach: args.attach.as_deref(),
    };
    let sent = send(&change, &args.branch, &sending(&change, &typed)?)?;
    match args.json {
        true => output::line(&output::json(&MessageLine::of_sent(&sent))),
        false => output::line(&line(&sent)),
    }
    if sent.head == Head::Leaves {
        let remote = change.remote().map(str::to_owned);
        session.warn(Warning::NotTaken(sent.branch.clone(), sent.letter.kind.to_string(), remote));
    }
    if !args.no_tick {
        hear(&change, &sent)?;
    }
    Ok(0)
}

fn line(sent: &Sent) -> String {
    let (branch, letter) = (escape(sent.branch.short()), &sent.letter);
    let what = match (sent.fresh, sent.waiting) {
        (true, _) => "sent",
        (false, true) => "was sent already, and waits",
        (false, false) => "was sent already, and heard",
    };
    format!("{branch}: {} {} {what}", letter.kind, letter.id)
}

//! `chain`: the process that a hook leaves running. The work is `app::chain`'s; this file says who receives
//! its reports.

use super::fail::Failure;
use super::inner::Chain;
use super::observe::Display;
use super::session::Global;
use super::{exit, output, render};
use crate::app::{Audience, background, chain};
use crate::protocol::decide::Idle;
use crate::runner::report::{Report, Verdict};
use crate::runner::{Observer, Progress};
use crate::store::RefName;
use crate::supervisor::background::leave_caller;
use crate::supervisor::interrupt::Interrupt;
use std::fs::File;
use std::io::Write;

/// The audience of a chain: a user who watches it, such as one at the other end of a push, or a log.
pub struct Onlooker {
    display: Display,
    /// The log that reports are appended to besides.
    log: Option<File>,
}

impl Onlooker {
    /// Creates the audience of a chain in the background, whose standard streams are the log already.
    fn behind() -> Self {
        Self { display: Display::for_pusher(false), log: None }
    }

    /// Creates the audience of a chain that a user watches. Its reports also go to this log, where those of
    /// the other chains are, for a user who looks later.
    pub fn watching(log: Option<File>) -> Self {
        Self { display: Display::for_pusher(true), log }
    }
}

impl Observer for Onlooker {
    fn told(&self, branch: &RefName, progress: Progress<'_>) {
        self.display.told(branch, progress);
    }
}

impl Audience for Onlooker {
    fn reported(&self, report: &Report) {
        let silent = matches!(report.verdict, Verdict::Idle(Idle::NoState | Idle::NoCommand { .. }));
        if silent && report.notes.is_empty() && report.recovered.is_empty() {
            return;
        }
        let text = render::text(report, true);
        render::print(report, &text, false);
        if let Some(mut log) = self.log.as_ref() {
            let lines: Vec<String> = text.line.into_iter().chain(text.notes).collect();
            // In one write, since other processes append to the log, too.
            let _ = log.write_all(output::dated(&lines.join("\n")).as_bytes());
        }
    }

    fn recovered(&self, report: &Report) {
        render::print(report, &render::text(report, false), false);
    }
}

/// Runs `git aynig chain`.
pub fn run(global: &Global, args: &Chain) -> Result<i32, Failure> {
    if args.detached {
        leave_caller();
        output::log_times();
    }
    let interrupt = Interrupt::by_signals()?;
    let promised = match args.from_input {
        true => background::read_promised(&mut std::io::stdin().lock())?,
        false => Default::default(),
    };
    let (session, onlooker) = (global.open()?, Onlooker::behind());
    let ended =
        chain::run(session, &args.branches, promised, args.cause(), args.watch, &interrupt, &onlooker)?;
    Ok(exit::code(ended))
}

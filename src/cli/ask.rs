//! `ask`: a question from inside a run.
//!
//! Standard output holds only what a script reads: the question's id or, with `--wait`, the choice of the
//! answer (with `--json` an object). Implements K49.

use super::args::Ask;
use super::fail::Failure;
use super::session::Global;
use super::{exit, handed, output};
use crate::app::AppError;
use crate::app::change::Change;
use crate::app::config::{Flags, duration};
use crate::app::talk::ask::{Heard, ask, wait};
use crate::app::talk::lines::declare;
use crate::app::talk::{MessageLine, QuestionLine};
use crate::app::{Exit, Misuse};
use crate::protocol::text::escape_block;
use crate::supervisor::interrupt::Interrupt;

/// Runs `git aynig ask`.
pub fn run(global: &Global, args: &Ask) -> Result<i32, Failure> {
    if let Some(code) = handed::ask(args)? {
        return Ok(code);
    }
    let no_duration = |text: &String| AppError::from(Misuse::Duration(text.clone()));
    let timeout = args.timeout.as_ref().map(|text| duration(text).ok_or_else(|| no_duration(text)));
    let timeout = timeout.transpose()?;
    let session = global.open()?;
    let change = Change::begin(&session, &Flags::default())?;
    if !args.wait {
        let asked = ask(&change, &args.question, &args.choice, false)?;
        if args.json {
            output::line(&output::json(&QuestionLine::of(&asked)));
            return Ok(0);
        }
        output::line(&asked.question.id.to_string());
        if !global.quiet {
            let lines: Vec<String> =
                declare(asked.question.id).iter().map(|line| format!("'{line}'")).collect();
            output::note(&format!("declare the state in which it waits, with {}", lines.join(" and ")));
        }
        return Ok(0);
    }
    // Signals are caught before the question is asked, so that a signal which ends the wait also withdraws
    // the question.
    let interrupt = Interrupt::by_signals()?;
    let asked = ask(&change, &args.question, &args.choice, true)?;
    match wait(&change, &asked, timeout, &interrupt)? {
        Heard::Nothing(end) => {
            if end == Exit::Later && !global.quiet {
                output::note("no answer came in that time");
            }
            Ok(exit::code(end))
        }
        Heard::Answer(answer) => {
            let (commit, letter) = *answer;
            if args.json {
                let branch = asked.branch();
                output::line(&output::json(&MessageLine::of_answer(&branch, commit, &letter)));
                return Ok(0);
            }
            // Printed unescaped: the command offered this choice itself or, where it offered none, asked for
            // any text.
            output::line(letter.choice.as_deref().unwrap_or_default());
            if !global.quiet && !letter.text.is_empty() {
                output::note(&escape_block(letter.text.as_bytes()));
            }
            Ok(0)
        }
    }
}

//! `ask`: a question from inside a run, and with `--wait` the answer to it.
//!
//! A command that waits sleeps between two looks, and meanwhile holds a file in the run's folder locked, so
//! that other runs may have this run's place among the commands at work (K49). However the wait ends, the
//! question goes with it. Implements K49, K53 (who is told).

use super::super::change::Change;
use super::super::{AppError, Exit, Misuse, Warning, notice};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{Letter, TEXT_MAX};
use crate::protocol::question::is_offer;
use crate::runner::change::Inside;
use crate::runner::pending::begin_asking;
use crate::runner::talk::TalkError;
pub use crate::runner::talk::ask::Asked;
use crate::runner::talk::looks::Looks;
use crate::supervisor::interrupt::Interrupt;
use std::time::{Duration, Instant};

/// How often to check whether an answer that could not be judged can be judged by now.
const HELD_LOOK_EVERY: Duration = Duration::from_secs(5);

/// How a wait ended.
#[derive(Debug)]
pub enum Heard {
    Answer(Box<(ObjectId, Letter)>),
    /// Without an answer: by a signal, or by the end of the time that was given.
    Nothing(Exit),
}

/// Asks a question from inside a run; where the run waits for the answer, gives notice of the question too.
pub fn ask(change: &Change<'_>, text: &str, choices: &[String], waits: bool) -> Result<Asked, AppError> {
    let inside = inside(change)?;
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_MAX {
        return Err(Misuse::Message("a question is a text of at most 1 MiB".to_owned()).into());
    }
    if !is_offer(choices) {
        let why = "a question offers at most 64 choices, each of 1 to 1000 bytes on one line";
        return Err(Misuse::Message(why.to_owned()).into());
    }
    let asked = change.talk(|runner| runner.ask(inside, text, choices, waits))?;
    if waits {
        notice::asked(change.session, &change.settings, &asked, &inside.run_id);
    }
    Ok(asked)
}

/// Waits for the answer, for `timeout` at most.
pub fn wait(
    change: &Change<'_>,
    asked: &Asked,
    timeout: Option<Duration>,
    interrupt: &Interrupt,
) -> Result<Heard, AppError> {
    let inside = inside(change)?;
    let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let heard = change.talk_until(interrupt, |runner| {
        // The run waits even where it can't be noted that it does.
        let _asking = begin_asking(&runner.run_dir(&inside.run_id)).ok().flatten();
        let (mut looks, mut held) = (Looks::new(runner, &inside.branch), None::<Instant>);
        loop {
            // What was missing to judge an answer may come back without a ref moving.
            if looks.is_due() || held.is_some_and(|at| at.elapsed() >= HELD_LOOK_EVERY) {
                match runner.answer_of(asked) {
                    Ok(Some((commit, letter))) => {
                        runner.take_answer(asked, commit)?;
                        return Ok(Heard::Answer(Box::new((commit, letter))));
                    }
                    Ok(None) => held = None,
                    Err(error @ TalkError::NoJudge(..)) => {
                        if held.replace(Instant::now()).is_none() {
                            change.session.warn(Warning::Failed(change.talked(error)));
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Heard::Nothing(Exit::Later));
            }
            interrupt.wait(left.map_or(looks.every(), |left| left.min(looks.every())));
            if let Some(signal) = interrupt.signal() {
                return Ok(Heard::Nothing(Exit::of_signal(signal)));
            }
        }
    });
    if !matches!(heard, Ok(Heard::Answer(_))) {
        let gone = change.talk(|runner| runner.withdraw(asked));
        if heard.is_ok() {
            gone?;
        }
    }
    heard
}

fn inside<'c>(change: &'c Change<'_>) -> Result<&'c Inside, AppError> {
    change.inside.as_ref().ok_or_else(|| change.talked(TalkError::Outside))
}

//! `pause` and `resume`: no tick starts anything on the paused branches until a person takes the pause back.
//!
//! [`pause`], then with `--stop` [`stop`]: the runs on those branches are named in the pause first, then
//! asked to end, then canceled. `resume`, which takes the pause back, asks for these runs again. Implements
//! K50.

use super::super::change::Change;
use super::super::{AppError, Exit, Warning, background};
use super::id;
use crate::protocol::inbox::MessageId;
use crate::runner::Runner;
use crate::runner::change::ChangeError;
use crate::runner::run_events::tell;
use crate::runner::talk::TalkError;
pub use crate::runner::talk::pause::Paused;
use crate::runner::talk::pause::{Held, Interrupting};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::time::{Duration, Instant};

/// How often to check whether a run that was asked to end has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Pauses the branches that the patterns match.
pub fn pause(change: &Change<'_>, patterns: &[String], why: &str) -> Result<Paused, AppError> {
    change.talk(|runner| runner.pause(patterns, why.trim(), change.inside.as_ref()))
}

/// What became of the runs that a pause ended.
#[derive(Debug)]
pub struct Ended {
    /// The pause, with what `resume` asks for again.
    pub paused: Paused,
    /// The branches of runs that ended by themselves, once they were asked.
    pub left: Vec<RefName>,
    /// The branches of runs that were canceled.
    pub canceled: Vec<RefName>,
    /// The signal that ended the wait: the runs that had not ended by then go on.
    pub signal: Option<i32>,
}

/// Ends the commands that run on the branches that a pause holds.
pub fn stop(change: &Change<'_>, paused: Paused, interrupt: &Interrupt) -> Result<Ended, AppError> {
    let (runs, paused) = change.talk(|runner| {
        let runs = runner.held_runs(&paused)?;
        let paused = if runs.is_empty() { paused } else { runner.note_stopped(&paused, &runs)? };
        Ok((runs, paused))
    })?;
    let EndedRuns { left, canceled, signal } = end_runs(change, runs, Some(&paused), interrupt)?;
    Ok(Ended { paused, left, canceled, signal })
}

/// What became of runs that were to end.
#[derive(Debug, Default)]
pub struct EndedRuns {
    /// The branches of runs that ended by themselves, once they were asked.
    pub left: Vec<RefName>,
    /// The branches of runs that were canceled.
    pub canceled: Vec<RefName>,
    /// The signal that ended the wait: the runs that had not ended by then go on.
    pub signal: Option<i32>,
}

/// Asks runs to end, with a message each, and after the kill grace cancels those that still hold their
/// branch, in the name of the pause. The messages are then removed where they were not heard.
pub fn end_runs(
    change: &Change<'_>,
    runs: Vec<Held>,
    paused: Option<&Paused>,
    interrupt: &Interrupt,
) -> Result<EndedRuns, AppError> {
    let mut asked = Vec::new();
    for run in runs {
        let said = change.talk(|runner| ask_to_end(runner, paused, &run));
        let said = said.map_err(|error| change.session.warn(Warning::Failed(error))).ok();
        asked.push((run, said));
    }
    end_asked(change, asked, paused.map(|paused| paused.id), interrupt)
}

/// Does what [`end_runs`] does with runs that were asked already, each with the message that was sent only to
/// ask it, if one was.
pub fn end_asked(
    change: &Change<'_>,
    mut running: Vec<(Held, Option<Interrupting>)>,
    paused_by: Option<MessageId>,
    interrupt: &Interrupt,
) -> Result<EndedRuns, AppError> {
    let mut ended = EndedRuns::default();
    let until = Instant::now() + change.settings.kill_grace;
    while !running.is_empty() && Instant::now() < until && interrupt.signal().is_none() {
        let mut still = Vec::new();
        for (run, said) in running {
            match change.talk(|runner| runner.holds_on(&run))? {
                true => still.push((run, said)),
                false => {
                    unsay(change, said);
                    ended.left.push(run.branch);
                }
            }
        }
        running = still;
        if !running.is_empty() {
            interrupt.wait(LOOK_EVERY);
        }
    }
    ended.signal = interrupt.signal();
    for (run, said) in running {
        if ended.signal.is_none() && change.talk(|runner| runner.holds_on(&run))? {
            change.cancel(&run.branch, paused_by)?;
            ended.canceled.push(run.branch);
        }
        unsay(change, said);
    }
    Ok(ended)
}

/// Sends the message to the inbox, and where the run is at work on this machine adds it to the run's events.
fn ask_to_end(runner: &Runner<'_>, paused: Option<&Paused>, run: &Held) -> Result<Interrupting, TalkError> {
    let said = runner.interrupt_run(paused, run)?;
    let event = serde_json::json!({
        "type": "interrupt",
        "id": said.letter.id.to_string(),
        "from": said.letter.from,
        "text": said.letter.text,
    });
    // A command that follows its inbox receives the message anyway.
    let _ = tell(runner.repo, &run.run_id, run.trigger, &event.to_string());
    Ok(said)
}

fn unsay(change: &Change<'_>, said: Option<Interrupting>) {
    let Some(said) = said else { return };
    if let Err(error) = change.talk(|runner| runner.unsay(&said)) {
        change.session.warn(Warning::Failed(error));
    }
}

/// A pause that was taken back.
#[derive(Debug)]
pub struct Resumed {
    /// The pause.
    pub paused: Paused,
    /// The branches whose runs were asked for again.
    pub again: Vec<RefName>,
}

/// The pauses that were taken back, and those that still stand.
#[derive(Debug, Default)]
pub struct Released {
    /// The pauses that were taken back.
    pub resumed: Vec<Resumed>,
    /// The pauses that still stand.
    pub standing: Vec<Paused>,
    /// Branches that may have something to do now.
    pub branches: Vec<RefName>,
}

/// Which pauses are taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The caller's own.
    Own,
    /// All of them.
    All,
    /// The pauses of these ids, also those of other holders.
    These(Vec<MessageId>),
}

impl Which {
    /// Reads which pauses the user asked for.
    pub fn of(ids: &[String], all: bool) -> Result<Self, AppError> {
        match (ids.is_empty(), all) {
            (true, true) => Ok(Self::All),
            (true, false) => Ok(Self::Own),
            (false, _) => {
                Ok(Self::These(ids.iter().map(|typed| id(typed, Some("status"))).collect::<Result<_, _>>()?))
            }
        }
    }
}

/// Takes pauses back, and asks again for the runs that were ended for them. Nothing is done for an id that no
/// pause has any more: that pause was taken back already.
pub fn resume(change: &Change<'_>, which: &Which) -> Result<Released, AppError> {
    let own = change.talk(|runner| Ok(runner.speaker(change.inside.as_ref())))?;
    let pauses = change.talk(|runner| runner.pauses())?;
    let (mine, standing): (Vec<Paused>, Vec<Paused>) = pauses.into_iter().partition(|paused| match which {
        Which::Own => paused.pause.holder == own,
        Which::All => true,
        Which::These(ids) => ids.contains(&paused.id),
    });
    let mut released = Released { standing, ..Released::default() };
    for paused in mine {
        // The runs are asked for again while their branches are still held, so that no tick dispatches only
        // half of them.
        let (mut again, mut unasked) = (Vec::new(), false);
        let mut failed = |error: AppError| {
            unasked |= !is_refused(&error);
            change.session.warn(Warning::Failed(error));
        };
        match change.talk(|runner| runner.may_bring_back(&paused)) {
            Err(error) => failed(error),
            Ok(stopped) => {
                for run in stopped {
                    match change.talk(|runner| runner.ask_again(run, paused.id)) {
                        Ok(Some(_)) => again.push(run.branch.clone()),
                        Ok(None) => {}
                        Err(error) => failed(error),
                    }
                }
            }
        }
        if unasked {
            // Only the pause knows of these runs, so it stands until all of them were asked for.
            released.standing.push(paused);
            continue;
        }
        match change.talk(|runner| runner.take_back(&paused)) {
            Ok(true) => released.resumed.push(Resumed { paused, again }),
            Ok(false) => {}
            // The other pauses are taken back all the same.
            Err(error) => {
                change.session.warn(Warning::Failed(error));
                released.standing.push(paused);
            }
        }
    }
    released.branches = change.talk(|runner| {
        let held = |branch: &RefName| released.standing.iter().any(|paused| paused.holds(branch));
        let was_held = |branch: &RefName| {
            released.resumed.iter().any(|resumed| resumed.paused.holds(branch)) && !held(branch)
        };
        Ok(runner.released(&was_held)?)
    })?;
    Ok(released)
}

/// True for a refusal that stays, however often the runs are asked for again.
fn is_refused(error: &AppError) -> bool {
    let AppError::Talk { error, .. } = error else { return false };
    matches!(**error, TalkError::Change(ChangeError::NotVouched(..)))
}

/// Starts what the installed hook would have started for the branches that nothing holds any more.
pub fn go_on(change: &Change<'_>, released: &Released) -> Result<(), AppError> {
    background::as_hooks_would(change.session, &change.settings, &released.branches)
}

/// Returns how the verb that ended these runs ends.
pub fn end(ended: &Ended) -> Exit {
    ended.signal.map_or(Exit::Done, Exit::of_signal)
}

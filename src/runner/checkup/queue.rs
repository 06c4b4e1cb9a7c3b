//! Branches that wait for a worktree, and why; pauses, which hold branches until they are taken back.

use super::Level::{Ok as Fine, Warning};
use super::{Finding, Findings, Mend, name};
use crate::protocol::event::Event;
use crate::protocol::inbox::{PAUSED, parse_id_ref};
use crate::protocol::text::escape;
use crate::runner::known::ReadPause;
use crate::runner::pending;
use crate::runner::{Runner, RunnerError};
use std::time::{Duration, SystemTime};

/// A branch that waits this long although a worktree is free is forgotten: no process will take it on.
const FORGOTTEN: Duration = Duration::from_secs(10);

impl Runner<'_> {
    pub(super) fn check_queue(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let notes = pending::notes(self.repo);
        if notes.is_empty() {
            return Ok(());
        }
        let size = self.settings.chain_jobs;
        let free = self.free_slots(size)?;
        for note in notes {
            let tip = self.read_tip(&note.branch)?;
            // A branch that a run holds is taken care of.
            if tip.is_none_or(|tip| tip.event.as_ref().is_none_or(Event::is_working)) {
                continue;
            }
            let age = SystemTime::now().duration_since(note.since).unwrap_or_default();
            let tick = Mend::Tick(note.branch.clone());
            if self.settings.hooks_off {
                let since = format!("{} waits since {}s", name(&note.branch), age.as_secs());
                let text = format!("{since}: hooks are off ('aynig.hooks'), only a tick takes it on");
                found.push(Finding::new(Warning, "pending", text).mend(tick));
                continue;
            }
            let waits = format!("{} waits for a worktree since {}s", name(&note.branch), age.as_secs());
            found.push(match free {
                0 => Finding::new(Fine, "pending", format!("{waits}: {}", self.who_has_them(size))),
                _ if age < FORGOTTEN => Finding::new(Fine, "pending", format!("{waits}: one is free now")),
                _ => Finding::new(
                    Warning,
                    "pending",
                    format!("{waits}: one is free, and no runner takes it on"),
                )
                .mend(tick),
            });
        }
        Ok(())
    }

    /// Names each pause that stands: none is an error, but a user who wonders why nothing runs looks here.
    pub(super) fn check_pauses(&self, found: &mut Findings) -> Result<(), RunnerError> {
        for ReadPause { name, id, pause, .. } in self.read_pauses()? {
            let text = format!("{}: paused by {}", pause.held(), pause.by());
            // Only a pause whose ref is named by its id can be taken back by it.
            let id = parse_id_ref(PAUSED, name.as_bytes()).map(|_| id);
            let remote = self.settings.remote.clone();
            found.push(Finding::new(Warning, "paused", text).mend(Mend::Resume { id, remote }));
        }
        Ok(())
    }

    /// Says which runs have the first `size` slots.
    fn who_has_them(&self, size: usize) -> String {
        let pool = self.known_pool();
        let runs = pool.numbers().into_iter().take(size).filter_map(|number| pool.peek(number).run);
        let each = runs.map(|run| {
            let over = if run.lingering { ", whose command has ended" } else { "" };
            format!("run {} on {}{over}", escape(run.run_id.as_bytes()), name(&run.branch_name()))
        });
        let all = each.collect::<Vec<_>>().join("; ");
        if all.is_empty() { "none is free".to_owned() } else { format!("none is free: {all}") }
    }
}

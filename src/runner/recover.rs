//! Ending a lease whose holder is gone.
//!
//! Recovery writes a `stalled` commit with a fresh recovery id, by compare-and-swap on the lease, so two that
//! recover the same lease can't both win. What the run left in a slot of this machine is kept first.
//! Implements K8, K54 (what it used).

use super::report::{Note, Recovered, Report, Verdict};
use super::run_events::usage_trailers;
use super::slot::is_out_of_sight;
use super::{Runner, RunnerError, Tip};
use crate::protocol::accepts::ACCEPTS;
use crate::protocol::body_line::body_said;
use crate::protocol::decide::{Decision, Idle, decide};
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::landing;
use crate::protocol::name::{STALLED, StateName};
use crate::protocol::text::{escape, retry_call, tail_block, with_causes};
use crate::protocol::transition::recovered;
use crate::protocol::waits::AFTER;
use crate::store::RefName;
use crate::store::slots::Locked;
use crate::supervisor::holders;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// How much of what a lease says is quoted, in bytes.
const LEASE_SAID: usize = 3 * 1024;

/// What one look at all branches found.
pub struct LastLook {
    /// The reports of branches whose expired leases were recovered.
    pub recovered: Vec<Report>,
    /// The branches whose wait is over, and those whose cut-off work is to be asked for again (N3), with
    /// their heads.
    pub awaited: Vec<(RefName, ObjectId)>,
}

/// True for a head that says that it waits for other branches, or for messages.
fn may_wait(event: &Event) -> bool {
    let said = [AFTER, ACCEPTS, landing::ONTO];
    said.iter().any(|key| event.message.last(key).is_some())
}

impl Runner<'_> {
    /// Writes `stalled` over an expired lease. Losing that swap is fine: the caller judges again.
    pub(super) fn recover(
        &self,
        branch: &RefName,
        tip: &Tip,
        since: i64,
        report: &mut Report,
    ) -> Result<(), RunnerError> {
        let Some(lease) = self.whole_lease(tip)? else { return Ok(()) };
        let run_id = lease.run_id().unwrap_or("unknown").to_owned();
        let (attempt, unseen) = self.rescue(&run_id, tip, report)?;
        let runner = lease.text(crate::protocol::event::RUNNER_ID).unwrap_or("unknown");
        let mut details = format!(
            "The lease of run {} by runner {} ended {} s ago without an outcome.",
            escape(run_id.as_bytes()),
            escape(runner.as_bytes()),
            self.clock.now().saturating_sub(since),
        );
        let said = body_said(&lease.message);
        if !said.is_empty() {
            // These are the words of the lease's writer, who need not be a runner.
            details += &format!("\n\nIts last lease says:\n\n{}\n", tail_block(said, LEASE_SAID));
        }
        if let Some(attempt) = &attempt {
            details += &format!("\nIts work is kept in {}.", String::from_utf8_lossy(attempt.as_bytes()));
        }
        if let Some(dir) = unseen {
            details += &format!(
                "\nThis runner can't look at its worktree, {}. One that can look there will keep what is in it.",
                escape(dir.as_os_str().as_bytes())
            );
        }
        let retry = retry_call(branch.short(), self.settings.remote.as_deref());
        let does = if attempt.is_some() { "lands it where it was finished, else asks" } else { "asks" };
        details += &format!("\n\n{retry} {does} for it again.");
        if let Some(attempt) = &attempt {
            self.publish(attempt, report);
        }
        let recovery_id = uuid::Uuid::new_v4().to_string();
        let mut message = recovered(&lease, &recovery_id, &details);
        if let Some(trigger) = lease.trigger() {
            let used = self.told_usage(&run_id, trigger);
            message.trailers.extend(usage_trailers(lease.dialect, &used));
        }
        // Any pusher can write a lease that has expired. If it is not signed for this branch, `stalled` is
        // written all the same, or the branch would stay taken; but unsigned, so that it is not this runner's
        // word, and nothing answers it.
        let owed = self.owe(&run_id, branch);
        let commit = match self.not_vouched(branch, tip)? {
            None => self.write(branch, tip.commit.tree, vec![tip.id()], &message)?,
            Some(_) => self.write_unsigned(tip.commit.tree, vec![tip.id()], &message)?,
        };
        if self.advance(branch, tip.id(), commit, "aynig: lease expired")? {
            self.unfollow(&run_id, &[tip.id()]);
            let state = lease.origin_state().map(|s| s.to_string()).unwrap_or_default();
            report.owed.extend(owed);
            report.recovered.push(Recovered { run_id, state, commit, attempt });
        } else {
            // The caller judges the head that is there now; of a remote it has to be fetched.
            self.fresh_tip(branch)?;
        }
        Ok(())
    }

    /// Looks at all branches once: recovers every expired lease among them, and returns those whose wait for
    /// other branches or for a message is over, with their heads. Nothing is dispatched. What else stands in
    /// the way of a branch is not looked at, and no other heads are kept in memory.
    pub fn last_look(&self) -> Result<LastLook, RunnerError> {
        let any_seen = self.any_seen();
        let (mut unseen, mut expired, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        self.store.visit_heads("refs/heads/", &mut |branch, read| {
            let Some(tip) = read.ok().map(Tip::from) else { return };
            let Some(event) = tip.event.as_ref().filter(|_| self.may_tick(&branch)) else { return };
            if !event.is_working() {
                if may_wait(event) {
                    waiting.push((branch, tip));
                }
                return;
            }
            let seen = if any_seen { self.first_seen(&branch, tip.id()) } else { None };
            match decide(tip.head(), seen, self.clock.now(), self.policy(false)) {
                Decision::Leased { observed: Some(_), .. } if seen.is_none() => {
                    unseen.push((branch, tip.id()))
                }
                Decision::Expired { since, .. } => expired.push((branch, tip, since)),
                Decision::Nothing(_)
                | Decision::Leased { .. }
                | Decision::Deliver { .. }
                | Decision::Dispatch { .. } => {}
            }
        })?;
        for (branch, head) in unseen {
            // Where no other runner looks, the time for which this lease is observed begins with this look.
            self.note_seen(&branch, head)?;
        }
        expired.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
        let (mut reports, mut again) = (Vec::new(), Vec::new());
        for (branch, tip, since) in expired {
            let mut report = Report::new(&branch);
            // The branch waits for `retry`, even where a command answers `stalled`.
            let waits = StateName::new(STALLED).map(|state| Idle::NoCommand { state });
            let recovered = self.recover(&branch, &tip, since, &mut report);
            if recovered.is_ok()
                && let Some(tip) = self.read_tip(&branch)?.filter(|tip| self.may_route_again(tip))
            {
                again.push((branch.clone(), tip.id()));
            }
            report.verdict = match recovered {
                Ok(()) => Verdict::Idle(waits.unwrap_or(Idle::NoState)),
                Err(error) => Verdict::Failed(error),
            };
            if !report.recovered.is_empty() {
                reports.push(report);
            }
        }
        let mut awaited = self.awaited(waiting);
        awaited.append(&mut again);
        Ok(LastLook { recovered: reports, awaited })
    }

    /// Keeps what a dead run left in one of this repository's slots. Returns where work of the run is kept,
    /// if that stands on this lease, and the slot's folder where this process can't look at it, as it can't at
    /// another account's: then the slot stays the run's.
    fn rescue(
        &self,
        run_id: &str,
        lease: &Tip,
        report: &mut Report,
    ) -> Result<(Option<RefName>, Option<PathBuf>), RunnerError> {
        let (pool, mut unseen) = (self.known_pool(), None);
        for number in pool.known() {
            if pool.peek(number).run.is_none_or(|run| run.run_id != run_id) {
                continue;
            }
            match pool.lock(number)? {
                Locked::Taken(mut slot) => match self.settle(&mut slot, report) {
                    Ok(_) => {}
                    Err(error) if is_out_of_sight(&slot, &error) => {
                        report.note_once(Note::SlotLeft(slot.dir().to_owned(), with_causes(&error)));
                        unseen = Some(slot.dir().to_owned());
                    }
                    Err(error) => return Err(error),
                },
                // A command may have stopped its guardian and its runner, which has the slot.
                Locked::InUse => holders::end_stopped(&pool.borrow(number).hold_path()),
                Locked::Denied(error) => {
                    let dir = pool.borrow(number).dir().to_owned();
                    report.note_once(Note::SlotLeft(dir.clone(), with_causes(&error)));
                    unseen = Some(dir);
                }
            }
        }
        Ok((self.attempt_of(run_id, lease)?.map(|(name, _)| name), unseen))
    }
}

/// Returns the id of the run that a `stalled` head ended.
pub(crate) fn stalled_run(event: &Event) -> Option<&str> {
    event.text(crate::protocol::event::STALLED_RUN)
}

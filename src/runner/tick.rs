//! One evaluation of one branch, in the contract's order.
//!
//! The steps are: read the head, resolve the command, decide, prepare (a slot), claim, run, complete, swap.
//! After an expired lease is recovered, or where the head moved while the runner waited, the branch is judged
//! again from the new head. In addition, a head that came from a remote is evaluated on that remote, work of
//! a flow that was cut off is asked for again, messages that wait are delivered, and a request to land is
//! answered. Implements K6-K9, K13, K34, K35.

use super::active_run::{ActiveRun, Program};
use super::inbox::Inbox;
use super::known::{Around, Known};
use super::lease::Claimed;
use super::report::{Note, Ran, Refusal, Report, Skip, Verdict};
use super::resolve::Resolved;
use super::run::RunEnd;
use super::slot::Occupants;
use super::{Runner, RunnerError, Tip};
use crate::protocol::complete::complete;
use crate::protocol::decide::{Decision, Idle, decide};
use crate::protocol::id::ObjectId;
use crate::protocol::landing::Request;
use crate::protocol::name::StateName;
use crate::protocol::resemble::missed_state;
use crate::store::command_copy::Copied;
use crate::store::command_start::Unfit;
use crate::store::command_tree::Command;
use crate::store::slots::Slot;
use crate::store::{RefName, StoreError};
use crate::store::{command_copy, config};

/// How often a head that has not changed is judged again. A tick that has come no further by then ends as a
/// lost race, and leaves the branch to the next tick.
const SAME_HEAD_MAX: usize = 100;

/// What came of a step towards running a command.
enum Step<T> {
    /// The step is done, with this result.
    Done(Box<T>),
    /// The branch's head moved meanwhile, so the branch is judged again.
    JudgeAgain,
    /// The evaluation ends with this verdict.
    End(Box<Verdict>),
}

/// The heads that an evaluation has judged.
#[derive(Default)]
struct Heads {
    last: Option<ObjectId>,
    again: usize,
}

impl Heads {
    /// Notes the head that is judged next; true where it was judged so often that the tick comes no further.
    fn stand_still(&mut self, head: ObjectId) -> bool {
        self.again = if self.last.replace(head) == Some(head) { self.again + 1 } else { 0 };
        self.again > SAME_HEAD_MAX
    }
}

fn end<T>(verdict: Verdict) -> Result<Step<T>, RunnerError> {
    Ok(Step::End(Box::new(verdict)))
}

impl Runner<'_> {
    /// Evaluates a branch once. With `dry`, only reports what would be done.
    pub fn tick(&self, branch: &RefName, dry: bool) -> Report {
        let mut report = Report::new(branch);
        let verdict = self.evaluate(branch, dry, &mut report);
        report.verdict = verdict.unwrap_or_else(Verdict::Failed);
        report
    }

    fn evaluate(&self, branch: &RefName, dry: bool, report: &mut Report) -> Result<Verdict, RunnerError> {
        report.remote = self.settings.remote.clone();
        if !self.may_tick(branch) {
            return Ok(Verdict::Refused(Refusal::Branch(config::key_of(self.repo.site.dir(), "branches"))));
        }
        let (mut heads, mut in_the_way) = (Heads::default(), Vec::new());
        loop {
            if self.interrupt.signal().is_some() {
                return Ok(Verdict::Skipped(Skip::Interrupted));
            }
            report.head = None;
            let Some(tip) = self.read_head(branch)? else { return Ok(Verdict::Skipped(Skip::Missing)) };
            report.head = Some(tip.id());
            if heads.stand_still(tip.id()) {
                return Ok(Verdict::LostRace);
            }
            if let Some(remote) = self.source_of(&tip) {
                return self.elsewhere(Some(&remote), |runner| {
                    runner.store.refresh()?;
                    runner.evaluate(branch, dry, report)
                });
            }
            match self.act_on(branch, tip, dry, &mut in_the_way, report)? {
                Step::Done(ran) => return Ok(Verdict::Ran(ran)),
                Step::JudgeAgain => {}
                Step::End(verdict) => return Ok(*verdict),
            }
        }
    }

    /// Does what a head asks for.
    fn act_on(
        &self,
        branch: &RefName,
        tip: Tip,
        dry: bool,
        in_the_way: &mut Vec<(RefName, RefName)>,
        report: &mut Report,
    ) -> Result<Step<Ran>, RunnerError> {
        // Work of a flow had been cut off: its trigger was written once more, and is the head now.
        if !dry && self.route_again(branch, &tip)? {
            return Ok(Step::JudgeAgain);
        }
        let command = self.resolve(&tip)?;
        let around = Around::one_without(in_the_way);
        let known = self.known(branch, &tip, matches!(command, Resolved::Found(_)), &around)?;
        if !dry {
            self.note_look(branch, &known.inbox);
        }
        match (self.decide(branch, &tip, &command, &known)?, command) {
            (_, Resolved::Refused(refusal)) => return end(Verdict::Refused(refusal)),
            (_, _) if !dry && !known.inbox.over.is_empty() => {
                if let Err(error) = self.take_off(&known.inbox.over) {
                    in_the_way.extend(self.leave(&known.inbox, error, report)?);
                }
            }
            (Decision::Nothing(idle), command) => {
                report.notes.extend(known.passed_over());
                return end(self.idle(&tip, idle, command, report)?);
            }
            (Decision::Deliver { state, take }, _) => {
                match self.deliver(branch, &tip, (state, take), &known.inbox.refs, dry, report) {
                    Ok(Some(verdict)) => return end(verdict),
                    Ok(None) => {}
                    Err(error) => in_the_way.extend(self.leave(&known.inbox, error, report)?),
                }
            }
            (Decision::Leased { until, observed }, _) => {
                return end(self.leased(&tip, until, observed, &Occupants::default(), report));
            }
            (Decision::Expired { .. }, _) if dry => return end(Verdict::WouldRecover),
            (Decision::Expired { since, .. }, _) => self.recover(branch, &tip, since, report)?,
            (Decision::Dispatch { state }, Resolved::Found(command)) => {
                return self.dispatch(branch, tip, state, command, dry, report);
            }
            (Decision::Dispatch { state }, _) => return end(Verdict::Idle(Idle::NoCommand { state })),
        }
        Ok(Step::JudgeAgain)
    }

    /// Notes the messages that stay where they are because another ref is in the way of their new place, and
    /// returns each with that ref. Returns any other error as it is.
    fn leave(
        &self,
        inbox: &Inbox,
        error: RunnerError,
        report: &mut Report,
    ) -> Result<Vec<(RefName, RefName)>, RunnerError> {
        let in_the_way = self.in_the_way(inbox.refs.iter().chain(&inbox.over), &error)?;
        let named = in_the_way.iter().map(|(name, other)| {
            Note::PassedOver(name.clone(), format!("'{other}' is in the way of its place there"))
        });
        report.notes.extend(named);
        if in_the_way.is_empty() { Err(error) } else { Ok(in_the_way) }
    }

    /// Runs the command that a head asks for, from the checks before the claim to the end of the run; answers
    /// a head that is a request to land.
    fn dispatch(
        &self,
        branch: &RefName,
        tip: Tip,
        state: StateName,
        command: Command,
        dry: bool,
        report: &mut Report,
    ) -> Result<Step<Ran>, RunnerError> {
        if let Some(verdict) = self.preflight(branch, &tip)? {
            return end(verdict);
        }
        if dry {
            return end(Verdict::WouldRun { state, command: command.path });
        }
        if let Some(request) = tip.event.as_ref().and_then(Request::of) {
            return match self.answer_request(branch, &tip, &request, report)? {
                Some(verdict) => end(verdict),
                None => Ok(Step::JudgeAgain),
            };
        }
        let prepared = match self.prepare(branch, &tip, command, report)? {
            Step::Done(prepared) => *prepared,
            Step::JudgeAgain => return Ok(Step::JudgeAgain),
            Step::End(verdict) => return Ok(Step::End(verdict)),
        };
        let claim = match self.claim(branch, tip, state)? {
            Claimed::Held(claim) => *claim,
            Claimed::No(verdict) => return end(*verdict),
        };
        if let Some(verdict) = self.paused_since(branch, &claim, report)? {
            return end(verdict);
        }
        let dir = self.run_dir(&claim.run.id);
        report.owed.extend(self.owe(&claim.run.id, branch));
        let ran = run_to_end(ActiveRun::new(self, branch, claim, prepared, report));
        // The branches that the run noted are read only now that no runner is at work on the run: a process
        // that sets a branch from now on notifies a runner itself.
        report.wake = super::pending::read_wake(&dir);
        Ok(Step::Done(Box::new(ran?)))
    }
}

/// Takes a run from its claim to the swap that ends it.
fn run_to_end(mut run: ActiveRun<'_>) -> Result<Ran, RunnerError> {
    let mut ended = match run.run()? {
        RunEnd::Ended(ended) => ended,
        RunEnd::NotSetUp(why) => return run.end_unstarted(why),
    };
    loop {
        let head = run.head_at_end(&mut ended)?;
        let declared = run.meant(&ended.exit, &ended.declared)?;
        let completion = complete(run.claim.run.dialect, &ended.exit, declared, head);
        let Some(completion) = run.land(completion, head, &mut ended)? else { continue };
        if let Some(ran) = run.swap(completion, head, &mut ended)? {
            return Ok(ran);
        }
    }
}

impl Runner<'_> {
    fn read_head(&self, branch: &RefName) -> Result<Option<Tip>, StoreError> {
        match self.read_tip(branch)? {
            Some(tip) => Ok(Some(tip)),
            // A remote that can't read its refs for a moment lists none, so it is asked again about this
            // branch.
            None => self.fresh_tip(branch),
        }
    }

    fn decide(
        &self,
        branch: &RefName,
        tip: &Tip,
        command: &Resolved,
        known: &Known,
    ) -> Result<Decision, RunnerError> {
        let seen = self.first_seen(branch, tip.id());
        let has_command = matches!(command, Resolved::Found(_));
        let decision =
            decide(tip.head(), seen, self.clock.now(), self.policy_with(has_command, known.facts()));
        if let Decision::Leased { observed: Some(_), .. } = decision
            && seen.is_none()
        {
            self.note_seen(branch, tip.id())?;
        }
        Ok(decision)
    }

    /// Returns the verdict about a head that calls for nothing, and notes what its author may have meant.
    fn idle(
        &self,
        tip: &Tip,
        idle: Idle,
        command: Resolved,
        report: &mut Report,
    ) -> Result<Verdict, RunnerError> {
        if let Resolved::Unusable { path, why } = command {
            return Ok(self.unusable(tip, idle, path, why));
        }
        let note = match &idle {
            Idle::NoCommand { state } => self.command_elsewhere(tip, state)?,
            Idle::NoState => missed_state(&tip.commit.message).map(Note::NearlyAnEvent),
            Idle::InvalidState { .. } | Idle::HopLimit { .. } | Idle::Held { .. } => None,
        };
        report.notes.extend(note);
        Ok(Verdict::Idle(idle))
    }

    /// Prepares what is needed before a claim: folders that can be written to, a slot, and the copy of the
    /// commands.
    fn prepare(
        &self,
        branch: &RefName,
        tip: &Tip,
        command: Command,
        report: &mut Report,
    ) -> Result<Step<(Slot, Program)>, RunnerError> {
        self.store.listen_where_contested();
        if self.store.has_moved(branch, tip.id()) {
            return end(Verdict::LostRace);
        }
        self.check_machine()?;
        let slot = self.take_slot(branch, tip, report)?;
        if slot.is_none() && self.interrupt.signal().is_some() {
            return end(Verdict::Skipped(Skip::Interrupted));
        }
        if slot.is_some() {
            // While the slot is locked nothing removes the folders, but an uninstallation may have done so
            // before.
            self.ready()?;
        }
        if self.store.known_tip(branch)? != Some(tip.id()) {
            return Ok(Step::JudgeAgain);
        }
        let Some(slot) = slot else { return end(Verdict::NoSlot) };
        let stops = || self.interrupt.signal().is_some();
        let copied = command_copy::materialize(self.repo, &*self.store, command.tree, &stops);
        let place = match copied.map_err(|error| self.no_copy(error))? {
            Copied::At(place) => place,
            Copied::TooMany => return end(self.unusable(tip, Idle::NoState, command.path, Unfit::TooMany)),
            Copied::Stopped => return end(Verdict::Skipped(Skip::Interrupted)),
        };
        // The wait for a slot may have been long, and trust may have been changed meanwhile.
        if !self.mandate.holds() {
            return end(Verdict::Refused(Refusal::Changed));
        }
        Ok(Step::Done(Box::new((slot, Program { command, place }))))
    }
}

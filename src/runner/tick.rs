//! One evaluation of one branch, in the contract's order.
//!
//! read head, decide, resolve command, (slot), claim, run, complete, swap. An expired lease is recovered
//! and the branch judged again from the new head; a head that moved while we waited is judged again too.
//! Implements K6-K9, K13, K34, K35.

use super::report::{Note, Refusal, Report, Skip, Verdict};
use super::settings::CommandsFrom;
use super::slot::Occupants;
use super::supervise::Program;
use super::{Runner, RunnerError, Tip};
use crate::protocol::decide::{Decision, Idle, Observed, decide};
use crate::protocol::dialect::Dialect;
use crate::protocol::event::SOURCE;
use crate::protocol::id::ObjectId;
use crate::protocol::name::StateName;
use crate::protocol::resemble::missed_state;
use crate::store::command_start::Unfit;
use crate::store::command_tree::{self, Command, Lookup};
use crate::store::{RefName, StoreError, pattern};
use crate::store::{command_copy, command_start, config};
use std::cell::RefCell;

impl Runner<'_> {
    /// Evaluates a branch once. `dry` says what would be done and does nothing.
    pub fn tick(&self, branch: &RefName, dry: bool) -> Report {
        let mut report = Report::new(branch);
        let verdict = self.evaluate(branch, dry, &mut report);
        report.verdict = verdict.unwrap_or_else(Verdict::Failed);
        report
    }

    fn evaluate(&self, branch: &RefName, dry: bool, report: &mut Report) -> Result<Verdict, RunnerError> {
        report.remote = self.settings.remote.clone();
        if !self.settings.branches.is_empty() && !pattern::any(&self.settings.branches, branch) {
            return Ok(Verdict::Refused(Refusal::Branch(config::key_of(self.repo.site.dir(), "branches"))));
        }
        loop {
            if self.interrupt.signal().is_some() {
                return Ok(Verdict::Skipped(Skip::Interrupted));
            }
            let tip = match self.read_tip(branch)? {
                Some(tip) => tip,
                // A remote that can't read its refs for a moment lists none: it is asked for this one.
                None => match self.fresh_tip(branch)? {
                    Some(tip) => tip,
                    None => return Ok(Verdict::Skipped(Skip::Missing)),
                },
            };
            if let Some(remote) = self.source_of(&tip) {
                return self.elsewhere(Some(&remote), |runner| {
                    runner.store.refresh()?;
                    runner.evaluate(branch, dry, report)
                });
            }
            let (decision, found) = match self.decide(branch, &tip)? {
                Ok(decided) => decided,
                Err(refusal) => return Ok(Verdict::Refused(refusal)),
            };
            match decision {
                Decision::Nothing(idle) => {
                    let Some(Lookup::Unusable { path, why }) = found else {
                        match &idle {
                            Idle::NoCommand { state } => {
                                report.notes.extend(self.command_elsewhere(&tip, state)?);
                            }
                            Idle::NoState => {
                                let missed = missed_state(&tip.commit.message);
                                report.notes.extend(missed.map(Note::NearlyAnEvent));
                            }
                            Idle::InvalidState { .. } | Idle::HopLimit { .. } => {}
                        }
                        return Ok(Verdict::Idle(idle));
                    };
                    return Ok(self.unusable(&tip, idle, path, why));
                }
                Decision::Leased { until, observed } => {
                    return Ok(self.leased(&tip, until, observed, &Occupants::default(), report));
                }
                Decision::Expired { since, .. } => {
                    if dry {
                        return Ok(Verdict::WouldRecover);
                    }
                    self.recover(branch, &tip, since, report)?;
                }
                Decision::Dispatch { state } => {
                    let Some(Lookup::Found(command)) = found else {
                        return Ok(Verdict::Idle(Idle::NoCommand { state }));
                    };
                    if let Some(verdict) = self.in_the_way(branch, &tip)? {
                        return Ok(verdict);
                    }
                    if dry {
                        return Ok(Verdict::WouldRun { state, command: command.path });
                    }
                    if let Some(verdict) = self.dispatch(branch, tip, state, command, report)? {
                        return Ok(verdict);
                    }
                }
            }
        }
    }

    /// The remote that a local head says it came from, where that is configured here: what is decided about
    /// such a branch is decided there (K30). An address from a commit is never used.
    pub(super) fn source_of(&self, tip: &Tip) -> Option<String> {
        let event = tip.event.as_ref().filter(|_| self.settings.remote.is_none())?;
        let source = event.text(SOURCE).and_then(|source| source.strip_prefix("git:"));
        // The kernel contract's runner takes the bare name from a trailer of its own.
        let pinned = || match event.dialect {
            Dialect::Aynig => {
                event.message.last("aynig-remote").and_then(|name| std::str::from_utf8(name).ok())
            }
            Dialect::Dwp => None,
        };
        let name = source.or_else(pinned)?;
        self.repo.has_remote(name).then(|| name.to_owned())
    }

    /// Judges a head, and says which command was found for its state. The inner error is a refusal.
    #[allow(clippy::type_complexity)]
    fn decide(
        &self,
        branch: &RefName,
        tip: &Tip,
    ) -> Result<Result<(Decision, Option<Lookup>), Refusal>, RunnerError> {
        let found = RefCell::new(Ok(None));
        let has_command = |state: &StateName| {
            let lookup = self.lookup(tip, state);
            let is = matches!(lookup, Ok(Ok(Lookup::Found(_))));
            *found.borrow_mut() = lookup.map(Some);
            is
        };
        let seen = self.first_seen(branch, tip.id());
        let decision = decide(tip.head(), seen, self.clock.now(), self.policy(&has_command));
        if let Decision::Leased { observed: Some(_), .. } = decision
            && seen.is_none()
        {
            self.note_seen(branch, tip.id())?;
        }
        match found.into_inner()? {
            Some(Err(refusal)) => Ok(Err(refusal)),
            Some(Ok(lookup)) => Ok(Ok((decision, Some(lookup)))),
            None => Ok(Ok((decision, None))),
        }
    }

    /// The `.aynig` tree that commands for this head come from; `None` where it has none.
    pub fn command_tree(&self, tip: &Tip) -> Result<Result<Option<ObjectId>, Refusal>, RunnerError> {
        let tree = match &self.settings.commands_from {
            CommandsFrom::Nowhere => return Ok(Err(Refusal::NotTrusted)),
            CommandsFrom::Branch => tip.commit.tree,
            CommandsFrom::Ref(name) => match self.commands_tip(name)? {
                Some(id) => self.store.read_commit(id)?.tree,
                None => return Ok(Err(Refusal::NoCommandsRef(name.clone()))),
            },
        };
        Ok(Ok(command_tree::find(&*self.store, tree)?))
    }

    /// What the ref holds that commands come from. Where only a commit named the remote (K30) it is this
    /// repository's: whoever can push must not choose whose commands are trusted (K33).
    pub fn commands_tip(&self, name: &RefName) -> Result<Option<ObjectId>, RunnerError> {
        let tip =
            if self.settings.commands_here { self.scratch.tip(name) } else { self.store.known_tip(name) };
        Ok(tip?)
    }

    /// Looks for the command of a state.
    pub fn lookup(&self, tip: &Tip, state: &StateName) -> Result<Result<Lookup, Refusal>, RunnerError> {
        let tree = match self.command_tree(tip)? {
            Ok(Some(tree)) => tree,
            Ok(None) => return Ok(Ok(Lookup::Missing)),
            Err(refusal) => return Ok(Err(refusal)),
        };
        Ok(Ok(self.lookup_in(tree, state)?))
    }

    /// Looks for the command of a state in this `.aynig` tree. One that can't be started here is not usable:
    /// that is known before a claim, and costs the branch nothing.
    pub(super) fn lookup_in(&self, tree: ObjectId, state: &StateName) -> Result<Lookup, StoreError> {
        let found = command_tree::lookup(&*self.store, tree, self.settings.whose(), state)?;
        let Lookup::Found(command) = &found else { return Ok(found) };
        let why = self.unfit(&command.path, command.file).filter(|why| why.is_certain());
        // What it is started with may start it otherwise, or elsewhere.
        let why = why.filter(|_| self.settings.exec.is_empty());
        let path = command.path.clone();
        Ok(why.map_or(found, |why| Lookup::Unusable { path, why }))
    }

    /// What keeps the file of a command from being started as it is.
    pub(super) fn unfit(&self, path: &str, file: ObjectId) -> Option<Unfit> {
        let search = self.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| &**value);
        let why = command_start::judge(&*self.store, file, path, search);
        // With a prefix program it is started elsewhere: what is missing here may be there.
        why.filter(|why| self.settings.exec.is_empty() || !why.is_of_machine())
    }

    pub(super) fn leased(
        &self,
        tip: &Tip,
        until: i64,
        observed: Option<Observed>,
        occupants: &Occupants,
        report: &mut Report,
    ) -> Verdict {
        if observed.is_some_and(|o| o != Observed::Policy) {
            report.notes.push(Note::MalformedLease);
        }
        let text = |key| tip.event.as_ref().and_then(|e| e.text(key)).map(str::to_owned);
        Verdict::Leased {
            until,
            left: until - self.clock.now(),
            run_id: text(crate::protocol::event::RUN_ID),
            runner_id: text(crate::protocol::event::RUNNER_ID),
            malformed: observed.is_some(),
            abandoned: tip.event.as_ref().and_then(|lease| self.abandoned(lease, occupants)),
        }
    }

    /// A state whose command can't be started.
    pub(super) fn unusable(&self, tip: &Tip, idle: Idle, path: String, why: Unfit) -> Verdict {
        match tip.event.as_ref().and_then(|e| e.state_name()).cloned() {
            Some(state) => Verdict::Unusable { state, path, why, home: self.home() },
            None => Verdict::Idle(idle),
        }
    }

    /// Where a command of that name is near, but not where it counts (K13), or one of nearly that name.
    pub(super) fn command_elsewhere(
        &self,
        tip: &Tip,
        state: &StateName,
    ) -> Result<Option<Note>, RunnerError> {
        let path = format!("command/{state}");
        if let CommandsFrom::Ref(_) = &self.settings.commands_from
            && let Some(tree) = command_tree::find(&*self.store, tip.commit.tree)?
            && command_tree::lookup(&*self.store, tree, self.settings.whose(), state)? != Lookup::Missing
        {
            return Ok(Some(Note::NotInRef(path, self.home())));
        }
        if let Some(dir) = &self.repo.main_dir
            && dir.join(command_tree::FOLDER).join(&path).is_file()
        {
            return Ok(Some(Note::NotCommitted(path, self.home())));
        }
        let alike = self.alike(state, tip.commit.tree)?;
        Ok((!alike.is_empty()).then(|| Note::NearlyAState(state.clone(), alike)))
    }

    /// From a head that asks for a command to what became of it; `None`: the head moved meanwhile.
    fn dispatch(
        &self,
        branch: &RefName,
        tip: Tip,
        state: StateName,
        command: Command,
        report: &mut Report,
    ) -> Result<Option<Verdict>, RunnerError> {
        if self.store.has_moved(branch, tip.id()) {
            return Ok(Some(Verdict::LostRace));
        }
        self.ready()?;
        let Some(slot) = self.take_slot(branch, &tip, report)? else {
            return self.no_slot(branch, &tip);
        };
        // Under the slot's lock nobody takes these away; until then an uninstallation may have.
        self.ready()?;
        let place = command_copy::materialize(self.repo, &*self.store, command.tree)?;
        if self.store.known_tip(branch)? != Some(tip.id()) {
            return Ok(None);
        }
        // It may have been a long wait.
        if !self.mandate.holds() {
            return Ok(Some(Verdict::Refused(Refusal::Changed)));
        }
        let claimed = match self.claim(branch, tip, state)? {
            Ok(claimed) => claimed,
            Err(verdict) => return Ok(verdict),
        };
        report.claimed = Some(claimed.run.id.clone());
        let program = Program { command, place };
        Ok(Some(Verdict::Ran(self.run(branch, claimed, slot, &program, report)?)))
    }

    /// What keeps a head with a command from being dispatched.
    fn in_the_way(&self, branch: &RefName, tip: &Tip) -> Result<Option<Verdict>, RunnerError> {
        if let Some(refusal) = self.not_vouched(branch, tip)? {
            return Ok(Some(Verdict::Refused(refusal)));
        }
        let busy = self.busy_worktree(branch)?;
        Ok(busy.map(|(busy, dir)| Verdict::Skipped(Skip::Busy(busy, dir))))
    }

    /// Why no slot was taken: the head moved (judge again), or all are busy and nobody waits.
    fn no_slot(&self, branch: &RefName, tip: &Tip) -> Result<Option<Verdict>, RunnerError> {
        if self.interrupt.signal().is_some() {
            return Ok(Some(Verdict::Skipped(Skip::Interrupted)));
        }
        if self.store.known_tip(branch)? != Some(tip.id()) {
            return Ok(None);
        }
        Ok(Some(Verdict::NoSlot))
    }
}

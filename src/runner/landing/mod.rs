//! Landing a branch on another: from the request to the candidate that is checked. `history` makes the commit
//! that the target is to hold, `finish` lands it.
//!
//! A request is answered when its turn comes, from what both branches hold then. The candidate is one commit
//! on the branch, with the tree that the target would have, and is dispatched as any state is. While one
//! candidate for a target is being checked, the next request for that target waits, as for `dwp-after`. If
//! two were checked at a time all the same, one wins the swap of the target and the other branch asks again.
//! If no candidate can be made, the branch is set `stalled` with the reason. Implements K60.

mod finish;
mod history;

use super::known::Around;
use super::move_branch::{Moved, blocked_notes};
use super::report::{Note, Refusal, Report, Verdict};
use super::settings::CommandsFrom;
use super::{Runner, RunnerError, Tip};
use crate::protocol::decide::{Decision, Unmet, decide, unmet};
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::landing::{self, Candidate, LANDED, NotLanded, Request, Rules};
use crate::protocol::message::Message;
use crate::protocol::name::StateName;
use crate::protocol::text::retry_call;
use crate::protocol::waits::{After, Want};
use crate::store::command_tree;
use crate::store::{RefName, StoreError, config, pattern};
use history::Built;

/// The reflog message of an event that the runner writes on the branch.
const SAID: &str = "aynig: land";
/// The most bytes that a target's `.aynig/land` may have.
const RULES_MAX: u64 = 64 << 10;

/// A target branch as it was read, with its rules.
pub(crate) struct Target {
    pub name: RefName,
    pub tip: Tip,
    /// The target's rules, or what is wrong with them; `None` if it has none.
    pub rules: Option<Result<Rules, String>>,
}

impl Target {
    /// Returns the rules if the target has any that can be used.
    pub(crate) fn usable(&self) -> Option<&Rules> {
        self.rules.as_ref().and_then(|rules| rules.as_ref().ok())
    }
}

/// Returns a state's name that this program itself defines.
fn own(name: &str) -> Result<StateName, RunnerError> {
    StateName::new(name).map_err(|why| RunnerError::Message { cause: why.to_string() })
}

fn unique() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Where a head's request to land is answered.
pub(super) enum AnsweredBy {
    /// The head is no such request.
    NoRequest,
    /// Nowhere: no rules answer it.
    NoRules,
    /// At this target, by the command of this state.
    Check(Box<Tip>, StateName),
}

impl Runner<'_> {
    /// Returns why this runner may land nothing on a branch; `None` if it may. Without `aynig.landOnto` it
    /// may only where those who write requests are trusted with code (`commandsFrom=branch`).
    pub(crate) fn may_land_on(&self, onto: &RefName) -> Option<Refusal> {
        let patterns = &self.settings.land_onto;
        let may = match (patterns.is_empty(), &self.settings.commands_from) {
            (false, _) => pattern::any(patterns, onto),
            (true, CommandsFrom::Branch) => true,
            (true, CommandsFrom::Ref(_) | CommandsFrom::Nowhere) => false,
        };
        let key = || config::key_of(self.repo.site.dir(), "landOnto");
        (!may).then(|| Refusal::Target { onto: onto.clone(), key: key() })
    }

    /// Reads a target as it was last fetched; `None` if it does not exist.
    pub(crate) fn target(&self, name: &RefName) -> Result<Option<Target>, StoreError> {
        let Some(tip) = self.read_tip(name)?.filter(|_| name.is_valid()) else { return Ok(None) };
        let folder = command_tree::find(&*self.store, tip.commit.tree)?;
        let entries = folder.map(|folder| self.store.read_tree(folder)).transpose()?.unwrap_or_default();
        let file =
            entries.into_iter().find(|entry| entry.name == landing::RULES.as_bytes() && entry.is_file());
        let text = file.map(|file| self.store.read_bounded(file.id, RULES_MAX)).transpose()?;
        let rules = text.map(|text| match text {
            Some(text) => Rules::parse(&text),
            None => Err("it is too long".to_owned()),
        });
        Ok(Some(Target { name: name.clone(), tip, rules }))
    }

    /// Finds where a request is answered: the target, and the state that checks there. The target's commands
    /// stand for those of the candidate, which does not exist yet.
    pub(super) fn answered_by(&self, tip: &Tip) -> Result<AnsweredBy, StoreError> {
        let Some(request) = tip.event.as_ref().and_then(Request::of) else {
            return Ok(AnsweredBy::NoRequest);
        };
        let target = self.target(&RefName::branch(&request.onto))?;
        let found = target.and_then(|target| Some((target.usable()?.check.clone(), target.tip)));
        Ok(found.map_or(AnsweredBy::NoRules, |(check, tip)| AnsweredBy::Check(Box::new(tip), check)))
    }

    /// Returns what is missing of what this head waits for. A branch that can't be read, such as a symbolic
    /// ref, is in no known state.
    fn unmet(&self, event: &Event) -> Option<Unmet> {
        unmet(After::of(event), |want| {
            let name = RefName::branch(&want.branch);
            let tip = if name.is_valid() { self.read_tip(&name).ok().flatten() } else { None };
            tip.as_ref().and_then(|tip| tip.event.as_ref()).and_then(Event::state_name) == Some(&want.state)
        })
    }

    /// Returns the branches that a head still waits for: those that it names or, for a request to land, one
    /// that is being checked for the same target. `None` if it waits for none.
    pub(super) fn queued(&self, event: &Event, around: &Around) -> Result<Option<Unmet>, RunnerError> {
        let unmet = self.unmet(event);
        let Some(request) = Request::of(event).filter(|_| unmet.is_none()) else { return Ok(unmet) };
        let first = around.landings(self)?.iter().find(|(onto, _)| *onto == request.onto);
        let Some((_, branch)) = first else { return Ok(None) };
        let want = Want { branch: branch.short().to_vec(), state: own(LANDED)? };
        Ok(Some(Unmet { missing: vec![want], unreadable: Vec::new() }))
    }

    /// True where a branch with this head has landed since a commit asked for it, whatever came then. A command can
    /// write `landed` too: that is no event of a landing.
    pub fn has_landed_since(&self, tip: &Tip, request: ObjectId) -> Result<bool, StoreError> {
        let is_landed = |tip: &Tip| {
            let event = tip.event.as_ref().filter(|event| landing::is_of_a_landing(event));
            event.and_then(Event::state_name).is_some_and(|state| state.as_str() == LANDED)
        };
        // An older landing is none of this request's, which may be the head itself, or on the branch no more.
        if tip.id() == request || !self.descends(request, tip.id())? {
            return Ok(false);
        }
        Ok(is_landed(tip) || self.below(tip, &[request])?.iter().any(is_landed))
    }

    /// Returns the branch whose check has to end before this branch's begins; `None` if there is none.
    pub fn lands_behind(&self, branch: &RefName) -> Result<Option<RefName>, RunnerError> {
        let Some(tip) = self.fresh_tip(branch)? else { return Ok(None) };
        let Some(event) = tip.event.as_ref().filter(|event| self.unmet(event).is_none()) else {
            return Ok(None);
        };
        let Some(request) = Request::of(event) else { return Ok(None) };
        self.store.refresh()?;
        Ok(self.landings()?.into_iter().find(|(onto, _)| *onto == request.onto).map(|(_, first)| first))
    }

    /// Returns the candidates that runs hold at this moment: for each the name of its target, without
    /// `refs/heads/`, and its branch.
    pub(super) fn landings(&self) -> Result<Vec<(Vec<u8>, RefName)>, StoreError> {
        let mut found = Vec::new();
        self.store.visit_heads("refs/heads/", &mut |branch, read| {
            let Some(tip) = read.ok().map(Tip::from) else { return };
            let Some(event) = tip.event.as_ref().filter(|event| event.is_working()) else { return };
            let Some(onto) = Candidate::of(event).map(|candidate| candidate.onto) else { return };
            let judged = decide(tip.head(), None, self.clock.now(), self.policy(false));
            if matches!(judged, Decision::Leased { .. }) {
                found.push((onto, branch));
            }
        })?;
        found.sort();
        Ok(found)
    }

    /// Answers a request with a candidate that is to be checked. `None`: the branch is to be judged again.
    pub(super) fn answer_request(
        &self,
        branch: &RefName,
        tip: &Tip,
        request: &Request,
        report: &mut Report,
    ) -> Result<Option<Verdict>, RunnerError> {
        let name = RefName::branch(&request.onto);
        if let Some(refusal) = self.may_land_on(&name) {
            return Ok(Some(Verdict::Refused(refusal)));
        }
        if !self.mandate.holds() {
            return Ok(Some(Verdict::Refused(Refusal::Changed)));
        }
        // The candidate is made from what the target holds now.
        self.fresh_tip(&name)?;
        let Some(target) = self.target(&name)?.filter(|_| name != *branch) else {
            return self.not_landed((branch, tip), &name, NotLanded::NoTarget, report);
        };
        if target.tip.event.as_ref().is_some_and(Event::is_working) {
            return self.not_landed((branch, tip), &name, NotLanded::Leased, report);
        }
        let Some(rules) = target.usable() else { return Ok(None) };
        let history = request.history.unwrap_or(rules.history);
        let signed = self.signs_landed();
        let commit = match self.build(branch, &target, self.work_of(tip)?, history, signed)? {
            Built::Commit(commit) => commit,
            Built::Conflict(paths) => {
                return self.not_landed((branch, tip), &name, NotLanded::Conflict(paths), report);
            }
            Built::Unmade(why) => {
                return self.not_landed((branch, tip), &name, NotLanded::Unmade(why), report);
            }
            Built::Nothing => return self.has_landed(branch, tip, request, report),
        };
        let candidate = Candidate { onto: request.onto.clone(), commit, base: target.tip.id() };
        self.propose(branch, tip, &candidate, (&name, &rules.check), report)
    }

    /// Writes the candidate on the branch.
    fn propose(
        &self,
        branch: &RefName,
        tip: &Tip,
        candidate: &Candidate,
        (target, check): (&RefName, &StateName),
        report: &mut Report,
    ) -> Result<Option<Verdict>, RunnerError> {
        let Some(event) = &tip.event else { return Ok(None) };
        let message = candidate.message(branch.short(), check, event, &unique());
        let tree = self.store.read_commit(candidate.commit)?.tree;
        let parents = vec![tip.id(), candidate.commit];
        let commit = match self.write(branch, tree, parents, &message) {
            Err(RunnerError::Signing { cause }) => {
                return Ok(Some(Verdict::Refused(Refusal::CannotSign(cause))));
            }
            written => written?,
        };
        let log = format!("aynig: {check} before it lands");
        match self.move_branch(branch, tip.id(), commit, &log, self.soon())? {
            Moved::Won(finished) | Moved::Lost(finished) => {
                report.notes.extend(blocked_notes(finished));
                Ok(None)
            }
            Moved::Blocked(by) => self.not_landed((branch, tip), target, NotLanded::Checkout(by), report),
        }
    }

    /// Writes on the branch, as `stalled`, why it does not land.
    fn not_landed(
        &self,
        (branch, tip): (&RefName, &Tip),
        onto: &RefName,
        why: NotLanded,
        report: &mut Report,
    ) -> Result<Option<Verdict>, RunnerError> {
        let mend = retry_call(branch.short(), self.settings.remote.as_deref());
        let message = tip.event.as_ref().map(|event| why.message(event, tip.id(), (&unique(), &mend)));
        let Some(message) = message else { return Ok(None) };
        let commit = self.write(branch, tip.commit.tree, vec![tip.id()], &message)?;
        report.owed.extend(self.owe_commit(commit, branch));
        let is_said = self.advance(branch, tip.id(), commit, SAID)?;
        Ok(is_said.then(|| Verdict::Unlanded { onto: onto.clone(), why, commit }))
    }

    /// Writes on the branch, as `landed`, that its target has all of it already.
    fn has_landed(
        &self,
        branch: &RefName,
        tip: &Tip,
        request: &Request,
        report: &mut Report,
    ) -> Result<Option<Verdict>, RunnerError> {
        let landed = own(LANDED)?;
        let said = |event| landing::nothing_to_land(event, &landed, &request.onto, &unique());
        if self.say(branch, tip, tip.event.as_ref().map(said))?.is_some() {
            report.notes.push(Note::HasLanded(RefName::branch(&request.onto)));
        }
        Ok(None)
    }

    /// Writes an event on the branch; `None` if another process was quicker.
    fn say(
        &self,
        branch: &RefName,
        tip: &Tip,
        message: Option<Message>,
    ) -> Result<Option<ObjectId>, RunnerError> {
        let Some(message) = message else { return Ok(None) };
        let commit = self.write(branch, tip.commit.tree, vec![tip.id()], &message)?;
        Ok(self.advance(branch, tip.id(), commit, SAID)?.then_some(commit))
    }
}

//! Whether a branch's history can have come about by the rules: the invariants of the contract, judged from
//! the commits and reflogs of this repository.

use super::Level::{Error, Ok as Fine};
use super::{Finding, Findings, Mend};
use crate::protocol::event::Event;
use crate::protocol::id::ObjectId;
use crate::protocol::invariants::{Logged, Recorded, Violation, check_line, check_log, line};
use crate::protocol::message::Message;
use crate::protocol::text::{escape, with_causes};
use crate::runner::{Runner, RunnerError};
use crate::store::{RefName, StoreError};
use std::collections::{HashMap, HashSet};

/// How the reflog lines begin that this program writes.
const OWN_LINES: &[u8] = b"aynig: ";
/// The most violations of one branch that are shown.
const SHOWN: usize = 20;

type Commits = HashMap<ObjectId, Recorded>;

impl Runner<'_> {
    /// Judges one branch, or all whose names begin with `prefix`. Names are shown without the prefix.
    pub fn check_history(&self, branch: Option<&RefName>, prefix: &str) -> Findings {
        let mut found = Findings::new();
        if let Err(error) = self.judge_branches(branch, prefix, &mut found) {
            let text = with_causes(&error);
            found.push(Finding::new(Error, "history", text).mend(Mend::Fsck));
        }
        found
    }

    fn judge_branches(
        &self,
        branch: Option<&RefName>,
        prefix: &str,
        found: &mut Findings,
    ) -> Result<(), RunnerError> {
        let branches = match branch {
            None => self.store.scan(prefix)?,
            Some(name) => self.store.tip(name)?.map(|id| (name.clone(), id)).into_iter().collect(),
        };
        if let Some(name) = branch.filter(|_| branches.is_empty()) {
            let text = format!("branch '{}' does not exist", short(name, prefix));
            found.push(Finding::new(Error, "history", text).mend(Mend::ListBranches));
            return Ok(());
        }
        let (mut commits, mut events) = (Commits::new(), 0);
        for (name, head) in &branches {
            let violations = match self.judge_branch(name, *head, &mut commits) {
                Ok((violations, below)) => {
                    events += below;
                    violations
                }
                Err(error) => {
                    let text = format!("{}: {}", short(name, prefix), with_causes(&RunnerError::from(error)));
                    found.push(Finding::new(Error, "history", text).mend(Mend::Fsck));
                    continue;
                }
            };
            let shown = short(name, prefix);
            for violation in violations.iter().take(SHOWN) {
                let mend = Mend::History(bare(name, prefix).to_owned());
                found.push(Finding::new(Error, "history", format!("{shown}: {violation}")).mend(mend));
            }
            if let Some(more) = violations.len().checked_sub(SHOWN).filter(|more| *more > 0) {
                found.push(Finding::new(Error, "history", format!("{shown}: {more} more")));
            }
        }
        let text = match &branches[..] {
            [(name, _)] => format!("{}: {events} state events were judged", short(name, prefix)),
            all => format!("{} branches: {events} state events were judged", all.len()),
        };
        found.push(Finding::new(Fine, "history", text));
        Ok(())
    }

    /// Returns what is wrong with one branch, and how many state events are on its first-parent line.
    fn judge_branch(
        &self,
        name: &RefName,
        head: ObjectId,
        commits: &mut Commits,
    ) -> Result<(Vec<Violation>, usize), StoreError> {
        self.record(head, false, commits)?;
        let below = line(head, commits);
        let is_event =
            |id: &&ObjectId| commits.get(id).is_some_and(|c| Event::of(Message::parse(&c.message)).is_some());
        let events = below.iter().filter(is_event).count();
        let log = self.log_of(name, head);
        let below: HashSet<ObjectId> = below.into_iter().collect();
        if log.iter().all(|logged| below.contains(&logged.new)) {
            // No commit was ever dropped from the branch: the first parents are the whole history.
            return Ok((check_line(head, commits), events));
        }
        let mut whole = Commits::new();
        self.record(head, true, &mut whole)?;
        // Reflog entries whose commits a `gc` has removed are not judged, nor those before them.
        let known = log.iter().rev().take_while(|logged| self.record(logged.new, true, &mut whole).is_ok());
        let mut log: Vec<Logged> = known.copied().collect();
        log.reverse();
        Ok((check_log(&log, &whole), events))
    }

    /// Returns the branch's reflog; empty if there is none that ends at the head.
    fn log_of(&self, name: &RefName, head: ObjectId) -> Vec<Logged> {
        let lines = self.repo.git.reflog(name).unwrap_or_default();
        if lines.last().is_none_or(|(id, _)| *id != head) {
            return Vec::new();
        }
        let logged =
            |(new, what): (ObjectId, Vec<u8>)| Logged { new, by_runner: what.starts_with(OWN_LINES) };
        lines.into_iter().map(logged).collect()
    }

    /// Adds a commit and its ancestors, as far as this repository has them: the first parents only, or all of
    /// them.
    fn record(&self, from: ObjectId, all: bool, commits: &mut Commits) -> Result<(), StoreError> {
        let mut todo = vec![from];
        while let Some(id) = todo.pop() {
            if commits.contains_key(&id) {
                continue;
            }
            let commit = self.store.read_commit(id)?;
            if !self.store.history_ends_at(id)? {
                todo.extend(commit.parents.iter().take(if all { usize::MAX } else { 1 }));
            }
            commits.insert(id, Recorded { parents: commit.parents, message: commit.message });
        }
        Ok(())
    }
}

fn short(name: &RefName, prefix: &str) -> String {
    escape(bare(name, prefix))
}

fn bare<'a>(name: &'a RefName, prefix: &str) -> &'a [u8] {
    name.as_bytes().strip_prefix(prefix.as_bytes()).unwrap_or(name.as_bytes())
}

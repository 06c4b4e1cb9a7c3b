//! What must hold of a branch's history whatever happened, judged only from commits and accepted moves.
//!
//! [`check`] takes the moves that a ref made, in the order in which the repository that holds the ref
//! accepted them (as its reflog says), and the commits that they name. The judge knows nothing of runners,
//! clocks or crashes: a trigger that was executed twice, or work that was lost, shows in the history. Where
//! the moves were not kept, the commits alone are judged ([`check_line`]), or a reflog ([`check_log`]).
//! Judges promise 1 of the contract, K8, K10, K20-K24, K27.

mod log;

use super::dialect::Writer;
use super::event::{Event, RECOVERY_ID, STALLED_RUN};
use super::id::ObjectId;
use super::message::Message;
pub use log::{Logged, check_line, check_log, line};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// A commit, as far as the judge needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its parents, first parent first.
    pub parents: Vec<ObjectId>,
    /// Its raw message.
    pub message: Vec<u8>,
}

/// One accepted move of one branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// What the branch held before; `None` where the move made the branch.
    pub old: Option<ObjectId>,
    /// What the branch holds since; `None` where the move deleted the branch.
    pub new: Option<ObjectId>,
}

/// A rule that a history broke.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// V1: a trigger was leased more often than it was the head.
    SecondLease(String),
    /// V2: a run ended twice, or its finished outcome was landed twice.
    SecondEnd(String),
    /// V3: a run wrote after it was declared stalled.
    WroteAfterStalled(String),
    /// V4: a run's first lease answers another trigger than the commit that the lease replaced.
    ForeignParent(ObjectId),
    /// V4: a renewal, an outcome or a recovery does not stand on its run's own lease, or a landing not on the
    /// run's stall.
    NoLeaseBelow(ObjectId),
    /// V5: a runner's move dropped a commit that had been accepted.
    Dropped(ObjectId),
    /// V6: a runner made a branch.
    MadeBranch(ObjectId),
    /// V7: a runner's commit does not name its trigger and origin state, so its story can't be read.
    Unreadable(ObjectId),
    /// A move does not begin where the one before it ended: something was accepted that is not among the
    /// moves.
    Gap(ObjectId),
    /// A commit that a move names is missing.
    Missing(ObjectId),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SecondLease(id) => write!(f, "V1: trigger {id} was leased twice"),
            Self::SecondEnd(run) => write!(f, "V2: run {run} ended twice"),
            Self::WroteAfterStalled(run) => write!(f, "V3: run {run} wrote after it was stalled"),
            Self::ForeignParent(id) => write!(f, "V4: {id} does not stand on what it replaced"),
            Self::NoLeaseBelow(id) => write!(f, "V4: {id} does not stand on a lease of its run"),
            Self::Dropped(id) => write!(f, "V5: {id} dropped what was accepted before"),
            Self::MadeBranch(id) => write!(f, "V6: {id} made a branch"),
            Self::Unreadable(id) => write!(f, "V7: {id} does not tell its story"),
            Self::Gap(id) => write!(f, "{id} replaced something that was not the head"),
            Self::Missing(id) => write!(f, "{id} is missing"),
        }
    }
}

/// What a commit is to the judge.
enum Role {
    /// The first lease of a run.
    Lease { run: String, trigger: ObjectId },
    /// Another lease of the same run: a renewal.
    Renewal { run: String },
    /// The end of a run, written by the run itself.
    Outcome { run: String },
    /// The end of a run, written by another runner.
    Recovery { run: String },
    /// A stalled run's finished outcome, which a person brought to the branch (K28).
    Landing { run: String },
    /// Anything else, such as a person's commit.
    Other,
}

/// Judges the moves of one branch.
pub fn check(moves: &[Move], commits: &HashMap<ObjectId, Recorded>) -> Vec<Violation> {
    let mut judge = Judge::new(commits);
    let mut head = moves.first().and_then(|m| m.old);
    for step in moves {
        if step.old != head {
            judge.found.extend(step.new.or(step.old).map(Violation::Gap));
        }
        head = step.new;
        if let Some(new) = step.new {
            judge.step(step.old, new);
        }
    }
    judge.found.sort();
    judge.found.dedup();
    judge.found
}

struct Judge<'a> {
    commits: &'a HashMap<ObjectId, Recorded>,
    /// How often each commit was the head, and how often it was leased.
    heads: BTreeMap<ObjectId, (u32, u32)>,
    /// Runs, and the commits that ended, stalled or landed them.
    ended: Vec<(String, ObjectId)>,
    stalled: Vec<(String, ObjectId)>,
    landed: Vec<(String, ObjectId)>,
    found: Vec<Violation>,
}

impl<'a> Judge<'a> {
    fn new(commits: &'a HashMap<ObjectId, Recorded>) -> Self {
        let (ended, stalled, landed) = (Vec::new(), Vec::new(), Vec::new());
        Self { commits, heads: BTreeMap::new(), ended, stalled, landed, found: Vec::new() }
    }

    fn step(&mut self, old: Option<ObjectId>, new: ObjectId) {
        self.heads.entry(new).or_default().0 += 1;
        let Some(commit) = self.commits.get(&new) else { return self.found.push(Violation::Missing(new)) };
        if old.is_some_and(|old| commit.parents.first() != Some(&old) && self.descends(old, new)) {
            return self.rewind(new);
        }
        let role = self.role(new, commit);
        let run = match &role {
            Role::Other => return,
            Role::Lease { run, .. }
            | Role::Renewal { run }
            | Role::Outcome { run }
            | Role::Recovery { run }
            | Role::Landing { run } => run.clone(),
        };
        let Some(old) = old else { return self.found.push(Violation::MadeBranch(new)) };
        if commit.parents.first() != Some(&old) && !self.descends(new, old) {
            self.found.push(Violation::Dropped(new));
        }
        if names(&self.stalled, &run) && !matches!(role, Role::Landing { .. }) {
            self.found.push(Violation::WroteAfterStalled(run.clone()));
        }
        match role {
            Role::Lease { trigger, .. } => {
                if trigger != old {
                    self.found.push(Violation::ForeignParent(new));
                }
                let seen = self.heads.entry(old).or_insert((1, 0));
                seen.1 += 1;
                if seen.1 > seen.0 {
                    self.found.push(Violation::SecondLease(old.to_string()));
                }
            }
            Role::Renewal { .. } => self.needs_lease(new, old, &run),
            Role::Outcome { .. } => {
                self.needs_lease(new, old, &run);
                self.end(new, run);
            }
            Role::Recovery { .. } => {
                self.needs_lease(new, old, &run);
                self.end(new, run.clone());
                self.stalled.push((run, new));
            }
            Role::Landing { .. } => {
                if !self.stands_on(old, |event| event.text(STALLED_RUN) == Some(&run)) {
                    self.found.push(Violation::NoLeaseBelow(new));
                }
                self.land(new, run);
            }
            Role::Other => {}
        }
    }

    fn role(&mut self, id: ObjectId, commit: &Recorded) -> Role {
        let Some(event) = self.event(commit) else { return Role::Other };
        if event.text(RECOVERY_ID).is_some() {
            return match (event.text(STALLED_RUN), event.run_id()) {
                (Some(run), _) => Role::Recovery { run: run.to_owned() },
                (None, Some(run)) => Role::Landing { run: run.to_owned() },
                // `canceled` names no run.
                (None, None) => Role::Other,
            };
        }
        let Some(run) = event.run_id().map(str::to_owned) else { return Role::Other };
        let trigger = match (event.trigger(), event.origin_state()) {
            (Some(trigger), Some(_)) => trigger,
            // A command that writes its own commits may leave these trailers out (K29).
            _ if event.dialect.writer() == Writer::Command => return Role::Other,
            // So may a command that commits its outcome by hand and names only its run (K22).
            (None, None) if !event.is_working() => return Role::Outcome { run },
            _ => {
                self.found.push(Violation::Unreadable(id));
                return Role::Other;
            }
        };
        if !event.is_working() {
            return Role::Outcome { run };
        }
        let of_run = |e: &Event| e.is_working() && e.run_id() == Some(&run);
        let parent = commit.parents.first();
        let same = match event.dialect.writer() {
            Writer::Runner => parent
                .and_then(|p| self.commits.get(p))
                .and_then(|c| self.event(c))
                .is_some_and(|e| of_run(&e)),
            // A command commits its work between its heartbeats (K29).
            Writer::Command => parent.is_some_and(|p| self.stands_on(*p, of_run)),
        };
        if same { Role::Renewal { run } } else { Role::Lease { run, trigger } }
    }

    fn event(&self, commit: &Recorded) -> Option<Event> {
        Event::of(Message::parse(&commit.message))
    }

    fn end(&mut self, by: ObjectId, run: String) {
        if names(&self.ended, &run) {
            self.found.push(Violation::SecondEnd(run.clone()));
        }
        self.ended.push((run, by));
    }

    fn land(&mut self, by: ObjectId, run: String) {
        if names(&self.landed, &run) {
            self.found.push(Violation::SecondEnd(run.clone()));
        }
        self.landed.push((run, by));
    }

    /// Handles a move of the branch back to an older commit of its own, which no runner makes: each of its
    /// commits is new. A run that ended above that commit counts as not ended.
    fn rewind(&mut self, to: ObjectId) {
        let below = |list: &[(String, ObjectId)]| {
            list.iter().filter(|(_, by)| self.descends(to, *by)).cloned().collect()
        };
        let (ended, stalled, landed) = (below(&self.ended), below(&self.stalled), below(&self.landed));
        (self.ended, self.stalled, self.landed) = (ended, stalled, landed);
    }

    /// Demands that the replaced commit `old` is a lease of the run, or stands on one.
    fn needs_lease(&mut self, new: ObjectId, old: ObjectId, run: &str) {
        if !self.stands_on(old, |event| event.is_working() && event.run_id() == Some(run)) {
            self.found.push(Violation::NoLeaseBelow(new));
        }
    }

    /// True where the newest state event at or below `at` satisfies `is`.
    fn stands_on(&self, at: ObjectId, is: impl Fn(&Event) -> bool) -> bool {
        let mut at = Some(at);
        while let Some(commit) = at.and_then(|id| self.commits.get(&id)) {
            match self.event(commit) {
                Some(event) => return is(&event),
                None => at = commit.parents.first().copied(),
            }
        }
        false
    }

    fn descends(&self, new: ObjectId, old: ObjectId) -> bool {
        descends(self.commits, new, old)
    }
}

/// True where `old` is `new`, or reachable from it.
fn descends(commits: &HashMap<ObjectId, Recorded>, new: ObjectId, old: ObjectId) -> bool {
    let (mut todo, mut seen) = (vec![new], HashSet::new());
    while let Some(id) = todo.pop() {
        if id == old {
            return true;
        }
        if seen.insert(id) {
            todo.extend(commits.get(&id).into_iter().flat_map(|c| c.parents.iter().copied()));
        }
    }
    false
}

fn names(list: &[(String, ObjectId)], run: &str) -> bool {
    list.iter().any(|(name, _)| name == run)
}

#[cfg(test)]
mod tests;

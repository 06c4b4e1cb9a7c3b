//! How branches stand, without touching them: what `status` shows and `doctor` judges.
//!
//! One scan reads all heads; commands are looked up once for each tree and state, so that ten thousand
//! branches cost little more than their commits. This works where nothing is trusted, too: then the branch's
//! own tree says whether there would be a command. Implements K6, K7, K9, K13, K26, K48a (as seen).

use super::known::Around;
use super::lookups::Lookups;
use super::named::attempt_ref;
use super::report::Note;
use super::settings::CommandsFrom;
use super::slot::{Abandoned, Occupants};
use super::{Runner, RunnerError, Tip, pending};
use crate::protocol::decide::{Decision, Held, Idle, decide};
use crate::protocol::event::{Event, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::protocol::name::{BadName, STALLED};
use crate::protocol::run_events::Progress;
use crate::store::command_start::Unfit;
use crate::store::command_tree::Lookup;
use crate::store::worktrees::{self, Busy};
use crate::store::{RefName, StoreError};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::SystemTime;

/// How one branch stands.
#[derive(Debug)]
pub(crate) struct BranchStatus {
    pub branch: RefName,
    /// Its newest commit.
    pub tip: Tip,
    /// What a tick would make of it.
    pub standing: Standing,
    /// The command that was found for its state, below `.aynig/`.
    pub command: Option<String>,
    /// The attempt that keeps work of the run in which it stalled.
    pub attempt: Option<RefName>,
    /// States with a command and nearly its state's name, where no command answers its state.
    pub alike: Vec<String>,
    /// A working tree that is in the middle of something with it.
    pub busy: Option<(Busy, PathBuf)>,
    /// Since when it waits for a slot.
    pub pending: Option<SystemTime>,
    /// True where hooks are off, so that it waits for a tick and not for a slot.
    pub hooks_off: bool,
    /// When the run that holds it began, in seconds since 1970, by its first lease's date.
    pub began: Option<i64>,
    /// How far the command of that run says that it is, where this machine has its events.
    pub progress: Option<Progress>,
    /// The last line of its output.
    pub last_line: Option<String>,
}

/// What a tick would make of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its head is no state event.
    NoState,
    /// Its state can't name a command.
    InvalidState(Vec<u8>, BadName),
    /// No command answers its state: it waits for a person, or is an end.
    Waits,
    /// The next tick runs its command.
    Ready,
    /// Its state has a command, but this repository is not trusted.
    NotTrusted,
    /// `aynig.branches` leaves it out.
    LeftOut,
    /// Its command can't be started: the path below `.aynig/`, and why.
    Unusable(String, Unfit),
    /// The chain is as long as it may get.
    HopLimit {
        /// How many dispatches led to the head.
        hop: u32,
        /// The limit.
        max: u32,
    },
    /// Something that will pass holds it back.
    Held(Held),
    /// A run holds it.
    Leased {
        /// When the lease ends, in seconds since 1970 by this machine's clock.
        until: i64,
        /// The lease's length or date is not believed.
        malformed: bool,
        /// Why no runner works on it any more, where that is known.
        abandoned: Option<Abandoned>,
    },
    /// Its holder is gone: the next tick recovers it.
    Expired {
        /// When the lease expired, in seconds since 1970 by this machine's clock.
        since: i64,
        /// The lease's length or date is not believed.
        malformed: bool,
    },
}

/// All branches that were looked at.
#[derive(Debug, Default)]
pub(crate) struct Surveyed {
    /// Those that could be read.
    pub branches: Vec<BranchStatus>,
    /// Those that could not.
    pub failed: Vec<(RefName, RunnerError)>,
}

/// From this many branches on, one look at all branches is less work than a look at each.
const MANY: usize = 50;

/// One look at many branches, with what they share.
pub(crate) struct Survey<'a> {
    runner: &'a Runner<'a>,
    attempts: HashSet<RefName>,
    busy: Vec<(RefName, Busy, PathBuf)>,
    pending: HashMap<RefName, SystemTime>,
    lookups: Lookups<'a>,
    occupants: Occupants,
    /// True where something was noted of heads that were seen before.
    any_seen: bool,
    /// Read with the first head that they may concern.
    around: Around,
}

impl<'a> Survey<'a> {
    /// Reads what all branches share.
    pub(crate) fn new(runner: &'a Runner<'a>) -> Result<Self, RunnerError> {
        let attempts = runner.store.scan("refs/aynig/attempts/")?.into_iter().map(|(name, _)| name).collect();
        let (busy, notes) = match runner.settings.remote {
            None => (worktrees::busy_branches(runner.repo), pending::notes(runner.repo)),
            Some(_) => (Vec::new(), Vec::new()),
        };
        let pending = notes.into_iter().map(|note| (note.branch, note.since)).collect();
        let (lookups, occupants) = (Lookups::new(runner)?, Occupants::default());
        let (any_seen, around) = (runner.any_seen(), Around::default());
        Ok(Self { runner, attempts, busy, pending, lookups, occupants, any_seen, around })
    }

    /// Returns the ref that commands come from, if it does not exist: then no state has a command.
    pub(crate) fn absent(&self) -> Option<&RefName> {
        self.lookups.absent()
    }

    /// Returns how all branches stand whose heads are `wanted`.
    pub(crate) fn all(&self, wanted: impl Fn(&Tip) -> bool) -> Result<Surveyed, RunnerError> {
        let heads = self.runner.store.read_heads("refs/heads/")?;
        let mut surveyed = Surveyed::default();
        surveyed.failed.extend(heads.failed.into_iter().map(|(name, e)| (name, RunnerError::Store(e))));
        for (name, commit) in heads.heads {
            let tip = Tip::from(commit);
            if !wanted(&tip) {
                continue;
            }
            match self.judge(&name, tip) {
                Ok(status) => surveyed.branches.push(status),
                Err(error) => surveyed.failed.push((name, error)),
            }
        }
        Ok(surveyed)
    }

    /// Hands all branches to `visit` as they are read, those that can't be read included, until `visit`
    /// returns false; `only_events` leaves those out whose head is no state event.
    pub(crate) fn each(
        &self,
        only_events: bool,
        visit: &mut dyn FnMut(RefName, Result<BranchStatus, RunnerError>) -> bool,
    ) -> Result<(), RunnerError> {
        let mut goes_on = true;
        self.runner.store.visit_heads("refs/heads/", &mut |name, read| {
            let tip = read.map(Tip::from).map_err(RunnerError::Store);
            let is_wanted = !only_events || tip.as_ref().map_or(true, |tip| tip.event.is_some());
            if goes_on && is_wanted {
                let judged = tip.and_then(|tip| self.judge(&name, tip));
                goes_on = visit(name, judged);
            }
        })?;
        Ok(())
    }

    /// Returns how those of these branches stand that exist. Many are found in one look at all branches.
    pub(crate) fn these(&self, branches: &[RefName]) -> Result<Vec<BranchStatus>, RunnerError> {
        if branches.len() < MANY {
            return branches.iter().filter_map(|branch| self.one(branch).transpose()).collect();
        }
        let wanted: HashSet<&RefName> = branches.iter().collect();
        let mut judged = Vec::new();
        self.runner.store.visit_heads("refs/heads/", &mut |name, read| {
            if wanted.contains(&name) {
                let tip = read.map(Tip::from).map_err(RunnerError::Store);
                let status = tip.and_then(|tip| self.judge(&name, tip));
                judged.push((name, status));
            }
        })?;
        judged.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        judged.into_iter().map(|(_, status)| status).collect()
    }

    /// Returns how one branch stands; `None` where it does not exist.
    pub(crate) fn one(&self, branch: &RefName) -> Result<Option<BranchStatus>, RunnerError> {
        match self.runner.read_tip(branch)? {
            Some(tip) => Ok(Some(self.judge(branch, tip)?)),
            None => Ok(None),
        }
    }

    /// Returns how a branch stands with this commit as its head.
    pub(crate) fn of_commit(&self, branch: &RefName, id: ObjectId) -> Result<BranchStatus, RunnerError> {
        self.judge(branch, Tip::from(self.runner.store.read_commit(id)?))
    }

    fn judge(&self, branch: &RefName, tip: Tip) -> Result<BranchStatus, RunnerError> {
        let tip = if self.any_seen {
            self.runner.with_hop(branch, tip)
        } else {
            self.runner.with_node(branch, tip)
        };
        let lookup = match tip.event.as_ref().and_then(Event::state_name) {
            Some(state) if !state.is_working() => self.lookups.lookup(&tip.commit, state)?,
            Some(_) | None => Lookup::Missing,
        };
        let usable = matches!(lookup, Lookup::Found(_));
        let runner = self.runner;
        let lease = tip.event.as_ref().filter(|e| self.any_seen && e.is_working());
        let seen = lease.and_then(|_| runner.first_seen(branch, tip.id()));
        let known = runner.known(branch, &tip, usable, &self.around)?;
        let policy = runner.policy_with(usable, known.facts());
        let decision = decide(tip.head(), seen, runner.clock.now(), policy);
        let standing = self.standing(branch, tip.event.as_ref(), decision, &lookup);
        let command = match lookup {
            Lookup::Found(command) => Some(command.path),
            Lookup::Missing | Lookup::Unusable { .. } => None,
        };
        let alike = match (&standing, tip.event.as_ref().and_then(Event::state_name)) {
            (Standing::Waits, Some(state)) => match self.lookups.hint(&tip, state)? {
                Some(Note::NearlyAState(_, alike)) => alike,
                Some(_) | None => Vec::new(),
            },
            _ => Vec::new(),
        };
        let attempt = self.attempt(&tip)?;
        let busy =
            self.busy.iter().find(|(name, ..)| name == branch).map(|(_, busy, dir)| (*busy, dir.clone()));
        // A branch whose command runs is taken care of, and one without a command waits for no slot.
        let pending = self.pending.get(branch).copied().filter(|_| standing == Standing::Ready);
        let began = match &standing {
            Standing::Leased { .. } => self.runner.began(&tip),
            Standing::NoState
            | Standing::InvalidState(..)
            | Standing::Waits
            | Standing::Ready
            | Standing::NotTrusted
            | Standing::LeftOut
            | Standing::Unusable(..)
            | Standing::HopLimit { .. }
            | Standing::Held(_)
            | Standing::Expired { .. } => None,
        };
        let mut status = BranchStatus {
            branch: branch.clone(),
            tip,
            standing,
            command,
            attempt,
            alike,
            busy,
            pending,
            hooks_off: self.runner.settings.hooks_off,
            began,
            progress: None,
            last_line: None,
        };
        self.runner.listen(&mut status);
        Ok(status)
    }

    fn standing(
        &self,
        branch: &RefName,
        event: Option<&Event>,
        decision: Decision,
        lookup: &Lookup,
    ) -> Standing {
        use crate::protocol::decide::Observed;
        let malformed = |observed| matches!(observed, Some(Observed::Seconds | Observed::Date));
        match decision {
            Decision::Nothing(Idle::NoState) => Standing::NoState,
            Decision::Nothing(Idle::InvalidState { raw, why }) => Standing::InvalidState(raw, why),
            Decision::Nothing(Idle::NoCommand { .. }) => match lookup {
                Lookup::Unusable { path, why } => Standing::Unusable(path.clone(), why.clone()),
                Lookup::Found(_) | Lookup::Missing => Standing::Waits,
            },
            Decision::Nothing(Idle::HopLimit { hop, max, .. }) => Standing::HopLimit { hop, max },
            Decision::Nothing(Idle::Held { by, .. }) => Standing::Held(by),
            Decision::Leased { until, observed } => {
                let abandoned = event.and_then(|lease| self.runner.abandoned(lease, &self.occupants));
                Standing::Leased { until, malformed: malformed(observed), abandoned }
            }
            Decision::Expired { since, observed } => {
                Standing::Expired { since, malformed: malformed(observed) }
            }
            Decision::Deliver { .. } | Decision::Dispatch { .. }
                if self.runner.settings.commands_from == CommandsFrom::Nowhere =>
            {
                Standing::NotTrusted
            }
            Decision::Deliver { .. } | Decision::Dispatch { .. } if !self.runner.may_tick(branch) => {
                Standing::LeftOut
            }
            Decision::Deliver { .. } | Decision::Dispatch { .. } => Standing::Ready,
        }
    }

    /// Returns where the work of the run is kept that a `stalled` head ended.
    fn attempt(&self, tip: &Tip) -> Result<Option<RefName>, StoreError> {
        let event = tip.event.as_ref();
        let event = event.filter(|e| e.state_name().is_some_and(|s| s.as_str() == STALLED));
        let Some(run_id) = event.and_then(|e| e.text(STALLED_RUN)) else { return Ok(None) };
        if !attempt_ref(run_id).is_some_and(|name| self.attempts.contains(&name)) {
            return Ok(None);
        }
        Ok(self.runner.attempt_of(run_id, tip)?.map(|(name, _)| name))
    }
}

impl Runner<'_> {
    /// Reads what the command of the run that holds a branch reported last, and printed last (K48a).
    pub(crate) fn listen(&self, status: &mut BranchStatus) {
        let held = matches!(status.standing, Standing::Leased { .. });
        let event = status.tip.event.as_ref().filter(|_| held);
        let run = event.and_then(|event| Some((event.run_id()?, event.trigger()?)));
        let Some((run_id, trigger)) = run else { return };
        status.progress = self.progress_of(run_id, trigger);
        status.last_line = self.last_line_of(run_id, trigger);
    }
}

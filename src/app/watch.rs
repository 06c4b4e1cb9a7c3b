//! `status --watch`: how branches stand, and from then on what changed.
//!
//! [`Watcher::open`], then [`Watcher::look`] as often as the caller wants to know: it costs some `stat`s where no ref moved,
//! and reads only heads that did. What a run tells and prints is heard at each look, its lease is judged again when its
//! time is over, and what waits for a slot when that is noted. A remote is asked every few seconds. Implements K55 (`--watch`).

use super::config::Flags;
use super::session::Session;
use super::status::standing_name;
use super::{AppError, Warning, mend};
use crate::protocol::id::ObjectId;
use crate::protocol::run_events::Progress;
use crate::runner::Runner;
use crate::runner::settings::Settings;
use crate::runner::survey::{BranchStatus, Standing, Survey};
use crate::store::watch::Watch;
use crate::store::{RefName, StoreError};
use crate::supervisor::interrupt::Interrupt;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How often a remote is asked, and how often what may change without a ref's move is judged again.
const REMOTE_LOOK_EVERY: Duration = Duration::from_secs(5);
const JUDGE_EVERY: Duration = Duration::from_secs(10);
/// How often runs are listened to.
const HEAR_EVERY: Duration = Duration::from_secs(1);
/// From so many heads that moved on, one look at all is less work than a look at each.
const MANY: usize = 200;
/// So many runs are listened to at each look.
const LISTENED_MAX: usize = 64;

/// Branches that are watched.
pub struct Watcher<'a> {
    session: &'a Session,
    runner: Runner<'a>,
    statuses: BTreeMap<RefName, BranchStatus>,
    heads: HashMap<RefName, ObjectId>,
    watch: Option<Watch>,
    asked: Option<Instant>,
    judged: Instant,
    heard: Instant,
    told: bool,
    /// Some branch may stand otherwise with no ref's move.
    lively: bool,
    /// Branches that could not be read at the last look at all.
    pub failed: usize,
}

/// What changed since the last look.
#[derive(Debug, Default)]
pub struct Changes {
    /// Branches that stand otherwise now, or are new.
    pub changed: BTreeSet<RefName>,
    /// Branches that are gone, as they were.
    pub gone: Vec<BranchStatus>,
}

impl Changes {
    /// True where nothing did.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }
}

/// The settings of the verb, once what an earlier process left is mended.
pub fn settings(session: &Session, remote: Option<String>) -> Result<Settings, AppError> {
    let settings = session.settings(&Flags { remote, ..Flags::default() })?;
    mend::all(session);
    Ok(settings)
}

impl<'a> Watcher<'a> {
    /// Begins to watch; nothing is read yet.
    pub fn open(
        session: &'a Session,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
    ) -> Result<Self, AppError> {
        let runner = session.reader(settings, interrupt)?;
        let places = ["refs/heads", "refs/aynig/paused", "aynig/pending"];
        let watch = settings.remote.is_none().then(|| Watch::new(&session.repo, &places));
        let (statuses, heads) = (BTreeMap::new(), HashMap::new());
        let (judged, heard) = (Instant::now(), Instant::now());
        Ok(Self {
            session,
            runner,
            statuses,
            heads,
            watch,
            asked: None,
            judged,
            heard,
            told: false,
            lively: false,
            failed: 0,
        })
    }

    /// How branches stand, by name.
    pub fn statuses(&self) -> impl Iterator<Item = &BranchStatus> {
        self.statuses.values()
    }

    /// How one stands.
    pub fn status(&self, branch: &RefName) -> Option<&BranchStatus> {
        self.statuses.get(branch)
    }

    /// Seconds since 1970.
    pub fn now(&self) -> i64 {
        self.runner.clock.now()
    }

    /// Looks for what changed.
    pub fn look(&mut self) -> Result<Changes, AppError> {
        let is_first = self.asked.is_none();
        let moved = match &mut self.watch {
            Some(watch) => is_first || watch.has_moved(),
            None => self.asked.is_none_or(|asked| asked.elapsed() >= REMOTE_LOOK_EVERY) && self.ask()?,
        };
        let mut changes = Changes::default();
        if moved {
            self.asked = Some(Instant::now());
            if is_first { self.read_all(&mut changes)? } else { self.read_moved(&mut changes)? }
        }
        if self.lively {
            self.judge_again(moved && !is_first, &mut changes)?;
        }
        if !changes.is_empty() {
            let is_lively = |status: &BranchStatus| {
                use Standing::{Expired, Held, Leased, Ready};
                matches!(status.standing, Leased { .. } | Ready | Held(_) | Expired { .. })
            };
            self.lively = self.statuses.values().any(is_lively);
        }
        Ok(changes)
    }

    /// Asks the remote; false where it does not answer, which is said once.
    fn ask(&mut self) -> Result<bool, AppError> {
        let is_first = self.asked.replace(Instant::now()).is_none();
        match self.runner.store.refresh() {
            Ok(()) => {
                self.told = false;
                Ok(true)
            }
            Err(error @ StoreError::Remote { .. }) if !is_first => {
                if !self.told {
                    self.session.warn(Warning::Failed(error.into()));
                }
                self.told = true;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read_all(&mut self, changes: &mut Changes) -> Result<(), AppError> {
        let surveyed = Survey::new(&self.runner)?.all(false)?;
        self.failed = surveyed.failed.len();
        let before = std::mem::take(&mut self.statuses);
        self.heads.clear();
        for status in surveyed.branches {
            self.heads.insert(status.branch.clone(), status.tip.id());
            if before.get(&status.branch).is_none_or(|old| !is_same(old, &status)) {
                changes.changed.insert(status.branch.clone());
            }
            self.statuses.insert(status.branch.clone(), status);
        }
        changes.gone.extend(before.into_values().filter(|old| !self.statuses.contains_key(&old.branch)));
        Ok(())
    }

    /// Reads the heads that are not where they were.
    fn read_moved(&mut self, changes: &mut Changes) -> Result<(), AppError> {
        let refs = self.runner.store.scan("refs/heads/")?;
        let moved: Vec<&(RefName, ObjectId)> =
            refs.iter().filter(|(name, id)| self.heads.get(name) != Some(id)).collect();
        if moved.len() > MANY {
            return self.read_all(changes);
        }
        if refs.len() < self.heads.len() + moved.len() {
            let there: BTreeSet<&RefName> = refs.iter().map(|(name, _)| name).collect();
            self.heads.retain(|name, _| there.contains(name));
            let gone: Vec<RefName> =
                self.statuses.keys().filter(|name| !there.contains(name)).cloned().collect();
            changes.gone.extend(gone.iter().filter_map(|name| self.statuses.remove(name)));
        }
        if moved.is_empty() {
            return Ok(());
        }
        let survey = Survey::new(&self.runner)?;
        for (name, id) in moved {
            // One that can't be read now is read when it moves again.
            self.heads.insert(name.clone(), *id);
            if let Ok(Some(status)) = survey.one(name) {
                put(&mut self.statuses, status, changes);
            }
        }
        Ok(())
    }

    /// What may have changed with no ref's move: what runs tell, leases that are over, who waits for a slot.
    fn judge_again(&mut self, noted: bool, changes: &mut Changes) -> Result<(), AppError> {
        let (now, due) = (self.now(), self.judged.elapsed() >= JUDGE_EVERY);
        let (mut judge, mut listen) = (Vec::new(), Vec::new());
        for status in self.statuses.values() {
            match &status.standing {
                Standing::Leased { until, .. } if due || now > *until => judge.push(status.branch.clone()),
                Standing::Leased { .. } if listen.len() < LISTENED_MAX => listen.push(status.branch.clone()),
                Standing::Ready | Standing::Held(_) if due || noted => judge.push(status.branch.clone()),
                Standing::Expired { .. } if due => judge.push(status.branch.clone()),
                Standing::Leased { .. }
                | Standing::Ready
                | Standing::Held(_)
                | Standing::Expired { .. }
                | Standing::NoState
                | Standing::InvalidState(..)
                | Standing::Waits
                | Standing::NotTrusted
                | Standing::LeftOut
                | Standing::Unusable(..)
                | Standing::HopLimit { .. } => {}
            }
        }
        if due {
            self.judged = Instant::now();
        }
        if !listen.is_empty() && self.heard.elapsed() < HEAR_EVERY {
            listen.clear();
        } else {
            self.heard = Instant::now();
        }
        if !judge.is_empty() {
            let survey = Survey::new(&self.runner)?;
            for branch in judge.iter().take(MANY) {
                if let Ok(Some(status)) = survey.one(branch) {
                    put(&mut self.statuses, status, changes);
                }
            }
        }
        for branch in listen {
            let Some(status) = self.statuses.get_mut(&branch) else { continue };
            let before = (status.progress.clone(), status.last_line.clone());
            self.runner.listen(status);
            if before != (status.progress.clone(), status.last_line.clone()) {
                changes.changed.insert(branch);
            }
        }
        Ok(())
    }
}

fn put(statuses: &mut BTreeMap<RefName, BranchStatus>, status: BranchStatus, changes: &mut Changes) {
    if statuses.get(&status.branch).is_none_or(|old| !is_same(old, &status)) {
        changes.changed.insert(status.branch.clone());
    }
    statuses.insert(status.branch.clone(), status);
}

/// True where a branch stands as it did, but for how long.
fn is_same(old: &BranchStatus, new: &BranchStatus) -> bool {
    fn facts(
        status: &BranchStatus,
    ) -> (ObjectId, &'static str, bool, bool, &Option<RefName>, &Option<Progress>, &Option<String>) {
        let (pending, busy) = (status.pending.is_some(), status.busy.is_some());
        let standing = standing_name(&status.standing);
        (status.tip.id(), standing, pending, busy, &status.attempt, &status.progress, &status.last_line)
    }
    facts(old) == facts(new)
}

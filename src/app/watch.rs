//! `status --watch`: how branches stand, and after that what changes.
//!
//! [`Watcher::open`], then [`Watcher::look`] as often as the caller wants to know. A look costs some `stat`s
//! where no ref moved, and reads only the heads that did. What runs report and print is read once a second. A
//! lease is judged again when its time is over, and branches that wait for a slot when such a wait is noted.
//! A remote is asked every few seconds. Implements K55 (`--watch`).

use super::asking::Asking;
use super::config::Flags;
use super::paused::Pauses;
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

/// How often a remote is asked, and how often a branch is judged again that may stand otherwise without a ref
/// moving.
const REMOTE_LOOK_EVERY: Duration = Duration::from_secs(5);
const JUDGE_EVERY: Duration = Duration::from_secs(10);
/// How often what runs report and print is read.
const HEAR_EVERY: Duration = Duration::from_secs(1);
/// Where more heads than this moved, one look at all branches is less work than a look at each.
const MANY: usize = 200;
/// Most runs that are listened to at each look.
const LISTENED_MAX: usize = 64;

/// What is known of branches.
#[derive(Default)]
pub struct Seen {
    statuses: BTreeMap<RefName, BranchStatus>,
    /// The questions that the branches ask.
    pub asking: Asking,
    /// The pauses that stand.
    pub pauses: Pauses,
    /// How many branches could not be read at the last look at all of them.
    pub failed: usize,
    /// The time of the last look, in seconds since 1970.
    pub now: i64,
}

impl Seen {
    /// Returns how branches stand, sorted by name.
    pub fn statuses(&self) -> impl Iterator<Item = &BranchStatus> {
        self.statuses.values()
    }

    /// Returns how one branch stands.
    pub fn status(&self, branch: &RefName) -> Option<&BranchStatus> {
        self.statuses.get(branch)
    }
}

/// Is called with what is known so far while much is read. Returns false where no more is to be read.
pub type SoFar<'a> = dyn FnMut(&Seen) -> bool + 'a;

/// Branches that are watched.
pub struct Watcher<'a> {
    session: &'a Session,
    runner: Runner<'a>,
    /// What is known of the branches.
    pub seen: Seen,
    heads: HashMap<RefName, ObjectId>,
    watch: Option<Watch>,
    asked: Option<Instant>,
    judged: Instant,
    heard: Instant,
    told: bool,
    /// True where some branch may come to stand otherwise without a ref moving.
    lively: bool,
}

/// What changed since the last look.
#[derive(Debug, Default)]
pub struct Changes {
    /// Branches that stand otherwise now, or are new.
    pub changed: BTreeSet<RefName>,
    /// Branches that are gone, as they were.
    pub gone: Vec<BranchStatus>,
    /// True where other pauses stand.
    pub paused: bool,
}

impl Changes {
    /// True where nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty() && !self.paused
    }
}

/// Reads the settings of the verb.
pub fn settings(session: &Session, remote: Option<String>) -> Result<Settings, AppError> {
    session.settings(&Flags { remote, ..Flags::default() })
}

impl<'a> Watcher<'a> {
    /// Begins to watch; nothing is read yet.
    pub fn open(
        session: &'a Session,
        settings: &'a Settings,
        interrupt: &'a Interrupt,
    ) -> Result<Self, AppError> {
        let runner = session.reader(settings, interrupt)?;
        let places = ["refs/heads", "refs/aynig/paused", "refs/aynig/asked", "aynig/pending"];
        let watch = settings.remote.is_none().then(|| Watch::new(&session.repo, &places));
        let (seen, heads) = (Seen { now: runner.clock.now(), ..Seen::default() }, HashMap::new());
        let (judged, heard) = (Instant::now(), Instant::now());
        Ok(Self {
            session,
            runner,
            seen,
            heads,
            watch,
            asked: None,
            judged,
            heard,
            told: false,
            lively: false,
        })
    }

    /// Mends what an earlier process left. That may take long, so the caller draws something on the screen
    /// before.
    pub fn mend(&self) {
        mend::all(self.session);
    }

    /// Looks for what changed.
    pub fn look(&mut self) -> Result<Changes, AppError> {
        self.look_telling(&mut |_| true)
    }

    /// Does what [`Watcher::look`] does, and calls `so_far` while the first look reads.
    pub fn look_telling(&mut self, so_far: &mut SoFar<'_>) -> Result<Changes, AppError> {
        self.seen.now = self.runner.clock.now();
        let is_first = self.asked.is_none();
        let moved = match &mut self.watch {
            Some(watch) => is_first || watch.has_moved(),
            None => self.asked.is_none_or(|asked| asked.elapsed() >= REMOTE_LOOK_EVERY) && self.ask()?,
        };
        let mut changes = Changes::default();
        if moved {
            self.asked = Some(Instant::now());
            if is_first {
                self.read_all(&mut changes, so_far)?
            } else {
                self.read_moved(&mut changes)?
            }
            self.read_questions(&mut changes)?;
            self.read_pauses(&mut changes)?;
        }
        if self.lively {
            self.judge_again(moved && !is_first, &mut changes)?;
        }
        if !changes.is_empty() {
            let is_lively = |status: &BranchStatus| {
                use Standing::{Expired, Held, Leased, Ready};
                matches!(status.standing, Leased { .. } | Ready | Held(_) | Expired { .. })
            };
            self.lively = self.seen.statuses().any(is_lively);
        }
        Ok(changes)
    }

    /// Asks the remote. Returns false where it does not answer, of which the user is warned once.
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

    fn read_all(&mut self, changes: &mut Changes, so_far: &mut SoFar<'_>) -> Result<(), AppError> {
        let before = std::mem::take(&mut self.seen.statuses);
        self.heads.clear();
        self.seen.failed = 0;
        let survey = Survey::new(&self.runner)?;
        survey.each(false, &mut |_, read| {
            match read {
                Ok(status) => {
                    self.heads.insert(status.branch.clone(), status.tip.id());
                    if before.get(&status.branch).is_none_or(|old| !is_same(old, &status)) {
                        changes.changed.insert(status.branch.clone());
                    }
                    self.seen.statuses.insert(status.branch.clone(), status);
                }
                Err(_) => self.seen.failed += 1,
            }
            so_far(&self.seen)
        })?;
        let is_gone = |old: &BranchStatus| !self.seen.statuses.contains_key(&old.branch);
        changes.gone.extend(before.into_values().filter(is_gone));
        Ok(())
    }

    /// Reads the questions. A branch whose questions are not those of before counts as changed.
    fn read_questions(&mut self, changes: &mut Changes) -> Result<(), AppError> {
        let asking = Asking::look(&self.runner, self.seen.statuses())?;
        if asking != self.seen.asking {
            let before = std::mem::replace(&mut self.seen.asking, asking);
            let asks_so = |asking: &Asking, branch: &RefName| {
                let ids = asking.open_of(branch).into_iter().map(|asked| asked.commit);
                ids.chain(asking.unsigned_of(branch).into_iter().map(|unsigned| unsigned.commit))
                    .collect::<Vec<_>>()
            };
            let asked = [&before, &self.seen.asking].map(Asking::branches).concat();
            let is_otherwise =
                |branch: &RefName| asks_so(&before, branch) != asks_so(&self.seen.asking, branch);
            let there = |branch: &RefName| self.seen.statuses.contains_key(branch);
            changes.changed.extend(asked.into_iter().filter(|branch| there(branch) && is_otherwise(branch)));
        }
        Ok(())
    }

    /// Reads the pauses. A branch that other pauses hold than before counts as changed.
    fn read_pauses(&mut self, changes: &mut Changes) -> Result<(), AppError> {
        let before = std::mem::replace(&mut self.seen.pauses, Pauses::look(&self.runner)?);
        if before != self.seen.pauses {
            changes.paused = true;
            let is_otherwise = |branch: &&RefName| self.seen.pauses.hold_otherwise(&before, branch);
            changes.changed.extend(self.seen.statuses.keys().filter(is_otherwise).cloned());
        }
        Ok(())
    }

    /// Reads the heads that are no longer where they were.
    fn read_moved(&mut self, changes: &mut Changes) -> Result<(), AppError> {
        let refs = self.runner.store.scan("refs/heads/")?;
        let moved: Vec<&(RefName, ObjectId)> =
            refs.iter().filter(|(name, id)| self.heads.get(name) != Some(id)).collect();
        if moved.len() > MANY {
            return self.read_all(changes, &mut |_| true);
        }
        if refs.len() < self.heads.len() + moved.len() {
            let there: BTreeSet<&RefName> = refs.iter().map(|(name, _)| name).collect();
            self.heads.retain(|name, _| there.contains(name));
            let gone: Vec<RefName> =
                self.seen.statuses.keys().filter(|name| !there.contains(name)).cloned().collect();
            changes.gone.extend(gone.iter().filter_map(|name| self.seen.statuses.remove(name)));
        }
        if moved.is_empty() {
            return Ok(());
        }
        let survey = Survey::new(&self.runner)?;
        for (name, id) in moved {
            // A head that can't be read now is read when it moves again.
            self.heads.insert(name.clone(), *id);
            if let Ok(Some(status)) = survey.one(name) {
                put(&mut self.seen.statuses, status, changes);
            }
        }
        Ok(())
    }

    /// Judges again what may have changed without a ref moving: what runs report, leases that are over, and
    /// branches that wait for a slot.
    fn judge_again(&mut self, noted: bool, changes: &mut Changes) -> Result<(), AppError> {
        let (now, due) = (self.seen.now, self.judged.elapsed() >= JUDGE_EVERY);
        let (mut judge, mut listen) = (Vec::new(), Vec::new());
        for status in self.seen.statuses.values() {
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
                    put(&mut self.seen.statuses, status, changes);
                }
            }
        }
        for branch in listen {
            let Some(status) = self.seen.statuses.get_mut(&branch) else { continue };
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

/// True where a branch stands as it did, but for how long it has.
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

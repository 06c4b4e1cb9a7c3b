//! Getting a slot, and what to do with work that is still in one.
//!
//! A slot whose run is over but was never completed (its runner was killed) holds work, which is kept as an
//! attempt before the slot is used again. A slot whose lease lives on stays with its run. A run that waits
//! for an answer keeps its slot, and gives its job back: there is one slot more meanwhile. Implements K14,
//! K21, K26, K57, K49 (jobs).

use super::named::attempt_ref;
use super::named::run_ref;
use super::pending::is_asking;
use super::report::{Note, Report, is_full};
use super::{Progress, Runner, RunnerError, Tip};
use crate::protocol::decide::{Decision, decide};
use crate::protocol::dialect::Writer;
use crate::protocol::event::{Event, RECOVERY_ID, RUNNER_ID};
use crate::protocol::id::ObjectId;
use crate::protocol::text::with_causes;
use crate::store::hooks::Hooks;
use crate::store::slots::affinity::Work;
use crate::store::slots::{Locked, Occupant, Pool, Slot, modules};
use crate::store::{RefName, RemoteFailure, StoreError};
use crate::supervisor::holders::{self, Named};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// How often a full pool is looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longest wait for a guardian to end what it guards: its own grace period, and some more.
const GUARDIAN_ENDS: Duration = Duration::from_millis(1500);

/// Most runs whose jobs are given to others while they wait for an answer (K49).
const ASKING_MAX: usize = 64;

/// How long a process may go on after it wrote its run's outcome, where its slot is needed.
const AFTER_OUTCOME: Duration = Duration::from_secs(1);

/// Why no runner on this machine works any more on a run whose lease has not expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abandoned {
    /// Its command has ended without an outcome (K21).
    ByItsCommand,
    /// Its runner was killed, or gave up.
    ByItsRunner,
    /// The remote could not be told of its work, or of its finished outcome, which is kept in this repository (K31).
    WithItsWork,
}

impl std::fmt::Display for Abandoned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Abandoned::ByItsCommand => "its command has ended without an outcome",
            Abandoned::ByItsRunner => "its runner has ended",
            Abandoned::WithItsWork => "its command has ended, and what it had done is kept here",
        })
    }
}

/// Which runs the slots are noted for: read once, when first needed, for one look at many branches.
#[derive(Debug, Default)]
pub struct Occupants(OnceCell<HashMap<String, Vec<usize>>>);

impl Occupants {
    /// Returns the numbers of the slots that are noted for this run.
    fn numbers_of(&self, runner: &Runner<'_>, run_id: &str) -> &[usize] {
        let read = || {
            let mut all: HashMap<String, Vec<usize>> = HashMap::new();
            let pool = runner.known_pool();
            for number in pool.known() {
                if let Some(run) = pool.peek(number).run {
                    all.entry(run.run_id).or_default().push(number);
                }
            }
            all
        };
        self.0.get_or_init(read).get(run_id).map_or(&[], Vec::as_slice)
    }
}

/// Returns the error for a slot whose note can't be read: such a slot is left as it is.
pub(super) fn unreadable_note(slot: &Slot) -> Option<RunnerError> {
    let note = slot.record().unreadable.clone()?;
    Some(RunnerError::SlotNote { note: note.path, dir: slot.dir().to_owned(), why: note.why })
}

/// True for an error that comes of what a command left, and so comes again, and not of the machine at this
/// moment. What has no room where it would be kept is the command's too: each run may leave as much.
fn comes_again(slot: &Slot, error: &RunnerError) -> bool {
    let own = |path: &Path| path.starts_with(slot.dir()) || path.starts_with(slot.admin_dir());
    use ErrorKind::{
        DirectoryNotEmpty, FileTooLarge, InvalidFilename, IsADirectory, NotADirectory, PermissionDenied,
    };
    match error {
        RunnerError::Store(StoreError::Git { .. } | StoreError::TooLong { .. }) => true,
        RunnerError::Store(StoreError::Io { source, path, .. }) | RunnerError::Io { source, path, .. } => {
            let kinds = [
                DirectoryNotEmpty,
                FileTooLarge,
                InvalidFilename,
                IsADirectory,
                NotADirectory,
                PermissionDenied,
            ];
            kinds.contains(&source.kind()) && own(path) || is_full(source) && path.starts_with(slot.dir())
        }
        _ => false,
    }
}

/// True where no remote of that name is configured any more, as where it was renamed.
fn is_unconfigured(error: &RunnerError) -> bool {
    let RunnerError::Store(StoreError::Remote { failure, .. }) = error else { return false };
    *failure == RemoteFailure::NotConfigured
}

/// True where a slot could not be made ready since this process can't look at what it holds.
pub(super) fn is_out_of_sight(slot: &Slot, error: &RunnerError) -> bool {
    let is_denied = match error {
        RunnerError::Store(StoreError::Io { source, .. }) | RunnerError::Io { source, .. } => {
            source.kind() == ErrorKind::PermissionDenied
        }
        _ => false,
    };
    is_denied || slot.is_there().is_err()
}

impl Runner<'_> {
    /// True while a process lives in the slot: of a guardian's, or of the slot's own run, whose guardian was killed
    /// together with its runner.
    pub(super) fn is_inhabited(&self, slot: &Slot) -> Result<bool, RunnerError> {
        let lives =
            |run: &Occupant| holders::lives(Named { id: &run.run_id, dir: &self.run_dir(&run.run_id) });
        Ok(slot.is_inhabited()? || slot.record().run.as_ref().is_some_and(lives))
    }

    /// Returns why no runner on this machine works on a lease of this machine's any more; `None` where that
    /// can't be said. Changes nothing.
    pub fn abandoned(&self, lease: &Event, occupants: &Occupants) -> Option<Abandoned> {
        let own = lease.text(RUNNER_ID) == Some(&*self.runner_id);
        if !own || !self.repo.aynig_dir().join("slots").is_dir() {
            return None;
        }
        let run_id = lease.run_id()?;
        let numbers = occupants.numbers_of(self, run_id);
        if numbers.is_empty() {
            // The run gave its slot back, with no process left in it.
            let ran_here = run_ref(run_id).is_some() && self.run_dir(run_id).is_dir();
            let kept = || {
                let tip = |name| self.scratch().and_then(|own| own.tip(&name));
                attempt_ref(run_id).is_some_and(|name| matches!(tip(name), Ok(Some(_))))
            };
            return (ran_here && self.is_dead(run_id)).then(|| match kept() {
                true => Abandoned::WithItsWork,
                false => Abandoned::ByItsCommand,
            });
        }
        let pool = self.known_pool();
        numbers.iter().find_map(|number| {
            // A runner that works on the run holds the slot's lock. A slot whose lock is free may be noted
            // for another run by now.
            let Ok(Locked::Taken(slot)) = pool.lock(*number) else { return None };
            let run = slot.record().run.as_ref().filter(|run| run.run_id == run_id)?;
            Some(if run.lingering { Abandoned::ByItsCommand } else { Abandoned::ByItsRunner })
        })
    }

    /// Returns how many runs in these slots wait for an answer: no more than a limit, because commands say so
    /// themselves.
    pub(super) fn asking_runs(&self, pool: &Pool<'_>) -> usize {
        let runs = pool.known().into_iter().filter_map(|number| pool.peek(number).run);
        runs.filter(|run| is_asking(&self.run_dir(&run.run_id))).take(ASKING_MAX).count()
    }

    /// Takes a free slot, and waits for one where the settings say so. `None`: the runner was stopped, no
    /// slot is free, or the branch moved meanwhile.
    pub(super) fn take_slot(
        &self,
        branch: &RefName,
        tip: &Tip,
        report: &mut Report,
    ) -> Result<Option<Slot>, RunnerError> {
        let mut pool = self.pool()?;
        let tree = tip.commit.tree.to_string();
        let remote = self.settings.remote.as_deref();
        let work = Work { branch: branch.as_bytes(), remote, tree: &tree };
        let mut ticket = None;
        let mut asked = self.clock.instant();
        loop {
            let (mut unsettled, mut busy, mut hidden) = (None, false, 0);
            let first = pool.first_of_turn(ticket.as_ref());
            for number in pool.order(&work).into_iter().filter(|number| *number >= first) {
                let mut slot = match pool.lock(number) {
                    Ok(Locked::Taken(slot)) => *slot,
                    Ok(Locked::InUse) => {
                        busy = true;
                        continue;
                    }
                    // The folder of locks existed a moment ago, so an uninstallation is removing it.
                    Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                        return Err(RunnerError::Closed { branch: branch.clone() });
                    }
                    Ok(Locked::Denied(error)) | Err(error) => {
                        let words = with_causes(&error);
                        report.note_once(Note::SlotLeft(pool.borrow(number).dir().to_owned(), words));
                        unsettled = unsettled.or(Some(error.into()));
                        continue;
                    }
                };
                if !pool.is_open(&slot)? {
                    return Err(RunnerError::Closed { branch: branch.clone() });
                }
                let settled = self.settle(&mut slot, report);
                let usable =
                    |free: bool| if free { self.registrable(&slot).map(|()| true) } else { Ok(false) };
                match settled.and_then(usable) {
                    Ok(true) => return Ok(Some(slot)),
                    Ok(false) => busy = true,
                    // A slot that can't be made ready keeps what is in it, and the search for another goes
                    // on.
                    Err(error) => {
                        let words = with_causes(&error);
                        report.note_once(Note::SlotLeft(slot.dir().to_owned(), words));
                        hidden += usize::from(slot.record().run.is_some() && is_out_of_sight(&slot, &error));
                        unsettled = unsettled.or(Some(error));
                    }
                }
            }
            // If all are taken, there may be more slots by now: runs that wait for an answer have given their
            // jobs back, and a run that is over has none while its work is out of sight.
            if pool.resize(self.settings.jobs.get() + self.asking_runs(&pool) + hidden) {
                continue;
            }
            // Where another slot is only in use, that one is waited for.
            if let Some(error) = unsettled.filter(|_| !busy) {
                let words = with_causes(&error);
                report.notes.retain(|note| !matches!(note, Note::SlotLeft(_, said) if *said == words));
                return Err(error);
            }
            if !self.settings.wait_for_slot {
                return Ok(None);
            }
            match &ticket {
                Some(ticket) => ticket.touch(),
                None => {
                    self.observer.told(branch, Progress::WaitingForSlot);
                    ticket = Some(pool.wait_in_line()?);
                }
            }
            self.interrupt.wait(LOOK_EVERY);
            if self.settings.remote.is_some()
                && self.clock.instant() - asked >= self.head_poll_interval(self.settings.lease)
            {
                // Other runners may have taken the branch meanwhile: then there is nothing to wait for.
                asked = self.clock.instant();
                let _ = self.fresh_tip(branch);
            }
            if self.interrupt.signal().is_some() || self.store.known_tip(branch)? != Some(tip.id()) {
                return Ok(None);
            }
        }
    }

    /// Makes a locked slot usable for this runner: work of a dead run is kept first. False where the slot
    /// must be left to its run.
    pub(super) fn settle(&self, slot: &mut Slot, report: &mut Report) -> Result<bool, RunnerError> {
        if let Some(error) = unreadable_note(slot) {
            return Err(error);
        }
        let Some(mut occupant) = slot.record().run.clone() else {
            if slot.is_inhabited()? {
                return Ok(false);
            }
            self.set_another_aside(slot, report)?;
            return Ok(true);
        };
        if self.lingers(slot, &occupant)? {
            return Ok(false);
        }
        if occupant.lingering && occupant.outcome.is_none() {
            occupant.outcome = self.unnoted_outcome(&occupant)?.map(|id| id.to_string());
        }
        if self.is_inhabited(slot)? && !self.evict(slot, &occupant)? {
            return Ok(false);
        }
        self.set_another_aside(slot, report)?;
        if occupant.lingering && occupant.remote.is_none() && Hooks::any_installed(self.repo) {
            // The process that set the run's outcome may have been ended before it notified a runner.
            super::pending::note(self.repo, &occupant.branch_name(), None)?;
        }
        // The guardian is dead, so its process id is removed: another process may have that id by the time
        // that a child of this runner is found in the slot.
        if occupant.guardian.take().is_some() {
            slot.occupy(Some(occupant.clone()))?;
        }
        match self.keep_occupant(slot, &occupant) {
            Ok(Some(attempt)) => report.notes.push(Note::FoundAttempt(attempt, occupant.branch_name())),
            Ok(None) => {}
            // The next attempt would end in the same way, and the slot would be lost with it.
            Err(error) if self.interrupt.signal().is_none() && comes_again(slot, &error) => {
                let aside = slot.set_aside(&occupant.run_id)?;
                report.notes.push(Note::SetAside(aside, with_causes(&error)));
            }
            Err(error) => return Err(error),
        }
        if let Some(lease) = occupant.lease_id() {
            let _ = slot.leave(self.repo, lease);
        }
        self.note_modules(&occupant.run_id, report);
        if let Some(lease) = occupant.lease_id() {
            // A ref that can't be removed now is left to `gc`.
            let _ = self.unfollow_from(&occupant.run_id, lease);
        }
        slot.occupy(None)?;
        Ok(true)
    }

    /// Moves a folder out of the way that is not the one in which the slot was filled. That is for a slot in which nothing
    /// lives: under a process of the run it would lose its place of work.
    fn set_another_aside(&self, slot: &mut Slot, report: &mut Report) -> Result<(), RunnerError> {
        if slot.is_another() {
            let aside = slot.set_aside(&uuid::Uuid::new_v4().to_string())?;
            report.notes.push(Note::SetAside(aside, "its folder was gone for a while".to_owned()));
        }
        Ok(())
    }

    /// Notes where repositories are kept that a run left: those of submodules with commits of their own, and
    /// others in its worktree.
    pub(super) fn note_modules(&self, run_id: &str, report: &mut Report) {
        let kept = modules::kept_of(self.repo, run_id);
        // An empty folder is left of work that could not be moved there.
        if std::fs::read_dir(&kept).is_ok_and(|mut all| all.next().is_some()) {
            let names = modules::names(&kept).unwrap_or_default();
            let (nested, modules): (Vec<_>, Vec<_>) =
                names.into_iter().partition(|name| name.file_name().is_some_and(|name| name == ".git"));
            if modules.is_empty() || !nested.is_empty() {
                report.notes.push(Note::RepositoriesKept(kept.clone(), nested));
            }
            if !modules.is_empty() {
                report.notes.push(Note::SubmodulesKept(kept, modules));
            }
        }
    }

    /// True where a locked slot must be left to its run: says what [`Runner::settle`] would find, and changes
    /// nothing.
    pub(super) fn is_taken(&self, slot: &Slot) -> Result<bool, RunnerError> {
        let lives = match &slot.record().run {
            _ if slot.record().unreadable.is_some() => true,
            Some(occupant) => self.lingers(slot, occupant)?,
            None => slot.is_inhabited()?,
        };
        Ok(lives)
    }

    /// True where a run whose command is over keeps its slot: its lease lives, and so does a process of it.
    fn lingers(&self, slot: &Slot, occupant: &Occupant) -> Result<bool, RunnerError> {
        Ok(occupant.lingering && self.is_inhabited(slot)? && self.lease_lives(occupant)?)
    }

    /// True while the occupant's lease is its branch's head and has not expired.
    pub(super) fn lease_lives(&self, occupant: &Occupant) -> Result<bool, RunnerError> {
        if occupant.remote != self.settings.remote {
            let asked = self.elsewhere(occupant.remote.as_deref(), |runner| runner.lease_lives(occupant));
            return match asked {
                Err(error) if is_unconfigured(&error) && !self.may_live(occupant) => Ok(false),
                asked => asked,
            };
        }
        let branch = occupant.branch_name();
        // The head is read anew: a process that lives in the slot may have renewed the lease since the last
        // read.
        let Some(tip) = self.fresh_tip(&branch)? else { return Ok(false) };
        let own = tip.event.as_ref().and_then(Event::run_id) == Some(&*occupant.run_id);
        let seen = self.first_seen(&branch, tip.id());
        let decision = decide(tip.head(), seen, self.clock.now(), self.policy(false));
        Ok(own && matches!(decision, Decision::Leased { .. }))
    }

    /// True where the lease in an occupant's note has not expired by its own date, as far as can be read.
    fn may_live(&self, occupant: &Occupant) -> bool {
        let commit = occupant.lease_id().and_then(|id| self.store.read_commit(id).ok());
        commit.map(Tip::from).is_none_or(|lease| self.is_in_time(&lease))
    }

    /// True where a commit is a lease that has not expired by its own date.
    pub(super) fn is_in_time(&self, lease: &Tip) -> bool {
        let seconds = lease.event.as_ref().filter(|event| event.is_working()).and_then(Event::lease_seconds);
        let seconds = seconds.and_then(|seconds| i64::try_from(seconds).ok());
        let end = lease.commit.committed.zip(seconds).map(|(at, seconds)| at.saturating_add(seconds));
        end.is_some_and(|end| self.clock.now() <= end)
    }

    /// Returns the outcome that a process of a lingering run has brought to its branch but not noted in the
    /// slot yet: the branch moves first, and a runner that needs the slot may lock it in between.
    fn unnoted_outcome(&self, occupant: &Occupant) -> Result<Option<ObjectId>, RunnerError> {
        if occupant.remote != self.settings.remote {
            return match self.elsewhere(occupant.remote.as_deref(), |runner| runner.unnoted_outcome(occupant))
            {
                // What is in the slot is kept, and no other branch waits.
                Err(error) if is_unconfigured(&error) => Ok(None),
                asked => asked,
            };
        }
        let (Some(tip), Some(lease)) = (self.read_tip(&occupant.branch_name())?, occupant.lease_id()) else {
            return Ok(None);
        };
        let is_outcome = |tip: &&Tip| {
            tip.event.as_ref().is_some_and(|event| {
                let own = event.run_id() == Some(&*occupant.run_id);
                own && !event.is_working() && event.text(RECOVERY_ID).is_none()
            })
        };
        let below = self.below(&tip, &[lease])?;
        Ok(std::iter::once(&tip).chain(&below).find(is_outcome).map(Tip::id))
    }

    /// Asks the guardian of a run that is over to end what is left, and ends what has no guardian any more; true once the
    /// slot is empty.
    fn evict(&self, slot: &Slot, occupant: &Occupant) -> Result<bool, RunnerError> {
        // The process that wrote the run's outcome is about to end by itself.
        if occupant.outcome.is_some() && self.is_left_within(slot, AFTER_OUTCOME)? {
            return Ok(true);
        }
        if !slot.is_inhabited()? {
            holders::end_run(Named { id: &occupant.run_id, dir: &self.run_dir(&occupant.run_id) });
            return self.is_left_within(slot, GUARDIAN_ENDS);
        }
        if occupant.lingering {
            holders::ask_to_end(&slot.hold_path(), occupant.guardian);
        }
        // A guardian that is suspended handles no signal, so it is woken. Its runner is gone: only this
        // process has the slot's lock.
        holders::wake(&slot.hold_path());
        if self.is_left_within(slot, GUARDIAN_ENDS)? {
            return Ok(true);
        }
        holders::end_stopped(&slot.hold_path());
        self.is_left_within(slot, GUARDIAN_ENDS)
    }

    /// Waits until no process lives in the slot; false where one still does after this long.
    fn is_left_within(&self, slot: &Slot, patience: Duration) -> Result<bool, RunnerError> {
        let until = self.clock.instant() + patience;
        while self.is_inhabited(slot)? {
            if self.clock.instant() >= until {
                return Ok(false);
            }
            self.interrupt.wait(Duration::from_millis(10));
        }
        Ok(true)
    }

    /// Keeps the work in the slot of a run that ended without its runner.
    fn keep_occupant(&self, slot: &Slot, occupant: &Occupant) -> Result<Option<RefName>, RunnerError> {
        let Some(lease) = occupant.lease_id() else { return Ok(None) };
        let outcome = occupant.outcome_id().map(|id| self.store.read_commit(id)).transpose()?;
        let tip = Tip::from(self.store.read_commit(lease)?);
        match tip.event.as_ref().map(|e| e.dialect).unwrap_or_default().writer() {
            Writer::Runner => {
                self.keep_attempt(slot, &occupant.run_id, lease, tip.commit.tree, outcome.as_ref())
            }
            Writer::Command => {
                let branch = occupant.branch_name();
                self.keep_beyond(slot, &occupant.run_id, &branch, lease, outcome.as_ref())
            }
        }
    }
}

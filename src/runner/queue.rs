//! Branches that wait for a slot: one process watches them, and each process that has just freed a slot looks
//! once.
//!
//! [`Runner::next_waiting`] carries out what `protocol::queue` decides, until there is something to run, or
//! nothing for this process to do. The watch is a lock that dies with its holder. Implements K14 (pending),
//! K40.

use super::pending::{self, Note, Taken};
use super::settings::Settings;
use super::{Runner, RunnerError, io};
use crate::protocol::queue::{Next, Seen, Watch, next};
use crate::store::RefName;
use crate::store::repository::Repository;
use crate::store::slots::{Occupant, Pool};
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// How often the watcher looks, and how often where a look asks a remote.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_FAR: Duration = Duration::from_secs(30);

/// The watch over what waits in a repository: one process has it.
#[derive(Debug)]
pub(crate) struct Watching(#[allow(dead_code, reason = "held, not read")] Flock<File>);

/// What is to be done about branches that wait.
#[derive(Debug)]
pub enum Waiting {
    /// These were taken on: each has a slot, unless another process takes that first. True where more
    /// branches are to be watched.
    Run(Vec<Taken>, bool),
    /// A slot may be free by now, after a wait. What was read before the wait may be out of date.
    Later,
    /// Nothing: no branch waits, or another process watches.
    Nobody,
}

/// Takes the watch; `None` where another process has it.
pub(crate) fn watch(repo: &Repository) -> Result<Option<Watching>, RunnerError> {
    let path = repo.aynig_dir().join("pending.lock");
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    let file = options.open(&path).map_err(io("open", &path))?;
    repo.share(&path);
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(Watching(lock))),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, errno)) => Err(io("lock", &path)(errno.into())),
    }
}

/// Notes a branch that found no slot, and the id that its run was promised, which the process that takes the
/// branch on uses.
pub(crate) fn note_waiting(
    repo: &Repository,
    settings: &Settings,
    branch: &RefName,
) -> Result<(), RunnerError> {
    let promised = settings.run_ids.lock().ok().and_then(|mut ids| ids.remove(branch));
    pending::note(repo, branch, promised.as_deref())
}

impl Runner<'_> {
    /// Watches until something can be run, or nothing is left for this process to do. `stuck`: slots that
    /// look free were of no use a moment ago.
    pub fn next_waiting(&self, mut stuck: bool) -> Result<Waiting, RunnerError> {
        let (mut whose, mut held, mut waited) = (Watch::Unknown, None, false);
        // If the repository was removed, nothing waits in it any more.
        while self.interrupt.signal().is_none()
            && self.repo.common_dir.join("HEAD").symlink_metadata().is_ok()
        {
            let (seen, free) = self.look_at_queue(stuck)?;
            match next(seen, whose) {
                Next::TakeOn if waited => return Ok(Waiting::Later),
                Next::TakeOn => {
                    drop(held.take());
                    whose = Watch::Unknown;
                    let taken = self.take_on(free);
                    if !taken.is_empty() {
                        let more = seen.kept || pending::notes(self.repo).len() > taken.len();
                        return Ok(Waiting::Run(taken, more));
                    }
                }
                Next::AskForWatch => {
                    held = watch(self.repo)?;
                    whose = if held.is_some() { Watch::Mine } else { Watch::Others };
                }
                Next::Wait => {
                    self.wait_for_slots();
                    (waited, stuck) = (true, false);
                }
                Next::EndWatch => (held, whose) = (None, Watch::Unknown),
                Next::Leave => return Ok(Waiting::Nobody),
            }
        }
        Ok(Waiting::Nobody)
    }

    /// Returns what is seen now, and how many slots are free.
    fn look_at_queue(&self, stuck: bool) -> Result<(Seen, usize), RunnerError> {
        // In this order: a process that outlived its command notes what it set before it ends, so the notes
        // are read after the runs that keep slots; and the process that frees a slot sees what was noted
        // before that.
        let mut kept = false;
        for (number, run) in self.keepers()? {
            kept |= run.remote.is_none() && self.may_still_set(number, &run)?;
        }
        let waiting = pending::notes(self.repo).iter().any(Note::is_free);
        // Slots are looked at only where a branch waits.
        let free = if waiting && !stuck { self.free_slots(self.settings.jobs.get())? } else { 0 };
        Ok((Seen { waiting, free: free > 0, kept }, free))
    }

    /// True while a run whose command is over may still write its outcome, or say that it has.
    fn may_still_set(&self, number: usize, run: &Occupant) -> Result<bool, RunnerError> {
        if let Some(slot) = self.pool()?.lock(number)? {
            let same = slot.record().run.as_ref().is_some_and(|now| now.run_id == run.run_id);
            if !same || !slot.is_inhabited()? {
                return Ok(false);
            }
        }
        if self.lease_lives(run)? {
            return Ok(true);
        }
        let head = self.read_tip(&run.branch_name())?.and_then(|tip| tip.event);
        // If the head is the run's own lease, that lease is over, and the next tick of the branch says so.
        Ok(!head.is_some_and(|event| event.is_working() && event.run_id() == Some(&*run.run_id)))
    }

    fn take_on(&self, most: usize) -> Vec<Taken> {
        let mut taken: Vec<Taken> =
            pending::notes(self.repo).iter().filter_map(Note::take).take(most).collect();
        for one in &mut taken {
            if let (Some(id), Ok(mut ids)) = (one.run_id.take(), self.settings.run_ids.lock()) {
                ids.insert(one.branch.clone(), id);
            }
        }
        taken
    }

    fn wait_for_slots(&self) {
        let remote = self.keepers().is_ok_and(|runs| runs.iter().any(|(_, run)| run.remote.is_some()));
        let until = self.clock.instant() + if remote { LOOK_FAR } else { LOOK };
        while self.clock.instant() < until && self.interrupt.signal().is_none() {
            self.interrupt.wait(until.saturating_duration_since(self.clock.instant()));
        }
    }

    /// True where a watch is needed: a branch is noted, or a run whose command is over may set something.
    pub fn is_to_be_watched(&self, hooks: bool) -> Result<bool, RunnerError> {
        let kept = || Ok(hooks && self.keepers()?.iter().any(|(_, run)| run.remote.is_none()));
        if self.repo.has_pending() { Ok(true) } else { kept() }
    }

    /// Returns the runs whose commands are over and that keep their slots, with the numbers of these.
    fn keepers(&self) -> Result<Vec<(usize, Occupant)>, RunnerError> {
        let pool = self.pool()?;
        let runs = pool.known().into_iter().filter_map(|number| Some((number, pool.peek(number).run?)));
        Ok(runs.filter(|(_, run)| run.lingering).collect())
    }

    /// Returns how many slots are free of the first `size`, and of one more for each run that waits for an
    /// answer. Creates nothing.
    pub fn free_slots(&self, size: usize) -> Result<usize, RunnerError> {
        if !self.repo.aynig_dir().join("slots").is_dir() {
            return Ok(size);
        }
        let mut pool = Pool::new(self.repo, self.settings.worktree_dir.clone(), size)?;
        pool.resize(size + self.asking_runs(&pool));
        let mut free = 0;
        for number in pool.numbers() {
            let is_free = !pool.was_used(number)
                || match pool.lock(number)? {
                    Some(slot) => self.is_taken(&slot).is_ok_and(|taken| !taken),
                    None => false,
                };
            free += usize::from(is_free);
        }
        Ok(free)
    }
}

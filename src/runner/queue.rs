//! Branches that wait for a slot: one process watches them, and each process that has just freed a slot looks
//! once.
//!
//! [`Runner::next_waiting`] carries out what `protocol::queue` decides, until there is something to run, or
//! nothing for this process to do. The watch is a lock that dies with its holder. Implements K14 (pending),
//! K40.

use super::pending::{self, Backlog, Taken};
use super::settings::Settings;
use super::{Runner, RunnerError};
use crate::protocol::queue::{Next, Seen, Watch, next};
use crate::store::RefName;
use crate::store::repository::Repository;
use crate::store::slots::{Locked, Occupant};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// How often the watcher looks, and how often where a look asks a remote.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_FAR: Duration = Duration::from_secs(30);

/// The watch over the branches that wait in a repository, which one process at a time has. It is the lock of
/// an open file.
#[derive(Debug)]
pub struct Watching(Option<File>);

impl Watching {
    /// Returns the locked file, which becomes the standard input of a process that has the watch from its
    /// start on. Nothing is unlocked: the lock goes with the file.
    pub(crate) fn hand_over(mut self) -> Option<File> {
        self.0.take()
    }

    /// Returns the watch that this process was started with; `None` where its standard input is another file.
    ///
    /// # Errors
    /// No descriptor is left, or there is no `/dev/null`.
    pub fn inherited(repo: &Repository) -> std::io::Result<Option<Self>> {
        let given = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let place = lock_path(repo).symlink_metadata();
        if !place.is_ok_and(|lock| {
            given.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (lock.dev(), lock.ino()))
        }) {
            return Ok(None);
        }
        // A child that inherits the file as its standard input would keep the watch beyond this process's
        // end.
        nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
        Ok(given.try_lock().is_ok().then_some(Self(Some(given))))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that another thread forks at this moment would keep the
        // lock a little longer.
        if let Some(file) = &self.0 {
            let _ = file.unlock();
        }
    }
}

fn lock_path(repo: &Repository) -> PathBuf {
    repo.aynig_dir().join("pending.lock")
}

/// What is to be done about branches that wait.
#[derive(Debug)]
pub enum Waiting {
    /// These notes were taken on: each branch has a slot, unless another process takes that first. True where
    /// more branches are to be watched.
    Run(Vec<Taken>, bool),
    /// A slot may be free by now, after a wait. What was read before the wait may be out of date.
    Later,
    /// Nothing: no branch waits, or another process watches.
    Nobody,
}

/// Takes the watch; `None` where another process has it.
pub(crate) fn watch(repo: &Repository) -> Result<Option<Watching>, RunnerError> {
    Ok(pending::try_lock(repo, &lock_path(repo))?.map(|file| Watching(Some(file))))
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
    /// Looks, and waits, until something can be run or this process has nothing to do. With `stuck`, slots
    /// that look free were of no use a moment ago. `held` is the watch if this process was started to watch;
    /// it then first leaves what waits to the process that started it.
    pub fn next_waiting(
        &self,
        backlog: &mut Backlog,
        mut stuck: bool,
        mut held: Option<Watching>,
    ) -> Result<Waiting, RunnerError> {
        let (mut whose, mut waited) = (Watch::Unknown, false);
        if held.is_some() {
            self.wait_for_slots();
            (whose, waited) = (Watch::Mine, true);
        }
        // If the repository is removed, so are the branches that wait in it, and the loop ends.
        while self.interrupt.signal().is_none()
            && self.repo.common_dir.join("HEAD").symlink_metadata().is_ok()
        {
            let (seen, free) = self.look_at_queue(backlog, stuck)?;
            match next(seen, whose) {
                Next::TakeOn if waited => return Ok(Waiting::Later),
                Next::TakeOn => {
                    drop(held.take());
                    whose = Watch::Unknown;
                    let taken = self.take_on(backlog, free);
                    if !taken.is_empty() {
                        let more = seen.kept || backlog.has_more(self.repo, taken.len());
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
    fn look_at_queue(&self, backlog: &mut Backlog, stuck: bool) -> Result<(Seen, usize), RunnerError> {
        // The order matters: what a process that was left behind set is noted before the process is gone, and
        // what is noted before a slot was freed is seen by the process that freed the slot.
        let mut kept = false;
        for (number, run) in self.keepers()? {
            kept |= run.remote.is_none() && self.may_still_set(number, &run)?;
        }
        let waiting = backlog.has_first(self.repo);
        // Slots are looked at only where a branch waits.
        let mut free = if waiting && !stuck { self.free_slots(self.settings.jobs.get())? } else { 0 };
        // A branch may be evaluated for long without a slot, or need none, so free slots alone do not limit
        // how many processes are at work.
        let may_work = free > 0 && backlog.take_place(self.repo, self.places());
        if !may_work {
            backlog.leave_place();
            free = 0;
        }
        Ok((Seen { waiting, free: free > 0, kept }, free))
    }

    /// Returns how many processes may work off branches that wait: as many as there are slots, and one more for
    /// each whose command waits for an answer.
    fn places(&self) -> usize {
        self.settings.jobs.get() + self.asking_runs(&self.known_pool())
    }

    /// True while a run whose command is over may still write its outcome, or say that it has.
    fn may_still_set(&self, number: usize, run: &Occupant) -> Result<bool, RunnerError> {
        match self.known_pool().lock(number) {
            Ok(Locked::Taken(slot)) => {
                let same = slot.record().run.as_ref().is_some_and(|now| now.run_id == run.run_id);
                if !same || !self.is_inhabited(&slot)? {
                    return Ok(false);
                }
            }
            Ok(Locked::InUse) => {}
            // What another account's run sets is that account's to watch.
            Ok(Locked::Denied(_)) | Err(_) => return Ok(false),
        }
        if self.lease_lives(run)? {
            return Ok(true);
        }
        let head = self.read_tip(&run.branch_name())?.and_then(|tip| tip.event);
        // If the head is the run's own lease, that lease is over, and the next tick of the branch says so.
        Ok(!head.is_some_and(|event| event.is_working() && event.run_id() == Some(&*run.run_id)))
    }

    fn take_on(&self, backlog: &mut Backlog, most: usize) -> Vec<Taken> {
        let mut taken = backlog.take(most);
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
        let pool = self.known_pool();
        let runs = pool.known().into_iter().filter_map(|number| Some((number, pool.peek(number).run?)));
        Ok(runs.filter(|(_, run)| run.lingering).collect())
    }

    /// Returns how many slots are free of the first `size`, and of one more for each run that waits for an
    /// answer. Creates nothing.
    pub fn free_slots(&self, size: usize) -> Result<usize, RunnerError> {
        if !self.repo.aynig_dir().join("slots").is_dir() {
            return Ok(size);
        }
        let mut pool = self.known_pool();
        pool.resize(size);
        pool.resize(size + self.asking_runs(&pool));
        let (mut free, mut denied, numbers) = (0, Vec::new(), pool.numbers());
        for number in &numbers {
            let is_free = !pool.was_used(*number)
                || match pool.lock(*number) {
                    Ok(Locked::Taken(slot)) => self.is_taken(&slot).is_ok_and(|taken| !taken),
                    Ok(Locked::InUse) => false,
                    Ok(Locked::Denied(error)) | Err(error) => {
                        denied.push(error);
                        false
                    }
                };
            free += usize::from(is_free);
        }
        // A slot that can't be locked, as another account's, is none of this runner's; where no other is, no wait ends.
        if denied.len() < numbers.len() {
            Ok(free)
        } else {
            denied.pop().map_or(Ok(free), |error| Err(error.into()))
        }
    }
}

//! One run from claim to the command's end: fill the slot, start the command, keep the lease, watch the branch.
//!
//! One loop waits for the guardian's events, the next look at the head, the next renewal and a request
//! to stop. The lease is given up before it ends, so that the command is dead before another runner may take the
//! branch. Implements K16-K18, K29.

use super::active_run::ActiveRun;
use super::handed;
use super::report::Note;
use super::settings::Sandbox;
use super::{Progress, RunnerError};
use crate::protocol::complete::{Exit, HeadIs};
use crate::protocol::declaration::{LINE_MAX, LINE_PREFIX};
use crate::protocol::holding::{AfterLook, Duty, LeaseDeadlines, NEVER, RENEW_AGAIN, after_look};
use crate::protocol::text::with_causes;
use crate::store::command_copy;
use crate::store::command_tree::FOLDER;
use crate::supervisor::{Ending, Event, Spec, Supervised, Wake, own_program};
use nix::errno::Errno;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest network call while a command runs; the lease may ask for less.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What the loop of a run remembers from one turn to the next.
struct Watch {
    guardian: Supervised,
    /// Why the command was told to stop.
    stopped: Option<Exit>,
    /// When the head is read next, and how long after that again.
    look: Instant,
    poll: Duration,
    /// The time before which a failed renewal is not tried again.
    renew_not_before: Duration,
    /// The time at which the guardian was told to give the lease up by itself.
    ordered: Duration,
}

impl ActiveRun<'_> {
    /// Runs a program of `.aynig/` until it ends.
    pub(super) fn supervised(&mut self, program: &Path) -> Result<(Exit, Option<Supervised>), RunnerError> {
        let mut spec = self.spec(program)?;
        // This comes last, so that as little as possible happens between the check and the start.
        self.prove_copy()?;
        self.started = self.runner.clock.instant();
        // This includes git-aynig's own command, because what that starts is confined as well.
        let confined = self.runner.settings.sandbox != Sandbox::Off;
        let watched = confined.then(|| self.slot.watch_leads(self.runner.repo)).transpose()?;
        let deadlines = self.runner.deadlines(&self.claim);
        let ordered = self.limit(&deadlines);
        spec.stop_after = (ordered != NEVER).then(|| (self.left(ordered), deadlines.grace));
        let guardian = Supervised::start(&spec)?;
        let (mut exit, guardian) = self.watch(guardian, ordered)?;
        if let Some(watched) = watched {
            let changed = self.slot.changed_leads(self.runner.repo, &watched)?;
            exit = changed.map_or(exit, Exit::Redirected);
        }
        if let Exit::NotStarted(why) = &mut exit {
            // The user knows the path in `.aynig/`; the place of the copy is of no help.
            *why = why.replace(&*self.program.place.to_string_lossy(), FOLDER);
        }
        Ok((exit, guardian))
    }

    /// Makes sure that the copy of `.aynig/` is what was committed, and notes it where the copy was restored.
    pub(super) fn prove_copy(&mut self) -> Result<(), RunnerError> {
        let runner = self.runner;
        if command_copy::prove(runner.repo, &*runner.store, self.program.command.tree)? {
            self.report.note_once(Note::CommandsRestored);
        }
        Ok(())
    }

    fn spec(&mut self, program: &Path) -> Result<Spec, RunnerError> {
        let settings = self.runner.settings;
        let is_ours = self.is_ours(program)?;
        let sandbox = if is_ours { &Sandbox::Off } else { &settings.sandbox };
        let start = self.start_of(program, is_ours, sandbox)?;
        Ok(Spec {
            guardian: own_program(&self.runner.program),
            argv: start.argv,
            env: start.env,
            stdin: start.stdin,
            cwd: self.slot.dir().to_owned(),
            stdout_log: self.logs.stdout.clone(),
            stderr_log: self.logs.stderr.clone(),
            log_max: settings.log_max,
            timeout: settings.timeout,
            kill_grace: settings.kill_grace,
            watch: LINE_PREFIX.as_bytes().to_vec(),
            line_max: LINE_MAX,
            tee: settings.tee,
            hold: Some(self.slot.hold_path()),
            confine: self.confinement(sandbox)?,
            stop_after: None,
        })
    }

    /// Returns when the guardian gives the lease up by itself, where a call of this runner hangs, or the runner is
    /// suspended.
    fn limit(&self, deadlines: &LeaseDeadlines) -> Duration {
        self.own_event.map_or(deadlines.give_up, |_| NEVER)
    }

    fn left(&self, limit: Duration) -> Duration {
        limit.saturating_sub(self.runner.clock.elapsed())
    }

    /// Runs the one loop of a run, until the supervised program has ended. `ordered` is the limit that the guardian
    /// was started with.
    fn watch(
        &mut self,
        guardian: Supervised,
        ordered: Duration,
    ) -> Result<(Exit, Option<Supervised>), RunnerError> {
        let runner = self.runner;
        let poll = runner.head_poll_interval(self.claim.run.lease_seconds);
        let look = runner.clock.instant() + poll;
        let mut watch =
            Watch { guardian, stopped: None, look, poll, renew_not_before: Duration::ZERO, ordered };
        loop {
            let deadlines = runner.deadlines(&self.claim);
            let limit = self.limit(&deadlines);
            if std::mem::replace(&mut watch.ordered, limit) != limit {
                watch.guardian.stop_after(self.left(limit), deadlines.grace);
            }
            let interrupt = self.interrupted.is_none().then(|| runner.interrupt.fd());
            let until = self.has_duty(&watch).then(|| self.wake_at(watch.look, &deadlines));
            let asked = self.hands_over().then(|| runner.clock.instant() + handed::LOOK);
            let until = until.into_iter().chain(asked).min();
            match watch.guardian.next(until, interrupt)? {
                Wake::Event(Event::Exited { ending, leaked }) => {
                    self.held_open = leaked;
                    if leaked {
                        self.report.notes.push(Note::OutputHeldOpen);
                    }
                    let given_up = runner.clock.elapsed() >= limit;
                    let exit = exit_of(ending, watch.stopped.or(given_up.then_some(Exit::Stopped)));
                    return Ok((exit, Some(watch.guardian)));
                }
                Wake::Event(Event::Done { .. }) => return Ok((Exit::Unsupervised, None)),
                Wake::Event(event) => self.note_event(event),
                Wake::Interrupted => {
                    self.interrupted = runner.interrupt.signal();
                    let patience = runner.settings.kill_grace;
                    watch.guardian.stop(match self.own_event {
                        // The outcome is written: there is no lease to give up in time.
                        Some(_) => patience,
                        None => deadlines.kill_after(runner.clock.elapsed(), patience),
                    });
                    watch.stopped.get_or_insert(Exit::Interrupted);
                }
                Wake::Deadline => {}
            }
            if self.hands_over() && self.answer_handed() {
                // What the verb wrote may be the outcome, so the head is looked at now.
                watch.look = runner.clock.instant();
            }
            if self.has_duty(&watch) {
                self.keep_lease_alive(&mut watch, &deadlines);
            }
        }
    }

    /// True where the run still has to keep its lease. One that is stopped, or has its outcome, only waits
    /// for its command to end.
    fn has_duty(&self, watch: &Watch) -> bool {
        watch.stopped.is_none() && self.own_event.is_none()
    }

    /// Returns when to wake up at the latest.
    fn wake_at(&self, look: Instant, deadlines: &LeaseDeadlines) -> Instant {
        let clock = self.runner.clock;
        let now = clock.elapsed();
        look.min(clock.instant() + deadlines.next(now).saturating_sub(now))
    }

    /// Reads the head and renews the lease where it is time for that; stops the command where the lease is lost.
    fn keep_lease_alive(&mut self, watch: &mut Watch, deadlines: &LeaseDeadlines) {
        let runner = self.runner;
        if runner.clock.instant() >= watch.look {
            watch.look = runner.clock.instant() + watch.poll;
            // No call may hold up the moment at which the lease is given up.
            let left = deadlines.give_up.saturating_sub(runner.clock.elapsed());
            runner.store.set_patience(PATIENCE.min(left));
            match self.still_holds() {
                Ok(true) => {}
                Ok(false) => {
                    let patience = runner.settings.kill_grace;
                    watch.guardian.stop(deadlines.kill_after(runner.clock.elapsed(), patience));
                    watch.stopped = Some(Exit::Stopped);
                    return;
                }
                // What can't be read now may be readable later; the lease's end is the limit.
                Err(error) => self.report.note_once(Note::RenewalFailed(with_causes(&error))),
            }
        }
        match deadlines.duty(runner.clock.elapsed(), watch.renew_not_before) {
            Duty::Wait => {}
            Duty::GiveUp => {
                watch.guardian.stop(deadlines.grace);
                watch.stopped = Some(Exit::Stopped);
            }
            Duty::Renew => {
                match runner.renew(self.branch, &mut self.claim) {
                    Ok(true) => runner.observer.told(self.branch, Progress::Renewed),
                    Ok(false) => watch.look = runner.clock.instant(),
                    Err(error) => self.report.note_once(Note::RenewalFailed(with_causes(&error))),
                }
                watch.renew_not_before = runner.clock.elapsed() + RENEW_AGAIN;
            }
        }
    }

    fn note_event(&mut self, event: Event) {
        let (runner, branch) = (self.runner, self.branch);
        match event {
            Event::Started { pid } => runner.observer.told(branch, Progress::Started { pid }),
            Event::Line(line) => self.declared.line(&line),
            Event::LongLine(length) => self.declared.too_long(length),
            Event::Output { stdout, stderr, last } => {
                runner.observer.told(branch, Progress::Output { bytes: stdout + stderr, last: &last });
            }
            Event::Chunk { stderr, bytes } => {
                runner.observer.told(branch, Progress::Chunk { stderr, bytes: &bytes });
            }
            Event::LogFailed { stderr, errno } => {
                let path = if stderr { &self.logs.stderr } else { &self.logs.stdout };
                let cause = std::io::Error::from_raw_os_error(errno);
                self.report.notes.push(Note::LogFailed(format!("'{}': {cause}", path.display())));
            }
            Event::Exited { .. } | Event::Done { .. } | Event::Beat => {}
        }
    }

    /// Reads the branch's head; false once the branch is lost to another.
    fn still_holds(&mut self) -> Result<bool, RunnerError> {
        let head = self.check_head(None)?;
        if let HeadIs::OwnEvent(id) = head {
            self.own_event = Some(id);
        }
        Ok(match after_look(head) {
            AfterLook::Keep | AfterLook::LetFinish => true,
            AfterLook::Stop => false,
        })
    }
}

fn exit_of(ending: Ending, stopped: Option<Exit>) -> Exit {
    match ending {
        Ending::Exited(code) => Exit::Code(code),
        Ending::Signaled { signal, core_dumped } => Exit::Signal { signal, core_dumped },
        Ending::TimedOut { after, .. } => Exit::TimedOut(after),
        Ending::Stopped { .. } => stopped.unwrap_or(Exit::Interrupted),
        Ending::NotStarted { errno, what } => {
            Exit::NotStarted(format!("{what}: {}", Errno::from_raw(errno).desc()))
        }
        Ending::GuardianLost => Exit::Unsupervised,
        Ending::GuardianStopped => Exit::SupervisorStopped,
    }
}

//! A run from its claim to its end: start, look, renew, give up, complete.
//!
//! When, and what a look means, is asked of `holding`; what a run leaves, of `complete`. Tries K17, K18, K20-K24.

use crate::texts::{self, Text};
use crate::world::{Call, Ended, NONE, Phase, Rule, State, TICK, World, elapsed};
use aynig::protocol::complete::{Completion, Declared, HeadIs, Kept, complete, kept_of_fenced};
use aynig::protocol::dialect::Dialect;
use aynig::protocol::holding::{
    AfterLook, BeforeStart, Duty, HeadFacts, SeenHead, after_look, classify_head, is_own_event,
};
use aynig::protocol::id::ObjectId;
use std::convert::Infallible;
use std::time::Duration;

/// What the world holds about the head of a run's branch.
struct Facts<'s> {
    state: &'s State,
    run_id: &'s str,
    lease: u8,
}

impl HeadFacts for Facts<'_> {
    type Error = Infallible;

    fn stands_on_lease(&mut self) -> Result<bool, Infallible> {
        Ok(stands_on(self.state, self.state.head, self.lease))
    }

    fn is_slot_head(&mut self) -> Result<bool, Infallible> {
        Ok(false)
    }

    fn own_event_below(&mut self) -> Result<Option<ObjectId>, Infallible> {
        let s = self.state;
        let own =
            |c: &u8| is_own_event(s.says(*c).event.as_ref(), self.run_id) && stands_on(s, *c, self.lease);
        Ok(below(s, s.head).take_while(|c| *c != self.lease).find(own).map(texts::id))
    }
}

impl World {
    pub(super) fn start_command(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        if !runner.acts() || runner.phase != Phase::Claimed || runner.call != Call::None {
            return None;
        }
        match self.moments(&runner).before_start(elapsed(s.time)) {
            BeforeStart::Renew if self.keeps(Rule::CheckBeforeStart) => {
                self.build_renewal(s, r, Phase::Claimed)
            }
            BeforeStart::Renew | BeforeStart::Start => self.run_command(s, r),
        }
    }

    pub(super) fn run_command(&self, s: &mut State, r: usize) -> Option<()> {
        s.runners[r].phase = Phase::Running;
        let run = usize::from(s.runners[r].run);
        s.runs[run].starts += 1;
        self.judge_start(s);
        Some(())
    }

    pub(super) fn build_renewal(&self, s: &mut State, r: usize, phase: Phase) -> Option<()> {
        let lease = s.runners[r].lease;
        let text = s.says(lease).text;
        let commit = s.write(lease, text, self.wall(r, s.time))?;
        self.send(s, r, phase, commit)
    }

    pub(super) fn renew(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        let may = runner.acts() && runner.phase == Phase::Running && runner.call == Call::None && !runner.own;
        let due = may && self.moments(&runner).duty(elapsed(s.time), Duration::ZERO) == Duty::Renew;
        due.then(|| self.build_renewal(s, r, Phase::Running))?
    }

    pub(super) fn give_up(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        let may = runner.acts() && runner.phase == Phase::Running && !runner.own && self.keeps(Rule::GiveUp);
        let moments = self.moments(&runner);
        if !may || moments.duty(elapsed(s.time), Duration::ZERO) != Duty::GiveUp {
            return None;
        }
        self.stop(s, r, Ended::Stopped, moments.grace)
    }

    /// What a command gets that is stopped before its lease is given up.
    pub(super) fn kill_after(&self, s: &State, r: usize) -> Duration {
        let grace = elapsed(self.kill_grace);
        if !self.keeps(Rule::StopInTime) {
            return grace;
        }
        self.moments(&s.runners[r]).kill_after(elapsed(s.time), grace)
    }

    /// SIGTERM, and SIGKILL later. A call on the way is waited for no longer.
    pub(super) fn stop(&self, s: &mut State, r: usize, ended: Ended, kill_after: Duration) -> Option<()> {
        let runner = &mut s.runners[r];
        if runner.call != Call::None {
            runner.ghost = runner.sent;
        }
        (runner.call, runner.sent) = (Call::None, NONE);
        (runner.phase, runner.ended) = (Phase::Dying, ended);
        runner.kill_at = s.time + (kill_after.as_secs() / TICK) as u8;
        Some(())
    }

    /// A guardian that does not answer: it is killed, and the command comes to its runner, which ends it.
    pub(super) fn notice(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        let at_work = matches!(runner.phase, Phase::Running | Phase::Dying);
        if !runner.acts() || !runner.deaf || !at_work || !self.keeps(Rule::AskGuardian) {
            return None;
        }
        let ended = if runner.phase == Phase::Dying { runner.ended } else { Ended::Stopped };
        self.stop(s, r, ended, Duration::ZERO)?;
        (s.runners[r].deaf, s.runners[r].phase) = (false, Phase::Finishing);
        Some(())
    }

    pub(super) fn interrupt(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        if !runner.acts() || runner.phase != Phase::Running || runner.call != Call::None || runner.own {
            return None;
        }
        s.left.interrupt = s.left.interrupt.checked_sub(1)?;
        let kill_after = self.kill_after(s, r);
        self.stop(s, r, Ended::Interrupted, kill_after)
    }

    /// What the head is, asked of the shipped function; a lease that counts from now on is taken over.
    pub(super) fn relate(&self, s: &mut State, r: usize) -> HeadIs {
        let (lease, run) = (s.runners[r].lease, s.runners[r].run);
        let seen = |commit: u8| SeenHead { id: texts::id(commit), event: s.says(commit).event.as_ref() };
        let head = (s.head != NONE).then(|| seen(s.head));
        let mut facts = Facts { state: s, run_id: texts::run_id(run), lease };
        let Ok(found) = classify_head(head, facts.run_id, texts::id(lease), &mut facts);
        if matches!(found, HeadIs::Lease(id) if id != texts::id(lease)) {
            let date = s.commits[usize::from(s.head)].date;
            let age = (self.wall(r, s.time) - date).max(0) as u8;
            let (head, born) = (s.head, s.time.saturating_sub(age));
            (s.runners[r].lease, s.runners[r].born) = (head, born);
        }
        found
    }

    pub(super) fn look(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        if !runner.acts() || runner.phase != Phase::Running || runner.call != Call::None || runner.own {
            return None;
        }
        let head = self.relate(s, r);
        s.runners[r].looked = self.prompt;
        match after_look(head) {
            AfterLook::Keep => {}
            AfterLook::LetFinish => s.runners[r].own = true,
            AfterLook::Stop if self.keeps(Rule::StopOnLoss) => {
                let kill_after = self.kill_after(s, r);
                return self.stop(s, r, Ended::Stopped, kill_after);
            }
            AfterLook::Stop => {}
        }
        Some(())
    }

    /// Completes a run whose command has ended: `complete`, and what it asks for.
    pub(super) fn finish(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        if !runner.acts() || runner.phase != Phase::Finishing || runner.call != Call::None {
            return None;
        }
        // A success with which no process was heard to interfere does not ask: the push will.
        let trusted = HeadIs::Lease(texts::id(runner.lease));
        let head = if runner.ended == Ended::Fresh { trusted } else { self.relate(s, r) };
        let own = HeadIs::OwnEvent(texts::id(runner.lease));
        let head = if head == HeadIs::Other && runner.own { own } else { head };
        let declared = match runner.ended {
            Ended::Fresh | Ended::Success => Declared::State(texts::declaration(false).clone()),
            Ended::Silent | Ended::Failed | Ended::Stopped | Ended::Interrupted | Ended::NotStarted => {
                Declared::Nothing
            }
        };
        if runner.ended == Ended::Fresh {
            s.runners[r].ended = Ended::Success;
        }
        let exit = runner.ended.exit();
        let lease = s.runners[r].lease;
        let Text::Lease(of) = s.says(lease).text else { return None };
        match complete(Dialect::Dwp, &exit, declared.clone(), head) {
            Completion::Outcome(_) => {
                let commit = s.write(lease, Text::Outcome(of), self.wall(r, s.time))?;
                self.send(s, r, Phase::Finishing, commit)
            }
            Completion::Stalled(_) => {
                let commit = s.write(lease, Text::Stall(of), self.wall(r, s.time))?;
                self.send(s, r, Phase::Finishing, commit)
            }
            Completion::KeepLease => self.build_renewal(s, r, Phase::Finishing),
            Completion::AlreadyWritten(_) | Completion::LeaveLease => {
                s.runners[r].forget();
                Some(())
            }
            Completion::Fenced => {
                match kept_of_fenced(&exit, &declared) {
                    Kept::Outcome(_) => self.drop_run(s, r),
                    Kept::Work => s.runners[r].forget(),
                }
                Some(())
            }
        }
    }

    /// A run ends without its outcome on the branch: a finished result is kept.
    pub(super) fn drop_run(&self, s: &mut State, r: usize) {
        let finished = matches!(s.runners[r].ended, Ended::Fresh | Ended::Success);
        if finished && self.keeps(Rule::KeepLost) {
            s.kept = s.runners[r].run;
        }
        s.runners[r].forget();
    }

    /// `set-state` inside a command: a swap from the run's own lease.
    pub(super) fn set_state(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        if !matches!(runner.phase, Phase::Running) || runner.paused || !self.is_own_head(s, r) {
            return None;
        }
        s.left.own = s.left.own.checked_sub(1)?;
        let Text::Lease(of) = s.says(s.head).text else { return None };
        let commit = s.write(s.head, Text::Own(of), self.wall(r, s.time))?;
        s.runs[usize::from(runner.run)].free = true;
        self.server(s, commit).then_some(())
    }
}

/// The commits below one, newest first.
fn below(s: &State, commit: u8) -> impl Iterator<Item = u8> + '_ {
    let parent = move |c: u8| Some(s.parent(c)).filter(|c| *c != NONE);
    std::iter::successors(parent(commit), move |c| parent(*c))
}

/// True where between a commit and a lease there are leases alone.
fn stands_on(s: &State, commit: u8, lease: u8) -> bool {
    let working = |c: &u8| s.says(*c).event.as_ref().is_some_and(|e| e.is_working());
    below(s, commit).take_while(working).any(|c| c == lease)
}

pub(super) fn end(s: &mut State, r: usize, ended: Ended) -> Option<()> {
    let runner = &mut s.runners[r];
    // Of a stopped guardian its runner hears of no end.
    if !runner.acts() || runner.phase != Phase::Running || runner.call != Call::None || runner.deaf {
        return None;
    }
    if ended != Ended::Fresh {
        s.left.fail = s.left.fail.checked_sub(1)?;
    }
    // What its command wrote was not its runner's doing: that has to ask.
    let ended = if runner.own && ended == Ended::Fresh { Ended::Success } else { ended };
    (runner.phase, runner.ended) = (Phase::Finishing, ended);
    Some(())
}

/// The command stops its guardian, once.
pub(super) fn stop_guardian(s: &mut State, r: usize) -> Option<()> {
    let runner = &mut s.runners[r];
    let may = runner.phase == Phase::Running && !runner.deaf;
    s.left.deaf = may.then_some(s.left.deaf).and_then(|left| left.checked_sub(1))?;
    runner.deaf = true;
    Some(())
}

pub(super) fn die(s: &mut State, r: usize) -> Option<()> {
    let runner = &mut s.runners[r];
    (runner.acts() && runner.phase == Phase::Dying && !runner.deaf).then(|| runner.phase = Phase::Finishing)
}

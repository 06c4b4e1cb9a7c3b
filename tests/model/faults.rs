//! What runners and branches suffer: crashes, pauses, and users who write, rewind and delete.
//!
//! Each fault has a budget; none is ever forced. Tries promises 1, 2 and 4 of the contract.

use crate::steps::Step;
use crate::texts::Text;
use crate::world::{Call, NONE, Rule, State, World};

impl World {
    /// What runners and branches suffer.
    pub(super) fn befall(&self, s: &mut State, step: Step) -> Option<()> {
        let left = &mut s.left;
        match step {
            Step::Crash(r) => {
                left.crash = left.crash.checked_sub(1)?;
                self.crash(s, r.into())
            }
            Step::Vanish => {
                left.gone = left.gone.checked_sub(1)?;
                self.crash(s, 0)
            }
            Step::Restart(r) => {
                let gone = r == 0 && self.faults.gone > left.gone;
                let may = !gone && r < self.runners && !s.runners[usize::from(r)].up;
                s.runners[usize::from(r)].up |= may;
                may.then_some(())
            }
            Step::Pause(r) => {
                left.pause = left.pause.checked_sub(1)?;
                let runner = &mut s.runners[usize::from(r)];
                let may = runner.acts();
                runner.paused = true;
                if runner.run != NONE {
                    s.runs[usize::from(runner.run)].paused = true;
                }
                may.then_some(())
            }
            Step::Resume(r) => {
                let runner = &mut s.runners[usize::from(r)];
                std::mem::take(&mut runner.paused).then_some(())
            }
            Step::UserCommit => {
                left.user_commit = left.user_commit.checked_sub(1)?;
                let text = Text::Plain(s.count);
                self.user_writes(s, text)
            }
            Step::UserTrigger => {
                left.user_trigger = left.user_trigger.checked_sub(1)?;
                let text = Text::Trigger(s.count);
                self.user_writes(s, text)
            }
            Step::Rewind(to) => {
                left.rewind = left.rewind.checked_sub(1)?;
                let may = s.head != NONE && to != s.head && s.contains(s.head, to);
                let gone = may.then(|| s.line(s.head) & !s.line(to))?;
                s.removed |= gone;
                s.head = to;
                self.undo(s, gone);
                Some(())
            }
            Step::Delete => {
                left.delete = left.delete.checked_sub(1)?;
                s.removed |= (s.head != NONE).then(|| s.line(s.head))?;
                s.head = NONE;
                Some(())
            }
            Step::Tick
            | Step::Evaluate(_)
            | Step::Deliver(_)
            | Step::TimeOut(_)
            | Step::Reread(_)
            | Step::RereadFails(_)
            | Step::Late(_)
            | Step::Start(_)
            | Step::Look(_)
            | Step::Renew(_)
            | Step::GiveUp(_)
            | Step::End(..)
            | Step::Die(_)
            | Step::Finish(_)
            | Step::SetState(_)
            | Step::StopGuardian(_)
            | Step::Notice(_)
            | Step::Interrupt(_) => None,
        }
    }

    /// Its guardian ends what it started; a push may still be under way.
    pub(super) fn crash(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = &mut s.runners[r];
        runner.up.then_some(())?;
        if runner.call == Call::Sent {
            runner.ghost = runner.sent;
        }
        let ends = if runner.deaf { Rule::WakeGuardian } else { Rule::DieWithRunner };
        runner.orphan |= !self.keeps(ends) && runner.command_lives();
        runner.up = false;
        runner.paused = false;
        runner.forget();
        Some(())
    }

    pub(super) fn user_writes(&self, s: &mut State, text: Text) -> Option<()> {
        (s.head != NONE).then_some(())?;
        let commit = s.write(s.head, text, s.time as i8)?;
        s.users |= 1 << commit;
        s.head = commit;
        Some(())
    }
}

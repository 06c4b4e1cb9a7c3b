//! What is promised, judged by an observer that sees everything: the server, all runners, all commands.
//!
//! A promise that is broken stays broken: one bit of the state each. Tries promises 1 to 4 of the contract.

use crate::texts::Text;
use crate::world::{Ended, LEASE, NONE, Phase, State, World};

/// A promise of the protocol, by its number in the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    Q1,
    Q2,
    Q3,
    Q3h,
    Q3b,
    Q4,
    Q5,
    Q6,
    Q7,
    Q8,
    Q9,
}

impl Promise {
    /// All of them.
    pub const ALL: [Promise; 11] = [
        Promise::Q1,
        Promise::Q2,
        Promise::Q3,
        Promise::Q3h,
        Promise::Q3b,
        Promise::Q4,
        Promise::Q5,
        Promise::Q6,
        Promise::Q7,
        Promise::Q8,
        Promise::Q9,
    ];

    /// Its bit.
    pub fn bit(self) -> u16 {
        1 << self as u16
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        ["Q1", "Q2", "Q3", "Q3h", "Q3b", "Q4", "Q5", "Q6", "Q7", "Q8", "Q9"][self as usize]
    }

    /// What it says.
    pub fn says(self) -> &'static str {
        match self {
            Promise::Q1 => {
                "a trigger has at most one outcome, but for those that a user took off again by a rewind"
            }
            Promise::Q2 => {
                "a run writes nothing after it was declared stalled, unless a user took that back by a rewind"
            }
            Promise::Q3 => "at most one command lives",
            Promise::Q3h => "the same, of runs whose machine was never paused",
            Promise::Q3b => {
                "a command outlives the loss of its lease by one look and the kill grace at most, while its machine \
                 is not paused"
            }
            Promise::Q4 => "a trigger is executed at most once",
            Promise::Q5 => "commits that a user took off the branch never come back",
            Promise::Q6 => "no runner takes a user's commit off the branch",
            Promise::Q7 => "no lease is taken from a runner that lives before it has ended",
            Promise::Q8 => "no finished result is lost",
            Promise::Q9 => "no run ends stalled that only never began because its claim was taken for lost",
        }
    }
}

impl World {
    /// Judges a move that the server is about to make, to a commit of a runner's.
    pub fn judge_move(&self, s: &mut State, new: u8) {
        let old = s.head;
        let text = s.says(new).text;
        let Some(of) = text.of() else { return };
        let mut broken = 0;
        let line = s.line(new);
        if line & s.removed != 0 {
            broken |= Promise::Q5.bit();
        }
        if old != NONE && s.line(old) & s.users & !line != 0 {
            broken |= Promise::Q6.bit();
        }
        let info = s.runs[usize::from(of.run)];
        if let Text::Recovery(..) = text {
            broken |= self.judge_recovery(s, of.run);
            s.runs[usize::from(of.run)].stalled = true;
        } else {
            if info.stalled {
                broken |= Promise::Q2.bit();
            }
            let info = &mut s.runs[usize::from(of.run)];
            match text {
                Text::Outcome(_) | Text::Own(_) => info.outcomes += 1,
                Text::Stall(_) => info.stalled = true,
                Text::Lease(_) | Text::Recovery(..) | Text::Plain(_) | Text::Trigger(_) => {}
            }
            let trigger = info.trigger;
            let of_trigger = s.runs.iter().filter(|run| run.trigger == trigger);
            if of_trigger.map(|run| run.outcomes).sum::<u8>() > 1 {
                broken |= Promise::Q1.bit();
            }
        }
        s.broken |= broken;
    }

    /// Judges the runs that a step ended: what was finished stands on the branch, stood there until a user took it
    /// off, or was kept by that step. A runner that crashed ended nothing.
    pub fn judge_ends(&self, before: &State, s: &mut State) {
        let kept = std::mem::replace(&mut s.kept, NONE);
        let there = s.line(s.head) | s.removed;
        let has_outcome = |run: u8| {
            let is = |c: &u8| match s.says(*c).text {
                Text::Outcome(of) | Text::Own(of) => of.run == run,
                Text::Lease(_) | Text::Plain(_) | Text::Trigger(_) | Text::Stall(_) | Text::Recovery(..) => {
                    false
                }
            };
            (0..s.count).filter(|c| there & (1 << c) != 0).any(|c| is(&c))
        };
        let lost = before.runners.iter().zip(&s.runners).any(|(was, is)| {
            let finished =
                was.phase == Phase::Finishing && matches!(was.ended, Ended::Fresh | Ended::Success);
            let over = is.up && is.phase == Phase::Idle;
            finished && over && kept != was.run && !has_outcome(was.run)
        });
        if lost {
            s.broken |= Promise::Q8.bit();
        }
    }

    /// What a user undid by a rewind did not happen: outcomes and stalls that are gone do not count.
    pub fn undo(&self, s: &mut State, gone: u16) {
        for commit in (0..s.count).filter(|c| gone & (1 << c) != 0) {
            match s.says(commit).text {
                Text::Outcome(of) | Text::Own(of) => {
                    let info = &mut s.runs[usize::from(of.run)];
                    info.outcomes = info.outcomes.saturating_sub(1);
                }
                Text::Stall(of) | Text::Recovery(of, _) => s.runs[usize::from(of.run)].stalled = false,
                Text::Lease(_) | Text::Plain(_) | Text::Trigger(_) => {}
            }
        }
    }

    fn judge_recovery(&self, s: &State, run: u8) -> u16 {
        let mut broken = 0;
        let info = s.runs[usize::from(run)];
        if info.mistaken && info.starts == 0 {
            broken |= Promise::Q9.bit();
        }
        let holds = s.runners.iter().any(|runner| {
            let holding = matches!(runner.phase, Phase::Claimed | Phase::Running);
            runner.up && runner.run == run && holding && s.time <= runner.born + LEASE
        });
        if holds {
            broken |= Promise::Q7.bit();
        }
        broken
    }

    /// Judges that a command was started.
    pub fn judge_start(&self, s: &mut State) {
        let lives = |s: &State, unpaused: bool| {
            let counts = |run: u8| {
                run == NONE || {
                    let info = s.runs[usize::from(run)];
                    !(info.free || unpaused && info.paused)
                }
            };
            s.runners.iter().filter(|r| r.orphan).count()
                + s.runners
                    .iter()
                    .filter(|r| matches!(r.phase, Phase::Running | Phase::Dying) && counts(r.run))
                    .count()
        };
        if lives(s, false) > 1 {
            s.broken |= Promise::Q3.bit();
        }
        if lives(s, true) > 1 {
            s.broken |= Promise::Q3h.bit();
        }
        for run in s.runs.iter().filter(|run| run.trigger != NONE) {
            let starts = s.runs.iter().filter(|other| other.trigger == run.trigger);
            if starts.map(|other| other.starts).sum::<u8>() > 1 {
                s.broken |= Promise::Q4.bit();
                break;
            }
        }
    }
}

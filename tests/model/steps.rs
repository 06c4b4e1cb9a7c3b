//! The steps of the model, and what time and an idle runner do.
//!
//! What a runner does is asked of the shipped functions: `decide` here; `complete`, `whose` and the moments of a
//! lease in `runs`, the tables of a swap's verdict in `pushes`. Only what happens around them is the model's. A
//! rule that is left out (`World::keeps`) is left out there: the answer of a shipped function is ignored, or the
//! server is less strict. The functions themselves have no switches. Tries K6-K8, K10.

use crate::properties::Promise;
use crate::pushes::time_out;
use crate::runs::{die, end, stop_guardian};
use crate::texts::{self, Of, Text};
use crate::world::{
    COMMITS, Call, Ended, NONE, Phase, RUNS, Rule, RunInfo, State, TICK, World, elapsed, seconds,
};
use aynig::protocol::decide::{Decision, Facts, Head, Policy, decide};
use aynig::protocol::event::Event;
use aynig::protocol::holding::Duty;

/// One step. A number is a runner, but for `Rewind`'s, which is a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Time passes.
    Tick,
    /// A runner reads the head, decides, and builds what follows from that.
    Evaluate(u8),
    /// A push reaches the server, and its answer the runner.
    Deliver(u8),
    /// The runner waits no longer for its answer.
    TimeOut(u8),
    /// The ref is read again.
    Reread(u8),
    /// It can't be read.
    RereadFails(u8),
    /// A push that no runner waits for reaches the server.
    Late(u8),
    /// The slot is filled, the command is to start.
    Start(u8),
    /// A runner looks at its branch while the command runs.
    Look(u8),
    /// A runner builds a renewal.
    Renew(u8),
    /// A runner gives its lease up.
    GiveUp(u8),
    /// The command ends by itself.
    End(u8, Ended),
    /// The command that was told to stop is dead.
    Die(u8),
    /// A runner completes its run.
    Finish(u8),
    /// The command writes its outcome itself.
    SetState(u8),
    Crash(u8),
    /// The first runner's machine is gone for good.
    Vanish,
    Restart(u8),
    Pause(u8),
    Resume(u8),
    Interrupt(u8),
    /// A command stops its guardian.
    StopGuardian(u8),
    /// A runner finds that its guardian does not answer.
    Notice(u8),
    UserCommit,
    UserTrigger,
    Rewind(u8),
    Delete,
}

impl World {
    /// The state after a step; `None` where it can't be taken, or changes nothing.
    pub fn step(&self, before: &State, step: Step) -> Option<State> {
        let mut s = before.clone();
        let taken = match step {
            Step::Tick => self.tick(&mut s),
            Step::Evaluate(r) => self.evaluate(&mut s, r.into()),
            Step::Deliver(r) => self.deliver(&mut s, r.into()),
            Step::TimeOut(r) => time_out(&mut s, r.into()),
            Step::Reread(r) => self.reread(&mut s, r.into()),
            Step::RereadFails(r) => self.reread_fails(&mut s, r.into()),
            Step::Late(r) => self.late(&mut s, r.into()),
            Step::Start(r) => self.start_command(&mut s, r.into()),
            Step::Look(r) => self.look(&mut s, r.into()),
            Step::Renew(r) => self.renew(&mut s, r.into()),
            Step::GiveUp(r) => self.give_up(&mut s, r.into()),
            Step::End(r, ended) => end(&mut s, r.into(), ended),
            Step::Die(r) => die(&mut s, r.into()),
            Step::Finish(r) => self.finish(&mut s, r.into()),
            Step::SetState(r) => self.set_state(&mut s, r.into()),
            Step::Interrupt(r) => self.interrupt(&mut s, r.into()),
            Step::StopGuardian(r) => stop_guardian(&mut s, r.into()),
            Step::Notice(r) => self.notice(&mut s, r.into()),
            Step::Crash(_)
            | Step::Vanish
            | Step::Restart(_)
            | Step::Pause(_)
            | Step::Resume(_)
            | Step::UserCommit
            | Step::UserTrigger
            | Step::Rewind(_)
            | Step::Delete => self.befall(&mut s, step),
        };
        self.judge_ends(before, &mut s);
        (taken.is_some() && s != *before).then_some(s)
    }

    /// Time passes, unless a runner that is awake has something to do first.
    pub(super) fn tick(&self, s: &mut State) -> Option<()> {
        let now = elapsed(s.time);
        for runner in s.runners.iter().filter(|runner| runner.acts()) {
            let noticed = runner.deaf && self.keeps(Rule::AskGuardian);
            let overdue = match runner.phase {
                Phase::Running | Phase::Dying if noticed => true,
                // No process ends it, and its runner waits.
                Phase::Dying if runner.deaf => false,
                Phase::Running if !runner.own => {
                    let moments = self.moments(runner);
                    let due = self.keeps(Rule::GiveUp) && moments.duty(now, now) == Duty::GiveUp;
                    due || (self.prompt && (!runner.looked || runner.call != Call::None))
                }
                Phase::Dying => runner.kill_at <= s.time,
                Phase::Idle
                | Phase::Claiming
                | Phase::Recovering
                | Phase::Claimed
                | Phase::Running
                | Phase::Finishing => false,
            };
            if overdue {
                return None;
            }
        }
        s.time += 1;
        for r in 0..s.runners.len() {
            let lost = s.runners[r].run != NONE && !self.is_own_head(s, r);
            let runner = &mut s.runners[r];
            runner.looked = false;
            if self.prompt && lost && runner.acts() && !runner.own && runner.command_lives() {
                runner.adrift += 1;
                if runner.adrift > 1 + self.kill_grace {
                    s.broken |= Promise::Q3b.bit();
                }
            }
        }
        Some(())
    }

    /// True where the head is a lease of the run, or its own command's event.
    pub(super) fn is_own_head(&self, s: &State, r: usize) -> bool {
        let run = s.runners[r].run;
        let own = |text: Text| match text {
            Text::Lease(of) | Text::Own(of) => of.run == run,
            Text::Plain(_) | Text::Trigger(_) | Text::Outcome(_) | Text::Stall(_) | Text::Recovery(..) => {
                false
            }
        };
        s.head != NONE && own(s.says(s.head).text)
    }

    /// One evaluation: read the head, `decide`, and build the lease or the recovery that it asks for.
    pub(super) fn evaluate(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        if !runner.acts() || runner.phase != Phase::Idle || s.head == NONE {
            return None;
        }
        let head = s.head;
        match self.decision(s, r) {
            // Messages are played in a model of their own, `talk`.
            Decision::Nothing(_) | Decision::Deliver { .. } => None,
            Decision::Leased { observed, .. } => {
                observed.filter(|_| runner.seen != head)?;
                s.runners[r].seen = head;
                s.runners[r].seen_at = s.time;
                Some(())
            }
            Decision::Expired { .. } => {
                let Text::Lease(of) = s.says(head).text else { return None };
                let salt = if self.keeps(Rule::Unique) { s.count } else { 0 };
                let commit = s.write(head, Text::Recovery(of, salt), self.wall(r, s.time))?;
                self.send(s, r, Phase::Recovering, commit)
            }
            Decision::Dispatch { .. } => {
                let run = if self.keeps(Rule::Unique) { s.run_count } else { 0 };
                let of = Of {
                    run,
                    runner: self.identity(r),
                    trigger: head,
                    asked: s.commits[usize::from(head)].text,
                };
                let first = s.write(head, Text::Lease(of), self.wall(r, s.time))?;
                if run == s.run_count {
                    *s.runs.get_mut(usize::from(run)).filter(|_| usize::from(run) < RUNS)? =
                        RunInfo { trigger: head, ..RunInfo::default() };
                    s.run_count += 1;
                }
                s.runners[r].run = run;
                s.runners[r].lease = first;
                s.runners[r].born = s.time;
                self.send(s, r, Phase::Claiming, first)
            }
        }
    }

    /// What the shipped `decide` says of the head to a runner.
    pub fn decision(&self, s: &State, r: usize) -> Decision {
        let commit = s.commits[usize::from(s.head)];
        let head = Head { event: s.says(s.head).event.as_ref(), committed: Some(seconds(commit.date)) };
        let runner = &s.runners[r];
        let first_seen = (runner.seen == s.head).then(|| seconds(self.wall(r, runner.seen_at)));
        let grace = u64::from(self.grace) * TICK;
        let state = head.event.and_then(Event::state_name);
        let policy = Policy {
            grace,
            aynig_grace: grace,
            takeover: self.takeover,
            runner_id: texts::runner_id(self.identity(r)),
            max_hops: 2,
            has_command: state.is_some_and(|state| matches!(state.as_str(), "build" | "stalled")),
            facts: Facts::default(),
        };
        decide(head, first_seen, seconds(self.wall(r, s.time)), policy)
    }

    pub(super) fn send(&self, s: &mut State, r: usize, phase: Phase, commit: u8) -> Option<()> {
        let runner = &mut s.runners[r];
        (runner.phase, runner.call, runner.sent, runner.sent_at) = (phase, Call::Sent, commit, s.time);
        Some(())
    }
}

const _: () = assert!(COMMITS <= 16);

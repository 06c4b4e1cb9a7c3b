//! The model as stateright's checker takes it, and what one check found.

use crate::properties::Promise;
use crate::steps::Step;
use crate::world::{Call, Ended, NONE, Phase, State, World};
use stateright::{Checker, HasDiscoveries, Model, Property};

/// What a check found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Unique states.
    pub states: usize,
    /// True where every state within the bounds was visited.
    pub whole: bool,
    /// The promises that were broken.
    pub broken: Vec<Promise>,
}

impl Model for World {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.start()]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        steps.push(Step::Tick);
        for r in 0..self.runners {
            self.actions_of(s, r, steps);
        }
        let left = &s.left;
        let users = [
            (left.gone, Step::Vanish),
            (left.user_commit, Step::UserCommit),
            (left.user_trigger, Step::UserTrigger),
            (left.delete, Step::Delete),
        ];
        steps.extend(users.into_iter().filter(|(left, _)| *left > 0).map(|(_, step)| step));
        if left.rewind > 0 && s.head != NONE {
            steps.extend((0..s.count).filter(|c| *c != s.head && s.contains(s.head, *c)).map(Step::Rewind));
        }
    }

    fn next_state(&self, s: &State, step: Step) -> Option<State> {
        self.step(s, step)
    }

    fn within_boundary(&self, s: &State) -> bool {
        s.time <= self.last_tick && s.count <= self.commits && s.run_count <= self.runs
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let holds = |at: usize| -> fn(&World, &State) -> bool {
            macro_rules! judges {
                ($($n:literal),*) => { [$(|_, s| s.broken & (1 << $n) == 0),*] };
            }
            let all: [fn(&World, &State) -> bool; 11] = judges![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
            all[at]
        };
        let promises = Promise::ALL.iter().enumerate();
        let mut all: Vec<_> = promises.map(|(at, p)| Property::always(p.name(), holds(at))).collect();
        // The checker ends where every property has failed.
        all.push(Property::always("goes on", |_, _| true));
        all
    }
}

impl World {
    fn actions_of(&self, s: &State, r: u8, steps: &mut Vec<Step>) {
        let (runner, left) = (&s.runners[usize::from(r)], &s.left);
        let mut may = |may: bool, step: Step| steps.extend(may.then_some(step));
        may(runner.ghost != NONE, Step::Late(r));
        may(!runner.up, Step::Restart(r));
        may(runner.paused, Step::Resume(r));
        may(runner.up && left.crash > 0, Step::Crash(r));
        if !runner.acts() {
            return;
        }
        may(left.pause > 0, Step::Pause(r));
        may(runner.call == Call::Sent, Step::Deliver(r));
        may(runner.call == Call::Sent && left.lost > 0, Step::TimeOut(r));
        may(runner.call == Call::Unanswered, Step::Reread(r));
        may(runner.call == Call::Unanswered && left.lost > 0, Step::RereadFails(r));
        let free = runner.call == Call::None;
        match runner.phase {
            Phase::Idle => may(true, Step::Evaluate(r)),
            Phase::Claimed => may(free, Step::Start(r)),
            Phase::Running => {
                may(free, Step::Look(r));
                may(free, Step::Renew(r));
                may(true, Step::GiveUp(r));
                may(free, Step::End(r, Ended::Fresh));
                may(free && left.fail > 0, Step::End(r, Ended::Failed));
                may(free && left.fail > 0, Step::End(r, Ended::Silent));
                may(left.own > 0, Step::SetState(r));
                may(free && left.interrupt > 0, Step::Interrupt(r));
                may(left.deaf > 0, Step::StopGuardian(r));
                may(runner.deaf, Step::Notice(r));
            }
            Phase::Dying => {
                may(true, Step::Die(r));
                may(runner.deaf, Step::Notice(r));
            }
            Phase::Finishing => may(free, Step::Finish(r)),
            Phase::Claiming | Phase::Recovering => {}
        }
    }

    /// Visits the states within the bounds, until `most` steps were taken.
    pub fn check(&self, most: usize) -> Found {
        self.check_until(most, HasDiscoveries::All)
    }

    /// The same, until these promises are seen broken.
    pub fn check_for(&self, most: usize, promises: &[Promise]) -> Found {
        self.check_until(most, HasDiscoveries::AllOf(promises.iter().map(|p| p.name()).collect()))
    }

    fn check_until(&self, most: usize, until: HasDiscoveries) -> Found {
        // One thread: what is visited, and in which order, is always the same.
        let checker = self.clone().checker().threads(1).target_state_count(most).finish_when(until);
        let checker = checker.spawn_bfs().join();
        let discoveries = checker.discoveries();
        let broken = Promise::ALL.into_iter().filter(|p| discoveries.contains_key(p.name())).collect();
        Found { states: checker.unique_state_count(), whole: checker.state_count() < most, broken }
    }
}

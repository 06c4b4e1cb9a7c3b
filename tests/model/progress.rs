//! Progress, and shortest ways: passes of our own over the same model, for what the checker has no word for.
//!
//! L: from every state a settled one is reached once faults stop, and soon. Shown by going there: every runner
//! that can comes back and does what is due, nothing more goes wrong, and time passes only where no runner has
//! anything to do. Settled is a branch that no runner would answer. Tries promise 4 of the contract.

use crate::properties::Promise;
use crate::steps::Step;
use crate::world::{Call, Ended, Faults, LEASE, NONE, Phase, State, World};
use aynig::protocol::decide::Decision;
use stateright::Model;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What the pass over progress found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// States from which a settled one was looked for.
    pub states: usize,
    /// Ticks that the slowest of them took.
    pub ticks: u8,
}

impl World {
    /// Looks for a settled state from the first `most` states; the error is one from which none is reached.
    pub fn progress(&self, most: usize) -> Result<Progress, Box<State>> {
        let mut known = HashMap::new();
        let (mut states, mut ticks) = (0, 0);
        let mut stuck = None;
        self.explore(|s, _| {
            match self.settle(s, &mut known) {
                Some(took) => ticks = ticks.max(took),
                None => stuck = Some(Box::new(s.clone())),
            }
            states += 1;
            states < most && stuck.is_none()
        });
        stuck.map_or(Ok(Progress { states, ticks }), Err)
    }

    /// Most ticks from the end of faults to a settled branch: lease, grace, and one tick.
    pub fn settles_within(&self) -> u8 {
        LEASE + self.grace + 1
    }

    /// The least number of steps that break a promise, and those steps.
    pub fn shortest(&self, promise: Promise) -> Option<Vec<Step>> {
        let mut found = None;
        let mut visited: Vec<(usize, Option<Step>)> = Vec::new();
        self.explore(|s, came| {
            visited.push(came);
            if s.broken & promise.bit() == 0 {
                return true;
            }
            let mut steps = Vec::new();
            let (mut from, mut step) = came;
            while let Some(taken) = step {
                steps.push(taken);
                (from, step) = visited[from];
            }
            steps.reverse();
            found = Some(steps);
            false
        });
        found
    }

    /// Visits states in the order of their distance; `visit` is told each with the number of the state that it
    /// was reached from and the step, and says whether to go on.
    fn explore(&self, mut visit: impl FnMut(&State, (usize, Option<Step>)) -> bool) {
        let start = self.start();
        let mut seen = HashSet::from([fingerprint(&start)]);
        let mut waiting = VecDeque::from([(start, (0, None))]);
        let (mut number, mut steps) = (0, Vec::new());
        while let Some((s, came)) = waiting.pop_front() {
            if !visit(&s, came) {
                return;
            }
            steps.clear();
            self.actions(&s, &mut steps);
            for step in &steps {
                let Some(next) = self.step(&s, *step).filter(|next| self.within_boundary(next)) else {
                    continue;
                };
                if seen.insert(fingerprint(&next)) {
                    waiting.push_back((next, (number, Some(*step))));
                }
            }
            number += 1;
        }
    }

    /// Goes on without faults until the branch is settled: the ticks that it took; `None` where it is stuck.
    fn settle(&self, s: &State, known: &mut HashMap<State, u8>) -> Option<u8> {
        let mut s = s.clone();
        s.left = Faults::default();
        s.broken = 0;
        s.runners.iter_mut().for_each(|runner| runner.ghost = NONE);
        let mut path: Vec<(State, u8)> = Vec::new();
        let mut passed = 0;
        let rest = loop {
            if let Some(rest) = known.get(&s) {
                break *rest;
            }
            path.push((s.clone(), passed));
            if let Some(next) = (0..self.runners).find_map(|r| self.due(&s, r)) {
                s = next;
            } else if self.is_settled(&s) {
                break 0;
            } else {
                passed += 1;
                s = self.step(&s, Step::Tick).filter(|_| passed <= 2 * self.settles_within())?;
            }
        };
        known.extend(path.into_iter().map(|(state, at)| (state, passed - at + rest)));
        Some(passed + rest)
    }

    /// What a runner does next, if it does anything.
    fn due(&self, s: &State, r: u8) -> Option<State> {
        let runner = &s.runners[usize::from(r)];
        let step = match (runner.call, runner.phase) {
            _ if !runner.up => Step::Restart(r),
            _ if runner.paused => Step::Resume(r),
            (_, Phase::Running | Phase::Dying) if runner.deaf => Step::Notice(r),
            (Call::Sent, _) => Step::Deliver(r),
            (Call::Unanswered, _) => Step::Reread(r),
            (Call::None, Phase::Idle) => Step::Evaluate(r),
            (Call::None, Phase::Claimed) => Step::Start(r),
            (Call::None, Phase::Running) => {
                return self.step(s, Step::GiveUp(r)).or_else(|| self.step(s, Step::End(r, Ended::Fresh)));
            }
            (Call::None, Phase::Dying) => Step::Die(r),
            (Call::None, Phase::Finishing) => Step::Finish(r),
            (Call::None, Phase::Claiming | Phase::Recovering) => return None,
        };
        self.step(s, step)
    }

    fn is_settled(&self, s: &State) -> bool {
        let mut living = (0..usize::from(self.runners)).filter(|r| s.runners[*r].up);
        s.head == NONE || living.all(|r| matches!(self.decision(s, r), Decision::Nothing(_)))
    }
}

fn fingerprint(s: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    s.hash(&mut hasher);
    hasher.finish()
}

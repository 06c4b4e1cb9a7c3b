//! The steps of the model of messages, and the checker that takes them in every order.

use super::commits;
use super::promises::Promise;
use super::tick::state_of;
use super::world::{At, Move, NONE, Ref, Role, Rule, State, World};
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::{HashSet, VecDeque};

/// One step. A number is a process, but for the last of `ServerDies`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Go(u8),
    Kill(u8),
    /// A command fails.
    Fail(u8),
    /// A command marks what waits as heard.
    Mark(u8),
    /// The answer to a push is lost; the push is made now, or comes later.
    Lose(u8, bool),
    Late,
    ServerDies(u8, u8),
    Tick,
    /// The other branch is done.
    Other,
    /// A person asks again for what failed.
    Retry,
    /// A person asks for something new over a head that waits.
    User,
}

/// What a check found.
pub struct Found {
    pub states: usize,
    pub whole: bool,
    pub broken: Vec<Promise>,
    /// The steps to each of these.
    pub ways: Vec<Vec<Step>>,
}

impl World {
    /// The state after a step; `None` where it can't be taken.
    pub fn step(&self, before: &State, step: Step) -> Option<State> {
        let mut s = before.clone();
        let mut by = None;
        match step {
            Step::Go(p) => {
                by = Some(usize::from(p));
                self.go(&mut s, p.into())?;
            }
            Step::Kill(p) => self.kill(&mut s, p.into())?,
            Step::Fail(p) => {
                let process = &mut s.processes[usize::from(p)];
                (process.at == At::Running).then_some(())?;
                s.left.fail = s.left.fail.checked_sub(1)?;
                process.at = At::Ended { ok: false };
            }
            Step::Mark(p) => self.mark(&mut s, p.into())?,
            Step::Lose(p, later) => self.lose(&mut s, p.into(), later)?,
            Step::Late => self.late(&mut s)?,
            Step::ServerDies(p, n) => self.server_dies(&mut s, p.into(), n)?,
            Step::Tick => self.tick(&mut s)?,
            Step::Other => {
                (!std::mem::replace(&mut s.other, true)).then_some(())?;
                self.call(&mut s, Rule::AwaitedStarts);
            }
            Step::Retry => self.retry(&mut s)?,
            Step::User => {
                (state_of(s.heads[0]) == "waiting").then_some(())?;
                s.left.user = s.left.user.checked_sub(1)?;
                let to = commits::event("ask", &[], &[s.heads[0]], s.time);
                s.set(Move { of: Ref::Head(0), from: s.heads[0], to });
                s.calls += 1;
            }
        }
        self.judge_step(before, &mut s, by);
        (s != *before).then_some(s)
    }

    /// What a process does next.
    fn go(&self, s: &mut State, p: usize) -> Option<()> {
        match s.processes[p].at {
            At::Off => return self.begin_role(s, p),
            At::Done => return None,
            At::Pauses => {
                s.processes[p].paused = s.paused != NONE;
                s.processes[p].at = At::Inbox;
            }
            At::Inbox => self.judge(s, p),
            At::Claimed => self.look_again(s, p),
            At::Looked => s.processes[p].at = At::Running,
            At::Running => self.command(s, p),
            At::Ended { ok } => self.complete(s, p, ok),
            At::AsksHeard | At::AsksInbox => match self.roles[p] {
                Role::Sender(slot) => self.speak(s, p, slot),
                Role::Ticker
                | Role::Beside
                | Role::Answerer
                | Role::Pauser { .. }
                | Role::Resumer
                | Role::Collector => return None,
            },
            At::Question => self.answer(s, p),
            At::Runs | At::Saying | At::Canceling | At::Unsaying => self.stop_runs(s, p),
            At::Again => self.ask_again(s, p),
            At::LettingGo => self.let_go(s, p),
            At::Before => self.before(s, p),
            At::First(n) => match self.step_of_moves(s, p, n, true)? {
                Some(true) => s.processes[p].at = At::Moving(0),
                Some(false) => self.lost(s, p),
                None => {}
            },
            At::Moving(n) => match self.step_of_moves(s, p, n, false)? {
                Some(true) => self.won(s, p),
                Some(false) => self.lost(s, p),
                None => {}
            },
            At::Reread => match self.read_again(s, p) {
                Some(true) => self.won(s, p),
                Some(false) => self.lost(s, p),
                None => {}
            },
        }
        Some(())
    }

    /// Time passes while no process that lives holds the branch: it would renew its lease.
    fn tick(&self, s: &mut State) -> Option<()> {
        let holds = |process: &super::world::Process| process.holds() && s.heads.contains(&process.lease);
        (s.time < self.last_tick && !s.processes.iter().any(holds)).then_some(())?;
        s.time += 1;
        s.calls += u8::from(s.calls < 3);
        Some(())
    }

    /// Visits the states within the bounds, at most so many, or until these promises are seen broken.
    pub fn check(&self, most: usize, until: Option<&[Promise]>) -> Found {
        let until = until.map_or(HasDiscoveries::All, |promises| {
            HasDiscoveries::AllOf(promises.iter().map(|promise| promise.name()).collect())
        });
        // One thread: what is visited, and in which order, is always the same.
        let checker = self.clone().checker().threads(1).target_state_count(most).finish_when(until);
        let checker = checker.spawn_bfs().join();
        let found = checker.discoveries();
        let broken: Vec<Promise> =
            Promise::ALL.into_iter().filter(|p| found.contains_key(p.name())).collect();
        let ways = broken.iter().map(|promise| found[promise.name()].clone().into_actions()).collect();
        Found { states: checker.unique_state_count(), whole: checker.state_count() < most, broken, ways }
    }

    /// The first of so many states from which what waits is not delivered, though nothing more goes wrong.
    pub fn stuck(&self, most: usize) -> Option<State> {
        let begin = self.begin();
        let mut seen = HashSet::from([begin.clone()]);
        let mut next = VecDeque::from([begin]);
        let mut visited = 0;
        while let Some(s) = next.pop_front().filter(|_| visited < most) {
            visited += 1;
            if let Some(stuck) = self.settle(s.clone()) {
                return Some(stuck);
            }
            let mut steps = Vec::new();
            self.actions(&s, &mut steps);
            for after in steps.into_iter().filter_map(|step| self.step(&s, step)) {
                if self.within_boundary(&after) && seen.insert(after.clone()) {
                    next.push_back(after);
                }
            }
        }
        None
    }

    /// Goes on without faults, each process in its turn, until nothing is left to do; the state where that is not so.
    fn settle(&self, mut s: State) -> Option<State> {
        let world = World { last_tick: self.last_tick + 3, by_hooks: false, ..self.clone() };
        s.left = super::world::Faults::default();
        for _ in 0..40 {
            let before = s.clone();
            // A process that was cut off comes by again, and ticks go on until they find nothing to do.
            for p in 0..s.processes.len() {
                for _ in 0..60 {
                    match world.step(&s, Step::Go(p as u8)) {
                        Some(after) => s = after,
                        None => break,
                    }
                    if matches!(s.processes[p].at, At::Off | At::Done) {
                        break;
                    }
                }
            }
            for step in [Step::Late, Step::Other, Step::Retry, Step::Tick] {
                s = world.step(&s, step).unwrap_or(s);
            }
            // A pause that came late is taken back by hand.
            for (role, process) in self.roles.iter().zip(&mut s.processes) {
                if *role == Role::Resumer && process.at == At::Done && s.paused != NONE {
                    process.stop(At::Off);
                }
            }
            if s == before {
                break;
            }
        }
        let rests = s.processes.iter().all(|process| matches!(process.at, At::Off | At::Done));
        let idle = s.heads.iter().enumerate().all(|(branch, head)| {
            let is_ticked = branch == 0 || self.roles.contains(&Role::Beside);
            let (decision, _) = world.decision(&s, branch, *head, s.paused != NONE);
            !is_ticked || matches!(decision, aynig::protocol::decide::Decision::Nothing(_))
        });
        let resumed = s.paused == NONE || !self.roles.contains(&Role::Resumer);
        let lost = s.broken & (Promise::D1.bit() | Promise::D2.bit() | Promise::R1.bit()) != 0;
        (!rests || !idle || !resumed || lost).then_some(s)
    }
}

impl Model for World {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.begin()]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        let left = &s.left;
        for (p, process) in s.processes.iter().enumerate() {
            let n = p as u8;
            let mut may = |may: bool, step: Step| steps.extend(may.then_some(step));
            may(process.at != At::Done, Step::Go(n));
            may(left.kill > 0, Step::Kill(n));
            may(left.fail > 0 && process.at == At::Running, Step::Fail(n));
            may(left.take > 0 && process.at == At::Running, Step::Mark(n));
            let sent = self.remote && process.at == At::Moving(0);
            may(sent && left.lost > 0, Step::Lose(n, false));
            may(sent && left.lost > 0, Step::Lose(n, true));
            for made in 0..process.moves.len() as u8 {
                may(sent && left.server > 0, Step::ServerDies(n, made));
            }
        }
        let awaits = self.start == commits::Start::BuildAfter && !s.other;
        let others = [
            (!s.ghost.is_empty(), Step::Late),
            (s.time < self.last_tick, Step::Tick),
            (awaits, Step::Other),
            (self.faults.fail > 0 && state_of(s.heads[0]) == "stalled", Step::Retry),
            (left.user > 0, Step::User),
        ];
        steps.extend(others.into_iter().filter(|(may, _)| *may).map(|(_, step)| step));
    }

    fn next_state(&self, s: &State, step: Step) -> Option<State> {
        self.step(s, step)
    }

    fn within_boundary(&self, s: &State) -> bool {
        s.runs <= self.runs
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! judges {
            ($($n:literal),*) => { [$(|_, s| s.broken & (1 << $n) == 0),*] };
        }
        let all: [fn(&World, &State) -> bool; 18] =
            judges![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17];
        let promises = Promise::ALL.iter().zip(all);
        let mut all: Vec<_> =
            promises.map(|(promise, holds)| Property::always(promise.name(), holds)).collect();
        // The checker ends where every property has failed.
        all.push(Property::always("goes on", |_, _| true));
        all
    }
}

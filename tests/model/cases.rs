//! What is checked: faults with every rule in place, and rules left out.
//!
//! Each case says which promises cannot hold in it. With every rule in place these are what no rule mends: two
//! commands while one machine is paused, or after a user wrote over or took away a lease; and a trigger that
//! is answered again because a user went back to it. Left out, a rule breaks what the specification names.

use crate::properties::Promise;
use crate::world::{Faults, RUNNERS, Rule, World};
use Promise::{Q1, Q2, Q3, Q3b, Q3h, Q4, Q5, Q6, Q7, Q8, Q9};
use aynig::protocol::decide::Takeover;

/// A world, and what can't hold in it.
pub struct Case {
    /// What happens in it.
    pub name: &'static str,
    /// The world.
    pub world: World,
    /// What fails.
    pub fails: &'static [Promise],
}

/// How much is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// A million states.
    Million,
    /// Ten million.
    TenMillion,
}

const NO: Faults = Faults {
    crash: 0,
    gone: 0,
    pause: 0,
    lost: 0,
    interrupt: 0,
    user_commit: 0,
    user_trigger: 0,
    rewind: 0,
    delete: 0,
    own: 0,
    fail: 0,
    deaf: 0,
};

/// Two runners that judge by dates with a grace of one tick, as the shipped default does.
fn date(faults: Faults) -> World {
    World {
        runners: 2,
        skew: [0; RUNNERS],
        same_host: false,
        takeover: Takeover::Date,
        grace: 1,
        kill_grace: 1,
        faults,
        without: None,
        prompt: false,
        last_tick: 6,
        commits: 5,
        runs: 2,
    }
}

/// The same with observation instead of a grace.
fn observe(faults: Faults) -> World {
    World { takeover: Takeover::Observe, grace: 0, ..date(faults) }
}

fn skewed(world: World, skew: i8) -> World {
    World { skew: [0, skew, 0], ..world }
}

/// Every rule in place.
pub fn hardened(scale: Scale) -> Vec<Case> {
    let case = |name, world, fails| Case { name, world, fails };
    let gone = |world: World| World { skew: [9, 0, 0], faults: Faults { gone: 1, ..NO }, ..world };
    let one_host = World { same_host: true, ..date(Faults { crash: 1, ..NO }) };
    let stopped = World { kill_grace: 3, ..date(Faults { interrupt: 1, ..NO }) };
    let prompt = World { prompt: true, ..date(Faults { user_trigger: 1, ..NO }) };
    let paused = World { grace: 0, last_tick: 5, ..date(Faults { pause: 1, ..NO }) };
    let mut cases = vec![
        case("no fault", date(NO), &[] as &[Promise]),
        case("no fault, observing", observe(NO), &[]),
        case("clock +1, grace 1", skewed(date(NO), 1), &[]),
        case("clock -1, grace 1", skewed(date(NO), -1), &[]),
        case("clock +3, observing", skewed(observe(NO), 3), &[]),
        case("clock +9, gone for good", gone(observe(NO)), &[]),
        case("a runner crashes and comes back", date(Faults { crash: 1, ..NO }), &[]),
        case("the same, both of one host", one_host, &[]),
        case("a machine is paused", paused.clone(), &[Q3]),
        case("the same, prompt network", World { prompt: true, ..paused }, &[Q3]),
        case("an answer is lost", date(Faults { lost: 1, ..NO }), &[]),
        case("a runner is interrupted, long kill grace", stopped.clone(), &[]),
        case("the same, grace 0", World { grace: 0, ..stopped }, &[]),
        case("a command fails, or declares nothing", date(Faults { fail: 1, ..NO }), &[]),
        case("a command writes its outcome itself", date(Faults { own: 1, ..NO }), &[]),
        case("a guardian is stopped", date(Faults { deaf: 1, ..NO }), &[]),
        case("the same, and its runner crashes", date(Faults { deaf: 1, crash: 1, ..NO }), &[]),
        case("a user's commit on top", date(Faults { user_commit: 1, ..NO }), &[]),
        case("a user's trigger on top", date(Faults { user_trigger: 1, ..NO }), &[Q3, Q3h]),
        case("the same, prompt network", prompt, &[Q3, Q3h]),
        case("a user rewinds", date(Faults { rewind: 1, ..NO }), &[Q3, Q3h, Q4, Q7]),
        case("a user deletes", date(Faults { delete: 1, ..NO }), &[]),
    ];
    if scale == Scale::TenMillion {
        cases.extend(larger());
    }
    cases
}

fn larger() -> Vec<Case> {
    let case = |name, world: World, fails| Case { name, world: World { commits: 6, ..world }, fails };
    let three = |world: World, skew| World { runners: 3, skew, ..world };
    let mixed = Faults { crash: 1, lost: 1, user_commit: 1, ..NO };
    let quiet = Faults { lost: 1, user_commit: 1, ..NO };
    vec![
        case("observing: a runner crashes and comes back", observe(Faults { crash: 1, ..NO }), &[]),
        case("observing: a machine is paused", observe(Faults { pause: 1, ..NO }), &[Q3]),
        case("observing: two answers are lost", observe(Faults { lost: 2, ..NO }), &[]),
        case("observing: a command fails", observe(Faults { fail: 1, ..NO }), &[]),
        case("observing: a user's commit on top", observe(Faults { user_commit: 1, ..NO }), &[]),
        case("observing: a user's trigger on top", observe(Faults { user_trigger: 1, ..NO }), &[Q3, Q3h]),
        case("observing: a user rewinds", observe(Faults { rewind: 1, ..NO }), &[Q3, Q3h, Q4, Q7]),
        case("observing: a user deletes", observe(Faults { delete: 1, ..NO }), &[]),
        case("a crash, a lost answer, a user's commit, clock +1", skewed(date(mixed), 1), &[]),
        // What a pause breaks by itself (Q3) lies deeper than this is visited: it is looked for above.
        case("the same, and a machine is paused", skewed(date(Faults { pause: 1, ..mixed }), 1), &[]),
        case("3 runners, no fault", three(date(NO), [0; RUNNERS]), &[]),
        case(
            "3 runners, a crash, clocks 0, +3, -3, observing",
            three(observe(Faults { crash: 1, ..NO }), [0, 3, -3]),
            &[],
        ),
        case("3 runners, lost answer, user's commit, clocks 0, +1, 0", three(date(quiet), [0, 1, 0]), &[]),
    ]
}

/// A runner whose clock is ahead by less than is absurd, and which dies for good; its leases are judged by date.
pub fn ahead(ticks: i8) -> World {
    World { skew: [ticks, 0, 0], ..date(Faults { gone: 1, ..NO }) }
}

/// Each rule left out, alone. `fails` is what the specification names for it.
pub fn ablations() -> Vec<(Rule, Case)> {
    let without = |rule, name, world: World, fails| {
        (rule, Case { name, world: World { without: Some(rule), ..world }, fails })
    };
    let none = |world: World| World { grace: 0, ..world };
    let one_host = World { same_host: true, ..date(NO) };
    let stopped = World { kill_grace: 3, ..none(date(Faults { interrupt: 1, ..NO })) };
    let prompt = World { prompt: true, ..date(Faults { user_trigger: 1, ..NO }) };
    let graceless = skewed(none(date(NO)), 1);
    vec![
        without(
            Rule::StrictSwap,
            "a user deletes",
            date(Faults { delete: 1, ..NO }),
            &[Q1, Q2, Q3, Q4, Q5, Q7],
        ),
        without(Rule::StrictSwap, "a user rewinds", date(Faults { rewind: 1, ..NO }), &[Q3, Q4, Q5, Q7]),
        without(Rule::NeverCreate, "a user deletes", date(Faults { delete: 1, ..NO }), &[Q5]),
        without(Rule::NeverForce, "a user's commit on top", date(Faults { user_commit: 1, ..NO }), &[Q6]),
        without(Rule::Unique, "no fault, one host", one_host, &[Q2, Q3, Q4]),
        without(Rule::Reread, "an answer is lost", date(Faults { lost: 1, ..NO }), &[Q9]),
        without(Rule::StopOnLoss, "a user's trigger on top", prompt, &[Q3h, Q3b]),
        without(Rule::GiveUp, "no fault", date(NO), &[Q3, Q3h]),
        without(Rule::CheckBeforeStart, "no fault", date(NO), &[Q3, Q3h]),
        without(Rule::DieWithRunner, "a runner crashes", date(Faults { crash: 1, ..NO }), &[Q3, Q3h]),
        without(Rule::AskGuardian, "a guardian is stopped", date(Faults { deaf: 1, ..NO }), &[Q3, Q3h]),
        without(
            Rule::WakeGuardian,
            "a guardian is stopped, its runner crashes",
            date(Faults { deaf: 1, crash: 1, ..NO }),
            &[Q3, Q3h],
        ),
        without(Rule::StopInTime, "a runner is interrupted", stopped, &[Q3, Q3h]),
        without(Rule::Grace, "clock +1", graceless, &[Q3, Q7]),
        without(Rule::KeepLost, "a user's commit on top", date(Faults { user_commit: 1, ..NO }), &[Q8]),
        without(Rule::NeverRebase, "no fault", date(NO), &[Q2]),
        without(Rule::NeverRebase, "an answer is lost", date(Faults { lost: 1, ..NO }), &[Q1]),
    ]
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 15] = [
        Rule::StrictSwap,
        Rule::NeverCreate,
        Rule::NeverForce,
        Rule::Unique,
        Rule::Reread,
        Rule::StopOnLoss,
        Rule::GiveUp,
        Rule::CheckBeforeStart,
        Rule::DieWithRunner,
        Rule::AskGuardian,
        Rule::WakeGuardian,
        Rule::StopInTime,
        Rule::Grace,
        Rule::KeepLost,
        Rule::NeverRebase,
    ];

    /// The rule in words.
    pub fn says(self) -> &'static str {
        match self {
            Rule::StrictSwap => "a swap names the expected id",
            Rule::NeverCreate => "no branch is ever created",
            Rule::NeverForce => "no push is forced",
            Rule::Unique => "every swapped commit carries something unique",
            Rule::Reread => "the ref is read again after every push that was not acknowledged",
            Rule::StopOnLoss => "a lease that is lost stops the command",
            Rule::GiveUp => "a lease is given up before it ends",
            Rule::CheckBeforeStart => "the lease is looked at before the command starts",
            Rule::DieWithRunner => "the command dies with its runner",
            Rule::AskGuardian => "a guardian that does not answer is killed, and its command with it",
            Rule::WakeGuardian => "a stopped guardian goes on when its runner dies",
            Rule::StopInTime => "a command that is stopped gets no longer than its lease has left",
            Rule::Grace => "the grace is above the difference between clocks, or foreign leases are observed",
            Rule::KeepLost => "a lost result is kept",
            Rule::NeverRebase => "a lost result is never put on another base and pushed again",
        }
    }
}

//! The world of the model: one branch on a server, runners with clocks of their own, and what may go wrong.
//!
//! Time is whole ticks of ten minutes; a lease is four of them, so that all moments of a lease are whole
//! ticks, and one more than an hour ahead is absurd to the shipped judgement. A state holds what the server,
//! the runners and their commands hold, what faults are left to happen, and which promises were broken.

use crate::texts::{self, Known, LEASE_SECONDS, Text};
use aynig::protocol::complete::Exit;
use aynig::protocol::decide::Takeover;
use aynig::protocol::dialect::Writer;
use aynig::protocol::holding::LeaseDeadlines;
use std::time::Duration;

/// Seconds in a tick.
pub const TICK: u64 = 600;
/// A lease, in ticks.
pub const LEASE: u8 = 4;
/// Most commits that there is room for; a configuration says how many are explored.
pub const COMMITS: usize = 14;
/// Most runs that there is room for.
pub const RUNS: usize = 7;
/// Most runners.
pub const RUNNERS: usize = 3;
/// No commit, no run.
pub const NONE: u8 = u8::MAX;
/// Every clock's first second.
pub const EPOCH: i64 = 1_000_000;

/// A rule of the protocol that the model can leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The swap names the expected id.
    StrictSwap,
    /// No branch is ever created.
    NeverCreate,
    /// No push is forced.
    NeverForce,
    /// Every swapped commit carries something unique.
    Unique,
    /// The ref is read again after every push that was not acknowledged.
    Reread,
    /// A lost lease stops the command.
    StopOnLoss,
    /// A lease is given up before it ends.
    GiveUp,
    /// The lease is looked at before the command starts.
    CheckBeforeStart,
    /// The command dies with its runner.
    DieWithRunner,
    /// A guardian that does not answer is killed, and its command with it.
    AskGuardian,
    /// A stopped guardian goes on when its runner dies.
    WakeGuardian,
    /// What is stopped gets no longer than its lease has left.
    StopInTime,
    /// The grace is above the skew, or foreign leases are observed.
    Grace,
    /// A lost result is kept.
    KeepLost,
    /// A lost result is never put on another base and pushed again.
    NeverRebase,
}

/// How often each fault may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Faults {
    pub crash: u8,
    /// One more crash of the first runner, which never comes back.
    pub gone: u8,
    pub pause: u8,
    /// Answers that never come, of pushes and of readings.
    pub lost: u8,
    pub interrupt: u8,
    pub user_commit: u8,
    pub user_trigger: u8,
    pub rewind: u8,
    pub delete: u8,
    /// `set-state` inside a command.
    pub own: u8,
    /// A command that ends without success, or without a declaration.
    pub fail: u8,
    /// A command that stops its guardian.
    pub deaf: u8,
}

/// One configuration of the model.
#[derive(Debug, Clone)]
pub struct World {
    pub runners: u8,
    /// How far each runner's clock is ahead, in ticks.
    pub skew: [i8; RUNNERS],
    /// All runners are one host's: one id, one clock.
    pub same_host: bool,
    pub takeover: Takeover,
    /// In ticks.
    pub grace: u8,
    /// The configured time from SIGTERM to SIGKILL, in ticks.
    pub kill_grace: u8,
    pub faults: Faults,
    /// The rule that is left out.
    pub without: Option<Rule>,
    /// The network answers within a tick, and every runner looks at its branch once a tick.
    pub prompt: bool,
    /// Bounds of what is explored.
    pub last_tick: u8,
    pub commits: u8,
    pub runs: u8,
}

/// A commit: where it stands, what it says, and the committer's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Commit {
    pub parent: u8,
    pub text: u16,
    /// In ticks since the epoch, by the clock of who built it.
    pub date: i8,
}

/// What is remembered of a run to judge the protocol; no runner looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RunInfo {
    pub trigger: u8,
    pub starts: u8,
    pub outcomes: u8,
    pub stalled: bool,
    /// Its runner took an accepted claim for lost.
    pub mistaken: bool,
    /// Its runner was paused while it held the branch.
    pub paused: bool,
    /// Its command wrote the outcome itself, and may finish.
    pub free: bool,
}

/// Where a runner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Between ticks.
    Idle,
    /// Its lease is on the way.
    Claiming,
    /// A recovery is on the way.
    Recovering,
    /// It holds the branch and fills its slot; a call on the way is the renewal before the start.
    Claimed,
    /// The command runs; a call on the way is a renewal.
    Running,
    /// The command was told to stop.
    Dying,
    /// The command has ended; a call on the way is what ends the run.
    Finishing,
}

/// A push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    None,
    /// On the way to the server.
    Sent,
    /// Given up on: whether the server had it is not known.
    Unanswered,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// Exit 0 and a declaration; its runner has not asked the server since.
    Fresh,
    /// The same, and it has.
    Success,
    /// Exit 0 without a declaration.
    Silent,
    Failed,
    Stopped,
    Interrupted,
    NotStarted,
}

/// A runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Runner {
    pub up: bool,
    pub paused: bool,
    pub phase: Phase,
    pub call: Call,
    /// The commit of that call, and when building it began.
    pub sent: u8,
    pub sent_at: u8,
    pub run: u8,
    /// The lease that it knows, and when building that began.
    pub lease: u8,
    pub born: u8,
    pub ended: Ended,
    /// When a command that was told to stop is killed.
    pub kill_at: u8,
    /// Its command wrote the outcome, and it knows.
    pub own: bool,
    /// It has looked at its branch since the last tick.
    pub looked: bool,
    /// A push that it no longer waits for.
    pub ghost: u8,
    /// The head that it noted, and when.
    pub seen: u8,
    pub seen_at: u8,
    /// A command that outlived it.
    pub orphan: bool,
    /// Its guardian is stopped: nothing that it orders is done, and it hears nothing.
    pub deaf: bool,
    /// Ticks for which its command went on after the lease was lost.
    pub adrift: u8,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub time: u8,
    pub head: u8,
    pub count: u8,
    pub run_count: u8,
    pub commits: [Commit; COMMITS],
    pub runs: [RunInfo; RUNS],
    pub runners: [Runner; RUNNERS],
    /// Commits that a user took off the branch, and commits of users.
    pub removed: u16,
    pub users: u16,
    pub left: Faults,
    /// The run whose outcome the step that is being taken has kept; `NONE` between two steps.
    pub kept: u8,
    /// Promises that were broken, one bit each.
    pub broken: u16,
}

impl Runner {
    fn new(up: bool) -> Self {
        Self {
            up,
            paused: false,
            phase: Phase::Idle,
            call: Call::None,
            sent: NONE,
            sent_at: 0,
            run: NONE,
            lease: NONE,
            born: 0,
            ended: Ended::Fresh,
            kill_at: 0,
            own: false,
            looked: false,
            ghost: NONE,
            seen: NONE,
            seen_at: 0,
            orphan: false,
            deaf: false,
            adrift: 0,
        }
    }

    /// Back between ticks: what it held in memory is gone, what it noted stays.
    pub fn forget(&mut self) {
        *self = Self {
            paused: self.paused,
            ghost: self.ghost,
            seen: self.seen,
            seen_at: self.seen_at,
            orphan: self.orphan,
            ..Self::new(self.up)
        };
    }

    /// True where it can do something.
    pub fn acts(&self) -> bool {
        self.up && !self.paused
    }

    /// True while its command lives.
    pub fn command_lives(&self) -> bool {
        self.orphan || matches!(self.phase, Phase::Running | Phase::Dying)
    }
}

impl Ended {
    /// The same as the shipped tables know it.
    pub fn exit(self) -> Exit {
        match self {
            Ended::Fresh | Ended::Success | Ended::Silent => Exit::Code(0),
            Ended::Failed => Exit::Code(1),
            Ended::Stopped => Exit::Stopped,
            Ended::Interrupted => Exit::Interrupted,
            Ended::NotStarted => Exit::NotStarted(String::new()),
        }
    }
}

impl World {
    /// The state that everything begins with: one trigger, and runners that have not looked yet.
    pub fn start(&self) -> State {
        let none = Commit { parent: NONE, text: 0, date: 0 };
        let mut commits = [none; COMMITS];
        commits[0].text = texts::number(Text::Trigger(0));
        let mut runners = [Runner::new(false); RUNNERS];
        runners.iter_mut().take(usize::from(self.runners)).for_each(|runner| runner.up = true);
        State {
            time: 0,
            head: 0,
            count: 1,
            run_count: 0,
            commits,
            runs: [RunInfo { trigger: NONE, ..RunInfo::default() }; RUNS],
            runners,
            removed: 0,
            users: 0,
            left: self.faults,
            kept: NONE,
            broken: 0,
        }
    }

    /// True where a rule is kept.
    pub fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// The number under which a runner is known: one host's runners share theirs.
    pub fn identity(&self, runner: usize) -> u8 {
        if self.same_host { 0 } else { runner as u8 }
    }

    /// A runner's wall clock, in ticks.
    pub fn wall(&self, runner: usize, time: u8) -> i8 {
        time as i8 + self.skew[runner]
    }

    /// The moments of the lease that a runner knows.
    pub fn moments(&self, runner: &Runner) -> LeaseDeadlines {
        LeaseDeadlines::of(Writer::Runner, elapsed(runner.born), LEASE_SECONDS, elapsed(self.kill_grace))
    }
}

/// The clock that counts suspend.
pub fn elapsed(time: u8) -> Duration {
    Duration::from_secs(u64::from(time) * TICK)
}

/// A wall clock's seconds since 1970.
pub fn seconds(wall: i8) -> i64 {
    EPOCH + i64::from(wall) * TICK as i64
}

impl State {
    /// What a commit says.
    pub fn says(&self, commit: u8) -> &'static Known {
        texts::known(self.commits[usize::from(commit)].text)
    }

    /// What a commit stands on.
    pub fn parent(&self, commit: u8) -> u8 {
        self.commits[usize::from(commit)].parent
    }

    /// A commit and all below it, one bit each.
    pub fn line(&self, mut commit: u8) -> u16 {
        let mut line = 0;
        while commit != NONE {
            line |= 1 << commit;
            commit = self.parent(commit);
        }
        line
    }

    /// True where `commit` is at or below `top`.
    pub fn contains(&self, top: u8, commit: u8) -> bool {
        self.line(top) & (1 << commit) != 0
    }

    /// Writes a commit: the same one as before where it is the same in everything.
    pub fn write(&mut self, parent: u8, text: Text, date: i8) -> Option<u8> {
        let commit = Commit { parent, text: texts::number(text), date };
        let known = self.commits[..usize::from(self.count)].iter().position(|c| *c == commit);
        if let Some(known) = known {
            return Some(known as u8);
        }
        *self.commits.get_mut(usize::from(self.count))? = commit;
        self.count += 1;
        Some(self.count - 1)
    }
}

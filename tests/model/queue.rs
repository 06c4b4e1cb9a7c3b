//! The pending queue: chains, slots, notes, one watcher, and processes that are killed. A model of its own beside the
//! protocol's; what a chain does about what it saw is the shipped [`next`]. A look is three steps, the kept slots,
//! the notes, the free slots, so that everything may happen between them. Tries K14 and K40: no branch waits while
//! a slot is free and a process could wake it.

use aynig::protocol::queue::{Next, Seen, Watch, next};
use stateright::{Checker, Model, Property};

/// Most states of one world.
const MOST: usize = 800_000;
const BRANCHES: usize = 3;
const PROCESSES: usize = 4;

/// What closes a gap, and is left out to see it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    LooksAfterNoting,
    LooksAfterTheWatch,
    SomebodyWatches,
    KeptSlotsAreWatched,
    TakenStaysNoted,
    ASuccessorWatches,
    NotedBeforeItIsGone,
    KeptIsSeenFirst,
}

const WAITS: &str = "nobody waits while a slot is free and somebody could wake them";
const LOST: &str = "no branch is lost that was noted";

impl Rule {
    /// Each, what it says, and what fails without it.
    const ALL: [(Rule, &str, &str); 8] = [
        (Rule::LooksAfterNoting, "who notes a branch looks at the slots again", WAITS),
        (Rule::LooksAfterTheWatch, "who gives the watch up looks once more", WAITS),
        (Rule::SomebodyWatches, "somebody stays while a branch waits", WAITS),
        (
            Rule::KeptSlotsAreWatched,
            "somebody stays while a slot is kept for a process that was left behind",
            WAITS,
        ),
        (Rule::TakenStaysNoted, "what is taken on stays noted until it was looked at", LOST),
        (Rule::ASuccessorWatches, "who takes a branch on has the others watched", WAITS),
        (Rule::KeptIsSeenFirst, "kept slots are looked at before the notes", WAITS),
        (Rule::NotedBeforeItIsGone, "who ends a process that was left behind notes its branch", LOST),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Off,
    Try,
    Noting,
    Running(u8),
    AskForSuccessor,
    StartSuccessor,
    Look,
    Notes { kept: bool },
    Slots { kept: bool, waiting: bool },
    Act(Next),
    Waiting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    at: At,
    branch: Option<u8>,
    watch: Watch,
    waited: bool,
}

const OFF: Process = Process { at: At::Off, branch: None, watch: Watch::Unknown, waited: false };

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    Free,
    Held(u8),
    /// The lease of this branch lives on, and a process.
    Kept(u8),
    /// That process has set what comes next, and has told no process yet.
    Leaving(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Noted {
    No,
    Yes,
    InHand(u8),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    processes: [Process; PROCESSES],
    slots: Vec<Slot>,
    notes: [Noted; BRANCHES],
    /// A head that no process has answered yet.
    asks: [bool; BRANCHES],
    arrivals: u8,
    keeps: u8,
    kills: u8,
    /// A process that was awake was killed, and none has looked since.
    orphaned: bool,
    /// Asked by a process that was killed before it was noted.
    excused: [bool; BRANCHES],
    watcher: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Arrive,
    Go(u8),
    Keep(u8),
    Expire(u8),
    Sets(u8),
    Tells(u8),
    Kill(u8),
}

#[derive(Debug, Clone)]
pub struct Queue {
    pub branches: u8,
    pub slots: usize,
    pub keeps: u8,
    pub kills: u8,
    pub without: Option<Rule>,
}

impl State {
    fn free(&self) -> Option<usize> {
        self.slots.iter().position(|slot| matches!(slot, Slot::Free | Slot::Leaving(_)))
    }

    fn awake(&self) -> bool {
        self.processes.iter().any(|p| !matches!(p.at, At::Off | At::Running(_)))
    }

    /// A process that starts; `None` where the model has no more room.
    fn start(&mut self, process: Process) -> Option<usize> {
        let free = self.processes.iter().position(|p| p.at == At::Off)?;
        self.processes[free] = process;
        Some(free)
    }

    fn let_go(&mut self, p: usize) {
        if self.watcher == Some(p as u8) {
            self.watcher = None;
        }
        for note in &mut self.notes {
            if *note == Noted::InHand(p as u8) {
                *note = Noted::Yes;
            }
        }
    }
}

impl Queue {
    fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// One step of a chain.
    fn go(&self, s: &mut State, p: usize) -> Option<()> {
        let mut me = s.processes[p];
        match me.at {
            At::Off => return None,
            At::Try => {
                let b = me.branch?;
                match s.free() {
                    Some(slot) => {
                        if let Slot::Leaving(gone) = s.slots[slot]
                            && self.has(Rule::NotedBeforeItIsGone)
                            && s.notes[usize::from(gone)] == Noted::No
                        {
                            s.notes[usize::from(gone)] = Noted::Yes;
                        }
                        s.slots[slot] = Slot::Held(p as u8);
                        me.at = At::Running(slot as u8);
                        s.asks[usize::from(b)] = false;
                    }
                    None => me.at = At::Noting,
                }
            }
            At::Noting => {
                s.notes[usize::from(me.branch.take()?)] = Noted::Yes;
                me.at = if self.has(Rule::LooksAfterNoting) { At::Look } else { At::Off };
            }
            At::Running(slot) => {
                s.slots[usize::from(slot)] = Slot::Free;
                self.done_with(s, &mut me);
            }
            At::AskForSuccessor => {
                // Held for a moment: a process that asks meanwhile hears that another watches.
                me.at = if s.watcher.is_none() { At::StartSuccessor } else { At::Try };
                s.watcher.get_or_insert(p as u8);
            }
            At::StartSuccessor => {
                // It has the watch from its start on, and waits before it looks.
                let successor = s.start(Process { at: At::Waiting, watch: Watch::Mine, ..OFF })?;
                s.watcher = Some(successor as u8);
                me.at = At::Try;
            }
            At::Look => {
                s.orphaned &= me.watch == Watch::Others;
                let kept = |slot: &Slot| matches!(slot, Slot::Kept(_) | Slot::Leaving(_));
                let kept = self.has(Rule::KeptSlotsAreWatched) && s.slots.iter().any(kept);
                me.at = if self.has(Rule::KeptIsSeenFirst) {
                    At::Notes { kept }
                } else {
                    At::Slots { kept: false, waiting: s.notes.contains(&Noted::Yes) }
                };
            }
            At::Notes { kept } => me.at = At::Slots { kept, waiting: s.notes.contains(&Noted::Yes) },
            At::Slots { kept, waiting } => {
                let is_kept = |slot: &Slot| matches!(slot, Slot::Kept(_) | Slot::Leaving(_));
                let late = !self.has(Rule::KeptIsSeenFirst) && s.slots.iter().any(is_kept);
                let free = waiting && s.free().is_some();
                me.at = At::Act(next(Seen { waiting, free, kept: kept || late }, me.watch));
            }
            At::Act(what) => self.act(s, p, &mut me, what),
            At::Waiting => (me.at, me.waited) = (At::Look, true),
        }
        s.processes[p] = me;
        if me.at == At::Off {
            s.let_go(p);
        }
        Some(())
    }

    fn done_with(&self, s: &mut State, me: &mut Process) {
        if let Some(b) = me.branch.take()
            && matches!(s.notes[usize::from(b)], Noted::InHand(_))
        {
            s.notes[usize::from(b)] = Noted::No;
        }
        (me.at, me.watch, me.waited) = (At::Look, Watch::Unknown, false);
    }

    fn act(&self, s: &mut State, p: usize, me: &mut Process, what: Next) {
        let give_up = |s: &mut State, me: &mut Process| {
            if s.watcher == Some(p as u8) {
                s.watcher = None;
            }
            me.watch = Watch::Unknown;
        };
        match what {
            // What may run is read anew.
            Next::TakeOn if me.waited => {
                give_up(s, me);
                (me.waited, me.at) = (false, At::Look);
            }
            Next::TakeOn => {
                give_up(s, me);
                me.at = At::Look;
                if let Some(b) = s.notes.iter().position(|note| *note == Noted::Yes) {
                    s.notes[b] =
                        if self.has(Rule::TakenStaysNoted) { Noted::InHand(p as u8) } else { Noted::No };
                    me.branch = Some(b as u8);
                    let kept = |slot: &Slot| matches!(slot, Slot::Kept(_) | Slot::Leaving(_));
                    let more = s.notes.contains(&Noted::Yes) || s.slots.iter().any(kept);
                    let successor = more && self.has(Rule::ASuccessorWatches);
                    me.at = if successor { At::AskForSuccessor } else { At::Try };
                }
            }
            Next::AskForWatch if self.has(Rule::SomebodyWatches) => {
                me.watch = if s.watcher.is_none() { Watch::Mine } else { Watch::Others };
                s.watcher.get_or_insert(p as u8);
                me.at = At::Look;
            }
            Next::Wait => me.at = At::Waiting,
            Next::EndWatch if self.has(Rule::LooksAfterTheWatch) => {
                give_up(s, me);
                me.at = At::Look;
            }
            Next::AskForWatch | Next::EndWatch | Next::Leave => me.at = At::Off,
        }
    }

    fn kill(&self, s: &mut State, p: usize) -> Option<()> {
        s.kills = s.kills.checked_sub(1)?;
        let process = std::mem::replace(&mut s.processes[p], OFF);
        if let At::Running(slot) = process.at {
            s.slots[usize::from(slot)] = Slot::Free;
        }
        s.let_go(p);
        if let Some(b) = process.branch.map(usize::from) {
            // A process that dies with a branch that no other knows of takes it along, as before its chain began.
            s.excused[b] |= matches!(process.at, At::Try | At::Noting) && self.has(Rule::TakenStaysNoted);
        }
        // Others may have left because this one was there.
        s.orphaned |= !matches!(process.at, At::Running(_));
        Some(())
    }
}

impl Model for Queue {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            processes: [OFF; PROCESSES],
            slots: vec![Slot::Free; self.slots],
            notes: [Noted::No; BRANCHES],
            asks: [false; BRANCHES],
            arrivals: 0,
            keeps: self.keeps,
            kills: self.kills,
            orphaned: false,
            excused: [false; BRANCHES],
            watcher: None,
        }]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        if s.arrivals < self.branches {
            steps.push(Step::Arrive);
        }
        for (p, process) in s.processes.iter().enumerate().filter(|(_, p)| p.at != At::Off) {
            steps.push(Step::Go(p as u8));
            if s.kills > 0 {
                steps.push(Step::Kill(p as u8));
            }
            if matches!(process.at, At::Running(_)) && s.keeps > 0 {
                steps.push(Step::Keep(p as u8));
            }
        }
        for (n, slot) in s.slots.iter().enumerate() {
            match slot {
                Slot::Kept(_) => steps.extend([Step::Expire(n as u8), Step::Sets(n as u8)]),
                Slot::Leaving(_) => steps.push(Step::Tells(n as u8)),
                Slot::Free | Slot::Held(_) => {}
            }
        }
    }

    fn next_state(&self, s: &State, step: Step) -> Option<State> {
        let mut s = s.clone();
        match step {
            Step::Arrive => {
                let branch = s.arrivals;
                s.start(Process { at: At::Try, branch: Some(branch), ..OFF })?;
                s.asks[usize::from(branch)] = true;
                s.arrivals += 1;
            }
            Step::Go(p) => self.go(&mut s, p.into())?,
            Step::Kill(p) => self.kill(&mut s, p.into())?,
            Step::Keep(p) => {
                s.keeps = s.keeps.checked_sub(1)?;
                let mut me = s.processes[usize::from(p)];
                let (At::Running(slot), Some(branch)) = (me.at, me.branch) else { return None };
                s.slots[usize::from(slot)] = Slot::Kept(branch);
                self.done_with(&mut s, &mut me);
                s.processes[usize::from(p)] = me;
            }
            Step::Expire(n) => s.slots[usize::from(n)] = Slot::Free,
            Step::Sets(n) => {
                let Slot::Kept(branch) = s.slots[usize::from(n)] else { return None };
                s.slots[usize::from(n)] = Slot::Leaving(branch);
                s.asks[usize::from(branch)] = true;
            }
            Step::Tells(n) => {
                let Slot::Leaving(branch) = s.slots[usize::from(n)] else { return None };
                s.slots[usize::from(n)] = Slot::Free;
                s.notes[usize::from(branch)] = Noted::Yes;
            }
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(WAITS, |_, s: &State| {
                // A note whose branch runs, or ran, when its holder was killed keeps no branch waiting.
                let waits = (0..BRANCHES).any(|b| s.notes[b] == Noted::Yes && s.asks[b]);
                s.orphaned || s.awake() || s.free().is_none() || !waits
            }),
            Property::always(LOST, |_, s: &State| {
                (0..BRANCHES).all(|b| {
                    let held = |p: &Process| p.branch == Some(b as u8);
                    let told = s.slots.contains(&Slot::Leaving(b as u8));
                    let known = s.notes[b] != Noted::No || told || s.processes.iter().any(held);
                    !s.asks[b] || s.excused[b] || known
                })
            }),
        ]
    }
}

/// What fails; and how many states were visited.
fn check(queue: Queue) -> (usize, Vec<&'static str>) {
    let checker = queue.checker().threads(1).target_state_count(MOST).spawn_bfs().join();
    (checker.unique_state_count(), checker.discoveries().into_keys().collect())
}

fn worlds() -> impl Iterator<Item = Queue> {
    [(2, 1, 1, 0), (2, 1, 1, 1), (2, 1, 0, 2), (3, 1, 0, 0), (3, 2, 0, 0), (3, 2, 1, 0)]
        .into_iter()
        .map(|(branches, slots, keeps, kills)| Queue { branches, slots, keeps, kills, without: None })
}

/// K14, K40
#[test]
fn nobody_waits_while_a_slot_is_free_and_somebody_could_wake_them() {
    for queue in worlds() {
        let (states, broken) = check(queue.clone());
        assert!(broken.is_empty(), "{queue:?}: {broken:?} of {states} states");
    }
}

/// K14, K40
#[test]
fn each_rule_of_the_queue_left_out_fails_as_named() {
    for (rule, says, named) in Rule::ALL {
        let fails = worlds().any(|queue| check(Queue { without: Some(rule), ..queue }).1.contains(&named));
        assert!(fails, "without '{says}': {named}");
    }
}

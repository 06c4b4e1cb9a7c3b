//! The world of the model of messages: a branch, where it is said so another one beside it, the refs of both, and the processes
//! that speak, deliver and pause.
//!
//! A step of a process is one read or one move of a ref, so that everything may happen between two of them. Leases are
//! the other model's: here one holds while its process lives, and is expired at the next tick of the clock after that.

use super::commits::{self, Start};
use aynig::protocol::inbox::{
    InboxRef, Kind, MessageId, answer_id, asked_ref, heard_ref, inbox_ref, paused_ref,
};

/// A commit, by its number; [`NONE`]: a ref that is not there.
pub type Commit = u16;
/// No commit.
pub const NONE: Commit = Commit::MAX;
/// The branches: most of what is tried happens on the first.
pub const BRANCHES: [&[u8]; 2] = [b"work", b"beside"];
/// The second.
pub const BESIDE: usize = 1;
/// Names of the inbox that there is room for, and ids.
pub const SLOTS: usize = 8;
pub const IDS: usize = 6;
/// Where a message called A waits, one that some other process sends under its id, and one called B.
pub const A: u8 = 0;
pub const TWIN: u8 = 1;
pub const B: u8 = 2;
/// Where the answers to the first and to the second question wait, and one whose id is of its own.
pub const FIRST: u8 = 3;
pub const OTHER: u8 = 5;
/// Where a pause that stops tells a run that it should end.
pub const WORD: u8 = 6;
/// Where a message waits for the other branch that has A's id.
pub const A_BESIDE: u8 = 7;

/// A ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ref {
    Head(u8),
    Inbox(u8),
    Heard(u8),
    Asked(u8),
    Paused,
}

/// The id of the question that is asked as the first, or the second.
pub fn question_id(n: u8) -> MessageId {
    MessageId::v7(20 + u64::from(n), 0, [n; 8])
}

/// The number of the id of what waits there.
pub fn id_of(slot: u8) -> u8 {
    [0, 0, 1, 2, 3, 4, 5, 0][usize::from(slot)]
}

/// An id.
pub fn message_id(id: u8) -> MessageId {
    match id {
        2 | 3 => answer_id(question_id(id - 2)),
        _ => MessageId::v7(u64::from(id) + 1, 0, [id; 8]),
    }
}

/// The number of the branch of what waits there.
pub fn branch_of(slot: u8) -> usize {
    if slot == A_BESIDE { BESIDE } else { 0 }
}

/// The bit of what is sent there: an id to a branch.
pub fn sent_bit(slot: u8) -> u8 {
    if slot == A_BESIDE { 1 << IDS } else { 1 << id_of(slot) }
}

/// The name of an inbox that is meant.
pub fn place(slot: u8) -> InboxRef {
    let kinds = ["message", "handoff", "message", "answer", "answer", "answer", "interrupt", "message"];
    let kind = Kind::new(kinds[usize::from(slot)]).unwrap();
    InboxRef { branch: BRANCHES[branch_of(slot)].to_vec(), kind, id: message_id(id_of(slot)) }
}

impl Ref {
    /// Its name.
    pub fn name(self) -> Vec<u8> {
        match self {
            Ref::Head(n) => [b"refs/heads/", BRANCHES[usize::from(n)]].concat(),
            Ref::Inbox(slot) => inbox_ref(&place(slot).branch, &place(slot).kind, place(slot).id),
            Ref::Heard(id) => heard_ref(message_id(id)),
            Ref::Asked(n) => asked_ref(question_id(n)),
            Ref::Paused => paused_ref(MessageId::v7(30, 0, [0; 8])),
        }
    }
}

/// A rule that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    BranchFirst,
    TakenOffBefore,
    LineIsRead,
    HeardIsNoProof,
    HeardElsewhere,
    HeardByAnother,
    ConflictIsNoParent,
    ConflictIsNamed,
    IntoTheInterim,
    WorkIsIn,
    KeptWhileNotIn,
    InboxBeforeHeard,
    OnlyWhereNoneIs,
    HeardAgain,
    TakenWithTheOutcome,
    OneAnswer,
    OwnQuestion,
    LooksAgain,
    NotedFirst,
    AskedBeforeItLetsGo,
    OnlyWhatItEnded,
    SaidGoesFirst,
    NotBefore,
    After,
    SenderStarts,
    LastLook,
    ResumeStarts,
    AwaitedStarts,
}

/// How often each may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Faults {
    /// A process is killed.
    pub kill: u8,
    /// A command fails, and its trigger is asked for again by a person.
    pub fail: u8,
    /// The answer to a push is lost; the push may come later.
    pub lost: u8,
    /// The server is killed while it moves refs.
    pub server: u8,
    /// A person asks for something new over a head that waits.
    pub user: u8,
    /// A command marks a message as heard.
    pub take: u8,
}

/// What a process is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Ticker,
    /// Ticks the other branch.
    Beside,
    /// Sends what waits there then.
    Sender(u8),
    /// Answers the first question.
    Answerer,
    Pauser {
        stop: bool,
    },
    Resumer,
    /// Removes what was heard long ago.
    Collector,
}

/// What A and B bring besides their texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Nothing,
    /// Work each, which can be merged with the other's.
    Joins,
    /// Work each, which can't.
    Conflicts,
}

/// One configuration.
#[derive(Debug, Clone)]
pub struct World {
    pub roles: Vec<Role>,
    pub start: Start,
    pub work: Work,
    /// The branch is a remote's: refs move by one atomic push.
    pub remote: bool,
    /// How many commits of the branch's line are looked at for what they brought.
    pub line: usize,
    /// Nothing ticks by itself: who has made something to do starts it.
    pub by_hooks: bool,
    pub faults: Faults,
    pub last_tick: u8,
    pub runs: u8,
    pub without: Option<Rule>,
}

/// A move of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Move {
    pub of: Ref,
    pub from: Commit,
    pub to: Commit,
}

/// What the moves that a process makes are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum For {
    /// The branch is judged again from its new head.
    Judging,
    Claim,
    /// The lease ends, and the chain looks once more.
    End,
    Ask,
    Mark,
    Send,
    Answer,
    Pause,
    Note,
    Say,
    Cancel,
    Unsay,
    Clear,
    AskAgain,
    LetGo,
    Collect,
}

/// Where a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum At {
    /// Not begun, or killed.
    Off,
    /// It has done what it is there for.
    Done,
    // A ticker.
    Pauses,
    Inbox,
    Claimed,
    Looked,
    Running,
    Ended {
        ok: bool,
    },
    // Who speaks.
    AsksHeard,
    AsksInbox,
    // Who answers.
    Question,
    // Who pauses, or lets go.
    Runs,
    Saying,
    Canceling,
    Unsaying,
    Again,
    LettingGo,
    // Any of them: what the head brought is taken off, then its own moves are made.
    Before,
    First(u8),
    Moving(u8),
    /// The answer to its push is lost.
    Reread,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    pub at: At,
    pub meant: For,
    /// The head that it read, and for one that holds the branch its lease and its trigger.
    pub head: Commit,
    pub lease: Commit,
    pub trigger: Commit,
    pub run: u8,
    /// The number of the question that its command asked.
    pub asked: u8,
    /// What its command marked.
    pub mark: u8,
    /// It found a pause.
    pub paused: bool,
    /// A pause stood when its evaluation began; when its claim was won.
    pub began_paused: bool,
    pub claimed_paused: bool,
    /// When it began to send, another had been told that it sent under the same id.
    pub told: bool,
    /// How often it was killed.
    pub tries: u8,
    pub first: Vec<Move>,
    pub moves: Vec<Move>,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub heads: [Commit; 2],
    pub inbox: [Commit; SLOTS],
    pub heard: [Commit; IDS],
    pub asked: [Commit; 2],
    pub paused: Commit,
    /// The other branch is in the state that is waited for.
    pub other: bool,
    pub time: u8,
    pub runs: u8,
    pub questions: u8,
    pub processes: Vec<Process>,
    pub left: Faults,
    /// Evaluations that were started and have not begun.
    pub calls: u8,
    /// Moves on the way that are waited for no longer.
    pub ghost: Vec<Move>,
    pub killed: bool,
    /// What waited once, one bit for each id and branch; that of which a sender was told that it sent it; and how many answers won.
    pub sent: u8,
    pub told: u8,
    pub won: u8,
    /// `pause` has returned, and what it made stands.
    pub stands: bool,
    pub broken: u32,
}

impl Process {
    pub fn new() -> Self {
        Self {
            at: At::Off,
            meant: For::Judging,
            head: NONE,
            lease: NONE,
            trigger: NONE,
            run: 0,
            asked: 0,
            mark: 0,
            paused: false,
            began_paused: false,
            claimed_paused: false,
            told: false,
            tries: 0,
            first: Vec::new(),
            moves: Vec::new(),
        }
    }

    /// Forgets all but how often it was killed.
    pub fn stop(&mut self, at: At) {
        *self = Self { at, tries: self.tries, ..Self::new() };
    }

    /// True while it holds this ref's lock.
    pub fn locks(&self, of: Ref) -> bool {
        let held = match self.at {
            At::First(n) if n > 0 => &self.first,
            At::Moving(n) if n > 0 => &self.moves,
            _ => return false,
        };
        held.iter().any(|held| held.of == of)
    }

    /// True while it holds the branch.
    pub fn holds(&self) -> bool {
        self.lease != NONE
    }
}

impl World {
    /// True where a rule is kept.
    pub fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// The branch that a process ticks.
    pub fn branch(&self, p: usize) -> usize {
        if self.roles[p] == Role::Beside { BESIDE } else { 0 }
    }

    /// What everything begins with.
    pub fn begin(&self) -> State {
        State {
            heads: [commits::start(self.start), commits::beside()],
            inbox: [NONE; SLOTS],
            heard: [NONE; IDS],
            asked: [NONE; 2],
            paused: NONE,
            other: false,
            time: 0,
            runs: 0,
            questions: 0,
            processes: vec![Process::new(); self.roles.len()],
            left: self.faults,
            calls: 1,
            ghost: Vec::new(),
            killed: false,
            sent: 0,
            told: 0,
            won: 0,
            stands: false,
            broken: 0,
        }
    }
}

impl State {
    /// What a ref holds.
    pub fn get(&self, of: Ref) -> Commit {
        match of {
            Ref::Head(n) => self.heads[usize::from(n)],
            Ref::Inbox(n) => self.inbox[usize::from(n)],
            Ref::Heard(n) => self.heard[usize::from(n)],
            Ref::Asked(n) => self.asked[usize::from(n)],
            Ref::Paused => self.paused,
        }
    }

    /// Makes a move.
    pub fn set(&mut self, moved: Move) {
        let to = moved.to;
        match moved.of {
            Ref::Head(n) => self.heads[usize::from(n)] = to,
            Ref::Inbox(n) => {
                self.inbox[usize::from(n)] = to;
                self.sent |= if to == NONE { 0 } else { sent_bit(n) };
            }
            Ref::Heard(n) => self.heard[usize::from(n)] = to,
            Ref::Asked(n) => self.asked[usize::from(n)] = to,
            Ref::Paused => {
                self.paused = to;
                self.stands &= to != NONE;
            }
        }
    }

    /// The moves by which what waits there is heard.
    pub fn hearing(&self, slots: &[u8]) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::new();
        for slot in slots {
            let (heard, commit) = (Ref::Heard(id_of(*slot)), self.get(Ref::Inbox(*slot)));
            if self.get(heard) == NONE && !moves.iter().any(|moved| moved.of == heard) {
                moves.push(Move { of: heard, from: NONE, to: commit });
            }
            moves.push(Move { of: Ref::Inbox(*slot), from: commit, to: NONE });
        }
        moves
    }
}

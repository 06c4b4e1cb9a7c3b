//! What a process with nothing left to run does about branches that wait for a slot.
//!
//! A branch that finds no slot is noted, and the process that noted it goes on from there: [`next`] decides
//! from what the process saw, until the decision is to leave. One process is the watcher: it looks again and
//! again while a branch waits, or while a slot is kept for a run whose command is over. Three orders close
//! the gaps between processes: a note is written before the slots are looked at; kept slots are looked at
//! before the notes, and free ones after them; and the watcher gives its watch up before it looks for the
//! last time. A process that leaves because another watches may rely on that last look. The promise: no
//! branch waits while a slot is free and a process could take the branch on. Implements K14, K40.

/// What a look at the notes and at the slots says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seen {
    /// A branch is noted that no process has taken on.
    pub waiting: bool,
    /// A slot is free, and not as many processes work branches off as may.
    pub free: bool,
    /// A slot is kept for a run whose command is over and whose lease lives on (K21).
    pub kept: bool,
}

/// Which process watches, as far as this one knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watch {
    /// The process has not asked yet.
    Unknown,
    /// This process.
    Mine,
    /// Another process.
    Others,
}

/// What the process does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// Take branches on, no more than there are free slots; the watch is given up first.
    TakeOn,
    /// Take the watch, or learn that another has it; then look again.
    AskForWatch,
    /// Look again later.
    Wait,
    /// Give the watch up, and look once more.
    EndWatch,
    /// Leave: there is nothing left for this process to do.
    Leave,
}

/// Decides what to do next, from what was seen after the last step.
pub fn next(seen: Seen, watch: Watch) -> Next {
    if seen.waiting && seen.free {
        return Next::TakeOn;
    }
    match (seen.waiting || seen.kept, watch) {
        (true, Watch::Unknown) => Next::AskForWatch,
        (true, Watch::Mine) => Next::Wait,
        (false, Watch::Mine) => Next::EndWatch,
        (_, Watch::Others) | (false, Watch::Unknown) => Next::Leave,
    }
}

//! What a runner writes when a command has ended: the contract's tables, one for each dialect, as one pure,
//! total function. Implements K20-K24, K29.

use super::declaration::{Declaration, Invalid};
use super::dialect::{Dialect, Writer};
use super::id::ObjectId;
use super::obstacle::Obstacle;
use super::text::escape;
use std::fmt;
use std::time::Duration;

/// How the command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// The command exited with this status.
    Code(i32),
    /// A signal that the runner did not send ended the command.
    Signal {
        /// The signal's number.
        signal: i32,
        /// Whether the command left a core file.
        core_dumped: bool,
    },
    /// The command ran past this timeout and was stopped.
    TimedOut(Duration),
    /// The command was stopped because the runner was.
    Interrupted,
    /// The command was stopped because the lease was lost or could not be renewed in time.
    Stopped,
    /// The command could not be started, for this reason.
    NotStarted(String),
    /// The command's supervisor died, and what became of the command is not known.
    Unsupervised,
    /// The command's supervisor was stopped, or no longer answered, and was killed together with the command.
    SupervisorStopped,
    /// The command was confined, and changed this path, which redirects every Git process (K59).
    Redirected(String),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit {code}"),
            Exit::Signal { signal, core_dumped } => {
                write!(f, "killed by signal {signal}{}", if *core_dumped { " (core dumped)" } else { "" })
            }
            Exit::TimedOut(after) => write!(f, "timed out after {:.1}s", after.as_secs_f64()),
            Exit::Interrupted => f.write_str("interrupted"),
            Exit::Stopped => f.write_str("stopped: the lease could not be kept"),
            Exit::NotStarted(why) => write!(f, "could not be started: {why}"),
            Exit::Unsupervised => f.write_str("its supervisor was killed"),
            Exit::SupervisorStopped => f.write_str("its supervisor was stopped"),
            Exit::Redirected(what) => write!(f, "it changed '{}', which leads Git", escape(what.as_bytes())),
        }
    }
}

/// What the command declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    /// No declaration, neither in the result file nor in its output.
    Nothing,
    /// This valid declaration.
    State(Declaration),
    /// The result file has content that is not a declaration; then what the command printed does not count.
    BadResult(Invalid),
    /// The command printed declarations, none of them valid. This is why the last one that was kept is not.
    BadLine(Invalid),
}

/// What a branch's head is to the run that claimed the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadIs {
    /// The run's own lease, at this commit. The command may have renewed the lease by hand.
    Lease(ObjectId),
    /// This state event of the run, or a commit that stands on it. The event stands on the run's lease, and
    /// is no lease itself.
    OwnEvent(ObjectId),
    /// The slot's own HEAD, which descends from the lease: the command advanced the branch.
    SlotHead,
    /// Any other commit, or none because the branch is gone.
    Other,
}

/// Why a run ends `stalled`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stall {
    /// The command failed.
    Exit(Exit),
    /// The result file was no declaration.
    BadResult(Invalid),
    /// The command printed declarations, none of them valid.
    BadLine(Invalid),
    /// The slot's HEAD does not descend from the lease.
    ForeignHead,
    /// The slot's index has unmerged paths.
    Unmerged,
    /// The slot could not be filled, or its content could not be read.
    Slot(String),
    /// The outcome can't be brought into a working tree that has the branch checked out.
    Checkout(Obstacle),
    /// The remote refused the outcome's commit.
    Declined(String),
    /// The outcome can't be written so that Git reads it back the same.
    Unrenderable(String),
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stall::Exit(exit) => exit.fmt(f),
            Stall::BadResult(why) => write!(f, "the result file is no declaration: {why}"),
            Stall::BadLine(why) => write!(f, "its SET_STATE line is no declaration: {why}"),
            Stall::ForeignHead => f.write_str("the worktree's HEAD does not descend from the lease"),
            Stall::Unmerged => f.write_str("the worktree's index has unmerged paths"),
            Stall::Slot(why) => write!(f, "worktree: {why}"),
            Stall::Checkout(obstacle) => write!(f, "checkout: {}", obstacle.kind()),
            Stall::Declined(why) => write!(f, "the remote declined the outcome: {why}"),
            Stall::Unrenderable(why) => write!(f, "the outcome cannot be written: {why}"),
        }
    }
}

/// Most bytes of what went wrong with a slot that a commit's subject repeats.
const WORDS_MAX: usize = 48;

impl Stall {
    /// Returns the stall in a few words, for a commit's subject; the commit's body has the rest.
    pub fn short(&self) -> String {
        match self {
            Stall::BadResult(_) => "the result file is no declaration".to_owned(),
            Stall::BadLine(_) => "its SET_STATE line is no declaration".to_owned(),
            Stall::Declined(_) => "the remote declined the outcome".to_owned(),
            Stall::Unrenderable(_) => "the outcome cannot be written".to_owned(),
            // What Git or the system said, and of which path, is the body's.
            Stall::Slot(why) => match why.split([':', '\n']).next() {
                Some(what) if !what.contains('/') && what.len() <= WORDS_MAX => format!("worktree: {what}"),
                Some(_) | None => "worktree: its files could not be read or written".to_owned(),
            },
            Stall::Exit(_) | Stall::ForeignHead | Stall::Unmerged | Stall::Checkout(_) => self.to_string(),
        }
    }
}

/// What the runner writes when a run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// The declared state's commit, on top of the present head (K20).
    Outcome(Declaration),
    /// A fresh `working` commit: the lease lives on, and with it the slot (K21).
    KeepLease,
    /// Nothing: the lease is the command's to renew, and lives until it expires (K29).
    LeaveLease,
    /// Nothing: this commit of the command's own is the outcome (K22).
    AlreadyWritten(ObjectId),
    /// A `stalled` commit (K23).
    Stalled(Stall),
    /// Nothing on the branch: the run is fenced (K24).
    Fenced,
}

/// What is kept of a run that was fenced, that is, whose branch is no longer its own (K24, K26).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept<'a> {
    /// The run's whole outcome, which `retry` can land.
    Outcome(&'a Declaration),
    /// What the run's slot holds.
    Work,
}

/// Decides what is kept of a fenced run: a finished result is never lost.
pub fn kept_of_fenced<'a>(exit: &Exit, declared: &'a Declared) -> Kept<'a> {
    match (exit, declared) {
        (Exit::Code(0), Declared::State(next)) => Kept::Outcome(next),
        (_, Declared::State(_) | Declared::Nothing | Declared::BadResult(_) | Declared::BadLine(_)) => {
            Kept::Work
        }
    }
}

/// Decides what is written when a run has ended.
pub fn complete(dialect: Dialect, exit: &Exit, declared: Declared, head: HeadIs) -> Completion {
    match dialect.writer() {
        Writer::Runner => complete_declared(exit, declared, head),
        Writer::Command => complete_by_head(head),
    }
}

/// Decides by the head alone: the command itself wrote whatever was to be written, and neither its exit
/// status nor what it printed counts (K29).
fn complete_by_head(head: HeadIs) -> Completion {
    match head {
        HeadIs::Lease(_) => Completion::LeaveLease,
        HeadIs::OwnEvent(id) => Completion::AlreadyWritten(id),
        HeadIs::SlotHead | HeadIs::Other => Completion::Fenced,
    }
}

fn complete_declared(exit: &Exit, declared: Declared, head: HeadIs) -> Completion {
    let success = matches!(exit, Exit::Code(0));
    match (head, success, declared) {
        (HeadIs::Other, _, _) => Completion::Fenced,
        (HeadIs::OwnEvent(id), _, _) => Completion::AlreadyWritten(id),
        (HeadIs::SlotHead, true, Declared::State(next)) => Completion::Outcome(next),
        (HeadIs::SlotHead, _, _) => Completion::Fenced,
        (HeadIs::Lease(_), true, Declared::State(next)) => Completion::Outcome(next),
        (HeadIs::Lease(_), true, Declared::Nothing) => Completion::KeepLease,
        (HeadIs::Lease(_), true, Declared::BadResult(why)) => Completion::Stalled(Stall::BadResult(why)),
        (HeadIs::Lease(_), true, Declared::BadLine(why)) => Completion::Stalled(Stall::BadLine(why)),
        (HeadIs::Lease(_), false, _) => Completion::Stalled(Stall::Exit(exit.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exits() -> Vec<Exit> {
        vec![
            Exit::Code(0),
            Exit::Code(1),
            Exit::Code(255),
            Exit::Signal { signal: 9, core_dumped: false },
            Exit::TimedOut(Duration::from_secs(1)),
            Exit::Interrupted,
            Exit::Stopped,
            Exit::NotStarted("x".into()),
            Exit::Unsupervised,
            Exit::SupervisorStopped,
            Exit::Redirected("x".into()),
        ]
    }

    fn id() -> ObjectId {
        ObjectId::from_bytes(&[1; 20]).unwrap()
    }

    fn declared() -> Vec<Declared> {
        let valid = Declaration::parse(br#"{"state":"review"}"#).unwrap();
        let none = [Declared::BadResult(Invalid::NoState), Declared::BadLine(Invalid::Working)];
        [Declared::Nothing, Declared::State(valid)].into_iter().chain(none).collect()
    }

    /// K20-K24.
    #[test]
    fn every_cell_of_the_table() {
        for exit in exits() {
            for declared in declared() {
                for head in [HeadIs::Lease(id()), HeadIs::OwnEvent(id()), HeadIs::SlotHead, HeadIs::Other] {
                    let ok = exit == Exit::Code(0);
                    let done = complete(Dialect::Dwp, &exit, declared.clone(), head);
                    let valid = matches!(declared, Declared::State(_));
                    let right = match head {
                        HeadIs::Other => done == Completion::Fenced,
                        HeadIs::OwnEvent(own) => done == Completion::AlreadyWritten(own),
                        HeadIs::SlotHead if ok && valid => matches!(done, Completion::Outcome(_)),
                        HeadIs::SlotHead => done == Completion::Fenced,
                        HeadIs::Lease(_) if !ok => done == Completion::Stalled(Stall::Exit(exit.clone())),
                        HeadIs::Lease(_) if valid => matches!(done, Completion::Outcome(_)),
                        HeadIs::Lease(_) if declared == Declared::Nothing => done == Completion::KeepLease,
                        HeadIs::Lease(_) => {
                            matches!(done, Completion::Stalled(Stall::BadResult(_) | Stall::BadLine(_)))
                        }
                    };
                    assert!(right, "{exit:?} {declared:?} {head:?} -> {done:?}");
                }
            }
        }
    }

    /// K29: neither the exit status nor a declaration counts, and nothing is ever written.
    #[test]
    fn in_the_aynig_dialect_the_head_alone_is_judged() {
        for exit in exits() {
            for declared in declared() {
                for (head, right) in [
                    (HeadIs::Lease(id()), Completion::LeaveLease),
                    (HeadIs::OwnEvent(id()), Completion::AlreadyWritten(id())),
                    (HeadIs::SlotHead, Completion::Fenced),
                    (HeadIs::Other, Completion::Fenced),
                ] {
                    assert_eq!(complete(Dialect::Aynig, &exit, declared.clone(), head), right, "{exit:?}");
                }
            }
        }
    }

    #[test]
    fn a_failed_command_never_advances_the_branch_by_declaration() {
        for exit in exits().into_iter().skip(1) {
            for declared in declared() {
                assert!(!matches!(
                    complete(Dialect::Dwp, &exit, declared, HeadIs::Lease(id())),
                    Completion::Outcome(_)
                ));
            }
        }
    }

    /// K23: the subject of a `stalled` commit and the report name in these words what ended a run.
    #[test]
    fn what_ended_a_run_is_said_in_one_line() {
        let ran = Duration::from_millis(1_250);
        for (exit, said) in [
            (Exit::Code(3), "exit 3"),
            (Exit::Signal { signal: 9, core_dumped: false }, "killed by signal 9"),
            (Exit::Signal { signal: 6, core_dumped: true }, "killed by signal 6 (core dumped)"),
            (Exit::TimedOut(ran * 2), "timed out after 2.5s"),
            (Exit::Interrupted, "interrupted"),
            (Exit::Stopped, "stopped: the lease could not be kept"),
            (Exit::NotStarted("no shell".into()), "could not be started: no shell"),
            (Exit::Unsupervised, "its supervisor was killed"),
            (Exit::SupervisorStopped, "its supervisor was stopped"),
        ] {
            assert_eq!(exit.to_string(), said);
            assert_eq!(Stall::Exit(exit).to_string(), said);
        }
        for (stall, said) in [
            (Stall::BadResult(Invalid::NoState), "the result file is no declaration: 'state' is missing"),
            (Stall::BadLine(Invalid::NoState), "its SET_STATE line is no declaration: 'state' is missing"),
            (Stall::ForeignHead, "the worktree's HEAD does not descend from the lease"),
            (Stall::Unmerged, "the worktree's index has unmerged paths"),
            (Stall::Slot("full".into()), "worktree: full"),
            (Stall::Checkout(Obstacle::Changes("a\nb".into())), "checkout: local changes are in the way"),
            (Stall::Declined("no".into()), "the remote declined the outcome: no"),
            (Stall::Unrenderable("no".into()), "the outcome cannot be written: no"),
        ] {
            assert_eq!(stall.to_string(), said);
        }
    }

    /// K23: a subject is a few words, whatever Git said and of which path.
    #[test]
    fn what_went_wrong_with_a_slot_is_short_in_a_subject() {
        for (why, said) in [
            ("disk full\nhint: x", "worktree: disk full"),
            ("git add failed: error: external filter 'x' failed", "worktree: git add failed"),
            ("cannot read '/a/b-0123': gone", "worktree: its files could not be read or written"),
        ] {
            assert_eq!(Stall::Slot(why.into()).short(), said);
        }
    }

    /// K24, K26: only a command that succeeded has an outcome to keep.
    #[test]
    fn a_fenced_run_that_had_succeeded_leaves_its_outcome_and_any_other_its_work() {
        for exit in exits() {
            for declared in declared() {
                let kept = kept_of_fenced(&exit, &declared);
                match &declared {
                    Declared::State(next) if exit == Exit::Code(0) => assert_eq!(kept, Kept::Outcome(next)),
                    Declared::State(_)
                    | Declared::Nothing
                    | Declared::BadResult(_)
                    | Declared::BadLine(_) => {
                        assert_eq!(kept, Kept::Work, "{exit:?}");
                    }
                }
            }
        }
    }
}

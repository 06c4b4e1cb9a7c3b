//! How refs move: one after another under their locks, or on a server by one push.
//!
//! Which of several moves first is the shipped [`Turn`]'s; what a ref says that is read again, the shipped `reread`'s.
//! Tries K42, K47a, K11.

use super::commits;
use super::world::{At, Commit, Faults, For, Move, NONE, Process, Ref, Rule, State, World, branch_of};
use aynig::protocol::heard::heard_of;
use aynig::protocol::swap::{Reread, Turn, reread};
use std::convert::Infallible;

impl World {
    /// Has a process make these moves, the first of which its verdict is about; a branch is made ready for it before.
    pub(super) fn plan(&self, process: &mut Process, meant: For, moves: Vec<Move>) {
        let of_branch = moves.iter().any(|moved| matches!(moved.of, Ref::Head(_)));
        (process.meant, process.moves) = (meant, moves);
        process.at = if of_branch { At::Before } else { At::Moving(0) };
    }

    /// What the head brought and the process that delivered it had no time to take off is taken off first. A remote
    /// moves all of a delivery or nothing.
    pub(super) fn before(&self, s: &mut State, p: usize) {
        let from = s.processes[p].moves[0].from;
        let event = commits::read(from).event.as_ref().filter(|event| !event.is_working());
        let mut over = Vec::new();
        if let Some(event) = event.filter(|_| !self.remote && self.keeps(Rule::TakenOffBefore)) {
            let heard = heard_of(&event.message, event.dialect);
            over = (0..s.inbox.len() as u8).filter(|slot| s.get(Ref::Inbox(*slot)) != NONE).collect();
            over.retain(|slot| branch_of(*slot) == self.branch(p));
            over.retain(|slot| heard.iter().any(|heard| heard.id == super::world::place(*slot).id));
        }
        s.processes[p].first = s.hearing(&over);
        s.processes[p].at = if over.is_empty() { At::Moving(0) } else { At::First(0) };
    }

    /// One move of several, the first of them once all are judged under their locks. Returns what is known then.
    pub(super) fn step_of_moves(&self, s: &mut State, p: usize, n: u8, first: bool) -> Option<Option<bool>> {
        let process = &s.processes[p];
        let mut moves = if first { process.first.clone() } else { process.moves.clone() };
        if n == 0 {
            let locked = |moved: &Move| s.processes.iter().any(|other| other.locks(moved.of));
            if moves.iter().any(locked) {
                return None;
            }
            if !self.holds_as_expected(s, &moves) {
                return Some(Some(false));
            }
        }
        if self.remote {
            moves.iter().for_each(|moved| s.set(*moved));
            return Some(Some(true));
        }
        moves.sort_by_key(|moved| Turn::of(&moved.of.name(), moved.to != NONE));
        if !self.keeps(Rule::BranchFirst) {
            moves.reverse();
        }
        s.set(moves[usize::from(n)]);
        let left = usize::from(n) + 1 < moves.len();
        s.processes[p].at = if first { At::First(n + 1) } else { At::Moving(n + 1) };
        Some((!left).then_some(true))
    }

    /// True where every ref holds what it should. A process that sends without asking writes over what is there.
    pub(super) fn holds_as_expected(&self, s: &State, moves: &[Move]) -> bool {
        let forced = |moved: &Move| {
            let made = moved.from == NONE && matches!(moved.of, Ref::Inbox(_));
            made && !self.keeps(Rule::OnlyWhereNoneIs)
        };
        moves.iter().all(|moved| s.get(moved.of) == moved.from || forced(moved))
    }

    /// The answer to a push is lost; the push is made, or comes later.
    pub(super) fn lose(&self, s: &mut State, p: usize, later: bool) -> Option<()> {
        let moves = s.processes[p].moves.clone();
        (self.remote && s.processes[p].at == At::Moving(0)).then_some(())?;
        s.left.lost = s.left.lost.checked_sub(1)?;
        match later {
            true => s.ghost = moves,
            false if self.holds_as_expected(s, &moves) => moves.iter().for_each(|moved| s.set(*moved)),
            false => {}
        }
        s.processes[p].at = At::Reread;
        Some(())
    }

    /// The server is killed once it has made `n` of the moves: what is put first, in the order of the names.
    pub(super) fn server_dies(&self, s: &mut State, p: usize, n: u8) -> Option<()> {
        let mut moves = s.processes[p].moves.clone();
        let may = self.remote && s.processes[p].at == At::Moving(0) && moves.len() > 1;
        (may && usize::from(n) < moves.len() && self.holds_as_expected(s, &moves)).then_some(())?;
        s.left.server = s.left.server.checked_sub(1)?;
        moves.sort_by_key(|moved| (moved.to == NONE, moved.of.name()));
        moves.iter().take(n.into()).for_each(|moved| s.set(*moved));
        s.processes[p].at = At::Reread;
        Some(())
    }

    /// A push that is waited for no longer comes.
    pub(super) fn late(&self, s: &mut State) -> Option<()> {
        let moves = std::mem::take(&mut s.ghost);
        (!moves.is_empty()).then_some(())?;
        if self.holds_as_expected(s, &moves) {
            moves.iter().for_each(|moved| s.set(*moved));
        }
        Some(())
    }

    /// What the ref says that is read again: `None` where nothing moved, and the push is made once more.
    pub(super) fn read_again(&self, s: &mut State, p: usize) -> Option<bool> {
        let Move { of, from, to } = s.processes[p].moves[0];
        let tip = s.get(of);
        let id = |commit: Commit| (commit != NONE).then(|| commits::id(commit));
        let beyond =
            |_, _| Ok::<_, Infallible>(matches!(of, Ref::Head(_)) && commits::line(tip).any(|c| c == to));
        let Ok(judged) = reread(id(from), id(to), id(tip), beyond);
        match judged {
            Reread::Won => Some(true),
            Reread::Lost => Some(false),
            Reread::Untouched => {
                s.processes[p].at = At::Moving(0);
                None
            }
        }
    }

    /// A process is killed; its locks are taken away by the process that needs them next.
    pub(super) fn kill(&self, s: &mut State, p: usize) -> Option<()> {
        let process = &mut s.processes[p];
        (!matches!(process.at, At::Off | At::Done)).then_some(())?;
        let Faults { kill, .. } = &mut s.left;
        *kill = kill.checked_sub(1)?;
        if self.remote && process.at == At::Moving(0) && self.faults.lost > 0 {
            s.ghost = process.moves.clone();
        }
        process.stop(At::Off);
        process.tries += 1;
        s.killed = true;
        Some(())
    }
}

//! Pushes: the server that takes them or does not, the ref that is read again, and what a verdict means.
//!
//! A push takes as long as it likes, and may arrive when no runner waits for it any more. What the ref says that is
//! read again, whether a swap is tried again, and what a verdict means to a claim, a renewal or an end, is asked
//! of the shipped functions. Tries K11, K31.

use crate::texts::{self, LEASE_SECONDS};
use crate::world::{Call, Ended, NONE, Phase, Rule, State, World, elapsed};
use aynig::protocol::holding::LeaseDeadlines;
use aynig::protocol::swap::{
    AfterClaim, AfterEnd, AfterRenewal, Patience, Reread, Swap, after_claim, after_end, after_renewal,
    reread, try_again,
};
use std::convert::Infallible;
use std::time::Duration;

impl World {
    /// The server judges a push: true where it took it. What stands on the branch since is judged too.
    pub(super) fn server(&self, s: &mut State, commit: u8) -> bool {
        let expected = s.parent(commit);
        let strict = self.keeps(Rule::StrictSwap);
        let takes = match s.head {
            NONE => !strict || !self.keeps(Rule::NeverCreate),
            // A plain push may be any fast-forward.
            head => {
                let forced = !self.keeps(Rule::NeverForce);
                head == expected || !strict && s.contains(expected, head) || forced
            }
        };
        if takes {
            self.judge_move(s, commit);
            s.head = commit;
        }
        takes
    }

    pub(super) fn deliver(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        if !runner.acts() || runner.call != Call::Sent {
            return None;
        }
        if self.server(s, runner.sent) {
            return self.verdict(s, r, Swap::Won);
        }
        // Any answer but success: the ref is read again.
        self.judge_again(s, r)
    }

    /// What the ref says that is read again.
    pub(super) fn judge_again(&self, s: &mut State, r: usize) -> Option<()> {
        let sent = s.runners[r].sent;
        let rebases = !self.keeps(Rule::NeverRebase) && s.runners[r].phase == Phase::Finishing;
        if !self.keeps(Rule::Reread) || rebases {
            return self.failed(s, r);
        }
        let id = |commit: u8| (commit != NONE).then(|| texts::id(commit));
        let head = s.head;
        let beyond = |_, _| Ok::<_, Infallible>(s.contains(head, sent));
        let Ok(judged) = reread(id(s.parent(sent)), id(sent), id(head), beyond);
        match judged {
            Reread::Won => self.verdict(s, r, Swap::Won),
            Reread::Lost => self.verdict(s, r, Swap::Lost { tip: id(head) }),
            Reread::Untouched => self.without_verdict(s, r),
        }
    }

    /// A failure that is taken for a lost race.
    pub(super) fn failed(&self, s: &mut State, r: usize) -> Option<()> {
        let tip = (s.head != NONE).then(|| texts::id(s.head));
        self.verdict(s, r, Swap::Lost { tip })
    }

    pub(super) fn reread(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        if !runner.acts() || runner.call != Call::Unanswered {
            return None;
        }
        self.judge_again(s, r)
    }

    pub(super) fn reread_fails(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        if !runner.acts() || runner.call != Call::Unanswered || !self.keeps(Rule::Reread) {
            return None;
        }
        s.left.lost = s.left.lost.checked_sub(1)?;
        self.without_verdict(s, r)
    }

    /// Tried again with the same expectation, or not known.
    pub(super) fn without_verdict(&self, s: &mut State, r: usize) -> Option<()> {
        let runner = s.runners[r];
        let moments = self.moments(&runner);
        let until = match runner.phase {
            Phase::Claiming => LeaseDeadlines::claim_until(elapsed(runner.born), LEASE_SECONDS),
            Phase::Recovering => elapsed(runner.sent_at) + Duration::from_secs(10),
            Phase::Claimed | Phase::Running => moments.give_up,
            Phase::Idle | Phase::Dying | Phase::Finishing => moments.ends,
        };
        if try_again(Patience::Until(until), 0, elapsed(s.time)).is_some() {
            s.runners[r].call = Call::Sent;
            return Some(());
        }
        self.verdict(s, r, Swap::Unknown { cause: String::new() })
    }

    /// What a verdict means to the run.
    pub(super) fn verdict(&self, s: &mut State, r: usize, verdict: Swap) -> Option<()> {
        let won = verdict == Swap::Won;
        let runner = &mut s.runners[r];
        let (phase, sent) = (runner.phase, runner.sent);
        (runner.call, runner.sent) = (Call::None, NONE);
        match phase {
            Phase::Claiming => match after_claim(verdict) {
                AfterClaim::Held => runner.phase = Phase::Claimed,
                AfterClaim::Gone | AfterClaim::LostRace => {
                    let run = runner.run;
                    runner.forget();
                    if s.head != NONE && s.contains(s.head, sent) {
                        s.runs[usize::from(run)].mistaken = true;
                    }
                }
                AfterClaim::Unknown(_) => runner.forget(),
            },
            Phase::Recovering => match after_end(verdict) {
                AfterEnd::Written | AfterEnd::JudgeAgain | AfterEnd::Unknown(_) => runner.forget(),
            },
            Phase::Claimed => match after_renewal(verdict) {
                AfterRenewal::Held => {
                    (runner.lease, runner.born) = (sent, runner.sent_at);
                    return self.run_command(s, r);
                }
                AfterRenewal::Look => (runner.phase, runner.ended) = (Phase::Finishing, Ended::Stopped),
                AfterRenewal::Unknown(_) => {
                    (runner.phase, runner.ended) = (Phase::Finishing, Ended::NotStarted)
                }
            },
            Phase::Running => match after_renewal(verdict) {
                AfterRenewal::Held => (runner.lease, runner.born) = (sent, runner.sent_at),
                AfterRenewal::Look => return self.look(s, r),
                AfterRenewal::Unknown(_) => {}
            },
            // A kept lease lives on without its runner; else the run has ended.
            Phase::Finishing => match after_end(verdict) {
                AfterEnd::Written => runner.forget(),
                AfterEnd::JudgeAgain if !self.keeps(Rule::NeverRebase) && !won => {
                    return self.rebase(s, r, sent);
                }
                AfterEnd::JudgeAgain => {}
                // It was kept before it was pushed.
                AfterEnd::Unknown(_) => self.drop_run(s, r),
            },
            Phase::Idle | Phase::Dying => return None,
        }
        Some(())
    }

    /// The same outcome on whatever is the head now.
    pub(super) fn rebase(&self, s: &mut State, r: usize, sent: u8) -> Option<()> {
        let text = s.says(sent).text;
        if s.head == NONE {
            s.runners[r].forget();
            return Some(());
        }
        let commit = s.write(s.head, text, self.wall(r, s.time))?;
        self.send(s, r, Phase::Finishing, commit)
    }

    /// A push that no runner waits for.
    pub(super) fn late(&self, s: &mut State, r: usize) -> Option<()> {
        let ghost = std::mem::replace(&mut s.runners[r].ghost, NONE);
        (ghost != NONE).then(|| self.server(s, ghost))?;
        Some(())
    }
}

pub(super) fn time_out(s: &mut State, r: usize) -> Option<()> {
    let runner = &mut s.runners[r];
    if !runner.acts() || runner.call != Call::Sent {
        return None;
    }
    s.left.lost = s.left.lost.checked_sub(1)?;
    runner.call = Call::Unanswered;
    runner.ghost = runner.sent;
    Some(())
}

//! What a turn follows: what came for the node since it last answered, its last turns, and the session that goes on.
//!
//! Read from the branch alone, from what the run answers backwards: an outcome of a turn that did not just wait for its
//! provider has answered what came before it; whatever stalled, was canceled or waits has not, so nothing that was said to a
//! node is lost with a turn. Implements N4 (the input), N9 (the session).

use super::{Ground, TurnError};
use crate::contract::projection::Ended;
use crate::flow::outcome::Outcome;
use crate::flow::turns::{self, Record};
use crate::protocol::event::Event;
use crate::protocol::flow::TURN;
use crate::protocol::heard::heard_of;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::Kind;
use crate::protocol::message::Message;
use crate::runner::Tip;
use crate::runner::talk::TalkError;
use serde::Deserialize;
use std::collections::HashSet;

/// Most commits that are looked at.
const COMMITS_MAX: usize = 2000;
/// Most turns that a new session is told of.
pub const TURNS_MAX: usize = 4;
/// Most runs whose record is looked for.
const RECORDS_MAX: usize = 8;

/// A message that a trigger brought, as the kernel tells commands.
#[derive(Debug, Clone, Deserialize)]
pub struct Brought {
    /// Its id.
    pub id: String,
    /// What it is.
    pub kind: Option<String>,
    /// Who sent it.
    pub from: Option<String>,
    /// The work that came with it.
    pub attached: Option<String>,
    /// What became of that.
    pub merged: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// Its trailers.
    #[serde(default)]
    pub trailers: Vec<Pair>,
    /// Why nothing of it is known.
    pub unreadable: Option<String>,
}

impl Brought {
    /// True for what asked a turn to end, and says nothing to the next one.
    fn is_bare_interrupt(&self) -> bool {
        let says = self.text.as_deref().is_some_and(|text| !text.trim().is_empty());
        self.kind.as_deref() == Some(Kind::INTERRUPT)
            && !says
            && self.attached.is_none()
            && self.unreadable.is_none()
    }
}

/// A trailer.
#[derive(Debug, Clone, Deserialize)]
pub struct Pair {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// What a turn follows.
#[derive(Debug, Default)]
pub struct Before {
    /// What came and was not answered, oldest first, with the commit that brought it: what came with it before is merged there.
    pub brought: Vec<(Brought, Option<ObjectId>)>,
    /// The last turns, newest first.
    pub turns: Vec<Outcome>,
    /// What the last run of a turn left.
    pub record: Option<Record>,
    /// True where all that came asked a turn to end that is over, and says nothing more.
    pub is_nothing: bool,
}

impl Ground<'_> {
    /// Reads what this turn follows.
    pub(super) fn before(&self) -> Result<Before, TurnError> {
        let mut before = Before::default();
        let (mut triggers, mut runs): (Vec<Tip>, Vec<String>) = (Vec::new(), Vec::new());
        let (mut answered, mut next) = (false, Some(self.trigger));
        let mut left = COMMITS_MAX;
        while let Some(id) = next.filter(|_| left > 0 && before.turns.len() < TURNS_MAX) {
            left -= 1;
            let commit = self.runner.store.read_commit(id).map_err(TalkError::from)?;
            next = commit.parents.first().copied();
            let Some(event) = Event::of(Message::parse(&commit.message)) else { continue };
            let of_turn = event.origin_state().is_some_and(|state| state.as_str() == TURN);
            if let Some(run) = event.run_id().filter(|run| of_turn && !runs.iter().any(|known| known == run))
            {
                runs.push(run.to_owned());
            }
            if let Some(outcome) = Outcome::read(&commit, &event) {
                answered |= !waits(&event);
                if !waits(&event) {
                    before.turns.push(outcome);
                }
            } else if !answered && !event.is_working() && !heard_of(&event.message, event.dialect).is_empty()
            {
                triggers.push(Tip { commit, event: Some(event) });
            }
        }
        before.record = runs.iter().take(RECORDS_MAX).find_map(|run| turns::record(self.runner, run));
        let mut met = HashSet::new();
        for trigger in triggers.iter().rev() {
            for brought in self.told(trigger)? {
                if brought.is_bare_interrupt() {
                    before.is_nothing = true;
                } else if met.insert(brought.id.clone()) {
                    before.brought.push((brought, Some(trigger.commit.id)));
                }
            }
        }
        before.is_nothing &= before.brought.is_empty();
        Ok(before)
    }

    fn told(&self, trigger: &Tip) -> Result<Vec<Brought>, TurnError> {
        let lines = self.runner.told_messages(trigger).map_err(TalkError::from)?.unwrap_or_default();
        let lines = lines.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

/// True for a turn's outcome that asks for the turn once more, as its provider was not to be had.
fn waits(event: &Event) -> bool {
    event.state_name().is_some_and(|state| state.as_str() == TURN)
}

/// What a session that does not know it is told of what went before, oldest first.
pub fn catch_up(before: &Before) -> Option<String> {
    if before.turns.is_empty() {
        return None;
    }
    let mut text = String::new();
    for turn in before.turns.iter().rev() {
        let how = match turn.ended {
            Ended::Completed => "ended well",
            Ended::Interrupted => "was interrupted",
            Ended::Failed => "failed",
        };
        text.push_str(&format!(
            "Your turn of {} {how}. You said:\n\n{}\n\n{}\n\n",
            turn.at, turn.summary, turn.text
        ));
    }
    Some(text.trim_end().to_owned())
}

//! What a turn follows: what came for the node since it last answered, its last turns, and the session that
//! goes on.
//!
//! All but the record of the session is read from the branch alone, backwards from the trigger. An outcome
//! has answered what came before it, unless its turn only waited for the provider. A turn that stalled, was
//! canceled or waits has answered nothing, so nothing that was said to a node is lost with a turn. Implements
//! N4 (the input), N9 (the session).

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

/// Most commits that are read.
const COMMITS_MAX: usize = 2000;
/// Most turns that a new session is told of.
pub const TURNS_MAX: usize = 4;
/// Most runs whose record is looked for.
const RECORDS_MAX: usize = 8;

/// A message that a trigger brought, as the kernel reports it to commands.
#[derive(Debug, Clone, Deserialize)]
pub struct Brought {
    pub id: String,
    /// The kind of the message.
    pub kind: Option<String>,
    /// The sender.
    pub from: Option<String>,
    /// The commit of the work that came with the message.
    pub attached: Option<String>,
    /// What became of that work: `merged`, `nothing` or `conflict`.
    pub merged: Option<String>,
    pub text: Option<String>,
    #[serde(default)]
    pub trailers: Vec<Pair>,
    /// Why the message can't be read.
    pub unreadable: Option<String>,
}

impl Brought {
    /// True for an interrupt that only asked a turn to end, and says nothing to the next turn.
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
    pub key: String,
    pub value: String,
}

/// What a turn follows.
#[derive(Debug, Default)]
pub struct Before {
    /// What came and was not answered, oldest first, with the commit that brought it. The work of messages
    /// that the same commit brought before is merged in it.
    pub brought: Vec<(Brought, Option<ObjectId>)>,
    /// The last turns, newest first.
    pub turns: Vec<Outcome>,
    /// The record of the newest run that left one.
    pub record: Option<Record>,
    /// True where nothing came but interrupts, without a text, of a turn that is over.
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

/// True for a turn's outcome that asks for the turn once more because its provider was not available.
fn waits(event: &Event) -> bool {
    event.state_name().is_some_and(|state| state.as_str() == TURN)
}

/// Returns what a session that does not know the node's last turns is told of them, oldest first; `None`
/// where there were none.
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

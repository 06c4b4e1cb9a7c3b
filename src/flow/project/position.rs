//! How far a projection has come: what of each source was taken, so that one more event costs what that event costs.
//!
//! It is kept in `state.json`, beside the run's state and what the projection carries. It is no truth of its own: without
//! it everything is projected anew, and a log takes only what is not in it. A position that does not fit what Git
//! holds now (a branch was rewound, the log is shorter) counts as none. Implements N13 (the position).

use crate::contract::id::{ApprovalId, NodeId, TurnId};
use crate::contract::projection::{Carried, Log, Projection};
use crate::contract::run::Run;
use crate::contract::time::Time;
use crate::protocol::id::ObjectId;
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

/// How far each source was taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Position {
    /// How much of the log this covers, in bytes.
    pub log: u64,
    /// When the last event in it was.
    pub last: Option<Time>,
    /// The flow's commit.
    pub flow: Option<String>,
    /// Each node's branch.
    pub nodes: IndexMap<NodeId, Branch>,
    /// Messages that were seen waiting.
    pub waiting: IndexSet<String>,
    /// Questions that were told, with whose each is.
    pub asked: IndexMap<ApprovalId, NodeId>,
}

/// How far a node's branch was taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Branch {
    /// The commit.
    pub tip: Option<String>,
    /// The turn that was under way.
    pub turn: Option<Turn>,
}

/// How far a turn's lines were taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// The turn.
    pub id: TurnId,
    /// What it answers.
    pub trigger: String,
    /// When its last line was, or its lease.
    pub at: Time,
    /// Lines that are kept, so far.
    pub finals: u32,
    /// Lines since then that only stream.
    pub deltas: u32,
    /// How much of the file of its lines was read, in bytes.
    pub read: u64,
    /// Whether they had the final text.
    pub told: bool,
    /// Why it failed, as they say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Turn {
    /// The turn that begins with this lease.
    pub fn new(id: TurnId, trigger: ObjectId, at: Time) -> Self {
        Self { id, trigger: trigger.to_string(), at, finals: 0, deltas: 0, read: 0, told: false, why: None }
    }

    /// The number of the next line: the same whether the lines that only stream are there or not, so that a turn's
    /// lines are the same events where it ran and where only what is kept of it came.
    pub fn number(&mut self, streams: bool) -> u64 {
        if streams {
            self.deltas = self.deltas.saturating_add(1);
        } else {
            (self.finals, self.deltas) = (self.finals.saturating_add(1), 0);
        }
        u64::from(self.finals) << 32 | u64::from(self.deltas)
    }
}

/// What of `state.json` is not the run's state.
#[derive(Serialize, Deserialize)]
struct Beside<C> {
    position: Position,
    carried: C,
}

/// The content of `state.json`: the run's state, and beside it how far that is, and what the projection carries.
#[derive(Serialize)]
struct Kept<'a> {
    #[serde(flatten)]
    run: &'a Run,
    #[serde(flatten)]
    beside: Beside<&'a Carried>,
}

/// The content of `state.json`; none where there is no state yet.
pub fn write(projection: &Projection, position: &Position) -> Option<Vec<u8>> {
    let run = projection.run()?;
    let beside = Beside { position: position.clone(), carried: projection.carried() };
    let mut text = serde_json::to_vec(&Kept { run, beside }).ok()?;
    text.push(b'\n');
    Some(text)
}

/// Reads it; none where it is none, or another version's.
pub fn read(raw: &[u8]) -> Option<(Projection, Position)> {
    let run: Run = serde_json::from_slice(raw).ok()?;
    let beside: Beside<Carried> = serde_json::from_slice(raw).ok()?;
    Some((Projection::resumed(run, beside.carried), beside.position))
}

/// The log that a position covers.
pub fn log(position: &Position) -> Log {
    position.last.map_or_else(Log::default, |last| Log::resumed(position.log, last))
}

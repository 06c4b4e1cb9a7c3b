//! How far a projection has come: what was taken of each source, so that one more event costs only what that
//! event costs.
//!
//! The position is kept in `state.json`, beside the run's state and what the projection carries. It is no
//! truth of its own: without it everything is projected anew, and a log takes only what is not in it. A
//! position that does not fit what Git holds now (a branch was rewound, the log is shorter) counts as none.
//! Implements N13 (the position).

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
    /// How much of the log the position covers, in bytes.
    pub log: u64,
    /// The time of the last event in that part of the log.
    pub last: Option<Time>,
    /// The newest commit of the flow that was taken.
    pub flow: Option<String>,
    /// How far the branch of each node was taken.
    pub nodes: IndexMap<NodeId, Branch>,
    /// The ids of the messages that were seen waiting.
    pub waiting: IndexSet<String>,
    /// The questions that were reported, each with the node that asked it.
    pub asked: IndexMap<ApprovalId, NodeId>,
}

/// How far a node's branch was taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Branch {
    /// The newest commit that was taken.
    pub tip: Option<String>,
    /// The turn that was under way then.
    pub turn: Option<Turn>,
}

/// How far a turn's lines were taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub id: TurnId,
    /// The trigger: the commit that the turn answers.
    pub trigger: String,
    /// The time of the turn's last line; before the first line, that of its lease.
    pub at: Time,
    /// How many lines were read that are kept.
    pub finals: u32,
    /// How many lines were read since then that only stream.
    pub deltas: u32,
    /// How much of the file of its lines was read, in bytes.
    pub read: u64,
    /// Whether the lines contained the final text.
    pub told: bool,
    /// Why the turn failed, as its lines say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Turn {
    /// Returns the turn that begins with a lease; none of its lines was read yet.
    pub fn new(id: TurnId, trigger: ObjectId, at: Time) -> Self {
        Self { id, trigger: trigger.to_string(), at, finals: 0, deltas: 0, read: 0, told: false, why: None }
    }

    /// Returns the number of the next line. It is the same whether the lines that only stream are there or
    /// not, so that a turn's lines are the same events where the turn ran and where only the lines that are
    /// kept arrived.
    pub fn number(&mut self, streams: bool) -> u64 {
        if streams {
            self.deltas = self.deltas.saturating_add(1);
        } else {
            (self.finals, self.deltas) = (self.finals.saturating_add(1), 0);
        }
        u64::from(self.finals) << 32 | u64::from(self.deltas)
    }
}

/// The part of `state.json` that is not the run's state.
#[derive(Serialize, Deserialize)]
struct Beside<C> {
    position: Position,
    carried: C,
}

/// The content of `state.json`: the run's state, how far that was projected, and what the projection carries.
#[derive(Serialize)]
struct Kept<'a> {
    #[serde(flatten)]
    run: &'a Run,
    #[serde(flatten)]
    beside: Beside<&'a Carried>,
}

/// Returns the content of `state.json`; `None` where there is no state yet.
pub fn write(projection: &Projection, position: &Position) -> Option<Vec<u8>> {
    let run = projection.run()?;
    let beside = Beside { position: position.clone(), carried: projection.carried() };
    let mut text = serde_json::to_vec(&Kept { run, beside }).ok()?;
    text.push(b'\n');
    Some(text)
}

/// Reads the content of `state.json`; `None` where it can't be read, or is that of another version.
pub fn read(raw: &[u8]) -> Option<(Projection, Position)> {
    let run: Run = serde_json::from_slice(raw).ok()?;
    let beside: Beside<Carried> = serde_json::from_slice(raw).ok()?;
    Some((Projection::resumed(run, beside.carried), beside.position))
}

/// Returns the log as far as a position covers it.
pub fn log(position: &Position) -> Log {
    position.last.map_or_else(Log::default, |last| Log::resumed(position.log, last))
}

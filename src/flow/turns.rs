//! What a turn leaves, however it ends: a tree under `refs/aynig/turns/<run id>`.
//!
//! `prompt.full.txt` is what was sent, and `prompt.blocks.json` has the blocks of the prompt; further prompts
//! of the turn are `prompt.2.full.txt` and so on. `events.jsonl` has the event lines that are not streamed
//! pieces, `transcript.txt` and `stderr.txt` what the program printed, `contextpack.md` what a new session
//! was told of earlier turns, and `turn.json` is a [`Record`]. The ref is put where the branches are, so that
//! any clone can show the turn and go on with its session. Where signatures are required, the commit is
//! signed for its ref, and without a signature it is not read, because agents are told what it says.
//! Implements N4 (what is left), N9 (the session), K35 (signing).

use super::FlowError;
use super::store::Flows;
use crate::agents::spent::Spent;
use crate::contract::id::{NodeId, RunId, TurnId};
use crate::contract::words::Provider;
use crate::protocol::flow::TURNS;
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::runner::Runner;
use crate::store::files::{Files, Read, write_files};
use crate::store::{Commit, Expected, RefChange, RefName, StoreError};
use serde::{Deserialize, Serialize};

/// The name of the file with the [`Record`].
pub const RECORD: &str = "turn.json";
/// The name of the file with the event lines.
pub const EVENTS: &str = "events.jsonl";
/// The name of the file with what a new session was told of earlier turns.
pub const CONTEXT: &str = "contextpack.md";
/// How many refs are deleted in one transaction.
const TOGETHER: usize = 200;
/// Most bytes of a record.
const RECORD_MAX: u64 = 64 << 20;

/// What the node's next turn has to know of this turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The id of the flow.
    pub run_id: RunId,
    /// The node that had the turn.
    pub node_id: NodeId,
    /// The provider whose program answered.
    pub provider: Provider,
    /// How often the node had been reset: a session goes on only while that number stays.
    pub resets: u64,
    /// The name of the program's ending.
    pub ending: String,
    /// The session with which the next turn goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The folder in which the program said that it works, and under which it keeps the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The tokens that the session has used in all, where its program reports sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<Sum>,
    /// What its agent is to be told with the next prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
    /// How many turns in a row, up to this one, had to wait for the provider.
    #[serde(default)]
    pub waits: u32,
}

/// The tokens that a session has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sum {
    /// Tokens that were read.
    pub input: u64,
    /// Tokens that were written.
    pub output: u64,
    /// Tokens that were read from a cache.
    pub cached: u64,
}

impl From<Sum> for Spent {
    fn from(sum: Sum) -> Self {
        Self { input: sum.input, output: sum.output, cached: sum.cached, ..Self::default() }
    }
}

impl From<&Spent> for Sum {
    fn from(spent: &Spent) -> Self {
        Self { input: spent.input, output: spent.output, cached: spent.cached }
    }
}

/// Returns the ref of what a turn left; `None` where the id is no UUID.
pub fn ref_of(run_id: &str) -> Option<RefName> {
    let id = TurnId::parse(run_id).ok()?;
    Some(RefName::new([TURNS, id.to_string().as_bytes()].concat()))
}

/// Keeps what a turn left, in place of what an earlier process of the turn left, where the branches are.
///
/// # Errors
/// Where the commit can't be written, or the ref can't be read or moved; [`FlowError::Raced`] where another process
/// of the turn moves it.
pub fn keep(runner: &Runner<'_>, run_id: &str, files: &Files) -> Result<(), FlowError> {
    let Some(name) = ref_of(run_id) else { return Ok(()) };
    let store = &*runner.store;
    let tree = write_files(store, files, &Read::default())?;
    let message = Message::new(format!("aynig: what turn {run_id} left"), "", Vec::new());
    let commit = runner.write_said(&name, tree, Vec::new(), message)?;
    let expected = store.tip(&name)?.map_or(Expected::Missing, Expected::At);
    match Flows::new(runner).swap(RefChange { name, expected, new: Some(commit) }, &[])? {
        true => Ok(()),
        false => Err(FlowError::Raced(run_id.to_owned())),
    }
}

/// Returns the commit of what a turn left; `None` where it lacks a signature that is required.
pub fn vouched(runner: &Runner<'_>, name: &RefName, commit: ObjectId) -> Result<Option<Commit>, StoreError> {
    let read = runner.store.read_commit(commit)?;
    let ours = runner.is_vouched(name, commit, &Message::parse(&read.message))?;
    Ok(ours.then_some(read))
}

/// Returns the record in what a turn left; `None` where there is none that can be read.
fn record_in(runner: &Runner<'_>, tree: ObjectId) -> Option<Record> {
    let store = &*runner.store;
    let entry = store.read_tree(tree).ok()?.into_iter().find(|entry| entry.name == RECORD.as_bytes())?;
    serde_json::from_slice(&store.read_bounded(entry.id, RECORD_MAX).ok()??).ok()
}

/// Deletes what the turns of a flow, or of one of its nodes, left; returns of how many turns.
pub fn forget(runner: &Runner<'_>, flow: RunId, node: Option<NodeId>) -> Result<usize, StoreError> {
    let store = &*runner.store;
    let mut gone = Vec::new();
    for (name, commit) in store.scan(&String::from_utf8_lossy(TURNS))? {
        let is_it = |left: Record| left.run_id == flow && node.is_none_or(|node| node == left.node_id);
        let record = || record_in(runner, store.read_commit(commit).ok()?.tree);
        if name.is_own() && record().is_some_and(is_it) {
            gone.push(RefChange::delete(name, commit));
        }
    }
    let by = runner.signature();
    for some in gone.chunks(TOGETHER) {
        match store.try_swaps(some, &by, "") {
            // One of these refs was moved or deleted meanwhile; a second call finds what is left.
            Ok(()) | Err(StoreError::Moved { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(gone.len())
}

/// Returns the record of a turn; `None` where there is none that can be read, or it lacks a signature that is
/// required.
pub fn record(runner: &Runner<'_>, run_id: &str) -> Option<Record> {
    let name = ref_of(run_id)?;
    let commit = runner.store.obtain(&name).ok().flatten()?;
    record_in(runner, vouched(runner, &name, commit).ok().flatten()?.tree)
}

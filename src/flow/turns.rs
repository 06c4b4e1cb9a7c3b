//! What a turn leaves, however it ends: a tree under `refs/aynig/turns/<run id>`.
//!
//! `prompt.full.txt` (what was sent) and `prompt.blocks.json`, for each further prompt of the turn `prompt.2.full.txt` and so on;
//! `events.jsonl`, the lines that are no pieces; `transcript.txt` and `stderr.txt`, what the program printed; `contextpack.md`,
//! what a new session was told of what went before; `turn.json`, a [`Record`]. It is put where the branches are, so that any
//! clone can show a turn, and go on with its session. Where signatures are asked for it is signed for its ref, and what
//! has none is not read: it is told to agents. Implements N4 (what is left), N9 (the session), K35 (signing).

use crate::agents::spent::Spent;
use crate::contract::id::{NodeId, RunId, TurnId};
use crate::contract::words::Provider;
use crate::protocol::flow::TURNS;
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::runner::Runner;
use crate::runner::talk::TalkError;
use crate::store::files::{Files, Read, write_files};
use crate::store::{Commit, Expected, RefChange, RefName, StoreError, swap};
use serde::{Deserialize, Serialize};

/// The file of the record.
pub const RECORD: &str = "turn.json";
/// The file of the lines.
pub const EVENTS: &str = "events.jsonl";
/// The file of what a new session was told.
pub const CONTEXT: &str = "contextpack.md";
/// How many refs go at once.
const TOGETHER: usize = 200;
/// Most bytes of a record.
const RECORD_MAX: u64 = 64 << 20;

/// What the next turn of the node has to know of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The flow.
    pub run_id: RunId,
    /// The node.
    pub node_id: NodeId,
    /// Whose program had it.
    pub provider: Provider,
    /// How often the node had been reset.
    pub resets: u64,
    /// How it ended, by its name.
    pub ending: String,
    /// The session that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The folder that the program said it works in, by which it keeps the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What the session has used in all, where its program tells sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<Sum>,
    /// What its agent is to be told with the next prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
    /// How often in a row it waited for its provider.
    #[serde(default)]
    pub waits: u32,
}

/// Tokens of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sum {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from a cache.
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

/// The ref of a turn; none for an id that is no UUID.
pub fn ref_of(run_id: &str) -> Option<RefName> {
    let id = TurnId::parse(run_id).ok()?;
    Some(RefName::new([TURNS, id.to_string().as_bytes()].concat()))
}

/// Keeps what a turn left: in the place of what it left before, if it did. A remote that can't be reached has it later, from
/// who reaches it; that is said.
///
/// # Errors
/// Where it can't be written here.
pub fn keep(runner: &Runner<'_>, run_id: &str, files: &Files) -> Result<Option<StoreError>, TalkError> {
    let Some(name) = ref_of(run_id) else { return Ok(None) };
    let store = &*runner.store;
    let tree = write_files(store, files, &Read::default())?;
    let message = Message::new(format!("aynig: what turn {run_id} left"), "", Vec::new());
    let commit = runner.write_said(&name, tree, Vec::new(), message)?;
    let before = store.tip(&name)?.map_or(Expected::Missing, Expected::At);
    swap::compare_and_swap(store, &name, before, commit, &runner.signature(), "aynig: turn")?;
    Ok(store.publish(&name, commit).err())
}

/// The commit of what a turn left; none where it has no signature that is asked for.
pub fn vouched(runner: &Runner<'_>, name: &RefName, commit: ObjectId) -> Result<Option<Commit>, StoreError> {
    let read = runner.store.read_commit(commit)?;
    let ours = runner.is_vouched(name, commit, &Message::parse(&read.message))?;
    Ok(ours.then_some(read))
}

/// The record in what a turn left; none where it is none.
fn record_in(runner: &Runner<'_>, tree: ObjectId) -> Option<Record> {
    let store = &*runner.store;
    let entry = store.read_tree(tree).ok()?.into_iter().find(|entry| entry.name == RECORD.as_bytes())?;
    if store.blob_size(entry.id).ok()? > RECORD_MAX {
        return None;
    }
    serde_json::from_slice(&store.read_blob(entry.id).ok()?).ok()
}

/// Takes away what the turns of a flow left, or of one of its nodes; returns how many.
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
            // One that was moved or taken away meanwhile: a second call finds what is left.
            Ok(()) | Err(StoreError::Moved { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(gone.len())
}

/// The record of a turn; none where nothing is known of it, what is there is none, or it has no signature that is asked for.
pub fn record(runner: &Runner<'_>, run_id: &str) -> Option<Record> {
    let name = ref_of(run_id)?;
    let commit = runner.store.obtain(&name).ok().flatten()?;
    record_in(runner, vouched(runner, &name, commit).ok().flatten()?.tree)
}

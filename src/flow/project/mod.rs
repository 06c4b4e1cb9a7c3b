//! A flow as its events, which are gathered from refs, commits, messages, questions and the lines of turns,
//! projected, and kept.
//!
//! [`Project::update`] takes in what is new since the last update, whichever process made that: it appends
//! the events that are not in the log, and replaces the state. The rules of what a fact means are in
//! `contract/`; this module only reads facts, and decides nothing. A message or a line that can't be read is
//! skipped, and so is an earlier commit of the flow. If the flow's present commit or a node's commit can't be
//! read, that is an error, and nothing is appended. Implements N13.

mod artifacts;
mod branch;
pub mod folder;
mod lines;
mod position;
mod talk;

use crate::contract::flow::{BadFlow, Flow};
use crate::contract::id::{RunId, TurnId};
use crate::contract::projection::{Fact, Log, Projection, Step, ordered};
use crate::contract::run::Run;
use crate::contract::time::Time;
use crate::flow::senders::Senders;
use crate::flow::turns;
use crate::protocol::flow::TURNS;
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{ASKED, INBOX};
use crate::runner::nodes::BOUNDS;
use crate::runner::talk::TalkError;
use crate::runner::{Runner, RunnerError, logs};
use crate::store::beneath::{BeneathError, apart, found};
use crate::store::files::{NoFiles, read_files_with};
use crate::store::{RefName, StoreError, TreeEntry};
use folder::Folder;
use position::{Position, Turn};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// The name of the file with the event lines, in what a turn left.
const LINES: &[u8] = b"events.jsonl";
/// How long another process may project without adding an event: to read a long history for the first time
/// takes seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why nothing was projected.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each says itself what it holds")]
pub enum ProjectError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Runner(#[from] RunnerError),
    #[error(transparent)]
    Talk(#[from] TalkError),
    #[error("cannot read commit {commit} of the flow: {why}")]
    Flow { commit: ObjectId, why: BadFlow },
    #[error("cannot read the files of commit {commit} of the flow: {why}")]
    Files { commit: ObjectId, why: Box<NoFiles> },
    #[error(transparent)]
    Folder(BeneathError),
    #[error("{} holds '{}', and has told nothing new of the flow for {} s", named(*.holder), path.display(), patience.as_secs())]
    Held { path: PathBuf, holder: Option<u32>, patience: Duration },
    #[error("cannot {what} '{}'", path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
}

fn named(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// The projection of one flow, by one process.
pub struct Project<'p> {
    /// The runner whose repository is read.
    pub runner: &'p Runner<'p>,
    /// The flow's id.
    pub id: RunId,
    /// The flow's ref.
    pub name: RefName,
    /// The data folder, in which each flow has a folder of its own.
    pub data: PathBuf,
    /// How long to wait for another process that projects and makes no progress.
    pub patience: Duration,
    blobs: std::cell::RefCell<HashMap<ObjectId, Vec<u8>>>,
    left_out: std::cell::RefCell<Vec<ProjectError>>,
}

/// The facts of each source, in the source's order, and the position after all of them.
type Gathered = (Vec<Vec<Fact>>, Position);

/// What came of an update.
#[derive(Debug)]
pub struct Updated {
    /// The run's state; `None` where the flow does not exist.
    pub run: Option<Run>,
    /// How long the log is, in bytes.
    pub log: u64,
    /// Why earlier commits of the flow were left out.
    pub left_out: Vec<ProjectError>,
}

impl<'p> Project<'p> {
    /// Prepares the projection of a flow; nothing is read yet.
    pub fn new(runner: &'p Runner<'p>, id: RunId, data: PathBuf) -> Self {
        let name = super::store::ref_of(id);
        let (blobs, left_out) = Default::default();
        Self { runner, id, name, data, patience: PATIENCE, blobs, left_out }
    }

    /// Fetches what other machines did, where the branches are a remote's.
    ///
    /// # Errors
    /// Where the remote can't be asked.
    pub fn hear(&self) -> Result<(), ProjectError> {
        self.runner.store.refresh()?;
        Ok(self.runner.store.hear_shared(&[INBOX, ASKED])?)
    }

    /// Projects what is new.
    ///
    /// # Errors
    /// Where refs, commits or the data folder can't be read or written, or another process holds the flow and
    /// makes no progress. If the flow is held, or its facts can't be gathered, nothing was appended.
    pub fn update(&self) -> Result<Updated, ProjectError> {
        let mut folder = Folder::open(&self.data, self.id, self.patience)?;
        let (projection, position, log) = folder.begun(self.id)?;
        match self.gather(&position)? {
            Some((sources, next)) => self.project(folder, (projection, position, log), sources, next),
            None => {
                // A branch was rewound, so everything is projected from the beginning, into the same log. The
                // commits that were left out are found again.
                self.left_out.take();
                let begun = (Projection::new(self.id), Position::default(), folder.all()?);
                let (sources, next) = self.gather(&begun.1)?.unwrap_or_default();
                self.project(folder, begun, sources, next)
            }
        }
    }

    fn project(
        &self,
        mut folder: Folder,
        (mut projection, before, mut log): (Projection, Position, Log),
        sources: Vec<Vec<Fact>>,
        mut next: Position,
    ) -> Result<Updated, ProjectError> {
        let now = Time(i64::try_from(self.runner.clock.millis()).unwrap_or(i64::MAX));
        let bounded = |source: Vec<Fact>| source.into_iter().map(|fact| fact.bounded(now)).collect();
        // Facts are taken one after the other, so that a long history is not held twice.
        for fact in ordered(sources.into_iter().map(bounded).collect()) {
            match &fact {
                // The lines that a turn keeps repeat its questions; a repeated question is not a second one.
                Fact::Asked { request, .. } => {
                    if next.asked.insert(request.approval_id, request.node_id).is_some() {
                        continue;
                    }
                }
                Fact::Step { commit, step: Step::Turned(turned), .. } => {
                    self.write_artifacts(&folder, turned, *commit)?;
                }
                Fact::Flow { .. }
                | Fact::Stalled { .. }
                | Fact::Step { .. }
                | Fact::Waits { .. }
                | Fact::Answered { .. }
                | Fact::Line { .. } => {}
            }
            folder.append(&mut log, projection.take(&fact))?;
        }
        folder.flush()?;
        (next.log, next.last) = (log.len(), log.last());
        if next != before {
            folder.keep(&projection, &next)?;
        }
        Ok(Updated { run: projection.run().cloned(), log: log.len(), left_out: self.left_out.take() })
    }

    /// Returns the facts that are new since a position; `None` where a branch was rewound.
    fn gather(&self, from: &Position) -> Result<Option<Gathered>, ProjectError> {
        let store = &*self.runner.store;
        let Some(tip) = store.known_tip(&self.name)? else { return Ok(Some((Vec::new(), from.clone()))) };
        let Some(commits) = self.new_commits(tip, from.flow.as_deref(), "")? else { return Ok(None) };
        let mut sources = vec![Vec::new()];
        for commit in commits.iter().rev() {
            let at = Time::from_seconds(commit.committed.unwrap_or(0));
            match self.flow_at(commit.id, commit.tree) {
                Ok(flow) => sources[0].push(Fact::Flow { commit: commit.id, at, flow: Box::new(flow) }),
                // An earlier commit with a mistake, or of another version of the contract, that was corrected
                // since.
                Err(why @ (ProjectError::Flow { .. } | ProjectError::Files { .. })) if commit.id != tip => {
                    self.left_out.borrow_mut().push(why);
                }
                Err(error) => return Err(error),
            }
        }
        let flow = match sources[0].last() {
            Some(Fact::Flow { flow, .. }) => (**flow).clone(),
            _ => self.flow_at(tip, store.read_commit(tip)?.tree)?,
        };
        let was = |id| from.nodes.get(id).and_then(|known| known.tip.as_deref());
        let mut moved = false;
        for (id, node) in &flow.nodes {
            let tip = store.known_tip(&RefName::branch(&node.branch))?;
            moved |= tip.is_some_and(|tip| was(id) != Some(&*tip.to_string()));
        }
        if moved {
            // What a turn left is published before its outcome, so if no branch moved, there is nothing new
            // to fetch.
            store.hear_shared(&[TURNS])?;
        }
        let mut next =
            Position { flow: Some(tip.to_string()), asked: from.asked.clone(), ..Position::default() };
        let senders = Senders::new(store, &flow);
        for (id, node) in &flow.nodes {
            let known = from.nodes.get(id).cloned().unwrap_or_default();
            let read = self.branch((&flow, &senders), *id, node, &known)?;
            let Some(position) = read.position else { return Ok(None) };
            sources.push(read.facts);
            next.nodes.insert(*id, position);
        }
        sources.extend(self.inboxes((&flow, &senders), from, &mut next)?);
        sources.push(self.questions(&flow, from)?);
        Ok(Some((sources, next)))
    }

    /// Reads the flow of a commit. Files that were read before are not read again.
    fn flow_at(&self, commit: ObjectId, tree: ObjectId) -> Result<Flow, ProjectError> {
        let mut blobs = self.blobs.borrow_mut();
        let read = read_files_with(&*self.runner.store, tree, BOUNDS, &blobs);
        let read = read.map_err(|why| match why {
            NoFiles::Store(error) => error.into(),
            why => ProjectError::Files { commit, why: Box::new(why) },
        })?;
        let files = read.files.iter().map(|(name, content)| (name.as_str(), content.as_slice()));
        let flow = Flow::read(files).map_err(|why| ProjectError::Flow { commit, why })?;
        // The earlier contents of files are not needed any more.
        *blobs = read.contents();
        Ok(flow)
    }

    /// Returns what the turn under way has written from byte `from` on; `None` where this machine has no file
    /// of the turn, or a shorter one.
    fn live_lines(&self, turn: &Turn, from: u64) -> Result<Option<Vec<u8>>, ProjectError> {
        let Ok(trigger) = turn.trigger.parse() else { return Ok(None) };
        let Some(logs) = logs::of_run(self.runner.repo, &turn.id.to_string(), trigger) else {
            return Ok(None);
        };
        let events = logs.events();
        let (place, name) = apart(&events)?;
        let Some(file) = found(place.file(name))? else { return Ok(None) };
        let length = file.metadata().map(|meta| meta.len()).unwrap_or(0);
        if length < from {
            return Ok(None);
        }
        Ok(Some(place.read_from(name, from, u64::MAX)?))
    }

    /// Returns the event lines that a turn left.
    fn kept_lines(&self, turn: TurnId) -> Result<Option<Vec<u8>>, ProjectError> {
        let entries = self.left(turn)?;
        let lines = entries.iter().find(|entry| entry.name == LINES);
        Ok(lines.map(|entry| self.runner.store.read_blob(entry.id)).transpose()?)
    }

    /// Returns the files that a turn left; none where this repository does not have them, or they lack a
    /// signature that is required.
    fn left(&self, turn: TurnId) -> Result<Vec<TreeEntry>, ProjectError> {
        let (store, name) =
            (&*self.runner.store, RefName::new([TURNS, turn.to_string().as_bytes()].concat()));
        let Some(tip) = store.known_tip(&name)? else { return Ok(Vec::new()) };
        let Some(commit) = turns::vouched(self.runner, &name, tip)? else { return Ok(Vec::new()) };
        Ok(store.read_tree(commit.tree)?)
    }
}

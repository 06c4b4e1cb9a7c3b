//! `flow rm`: removes a flow or a node, with its branches and all that waits for it.
//!
//! The steps come in this order, so that a kill at any point leaves a flow that is stopped, and the same verb
//! goes on from there: the flow or the node is stopped; what its nodes ask is denied; their turns are ended;
//! then go, for each node, the messages that wait for it, its questions, the pauses of its branch alone, and
//! its branch; then what turns left; then the flow's folder of data; and last of all the flow or the node
//! itself, which names all these. A branch is removed only if it was made for this flow, no other flow names
//! it, and it is checked out nowhere. Implements N2a (`rm`).

use super::data_dir;
use super::say::branch_of;
use super::steer::end_turns;
use crate::app::change::Change;
use crate::app::talk::answer::Choice;
use crate::app::talk::answer::answer;
use crate::app::talk::pause::EndedRuns;
use crate::app::{AppError, Warning};
use crate::contract::flow::Mutation;
use crate::contract::id::NodeId;
use crate::contract::words::RunStatus;
use crate::flow::project::folder::path;
use crate::flow::turns::forget;
use crate::flow::{FlowError, Flows, Kept};
use crate::protocol::inbox::ASKED;
use crate::protocol::question::Question;
use crate::runner::RunnerError;
use crate::store::{RefName, StoreError, remove_tree, swap, worktrees};
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsStr;

/// How often the removal of a branch is tried; its turns are ended again after each try that found it moved.
const TRIES: usize = 5;

/// What was removed.
#[derive(Debug)]
pub struct Removed {
    /// The flow as it was last.
    pub kept: Kept,
    /// The branches that were removed.
    pub branches: Vec<RefName>,
    /// The branches that stay, and why.
    pub left: Vec<(RefName, Left)>,
    /// How many messages were removed.
    pub messages: usize,
    /// What became of the turns that ran.
    pub ended: EndedRuns,
}

/// Why a branch stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It was not made for this flow.
    NotOurs,
    /// Another flow names it.
    Shared,
}

/// Removes a flow, or one of its nodes.
pub fn remove(
    change: &Change<'_>,
    flow: &str,
    node: Option<&str>,
    signals: &Interrupt,
) -> Result<Removed, AppError> {
    let (kept, only) = change.flows(|flows, _| {
        let kept = flows.named(flow)?;
        let only = node.map(|name| kept.flow.named(name)).transpose()?;
        Ok((kept, only))
    })?;
    let nodes: Vec<NodeId> = only.map_or_else(|| kept.flow.nodes.keys().copied().collect(), |one| vec![one]);
    refuse_checked_out(change, &kept, &nodes)?;
    let kept = stop(change, &kept, only)?;
    // Nodes that were added in the meantime are removed too.
    let nodes: Vec<NodeId> = only.map_or_else(|| kept.flow.nodes.keys().copied().collect(), |one| vec![one]);
    let mut removed =
        Removed { kept, branches: Vec::new(), left: Vec::new(), messages: 0, ended: EndedRuns::default() };
    for node in &nodes {
        deny(change, &removed.kept, *node)?;
    }
    removed.ended = end_turns(change, &removed.kept, &nodes, signals)?;
    for node in &nodes {
        remove_node(change, *node, &mut removed, signals)?;
    }
    change.flows(|flows, _| Ok(forget(flows.runner, removed.kept.id, only)?))?;
    match only {
        Some(id) => {
            let kept = &removed.kept;
            removed.kept = change
                .flows(|flows, by| flows.change(kept.id, by, |_| Ok(vec![Mutation::RemoveNode(id)])))?;
        }
        None => {
            let folder = path(&data_dir(change.session, None), removed.kept.id);
            remove_tree(&folder).map_err(|source| RunnerError::Io {
                what: "remove",
                path: folder,
                source,
            })?;
            change.flows(|flows, _| flows.delete(removed.kept.id))?;
        }
    }
    Ok(removed)
}

fn stop(change: &Change<'_>, kept: &Kept, only: Option<NodeId>) -> Result<Kept, AppError> {
    change.flows(|flows, by| {
        flows.change(kept.id, by, |_| {
            Ok(vec![match only {
                Some(id) => Mutation::HoldNode { id, stopped: true },
                None => Mutation::SetRun {
                    status: Some(RunStatus::Stopped),
                    mode: None,
                    global_mode: None,
                    summary: None,
                },
            }])
        })
    })
}

/// Refuses where a branch is checked out: to delete it would leave its working tree without a commit.
fn refuse_checked_out(change: &Change<'_>, kept: &Kept, nodes: &[NodeId]) -> Result<(), AppError> {
    if change.settings.remote.is_some() {
        return Ok(());
    }
    let trees = worktrees::list(&change.session.repo)?;
    for branch in nodes.iter().filter_map(|node| branch_of(kept, *node).ok()) {
        let at = trees.iter().find(|tree| tree.branch.as_ref() == Some(&branch));
        if let Some(tree) = at {
            let place = tree.dir.clone();
            return Err(FlowError::CheckedOut { branch, place }.into());
        }
    }
    Ok(())
}

/// Denies the questions that a node asks.
fn deny(change: &Change<'_>, kept: &Kept, node: NodeId) -> Result<(), AppError> {
    let Ok(branch) = branch_of(kept, node) else { return Ok(()) };
    let open = change.talk(|runner| runner.open_questions(Some(&branch)))?;
    for (asked, _) in open {
        let id = asked.question.id.to_string();
        let said = answer(change, OsStr::new(&id), Choice::No, "the node was removed", None);
        // A question without a choice that means no is removed with its run.
        if let Err(error) = said {
            change.session.warn(Warning::Failed(error));
        }
    }
    Ok(())
}

/// Removes what a node has outside of the flow.
fn remove_node(
    change: &Change<'_>,
    node: NodeId,
    removed: &mut Removed,
    signals: &Interrupt,
) -> Result<(), AppError> {
    let Ok(branch) = branch_of(&removed.kept, node) else { return Ok(()) };
    let left = change.flows(|flows, _| is_left(flows, &removed.kept, &branch))?;
    if let Some(why) = left {
        removed.left.push((branch, why));
        return Ok(());
    }
    for _ in 0..TRIES {
        let (messages, gone) = change.flows(|flows, _| {
            let messages = flows.drop_inbox(&branch)?.len();
            unask(flows, &branch)?;
            unpause(flows, &branch)?;
            Ok((messages, delete_branch(flows, &branch)?))
        })?;
        removed.messages += messages;
        if gone {
            removed.branches.push(branch);
            return Ok(());
        }
        end_turns(change, &removed.kept, &[node], signals)?;
    }
    Err(FlowError::Raced(removed.kept.flow.run.name.clone()).into())
}

fn is_left(flows: &Flows<'_, '_>, kept: &Kept, branch: &RefName) -> Result<Option<Left>, FlowError> {
    let Some(tip) = flows.runner.fresh_tip(branch)? else { return Ok(None) };
    if !flows.runner.is_born_of(&tip.commit, &[kept.id.to_string()]) {
        return Ok(Some(Left::NotOurs));
    }
    let mut others = flows.all()?.into_iter().filter_map(|listed| listed.read.ok());
    let names = |other: Kept| {
        let mut files = other.flow.nodes.values();
        other.id != kept.id
            && files.any(|file| {
                crate::flow::nodes::owns(&other.flow, file) && file.branch.as_bytes() == branch.short()
            })
    };
    let is_shared = others.any(names);
    Ok(is_shared.then_some(Left::Shared))
}

/// Removes the questions of a branch, whose runs are over by now.
fn unask(flows: &Flows<'_, '_>, branch: &RefName) -> Result<(), FlowError> {
    let (store, by) = (&*flows.runner.store, flows.runner.signature());
    for (name, commit) in store.scan(&String::from_utf8_lossy(ASKED))? {
        let read = match store.read_commit(commit) {
            // An object that is no commit is no question of this branch.
            Err(StoreError::Object { .. }) => continue,
            read => read?,
        };
        let said = crate::protocol::message::Message::parse(&read.message);
        let id = crate::protocol::inbox::parse_id_ref(ASKED, name.as_bytes());
        let question = id.and_then(|id| Question::read(id, &said).ok());
        if question.is_some_and(|question| question.branch == branch.short()) {
            swap::delete_ref(store, &name, commit, &by)?;
        }
    }
    Ok(())
}

/// Removes the pauses that hold this branch alone.
fn unpause(flows: &Flows<'_, '_>, branch: &RefName) -> Result<(), FlowError> {
    for paused in flows.runner.pauses()? {
        let only = paused.pause.patterns.iter().all(|pattern| pattern.as_bytes() == branch.short());
        if only && !paused.pause.patterns.is_empty() {
            flows.runner.take_back(&paused)?;
        }
    }
    Ok(())
}

/// Deletes a branch as it is now. Returns false where a run holds it, or where it moved meanwhile.
fn delete_branch(flows: &Flows<'_, '_>, branch: &RefName) -> Result<bool, FlowError> {
    let runner = flows.runner;
    let Some(tip) = runner.fresh_tip(branch)? else { return Ok(true) };
    if runner.run_on(branch)?.is_some() {
        return Ok(false);
    }
    match runner.store.try_swap(branch, crate::store::Expected::At(tip.id()), None, &runner.signature(), "") {
        Ok(()) => Ok(true),
        Err(StoreError::Moved { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

//! The artifacts of a turn, as files of the data folder: they are made from what the turn left and from its
//! two commits, and made again where one is missing.
//!
//! A file is named `<artifact id>-<name>`, and the id is made from the turn and the name. The diff is Git's
//! own, between the turn's trigger and its outcome, without any diff driver that is configured. Implements
//! N13 (artifacts).

use super::folder::{ARTIFACTS, Folder, path};
use super::{LINES, Project, ProjectError};
use crate::contract::flow::Flow;
use crate::contract::id::{ArtifactId, NodeId, TurnId};
use crate::contract::projection::Turned;
use crate::contract::run::{Artifact, ArtifactMetadata};
use crate::contract::words::{ArtifactKind, EdgeType};
use crate::flow::outcome::Outcome;
use crate::protocol::id::ObjectId;
use crate::store::RefName;

/// The name of the file with the diff of what a turn changed.
const DIFF: &str = "changes.diff";
/// The name of the file with the text of a turn that reported.
const REPORT: &str = "report.md";
/// Most paths that are named beside a diff.
const PATHS_MAX: usize = 1000;

/// Returns which kind of artifact a file is that a turn left; `None` where it is no artifact.
fn kind(name: &[u8]) -> Option<ArtifactKind> {
    let begins = |with: &[u8]| name.starts_with(with);
    match () {
        () if name == LINES => None,
        () if begins(b"prompt.") => Some(ArtifactKind::Prompt),
        () if begins(b"contextpack") => Some(ArtifactKind::Contextpack),
        () if begins(b"transcript") => Some(ArtifactKind::Transcript),
        () if begins(b"stderr") => Some(ArtifactKind::Log),
        () => None,
    }
}

impl Project<'_> {
    /// Returns the artifacts of a turn.
    pub(super) fn artifacts_of(
        &self,
        flow: &Flow,
        node: NodeId,
        outcome: &Outcome,
    ) -> Result<Vec<Artifact>, ProjectError> {
        let folder = path(&self.data, self.id).join(ARTIFACTS);
        let artifact = |kind, name: &str, metadata| {
            let id = ArtifactId::of(outcome.turn, name);
            let path = folder.join(format!("{id}-{name}")).to_string_lossy().into_owned();
            let (run_id, node_id, created_at) = (self.id, node, outcome.at);
            Artifact { id, run_id, node_id, kind, name: name.to_owned(), path, created_at, metadata }
        };
        let mut all = Vec::new();
        for entry in self.left(outcome.turn)? {
            if let (Some(kind), Ok(name)) = (kind(&entry.name), std::str::from_utf8(&entry.name)) {
                all.push(artifact(kind, name, None));
            }
        }
        let changed = self.changed(outcome)?;
        if !changed.is_empty() {
            let summary = Some(outcome.summary.clone());
            let metadata = ArtifactMetadata { files_changed: Some(changed), summary };
            all.push(artifact(ArtifactKind::Diff, DIFF, Some(metadata)));
        }
        if reports(flow, node, outcome) {
            all.push(artifact(ArtifactKind::Report, REPORT, None));
        }
        Ok(all)
    }

    /// Returns the paths that a turn changed, sorted.
    fn changed(&self, outcome: &Outcome) -> Result<Vec<String>, ProjectError> {
        let store = &*self.runner.store;
        let Some(trigger) = outcome.trigger else { return Ok(Vec::new()) };
        let (before, after) = (store.read_commit(trigger)?.tree, store.read_commit(outcome.commit)?.tree);
        let mut paths = Vec::new();
        let mut trees = vec![(Vec::new(), Some(before), Some(after))];
        while let Some((at, before, after)) = trees.pop() {
            if before == after || paths.len() >= PATHS_MAX {
                continue;
            }
            let read = |tree: Option<ObjectId>| tree.map_or(Ok(Vec::new()), |tree| store.read_tree(tree));
            let (before, after) = (read(before)?, read(after)?);
            let mut names: Vec<&[u8]> = before.iter().chain(&after).map(|entry| &*entry.name).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let of = |side: &[crate::store::TreeEntry]| {
                    side.iter().find(|entry| entry.name == name).map(|entry| (entry.mode, entry.id))
                };
                let (old, new) = (of(&before), of(&after));
                if old == new {
                    continue;
                }
                let path = [&at, name].concat();
                let folder = |side: Option<(u32, ObjectId)>| {
                    side.filter(|(mode, _)| mode & 0o170_000 == 0o040_000).map(|(_, id)| id)
                };
                let is_file = |side: Option<(u32, ObjectId)>| side.is_some() && folder(side).is_none();
                if is_file(old) || is_file(new) {
                    paths.push(String::from_utf8_lossy(&path).into_owned());
                }
                if folder(old).is_some() || folder(new).is_some() {
                    trees.push(([&path[..], b"/"].concat(), folder(old), folder(new)));
                }
            }
        }
        paths.sort_unstable();
        paths.truncate(PATHS_MAX);
        Ok(paths)
    }

    /// Writes those files of a turn that do not exist yet.
    pub(super) fn write_artifacts(
        &self,
        folder: &Folder,
        turned: &Turned,
        commit: ObjectId,
    ) -> Result<(), ProjectError> {
        let mut each = turned.artifacts.iter();
        each.try_for_each(|artifact| self.write(folder, artifact, turned.turn, commit))
    }

    /// Makes a missing file again, if what it was made of is still in this repository.
    ///
    /// # Errors
    /// Where refs, commits or the data folder can't be read or written.
    pub fn make(&self, artifact: &Artifact) -> Result<(), ProjectError> {
        let there = std::path::Path::new(&artifact.path).symlink_metadata().is_ok();
        let Some((turn, commit)) = (!there).then(|| self.origin(artifact)).transpose()?.flatten() else {
            return Ok(());
        };
        self.write(&Folder::open(&self.data, self.id, self.patience)?, artifact, turn, commit)
    }

    /// Returns the turn of an artifact, and the commit of the turn's outcome.
    fn origin(&self, artifact: &Artifact) -> Result<Option<(TurnId, ObjectId)>, ProjectError> {
        let store = &*self.runner.store;
        let Some(tip) = store.known_tip(&self.name)? else { return Ok(None) };
        let flow = self.flow_at(tip, store.read_commit(tip)?.tree)?;
        let Some(node) = flow.nodes.get(&artifact.node_id) else { return Ok(None) };
        let Some(head) = store.known_tip(&RefName::branch(&node.branch))? else { return Ok(None) };
        let commits = self.new_commits(head, None, &flow.run.base)?.unwrap_or_default();
        let outcomes = commits.iter().filter_map(Outcome::of);
        let of = |outcome: &Outcome| ArtifactId::of(outcome.turn, &artifact.name) == artifact.id;
        Ok(outcomes.into_iter().find(of).map(|outcome| (outcome.turn, outcome.commit)))
    }

    fn write(
        &self,
        folder: &Folder,
        artifact: &Artifact,
        turn: TurnId,
        commit: ObjectId,
    ) -> Result<(), ProjectError> {
        folder.artifact(&format!("{}-{}", artifact.id, artifact.name), || {
            let store = &*self.runner.store;
            let outcome = || Ok::<_, ProjectError>(Outcome::of(&store.read_commit(commit)?));
            match artifact.kind {
                ArtifactKind::Diff => match outcome()?.and_then(|outcome| outcome.trigger) {
                    Some(trigger) => Ok(Some(self.runner.repo.git.diff(trigger, commit)?)),
                    None => Ok(None),
                },
                ArtifactKind::Report => Ok(outcome()?.map(|outcome| outcome.text.into_bytes())),
                ArtifactKind::Prompt
                | ArtifactKind::Log
                | ArtifactKind::Transcript
                | ArtifactKind::Contextpack => {
                    let left = self.left(turn)?;
                    let entry = left.iter().find(|entry| entry.name == artifact.name.as_bytes());
                    Ok(entry.map(|entry| store.read_blob(entry.id)).transpose()?)
                }
            }
        })
    }
}

/// True if a turn reported: it called for a handoff along an edge that is for reports.
fn reports(flow: &Flow, node: NodeId, outcome: &Outcome) -> bool {
    let calls = outcome.calls.iter().filter_map(|call| call.as_ref().ok());
    calls.filter(|call| call.name == "send_handoff").any(|call| {
        let named = ["to", "toNodeId"].iter().find_map(|key| call.args.get(*key)).and_then(|to| to.as_str());
        let to = named.and_then(|named| flow.named(named).ok());
        let along = |edge: &crate::contract::edge::Edge| to.is_some_and(|to| edge.carries(node, to));
        flow.edges.values().any(|file| file.edge.edge_type == EdgeType::Report && along(&file.edge))
    })
}

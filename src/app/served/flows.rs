//! Flows for the page: runs of the shared contract, their logs and files, and where their nodes are on the page.
//!
//! Every look projects first: what is new is appended to the flow's log, so that an answer includes all that
//! was done before the question. Nothing is kept by this module but the layout, which is no concern of the
//! flow itself. Implements N13 (layout), W5 (reading).

use super::{Cause, Line, Place, Unanswered, line};
use crate::app::AppError;
use crate::app::config::Flags;
use crate::app::flow::approvals::waiting;
use crate::app::flow::data_dir;
use crate::app::flow::lines::ApprovalLine;
use crate::app::session::Session;
use crate::contract::id::{ArtifactId, NodeId, RunId};
use crate::contract::run::{Artifact, Layout, Run};
use crate::contract::time::Time;
use crate::flow::project::{Project, ProjectError, folder};
use crate::flow::store::ref_of;
use crate::flow::{Flows, Kept};
use crate::runner::Runner;
use crate::runner::settings::Settings;
use crate::store::beneath::{BeneathError, Root, apart, found};
use crate::supervisor::interrupt::Interrupt;
use std::path::{Path, PathBuf};

/// The name of a layout's file.
const LAYOUT: &str = "layout.json";
/// Longest layout, and longest artifact, that are read, in bytes.
const LAYOUT_MAX: u64 = 4 << 20;
const ARTIFACT_MAX: u64 = 16 << 20;

/// A flow as the contract has it.
#[derive(Debug, Clone)]
pub struct RunState {
    /// The flow's state.
    pub run: Run,
    /// The flow's name.
    pub name: String,
    /// The length of its log, in bytes.
    pub log: u64,
}

fn unknown(what: &str) -> Unanswered {
    Unanswered { cause: Cause::Unknown, message: format!("there is no such {what}") }
}

fn beneath(error: BeneathError) -> AppError {
    AppError::from(ProjectError::Folder(error))
}

/// Returns the current time, to the millisecond.
fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Place {
    fn flows_of<T>(
        &self,
        look: impl FnOnce(&Session, &Settings, &Runner<'_>) -> Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        let session = self.session()?;
        // A look mends nothing: a reader may not be allowed to write, and what is owed is not this process's
        // to do.
        let settings = session.settings(&Flags::default())?;
        let interrupt = Interrupt::never().map_err(AppError::from)?;
        let runner = session.reader(&settings, &interrupt).map_err(AppError::from)?;
        look(&session, &settings, &runner)
    }

    /// Calls `look` with the projection of a flow that exists.
    fn project<T>(
        &self,
        id: RunId,
        data: Option<&Path>,
        look: impl FnOnce(&Project<'_>, &Kept) -> Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        self.flows_of(|session, _, runner| {
            // A flow that is gone leaves no folder behind, so none is made for it.
            if runner.store.tip(&ref_of(id)).map_err(AppError::from)?.is_none() {
                return Err(unknown("run"));
            }
            let kept = Flows::new(runner).of_id(id).map_err(AppError::from)?;
            let data = data_dir(session, data.map(PathBuf::from));
            let mut project = Project::new(runner, id, data);
            project.patience = self.patience;
            look(&project, &kept)
        })
    }

    /// Returns the flows that can be read, in the order of their creation.
    pub fn flows(&self) -> Result<Vec<RunId>, Unanswered> {
        self.flows_of(|_, _, runner| {
            let all = Flows::new(runner).all().map_err(AppError::from)?;
            Ok(all.into_iter().filter_map(|listed| Some(listed.read.ok()?.id)).collect())
        })
    }

    /// True where this repository has a flow of this id.
    pub fn has_flow(&self, id: RunId) -> Result<bool, Unanswered> {
        self.flows_of(|_, _, runner| Ok(runner.store.tip(&ref_of(id)).map_err(AppError::from)?.is_some()))
    }

    /// Returns the calls and questions of flows that wait for a person, the oldest first: the lines of `flow
    /// approvals --json`.
    pub fn approvals(&self) -> Result<Vec<Line>, Unanswered> {
        self.flows_of(|_, _, runner| {
            let waiting = waiting(&Flows::new(runner), None).map_err(AppError::from)?;
            Ok(waiting.iter().map(|approval| line(&ApprovalLine::of(approval))).collect())
        })
    }

    /// Returns a flow as it is now.
    pub fn flow(&self, id: RunId, data: Option<&Path>) -> Result<RunState, Unanswered> {
        self.project(id, data, |project, kept| {
            let updated = project.update().map_err(AppError::from)?;
            let mut run = updated.run.ok_or_else(|| unknown("run"))?;
            let start =
                kept.flow.run.folder.as_ref().map_or(self.folder.clone(), |below| self.folder.join(below));
            run.cwd = run.cwd.or_else(|| Some(start.to_string_lossy().into_owned()));
            run.layout = layout(&project.data, id)?;
            Ok(RunState { run, name: kept.flow.run.name.clone(), log: updated.log })
        })
    }

    /// Returns whole lines of a flow's log from a byte on, as many as `most` bytes hold.
    pub fn flow_log(
        &self,
        id: RunId,
        data: Option<&Path>,
        from: u64,
        most: u64,
    ) -> Result<Vec<u8>, Unanswered> {
        let session = self.opened()?;
        let path = folder::path(&data_dir(&session, data.map(PathBuf::from)), id).join(folder::EVENTS);
        let (place, name) = apart(&path).map_err(beneath)?;
        let read = place.read_from(name, from, most);
        let mut lines = found(read).map_err(beneath)?.unwrap_or_default();
        let whole = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        lines.truncate(whole);
        Ok(lines)
    }

    /// Returns a file that came of a turn, which is made again where it is missing.
    pub fn flow_artifact(
        &self,
        id: RunId,
        data: Option<&Path>,
        artifact: ArtifactId,
    ) -> Result<(Artifact, Vec<u8>), Unanswered> {
        self.project(id, data, |project, _| {
            let run = project.update().map_err(AppError::from)?.run.ok_or_else(|| unknown("run"))?;
            let artifact = run.artifacts.get(&artifact).ok_or_else(|| unknown("artifact"))?;
            project.make(artifact).map_err(AppError::from)?;
            // This program names the artifact's place: below the flow's folder, by the artifact's id.
            let name = format!("{}-{}", artifact.id, artifact.name);
            let path = folder::path(&project.data, id).join(folder::ARTIFACTS).join(name);
            let (place, name) = apart(&path).map_err(beneath)?;
            let content = found(place.read(name, ARTIFACT_MAX)).map_err(beneath)?;
            Ok((artifact.clone(), content.ok_or_else(|| unknown("file any more"))?))
        })
    }

    /// Stores where a flow's nodes are on the page. Nodes that the flow does not have are left out.
    pub fn keep_layout(&self, id: RunId, data: Option<&Path>, wanted: Layout) -> Result<Layout, Unanswered> {
        self.project(id, data, |project, kept| {
            let there = |node: &NodeId| kept.flow.nodes.contains_key(node);
            let kept = wanted.kept(there, now());
            // This makes the flow's folder where there is none.
            folder::Folder::open(&project.data, id, self.patience).map_err(AppError::from)?;
            let root = Root::open(&folder::path(&project.data, id)).map_err(beneath)?;
            let text = serde_json::to_vec(&kept).unwrap_or_default();
            root.replace(Path::new(LAYOUT), &text, 0o600).map_err(beneath)?;
            Ok(kept)
        })
    }
}

/// Returns the layout that is stored; one that can't be read counts as none.
fn layout(data: &Path, id: RunId) -> Result<Option<Layout>, AppError> {
    let path = folder::path(data, id).join(LAYOUT);
    let (place, name) = apart(&path).map_err(beneath)?;
    let text = found(place.read(name, LAYOUT_MAX)).map_err(beneath)?;
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
}

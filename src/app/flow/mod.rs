//! The verbs of `flow`, each group in a file of its own.
//!
//! A verb begins as a [`Change`] does, or only looks with a reader. Verbs take values, so that the server
//! calls the same functions as the command line. Implements N2, N5, N13 (verbs).

pub mod approvals;
pub mod build;
pub mod events;
pub mod lines;
pub mod look;
pub mod remove;
pub mod route;
pub mod say;
pub mod steer;
pub mod templates;
pub mod turn;

use super::AppError;
use super::change::Change;
use super::session::Session;
use crate::contract::id::NodeId;
use crate::flow::route::Limits;
use crate::flow::{FlowError, Flows, Kept};
use crate::protocol::pause::Holder;
use crate::runner::Silent;
use crate::runner::settings::Settings;
use crate::supervisor::interrupt::Interrupt;
use std::path::PathBuf;

/// A flow's node as a person names it.
#[derive(Debug, Clone, Copy)]
pub struct NodeName<'a> {
    /// The flow, by its name or id.
    pub flow: &'a str,
    /// The node, by its alias, label or id.
    pub node: &'a str,
}

impl Change<'_> {
    /// Calls `work` with the flows, and with the user or run that acts on them.
    pub(in crate::app) fn flows<T>(
        &self,
        work: impl FnOnce(&Flows<'_, '_>, &Holder) -> Result<T, FlowError>,
    ) -> Result<T, AppError> {
        let interrupt = Interrupt::never()?;
        let runner = self.session.runner(&self.settings, &interrupt, &Silent)?;
        let by = runner.speaker(self.inside.as_ref());
        work(&Flows::new(&runner), &by).map_err(|error| self.flowed(error))
    }

    fn flowed(&self, error: FlowError) -> AppError {
        match error {
            FlowError::Talk(error) => self.talked(error),
            error => error.into(),
        }
    }
}

/// Finds the flow and the node that a name means.
pub(in crate::app) fn found(flows: &Flows<'_, '_>, name: NodeName<'_>) -> Result<(Kept, NodeId), FlowError> {
    let kept = flows.named(name.flow)?;
    let node = kept.flow.named(name.node)?;
    Ok((kept, node))
}

/// Returns the data folder: `--data-dir`, else `aynig.dataDir`, else `aynig/data` in the common Git
/// directory.
pub fn data_dir(session: &Session, named: Option<PathBuf>) -> PathBuf {
    let configured = || session.config.get("dataDir").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let dir = named.or_else(configured).unwrap_or_else(|| session.repo.aynig_dir().join("data"));
    std::path::absolute(&dir).unwrap_or(dir)
}

/// Returns how far flows go without a person: `aynig.flowHops`, `aynig.stallTurns`.
pub fn limits(session: &Session, settings: &Settings) -> Result<Limits, AppError> {
    let stall = session.config.number("stallTurns", crate::contract::stall::LIMIT.into())?;
    Ok(Limits { hops: settings.flow_hops, stall: u32::try_from(stall).unwrap_or(u32::MAX) })
}

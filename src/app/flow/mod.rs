//! `flow`: what its verbs do, each in a file of its own; the commands of nodes among them.
//!
//! Each begins as a [`super::change::Change`] does, or looks with a reader. Implements N5, N13 (verbs).

pub mod events;
pub mod route;
pub mod turn;

use super::AppError;
use super::session::Session;
use crate::flow::route::Limits;
use crate::runner::settings::Settings;
use std::path::PathBuf;

/// The data folder: `--data-dir`, else `aynig.dataDir`, else `aynig/data` in the common Git directory.
pub fn data_dir(session: &Session, named: Option<PathBuf>) -> PathBuf {
    let configured = || session.config.get("dataDir").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let dir = named.or_else(configured).unwrap_or_else(|| session.repo.aynig_dir().join("data"));
    std::path::absolute(&dir).unwrap_or(dir)
}

/// How far flows go without a person: `aynig.flowHops`, `aynig.stallTurns`.
pub fn limits(session: &Session, settings: &Settings) -> Result<Limits, AppError> {
    let stall = session.config.number("stallTurns", crate::contract::stall::LIMIT.into())?;
    Ok(Limits { hops: settings.flow_hops, stall: u32::try_from(stall).unwrap_or(u32::MAX) })
}

//! Arguments of `flow`: as typed; nothing here means anything yet. Implements N5, N13 (flags).

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `flow`.
#[derive(Debug, Args)]
pub struct Flow {
    /// What to do about flows
    #[command(subcommand)]
    pub verb: FlowVerb,
}

/// The verbs of flows.
#[derive(Debug, Subcommand)]
pub enum FlowVerb {
    /// Show what happened in a flow
    Events(FlowEvents),
    /// List the files that came of a flow's turns
    Artifacts(FlowArtifacts),
    /// Do what follows from a turn: the command of the state 'route'
    Route(FlowRoute),
    /// Have a node's turn: the command of the state 'turn'
    Turn(FlowTurn),
}

/// `flow events`.
#[derive(Debug, Args)]
pub struct FlowEvents {
    /// The flow, by name or id
    pub flow: String,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Where its log is kept [default: aynig.dataDir, else aynig/data in the Git directory]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Then each event as it comes
    #[arg(short, long)]
    pub follow: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `flow artifacts`.
#[derive(Debug, Args)]
pub struct FlowArtifacts {
    /// The flow, by name or id
    pub flow: String,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Where they are kept [default: aynig.dataDir, else aynig/data in the Git directory]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `flow route`.
#[derive(Debug, Args)]
pub struct FlowRoute {}

/// `flow turn`.
#[derive(Debug, Args)]
pub struct FlowTurn {}

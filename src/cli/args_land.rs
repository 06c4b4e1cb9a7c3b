//! Arguments of the verbs that bring several branches together: `land`, `fan`, `choose`, `compare`.
//!
//! They are kept as typed; the code of each verb interprets them. Implements K60 (flags).

use clap::Args;
use std::ffi::OsString;

/// `land`.
#[derive(Debug, Args)]
pub struct Land {
    /// Branches [default: the current one]
    #[arg(value_name = "BRANCH")]
    pub branches: Vec<OsString>,
    /// Where they are to land [default: the branch that commands come from, else main]
    #[arg(long, value_name = "BRANCH")]
    pub onto: Option<OsString>,
    /// By a merge commit, whatever .aynig/land says
    #[arg(long, conflicts_with = "linear")]
    pub merge: bool,
    /// As a linear history: the branch's own commits, on top of the target
    #[arg(long, visible_alias = "rebase")]
    pub linear: bool,
    /// Not before this branch has landed; several
    #[arg(long, value_name = "BRANCH")]
    pub after: Vec<OsString>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Only ask: the machine that ticks the branches lands them
    #[arg(long)]
    pub no_tick: bool,
    /// Show what the check prints as it comes
    #[arg(long, conflicts_with = "no_tick")]
    pub tee: bool,
    /// JSON objects a line: those of git-aynig-tick(1); with --no-tick one aynig.change/1 a branch
    #[arg(long)]
    pub json: bool,
}

/// `fan`.
#[derive(Debug, Args)]
pub struct Fan {
    /// The branch [default: the current one]
    pub branch: Option<OsString>,
    /// How many attempts [default: as many as --each has values, else 3]
    #[arg(short = 'n', long, value_name = "N")]
    pub count: Option<usize>,
    /// A variable that each attempt has a value of its own of, or all the same one; several
    #[arg(long, value_name = "KEY=VALUE,VALUE..")]
    pub each: Vec<String>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    /// One JSON object a branch
    #[arg(long)]
    pub json: bool,
}

/// `choose`.
#[derive(Debug, Args)]
pub struct Choose {
    /// The attempt that is chosen
    pub branch: OsString,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// Start no chain, whatever hooks are installed
    #[arg(long)]
    pub no_tick: bool,
    /// One JSON object a branch
    #[arg(long)]
    pub json: bool,
}

/// `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// A branch that was fanned, one of its attempts, or several branches [default: the current one]
    #[arg(value_name = "BRANCH")]
    pub branches: Vec<OsString>,
    /// The branches of this remote, not the local ones [default: aynig.remote]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,
    /// One JSON object a branch
    #[arg(long)]
    pub json: bool,
}

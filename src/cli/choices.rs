//! Values that a flag or an argument chooses from.

use clap::ValueEnum;

/// What to do about the branch that is checked out here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CurrentBranchArg {
    /// Leave it out
    Skip,
    /// Treat it as any other
    Include,
    /// Take no other
    Only,
}

/// Which trailers a state event is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DialectArg {
    /// The runner writes what comes of it
    Dwp,
    /// Its command writes what comes of it
    Aynig,
}

/// What to do about hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HooksVerb {
    /// Put our lines into this repository's hooks
    Install,
    /// Take them out again, byte for byte
    Uninstall,
    /// Show which hooks Git runs here
    Status,
}

/// What usage is added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UsageBy {
    /// The branch that the run moved
    Branch,
    /// The state that the run answered
    State,
    /// The model that was used
    Model,
    /// The day on which the run ended, in UTC
    Day,
}

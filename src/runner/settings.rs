//! The configuration of a runner, as values.
//!
//! The `cli` module reads flags and configuration into these types; none of them has a default that the
//! documentation does not name. Implements K33, K35 (values).

use crate::protocol::name::RoleName;
use crate::protocol::usage::Usd;
use crate::store::RefName;
use crate::store::command_tree::RoleUse;
use crate::store::slots::harvest::Stage;
use crate::store::slots::keep::Keeping;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Which commit `.aynig/` is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandsFrom {
    /// Not configured: nothing runs.
    Nowhere,
    /// The triggering branch itself.
    Branch,
    /// This ref's current commit, whatever the branch holds.
    Ref(RefName),
}

/// What commands are confined to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sandbox {
    /// To nothing: they are not confined.
    #[default]
    Off,
    /// They write only to their own places and to these.
    Write(Vec<PathBuf>),
    /// They also read only there, in the second list and where programs of any kind do, and connect to no
    /// ports but these.
    Strict(Vec<PathBuf>, Vec<PathBuf>, Vec<u16>),
}

/// What to do about the branch that is checked out in the current working tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurrentBranch {
    /// Leave it out.
    Skip,
    /// Treat it as any other.
    Include,
    /// Take no other.
    Only,
}

/// How many seconds the clocks of several machines may differ by, where that is not configured.
pub(crate) const REMOTE_GRACE: u64 = 30;

/// How many commands run at a time.
#[derive(Debug, Clone)]
pub enum Jobs {
    /// As many as was configured.
    Said(usize),
    /// One for each processor that this process may use. The processors are counted when the number is first
    /// needed, because that takes twenty calls, and a tick that finds nothing to do does not need it.
    Processors(OnceLock<usize>),
}

impl Jobs {
    /// Returns the number, 1 at least.
    pub fn get(&self) -> usize {
        match self {
            Self::Said(number) => *number,
            Self::Processors(counted) => {
                *counted.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
            }
        }
    }
}

/// Everything that was configured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Lease length in seconds.
    pub lease: u64,
    /// Added before a lease counts as expired, in seconds.
    pub grace: u64,
    /// The grace of leases of the `aynig` dialect.
    pub aynig_grace: u64,
    /// The remote whose branches are ticked; `None`: the local ones.
    pub remote: Option<String>,
    /// True where the caller named the remote, not the configuration.
    pub remote_named: bool,
    /// True where foreign leases are judged by observation.
    pub observe: bool,
    /// How long a command may run before it is ended.
    pub timeout: Option<Duration>,
    /// The time from SIGTERM to SIGKILL.
    pub kill_grace: Duration,
    /// How many commands run at a time, and how many slots there are.
    pub jobs: Jobs,
    /// How many commands a chain that a hook starts runs at a time: one, where that is not configured.
    pub chain_jobs: usize,
    /// The role whose commands go first.
    pub role: Option<RoleName>,
    /// Which commands the role makes the runner take.
    pub role_use: RoleUse,
    /// Most dispatches in a chain.
    pub max_hops: u32,
    /// Most dispatches in a chain within a flow.
    pub flow_hops: u32,
    /// Most bytes of each log.
    pub log_max: u64,
    /// What of a slot becomes part of an outcome.
    pub stage: Stage,
    /// Which commit commands come from.
    pub commands_from: CommandsFrom,
    /// True where the ref that commands come from is this repository's although the branches are a remote's,
    /// because only a commit named the remote.
    pub commands_here: bool,
    /// Patterns of branches that may be ticked; empty: all.
    pub branches: Vec<String>,
    /// Patterns of branches that others may be landed on; empty: all, if those who write to branches are
    /// trusted with code (`commandsFrom=branch`), else none.
    pub land_onto: Vec<String>,
    /// True where only signed heads are dispatched, and what is written is signed.
    pub require_signature: bool,
    /// True where what lands on a target is signed, as `git merge` and `git rebase` would (`commit.gpgSign`).
    pub sign_landed: bool,
    /// The program, with its arguments, that every command is started with; empty: none.
    pub exec: Vec<String>,
    /// The program that is given each notice, with its arguments; empty: no notice is given.
    pub notify: Vec<String>,
    /// Names and patterns of trailers that become variables, no matter who pushed them.
    pub trailer_env: Vec<String>,
    /// What commands are confined to by the kernel.
    pub sandbox: Sandbox,
    /// What stays in a slot, and what is copied there.
    pub keeping: Keeping,
    /// The first port of the first slot.
    pub port_base: u16,
    /// What all runs together may cost on one day, in UTC.
    pub budget_per_day: Option<Usd>,
    /// What the runs of one branch may cost.
    pub budget_per_branch: Option<Usd>,
    /// What was spent today, as it was last added up.
    pub(crate) today: super::spent::Today,
    /// Where slots live.
    pub worktree_dir: PathBuf,
    /// Name and mail address of what the runner writes.
    pub identity: (String, String),
    /// Name of the log level for commands, where a flag named one.
    pub log_level_flag: Option<String>,
    /// Name of the log level, where neither flag nor trailer named one.
    pub log_level: String,
    /// True where command output is passed on as it comes.
    pub tee: bool,
    /// Ids that were promised to the first runs of branches.
    pub run_ids: Arc<Mutex<HashMap<RefName, String>>>,
    /// Set once this process has found that runs can be prepared in this repository.
    pub ready: Arc<OnceLock<()>>,
    /// True where the runner waits for a free slot.
    pub wait_for_slot: bool,
    /// True where hooks are off, so that nothing starts by itself (K38).
    pub hooks_off: bool,
}

impl Settings {
    /// Returns the role, and which commands it makes this runner take; `None` without a role.
    pub fn role_filter(&self) -> Option<(&RoleName, RoleUse)> {
        self.role.as_ref().map(|role| (role, self.role_use))
    }

    /// Returns an id for the next run of a branch: the promised one once, a fresh one otherwise.
    pub fn run_id(&self, branch: &RefName) -> String {
        let promised = self.run_ids.lock().ok().and_then(|mut ids| ids.remove(branch));
        promised.unwrap_or_else(|| uuid::Uuid::new_v4().to_string())
    }

    /// Returns these settings for the branches of this remote; `None`: for the local branches.
    pub fn on_remote(&self, remote: Option<&str>) -> Self {
        let grace = match remote {
            Some(_) => self.grace.max(REMOTE_GRACE),
            None => self.grace,
        };
        let commands_here = remote.is_some() && (self.commands_here || self.remote.is_none());
        Self { remote: remote.map(str::to_owned), grace, commands_here, ..self.clone() }
    }
}

//! The paths that a command is confined to: what of a repository it has to write, and may read.
//!
//! It writes to its slot, its run's folder with a temporary folder in it, and its logs. Unless the sandbox is
//! `strict`, it also writes to its slot's own registration and to the repository's objects; in a strict one,
//! to nothing else of the Git directory. No path is one that a command could have put a link at: links in
//! paths that the account names are resolved before the command starts. Implements K59.

use super::active_run::ActiveRun;
use super::change::Inside;
use super::report::Refusal;
use super::settings::Sandbox;
use super::{Runner, RunnerError, io};
use crate::protocol::flow::{is_own_command, slug_of};
use crate::store::slots::{Leads, Slot};
use crate::supervisor::confine::{Confinement, FOR_STRICT, FOR_WRITE, kernel_version};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What every program writes to.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];
/// What is read by programs of any kind.
const SYSTEM: &[&str] = &[
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    // Not all of `/proc`: what it holds of another process reveals that process's environment.
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/version",
    "/run/systemd/resolve",
    "/sbin",
    "/sys",
    "/usr",
];
/// What Git reads of a repository; no run's folder, log or slot is among it.
const REPOSITORY: &[&str] = &[
    "HEAD",
    "config",
    "config.worktree",
    "description",
    "hooks",
    "info",
    "modules",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "shallow",
];
/// Most bytes of a command's file that may be git-aynig's own.
const OWN_MAX: u64 = 4096;
/// The command's temporary folder, in its run's folder.
pub(super) const TEMPORARY: &str = "tmp";

/// Returns the version of Landlock that this kernel has, which is asked once; 0 for none.
pub(super) fn version() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(kernel_version)
}

impl Sandbox {
    /// Returns the sandbox's name, as configured and shown; `None` where commands are not confined.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Sandbox::Off => None,
            Sandbox::Write(_) => Some("write"),
            Sandbox::Strict(..) => Some("strict"),
        }
    }

    /// Returns the version of Landlock that the sandbox needs.
    pub(super) fn needs(&self) -> u32 {
        match self {
            Sandbox::Off => 0,
            Sandbox::Write(_) => FOR_WRITE,
            Sandbox::Strict(..) => FOR_STRICT,
        }
    }
}

impl Runner<'_> {
    /// Returns a refusal where commands are to be confined and this kernel can't do it.
    pub(super) fn not_confinable(&self) -> Option<Refusal> {
        let needs = self.settings.sandbox.needs();
        let has = if needs > 0 { version() } else { 0 };
        (has < needs).then_some(Refusal::NoSandbox { needs, has })
    }

    /// Returns the rules for a program that works in this slot: it writes there, to the paths `own`, and to
    /// those that the account names; in a strict sandbox it also reads `place`. `None`: it is not confined.
    fn confined(&self, slot: &Slot, own: Vec<PathBuf>, place: &Path) -> Option<Confinement> {
        let (named, strict) = match &self.settings.sandbox {
            Sandbox::Off => return None,
            Sandbox::Write(named) => (named, None),
            Sandbox::Strict(named, read, connect) => (named, Some((read, connect))),
        };
        let common = &self.repo.common_dir;
        let mut write = vec![slot.dir().to_owned()];
        write.extend(own);
        write.extend(there(DEVICES.iter().map(PathBuf::from)));
        write.extend(there(named.iter().cloned()));
        let Some((read, connect)) = strict else {
            write.push(slot.admin_dir().to_owned());
            write.extend(there([common.join("objects")].into_iter()));
            return Some(Confinement::write(write));
        };
        let repository = REPOSITORY.iter().map(|name| common.join(name));
        let own = [slot.admin_dir().to_owned(), place.to_owned(), self.program.clone()];
        let system = SYSTEM.iter().map(PathBuf::from);
        let all = repository.chain(own).chain(system).chain(read.iter().cloned());
        Some(Confinement::write(write).strict(there(all), connect.clone()))
    }

    /// Returns the rules for a Git that stages what is in a slot while its command may still be at work
    /// there. `None`: Git is not confined, because the command may read all that its account may.
    pub(super) fn staging(&self, slot: &Slot) -> Option<Confinement> {
        let Sandbox::Strict(_, read, _) = &self.settings.sandbox else { return None };
        let common = &self.repo.common_dir;
        let write = DEVICES.iter().map(PathBuf::from).chain(["objects", "lfs"].map(|name| common.join(name)));
        let program = self.repo.git.git().program().parent().map(Path::to_owned);
        let repository = REPOSITORY.iter().map(|name| common.join(name));
        let own = repository.chain(program).chain(SYSTEM.iter().map(PathBuf::from));
        let mut read = there(own.chain(read.iter().cloned()));
        read.push(slot.dir().to_owned());
        Some(Confinement::write(there(write)).strict(read, Vec::new()))
    }

    /// Returns the rules for what is started from inside of a run, with `tmp` as the folder for temporary
    /// files. `None`: nothing is confined.
    ///
    /// # Errors
    /// Where its slot is not to be found.
    pub fn own_sandbox(&self, inside: &Inside, tmp: &Path) -> Result<Option<OwnSandbox>, RunnerError> {
        if self.settings.sandbox == Sandbox::Off {
            return Ok(None);
        }
        let pool = self.known_pool();
        let slots = pool.known().into_iter().map(|number| pool.borrow(number));
        let is_own = |slot: &Slot| slot.record().run.as_ref().is_some_and(|run| run.run_id == inside.run_id);
        let Some(slot) = slots.into_iter().find(is_own) else {
            let path = self.repo.aynig_dir().join("slots");
            return Err(io("find the worktree of this run in", &path)(std::io::ErrorKind::NotFound.into()));
        };
        let confinement = self.confined(&slot, vec![tmp.to_owned()], tmp);
        let leads = slot.watch_leads(self.repo)?;
        Ok(confinement.map(|confinement| OwnSandbox { confinement, slot, leads }))
    }

    /// Returns which of the files that lead Git elsewhere were changed by what was started in this sandbox;
    /// they are put right as far as that is possible.
    pub fn changed_leads(&self, sandbox: &OwnSandbox) -> Result<Option<String>, RunnerError> {
        Ok(sandbox.slot.changed_leads(self.repo, &sandbox.leads)?)
    }
}

/// What a run confines the processes to that it starts itself.
pub struct OwnSandbox {
    /// The rules for its processes.
    pub confinement: Confinement,
    slot: Slot,
    leads: Leads,
}

/// Returns those of the paths that exist, with all links resolved.
fn there(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    paths.filter_map(|path| std::fs::canonicalize(path).ok()).collect()
}

impl<'a> ActiveRun<'a> {
    /// True for the command of a node's turn, or of the `route` that follows from it, where its file does
    /// nothing but call this very program, which confines what it starts.
    pub(super) fn is_ours(&self, program: &Path) -> Result<bool, RunnerError> {
        let command = &self.program.command;
        let is_command = *program == self.program.place.join(&command.path);
        if !is_command || slug_of(self.branch.short()).is_none() {
            return Ok(false);
        }
        let state = self.claim.run.state.as_str();
        let script = self.runner.store.read_bounded(command.file, OWN_MAX)?;
        Ok(script.is_some_and(|script| is_own_command(state, &script)))
    }

    /// Returns the rules for a program that this sandbox confines, and creates its temporary folder. `None`:
    /// it is not confined.
    pub(super) fn confinement(&self, sandbox: &Sandbox) -> Result<Option<Confinement>, RunnerError> {
        if *sandbox == Sandbox::Off {
            return Ok(None);
        }
        let tmp = self.dir.join(TEMPORARY);
        match std::fs::create_dir(&tmp) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(io("create", &tmp)(error));
            }
            Ok(()) | Err(_) => {}
        }
        let own = [self.dir.clone(), self.logs.stdout.clone(), self.logs.stderr.clone(), self.logs.events()];
        Ok(self.runner.confined(&self.slot, own.to_vec(), &self.program.place))
    }

    /// Removes the command's temporary folder.
    pub(super) fn drop_temporary(&self) {
        if self.runner.settings.sandbox != Sandbox::Off {
            let _ = crate::store::remove_tree(&self.dir.join(TEMPORARY));
        }
    }
}

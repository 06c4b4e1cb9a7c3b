//! What a command is confined to, in paths: what of a repository it has to write, and may read.
//!
//! Writes: its slot, its run's folder with a temporary folder in it, its logs, its slot's own registration, and the
//! objects, or nothing of the Git directory where it is `strict`. No path is one that a command could have put a link
//! at: what the account names is followed to its end here. Implements K59.

use super::active_run::ActiveRun;
use super::report::Refusal;
use super::settings::Sandbox;
use super::{Runner, RunnerError, io};
use crate::supervisor::confine::{Confinement, FOR_STRICT, FOR_WRITE, kernel_version};
use std::path::PathBuf;
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
    // Not all of it: what stands there of another process tells its environment.
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
/// What Git reads of a repository, and no run's folder, log or slot.
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
/// The command's temporary folder, in its run's.
pub(super) const TEMPORARY: &str = "tmp";

/// The version of Landlock here, asked once.
pub(super) fn version() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(kernel_version)
}

impl Sandbox {
    /// Its name, as configured and told; `None` where there is none.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Sandbox::Off => None,
            Sandbox::Write(_) => Some("write"),
            Sandbox::Strict(..) => Some("strict"),
        }
    }

    /// The version of Landlock that it needs.
    pub(super) fn needs(&self) -> u32 {
        match self {
            Sandbox::Off => 0,
            Sandbox::Write(_) => FOR_WRITE,
            Sandbox::Strict(..) => FOR_STRICT,
        }
    }
}

impl Runner<'_> {
    /// The refusal where commands are to be confined and this kernel can't.
    pub(super) fn not_confinable(&self) -> Option<Refusal> {
        let needs = self.settings.sandbox.needs();
        let has = if needs > 0 { version() } else { 0 };
        (has < needs).then_some(Refusal::NoSandbox { needs, has })
    }
}

/// Those that exist, each as itself with no link in it.
fn there(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    paths.filter_map(|path| std::fs::canonicalize(path).ok()).collect()
}

impl ActiveRun<'_> {
    /// What the command is confined to; `None`: to nothing.
    pub(super) fn confinement(&self) -> Result<Option<Confinement>, RunnerError> {
        let sandbox = &self.runner.settings.sandbox;
        let (own, strict) = match sandbox {
            Sandbox::Off => return Ok(None),
            Sandbox::Write(own) => (own, None),
            Sandbox::Strict(own, read, connect) => (own, Some((read, connect))),
        };
        let tmp = self.dir.join(TEMPORARY);
        match std::fs::create_dir(&tmp) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(io("create", &tmp)(error));
            }
            Ok(()) | Err(_) => {}
        }
        let common = &self.runner.repo.common_dir;
        let mut write = vec![self.slot.dir().to_owned(), self.dir.clone()];
        write.extend([self.logs.stdout.clone(), self.logs.stderr.clone(), self.logs.events()]);
        write.extend(there(DEVICES.iter().map(PathBuf::from)));
        write.extend(there(own.iter().cloned()));
        let Some((read, connect)) = strict else {
            write.push(self.slot.admin_dir().to_owned());
            write.extend(there([common.join("objects")].into_iter()));
            return Ok(Some(Confinement::write(write)));
        };
        let repository = REPOSITORY.iter().map(|name| common.join(name));
        let program = self.runner.program.clone();
        let own = [self.slot.admin_dir().to_owned(), self.program.place.clone(), program];
        let system = SYSTEM.iter().map(PathBuf::from);
        let all = repository.chain(own).chain(system).chain(read.iter().cloned());
        Ok(Some(Confinement::write(write).strict(there(all), connect.clone())))
    }

    /// Removes the command's temporary folder.
    pub(super) fn drop_temporary(&self) {
        if self.runner.settings.sandbox != Sandbox::Off {
            let _ = crate::store::remove_tree(&self.dir.join(TEMPORARY));
        }
    }
}

//! Where a run's output is kept.
//!
//! `.aynig/logs/` in the main working tree, a folder that ignores itself; in a bare repository
//! `aynig/logs/` in the Git directory. Files are made new, never through a symbolic link. Implements K16.

use super::{Runner, RunnerError, io};
use crate::protocol::id::ObjectId;
use crate::store::repository::Repository;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The two logs of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// What it printed.
    pub stdout: PathBuf,
    /// What it complained about.
    pub stderr: PathBuf,
}

/// The folder for logs, and whether it is not where it is usually found because a link is in the way.
pub fn folder(repo: &Repository) -> (PathBuf, bool) {
    let inside = repo.aynig_dir().join("logs");
    let Some(main) = &repo.main_dir else { return (inside, false) };
    let aynig = main.join(".aynig");
    let logs = aynig.join("logs");
    let plain = |path: &Path| path.symlink_metadata().map_or(true, |m| m.is_dir());
    if plain(&aynig) && plain(&logs) { (logs, false) } else { (inside, true) }
}

/// The logs of a trigger's `n`th run, counted from 1.
pub fn paths(folder: &Path, trigger: ObjectId, n: u32) -> Logs {
    let stem = if n == 1 { trigger.to_string() } else { format!("{trigger}.{n}") };
    Logs {
        stdout: folder.join(format!("{stem}.stdout.log")),
        stderr: folder.join(format!("{stem}.stderr.log")),
    }
}

/// The logs of a trigger's latest run; `None` where it has none.
pub fn latest(repo: &Repository, trigger: ObjectId) -> Option<Logs> {
    let folders = [folder(repo).0, repo.aynig_dir().join("logs")];
    folders.iter().find_map(|folder| {
        let all = (1..).map(|n| paths(folder, trigger, n)).take_while(|logs| logs.stdout.exists());
        all.last()
    })
}

/// Notes in a run's folder which logs are its own: two branches may have the same trigger.
pub(super) fn note(run_dir: &Path, logs: &Logs) -> Result<(), RunnerError> {
    let name = logs.stdout.file_name().unwrap_or_default();
    let path = run_dir.join("log");
    std::fs::write(&path, name.as_encoded_bytes()).map_err(io("write", &path))
}

/// The logs of this very run; `None` where they, or what is known of it, are gone.
pub fn of_run(repo: &Repository, run_id: &str) -> Option<Logs> {
    // An id from a commit may be anything; one that names a ref names a folder.
    super::slot::run_ref(run_id)?;
    let name = std::fs::read_to_string(repo.aynig_dir().join("runs").join(run_id).join("log")).ok()?;
    let stem = name.strip_suffix(".stdout.log").filter(|stem| !stem.contains('/'))?;
    [folder(repo).0, repo.aynig_dir().join("logs")].into_iter().find_map(|folder| {
        let stdout = folder.join(&name);
        let stderr = folder.join(format!("{stem}.stderr.log"));
        stdout.exists().then_some(Logs { stdout, stderr })
    })
}

impl Runner<'_> {
    /// Makes the two empty logs of a run.
    pub(super) fn create_logs(&self, trigger: ObjectId) -> Result<(Logs, bool), RunnerError> {
        let (folder, elsewhere) = folder(self.repo);
        std::fs::create_dir_all(&folder).map_err(io("create", &folder))?;
        if self.repo.main_dir.is_some() && !elsewhere {
            let ignore = folder.join(".gitignore");
            if !ignore.exists() {
                std::fs::write(&ignore, "*\n").map_err(io("write", &ignore))?;
            }
        }
        let make = |path: &Path| {
            let mut options = File::options();
            options.write(true).create_new(true).mode(0o600);
            options.custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits());
            options.open(path)
        };
        for n in 1.. {
            let logs = paths(&folder, trigger, n);
            match make(&logs.stdout) {
                Ok(_) => {
                    make(&logs.stderr).map_err(io("create", &logs.stderr))?;
                    return Ok((logs, elsewhere));
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io("create", &logs.stdout)(e)),
            }
        }
        unreachable!("the numbers do not end")
    }
}

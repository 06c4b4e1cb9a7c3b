//! The place that the demo plays in: a folder with a repository, HOME, configuration and a `bin` with this
//! binary.
//!
//! Child processes see little of the user's environment: where programs and temporary files are, and how to
//! show text. Everything that was made is removed with the value, except a repository that was asked to be
//! kept.

use crate::store::{forbids_programs, remove_tree};
use crate::supervisor::SupervisorError;
use crate::supervisor::bounded::transcript;
use std::env::JoinPathsError;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The demo's configuration. It names a committer, since the user may have none.
const CONFIG: &str = "[user]\n\tname = Demo\n\temail = demo@example.com\n[init]\n\tdefaultBranch = main\n\
                      [advice]\n\tdefaultBranchName = false\n";

/// The variables that are passed on to child processes: where programs and temporary files are, and how to
/// show text.
const PASSED: &[&str] =
    &["PATH", "TERM", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "USER", "LOGNAME"];

/// The demo's folder, and how to run things in it.
pub struct Place {
    root: PathBuf,
    repo: PathBuf,
    env: Vec<(OsString, OsString)>,
}

/// Why the demo can't play.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A file or folder of the demo can't be used.
    #[error("cannot {what} '{}'", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The demo's folder can't be made.
    #[error("cannot create '{}'", path.display())]
    NotMade {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no folder in which programs may be started.
    #[error("no folder was found where programs may be started")]
    NoPlace,
    /// The folder that the repository is to be kept in is not empty.
    #[error("'{}' is there already, and not empty", .0.display())]
    NotEmpty(PathBuf),
    /// There is no git.
    #[error("git was not found on PATH")]
    NoGit,
    /// The name of a folder of programs can't be part of PATH.
    #[error("cannot use PATH: {0}")]
    Path(JoinPathsError),
    /// A command of the demo can't be run.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DemoError {
    let path = path.to_owned();
    move |source| DemoError::Io { what, path, source }
}

impl Place {
    /// Makes the demo's place. `keep`, a new or empty folder, is where the repository goes if it is to stay.
    pub fn make(keep: Option<&Path>) -> Result<Self, DemoError> {
        let root = root()?;
        // From this line on the folder is removed with the value, whatever fails.
        let mut place = Self { repo: root.join("demo"), root, env: Vec::new() };
        if let Some(keep) = keep {
            place.repo = std::path::absolute(keep).map_err(failed("find", keep))?;
            let taken = std::fs::read_dir(&place.repo).is_ok_and(|mut entries| entries.next().is_some());
            if taken || place.repo.is_file() {
                return Err(DemoError::NotEmpty(keep.to_owned()));
            }
        }
        let (home, bin) = (place.root.join("home"), place.root.join("bin"));
        for folder in [&home, &bin, &place.repo] {
            std::fs::create_dir_all(folder).map_err(failed("create", folder))?;
        }
        let program = std::env::current_exe().map_err(failed("find", Path::new("git-aynig")))?;
        let link = bin.join("git-aynig");
        std::os::unix::fs::symlink(&program, &link).map_err(failed("create", &link))?;
        let config = place.root.join("gitconfig");
        std::fs::write(&config, CONFIG).map_err(failed("write", &config))?;
        place.env = environment(&home, &bin, &config)?;
        place.check_git()?;
        Ok(place)
    }

    /// Returns the folder of the repository.
    pub fn repo(&self) -> &Path {
        &self.repo
    }

    /// Writes a new executable file into the repository.
    pub fn write(&self, name: &str, content: &str) -> Result<(), DemoError> {
        let path = self.repo.join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed("create", folder))?;
        }
        let file = std::fs::File::options().write(true).create_new(true).mode(0o777).open(&path);
        file.and_then(|mut f| io::Write::write_all(&mut f, content.as_bytes()))
            .map_err(failed("write", &path))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).current_dir(&self.repo);
        command
    }

    fn check_git(&self) -> Result<(), DemoError> {
        let mut command = self.command("git");
        command.arg("version");
        match transcript(command) {
            Ok((status, _)) if status.success() => Ok(()),
            Ok(_) | Err(_) => Err(DemoError::NoGit),
        }
    }

    /// Runs a command line. Returns its exit status (`None`: a signal), and what it printed to both streams,
    /// in order.
    pub fn run(&self, typed: &str) -> Result<(Option<i32>, Vec<u8>), DemoError> {
        let words = shlex::split(typed).unwrap_or_default();
        let Some((program, args)) = words.split_first() else { return Ok((Some(0), Vec::new())) };
        let mut command = self.command(program);
        command.args(args);
        let (status, printed) = transcript(command)?;
        Ok((status.code(), printed))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = remove_tree(&self.root);
    }
}

/// Makes a new private folder where programs may be started: some machines forbid that in `/tmp`.
fn root() -> Result<PathBuf, DemoError> {
    let home = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache"));
    let candidates = [Some(std::env::temp_dir()), home, std::env::current_dir().ok()];
    let mut last = None;
    for parent in candidates.into_iter().flatten() {
        if forbids_programs(&parent) {
            continue;
        }
        let parent = std::fs::canonicalize(&parent).unwrap_or(parent);
        let root = parent.join(format!("aynig-demo-{}", uuid::Uuid::new_v4().simple()));
        match std::fs::DirBuilder::new().mode(0o700).create(&root) {
            Ok(()) => return Ok(root),
            Err(source) => last = Some(DemoError::NotMade { path: root, source }),
        }
    }
    Err(last.unwrap_or(DemoError::NoPlace))
}

fn environment(home: &Path, bin: &Path, config: &Path) -> Result<Vec<(OsString, OsString)>, DemoError> {
    let kept = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|n| PASSED.contains(&n)));
    let mut env: Vec<(OsString, OsString)> = kept.filter(|(name, _)| name != "PATH").collect();
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let path = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).map_err(DemoError::Path)?;
    env.extend([
        ("PATH".into(), path),
        ("HOME".into(), home.into()),
        ("GIT_CONFIG_GLOBAL".into(), config.into()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ("GIT_PAGER".into(), "cat".into()),
    ]);
    Ok(env)
}

//! Edits the repository's own configuration so that a kill leaves it whole and unlocked.
//!
//! `git config` edits a copy. The file itself is locked only while the copy takes its place: for three calls
//! of this process, in place of the lifetime of a child, and by a lock that is known as this tool's if the
//! process is killed between them. Implements K41, K43.

use crate::store::checkout::index_lock::{self, FileLock};
use crate::store::refs::locks::age_of;
use crate::store::repository::Repository;
use crate::store::{RefName, StoreError, io_error};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for another process that edits the configuration.
const HELD_MAX: Duration = Duration::from_secs(2);
/// How often the edit is tried, while other processes keep changing the configuration.
const ROUNDS: usize = 20;

/// Returns the path of the repository's own configuration; a link is followed, as Git does.
pub(crate) fn path(common_dir: &Path) -> PathBuf {
    let path = common_dir.join("config");
    fs::canonicalize(&path).unwrap_or(path)
}

/// Runs `git config` with these arguments on the repository's own configuration.
pub(crate) fn edit(repo: &Repository, args: &[&str]) -> Result<(), StoreError> {
    let config = path(&repo.common_dir);
    let mut lock = config.clone().into_os_string();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    // Where the configuration is a link to another folder, the copy is made in that folder:
    // nothing is renamed across disks.
    let inside = config.parent() == fs::canonicalize(&repo.common_dir).ok().as_deref();
    let folder = if inside { repo.aynig_dir() } else { config.parent().unwrap_or(&config).to_owned() };
    let copy = folder.join(format!(".new-config-{}", uuid::Uuid::new_v4()));
    let edited = || {
        for _ in 0..ROUNDS {
            let was = index_lock::identity(&config);
            fs::copy(&config, &copy).map_err(io_error("copy", &config))?;
            let git = repo.git.git().plain(None).verb("config");
            git.args([OsStr::new("--file"), copy.as_os_str()]).args(args).ok()?;
            let Some(_held) = FileLock::take(repo, lock.clone(), HELD_MAX)? else {
                let (name, age) = (RefName::new("config"), age_of(&lock));
                return Err(StoreError::LockHeld { name, path: lock.clone(), age });
            };
            if index_lock::identity(&config) == was {
                return fs::rename(&copy, &config).map_err(io_error("write", &config));
            }
        }
        let why = format!("'{}' changes faster than it can be edited", config.display());
        Err(StoreError::Git { verb: "config".into(), message: why })
    };
    let done = edited();
    if done.is_err() {
        let _ = fs::remove_file(&copy);
        // The lock of a `git config` that was killed.
        let _ = fs::remove_file(copy.with_extension("lock"));
    }
    done
}

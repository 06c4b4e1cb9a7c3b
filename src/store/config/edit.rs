//! Edits the repository's own configuration so that a kill leaves it whole and unlocked.
//!
//! `git config` edits a copy. The file itself is locked only while the copy takes its place: for three calls
//! of this process, in place of the lifetime of a child, and by a lock that is known as this tool's if the
//! process is killed between them. Implements K41, K43.

use crate::store::checkout::index_lock::{self, FileLock};
use crate::store::disk::write_beside;
use crate::store::refs::locks::age_of;
use crate::store::repository::Repository;
use crate::store::{RefName, StoreError, io_error, read_plain};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for another process that edits the configuration.
const HELD_MAX: Duration = Duration::from_secs(2);
/// Largest configuration that is put back.
const KEPT_MAX: u64 = 16 * 1024 * 1024;
/// How often the edit is tried, while other processes keep changing the configuration.
const ROUNDS: usize = 20;

/// Returns the path of the repository's own configuration; a link is followed, as Git does.
pub(crate) fn path(common_dir: &Path) -> PathBuf {
    let path = common_dir.join("config");
    fs::canonicalize(&path).unwrap_or(path)
}

/// Runs `git config` with these arguments on the repository's own configuration.
pub(crate) fn edit(repo: &Repository, args: &[&str]) -> Result<(), StoreError> {
    replace(repo, |copy| run(repo, copy, args).map(|()| true)).map(drop)
}

/// Keeps what the configuration is, with its mode, in a file of its own.
pub(crate) fn keep(repo: &Repository, to: &Path) -> Result<(), StoreError> {
    let config = path(&repo.common_dir);
    let read = || Ok((fs::read(&config)?, fs::metadata(&config)?.permissions().mode()));
    let (content, mode) = read().map_err(io_error("read", &config))?;
    let aside = to.with_extension(format!("new-{}", uuid::Uuid::new_v4()));
    write_beside(to, &aside, &content, mode & 0o777, |aside| {
        repo.share(aside);
        Ok(())
    })
}

/// Puts back what the configuration was, byte for byte, where it is that with these edits and nothing else: `git config`
/// by itself leaves headers of sections and drops blank lines. False where it is something else, which stays.
pub(crate) fn take_back(repo: &Repository, was: &Path, edits: &[&[&str]]) -> Result<bool, StoreError> {
    let Ok(was) = read_plain(was, KEPT_MAX) else { return Ok(false) };
    replace(repo, |copy| {
        let wrote = |content: &[u8]| fs::write(copy, content).map_err(io_error("write", copy));
        let is = fs::read(copy).map_err(io_error("read", copy))?;
        wrote(&was)?;
        edits.iter().try_for_each(|args| run(repo, copy, args))?;
        let is_that = fs::read(copy).map_err(io_error("read", copy))? == is;
        wrote(&was)?;
        Ok(is_that)
    })
}

fn run(repo: &Repository, file: &Path, args: &[&str]) -> Result<(), StoreError> {
    let git = repo.git.git().plain(None).verb("config");
    git.args([OsStr::new("--file"), file.as_os_str()]).args(args).ok().map(drop)
}

/// Puts a copy of the configuration, once it was changed as `change` does, in the configuration's place. False, and
/// nothing is replaced, where `change` says so.
fn replace(
    repo: &Repository,
    change: impl Fn(&Path) -> Result<bool, StoreError>,
) -> Result<bool, StoreError> {
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
            if !change(&copy)? {
                return Ok(false);
            }
            let Some(_held) = FileLock::take(repo, lock.clone(), HELD_MAX)? else {
                let (name, age) = (RefName::new("config"), age_of(&lock));
                return Err(StoreError::LockHeld { name, path: lock.clone(), age });
            };
            if index_lock::identity(&config) == was {
                return fs::rename(&copy, &config).map_err(io_error("write", &config)).map(|()| true);
            }
        }
        let why = format!("'{}' changes faster than it can be edited", config.display());
        Err(StoreError::Git { verb: "config".into(), message: why })
    };
    let done = edited();
    if !matches!(done, Ok(true)) {
        let _ = fs::remove_file(&copy);
        // The lock of a `git config` that was killed.
        let _ = fs::remove_file(copy.with_extension("lock"));
    }
    done
}

//! Branches that wait for a slot, and those that a run asked to have looked at.
//!
//! A hook's chain waits for nobody: with no slot free it notes its branch and ends, and whoever frees a slot
//! takes the noted ones on. Whoever notes looks once more for a free slot afterwards, so that none is left
//! between the two. A run notes what it set elsewhere in its private folder. Implements K14 (pending), K40.

use super::{Runner, RunnerError, io};
use crate::store::beneath::apart;
use crate::store::repository::Repository;
use crate::store::{RefName, read_plain, write_aside};
use nix::fcntl::{Flock, FlockArg};
use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A branch of a repository that is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Woken {
    /// The repository's Git directory.
    pub git_dir: PathBuf,
    /// The branch.
    pub branch: RefName,
}

/// Most that is believed of what a run noted, in bytes.
const WAKE_MAX: u64 = 1 << 20;
/// How much of a name is in its note's: file names end at 255 bytes, and each byte is two there.
const NAME_MAX: usize = 100;

/// Notes that a branch waits for a slot, or for whoever looks next; `run_id` is what its pusher was told that
/// the run would be.
pub fn note(repo: &Repository, branch: &RefName, run_id: Option<&str>) -> Result<(), RunnerError> {
    let folder = repo.aynig_dir().join("pending");
    std::fs::create_dir_all(&folder).map_err(io("create", &folder))?;
    let mut name: String = branch.as_bytes().iter().take(NAME_MAX).map(|b| format!("{b:02x}")).collect();
    if let Some(rest) = branch.as_bytes().get(NAME_MAX..).filter(|rest| !rest.is_empty()) {
        // Names may differ in their ends alone.
        let mut hasher = std::hash::DefaultHasher::new();
        rest.hash(&mut hasher);
        name += &format!("-{:016x}", hasher.finish());
    }
    let told = run_id.map(|id| [b"\0", id.as_bytes()].concat()).unwrap_or_default();
    Ok(write_aside(&folder.join(name), &[branch.as_bytes(), &told].concat())?)
}

impl Runner<'_> {
    /// Notes a branch that this runner has no slot for, and the id that its run was promised.
    pub fn note_pending(&self, branch: &RefName) -> Result<(), RunnerError> {
        let promised = self.settings.run_ids.lock().ok().and_then(|ids| ids.get(branch).cloned());
        note(self.repo, branch, promised.as_deref())
    }

    /// Takes the waiting branches on, where a slot is free for them.
    pub fn take_pending(&self) -> Result<Vec<RefName>, RunnerError> {
        let folder = self.repo.aynig_dir().join("pending");
        let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(Vec::new()) };
        let paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        if paths.is_empty() || !self.slot_is_free()? {
            return Ok(Vec::new());
        }
        let mut taken = Vec::new();
        for path in paths {
            let Ok(noted) = read_plain(&path, 64 << 10) else { continue };
            let mut fields = noted.splitn(2, |byte| *byte == 0);
            // Whoever removes the note has the branch; a half-written note is not one of ours.
            let name = RefName::new(fields.next().unwrap_or_default());
            let promised = fields.next().and_then(|id| std::str::from_utf8(id).ok());
            if name.is_valid() && std::fs::remove_file(&path).is_ok() {
                if let (Some(id), Ok(mut ids)) = (promised, self.settings.run_ids.lock())
                    && uuid::Uuid::parse_str(id).is_ok()
                {
                    ids.entry(name.clone()).or_insert_with(|| id.to_owned());
                }
                taken.push(name);
            }
        }
        taken.sort();
        Ok(taken)
    }

    fn slot_is_free(&self) -> Result<bool, RunnerError> {
        let pool = self.pool()?;
        for number in 0..self.settings.jobs {
            if let Some(slot) = pool.lock(number)?
                && self.is_taken(&slot).is_ok_and(|taken| !taken)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// True while a runner is at work on the run of this folder: what was left running may outlive it (K21).
pub fn has_runner(run_dir: &Path) -> bool {
    let lock = run_dir.join("lock");
    let Ok(file) = apart(&lock).and_then(|(folder, name)| folder.file(name)) else { return false };
    Flock::lock(file, FlockArg::LockSharedNonblock).is_err()
}

/// Notes in a run's folder that a branch is to be looked at once the run is over.
pub fn note_wake(run_dir: &Path, woken: &Woken) -> std::io::Result<()> {
    let mut line = woken.git_dir.as_os_str().as_bytes().to_vec();
    line.push(0);
    line.extend_from_slice(woken.branch.as_bytes());
    line.push(0);
    // One write each: two that note at once don't mix.
    std::fs::File::options().create(true).append(true).open(run_dir.join("wake"))?.write_all(&line)
}

/// What a run noted, each branch once.
pub fn read_wake(run_dir: &Path) -> Vec<Woken> {
    let raw = read_plain(&run_dir.join("wake"), WAKE_MAX).unwrap_or_default();
    let mut fields = raw.split(|b| *b == 0);
    let mut all: Vec<Woken> = Vec::new();
    while let (Some(dir), Some(name)) = (fields.next(), fields.next()) {
        let git_dir = PathBuf::from(OsString::from_vec(dir.to_vec()));
        let woken = Woken { git_dir, branch: RefName::new(name) };
        if woken.git_dir.is_absolute() && woken.branch.is_valid() && !all.contains(&woken) {
            all.push(woken);
        }
    }
    all
}

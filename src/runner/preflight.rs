//! The checks before a claim: a runner that could run nothing must not take a branch from others.
//!
//! The head has to be signed where that is required, and no working tree may be rebasing or bisecting the
//! branch. As a run would, the checks write to the folders that a run needs. No foreign ref may stand where
//! the refs of runs go, and the program of `aynig.exec` has to exist. Once a process has found these in
//! order, it does not check them again while the folder of runs exists. Whether Git can register a slot is
//! checked with each slot that is taken; the folder of the commands' copies only after a copy failed.
//! Implements K13, K14, K28, K35, K44, K59.

use super::report::{Skip, Verdict};
use super::{Runner, RunnerError, Tip, logs};
use crate::store::repository::Repository;
use crate::store::slots::Slot;
use crate::store::{RefName, StoreError, Unread, command_copy};
use nix::unistd::{AccessFlags, access, geteuid};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How often a folder is created anew because an uninstallation removed it meanwhile.
const PROBES: usize = 3;

/// The runner's refs are below these names. A ref that has such a name itself leaves no room for them.
pub(super) const OWN: [&str; 3] = ["refs/aynig", "refs/aynig/run", "refs/aynig/attempts"];
/// Messages, questions, pauses, flows and turns have their refs below these names. A run can do without
/// those.
pub(super) const TALK: [&str; 6] = [
    "refs/aynig/inbox",
    "refs/aynig/heard",
    "refs/aynig/asked",
    "refs/aynig/paused",
    "refs/aynig/flows",
    "refs/aynig/turns",
];

impl Runner<'_> {
    /// Returns what keeps a head with a command from being dispatched.
    pub(super) fn preflight(&self, branch: &RefName, tip: &Tip) -> Result<Option<Verdict>, RunnerError> {
        if let Some(refusal) = self.not_vouched(branch, tip)? {
            return Ok(Some(Verdict::Refused(refusal)));
        }
        if let Some(refusal) = self.not_confinable() {
            return Ok(Some(Verdict::Refused(refusal)));
        }
        let busy = self.busy_worktree(branch)?;
        Ok(busy.map(|(busy, dir)| Verdict::Skipped(Skip::Busy(busy, dir))))
    }

    /// Checks that a run could be prepared and kept in this repository, and fails where it could not.
    pub(super) fn ready(&self) -> Result<(), RunnerError> {
        let runs = self.repo.aynig_dir().join("runs");
        if self.settings.ready.get().is_none() || !runs.is_dir() {
            self.refs_in_the_way(&OWN)?;
            let unready = |what, path: &Path| {
                let path = path.to_owned();
                move |source| RunnerError::Unready { what, path, source }
            };
            let worktrees = &self.settings.worktree_dir;
            probe(self.repo, worktrees).map_err(unready("worktrees", worktrees))?;
            probe(self.repo, &runs).map_err(unready("runs", &runs))?;
            let logs = logs::create_folder(self.repo)?.0;
            probe(self.repo, &logs).map_err(unready("logs", &logs))?;
            may_write("notes of worktrees", &self.repo.aynig_dir().join("slots"))?;
            let _ = self.settings.ready.set(());
        }
        Ok(())
    }

    /// Checks what every run on this machine needs: the program of `aynig.exec`, and folders that can be
    /// written to. Once both were found in order, they are not checked again while the folder of runs exists.
    pub(super) fn check_machine(&self) -> Result<(), RunnerError> {
        if self.settings.ready.get().is_none()
            && let Some(error) = self.no_wrapper()
        {
            return Err(error);
        }
        self.ready()
    }

    /// Checks that Git can register a slot that it does not know yet, and that the registration of any other can
    /// be written to. Another account that once ran a tick here may have made that; one of this account's is
    /// mended where it is filled, whatever a command did to it.
    pub(super) fn registrable(&self, slot: &Slot) -> Result<(), RunnerError> {
        match slot.admin_dir().symlink_metadata() {
            Ok(meta) if meta.uid() == geteuid().as_raw() => Ok(()),
            Ok(_) => may_write("registrations of worktrees", slot.admin_dir()),
            Err(_) => may_write("registrations of worktrees", &self.repo.common_dir.join("worktrees")),
        }
    }

    /// Returns the error for a copy of commands that could not be made. If the folder of the copies is what
    /// can't be written to, the error says so, and is the same for all branches.
    pub(super) fn no_copy(&self, error: StoreError) -> RunnerError {
        may_write("copies of commands", &command_copy::folder(self.repo))
            .err()
            .unwrap_or_else(|| error.into())
    }

    /// Fails where a ref of the user's leaves the refs of runs no room.
    pub(crate) fn has_room_for_refs(&self) -> Result<(), RunnerError> {
        self.refs_in_the_way(&OWN)
    }

    /// Fails where a ref of the user's has the name of one of these folders, which hold the runner's refs.
    pub(super) fn refs_in_the_way(&self, folders: &[&str]) -> Result<(), RunnerError> {
        self.in_the_way_of_refs(own_folders(folders.iter().copied())).next().map_or(Ok(()), Err)
    }

    /// Returns an error for each pair whose first name is a ref. The second name of the pair stands for the refs that
    /// such a ref leaves no room for.
    pub(super) fn in_the_way_of_refs(
        &self,
        names: impl IntoIterator<Item = (RefName, RefName)>,
    ) -> impl Iterator<Item = RunnerError> {
        names.into_iter().filter_map(|(other, name)| {
            let tip = self.scratch().map(|own| own.tip(&other));
            match tip {
                Ok(Ok(None)) => None,
                Ok(Ok(Some(_))) => Some(StoreError::NameConflict { name, other }.into()),
                // No other ref is meant here, so what it points to mends nothing.
                Ok(Err(StoreError::SymbolicRef { name, target })) => {
                    Some(StoreError::UnreadableRef { name, cause: Unread::Symbolic(target) }.into())
                }
                Ok(Err(error)) => Some(error.into()),
                Err(error) => Some(error.into()),
            }
        })
    }
}

/// Returns each of these folders, which hold the runner's refs, with a name that stands for all refs in it.
pub(super) fn own_folders<'f>(
    folders: impl Iterator<Item = &'f str>,
) -> impl Iterator<Item = (RefName, RefName)> {
    folders.map(|folder| (RefName::new(folder), RefName::new(format!("{folder}/*"))))
}

/// Fails where no file can be created in a folder. Creates nothing.
fn may_write(what: &'static str, folder: &Path) -> Result<(), RunnerError> {
    writable(folder).map_err(|(path, source)| RunnerError::Unready { what, path, source })
}

/// Checks that a file can be created in a folder or, where the folder does not exist, in the nearest existing
/// one above it. The error names the folder that can't be written to, or whatever stands in a folder's place.
pub(super) fn writable(folder: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    let look = |at: &Path| access(&at.join("."), AccessFlags::W_OK | AccessFlags::X_OK);
    // In most cases the folder exists.
    if look(folder).is_ok() {
        return Ok(());
    }
    let Some(at) = folder.ancestors().find(|at| at.exists()) else { return Ok(()) };
    look(at).map_err(|errno| (at.to_owned(), errno.into()))
}

/// Creates a file in a folder and removes the file again; creates the folder first where it does not exist.
/// Tries again where another process, which removes empty folders, removed this one meanwhile.
fn probe(repo: &Repository, folder: &Path) -> std::io::Result<()> {
    let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let file = folder.join(format!(".new-{}", uuid::Uuid::new_v4()));
    let try_file = || std::fs::File::create_new(&file).and_then(|_| std::fs::remove_file(&file));
    // In most cases the folder exists.
    if try_file().is_ok() {
        return Ok(());
    }
    let mut tries = 0;
    loop {
        tries += 1;
        std::fs::create_dir_all(folder)?;
        let own = repo.aynig_dir();
        folder.ancestors().take_while(|at| at.starts_with(&own)).for_each(|at| repo.share(at));
        match try_file() {
            Err(error) if gone(&error) && tries < PROBES => {}
            done => return done,
        }
    }
}

//! The working trees of a repository: what each has checked out, and what it is in the middle of.
//!
//! Only reads, and only plain files of bounded length. gix's list is not used, because it believes a
//! registration, which a command may have written. Implements K28 (who has the branch), K45.

use crate::store::refs::reading::target_of;
use crate::store::repository::Repository;
use crate::store::{RefName, StoreError, read_plain};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The most bytes that are read of a file that holds one name.
const LINE_MAX: u64 = 64 << 10;
/// The most bytes that are read of a list of branches.
const LIST_MAX: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worktree {
    pub(crate) dir: PathBuf,
    pub(crate) git_dir: PathBuf,
    /// The branch that its HEAD names; `None` where it is detached.
    pub(crate) branch: Option<RefName>,
    /// True where its folder is away for a while, or in a place that this process does not know.
    pub(crate) away: bool,
}

/// An operation that a working tree is in the middle of, while its HEAD does not name the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// A rebase.
    Rebase,
    /// A bisection.
    Bisect,
}

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Busy::Rebase => "rebased",
            Busy::Bisect => "bisected",
        })
    }
}

/// Where a working tree is.
struct Place {
    dir: PathBuf,
    git_dir: PathBuf,
    away: bool,
}

/// Lists all working trees except the slots.
pub(crate) fn list(repo: &Repository) -> Result<Vec<Worktree>, StoreError> {
    let all = places(repo).into_iter().map(|Place { dir, git_dir, away }| {
        let branch =
            if repo.reftable { repo.git.symbolic_head(&git_dir)? } else { head(&git_dir, &repo.common_dir) };
        Ok(Worktree { dir, git_dir, branch, away })
    });
    all.collect()
}

/// Lists the working trees that are there, without the slots: the folder and the Git directory of each.
pub(crate) fn tops(repo: &Repository) -> Vec<(PathBuf, PathBuf)> {
    places(repo).into_iter().filter(|at| !at.away).map(|at| (at.dir, at.git_dir)).collect()
}

/// True where no working tree but the slots belongs to a repository.
pub(crate) fn is_alone(repo: &Repository) -> bool {
    repo.work_dir.is_none() && places(repo).is_empty()
}

/// Lists the branches that a working tree is rebasing or bisecting, and the folder of each.
pub(crate) fn busy_branches(repo: &Repository) -> Vec<(RefName, Busy, PathBuf)> {
    let of = |at: Place| busy(&at.git_dir).into_iter().map(move |(busy, name)| (name, busy, at.dir.clone()));
    places(repo).into_iter().flat_map(of).collect()
}

fn places(repo: &Repository) -> Vec<Place> {
    let mut found = Vec::new();
    let main = |dir: &Path, away| Place { dir: dir.to_owned(), git_dir: repo.common_dir.clone(), away };
    match &repo.main_dir {
        Some(dir) => found.push(main(dir, false)),
        None if repo.bare => {}
        // Where the Git directory is elsewhere, only a process that runs in the working
        // tree knows where that is.
        None => found.push(main(&repo.common_dir, true)),
    }
    let Ok(entries) = std::fs::read_dir(repo.common_dir.join("worktrees")) else { return found };
    for entry in entries.flatten() {
        let git_dir = entry.path();
        if crate::store::slots::is_slot(&git_dir) {
            continue;
        }
        let Ok(dot_git) = read_plain(&git_dir.join("gitdir"), LINE_MAX) else { continue };
        let dot_git = git_dir.join(OsStr::from_bytes(dot_git.trim_ascii_end()));
        let away = !dot_git.exists();
        // The `.git` of the folder must lead back: a registration alone, which a command may write, does not
        // make a folder a working tree.
        if !away && !leads_to(&dot_git, &git_dir) {
            continue;
        }
        // A missing working tree that is not locked was removed, and Git prunes it.
        let Some(dir) = dot_git.parent().filter(|_| !away || git_dir.join("locked").exists()) else {
            continue;
        };
        found.push(Place { dir: dir.to_owned(), git_dir, away });
    }
    found
}

/// True where the `.git` of a working tree names this Git directory.
fn leads_to(dot_git: &Path, git_dir: &Path) -> bool {
    let link = read_plain(dot_git, LINE_MAX).unwrap_or_default();
    let Some(to) = link.strip_prefix(b"gitdir: ") else { return false };
    let to = dot_git.with_file_name(OsStr::from_bytes(to.trim_ascii_end()));
    std::fs::canonicalize(to).is_ok_and(|to| std::fs::canonicalize(git_dir).is_ok_and(|dir| dir == to))
}

/// Returns the branch that a HEAD leads to, by way of other symbolic refs too; Git follows five.
/// `None` where HEAD is detached.
fn head(git_dir: &Path, common_dir: &Path) -> Option<RefName> {
    let mut name = target(&git_dir.join("HEAD"))?;
    for _ in 0..5 {
        let path = common_dir.join(OsStr::from_bytes(name.as_bytes()));
        let Some(next) = target(&path).filter(|_| name.is_valid()) else { break };
        name = next;
    }
    Some(name)
}

/// Returns what a symbolic ref names. The ref is a line in a file, or a link as the oldest Gits made them.
fn target(path: &Path) -> Option<RefName> {
    // Nothing is read through a link.
    if let Ok(raw) = read_plain(path, LINE_MAX) {
        return target_of(&raw);
    }
    let link = std::fs::read_link(path).ok()?;
    let name = link.as_os_str().as_bytes();
    name.starts_with(b"refs/").then(|| RefName::new(name))
}

/// Returns what a working tree is in the middle of, and the branches that the operation works on.
fn busy(git_dir: &Path) -> Vec<(Busy, RefName)> {
    for folder in ["rebase-merge", "rebase-apply"].map(|folder| git_dir.join(folder)) {
        if let Ok(name) = read_plain(&folder.join("head-name"), LINE_MAX) {
            // With '--update-refs' the branches on the way are moved at the end. Of each there are three lines: its
            // name, and two ids.
            let others = read_plain(&folder.join("update-refs"), LIST_MAX).unwrap_or_default();
            let others = others.split(|b| *b == b'\n').step_by(3).filter(|name| name.starts_with(b"refs/"));
            let all = std::iter::once(name.trim_ascii_end()).chain(others);
            return all.map(|name| (Busy::Rebase, RefName::new(name.to_vec()))).collect();
        }
    }
    let Ok(start) = read_plain(&git_dir.join("BISECT_START"), LINE_MAX) else { return Vec::new() };
    let start = start.trim_ascii_end();
    let name =
        if start.starts_with(b"refs/") { RefName::new(start.to_vec()) } else { RefName::branch(start) };
    vec![(Busy::Bisect, name)]
}

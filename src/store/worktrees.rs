//! The working trees of a repository: what each has checked out, and what it is in the middle of.
//!
//! Reads only. Implements K28 (who has the branch), K45.

use super::repository::Repository;
use super::{RefName, StoreError};
use std::path::{Path, PathBuf};

/// One working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder.
    pub dir: PathBuf,
    /// Its own Git directory.
    pub git_dir: PathBuf,
    /// The branch that its HEAD names; `None` where it is detached.
    pub branch: Option<RefName>,
    /// What it is in the middle of, and with which branch.
    pub busy: Option<(Busy, RefName)>,
}

/// Something that a working tree is in the middle of, with its branch not at HEAD.
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

/// All working trees, our slots left out.
pub fn list(repo: &Repository) -> Result<Vec<Worktree>, StoreError> {
    let mut found = Vec::new();
    if let Some(main) = &repo.main_dir {
        found.push(inspect(repo, main.clone(), repo.common_dir.clone())?);
    }
    let Ok(entries) = std::fs::read_dir(repo.common_dir.join("worktrees")) else {
        return Ok(found);
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(super::slots::ADMIN_PREFIX) {
            continue;
        }
        let git_dir = entry.path();
        let Ok(dot_git) = std::fs::read_to_string(git_dir.join("gitdir")) else { continue };
        let dot_git = git_dir.join(dot_git.trim_end_matches('\n'));
        let Some(dir) = dot_git.parent().filter(|_| dot_git.exists()) else { continue };
        found.push(inspect(repo, dir.to_owned(), git_dir)?);
    }
    Ok(found)
}

fn inspect(repo: &Repository, dir: PathBuf, git_dir: PathBuf) -> Result<Worktree, StoreError> {
    let branch = match head_file(&git_dir) {
        Some(name) if !repo.reftable => Some(name),
        None if !repo.reftable => None,
        _ => repo.git.symbolic_head(&git_dir)?,
    };
    let busy = busy(&git_dir);
    Ok(Worktree { dir, git_dir, branch, busy })
}

fn head_file(git_dir: &Path) -> Option<RefName> {
    let raw = std::fs::read(git_dir.join("HEAD")).ok()?;
    let name = raw.strip_prefix(b"ref: ")?;
    Some(RefName::new(name.trim_ascii_end().to_vec()))
}

fn busy(git_dir: &Path) -> Option<(Busy, RefName)> {
    for folder in ["rebase-merge/head-name", "rebase-apply/head-name"] {
        if let Ok(name) = std::fs::read(git_dir.join(folder)) {
            return Some((Busy::Rebase, RefName::new(name.trim_ascii_end().to_vec())));
        }
    }
    let start = std::fs::read(git_dir.join("BISECT_START")).ok()?;
    let start = start.trim_ascii_end();
    let name =
        if start.starts_with(b"refs/") { RefName::new(start.to_vec()) } else { RefName::branch(start) };
    Some((Busy::Bisect, name))
}

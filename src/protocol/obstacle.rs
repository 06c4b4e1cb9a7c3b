//! What keeps an outcome from a working tree that has the branch checked out. Implements K28.

use std::fmt;
use std::path::PathBuf;

/// An obstacle, told apart by what a person can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Local changes would be lost; Git's own words.
    Changes(String),
    /// Another process holds the index lock, this file.
    Lock(PathBuf),
    /// This working tree is rebasing the branch: what moves it now is dropped if the rebase is given up, and keeps
    /// it from ending.
    Rebase(PathBuf),
    /// The update could not be tried, or not be finished, for this reason.
    Failed(String),
}

impl Obstacle {
    /// Returns which obstacle it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Obstacle::Changes(_) => "local changes are in the way",
            Obstacle::Lock(_) => "another git process is at work in the working tree",
            Obstacle::Rebase(_) => "the branch is being rebased",
            Obstacle::Failed(_) => "the working tree could not follow",
        }
    }

    /// Returns this obstacle, with `dir` named in front of the local changes that are in the way there.
    #[must_use]
    pub fn seen_in(self, dir: &std::path::Path) -> Self {
        match self {
            Obstacle::Changes(words) => Obstacle::Changes(format!("in '{}': {words}", dir.display())),
            Obstacle::Lock(_) | Obstacle::Rebase(_) | Obstacle::Failed(_) => self,
        }
    }
}

impl Obstacle {
    /// Returns this obstacle. If what was done until then could not be put back in a working tree, `left` has
    /// the tree and the reason, and the result is a failure that says so.
    #[must_use]
    pub fn left_behind(self, left: Option<(&std::path::Path, &Obstacle)>) -> Self {
        let Some((dir, why)) = left else { return self };
        Obstacle::Failed(format!(
            "{self}; '{}' still has part of it, which could not be put back: {why}; once that is mended the next \
             git aynig status puts it back",
            dir.display()
        ))
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Changes(words) | Obstacle::Failed(words) => f.write_str(words),
            Obstacle::Lock(path) => write!(f, "'{}' is held by another git process", path.display()),
            Obstacle::Rebase(dir) => write!(f, "'{}' is rebasing the branch", dir.display()),
        }
    }
}

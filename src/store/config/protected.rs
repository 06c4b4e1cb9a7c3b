//! Decides which values of the configuration count for a repository: by the scope that each value came from,
//! by where the repository lies, and by nothing else.
//!
//! Nothing that the repository's own configuration says has a part in this: not `core.worktree`, not
//! `core.bare`, no include. Neither have its branch and its remotes, by which Git may choose files of the
//! account's to read. A repository is named by its Git directory, as the file system has it, and by the
//! working tree whose `.git` leads there. Calling sequence: `Site::find(..)` once, then [`Site::narrow`] on
//! every reading. Implements K33.

use crate::protocol::text::escape;
use crate::store::config::Entry;
use crate::store::{pattern, read_plain};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Keys that count only where the repository can't have set them.
const PROTECTED: &[&str] = &[
    "branches",
    "budgetperbranch",
    "budgetperday",
    "commandsfrom",
    "datadir",
    "exec",
    "include",
    "keep",
    "keepacross",
    "landonto",
    "notify",
    "passenv",
    "requiresignature",
    "sandbox",
    "sandboxconnect",
    "sandboxread",
    "sandboxwrite",
    "stallturns",
    "trailerenv",
    "worktreedir",
];

/// How the keys of providers' programs, and of flows, begin: only the account says what is started,
/// and where flows are written.
const PROTECTED_FAMILIES: &[&str] = &["flow", "provider."];

/// True for a key, without its section, that only the account can set.
pub(crate) fn is_protected(short: &str) -> bool {
    PROTECTED.contains(&short) || PROTECTED_FAMILIES.iter().any(|family| short.starts_with(family))
}

/// Most bytes of a `.git` file: a path and a few more.
pub(crate) const DOT_GIT_MAX: u64 = 16 << 10;

/// Where a repository lies, by the file system alone.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// The Git directory that all worktrees share, with no link in its path.
    common_dir: PathBuf,
    /// Every path that names the repository.
    names: Vec<PathBuf>,
}

/// What counts of a configuration, and what does not.
#[derive(Debug, Default)]
pub(crate) struct Narrowed {
    /// The keys for this repository that count, without their section (`jobs`), each with its value.
    pub(crate) counts: Vec<(String, Option<String>)>,
    /// Whole keys of the repository's own configuration that do not count.
    pub(crate) ignored: Vec<String>,
    /// The keys with which nothing may run.
    pub(crate) unsure: Vec<Unsure>,
}

/// A key of the account's of which it is not the account that says whether it holds here. What may run must not
/// depend on that, in either direction: where there is such a key, nothing may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsure {
    /// It holds only where the repository is on some branch or has some remote.
    Conditional(String),
    /// It is for a working tree that this process is not in: a `.git` there leads to the repository.
    Elsewhere(String),
}

impl Unsure {
    /// Returns the whole key.
    pub fn key(&self) -> &str {
        match self {
            Unsure::Conditional(key) | Unsure::Elsewhere(key) => key,
        }
    }

    /// Returns how the key would count, or not count, for certain.
    pub fn mend(&self) -> &'static str {
        match self {
            Unsure::Conditional(_) => "include it always, or by 'gitdir:'",
            Unsure::Elsewhere(_) => "have it name the Git directory",
        }
    }
}

impl std::fmt::Display for Unsure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = escape(self.key().as_bytes());
        match self {
            Unsure::Conditional(_) => {
                write!(f, "'{key}' is in a file that is included only for this branch or remote")
            }
            Unsure::Elsewhere(_) => {
                write!(f, "'{key}' is for a working tree that was not entered, whose '.git' leads here")
            }
        }
    }
}

impl Site {
    /// Returns where the repository lies that was found from this folder. The paths that are
    /// passed in have no link in them.
    pub(crate) fn find(from: Option<&Path>, git_dir: &Path, common_dir: &Path) -> Self {
        // Any Git directory may name another as its common one. That is believed only where it lies inside
        // the common one, as those of worktrees do.
        let inside = git_dir.parent() == Some(&common_dir.join("worktrees"));
        if git_dir != common_dir && !inside {
            return Self { common_dir: git_dir.to_owned(), names: vec![git_dir.to_owned()] };
        }
        let mut names = vec![common_dir.to_owned()];
        if common_dir.ends_with(".git") {
            names.extend(common_dir.parent().map(Path::to_owned));
        }
        names.extend(from.and_then(|from| standing_in(from, common_dir)));
        Self { common_dir: common_dir.to_owned(), names }
    }

    /// Returns the Git directory that stands for the repository, as a key for this repository alone names it.
    pub(crate) fn dir(&self) -> &Path {
        &self.common_dir
    }

    /// True where a key for this place (a path or a glob) names this repository.
    pub(crate) fn is_named_by(&self, place: impl AsRef<[u8]>) -> bool {
        let place = whole(place.as_ref());
        // What ends in a digest is no pattern.
        self.names.iter().any(|dir| match super::ends_in_digest(place) {
            true => place == super::place_of(dir).as_bytes(),
            false => pattern::path(place, dir.as_os_str().as_bytes()),
        })
    }

    /// True where a key for this place may be about this repository: it names it, or it names a working tree
    /// that this process is not in, and whose `.git` leads here.
    pub(crate) fn is_meant_by(&self, place: impl AsRef<[u8]>) -> bool {
        self.is_named_by(&place) || self.is_led_to_by(&place)
    }

    /// True where the `.git` at a place leads here. Any account may have written it that can write there, and
    /// any command that is confined to there.
    fn is_led_to_by(&self, place: impl AsRef<[u8]>) -> bool {
        let dir = Path::new(OsStr::from_bytes(whole(place.as_ref())));
        dir.is_absolute() && leads_to(dir, &self.common_dir)
    }

    /// True where a key for this place is for this repository alone: a path, and no glob.
    pub(crate) fn is_only_this(&self, place: &str) -> bool {
        let mut is_escaped = false;
        let is_plain = place.chars().all(|c| {
            let special = !is_escaped && matches!(c, '*' | '?' | '[');
            is_escaped = !is_escaped && c == '\\';
            !special
        });
        place.starts_with('/') && is_plain && self.is_named_by(place)
    }

    /// Separates what counts of a whole configuration from what does not.
    pub(crate) fn narrow(&self, all: &[Entry]) -> Narrowed {
        let mut narrowed = Narrowed::default();
        for entry in all {
            let Some((place, short)) = entry.of_ours() else { continue };
            let short = short.to_ascii_lowercase();
            let is_named = place.is_none_or(|place| self.is_named_by(place));
            if !is_named && !place.is_some_and(|place| self.is_led_to_by(place)) {
                continue;
            }
            if is_protected(&short) && !entry.protected {
                narrowed.ignored.push(entry.key.clone());
            } else if is_protected(&short) && entry.conditional {
                narrowed.unsure.push(Unsure::Conditional(entry.key.clone()));
            } else if is_protected(&short) && !is_named {
                narrowed.unsure.push(Unsure::Elsewhere(entry.key.clone()));
            } else {
                narrowed.counts.push((short, entry.value.clone()));
            }
        }
        if !narrowed.unsure.is_empty() {
            narrowed.counts.push(("commandsfrom".to_owned(), Some("none".to_owned())));
        }
        narrowed
    }
}

/// True where the account's own configuration lets commands run (`aynig.commandsFrom`) in the repository at
/// this path, which is not opened for that. Without `plainly` only a setting counts that names it, and none for
/// all repositories or for those of a pattern.
pub(crate) fn is_trusted_at(all: &[Entry], git_dir: &Path, plainly: bool) -> bool {
    if !std::fs::canonicalize(git_dir).is_ok_and(|whole| whole == git_dir) {
        return false;
    }
    let site = Site::find(Some(git_dir), git_dir, git_dir);
    let counts = all.iter().filter(|entry| entry.protected && !entry.conditional);
    let mut said = counts.filter(|entry| match entry.of_ours() {
        Some((Some(place), "commandsfrom")) => {
            (plainly || !place.contains(['*', '?', '[', '\\'])) && site.is_named_by(place)
        }
        Some((None, "commandsfrom")) => plainly,
        Some(_) | None => false,
    });
    said.next_back()
        .and_then(|entry| entry.value.as_deref())
        .is_some_and(|value| !matches!(value, "" | "none"))
}

/// Returns the places that the account gives confined commands to write (`aynig.sandboxWrite`), those of all
/// repositories that this configuration names.
pub(crate) fn given_to_commands(all: &[Entry]) -> Vec<PathBuf> {
    let counts = |entry: &&Entry| {
        entry.protected && entry.of_ours().is_some_and(|(_, name)| name.eq_ignore_ascii_case("sandboxwrite"))
    };
    let values = all.iter().filter(counts).filter_map(|entry| entry.value.as_deref());
    let resolved = |dir: PathBuf| std::fs::canonicalize(&dir).unwrap_or(dir);
    values.filter_map(absolute).map(resolved).collect()
}

/// Returns the path that a value names: absolute, or below the account's home where it begins with `~/`.
pub(crate) fn absolute(value: &str) -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").filter(|home| !home.is_empty());
    match value.strip_prefix("~/") {
        Some(rest) => home().map(|home| Path::new(&home).join(rest)),
        None => value.starts_with('/').then(|| PathBuf::from(value)),
    }
}

/// Returns a place without the slashes at its end.
fn whole(place: &[u8]) -> &[u8] {
    let cut = place.iter().rposition(|b| *b != b'/').map_or(1, |last| last + 1);
    &place[..cut.min(place.len())]
}

/// Returns the first folder, from this one upwards, whose `.git` leads to this Git directory.
pub(crate) fn standing_in(from: &Path, git_dir: &Path) -> Option<PathBuf> {
    from.ancestors().find(|dir| leads_to(dir, git_dir)).map(Path::to_owned)
}

/// True where the `.git` of a folder is this Git directory, or a file that leads there.
pub(crate) fn leads_to(dir: &Path, git_dir: &Path) -> bool {
    let dot_git = dir.join(".git");
    if dot_git == git_dir {
        return true;
    }
    let named = match read_plain(&dot_git, DOT_GIT_MAX) {
        Ok(file) => {
            file.strip_prefix(b"gitdir: ").map(|path| dir.join(OsStr::from_bytes(path.trim_ascii_end())))
        }
        // Most places that a configuration names are other repositories, many of them gone.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return false,
        Err(_) => None,
    };
    std::fs::canonicalize(named.unwrap_or(dot_git)).is_ok_and(|there| there == git_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K33, S25: who is named by a key, without any configuration
    #[test]
    fn a_git_directory_speaks_for_itself_and_not_for_the_one_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let (good, evil) = (root.join("good/.git"), root.join("evil/.git"));
        std::fs::create_dir_all(good.join("worktrees/one")).unwrap();
        std::fs::create_dir_all(evil.join("worktrees/one")).unwrap();
        let named = |site: &Site, dir: &Path| site.is_meant_by(dir.to_str().unwrap());
        let site = Site::find(Some(&root), &good.join("worktrees/one"), &good);
        assert!(named(&site, &good) && named(&site, &root.join("good")) && !named(&site, &evil));
        // A `commondir` file can say anything.
        for git_dir in [&evil, &evil.join("worktrees/one"), &good.join("worktrees/one/deeper")] {
            let site = Site::find(Some(&root), git_dir, &good);
            assert!(!named(&site, &good) && !named(&site, &root.join("good")), "{git_dir:?}");
            assert!(named(&site, git_dir));
        }
    }

    /// K33, N9: a program of agents, and where flows are written, is what the account says, whatever a repository says
    #[test]
    fn a_repository_names_no_program_of_a_provider() {
        let site = Site { common_dir: "/srv/x/.git".into(), names: vec!["/srv/x".into()] };
        let entry = |key: &str, protected, conditional| Entry {
            key: key.to_owned(),
            value: Some("v".to_owned()),
            protected,
            conditional,
        };
        let keys =
            ["aynig.provider.Custom.command", "aynig.provider.a.b.env", "aynig.datadir", "aynig.flowhops"];
        for key in keys {
            let narrowed = site.narrow(&[entry(key, false, false)]);
            assert!(narrowed.counts.is_empty() && narrowed.ignored == [key], "{key}: {narrowed:?}");
            let narrowed = site.narrow(&[entry(key, true, false)]);
            let short = key.strip_prefix("aynig.").unwrap().to_ascii_lowercase();
            assert_eq!(narrowed.counts, [(short, Some("v".to_owned()))]);
            let narrowed = site.narrow(&[entry(key, true, true)]);
            assert_eq!(narrowed.unsure, [Unsure::Conditional(key.to_owned())]);
            assert_eq!(narrowed.counts, [("commandsfrom".to_owned(), Some("none".to_owned()))], "{key}");
        }
        // A key for one place is protected as the same key without a place is.
        let here = site.narrow(&[entry("aynig./srv/x.flowhops", false, false)]);
        assert_eq!(here.ignored, ["aynig./srv/x.flowhops"]);
    }
}

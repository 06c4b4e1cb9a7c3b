//! Makes a repository that a command made safe for a person to look into.
//!
//! Git starts programs that a repository's own configuration names, and its hooks. So a kept repository
//! retains only what says how it is stored and where its remotes are: no program, no hook, and no working
//! tree, which no longer exists. Implements K26.

use crate::store::repository::Repository;
use crate::store::{beneath::Root, is_plain, remove_tree};
use std::path::Path;

/// The keys of `extensions` that stay.
const EXTENSIONS: &[&str] = &["objectformat", "refstorage", "compatobjectformat"];
/// The keys of a remote that stay.
const OF_A_REMOTE: &[&str] = &["url", "pushurl", "fetch"];

/// Writes the configuration of the repository in this folder anew, and removes its hooks.
pub(super) fn tame(repo: &Repository, git_dir: &Path, slots: &Path) -> std::io::Result<()> {
    let config = git_dir.join("config");
    if config.symlink_metadata().is_ok() && !is_plain(&config) {
        // A link or a folder here says nothing about how the repository is stored.
        remove_tree(&config)?;
    }
    let said = is_plain(&config).then(|| repo.git.config_file(&config).ok()).flatten().unwrap_or_default();
    let entries = said.split(|byte| *byte == 0).filter_map(|entry| {
        let text = std::str::from_utf8(entry).ok()?;
        text.split_once('\n')
    });
    let mut content = String::from("[core]\n\tbare = true\n\thooksPath = /dev/null\n");
    let mut version = "0";
    for (key, value) in entries {
        let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
        let remote = section.strip_prefix("remote.").filter(|_| OF_A_REMOTE.contains(&name));
        match (section, remote) {
            ("core", _) if name == "repositoryformatversion" && value == "1" => version = "1",
            ("extensions", _) if EXTENSIONS.contains(&name) => {
                content += &format!("[extensions]\n\t{name} = {}\n", quoted(value));
            }
            (_, Some(_)) if name != "fetch" && leads_inside(&[&repo.common_dir, slots], value) => {}
            (_, Some(remote)) => {
                content += &format!("[remote {}]\n\t{name} = {}\n", quoted(remote), quoted(value));
            }
            _ => {}
        }
    }
    content += &format!("[core]\n\trepositoryFormatVersion = {version}\n");
    for gone in ["hooks", "config.worktree", "commondir"] {
        remove_tree(&git_dir.join(gone))?;
    }
    Ok(Root::open(git_dir)?.replace(Path::new("config"), content.as_bytes(), 0o644)?)
}

/// True for an address whose repository, and so its hooks, the command probably made itself: a path below one
/// of these folders, one that does not exist, or a relative one. Also true for an address that would start a
/// program.
fn leads_inside(folders: &[&Path], address: &str) -> bool {
    let path = address.strip_prefix("file://").unwrap_or(address);
    let at_host = path.find(':').is_some_and(|colon| !path[..colon].contains('/'));
    if path.contains("::") {
        // Git would start a program that the address names.
        return true;
    }
    if path.contains("://") || at_host {
        return false;
    }
    let path = Path::new(path);
    let mut folders = folders.iter().filter_map(|folder| folder.canonicalize().ok());
    path.is_relative()
        || path.canonicalize().map_or(true, |path| folders.any(|folder| path.starts_with(folder)))
}

/// True for a folder that Git takes for a repository, whatever it is called.
pub(super) fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Returns a value, or the name of a subsection, quoted as configuration needs it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

//! Fetches a pack, and judges its content before any of it is written.

use super::{File, Folder, Kind, Origin, Pack, PackError, Refusal};
use crate::protocol::id::ObjectId;
use crate::store::StoreError;
use crate::store::git::command::{Git, GitCommand};
use crate::store::repository::Repository;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Most files of a pack.
const FILES_MAX: usize = 10_000;
/// Most bytes of one file.
const FILE_MAX: u64 = 64 << 20;
/// Most bytes of all files of a pack together.
const PACK_MAX: u64 = 256 << 20;
/// Longest target of a symbolic link, in bytes.
const TARGET_MAX: u64 = 4096;

impl Pack {
    /// Fetches one commit of a repository, and judges the pack in it.
    pub(crate) fn fetch(repo: &Repository, origin: &Origin) -> Result<Self, PackError> {
        let aynig = repo.aynig_dir();
        repo.make(&aynig)?;
        // By this name `git aynig gc` recognizes a leftover.
        let folder = Folder(aynig.join(format!(".new-pack-{}", uuid::Uuid::new_v4())));
        // Unconfined: the address is the caller's own, and the repository that it is fetched into is new, so
        // no untrusted configuration takes part.
        let git = repo.git.git().at_liberty();
        let place = &folder.0;
        let fetched = match origin.reference.as_deref().filter(|r| is_commit_id(r)) {
            Some(id) => fetch_commit(&git, place, &origin.url, id),
            None => clone(&git, place, origin),
        };
        fetched.map_err(|source| PackError::Fetch { shown: origin.shown(), source })?;
        let wanted = origin.reference.as_deref().filter(|r| is_commit_id(r)).unwrap_or("HEAD");
        let args = ["--verify", "--quiet", "--end-of-options", &format!("{wanted}^{{commit}}")];
        let found = git.command(place).verb("rev-parse").args(args).output()?;
        let Ok(commit) = ObjectId::from_hex(found.stdout.trim_ascii()) else {
            return Err(PackError::Empty { shown: origin.shown() });
        };
        let mut pack = Pack { commit, files: Vec::new(), left_out: 0, git, folder };
        pack.take(origin)?;
        Ok(pack)
    }

    /// Lists the pack's folder, judges every entry, and takes the files over if all are sound.
    fn take(&mut self, origin: &Origin) -> Result<(), PackError> {
        let mut folder = origin.pack_folder();
        let list = |tree: &str, more: &[&str]| {
            let tree = format!("{}:{tree}", self.commit);
            self.command().verb("ls-tree").args(more).args(["-z", "-l", &tree]).output()
        };
        let mut listed = list(&folder, &["-r"])?;
        if !listed.status.success() && self.is_pack_itself(&origin.folder)? {
            folder.clone_from(&origin.folder);
            listed = list(&folder, &["-r"])?;
        }
        let no_pack = || PackError::NoPack { shown: origin.shown(), folder, commit: self.commit };
        if !listed.status.success() {
            return Err(no_pack());
        }
        let (mut files, mut refused, mut left_out, mut total) = (Vec::new(), Vec::new(), 0, 0u64);
        for line in listed.stdout.split(|b| *b == 0).filter(|l| !l.is_empty()) {
            let entry = Entry::parse(line)?;
            if top(entry.path).eq_ignore_ascii_case(b"logs") {
                left_out += 1;
                continue;
            }
            total = total.saturating_add(entry.size);
            match entry.judge().and_then(|kind| self.judge_link(&entry, kind)) {
                _ if files.len() >= FILES_MAX || total > PACK_MAX => {
                    let why = "the pack is too large (10000 files, 256 MiB)";
                    refused.push(Refusal { path: entry.path.to_vec(), why });
                    break;
                }
                Ok(kind) => files.push(File { path: entry.path.to_vec(), kind, id: entry.id }),
                Err(why) => refused.push(Refusal { path: entry.path.to_vec(), why }),
            }
        }
        if !refused.is_empty() {
            return Err(PackError::Refused(refused));
        }
        if files.is_empty() {
            return Err(no_pack());
        }
        (self.files, self.left_out) = (files, left_out);
        Ok(())
    }

    /// True where a folder holds what `.aynig/` would hold: commands, by state or by role.
    fn is_pack_itself(&self, folder: &str) -> Result<bool, StoreError> {
        if folder.is_empty() {
            // The top of a repository is never a pack, even where it has a folder named `command` or `roles`.
            return Ok(false);
        }
        for below in ["command", "roles"] {
            let tree = format!("{}:{folder}/{below}", self.commit);
            if self.command().verb("ls-tree").args([&tree]).output()?.status.success() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn judge_link(&self, entry: &Entry<'_>, kind: Kind) -> Result<Kind, &'static str> {
        if kind != Kind::Link {
            return Ok(kind);
        }
        if entry.size > TARGET_MAX {
            return Err("a symbolic link whose target is too long");
        }
        let target = self.blob(entry.id).map_err(|_| "a symbolic link that cannot be read")?;
        match stays_inside(entry.path, &target) {
            true => Ok(kind),
            false => Err("a symbolic link that leaves .aynig/"),
        }
    }

    /// Returns a `git` command on the repository that was fetched.
    pub(super) fn command(&self) -> GitCommand {
        self.git.command(&self.folder.0)
    }

    /// Returns the folder of the repository that was fetched.
    pub(super) fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// Returns the content of one of the pack's files.
    pub(super) fn content(&self, file: &File) -> Result<Vec<u8>, StoreError> {
        self.blob(file.id)
    }

    pub(super) fn blob(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        self.command().verb("cat-file").args(["blob", &id.to_string()]).ok()
    }
}

fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Fetches the newest commit of a branch, of a tag or of HEAD. The clone takes over the remote's hash
/// function.
fn clone(git: &Git, place: &Path, origin: &Origin) -> Result<(), StoreError> {
    let mut command = git.command(place).foreground().verb("clone").args(["-q", "--bare"]);
    // Through the transport even from a path: then no objects are hard-linked to another repository's, and
    // the clone can be shallow.
    command = command.args(["--no-local", "--depth=1", "--no-tags", "--no-recurse-submodules"]);
    // An empty template, so that none brings a hook.
    command = command.args(["--template="]);
    if let Some(name) = &origin.reference {
        let short = ["refs/heads/", "refs/tags/"].iter().find_map(|p| name.strip_prefix(p));
        command = command.args([format!("--branch={}", short.unwrap_or(name))]);
    }
    command.args([OsStr::new("--"), &origin.url, place.as_os_str()]).ok().map(drop)
}

/// Fetches a commit by its id, whose length says which hash function the repository uses.
fn fetch_commit(git: &Git, place: &Path, url: &OsStr, id: &str) -> Result<(), StoreError> {
    let hash = if id.len() == 64 { "sha256" } else { "sha1" };
    let init = git.plain(None).verb("init").args(["-q", "--bare", "--template="]);
    init.args([OsString::from(format!("--object-format={hash}")), place.into()]).ok()?;
    let fetch = git.command(place).foreground().verb("fetch").args(["-q", "--depth=1", "--no-tags"]);
    let fetch = fetch.args(["--no-recurse-submodules", "--no-write-fetch-head", "--"]);
    fetch.args([url, OsStr::new(&format!("{id}:refs/heads/pack"))]).ok().map(drop)
}

/// One line of `git ls-tree -r -l -z`.
pub(super) struct Entry<'a> {
    mode: &'a [u8],
    pub(super) id: ObjectId,
    pub(super) size: u64,
    pub(super) path: &'a [u8],
}

impl<'a> Entry<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, StoreError> {
        let parsed = || {
            let tab = line.iter().position(|b| *b == b'\t')?;
            let mut words = line[..tab].split(|b| *b == b' ').filter(|w| !w.is_empty());
            let (mode, _kind, id, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
            let id = ObjectId::from_hex(id).ok()?;
            let size = match size {
                // A submodule has no size.
                b"-" => 0,
                size => std::str::from_utf8(size).ok()?.parse().ok()?,
            };
            Some(Entry { mode, id, size, path: &line[tab + 1..] })
        };
        parsed().ok_or_else(|| StoreError::Git {
            verb: "ls-tree".to_owned(),
            message: format!("unexpected line '{}'", line.escape_ascii()),
        })
    }

    pub(super) fn judge(&self) -> Result<Kind, &'static str> {
        if !self.path.split(|b| *b == b'/').all(is_safe) {
            return Err("a name that is not safe in a working tree");
        }
        if top(self.path).eq_ignore_ascii_case(super::place::STAGE.as_bytes()) {
            return Err("a name that the installation itself uses");
        }
        if self.size > FILE_MAX {
            return Err("larger than 64 MiB");
        }
        match self.mode {
            b"120000" => Ok(Kind::Link),
            b"160000" => Err("a submodule"),
            mode if mode.starts_with(b"100") => {
                let executable = mode.last().is_some_and(|d| (d - b'0') & 1 == 1);
                Ok(if executable { Kind::Executable } else { Kind::Plain })
            }
            _ => Err("neither a regular file nor a symbolic link"),
        }
    }
}

fn top(path: &[u8]) -> &[u8] {
    path.split(|b| *b == b'/').next().unwrap_or(path)
}

/// True for a path segment that Git would check out on any system, and that no file system takes for `.git`.
fn is_safe(name: &[u8]) -> bool {
    let plain = !matches!(name, b"" | b"." | b"..") && !name.contains(&0) && !name.contains(&b'\\');
    let text = String::from_utf8_lossy(name);
    // Some file systems ignore certain characters of a name.
    let seen: String = text.chars().filter(|c| !is_unseen(*c)).collect();
    let seen = seen.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    plain && seen != ".git" && !seen.starts_with("git~") && !seen.starts_with(".git:")
}

/// True for a character that HFS+ ignores in a name.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// True where a link can't lead out of `.aynig/`: its target is relative, and goes up only at its beginning.
/// A `..` after a name could go up from wherever another link of that name leads.
fn stays_inside(path: &[u8], target: &[u8]) -> bool {
    let depth = path.iter().filter(|b| **b == b'/').count();
    let parts: Vec<&[u8]> = target.split(|b| *b == b'/').collect();
    let begins = parts.iter().take_while(|part| matches!(**part, b".." | b".")).count();
    let (begin, rest) = parts.split_at(begins);
    let up = begin.iter().filter(|part| **part == b"..").count();
    !target.starts_with(b"/") && !target.contains(&0) && up <= depth && !rest.contains(&b"..".as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_may_go_up_only_first_and_never_out() {
        let ok = |path: &str, target: &str| stays_inside(path.as_bytes(), target.as_bytes());
        assert!(ok("command/build", "../lib/build"));
        assert!(ok("command/build", "./other"));
        assert!(ok("command/deep/er", "../../lib"));
        assert!(!ok("command/build", "../../outside"));
        assert!(!ok("link", ".."));
        assert!(!ok("command/build", "/bin/sh"));
        // As written this stays inside; it goes outside where `link` leads to the top.
        assert!(!ok("x", "a/b/link/.."));
        assert!(!ok("command/build", "../lib/../../x"));
    }

    #[test]
    fn names_of_gits_are_refused_as_any_file_system_sees_them() {
        for bad in [".git", ".GIT", ".git.", ".git ", "git~1", ".g\u{200c}it", ".git:x", "..", "a\\b"] {
            assert!(!is_safe(bad.as_bytes()), "{bad}");
        }
        for good in [".gitignore", ".gitattributes", "git", "build", "a b", "\u{e9}"] {
            assert!(is_safe(good.as_bytes()), "{good}");
        }
    }
}

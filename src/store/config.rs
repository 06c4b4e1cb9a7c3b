//! Configuration as Git sees it, each value with the scope it came from.
//!
//! gix reads the files in process. Where Git would see more than gix does (`git -c`, a system file
//! below another prefix), Git itself is asked. Implements K33 (scopes).

use super::StoreError;
use super::repository::Repository;
use gix::config::source::Kind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One value of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Section and key in lower case, the subsection between them as written: `aynig./srv/x.git.commandsfrom`.
    pub key: String,
    /// The value; `None` for a key without `=`.
    pub value: Option<String>,
    /// True where the repository itself can't have set it: system, global, command line.
    pub protected: bool,
}

/// Sections that are ever asked for.
const SECTIONS: &[&str] = &["aynig", "user"];

/// All values of our sections, in Git's order: the last one of a key wins.
pub fn read(repo: &Repository) -> Result<Vec<Entry>, StoreError> {
    if std::env::var_os("GIT_CONFIG_PARAMETERS").is_some() || other_system_file(repo).is_some() {
        return read_by_git(repo);
    }
    let gix = repo.gix();
    let snapshot = gix.config_snapshot();
    let mut entries = Vec::new();
    for section in snapshot.plumbing().sections() {
        let name = section.header().name().to_string().to_ascii_lowercase();
        if !SECTIONS.contains(&name.as_str()) {
            continue;
        }
        let prefix = match section.header().subsection_name() {
            Some(sub) => format!("{name}.{sub}"),
            None => name,
        };
        // Named one by one: what is not known to be the account's is the repository's.
        let protected = match section.meta().source.kind() {
            Kind::GitInstallation | Kind::System | Kind::Global | Kind::Override => true,
            Kind::Repository => false,
        };
        let mut seen = std::collections::HashMap::<String, usize>::new();
        for key in section.value_names() {
            let key = key.to_string().to_ascii_lowercase();
            let nth = seen.entry(key.clone()).or_default();
            let value = section.values(&key).get(*nth).map(|v| v.to_string());
            let value = if section.value_implicit(&key).is_some_and(|v| v.is_none()) { None } else { value };
            *nth += 1;
            entries.push(Entry { key: format!("{prefix}.{key}"), value, protected });
        }
    }
    Ok(entries)
}

/// The key of ours that is for this repository and no other: what is special in a glob is taken literally, and
/// what a key can't hold (bytes that are not UTF-8, line feeds) is matched by `?`.
pub fn key_of(common_dir: &Path, key: &str) -> String {
    let mut place = String::new();
    for chunk in common_dir.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => place.push('?'),
                '*' | '?' | '[' | '\\' => place.extend(['\\', c]),
                c => place.push(c),
            }
        }
        place.extend(chunk.invalid().iter().map(|_| '?'));
    }
    format!("aynig.{place}.{key}")
}

/// The system-wide file of a Git that lives below another prefix than `/usr`, which gix does not read.
fn other_system_file(repo: &Repository) -> Option<PathBuf> {
    if std::env::var_os("GIT_CONFIG_NOSYSTEM").is_some() || std::env::var_os("GIT_CONFIG_SYSTEM").is_some() {
        return None;
    }
    let bin = std::fs::canonicalize(repo.git.git().program()).ok()?;
    let prefix = bin
        .ancestors()
        .find(|dir| matches!(dir.file_name().and_then(|n| n.to_str()), Some("bin" | "libexec" | "lib")))?;
    let prefix = prefix.parent()?;
    let file = prefix.join("etc/gitconfig");
    (prefix != Path::new("/usr") && prefix != Path::new("/") && file.exists()).then_some(file)
}

fn read_by_git(repo: &Repository) -> Result<Vec<Entry>, StoreError> {
    let output = repo.git.config_list(&repo.git_dir)?;
    let mut entries = Vec::new();
    let mut fields = output.split(|b| *b == 0);
    while let (Some(scope), Some(pair)) = (fields.next(), fields.next()) {
        let pair = String::from_utf8_lossy(pair);
        let (key, value) = match pair.split_once('\n') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (&*pair, None),
        };
        let Some((section, _)) = key.split_once('.') else { continue };
        if SECTIONS.contains(&section) {
            let protected = matches!(scope, b"system" | b"global" | b"command");
            entries.push(Entry { key: key.to_owned(), value, protected });
        }
    }
    Ok(entries)
}

/// What of a `trailer.<token>.*` has Git see trailers by that token.
const OF_TOKENS: &[&[u8]] = &[b"key", b"where", b"ifexists", b"ifmissing", b"command", b"cmd"];

/// Keys of the whole configuration under which Git itself sees other trailers than we do (K1), as written; only
/// what is in force of those that replace each other.
pub fn other_trailers(repo: &Repository) -> Result<Vec<Vec<u8>>, StoreError> {
    let output = repo.git.config_list(&repo.git_dir)?;
    let (mut separators, mut sign, mut tokens) = (None, None, Vec::new());
    for pair in output.split(|b| *b == 0).skip(1).step_by(2) {
        let (key, value) = match pair.iter().position(|b| *b == b'\n') {
            Some(end) => (&pair[..end], &pair[end + 1..]),
            None => (pair, &b""[..]),
        };
        match key {
            b"trailer.separators" => separators = (value != b":").then(|| key.to_vec()),
            b"core.commentchar" | b"core.commentstring" => {
                sign = (!matches!(value, b"#" | b"auto")).then(|| key.to_vec());
            }
            _ => {
                let token =
                    key.strip_prefix(b"trailer.").and_then(|rest| rest.rsplitn(2, |b| *b == b'.').next());
                // Without a token in between it is a default for all.
                let named = key.iter().filter(|b| **b == b'.').count() > 1;
                if named
                    && token.is_some_and(|what| OF_TOKENS.contains(&what))
                    && !tokens.contains(&key.to_vec())
                {
                    tokens.push(key.to_vec());
                }
            }
        }
    }
    Ok([separators, sign].into_iter().flatten().chain(tokens).collect())
}

//! Configuration as Git sees it, each value with the scope it came from.
//!
//! gix reads the files in process. Git itself is asked where it would see more than gix does (`git -c`, a
//! system file below another prefix), and where the repository decides which files of the account's are
//! read (an `includeIf` on its branch or its remotes). A key or value that is not UTF-8 is refused by
//! name where it would count: a setting that was dropped, or misread, could be the one that confines
//! commands. Implements K33 (scopes).

pub(crate) mod edit;
pub(crate) mod protected;

use crate::protocol::text::{escape, hex};
use crate::store::StoreError;
use crate::store::repository::Repository;
use gix::config::source::Kind;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One value of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Section and key in lower case, the subsection between them as written: `aynig./srv/x.git.commandsfrom`.
    pub(crate) key: String,
    /// The value; `None` for a key without `=`.
    pub(crate) value: Option<String>,
    /// True where the repository itself can't have set it: system, global, command line.
    pub(crate) protected: bool,
    /// True where the value stands in a file that one of these scopes includes only if the repository is on
    /// some branch or has some remote, so that the repository decides whether the value holds.
    pub(crate) conditional: bool,
}

impl Entry {
    /// Returns what a key of ours is made of: the place that it is for, a Git directory or a glob, and its name. `None`
    /// for a key of another section.
    pub(crate) fn of_ours(&self) -> Option<(Option<&str>, &str)> {
        let rest = self.key.strip_prefix("aynig.")?;
        Some(match rest.rsplit_once('.') {
            // `provider.<name>` is no place, but names a provider of agents.
            Some((place, name)) if !place.starts_with("provider.") => (Some(place), name),
            Some(_) | None => (None, rest),
        })
    }
}

/// The sections that are read.
const SECTIONS: &[&str] = &["aynig", "user", "commit"];

/// Reads all values of these sections, in Git's order: the last one of a key wins.
pub(crate) fn read(repo: &Repository) -> Result<Vec<Entry>, StoreError> {
    if std::env::var_os("GIT_CONFIG_PARAMETERS").is_some() || other_system_file(repo).is_some() {
        return read_by_git(repo);
    }
    match in_process(repo)? {
        Some(entries) => Ok(entries),
        None => read_by_git(repo),
    }
}

/// Reads what gix reads; `None` where the repository decides which files of the account's count.
fn in_process(repo: &Repository) -> Result<Option<Vec<Entry>>, StoreError> {
    let gix = repo.as_opened();
    let snapshot = gix.config_snapshot();
    let mut entries = Vec::new();
    for section in snapshot.plumbing().sections() {
        let name = section.header().name().to_string().to_ascii_lowercase();
        // Every kind is named: only those that are known to be the account's are protected.
        let protected = match section.meta().source.kind() {
            Kind::GitInstallation | Kind::System | Kind::Global | Kind::Override => true,
            Kind::Repository => false,
        };
        let place = section.header().subsection_name();
        if protected && name == "includeif" && place.is_some_and(|condition| is_repositorys(condition)) {
            return Ok(None);
        }
        if !SECTIONS.contains(&name.as_str()) {
            continue;
        }
        let prefix = match place {
            Some(place) => [name.as_bytes(), place].join(&b'.'),
            None => name.into_bytes(),
        };
        let mut seen = std::collections::HashMap::<String, usize>::new();
        for key in section.value_names() {
            let key = key.to_string().to_ascii_lowercase();
            let nth = seen.entry(key.clone()).or_default();
            let value = section.values(&key).get(*nth).map(|v| v.to_vec());
            let value = if section.value_implicit(&key).is_some_and(|v| v.is_none()) { None } else { value };
            *nth += 1;
            let key = [&*prefix, key.as_bytes()].join(&b'.');
            entries.extend(entry(repo, &key, value.as_deref(), protected, false)?);
        }
    }
    Ok(Some(entries))
}

/// True for the condition of an `includeIf` that is about anything but where the Git directory is.
fn is_repositorys(condition: &[u8]) -> bool {
    ![&b"gitdir:"[..], b"gitdir/i:"].iter().any(|about| condition.starts_with(about))
}

/// Returns a key and its value as text. One that is not UTF-8 is an error where it would count, and `None`
/// where it is for another repository or is never asked for.
fn entry(
    repo: &Repository,
    key: &[u8],
    value: Option<&[u8]>,
    protected: bool,
    conditional: bool,
) -> Result<Option<Entry>, StoreError> {
    let text = std::str::from_utf8(key).ok().map(str::to_owned);
    let said = value.map(|value| std::str::from_utf8(value).map(str::to_owned)).transpose().ok();
    if let (Some(key), Some(value)) = (text, said) {
        return Ok(Some(Entry { key, value, protected, conditional }));
    }
    let counts = match key.strip_prefix(b"aynig.") {
        Some(rest) => rest.rsplitn(2, |b| *b == b'.').nth(1).is_none_or(|place| repo.site.is_meant_by(place)),
        None => [&b"user.name"[..], b"user.email"].contains(&key),
    };
    if counts { Err(StoreError::NotText { key: escape(key) }) } else { Ok(None) }
}

/// Returns the `aynig.` key that is for this repository and no other.
pub(crate) fn key_of(common_dir: &Path, key: &str) -> String {
    format!("aynig.{}.{key}", place_of(common_dir))
}

/// Returns a path as a key names it, and no other ([`protected`]): characters that are special in a glob are escaped. A path that a
/// key can't hold (bytes that are not UTF-8, line feeds) is named by its digest, after what can be read of it.
pub(super) fn place_of(path: &Path) -> String {
    let raw = path.as_os_str().as_bytes();
    let escaped = |text: &str| {
        let special = |c: &char| matches!(c, '*' | '?' | '[' | '\\');
        text.chars().flat_map(|c| special(&c).then_some('\\').into_iter().chain([c])).collect::<String>()
    };
    match std::str::from_utf8(raw) {
        // A path that looks like the place of another one has a digest too.
        Ok(text) if !text.contains('\n') && !ends_in_digest(raw) => escaped(text),
        _ => {
            let readable = raw.utf8_chunks().map(|chunk| chunk.valid().replace('\n', "")).collect::<String>();
            format!("{}#{}", escaped(&readable), hex(&Sha256::digest(raw)[..16]))
        }
    }
}

/// True for a place, or a path, that ends as [`place_of`] ends one that can be written in no key.
fn ends_in_digest(place: &[u8]) -> bool {
    let digest = place.rsplit(|byte| *byte == b'#').next().filter(|rest| rest.len() < place.len());
    digest.is_some_and(|hex| hex.len() == 32 && hex.iter().all(u8::is_ascii_hexdigit))
}

/// Returns the system-wide file of a Git that lives below another prefix than `/usr`;
/// gix does not read that file.
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
    let (mut entries, mut files) = (Vec::new(), Files::default());
    for line in lines(&output) {
        let conditional = files.is_conditional(&line);
        let section = line.key.split(|b| *b == b'.').next().unwrap_or_default();
        if SECTIONS.iter().any(|ours| ours.as_bytes() == section) {
            entries.extend(entry(repo, line.key, line.value, line.is_protected(), conditional)?);
        }
    }
    Ok(entries)
}

/// One entry of Git's list of the configuration.
struct Line<'a> {
    scope: &'a [u8],
    origin: &'a [u8],
    key: &'a [u8],
    value: Option<&'a [u8]>,
}

impl Line<'_> {
    fn is_protected(&self) -> bool {
        matches!(self.scope, b"system" | b"global" | b"command")
    }
}

fn lines(output: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut fields = output.split(|b| *b == 0);
    std::iter::from_fn(move || {
        let (scope, origin, pair) = (fields.next()?, fields.next()?, fields.next()?);
        let mut pair = pair.splitn(2, |b| *b == b'\n');
        Some(Line { scope, origin, key: pair.next().unwrap_or_default(), value: pair.next() })
    })
}

/// The files that include one another, followed through Git's list, where the values of an included file come
/// right after the value that includes it.
#[derive(Default)]
struct Files<'a> {
    scope: &'a [u8],
    /// The files that are not yet at their end, the outermost first; true where the repository
    /// decides that a file is read.
    open: Vec<(&'a [u8], bool)>,
    /// Set where the previous value included a file; true where the repository decides about that file.
    included: Option<bool>,
}

impl<'a> Files<'a> {
    /// True for a value of a protected scope in a file that is read only because the repository decides so.
    fn is_conditional(&mut self, line: &Line<'a>) -> bool {
        if self.scope != line.scope {
            *self = Self { scope: line.scope, ..Self::default() };
        }
        match self.open.iter().rposition(|(origin, _)| *origin == line.origin) {
            Some(at) => self.open.truncate(at + 1),
            None => {
                let conditional = match self.included {
                    // The second file of the global scope, which is read whatever the first one ends with.
                    Some(_) if is_home(line.origin) => false,
                    Some(conditional) => conditional,
                    None => {
                        self.open.clear();
                        false
                    }
                };
                self.open.push((line.origin, conditional));
            }
        }
        let conditional = self.open.last().is_some_and(|(_, conditional)| *conditional);
        let condition = line.key.strip_prefix(b"includeif.").and_then(|key| key.strip_suffix(b".path"));
        self.included = match condition {
            Some(condition) => Some(conditional || is_repositorys(condition)),
            None => (line.key == b"include.path").then_some(conditional),
        };
        conditional && line.is_protected()
    }
}

fn is_home(origin: &[u8]) -> bool {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".gitconfig"));
    home.is_some_and(|home| origin.strip_prefix(b"file:") == Some(home.as_os_str().as_bytes()))
}

/// The last parts of `trailer.<token>.<part>` keys that make Git see trailers with that token.
const OF_TOKENS: &[&[u8]] = &[b"key", b"where", b"ifexists", b"ifmissing", b"command", b"cmd"];

/// Returns the keys of the whole configuration that make Git see other trailers than this tool does (K1), as
/// Git lists them. Of keys that replace each other, only the one in force counts.
pub(crate) fn other_trailers(repo: &Repository) -> Result<Vec<Vec<u8>>, StoreError> {
    let output = repo.git.config_list(&repo.git_dir)?;
    let (mut separators, mut sign, mut tokens) = (None, None, Vec::new());
    for line in lines(&output) {
        let (key, value) = (line.key, line.value.unwrap_or_default());
        match key {
            b"trailer.separators" => separators = (value != b":").then(|| key.to_vec()),
            b"core.commentchar" | b"core.commentstring" => {
                sign = (!matches!(value, b"#" | b"auto")).then(|| key.to_vec());
            }
            _ => {
                let token =
                    key.strip_prefix(b"trailer.").and_then(|rest| rest.rsplitn(2, |b| *b == b'.').next());
                // Without a token in between, the key is a default for all trailers.
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

//! What `git` may start in a repository that is not trusted: no program that its own configuration names.
//!
//! Git itself is asked what its configuration holds and where each value is from. Every key that starts a
//! program, and that the repository set, is then given to the child once more: with the account's value, else
//! with one that starts nothing. That is done for each Git directory by itself, because each may have a
//! `config.worktree`. A key that is not listed below but sounds like a program counts as one. Transports that
//! are not Git's own are off, and so is fetching missing objects. Implements K34 (S29), and K35 (who says
//! that a signature is good).

use super::command::Git;
use crate::store::StoreError;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Configuration that is given to a child on top of what it reads.
pub(crate) type Settings = Vec<(OsString, OsString)>;

/// Git's word for a transport that is allowed to everybody; it compares such words without regard to case.
const ALWAYS: &[u8] = b"always";

/// What was found out about each Git directory.
#[derive(Debug, Default)]
pub(crate) struct Confined {
    known: Mutex<HashMap<PathBuf, Arc<Found>>>,
}

/// What children on one Git directory are kept from.
#[derive(Debug)]
pub(crate) struct Found {
    /// The configuration that all children are given.
    pub(crate) settings: Settings,
    /// The configuration that children which read from a remote, and write nothing there, are given as well.
    pub(crate) reading: Settings,
    /// Variables for keys of which Git takes the first of several values, so that
    /// configuration can't override them.
    pub(crate) env: Settings,
    /// True where the account allows pushes to paths, whose hooks run then.
    pub(crate) pushes_to_paths: bool,
    /// True where the repository has filter drivers of its own: without them its files
    /// are not what they should be.
    pub(crate) filters: bool,
    /// True where the repository has diff drivers of its own.
    pub(crate) diffs: bool,
}

impl Confined {
    /// Returns what a child on this Git directory is given. Git is asked once for each.
    pub(crate) fn found(&self, git: &Git, git_dir: &Path) -> Result<Arc<Found>, StoreError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(git_dir) {
            return Ok(found.clone());
        }
        let all = list(git, git_dir)?;
        let filters = all.iter().any(|value| !value.protected && value.key.section == b"filter");
        let is_diff = |value: &&Value| value.key.section == b"diff" && is_program(&value.key);
        let diffs = all.iter().filter(is_diff).any(|value| !value.protected);
        let file = allowed(&all, Some(b"file")).or_else(|| allowed(&all, None));
        let reading = file.is_none().then(|| setting(b"protocol.file.allow", ALWAYS));
        let pushes_to_paths = file.is_some_and(|value| value.eq_ignore_ascii_case(ALWAYS));
        let proxies = |value: &&Value| value.key.section == b"core" && value.key.name == b"gitproxy";
        let proxied = all.iter().filter(proxies).any(|value| !value.protected);
        let proxied = proxied && std::env::var_os("GIT_PROXY_COMMAND").is_none();
        let env = proxied.then(|| (OsString::from("GIT_PROXY_COMMAND"), OsString::new()));
        let found = Arc::new(Found {
            settings: overrides(&all, is_program).into_iter().chain(own_transports(&all)).collect(),
            reading: reading.into_iter().collect(),
            env: env.into_iter().collect(),
            pushes_to_paths,
            filters,
            diffs,
        });
        known.insert(git_dir.to_owned(), found.clone());
        Ok(found)
    }
}

/// Returns what a child that judges or makes signatures is given: whom to believe is for the account to say, and
/// for whoever calls this process, by `git -c`.
pub(crate) fn of_signatures(git: &Git, git_dir: &Path) -> Result<Settings, StoreError> {
    let judges = ["program", "defaultkeycommand", "allowedsignersfile", "revocationfile", "mintrustlevel"];
    let is_judge = |key: &Key| key.section == b"gpg" && judges.iter().any(|name| key.name == name.as_bytes());
    let all = list(&git.at_liberty(), git_dir)?;
    let is_signing = |key: &Key| key.section == b"gpg" || key.section == b"user" && key.name == b"signingkey";
    let said = all.iter().filter(|value| value.said && is_signing(&value.key));
    let said = said.map(|value| setting(&value.key.whole(), &value.value));
    Ok(overrides(&all, is_judge).into_iter().chain(said).collect())
}

/// A key in its parts; section and name in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    section: Vec<u8>,
    sub: Option<Vec<u8>>,
    name: Vec<u8>,
}

impl Key {
    fn parse(key: &[u8]) -> Option<Self> {
        let first = key.iter().position(|b| *b == b'.')?;
        let last = key.iter().rposition(|b| *b == b'.')?;
        let sub = (first < last).then(|| key[first + 1..last].to_vec());
        let (section, name) = (key[..first].to_ascii_lowercase(), key[last + 1..].to_ascii_lowercase());
        Some(Self { section, sub, name })
    }

    fn whole(&self) -> Vec<u8> {
        match &self.sub {
            Some(sub) => [&self.section[..], sub, &self.name].join(&b'.'),
            None => [&self.section[..], &self.name].join(&b'.'),
        }
    }
}

#[derive(Debug)]
struct Value {
    key: Key,
    value: Vec<u8>,
    /// True for what the account or the system says, or this process's caller.
    protected: bool,
    /// True for what the caller of this process said by `git -c`.
    said: bool,
}

/// Returns all configuration that Git reads for this Git directory, in Git's order.
fn list(git: &Git, git_dir: &Path) -> Result<Vec<Value>, StoreError> {
    let listed = git
        .plain(Some(git_dir))
        .said_by_caller()
        .verb("config")
        .args(["--list", "--show-scope", "-z"])
        .ok()?;
    let (mut values, mut fields) = (Vec::new(), listed.split(|b| *b == 0));
    while let (Some(scope), Some(pair)) = (fields.next(), fields.next()) {
        let end = pair.iter().position(|b| *b == b'\n');
        let (key, value) = match end {
            Some(end) => (&pair[..end], &pair[end + 1..]),
            None => (pair, &b"true"[..]),
        };
        let Some(key) = Key::parse(key) else { continue };
        let protected = matches!(scope, b"system" | b"global" | b"command");
        values.push(Value { key, value: value.to_vec(), protected, said: scope == b"command" });
    }
    Ok(values)
}

/// Returns what overrides the repository's own values of these keys: a value that does
/// nothing, then the account's.
fn overrides(all: &[Value], wanted: impl Fn(&Key) -> bool) -> Settings {
    let mut settings = Settings::new();
    let (mut sections, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for own in all.iter().filter(|value| !value.protected && wanted(&value.key)) {
        sections.insert(&own.key.section);
        if seen.insert(&own.key) {
            settings.push(setting(&own.key.whole(), &nothing(&own.key)));
        }
        if own.key.section == b"hook" {
            // Git fails on a hook without a command: the hook is switched off instead.
            let off = Key { name: b"enabled".to_vec(), ..own.key.clone() };
            settings.push(setting(&off.whole(), b"false"));
        }
    }
    let theirs = all.iter().filter(|value| value.protected && sections.contains(&value.key.section));
    settings.extend(
        theirs.filter(|value| wanted(&value.key)).map(|value| setting(&value.key.whole(), &value.value)),
    );
    settings
}

/// True for a key that says whether a transport is allowed.
fn is_allow(key: &Key) -> bool {
    key.section == b"protocol" && key.name == b"allow"
}

/// Returns what the account says of a transport, or of all that it does not name; the last value counts, as with Git.
fn allowed<'v>(all: &'v [Value], sub: Option<&[u8]>) -> Option<&'v [u8]> {
    let is_it = |value: &&Value| value.protected && is_allow(&value.key) && value.key.sub.as_deref() == sub;
    all.iter().rev().find(is_it).map(|value| &*value.value)
}

/// Git's own transports, with what Git allows of each unless it is told.
const TRANSPORTS: &[(&str, &str)] =
    &[("file", "user"), ("git", "always"), ("http", "always"), ("https", "always"), ("ssh", "always")];

/// Returns those of these transports, which colons divide, that are Git's own.
pub(crate) fn own_alone(allowed: &OsStr) -> OsString {
    let own = |name: &&[u8]| TRANSPORTS.iter().any(|(own, _)| own.as_bytes() == *name);
    OsString::from_vec(allowed.as_bytes().split(|b| *b == b':').filter(own).collect::<Vec<_>>().join(&b':'))
}

/// Returns what leaves Git its own transports alone, as the account allows them: an address is the repository's to
/// say, and with `ext` it is a program.
fn own_transports(all: &[Value]) -> Settings {
    let allow = |name: &[u8]| [&b"protocol."[..], name, b".allow"].concat();
    let general = allowed(all, None);
    // Of the address's word for a transport Git makes the name of a program.
    let is_open = general.is_none_or(|value| value.eq_ignore_ascii_case(ALWAYS));
    let mut settings = vec![
        setting(b"protocol.allow", general.filter(|_| !is_open).unwrap_or(b"user")),
        setting(&allow(b"ext"), b"never"),
    ];
    let own = TRANSPORTS.iter().map(|(name, _)| name.as_bytes());
    let is_other = |sub: &&[u8]| !own.clone().any(|own| own == *sub);
    let named = all.iter().filter(|value| is_allow(&value.key));
    let others = named.filter_map(|value| value.key.sub.as_deref()).filter(is_other);
    settings.extend(others.map(|sub| setting(&allow(sub), b"never")));
    settings.extend(TRANSPORTS.iter().map(|(name, git)| {
        let value = allowed(all, Some(name.as_bytes())).or(general).unwrap_or(git.as_bytes());
        setting(&allow(name.as_bytes()), value)
    }));
    settings
}

fn setting(key: &[u8], value: &[u8]) -> (OsString, OsString) {
    (OsString::from_vec(key.to_vec()), OsString::from_vec(value.to_vec()))
}

/// Returns the value of a key that is as good as none.
fn nothing(key: &Key) -> Vec<u8> {
    let value = match (&*key.section, &*key.name) {
        (b"core", b"sshcommand") => {
            let named = std::env::var_os("GIT_SSH").and_then(|ssh| ssh.into_string().ok());
            let named = named.as_deref().and_then(|ssh| shlex::try_quote(ssh).ok());
            return named.unwrap_or("ssh".into()).into_owned().into_bytes();
        }
        // Git runs it with a path: `true` says that there are no refs.
        (b"core", b"alternaterefscommand") => "true",
        // An empty driver would say that it has merged.
        (b"merge", b"driver") => "false",
        (b"gpg", b"program") => match key.sub.as_deref() {
            Some(b"x509") => "gpgsm",
            Some(b"ssh") => "ssh-keygen",
            Some(_) | None => "gpg",
        },
        (b"gpg", b"mintrustlevel") => "undefined",
        (b"gpg", b"defaultkeycommand") => "false",
        (b"submodule", b"update") => "none",
        (b"filter", b"required") => "false",
        (b"hook", b"enabled") => "false",
        // A command has to be set, and does not count where the hook is off.
        (b"hook", b"command") => "true",
        (b"hook", b"event") => "none",
        _ => "",
    };
    value.as_bytes().to_vec()
}

/// Sections of which every key may be, or lead to, a program.
const SECTIONS: &[&str] = &[
    "alias",
    "browser",
    "difftool",
    "guitool",
    "imap",
    "instaweb",
    "man",
    "mergetool",
    "pager",
    "sendemail",
    "web",
];
/// Further keys that are, or lead to, a program, whatever their names sound like.
const KEYS: &[(&str, &str)] = &[
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "hookspath"),
    ("diff", "external"),
    ("filter", "required"),
    ("hook", "event"),
    ("init", "templatedir"),
    ("interactive", "difffilter"),
    ("lfs", "args"),
    ("lfs", "path"),
    ("lfs", "standalonetransferagent"),
    ("remote", "vcs"),
    ("submodule", "update"),
];
/// Endings of the names of keys whose value is a program.
const ENDS: &[&str] = &[
    "askpass", "browser", "clean", "cmd", "command", "driver", "editor", "helper", "hook", "pager",
    "process", "program", "smudge", "textconv",
];

fn is_program(key: &Key) -> bool {
    let is = |text: &str, bytes: &[u8]| text.as_bytes() == bytes;
    SECTIONS.iter().any(|section| is(section, &key.section))
        || KEYS.iter().any(|(section, name)| is(section, &key.section) && is(name, &key.name))
        || ENDS.iter().any(|end| key.name.ends_with(end.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    fn value(key: &str, value: &str, protected: bool) -> Value {
        Value { key: Key::parse(key.as_bytes()).unwrap(), value: value.into(), protected, said: false }
    }

    fn given(all: &[Value]) -> Vec<String> {
        let text = |s: &OsStr| String::from_utf8_lossy(s.as_bytes()).into_owned();
        overrides(all, is_program).iter().map(|(k, v)| format!("{}={}", text(k), text(v))).collect()
    }

    /// K34, S29
    #[test]
    fn what_the_repository_says_is_taken_back_to_what_the_account_says() {
        let all = [
            value("filter.lfs.clean", "git-lfs clean", true),
            value("credential.helper", "store", true),
            value("user.name", "Ada", true),
            value("filter.lfs.clean", "evil", false),
            value("filter.a.b.smudge", "evil", false),
            value("credential.https://x.helper", "evil", false),
            value("user.name", "Eve", false),
        ];
        let want = [
            "filter.lfs.clean=",
            "filter.a.b.smudge=",
            "credential.https://x.helper=",
            "filter.lfs.clean=git-lfs clean",
            "credential.helper=store",
        ];
        assert_eq!(given(&all), want);
        assert!(given(&all[..3]).is_empty());
    }

    /// K34, S29: a key that is not in any list here
    #[test]
    fn what_sounds_like_a_program_counts_as_one() {
        for key in
            ["new.thingCommand", "new.x.helper", "core.newEditor", "hook.x.event", "lfs.extension.x.clean"]
        {
            assert!(is_program(&Key::parse(key.as_bytes()).unwrap()), "{key}");
        }
        for key in ["core.bare", "core.worktree", "remote.origin.url", "branch.main.merge", "user.email"] {
            assert!(!is_program(&Key::parse(key.as_bytes()).unwrap()), "{key}");
        }
    }
}

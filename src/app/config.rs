//! Settings: a flag takes precedence over `git config aynig.<key>`, and protected keys count only from
//! protected scopes.
//!
//! A value that can't be read is an error that names the key; nothing falls back silently. Implements K33,
//! K35 and Configuration of the contract.

use super::{AppError, Misuse};
use crate::protocol::environment::is_dropped;
use crate::protocol::event::{LEASE_MAX, LEASE_MIN};
use crate::protocol::name::RoleName;
use crate::protocol::usage::Usd;
use crate::runner::settings::{CommandsFrom, Jobs, REMOTE_GRACE, Sandbox, Settings};
use crate::store::command_tree::RoleUse;
use crate::store::config::Entry;
use crate::store::protected::{Unsure, absolute, is_protected};
use crate::store::repository::Repository;
use crate::store::slots::affinity;
use crate::store::slots::find;
use crate::store::slots::harvest::Stage;
use crate::store::slots::keep::Keeping;
use crate::store::{RefName, pattern};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// The most runs at once: for each a slot may be looked at.
const JOBS_MAX: usize = 10_000;
/// Most dispatches that may lead to one another in a flow, unless it is configured.
const FLOW_HOPS: u64 = 200;
/// Variables that a command always inherits, whatever `aynig.passEnv` says: without them few programs start.
const ALWAYS_PASSED: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "SHELL"];

/// How long after its end a lease that only its command renews still counts, unless that is configured (K29).
const AYNIG_GRACE: Duration = Duration::from_secs(30);

/// The configuration of one repository, narrowed to the entries that count.
pub struct Config {
    entries: Vec<(String, Option<String>)>,
    /// Keys of the repository's own configuration that were ignored.
    pub ignored: Vec<String>,
    /// Keys of the account's configuration that may hold or not hold here by what others say. If there is such a
    /// key, nothing may run.
    pub unsure: Vec<Unsure>,
    identity: Option<(String, String)>,
    /// `commit.gpgSign`, as Git reads it.
    signs: bool,
}

/// What a hook does about a state event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookMode {
    /// Start its chain in the background.
    Detach,
    /// Run its chain, and return after that.
    Wait,
    /// Do nothing.
    Off,
}

/// Flags, which take precedence over the configuration.
#[derive(Debug, Default, Clone)]
#[allow(missing_docs)]
pub struct Flags {
    pub lease: Option<String>,
    pub grace: Option<String>,
    pub timeout: Option<String>,
    pub jobs: Option<usize>,
    pub role: Option<String>,
    pub log_level: Option<String>,
    pub tee: bool,
    pub remote: Option<String>,
}

impl Flags {
    /// Returns the flags of a verb that is about the branches of this repository, whatever remote is ticked.
    pub fn here() -> Self {
        Self { remote: Some(".".to_owned()), ..Self::default() }
    }
}

impl Config {
    /// Narrows Git's configuration to what counts for this repository.
    pub fn new(repo: &Repository, all: &[Entry]) -> Self {
        let narrowed = repo.site.narrow(all);
        let last = |key: &str| all.iter().rev().find(|e| e.key == key).and_then(|e| e.value.clone());
        let said = |key| last(key).filter(|value| !value.trim().is_empty());
        let identity = said("user.name").zip(said("user.email"));
        // A key without a value is true.
        let sign = all.iter().rev().find(|entry| entry.key == "commit.gpgsign");
        let signs = sign.is_some_and(|entry| boolean(entry.value.as_deref().unwrap_or("true")) == Some(true));
        let (ignored, unsure) = (narrowed.ignored, narrowed.unsure);
        Self { entries: narrowed.counts, ignored, unsure, identity, signs }
    }

    /// Returns the last value of a key; a key without a value is `true`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let key = key.to_ascii_lowercase();
        let last = self.entries.iter().rev().find(|(k, _)| *k == key);
        last.map(|(_, v)| v.as_deref().unwrap_or("true"))
    }

    /// Returns all values of a key, in their order.
    pub fn all(&self, key: &str) -> Vec<String> {
        let key = key.to_ascii_lowercase();
        self.entries.iter().filter(|(k, _)| *k == key).filter_map(|(_, v)| v.clone()).collect()
    }

    /// Returns all entries that say what may run: the account's, and for chains `aynig.hooks` too.
    pub fn policy(&self, of_chains: bool) -> Vec<&(String, Option<String>)> {
        let counts = |key: &str| is_protected(key) || of_chains && key == "hooks";
        self.entries.iter().filter(|(key, _)| counts(key)).collect()
    }

    fn bool(&self, key: &'static str, default: bool) -> Result<bool, AppError> {
        let Some(said) = self.get(key) else { return Ok(default) };
        boolean(said).ok_or_else(|| bad_value(key, &said.to_ascii_lowercase(), "true or false"))
    }

    fn duration(&self, key: &'static str, flag: Option<&str>) -> Result<Option<Duration>, AppError> {
        if let Some(text) = flag {
            return duration(text).ok_or_else(|| Misuse::Duration(text.to_owned()).into()).map(Some);
        }
        let wrong = |text| bad_value(key, text, "a duration such as 90, 90s or 5m");
        self.get(key).map(|text| duration(text).ok_or_else(|| wrong(text))).transpose()
    }

    pub(super) fn number(&self, key: &'static str, default: u64) -> Result<u64, AppError> {
        let wrong = |text| bad_value(key, text, "a number, with k, m or g for a size");
        self.get(key).map_or(Ok(default), |text| size(text).ok_or_else(|| wrong(text)))
    }

    fn dollars(&self, key: &'static str) -> Result<Option<Usd>, AppError> {
        let wrong = |text| bad_value(key, text, "an amount of US dollars, such as 12.50");
        self.get(key).map(|text| text.trim().parse().map_err(|_| wrong(text))).transpose()
    }

    /// Returns how long logs or attempts are kept: `days` where the key is not set, forever where it is
    /// `never`.
    pub fn expiry(&self, key: &'static str, days: u64) -> Result<Duration, AppError> {
        match self.get(key) {
            // The word that switches off Git's own expiries too.
            Some("never") => Ok(Duration::MAX),
            Some(_) | None => Ok(self.duration(key, None)?.unwrap_or(Duration::from_secs(days * 24 * 3600))),
        }
    }

    /// True where what is reported must survive a power loss.
    pub fn durable(&self) -> Result<bool, AppError> {
        self.bool("fsync", true)
    }

    /// Returns what hooks do (K38).
    pub fn hooks(&self) -> Result<HookMode, AppError> {
        match self.get("hooks").map(str::to_ascii_lowercase).as_deref() {
            None | Some("detach" | "true" | "yes" | "on" | "1") => Ok(HookMode::Detach),
            Some("wait") => Ok(HookMode::Wait),
            Some("off" | "false" | "no" | "0" | "") => Ok(HookMode::Off),
            Some(other) => Err(bad_value("hooks", other, "detach, wait, off, or a boolean")),
        }
    }

    /// Returns which commit commands come from.
    pub fn commands_from(&self) -> Result<CommandsFrom, AppError> {
        Ok(match self.get("commandsFrom") {
            None | Some("none" | "") => CommandsFrom::Nowhere,
            Some("branch") => CommandsFrom::Branch,
            Some(name) => {
                let full = if name.starts_with("refs/") { name.into() } else { format!("refs/heads/{name}") };
                let full = RefName::new(full);
                if !full.is_valid() {
                    return Err(bad_value("commandsFrom", name, "none, branch or a ref"));
                }
                CommandsFrom::Ref(full)
            }
        })
    }

    /// Makes the settings of a runner.
    pub fn settings(&self, repo: &Repository, flags: &Flags) -> Result<Settings, AppError> {
        let jobs = match (flags.jobs, self.get("jobs")) {
            (Some(jobs), _) => Jobs::Said(jobs),
            (None, Some(_)) => Jobs::Said(usize::try_from(self.number("jobs", 1)?).unwrap_or(usize::MAX)),
            (None, None) => Jobs::Processors(OnceLock::new()),
        };
        if matches!(jobs, Jobs::Said(number) if !(1..=JOBS_MAX).contains(&number)) {
            return Err(match flags.jobs {
                Some(_) => Misuse::Jobs.into(),
                None => bad_value("jobs", self.get("jobs").unwrap_or_default(), "a number from 1 to 10000"),
            });
        }
        let remote = self.remote(flags.remote.as_deref());
        let grace = self.duration("leaseGrace", flags.grace.as_deref())?;
        // Clocks of several machines differ.
        let default_grace = if remote.is_some() { Duration::from_secs(REMOTE_GRACE) } else { Duration::ZERO };
        Ok(Settings {
            lease: self.lease(flags.lease.as_deref())?,
            grace: grace.unwrap_or(default_grace).as_secs(),
            aynig_grace: grace.unwrap_or(AYNIG_GRACE).as_secs(),
            remote,
            remote_named: flags.remote.is_some(),
            observe: match self.get("takeover") {
                None | Some("date") => false,
                Some("observe") => true,
                Some(other) => return Err(bad_value("takeover", other, "date or observe")),
            },
            timeout: self.duration("timeout", flags.timeout.as_deref())?.filter(|t| !t.is_zero()),
            kill_grace: self.duration("killGrace", None)?.unwrap_or(Duration::from_secs(10)),
            chain_jobs: self.get("jobs").map_or(1, |_| jobs.get()),
            jobs,
            role: self.role(flags.role.as_deref())?,
            role_use: if self.bool("roleOnly", false)? { RoleUse::Only } else { RoleUse::First },
            max_hops: u32::try_from(self.number("maxHops", 64)?).unwrap_or(u32::MAX),
            flow_hops: u32::try_from(self.number("flowHops", FLOW_HOPS)?).unwrap_or(u32::MAX),
            log_max: self.number("logMaxBytes", 64 << 20)?,
            stage: match self.get("stage") {
                None | Some("all") => Stage::All,
                Some("index") => Stage::Index,
                Some(other) => return Err(bad_value("stage", other, "all or index")),
            },
            commands_from: self.commands_from()?,
            commands_here: false,
            branches: self.all("branches"),
            land_onto: self.all("landOnto"),
            require_signature: self.bool("requireSignature", false)?,
            sign_landed: self.signs,
            exec: words("exec", &self.all("exec"))?,
            budget_per_day: self.dollars("budgetPerDay")?,
            budget_per_branch: self.dollars("budgetPerBranch")?,
            today: Default::default(),
            notify: words("notify", &self.all("notify"))?,
            trailer_env: self.all("trailerEnv"),
            sandbox: self.sandbox()?,
            keeping: self.keeping()?,
            port_base: self.port_base()?,
            worktree_dir: self.worktree_dir(repo)?,
            identity: self.identity(),
            log_level_flag: flags.log_level.clone(),
            log_level: env_text("LOG_LEVEL").unwrap_or_else(|| "error".to_owned()),
            tee: flags.tee,
            run_ids: Default::default(),
            ready: Default::default(),
            wait_for_slot: true,
            // What acts on the key refuses a value that is none.
            hooks_off: matches!(self.hooks(), Ok(HookMode::Off)),
        })
    }

    /// Returns the remote whose branches are meant; `None` for this repository, which is also called `.`, as
    /// in Git.
    pub fn remote(&self, flag: Option<&str>) -> Option<String> {
        let name = flag.or_else(|| self.get("remote"));
        name.filter(|name| !matches!(*name, "" | ".")).map(str::to_owned)
    }

    fn lease(&self, flag: Option<&str>) -> Result<u64, AppError> {
        let lease = self.duration("leaseDuration", flag)?.unwrap_or(Duration::from_secs(300));
        let whole = lease.subsec_nanos() == 0 && (LEASE_MIN..=LEASE_MAX).contains(&lease.as_secs());
        match (whole, flag) {
            (true, _) => Ok(lease.as_secs()),
            (false, Some(_)) => Err(Misuse::Lease.into()),
            (false, None) => {
                let value = self.get("leaseDuration").unwrap_or_default();
                Err(bad_value("leaseDuration", value, "whole seconds, from 1s to 30 days"))
            }
        }
    }

    /// Returns what commands are confined to (K59).
    pub(super) fn sandbox(&self) -> Result<Sandbox, AppError> {
        let places = |key: &'static str| {
            let wrong =
                |value: &String| bad_value(key, value, "an absolute path, or one that begins with ~/");
            let place = |value: &String| absolute(value).ok_or_else(|| wrong(value));
            self.all(key).iter().map(place).collect::<Result<Vec<_>, _>>()
        };
        let port = |value: &String| {
            let port = value.trim().parse::<u16>().ok().filter(|port| *port > 0);
            port.ok_or_else(|| bad_value("sandboxConnect", value, "a port"))
        };
        let ports = || self.all("sandboxConnect").iter().map(port).collect::<Result<Vec<_>, _>>();
        match self.get("sandbox").map(str::to_ascii_lowercase).as_deref() {
            None | Some("off" | "false" | "no" | "0" | "") => Ok(Sandbox::Off),
            Some("write") => Ok(Sandbox::Write(places("sandboxWrite")?)),
            Some("strict") => Ok(Sandbox::Strict(places("sandboxWrite")?, places("sandboxRead")?, ports()?)),
            Some(other) => Err(bad_value("sandbox", other, "off, write or strict")),
        }
    }

    /// Returns what stays in a slot between runs, and what is copied into it (K58).
    fn keeping(&self) -> Result<Keeping, AppError> {
        let patterns = |key: &'static str| {
            let values = self.all(key);
            let wrong = values.iter().find(|value| !find::is_pattern(value));
            let want =
                "a path from the top of the worktree, such as target/ or */node_modules, and not in .git";
            wrong.map_or(Ok(values.clone()), |wrong| Err(bad_value(key, wrong, want)))
        };
        let (keep, include) = (patterns("keep")?, patterns("include")?);
        Ok(Keeping { keep, across: self.bool("keepAcross", false)?, include })
    }

    /// Returns the first port of the first slot (K57). Each slot has a block of ports of its own from there
    /// on.
    fn port_base(&self) -> Result<u16, AppError> {
        let base = self.number("portBase", 20_000)?;
        let fits =
            u16::try_from(base).ok().filter(|base| *base > 0 && affinity::port_base(*base, 0).is_some());
        fits.ok_or_else(|| {
            bad_value("portBase", self.get("portBase").unwrap_or_default(), "a port from 1 to 65436")
        })
    }

    fn role(&self, flag: Option<&str>) -> Result<Option<RoleName>, AppError> {
        let said = flag.map(str::to_owned).or_else(|| env_text("ROLE"));
        let configured = || self.get("role").map(str::to_owned);
        let is_said = said.is_some();
        let Some(role) = said.or_else(configured).filter(|role| !role.is_empty()) else { return Ok(None) };
        RoleName::new(&role).map(Some).map_err(|why| match is_said {
            true => Misuse::Role { role, why: why.to_string() }.into(),
            false => bad_value("role", &role, "the name of a role"),
        })
    }

    /// Returns the folder of this repository's slots (K14). Errors: [`AppError::BadValue`] for a value below a home that
    /// is not known.
    pub fn worktree_dir(&self, repo: &Repository) -> Result<PathBuf, AppError> {
        if let Some(dir) = self.get("worktreeDir").filter(|d| !d.is_empty()) {
            let place = match dir.starts_with("~/") {
                true => {
                    absolute(dir).ok_or_else(|| bad_value("worktreeDir", dir, "a path, and ~/ needs HOME"))?
                }
                false => repo.common_dir.join(dir),
            };
            return Ok(place.join(repo.id()));
        }
        let home = std::env::var_os("HOME").filter(|h| !h.is_empty()).map(PathBuf::from);
        let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        Ok(match xdg.or_else(|| home.map(|h| h.join(".cache"))) {
            Some(cache) if !repo.bare => cache.join("aynig").join(repo.id()),
            Some(_) | None => repo.aynig_dir().join("worktrees"),
        })
    }

    /// Returns the name and address of who writes: the user, or the runner where no user is configured.
    pub fn identity(&self) -> (String, String) {
        self.identity.clone().unwrap_or_else(|| {
            let host = nix::unistd::gethostname().ok().and_then(|h| h.into_string().ok());
            let host = host.filter(|h| !h.is_empty()).unwrap_or_else(|| "localhost".to_owned());
            ("git-aynig".to_owned(), format!("aynig@{host}"))
        })
    }

    /// Returns the environment that commands inherit (K15, K35). With `short` it is only a few variables,
    /// unless the configuration names which.
    pub fn environment(&self, short: bool) -> Vec<(OsString, OsString)> {
        let mut only = self.all("passEnv");
        if short && only.is_empty() {
            only.extend(ALWAYS_PASSED.iter().map(|name| (*name).to_owned()));
        }
        let named = |name: &str| pattern::named(&only, name);
        let passed = |name: &OsString| {
            let Some(name) = name.to_str() else { return only.is_empty() };
            let wanted =
                only.is_empty() || named(name) || ALWAYS_PASSED.contains(&name) || name.starts_with("LC_");
            wanted && !is_dropped(name) && !matches!(name, "ROLE" | "LOG_LEVEL" | "BODY" | "COMMIT_HASH")
        };
        std::env::vars_os().filter(|(name, _)| passed(name)).collect()
    }
}

fn env_text(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|v| v.into_string().ok()).filter(|v| !v.is_empty())
}

pub(super) fn bad_value(key: impl Into<String>, value: &str, want: &'static str) -> AppError {
    AppError::BadValue { key: key.into(), value: value.to_owned(), want }
}

/// Reads a duration as people write it; a bare number is seconds. Returns `None` for anything else.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    match text.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).ok(),
    }
}

fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
    let factor = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Returns a program and its arguments: several values are taken as they are, a single one is split as a
/// shell splits words.
pub(super) fn words(key: &str, values: &[String]) -> Result<Vec<String>, AppError> {
    match values {
        [] => Ok(Vec::new()),
        [one] => shlex::split(one).ok_or_else(|| bad_value(key, one, "words with closed quotes")),
        several => Ok(several.to_vec()),
    }
}

/// Reads a boolean as Git writes it; returns `None` for anything else.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match &*text.to_ascii_lowercase() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" | "" => Some(false),
        _ => None,
    }
}

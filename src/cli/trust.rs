//! `trust`: the account's owner says which commands may run in a repository.
//!
//! Written to the account's own configuration, per repository, where no push reaches. Implements K33, K34.

use super::args::Trust;
use super::fail::Failure;
use super::session::{Global, Session};
use super::{hints, output};
use crate::protocol::text::{escape, shell_word};
use crate::runner::settings::CommandsFrom;
use crate::store::{RefName, command_tree, config};
use std::io::{BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

const KEY: &str = "commandsFrom";

/// `git aynig trust`.
pub fn run(global: &Global, args: &Trust) -> Result<i32, Failure> {
    let session = global.open()?;
    if args.list {
        return list(&session);
    }
    if args.revoke {
        let output = session.repo.git.set_global(&config::key_of(session.repo.site.dir(), KEY), None)?;
        // 5: there was nothing to remove.
        return match output.status.code() {
            Some(0 | 5) => still_trusted(global),
            _ => Err(Failure::fatal(format!("git config failed: {}", output.message))),
        };
    }
    let source = match (&args.r#ref, args.branches) {
        (Some(name), _) => {
            let name = if name.as_bytes().starts_with(b"refs/") {
                RefName::new(name.as_bytes())
            } else {
                RefName::branch(name.as_bytes())
            };
            if !name.is_valid() {
                return Err(Failure::usage(format!("'{}' is no valid ref name", escape(name.as_bytes()))));
            }
            CommandsFrom::Ref(name)
        }
        (None, true) => CommandsFrom::Branch,
        (None, false) => default_source(&session)?,
    };
    write(&session, &source)?;
    if let CommandsFrom::Ref(name) = &source
        && session.repo.open_store(false)?.tip(name)?.is_none()
    {
        let name = escape(name.as_bytes());
        output::note(&format!("warning: '{name}' does not exist here yet; until it does, nothing runs"));
        output::note("hint: git aynig trust --ref <branch>");
    }
    Ok(0)
}

/// After a revocation: a wider setting (every repository, a glob, the system's) may trust this one still.
fn still_trusted(global: &Global) -> Result<i32, Failure> {
    match global.open()?.config.commands_from()? {
        CommandsFrom::Nowhere => Ok(0),
        CommandsFrom::Branch | CommandsFrom::Ref(_) => {
            Err(Failure::refused("still trusted: a setting for more than this repository says so")
                .hint("git config --show-origin --get-regexp '^aynig\\..*commandsfrom$'"))
        }
    }
}

/// What `trust` writes where nothing else was said: commands come from the branch that is current now, so
/// that a branch which is pushed or fetched later brings none of its own.
pub fn default_source(session: &Session) -> Result<CommandsFrom, Failure> {
    match session.current_branch()? {
        Some(branch) => Ok(CommandsFrom::Ref(branch)),
        None => Err(Failure::usage("HEAD is detached: say where commands come from")
            .hint("git aynig trust --ref <branch>")),
    }
}

/// Writes the trust and says what it means.
pub fn write(session: &Session, source: &CommandsFrom) -> Result<(), Failure> {
    let (value, meaning) = match source {
        CommandsFrom::Nowhere => ("none".to_owned(), "nothing runs".to_owned()),
        CommandsFrom::Branch => ("branch".to_owned(), "a branch's own .aynig/ is run for it".to_owned()),
        CommandsFrom::Ref(name) => {
            let Ok(name) = std::str::from_utf8(name.as_bytes()).map(str::to_owned) else {
                // What would be written is another ref's name, and that one would be trusted.
                let shown = escape(name.as_bytes());
                return Err(Failure::fatal(format!("cannot trust '{shown}': its name is no UTF-8")));
            };
            let shown = escape(name.as_bytes());
            let of = session.config.remote(None).map(|remote| format!(" of '{}'", escape(remote.as_bytes())));
            let of = of.unwrap_or_default();
            let meaning = format!("commands come from {shown}{of}, whatever another branch holds");
            (name, meaning)
        }
    };
    let otherwise = || {
        let source = shell_word(value.as_bytes());
        format!("git -C {} -c aynig.commandsFrom={source} aynig tick", hints::place(session.place()))
    };
    if let Some(place) = std::env::var_os("GIT_CONFIG_GLOBAL").map(PathBuf::from)
        && std::fs::metadata(&place).is_ok_and(|m| !m.is_file())
    {
        // Git would put a file in its place.
        let shown = escape(place.as_os_str().as_bytes());
        return Err(
            Failure::fatal(format!("GIT_CONFIG_GLOBAL is '{shown}', which is no file")).hint(otherwise())
        );
    }
    let output = session.repo.git.set_global(&config::key_of(session.repo.site.dir(), KEY), Some(&value))?;
    if !output.status.success() {
        return Err(Failure::fatal(format!("cannot write the global configuration: {}", output.message))
            .hint(otherwise()));
    }
    output::note(&format!("trusted: {meaning}"));
    Ok(())
}

fn list(session: &Session) -> Result<i32, Failure> {
    let counts = |entry: &config::Entry| entry.protected && !entry.conditional;
    for entry in config::read(&session.repo)?.into_iter().filter(counts) {
        let place = match entry.key.strip_prefix("aynig.") {
            // Of all repositories.
            Some("commandsfrom") => "*",
            Some(rest) => match rest.strip_suffix(".commandsfrom") {
                Some(place) => place,
                None => continue,
            },
            None => continue,
        };
        let value = entry.value.unwrap_or_default();
        output::line(&format!("{} {}", escape(value.as_bytes()), escape(place.as_bytes())));
    }
    Ok(0)
}

/// Lists the commands that would run and asks; true once the user said yes and it was written.
pub fn ask(session: &Session) -> Result<bool, Failure> {
    let source = default_source(session)?;
    let CommandsFrom::Ref(name) = &source else { return Ok(false) };
    let store = session.repo.open_store(false)?;
    let tree = match store.tip(name)? {
        Some(id) => command_tree::find(&*store, store.read_commit(id)?.tree)?,
        None => None,
    };
    let commands = tree.map_or(Ok(Vec::new()), |tree| command_tree::list(&*store, tree))?;
    output::note(&format!("This repository is not trusted yet. Commands in {}:", escape(name.as_bytes())));
    for (state, role) in &commands {
        let role = role.as_ref().map(|r| format!(" (role {})", escape(r.as_bytes()))).unwrap_or_default();
        output::note(&format!("  {}{role}", escape(state.as_bytes())));
    }
    if commands.is_empty() {
        output::note("  (none)");
    }
    output::error("Run them when a commit asks for it? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(false);
    }
    write(session, &source)?;
    Ok(true)
}

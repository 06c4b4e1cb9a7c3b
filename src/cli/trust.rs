//! `trust`: the account's owner says which commands may run in a repository. The work is `app::trust`'s.

use super::args::Trust;
use super::fail::Failure;
use super::session::{Global, Session};
use super::{hints, output};
use crate::app::trust::{self, TrustError};
use crate::protocol::text::{escape, shell_word};
use crate::runner::settings::CommandsFrom;
use std::io::{BufRead, Write};

/// Runs `git aynig trust`.
pub fn run(global: &Global, args: &Trust) -> Result<i32, Failure> {
    let session = global.open()?;
    if args.list {
        let mut lines = output::Lines::begin();
        for (source, place) in trust::list(&session)? {
            lines.offer(&format!("{} {}", escape(source.as_bytes()), escape(place.as_bytes())));
        }
        return Ok(0);
    }
    if args.revoke {
        trust::revoke(&session)?;
        return Ok(0);
    }
    let source = match (&args.r#ref, args.branches) {
        (Some(name), _) => trust::source(name)?,
        (None, true) => CommandsFrom::Branch,
        (None, false) => trust::default_source(&session)?,
    };
    give(&session, &source)?;
    if let Some(name) = trust::absent(&session, &source)? {
        let name = escape(name.as_bytes());
        output::note(&format!("warning: '{name}' does not exist here yet; until it does, nothing runs"));
        output::note("hint: git aynig trust --ref <branch>");
    }
    Ok(0)
}

/// Writes the trust, and prints what it means.
pub fn give(session: &Session, source: &CommandsFrom) -> Result<(), Failure> {
    trust::give(session, source)?;
    let meaning = match source {
        CommandsFrom::Nowhere => "nothing runs".to_owned(),
        CommandsFrom::Branch => "a branch's own .aynig/ is run for it".to_owned(),
        CommandsFrom::Ref(name) => {
            let remote = session.config.remote(None);
            let of = remote.map(|remote| format!(" of '{}'", escape(remote.as_bytes()))).unwrap_or_default();
            format!("commands come from {}{of}, whatever another branch holds", escape(name.as_bytes()))
        }
    };
    output::note(&format!("trusted: {meaning}"));
    Ok(())
}

/// Returns the command that mends the error.
pub fn mended(error: &TrustError) -> Option<String> {
    match error {
        TrustError::NoFile { value, place, .. } | TrustError::NotWritten { value, place, .. } => {
            let source = shell_word(value.as_bytes());
            Some(format!("git -C {} -c aynig.commandsFrom={source} aynig tick", hints::place(place)))
        }
        TrustError::Still => {
            Some("git config --show-origin --get-regexp '^aynig\\..*commandsfrom$'".to_owned())
        }
        TrustError::NoText(_) | TrustError::NotRevoked(_) => None,
    }
}

/// Lists the commands that would run, and asks. True once the user has said yes and the trust is written.
pub fn ask(session: &Session) -> Result<bool, Failure> {
    let source = trust::default_source(session)?;
    let CommandsFrom::Ref(name) = &source else { return Ok(false) };
    let commands = trust::commands(session, name)?;
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
    give(session, &source)?;
    Ok(true)
}

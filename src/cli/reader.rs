//! Where the reader of what is printed stands, since a hint is a command that the reader can paste.
//!
//! Most readers stand in the repository. A user who called with `-C` does not: the hints change to that
//! folder first. A user who pushed does not even have the repository: the hints say that they are for the
//! server. The reader is settled once, before anything is printed, and `output` asks for it. Implements K36
//! (what is printed to be pasted).

use crate::protocol::text::{escape, shell_word};
use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

/// A reader of hints who does not stand in the repository.
enum Reader {
    /// A user in another folder. The value is the folder where hints work, as a shell word.
    Elsewhere(String),
    /// A user at the other end of a push.
    Pusher,
}

static READER: OnceLock<Reader> = OnceLock::new();

/// Finds out where the caller stands: a shell says so in `PWD`, which `git -C` leaves as it is.
pub fn look() {
    let Ok(here) = std::env::current_dir() else { return };
    let Some(from) = std::env::var_os("PWD").filter(|pwd| Path::new(pwd).is_absolute()) else { return };
    // A caller whose folder is gone, or who reached this folder by a symbolic link, is not elsewhere.
    let elsewhere = std::fs::canonicalize(&from).is_ok_and(|from| from != here);
    if elsewhere && here.to_str().is_some_and(|text| escape(text.as_bytes()) == text) {
        let _ = READER.set(Reader::Elsewhere(shell_word(here.as_os_str().as_encoded_bytes())));
    }
}

/// Notes that everything printed from now on is read by a user who pushed.
pub fn is_pusher() {
    let _ = READER.set(Reader::Pusher);
}

/// True where the reader is a user who pushed.
pub fn is_away() -> bool {
    matches!(READER.get(), Some(Reader::Pusher))
}

/// Returns the text with its hints in the form that this reader can use.
pub fn addressed(text: &str) -> Cow<'_, str> {
    match READER.get() {
        Some(reader) if text.contains("hint: ") => {
            let lines = text.split('\n').map(|line| match line.split_once("hint: ") {
                // A hook's lines begin with its name. Any other text before `hint: ` is part of a sentence,
                // which stays as it is.
                Some((by @ ("" | "aynig: "), hint)) => format!("{by}hint: {}", hint_for(reader, hint)),
                Some(_) | None => line.to_owned(),
            });
            lines.collect::<Vec<_>>().join("\n").into()
        }
        Some(_) | None => text.into(),
    }
}

fn hint_for(reader: &Reader, hint: &str) -> String {
    // Words of explanation may stand before the command.
    let after = [": git ", ", then git ", ", or git "];
    let found = after.iter().find_map(|mark| hint.find(mark).map(|at| at + mark.len() - "git ".len()));
    let at = if hint.starts_with("git ") { Some(0) } else { found };
    let (words, command) = hint.split_at(at.unwrap_or(0));
    let dir = match reader {
        Reader::Pusher => return format!("{words}on the server: {command}"),
        Reader::Elsewhere(dir) => dir,
    };
    let is_placed =
        ["git -C ", "git --git-dir", "git config --global"].iter().any(|p| command.starts_with(p));
    match at {
        Some(_) if !is_placed => {
            // `cd` is for more than one command: some are not Git's, or have paths that are relative to that
            // folder.
            match [" && ", "; ", " || ", "$("].iter().any(|mark| command.contains(mark)) {
                true => format!("{words}cd {dir} && {command}"),
                false => format!("{words}git -C {dir} {}", &command["git ".len()..]),
            }
        }
        Some(_) | None => hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K36
    #[test]
    fn a_hint_works_where_its_reader_stands() {
        let away = Reader::Elsewhere("/srv/x".to_owned());
        let is = |hint: &str, want: &str| assert_eq!(hint_for(&away, hint), want);
        is("git aynig retry work", "git -C /srv/x aynig retry work");
        is("git -C /srv/x aynig trust", "git -C /srv/x aynig trust");
        is("git switch a && chmod +x b", "cd /srv/x && git switch a && chmod +x b");
        is("commit or stash, then git aynig tick", "commit or stash, then git -C /srv/x aynig tick");
        is("install that: git switch a && x", "install that: cd /srv/x && git switch a && x");
        is("rm /srv/x/.git/y.lock", "rm /srv/x/.git/y.lock");
        let is = |hint: &str, want: &str| assert_eq!(hint_for(&Reader::Pusher, hint), want);
        is("git aynig retry work", "on the server: git aynig retry work");
        is("push it, or git -C /srv/x aynig trust", "push it, or on the server: git -C /srv/x aynig trust");
        is("rm /srv/x.lock", "on the server: rm /srv/x.lock");
    }
}

//! What a pack says of itself: the README beside it, and the command that starts its first state.
//!
//! The README is text by the pack's author, and not trusted: it is read as a regular file of the commit, up
//! to a limit, and no command is taken from it but those listed next. A line `Start: git aynig ...` counts
//! only where it is `set-state` of a state for which the pack has a command, `govern start` where the pack
//! brings roles, or `run`, with a few known options and no others. Without such a line, a pack with a command
//! for one state is started with that state; of several states none is guessed. Implements
//! git-aynig-install(1).

use super::fetch::Entry;
use super::{Kind, Origin, Pack};
use crate::protocol::name::StateName;
use crate::protocol::text::{escape, shell_word};
use crate::store::StoreError;
use std::collections::BTreeSet;

/// The names that a README may have, the likeliest first.
const NAMES: [&str; 4] = ["README.md", "README", "README.txt", "README.rst"];
/// Largest README that is read, in bytes.
const README_MAX: u64 = 1 << 20;
/// Most characters of a README's first paragraph that are shown.
const PARAGRAPH_MAX: usize = 400;
/// The state that handles failures, which is not set by hand.
const STALLED: &str = "stalled";
/// The file that holds a governed run's roles.
pub(crate) const ROLES: &str = "agentxchain.json";

/// The README of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Readme {
    /// The README's path in the repository that the pack is from.
    pub(crate) path: String,
    text: String,
}

/// How a pack is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// The pack is started by this command, which is safe to paste into a shell.
    Command {
        line: String,
        /// True where a tick must follow the command.
        ticks: bool,
    },
    /// The pack has commands for several states, and nothing says which comes first.
    OneOf(Vec<StateName>),
    /// The pack brings no command.
    Nothing,
}

impl Pack {
    /// Returns the README beside the pack's `.aynig/`, or else the one in it.
    pub(crate) fn readme(&self, origin: &Origin) -> Result<Option<Readme>, StoreError> {
        let inside = origin.pack_folder();
        for folder in [origin.folder.as_str(), &inside] {
            let tree = format!("{}:{folder}", self.commit);
            let listed = self.command().verb("ls-tree").args(["-z", "-l", &tree]).output()?;
            let lines: Vec<&[u8]> = match listed.status.success() {
                true => listed.stdout.split(|b| *b == 0).filter(|l| !l.is_empty()).collect(),
                false => continue,
            };
            let entries = lines.into_iter().map(Entry::parse).collect::<Result<Vec<_>, _>>()?;
            let named = |name: &&str| entries.iter().find(|entry| entry.path == name.as_bytes());
            let Some(entry) = NAMES.iter().find_map(named) else { continue };
            let is_file = entry.judge().is_ok_and(|kind| kind != Kind::Link);
            if !is_file || entry.size > README_MAX {
                continue;
            }
            let path = [folder, "/", &escape(entry.path)].concat();
            let text = String::from_utf8_lossy(&self.blob(entry.id)?).into_owned();
            return Ok(Some(Readme { path: path.trim_start_matches('/').to_owned(), text }));
        }
        Ok(None)
    }

    /// Returns how the pack is started: as its README says, or else by its only state.
    pub(crate) fn start(&self, readme: Option<&Readme>) -> Start {
        let states = self.states();
        let told =
            readme.and_then(Readme::told).and_then(|told| allowed(&told, &states, self.roles().is_some()));
        if let Some((line, ticks)) = told {
            return Start::Command { line, ticks };
        }
        let mut first = states.iter().filter(|state| state.as_str() != STALLED);
        match (first.next(), first.next()) {
            (Some(only), None) => {
                Start::Command { line: format!("git aynig set-state {only} -b try"), ticks: true }
            }
            (Some(_), Some(_)) => Start::OneOf(states.into_iter().collect()),
            // The pack only handles failures: `run` starts it where a branch has stalled.
            (None, _) if !states.is_empty() => {
                Start::Command { line: "git aynig run".to_owned(), ticks: false }
            }
            (None, _) => Start::Nothing,
        }
    }

    /// Returns the path below `.aynig/` of the pack's file of roles for a governed run.
    pub(crate) fn roles(&self) -> Option<&[u8]> {
        let is = |path: &[u8]| path.rsplit(|b| *b == b'/').next() == Some(ROLES.as_bytes());
        self.files
            .iter()
            .find(|file| file.kind == Kind::Plain && is(&file.path))
            .map(|file| file.path.as_slice())
    }

    /// Returns the states for which the pack has a command, in any role.
    fn states(&self) -> BTreeSet<StateName> {
        let commands = self.files.iter().filter_map(|file| {
            let path = std::str::from_utf8(&file.path).ok()?;
            let state = path.strip_prefix("command/").or_else(|| {
                let (_, rest) = path.strip_prefix("roles/")?.split_once('/')?;
                rest.strip_prefix("command/")
            })?;
            StateName::new(state).ok()
        });
        commands.collect()
    }
}

impl Readme {
    /// Returns the README's first paragraph of prose, on one line, escaped and cut; empty where there is
    /// none.
    pub(crate) fn paragraph(&self) -> String {
        let mut lines = self.text.lines().map(str::trim).skip_while(|line| !is_prose(line));
        let words: Vec<&str> = lines.by_ref().take_while(|line| is_prose(line)).collect();
        let whole = words.join(" ");
        let cut: String = whole.chars().take(PARAGRAPH_MAX).collect();
        let more = if cut.len() < whole.len() { "..." } else { "" };
        escape(cut.as_bytes()) + more
    }

    /// Returns the words of the command in the README's first `Start:` line; `None` for a line that a shell
    /// can't split, or with characters that would have to be escaped.
    fn told(&self) -> Option<Vec<String>> {
        let line = self.text.lines().find_map(|line| line.strip_prefix("Start:"))?.trim();
        let line = line.strip_prefix('`').and_then(|l| l.strip_suffix('`')).unwrap_or(line);
        shlex::split(line).filter(|_| escape(line.as_bytes()) == line)
    }
}

/// True for a line of prose: no heading, table, picture, HTML or code.
fn is_prose(line: &str) -> bool {
    let marks = ["#", "===", "---", "```", "|", "[!", "![", "<", "Start:"];
    !line.is_empty() && !marks.iter().any(|mark| line.starts_with(mark))
}

/// Returns the command as it is shown, quoted anew, and whether a tick must follow; `None` for a command or
/// an option that is not allowed.
fn allowed(words: &[String], states: &BTreeSet<StateName>, has_roles: bool) -> Option<(String, bool)> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (rest, options): (&[&str], &[&str]) = match words.as_slice() {
        ["git", "aynig", "set-state", state, rest @ ..] => {
            states.contains(&StateName::new(state).ok()?).then_some(())?;
            (rest, &["-b", "-m", "--trailer", "--dialect"])
        }
        ["git", "aynig", "govern", "start", rest @ ..] if has_roles => (rest, &["-b"]),
        ["git", "aynig", "run"] => return Some((words.join(" "), false)),
        _ => return None,
    };
    let pairs = rest
        .chunks(2)
        .all(|pair| matches!(pair, [option, value] if options.contains(option) && !value.starts_with('-')));
    let quoted: Vec<String> = words.iter().map(|word| shell_word(word.as_bytes())).collect();
    pairs.then(|| (quoted.join(" "), true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readme(text: &str) -> Readme {
        Readme { path: "README.md".to_owned(), text: text.to_owned() }
    }

    fn shown(line: &str) -> Option<String> {
        let states = ["build", "turn/pm", "stalled"].map(|s| StateName::new(s).unwrap()).into();
        let told = readme(&format!("# x\n\n{line}\n")).told()?;
        allowed(&told, &states, true).map(|(line, _)| line)
    }

    #[test]
    fn only_what_starts_a_state_of_the_pack_is_shown() {
        let is = |line: &str, to: &str| assert_eq!(shown(line).as_deref(), Some(to), "{line}");
        is("Start: `git aynig set-state build -b x`", "git aynig set-state build -b x");
        is("Start: git aynig set-state build -m \"a  b\"", "git aynig set-state build -m 'a  b'");
        is("Start: git aynig set-state build -m '$(x)'", "git aynig set-state build -m '$(x)'");
        is("Start: `git aynig govern start -b work`", "git aynig govern start -b work");
        is("Start: git aynig run", "git aynig run");
        for line in [
            "Start: rm -rf .",
            "Start: git aynig set-state other",
            "Start: git aynig set-state build -F /etc/passwd",
            "Start: git aynig set-state build --push",
            "Start: git aynig set-state build -b --push",
            "Start: git aynig set-state build -b",
            "Start: git aynig run --remote x",
            "Start: git aynig trust --branches",
            "Start: git aynig run; x",
            "Start: git -c alias.aynig=!x aynig run",
            "Start: git aynig set-state build -m 'a\u{202e}b'",
            " Start: git aynig run",
        ] {
            assert_eq!(shown(line), None, "{line}");
        }
        // The command is quoted anew: what a shell would split or run becomes one word.
        assert_eq!(
            shown("Start: git aynig set-state build -b a;x").as_deref(),
            Some("git aynig set-state build -b 'a;x'")
        );
    }

    #[test]
    fn the_first_paragraph_is_prose_on_one_line() {
        let of = |text: &str| readme(text).paragraph();
        assert_eq!(of("# Title\n\n[![b](x)](y)\n\nOne\ntwo.\n\nThree.\n"), "One two.");
        assert_eq!(of("Title\n=====\n"), "Title");
        assert_eq!(of("# Title\n"), "");
        assert_eq!(of("a\u{1b}[31mb\n"), r"a\x1b[31mb");
        assert_eq!(of(&"x".repeat(500)).len(), 403);
    }
}

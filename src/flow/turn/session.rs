//! The session that a turn goes on with, if its program still has it.
//!
//! Programs keep sessions in files of the account: claude's is resumed by that file's path, codex's by its
//! name, gemini's by the file that holds it. A session is not used if it is another provider's, is older than
//! a reset, or belongs to a node whose sessions are not resumed. Without a session the whole prompt is sent,
//! with what went before. A record may come by a push, too: so what it calls a session has to be a name, and
//! no option, and leads to no conversation that the account had elsewhere. Implements N9 (sessions).

use super::Ground;
use super::before::Before;
use crate::agents::claude;
use crate::contract::words::Provider;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Most folders, and most files of one folder, that are searched for gemini's sessions.
const FOLDERS_MAX: usize = 2000;
/// How much of the beginning of a session's file is searched for the session's name, in bytes.
const HEAD_MAX: u64 = 4096;

/// A session that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Going {
    /// A session that is resumed by its name.
    Id(String),
    /// A session that is resumed by its file.
    File(PathBuf),
}

impl Ground<'_> {
    /// Returns the session that goes on; `None` where a new one begins.
    pub(super) fn session(&self, before: &Before) -> Option<Going> {
        let record = before.record.as_ref()?;
        let own = record.run_id == self.kept.id && record.node_id == self.node;
        let same = own && record.provider == self.config().provider;
        let node = self.kept.flow.nodes.get(&self.node)?;
        if !same || record.resets != node.resets || !self.config().session.resume {
            return None;
        }
        self.found(record.session.as_ref()?, record.cwd.as_deref())
    }

    /// Returns the session of this name, if its program still has it. `cwd` is the folder in which the
    /// program said that it works.
    pub(super) fn found(&self, id: &str, cwd: Option<&str>) -> Option<Going> {
        if !is_name(id) {
            return None;
        }
        match self.config().provider {
            Provider::Claude => {
                let own = self.variable("CLAUDE_CONFIG_DIR").map(PathBuf::from);
                let home = own.or_else(|| Some(PathBuf::from(self.variable("HOME")?).join(".claude")))?;
                let file = claude::session_file(&home, cwd.filter(|cwd| self.is_a_slot(cwd))?, id)?;
                file.is_file().then_some(Going::File(file))
            }
            Provider::Codex => Some(Going::Id(id.to_owned())),
            // Where gemini is gated, it is talked to, and loads a session without what was said in it.
            Provider::Gemini if self.is_gated() => None,
            Provider::Gemini => self.of_gemini(id).map(Going::File),
            // A custom program's session is not resumed: it gets the whole prompt each time.
            Provider::Custom => None,
        }
    }

    /// True if turns of this repository work in this folder, or did: it is in this turn's slot or in one
    /// beside it. `aynig.worktreeDir` may have been different before, so it may also be below a folder that
    /// is named as the folder of this repository's slots is.
    fn is_a_slot(&self, cwd: &str) -> bool {
        let (real, cwd) = (self.slot.canonicalize().ok(), Path::new(cwd));
        let mut slots = [real.as_deref(), Some(&self.slot)].into_iter().flatten().filter_map(Path::parent);
        let is_plain = cwd.components().all(|part| part != std::path::Component::ParentDir);
        let id = self.runner.repo.id();
        let named = cwd.ancestors().skip(1).any(|above| above.file_name() == Some(OsStr::new(&id)));
        is_plain && (named || slots.any(|slots| cwd != slots && cwd.starts_with(slots)))
    }

    /// Returns a variable of the program's environment; `None` where it is not set, or empty.
    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.agent_env.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// Returns the folder in which gemini's `.gemini` is.
    pub(super) fn gemini_home(&self) -> Option<PathBuf> {
        self.variable("GEMINI_CLI_HOME").or_else(|| self.variable("HOME")).map(PathBuf::from)
    }

    /// Finds gemini's session file: `<home>/.gemini/tmp/<folder>/chats/session-*<8 of its name>.jsonl`.
    fn of_gemini(&self, id: &str) -> Option<PathBuf> {
        let home = self.gemini_home()?;
        let short = id.get(..8)?;
        let folders = std::fs::read_dir(home.join(".gemini/tmp")).ok()?;
        for folder in folders.flatten().take(FOLDERS_MAX) {
            let Ok(files) = std::fs::read_dir(folder.path().join("chats")) else { continue };
            for file in files.flatten().take(FOLDERS_MAX) {
                let name = file.file_name().to_string_lossy().into_owned();
                if name.starts_with("session-") && name.contains(short) && holds(&file.path(), id) {
                    return Some(file.path());
                }
            }
        }
        None
    }
}

/// True if this can be the name of a session. The name becomes an argument of the agent's program, so it must
/// not be an option.
fn is_name(id: &str) -> bool {
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    plain && !id.is_empty() && !id.starts_with('-')
}

/// True if the beginning of a file names this session.
fn holds(file: &std::path::Path, id: &str) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(HEAD_MAX).read_to_end(&mut head));
    read.is_ok() && head.windows(id.len()).any(|part| part == id.as_bytes())
}

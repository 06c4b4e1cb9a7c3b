//! The session that a turn goes on with, where its program still has it.
//!
//! Programs keep sessions in files of the account's: claude's is resumed by that file's path, codex's by its name, gemini's
//! by the file that holds it. One of another provider, of before a reset, or of a node whose sessions are not resumed is none.
//! Where there is none the whole prompt is sent, with what went before. A record comes by a push as well: what it calls a
//! session is a name and no option, and leads to no conversation that the account had elsewhere. Implements N9 (sessions).

use super::Ground;
use super::before::Before;
use crate::agents::claude;
use crate::contract::words::Provider;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Most folders, and files of one, that gemini's sessions are looked for in.
const FOLDERS_MAX: usize = 2000;
/// How much of the beginning of a session's file is looked through for its name.
const HEAD_MAX: u64 = 4096;

/// A session that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Going {
    /// By its name.
    Id(String),
    /// By its file.
    File(PathBuf),
}

impl Ground<'_> {
    /// The session that goes on; none where a new one begins.
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

    /// The session of this name, where its program still has it; `cwd` is the folder that it said it works in.
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
            // In a conversation it loads a session without what was said in it.
            Provider::Gemini if self.is_gated() => None,
            Provider::Gemini => self.of_gemini(id).map(Going::File),
            // It has the name in its environment, and the whole prompt.
            Provider::Custom => None,
        }
    }

    /// Whether turns of this repository work in this folder, or did: it is in this one's slot, in one beside it, or, as
    /// `aynig.worktreeDir` may have been another, below a folder that is called as those of its slots are.
    fn is_a_slot(&self, cwd: &str) -> bool {
        let (real, cwd) = (self.slot.canonicalize().ok(), Path::new(cwd));
        let mut slots = [real.as_deref(), Some(&self.slot)].into_iter().flatten().filter_map(Path::parent);
        let is_plain = cwd.components().all(|part| part != std::path::Component::ParentDir);
        let id = self.runner.repo.id();
        let named = cwd.ancestors().skip(1).any(|above| above.file_name() == Some(OsStr::new(&id)));
        is_plain && (named || slots.any(|slots| cwd != slots && cwd.starts_with(slots)))
    }

    /// A variable of the program's environment.
    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.agent_env.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// The folder that gemini's own is in.
    pub(super) fn gemini_home(&self) -> Option<PathBuf> {
        self.variable("GEMINI_CLI_HOME").or_else(|| self.variable("HOME")).map(PathBuf::from)
    }

    /// The file that holds a session of gemini's: `<home>/.gemini/tmp/<folder>/chats/session-*<8 of its name>.jsonl`.
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

/// Whether this can be the name of a session. It becomes an argument of the agent's program, so it is no option.
fn is_name(id: &str) -> bool {
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    plain && !id.is_empty() && !id.starts_with('-')
}

/// Whether a file's beginning names this session.
fn holds(file: &std::path::Path, id: &str) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(HEAD_MAX).read_to_end(&mut head));
    read.is_ok() && head.windows(id.len()).any(|part| part == id.as_bytes())
}

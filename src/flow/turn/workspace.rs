//! The tools by which a program that has none of its own works in the slot: `command`, `read_file`,
//! `write_file`, `list_files`, `delete_file`.
//!
//! A path lies in the slot, and is walked from its top component by component: no link leads out of it, and
//! nothing of Git's own is touched. Everything is bounded: what is read, printed and listed, and how long a
//! command takes. What a node may not do is refused before anything is done; whatever was changed all the
//! same is judged when the turn is over. Implements N7 (workspace tools), N10 (what is refused at once).

use super::settings::SILENCE;
use crate::contract::limits::beyond;
use crate::contract::node::Capabilities;
use crate::contract::shown;
use crate::contract::words::GlobalMode;
use crate::protocol::declaration::is_inside;
use crate::runner::clock::Clock;
use crate::supervisor::beneath::{BeneathError, Kind, Root};
use crate::supervisor::bounded::{Bounded, Output, Verdict};
use crate::supervisor::confine::Confinement;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Most bytes of a file that is read or written.
const FILE_MAX: u64 = 4 << 20;
/// Most bytes of each output stream of a command that the agent is told.
const PRINTED_MAX: usize = 256 << 10;
/// Most names that are listed.
const NAMES_MAX: usize = 10_000;
/// How long a command may take.
const COMMAND_TIME: Duration = SILENCE;

/// What a call asks to be done in the slot.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Run a line in the shell, in a folder of the slot.
    Command { line: String, folder: PathBuf },
    /// Read the text of a file.
    Read(PathBuf),
    /// Write a file with this text.
    Write(PathBuf, String),
    /// List what a folder holds.
    List(PathBuf),
    /// Delete a file.
    Delete(PathBuf),
}

/// Where the work is done, and what bounds it.
pub struct Place<'a> {
    pub slot: &'a Path,
    /// The environment of commands.
    pub env: &'a [(OsString, OsString)],
    /// What commands are confined to; `None` where they are confined to nothing.
    pub confine: Option<&'a Confinement>,
    pub clock: &'a dyn Clock,
    /// Says whether the turn is to stop.
    pub stop: &'a dyn Fn() -> bool,
}

/// Reads what a call asks for; `None` where it is no tool of the workspace.
pub fn read(slot: &Path, name: &str, args: &Map<String, Value>) -> Option<Result<Work, String>> {
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    let needed = |key: &str| text(key).ok_or_else(|| format!("{name}: '{key}' is missing"));
    let path = |key: &str| needed(key).and_then(|path| inside(slot, path));
    let folder = |key: &str| text(key).map_or(Ok(PathBuf::new()), |path| inside(slot, path));
    Some(match name {
        "command" => {
            needed("cmd").and_then(|line| Ok(Work::Command { line: line.to_owned(), folder: folder("cwd")? }))
        }
        "read_file" => path("path").map(Work::Read),
        "write_file" => path("path").and_then(|path| Ok(Work::Write(path, needed("content")?.to_owned()))),
        "list_files" => folder("path").map(Work::List),
        "delete_file" => path("path").map(Work::Delete),
        _ => return None,
    })
}

/// Returns a path relative to the slot; refuses one that is not in it.
fn inside(slot: &Path, path: &str) -> Result<PathBuf, String> {
    let below = Path::new(path).strip_prefix(slot).unwrap_or(Path::new(path));
    let below = below.to_str().unwrap_or(path).trim_end_matches('/');
    let below = below.strip_prefix("./").unwrap_or(below);
    match below {
        "" | "." => Ok(PathBuf::new()),
        _ if is_inside(below) => Ok(PathBuf::from(below)),
        _ => Err(format!("'{}' is no path in the worktree", shown::line(path.as_bytes()))),
    }
}

impl Work {
    /// Refuses work that the node may not do: a change of this path, or a command.
    pub fn is_allowed(&self, may: &Capabilities, mode: GlobalMode) -> Result<(), String> {
        let changes = |path: &Path| {
            let path = path.as_os_str().as_encoded_bytes();
            beyond(path, mode, may).map_or(Ok(()), |beyond| Err(beyond.why().to_owned()))
        };
        match self {
            Self::Command { .. } if !may.run_commands => Err("this node may not run commands".to_owned()),
            Self::Write(path, _) | Self::Delete(path) => changes(path),
            Self::Command { .. } | Self::Read(_) | Self::List(_) => Ok(()),
        }
    }

    /// Does the work.
    ///
    /// # Errors
    /// A sentence for the agent.
    pub fn perform(&self, at: &Place<'_>) -> Result<Value, String> {
        let root = Root::open(at.slot).map_err(words)?;
        match self {
            Self::Command { line, folder } => {
                root.below(folder).map_err(words)?;
                command(line, &at.slot.join(folder), at)
            }
            Self::Read(path) => {
                let content = root.read(path, FILE_MAX).map_err(words)?;
                String::from_utf8(content).map(Value::from).map_err(|_| "it is no UTF-8 text".to_owned())
            }
            Self::Write(_, content) if content.len() as u64 > FILE_MAX => {
                Err(format!("a file of {} bytes is not written", content.len()))
            }
            Self::Write(path, content) => {
                if let Some(parent) = path.parent() {
                    root.create_dirs(parent, 0o777).map_err(words)?;
                }
                root.replace(path, content.as_bytes(), mode_of(&root, path)).map_err(words)?;
                Ok(format!("{} bytes", content.len()).into())
            }
            Self::List(path) => {
                let entries = root.list(path, NAMES_MAX).map_err(words)?;
                let named = |name: &OsString, kind: Kind| {
                    let mark = if kind == Kind::Folder { "/" } else { "" };
                    format!("{}{mark}", shown::line(name.as_encoded_bytes()))
                };
                let names =
                    entries.iter().filter(|entry| !(path.as_os_str().is_empty() && entry.name == ".git"));
                Ok(names.map(|entry| named(&entry.name, entry.kind)).collect::<Vec<_>>().join("\n").into())
            }
            Self::Delete(path) => {
                root.remove(path).map_err(words)?;
                Ok("removed".into())
            }
        }
    }
}

/// Returns the mode that a file has, or that a new one gets.
fn mode_of(root: &Root, path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    let mode = root.file(path).map(|file| {
        let found = file.metadata().map(|meta| meta.permissions().mode() & 0o777);
        found.unwrap_or(0o666)
    });
    mode.unwrap_or(0o666)
}

fn words(error: BeneathError) -> String {
    crate::protocol::text::with_causes(&error)
}

fn command(line: &str, folder: &Path, at: &Place<'_>) -> Result<Value, String> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir(folder).env_clear().envs(at.env.iter().cloned());
    let mut bounded = Bounded::new(command);
    (bounded.stdout, bounded.stderr) = (Output::Capture(PRINTED_MAX), Output::Capture(PRINTED_MAX));
    bounded.own_group = true;
    bounded.confine = at.confine;
    bounded.interrupt = Some(at.stop);
    bounded.deadline = at.clock.instant().checked_add(COMMAND_TIME);
    let ended = bounded.run().map_err(|error| crate::protocol::text::with_causes(&error))?;
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    let (out, err) = (text(&ended.stdout.bytes), text(&ended.stderr.bytes));
    let why = match ended.verdict {
        Verdict::Ended => None,
        Verdict::Deadline { .. } => Some(format!("ended after {} s", COMMAND_TIME.as_secs())),
        Verdict::Interrupted { .. } => Some("ended, as the turn was".to_owned()),
    };
    match (why, ended.status.code()) {
        (None, Some(0)) => Ok(json!({"stdout": out, "stderr": err, "exit": 0})),
        (None, Some(code)) => Err(format!("exit {code}\n{out}{err}")),
        (None, None) => Err(format!("{}\n{out}{err}", ended.status)),
        (Some(why), _) => Err(format!("{why}\n{out}{err}")),
    }
}

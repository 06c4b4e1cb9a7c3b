//! How the provider's program is started: its call, its environment, and the refusal of trees that would
//! configure it.
//!
//! The account's configuration alone says which program it is. The environment is this process's, without
//! what the kernel tells commands and without the variables that trailers of the branch became: so no agent
//! takes the turn for its own run, and no push decides where its key is sent. Implements N9 (the call), N9a.

use super::program::Launch;
use super::session::Going;
use super::tools::Offer;
use super::{Ground, TurnError};
use crate::agents::call::{Call, Refused, Resume, Turn};
use crate::agents::custom::Custom;
use crate::agents::{Talk, Told, admit, program, turn};
use crate::contract::prompt::Prompt;
use crate::contract::words::Provider;
use crate::runner::talk::TalkError;
use crate::store::{FOLDER, TreeEntry};
use crate::supervisor::own_program;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Most bytes that are kept of what a program prints.
pub const KEPT_MAX: u64 = 16 << 20;
/// Variables of the kernel that say nothing of a run, and are passed on.
const PASSED: [&str; 4] = ["AYNIG_SLOT", "AYNIG_PORT_BASE", "AYNIG_SANDBOX", "AYNIG_BRANCH"];
/// Further variables with which the kernel tells commands about their run.
const TOLD: [&str; 7] =
    ["BODY", "COMMIT_HASH", "ROLE", "LOG_LEVEL", "STDOUT_LOG_PATH", "STDERR_LOG_PATH", "WORKTREE_PATH"];
/// Variables that keep programs from asking a user who is not there.
const QUIET: [(&str, &str); 6] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
];
const LINK: u32 = 0o120000;

/// Returns the environment of what a turn starts.
pub fn environment(
    own: &[(OsString, OsString)],
    configured: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let value = |name: &[u8]| own.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, value)| value);
    let passed = |name: &OsStr, is: &OsStr| {
        let bytes = name.as_bytes();
        let text = name.to_str().unwrap_or_default();
        let of_kernel = (bytes.starts_with(b"AYNIG_") && !PASSED.contains(&text)) || TOLD.contains(&text);
        let trailer = value(&[b"AYNIG_TRAILER_", bytes].concat());
        // A trailer became a variable of its own name, too, with the last of its values.
        let of_branch =
            trailer.is_some_and(|all| all.as_bytes().rsplit(|b| *b == b'\n').next() == Some(is.as_bytes()));
        !of_kernel && !of_branch && !bytes.starts_with(b"DWP_")
    };
    let mut env: Vec<(OsString, OsString)> =
        own.iter().filter(|(name, value)| passed(name, value)).cloned().collect();
    let mut set = |name: &str, value: &str| {
        env.retain(|(known, _)| known != name);
        env.push((name.into(), value.into()));
    };
    QUIET.iter().for_each(|(name, value)| set(name, value));
    configured.iter().for_each(|(name, value)| set(name, value));
    // An entry of PATH that is relative would lead into the slot, where programs are a branch's.
    for (_, path) in env.iter_mut().filter(|(name, _)| name == "PATH") {
        let whole = path.as_bytes().split(|b| *b == b':').filter(|entry| entry.starts_with(b"/"));
        *path = OsString::from_vec(whole.collect::<Vec<_>>().join(&b':'));
    }
    env
}

impl Ground<'_> {
    /// Returns why a tree is refused from which the provider's program would take settings or credentials.
    pub(super) fn refused(&self) -> Result<Option<Refused>, TurnError> {
        let store = &self.runner.store;
        let read = |tree| -> Result<Vec<TreeEntry>, TurnError> {
            Ok(store.read_tree(tree).map_err(TalkError::from)?)
        };
        let top = read(store.read_commit(self.trigger).map_err(TalkError::from)?.tree)?;
        let mut paths: Vec<Vec<u8>> = Vec::new();
        for entry in &top {
            paths.push(entry.name.clone());
            if !entry.name.starts_with(b".") {
                continue;
            }
            match entry.mode {
                FOLDER => {
                    let below = read(entry.id)?;
                    paths.extend(below.iter().map(|below| [&entry.name, &b"/"[..], &below.name].concat()));
                }
                // The link may lead to a folder that has any file, this one too.
                LINK => paths.push([&entry.name, &b"/.env"[..]].concat()),
                _ => {}
            }
        }
        let paths = paths.iter().map(Vec::as_slice);
        Ok(admit(self.config().provider, self.program.project_settings, paths).err())
    }

    /// Returns how to start the program for a prompt, in a session that goes on or in a new one.
    pub(super) fn launch(
        &self,
        prompt: &Prompt,
        going: Option<&Going>,
        tools: Option<&Offer>,
    ) -> (Launch<'_>, Box<dyn Talk>) {
        let provider = self.config().provider;
        let tmp = self.folder.join("tmp");
        let asked = Turn {
            prompt: &prompt.text,
            cwd: &self.start,
            temporary: &tmp,
            model: self.program.model.as_deref(),
            resume: match going {
                None => Resume::New,
                Some(Going::Id(id)) => Resume::Id(id),
                Some(Going::File(file)) => Resume::File(file),
            },
            gated: self.is_gated(),
            confined: self.confinement().is_some(),
            project_settings: self.program.project_settings,
            tools: tools.map(Offer::as_tools),
            extra: &self.program.args,
        };
        let Call { args, env: own, mut talk } = turn(provider, &asked).unwrap_or_else(|| Call {
            args: self.program.args.iter().map(OsString::from).collect(),
            env: vec![("TMPDIR", Some(tmp.clone().into()))],
            talk: Box::new(Custom::new(self.program.protocol, &prompt.text, prompt.kind, self.turn)),
        });
        let mut argv: Vec<OsString> = self.program.command.iter().map(OsString::from).collect();
        if argv.is_empty() {
            argv.extend(program(provider).map(OsString::from));
        }
        argv.extend(args);
        let mut env = self.agent_env.clone();
        for (name, value) in own {
            env.retain(|(known, _)| known != name);
            env.extend(value.map(|value| (name.into(), value)));
        }
        let opening = talk.opening();
        let closes = talk.closes();
        let launch = Launch {
            guardian: own_program(&self.runner.program),
            argv,
            env,
            cwd: &self.start,
            folder: &self.folder,
            opening,
            closes,
            log_max: self.runner.settings.log_max.min(KEPT_MAX),
            confine: self.confinement().cloned(),
        };
        (launch, talk)
    }

    /// Returns how a session of this turn goes on within the turn; `None` where it can't.
    pub(super) fn going_on(&self, id: &str, told: &Told) -> Option<Going> {
        match self.config().provider {
            Provider::Custom => None,
            Provider::Claude | Provider::Codex | Provider::Gemini => self.found(id, told.cwd.as_deref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N9: a program is found by whole paths alone: an entry of PATH that is relative, or empty, leads into a branch's files.
    #[test]
    fn a_program_is_found_by_whole_paths_alone() {
        let own = [("PATH".into(), "/bin:.::rel/bin:/usr/bin:".into()), ("HOME".into(), "/home/ada".into())];
        let made = environment(&own, &[]);
        let path: Vec<_> = made.iter().filter(|(name, _)| name == "PATH").map(|(_, path)| path).collect();
        assert_eq!(path, ["/bin:/usr/bin"]);
        let made = environment(&own, &[("PATH".into(), "bin:/opt/bin".into())]);
        assert!(made.contains(&("PATH".into(), "/opt/bin".into())));
    }
}

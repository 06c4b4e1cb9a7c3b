//! What a confined command asks its runner for, in the run's folder: one file per request, and the answer in
//! a file beside it.
//!
//! The command can write to the folder, so nothing in it is trusted: no link is followed, and only plain
//! files are read, bounded in size and number. The runner starts the verb as a process of its own, outside of
//! the sandbox. The verb's environment holds what the runner knows of the run, and nothing that the command
//! says, so the verb can act for this run alone; the verb itself checks whether the branch is still the
//! run's. Implements K59 (the hand-over).

use super::active_run::ActiveRun;
use super::settings::Sandbox;
use crate::protocol::flow::{ROUTE, TURN, slug_of};
use crate::protocol::handed::{ANSWER_MAX, Answer, FOLDER, Handed, REQUEST_MAX, REQUESTS_MAX};
use crate::protocol::text::with_causes;
use crate::store::beneath::Root;
use crate::supervisor::bounded::{Bounded, Input, Output, Verdict};
use crate::supervisor::own_program;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the runner looks for requests.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// How long a verb may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time that a verb which is stopped gets from SIGTERM to SIGKILL.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// Most files in the folder that are listed.
const NAMES_MAX: usize = 10_000;
/// How long requests are answered one after another before the runner looks at the run's other duties.
const AT_A_TIME: Duration = Duration::from_secs(1);

impl ActiveRun<'_> {
    /// True where the command is confined, and so hands verbs over.
    pub(super) fn hands_over(&self) -> bool {
        self.runner.settings.sandbox != Sandbox::Off
    }

    /// Answers the requests that are there, as far as there is time; true where there were any. A folder that
    /// can't be read holds no request.
    pub(super) fn answer_handed(&mut self) -> bool {
        let Ok(root) = Root::open(&self.dir) else { return false };
        let Ok(root) = root.below(Path::new(FOLDER)) else { return false };
        let Ok(entries) = root.list(Path::new(""), NAMES_MAX) else { return false };
        let (mut any, began) = (false, self.runner.clock.instant());
        for entry in entries {
            if self.runner.clock.instant() - began >= AT_A_TIME || self.is_pressed() {
                break;
            }
            let name = PathBuf::from(entry.name);
            if name.to_str().and_then(|name| uuid::Uuid::parse_str(name).ok()).is_none() {
                continue;
            }
            let raw = root.read(&name, REQUEST_MAX);
            // The request is removed before it is answered, so it is answered once, whatever comes of it.
            if root.remove(&name).is_err() {
                continue;
            }
            any = true;
            self.handed += 1;
            let answer = match raw {
                Ok(_) if self.handed > REQUESTS_MAX => Answer::refused("it has asked too often"),
                Ok(raw) => self.answer_one(&raw).unwrap_or_else(|why| Answer::refused(&why)),
                Err(why) => Answer::refused(&with_causes(&why)),
            };
            let done = name.with_extension("done");
            let _ = serde_json::to_vec(&answer).map(|answer| root.replace(&done, &answer, 0o644));
        }
        any
    }

    /// True where the run can't wait for an answer: a signal asks it to end and its command was not told yet,
    /// or half of the time for renewing its lease has passed.
    fn is_pressed(&self) -> bool {
        let runner = self.runner;
        let holds = self.own_event.is_none() && self.interrupted.is_none();
        self.interrupted.is_none() && runner.interrupt.signal().is_some()
            || holds && runner.deadlines(&self.claim).presses(runner.clock.elapsed())
    }

    fn answer_one(&self, raw: &[u8]) -> Result<Answer, String> {
        let request = Handed::parse(raw)?;
        let words = request.words(self.branch.short())?;
        let (runner, run) = (self.runner, &self.claim.run);
        if [TURN, ROUTE].contains(&run.state.as_str()) && slug_of(self.branch.short()).is_some() {
            // What an agent wrote in this way would count as the turn's outcome, with calls that no policy
            // allowed.
            return Err("a node's turn hands nothing over".to_owned());
        }
        let mut bounds = Bounded::program(&own_program(&runner.program));
        let command = &mut bounds.command;
        command
            .arg("--git-dir")
            .arg(&runner.repo.git_dir)
            .args(words.iter().map(|word| OsStr::from_bytes(word)));
        command.env_remove("AYNIG_SANDBOX").env("AYNIG_RUN_ID", &run.id).env("AYNIG_RUN_DIR", &self.dir);
        command.env("AYNIG_BRANCH", OsStr::from_bytes(self.branch.short()));
        command
            .env("AYNIG_REMOTE", run.remote.as_deref().unwrap_or(""))
            .env("AYNIG_HOP", run.hop.to_string());
        command.current_dir(&runner.repo.common_dir);
        let is_pressed = || self.is_pressed();
        let input = request.text.map_or(Input::Null, |text| Input::Bytes(text.into_bytes()));
        let bounds = Bounded {
            input,
            stdout: Output::Capture(ANSWER_MAX),
            stderr: Output::Capture(ANSWER_MAX),
            deadline: Some(runner.clock.instant() + PATIENCE),
            interrupt: Some(&is_pressed),
            term_grace: TERM_GRACE,
            own_group: true,
            ..bounds
        };
        let ended = bounds.run().map_err(|why| with_causes(&why))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = ended.status.code().filter(|_| ended.verdict == Verdict::Ended);
        Ok(Answer {
            code: code.unwrap_or(75),
            out: text(&ended.stdout.bytes),
            err: text(&ended.stderr.bytes),
        })
    }
}

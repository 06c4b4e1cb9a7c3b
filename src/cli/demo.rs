//! `demo`: plays a three-state workflow in a throwaway repository and shows its history.
//!
//! Every step is a command as a person would type it, run for real: this binary and the real git, in a
//! folder of its own with its own HOME and configuration, so that nothing of the user's is touched or
//! trusted. Exits 0 only if every step did what it should: the branch's states are read back and compared.
//! Implements git-aynig-demo(1).

use super::args::Demo;
use super::fail::Failure;
use super::output;
use super::session::Global;
use crate::app::demo::{DemoError, Place};
use crate::protocol::text::escape_block;
use crate::supervisor::interrupt::Interrupt;
use std::time::Duration;

/// The pause between two steps, on a terminal.
const PACE: Duration = Duration::from_millis(60);

const BUILD: &str = r#"#!/bin/sh
# Answers "dwp-state: build": writes the greeting that was asked for.
set -eu
if ! [ -e "$HOME/mirror-is-up" ]; then
    touch "$HOME/mirror-is-up"
    echo "fetching greetings: mirror did not answer" >&2
    exit 1
fi
echo "building for $DWP_TICKET"
echo "Hello, $BODY!" >greeting.txt
echo 'SET_STATE {"state":"review","subject":"build: greeting ready","keep_trailers":true}'
"#;

const REVIEW: &str = r#"#!/bin/sh
# Answers "dwp-state: review": checks what the build left.
set -eu
grep -q '^Hello, .*!$' greeting.txt
echo "looks fine: $(cat greeting.txt)"
git aynig set-state done -m "review: approved" --trailer "Reviewed-by: demo" --emit
"#;

/// The states that the branch's history must show in the end, oldest first.
const STATES: [&str; 5] = ["build", "stalled", "build", "review", "done"];

/// One performance of the demo.
struct Stage {
    place: Place,
    interrupt: Interrupt,
    pace: Duration,
}

/// Runs `git aynig demo`.
pub fn run(_: &Global, args: &Demo) -> Result<i32, Failure> {
    use std::io::IsTerminal;
    let interrupt = Interrupt::by_signals()?;
    let pace = if std::io::stdout().is_terminal() { PACE } else { Duration::ZERO };
    let stage = Stage { place: Place::make(args.keep.as_deref())?, interrupt, pace };
    let played = stage.play();
    if let Some(signal) = stage.interrupt.signal() {
        return Ok(if signal == 2 { 130 } else { 143 });
    }
    played?;
    stage.farewell(args)?;
    Ok(0)
}

impl Stage {
    fn play(&self) -> Result<(), Failure> {
        self.say("A workflow of three states, build -> review -> done, in a repository of its own.");
        self.does("git init -q", 0)?;
        self.place.write(".aynig/command/build", BUILD)?;
        self.place.write(".aynig/command/review", REVIEW)?;
        self.say("A state's command is any executable in .aynig/command/. It says what comes next:");
        self.does("cat .aynig/command/build .aynig/command/review", 0)?;
        self.does("git add .aynig", 0)?;
        self.does("git commit -q -m 'two commands'", 0)?;
        self.say("Nothing runs until the account's owner says where commands come from:");
        self.does("git aynig trust", 0)?;
        self.say("A commit that names a state asks for work. The branch is made for it:");
        self.does(
            "git aynig set-state build -b greet -m 'greet: please' -m world --trailer 'dwp-ticket: 7'",
            0,
        )?;
        self.expect("status greet --porcelain", "\tbuild\tready\t")?;
        self.say("One tick takes the branch, runs the command, writes what came of it:");
        self.does("git aynig tick", 1)?;
        self.expect("status greet --porcelain", "\tstalled\twaits\t")?;
        self.say("It failed, and that is a commit too. Why?");
        self.does("git aynig logs --stderr greet", 0)?;
        self.does("git aynig status", 0)?;
        self.say("The mirror is back. The same work again, until nothing is left to do:");
        self.does("git aynig retry greet", 0)?;
        self.does("git aynig run", 0)?;
        self.does("git aynig events greet", 0)?;
        self.does("git aynig logs greet", 0)?;
        self.say("All of it is in the branch: no database, no server, nothing left running.");
        self.does("git log --graph --format='%h %s%n%(trailers:only)' greet", 0)?;
        self.does("git ls-tree -r --name-only greet", 0)?;
        self.does("git show greet:greeting.txt", 0)?;
        self.verify()
    }

    /// Reads the branch's events and files back, and compares them with what they must be.
    fn verify(&self) -> Result<(), Failure> {
        let events = self.quietly("git aynig events greet --json")?;
        let mut states: Vec<String> = Vec::new();
        for line in events.lines() {
            let event: serde_json::Value = serde_json::from_str(line)
                .map_err(|e| Failure::fatal(format!("events --json printed no JSON: {e}")))?;
            states.push(event["state"].as_str().unwrap_or_default().to_owned());
        }
        states.reverse();
        if states != STATES {
            let want = STATES.join(", ");
            return Err(wrong("the branch's states", &states.join(", "), &want));
        }
        let greeting = self.quietly("git show greet:greeting.txt")?;
        if greeting != "Hello, world!\n" {
            return Err(wrong("greeting.txt", &greeting, "Hello, world!"));
        }
        self.expect("logs greet", "looks fine: Hello, world!")?;
        self.expect("status greet --porcelain", "\tdone\twaits\t")?;
        let clean = self.quietly("git status --porcelain --untracked-files=no")?;
        if !clean.is_empty() {
            return Err(wrong("the checkout", &clean, "nothing changed"));
        }
        self.quietly("git fsck --strict --no-dangling --no-progress").map(drop)
    }

    fn expect(&self, verb: &str, want: &str) -> Result<(), Failure> {
        let printed = self.quietly(&format!("git aynig {verb}"))?;
        if printed.contains(want) { Ok(()) } else { Err(wrong(verb, &printed, want)) }
    }

    fn say(&self, text: &str) {
        output::line(&format!("\n# {text}"));
    }

    /// Types a command, shows its real output, and insists on its exit status.
    fn does(&self, typed: &str, want: i32) -> Result<(), Failure> {
        if self.interrupt.signal().is_some() {
            return Err(Failure::fatal("interrupted"));
        }
        if !output::offer(&format!("$ {typed}")) {
            return Err(Failure::fatal("the reader of the demo has gone"));
        }
        let (status, printed) = self.place.run(typed)?;
        output::raw(false, escape_block(&printed).as_bytes());
        if status != Some(want) {
            let how = status.map_or("a signal".to_owned(), |s| format!("exit status {s}"));
            return Err(wrong(&format!("'{typed}'"), &how, &format!("exit status {want}")));
        }
        if !self.pace.is_zero() {
            self.interrupt.wait(self.pace);
        }
        Ok(())
    }

    /// Runs a command that is not shown; it must succeed.
    fn quietly(&self, typed: &str) -> Result<String, Failure> {
        let (status, printed) = self.place.run(typed)?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        if status == Some(0) { Ok(printed) } else { Err(wrong(typed, &printed, "exit status 0")) }
    }

    fn farewell(&self, args: &Demo) -> Result<(), Failure> {
        if args.keep.is_some() {
            // The demo's own HOME is deleted, and the worktrees with it: `gc` removes them first, so that the
            // repository that is kept has no registration of a worktree that is gone.
            self.quietly("git aynig gc")?;
            output::line(&format!("\nKept: {}", self.place.repo().display()));
        }
        output::line("\nNow in a repository of your own:");
        for next in ["git aynig init --trust", "git add .aynig && git commit -m 'aynig: first command'"] {
            output::line(&format!("  {next}"));
        }
        output::line("  git aynig set-state hello -b try");
        output::line("  git aynig tick");
        Ok(())
    }
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        let failure = Failure::caused(&error);
        match error {
            DemoError::NotEmpty(_) => failure.hint("git aynig demo --keep <new folder>"),
            DemoError::NoGit => failure.hint("install git, then try again"),
            DemoError::NotMade { .. } | DemoError::NoPlace => failure.hint("TMPDIR=<folder> git aynig demo"),
            DemoError::Io { .. } | DemoError::Path(_) | DemoError::Supervisor(_) => failure,
        }
    }
}

fn wrong(what: &str, found: &str, want: &str) -> Failure {
    let mut failure = Failure::fatal(format!("the demo went wrong at {what}"));
    failure.code = 1;
    failure.causes.push(format!("found '{}', expected '{want}'", found.trim_end()));
    failure.hint("git aynig doctor")
}

//! The command line: arguments, rendering, exit codes; one file per verb. What verbs do is `app`'s.
//!
//! Results go to standard output, everything else to standard error. Nothing below this layer prints.
//! Implements git-aynig(1).

mod answer;
pub mod args;
mod args_flow;
mod args_land;
mod args_serve;
mod args_talk;
mod ask;
mod chain;
mod change;
mod choices;
mod declare;
mod deferred;
mod demo;
mod diff;
mod doctor;
mod events;
mod exit;
mod fail;
mod fan;
mod flow;
mod gc;
mod govern;
mod handed;
mod hints;
mod hook;
mod hooks;
mod inbox;
mod init;
mod inner;
mod install;
mod land;
mod logs;
mod manual;
mod mcp;
mod mend;
mod notify;
mod observe;
mod output;
mod pause;
mod ran;
mod reader;
mod render;
mod send;
mod serve;
mod session;
mod shell;
mod status;
mod terminal;
mod tick;
mod trust;
mod uninstall;
mod usage;
mod wait;
mod warn;
mod watch;
mod written;

use crate::app::Exit;
use crate::runner::report::is_full;
use crate::supervisor::bounded::{Bounded, Input, Output};
use args::{Cli, Verb};
use clap::{CommandFactory, FromArgMatches};
use fail::Failure;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::process::{Command, ExitCode};

/// Returns the whole definition of the command line, for manual pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program with these arguments, the program's name first.
pub fn main(argv: Vec<OsString>) -> ExitCode {
    let argv = as_options(argv);
    let inner = inner::run(&argv);
    // The exit code of what hooks call does not depend on whether its output could be written: no commit or
    // push fails for that.
    let code = inner.unwrap_or_else(|| {
        let code = parse(&argv).map_or_else(|code| code, |cli| code_of(run(cli)));
        output::unwritten().map_or(code, |error| unwritten(error, code))
    });
    ExitCode::from(u8::try_from(code).unwrap_or(128))
}

/// Turns `help`, `help <verb>` and `version`, which Git's users type, into the options `--help` and
/// `--version`.
fn as_options(mut argv: Vec<OsString>) -> Vec<OsString> {
    match argv.get(1).and_then(|first| first.to_str()) {
        Some("version") if argv.len() == 2 => argv[1] = "--version".into(),
        Some("help") => {
            argv.remove(1);
            argv.push("--help".into());
        }
        Some(_) | None => {}
    }
    argv
}

/// Returns the exit code of a verb that ended, and reports its failure.
fn code_of(ended: Result<i32, Failure>) -> i32 {
    ended.unwrap_or_else(|failure| {
        output::error(&failure.render());
        failure.code
    })
}

/// Reports that results were not written, as Git does, and returns an exit code that says so: a script that
/// reads a file with half of the results must not take it for all of them.
fn unwritten(error: &std::io::Error, code: i32) -> i32 {
    output::note(&format!("error: cannot write to standard output: {error}"));
    let own = if is_full(error) { Exit::Later } else { Exit::Failed };
    if code < exit::code(Exit::Failed) { exit::code(own).max(code) } else { code }
}

fn parse(argv: &[OsString]) -> Result<Cli, i32> {
    if let Some(cli) = deferred::called_often(argv) {
        return Ok(cli);
    }
    // The process ends soon: dropping the definition would be a seventh of the work of an idle tick.
    let mut command = ManuallyDrop::new(Cli::command());
    let matches = command.try_get_matches_from_mut(argv).and_then(|m| Cli::from_arg_matches(&m));
    matches.map_err(|error| {
        use clap::error::ErrorKind;
        match error.kind() {
            ErrorKind::DisplayHelp if argv.iter().any(|a| a == "--help") && show_manual(argv) => 0,
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                output::written(error.print());
                0
            }
            _ => wrong_usage(&error),
        }
    })
}

/// Reports what is wrong with the arguments, and returns the exit code. The hint is `-h`: `git aynig --help`
/// is handled by Git itself, which looks for a manual page.
fn wrong_usage(error: &clap::Error) -> i32 {
    output::error(&error.render().to_string().replace("'--help'", "'-h'"));
    129
}

/// Shows the manual page of a verb, where it is installed; false where it is not.
fn show_manual(argv: &[OsString]) -> bool {
    let verbs: Vec<String> = command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let verb = argv.iter().skip(1).filter_map(|a| a.to_str()).find(|a| verbs.iter().any(|v| v == a));
    let page = verb.map_or("git-aynig".to_owned(), |verb| format!("git-aynig-{verb}"));
    man(&["-w", &page], Output::Null) && man(&[&page], Output::Inherit)
}

fn man(args: &[&str], output: Output) -> bool {
    let mut command = Command::new("man");
    command.args(args);
    let shown = Bounded { input: Input::Inherit, stdout: output, stderr: output, ..Bounded::new(command) };
    shown.run().is_ok_and(|ended| ended.status.success())
}

fn run(cli: Cli) -> Result<i32, Failure> {
    let args::Anywhere { directory, git_dir, quiet, verbose } = cli.anywhere;
    for directory in &directory {
        std::env::set_current_dir(directory)
            .map_err(|e| Failure::fatal(format!("cannot change to '{}': {e}", directory.display())))?;
    }
    reader::look();
    let global = session::Global { git_dir, quiet, verbose };
    match cli.verb {
        Verb::Init(args) => init::run(&global, &args),
        Verb::Tick(args) => tick::tick(&global, args.0),
        Verb::Run(args) => tick::run(&global, args.0),
        Verb::SetState(args) => change::set_state(&global, &args),
        Verb::SetWorking(args) => change::set_working(&global, &args),
        Verb::Status(args) => status::run(&global, &args),
        Verb::Events(args) => events::run(&global, &args),
        Verb::Logs(args) => logs::run(&global, &args),
        Verb::Diff(args) => diff::run(&global, &args),
        Verb::Shell(args) => shell::run(&global, &args),
        Verb::Wait(args) => wait::run(&global, &args),
        Verb::Usage(args) => usage::run(&global, &args),
        Verb::Send(args) => send::run(&global, &args),
        Verb::Inbox(args) => inbox::run(&global, &args),
        Verb::Ask(args) => ask::run(&global, &args),
        Verb::Answer(args) => answer::run(&global, &args),
        Verb::Approve(args) => answer::approve(&global, &args),
        Verb::Reject(args) => answer::reject(&global, &args),
        Verb::Pause(args) => pause::run(&global, &args),
        Verb::Resume(args) => pause::resumed(&global, &args),
        Verb::Land(args) => land::run(&global, &args),
        Verb::Fan(args) => fan::run(&global, &args),
        Verb::Choose(args) => fan::choose(&global, &args),
        Verb::Compare(args) => fan::compared(&global, &args),
        Verb::Serve(args) => serve::run(&global, &args),
        Verb::Mcp(args) => mcp::run(&args),
        Verb::Cancel(args) => change::cancel(&global, &args),
        Verb::Retry(args) => change::retry(&global, &args),
        Verb::Trust(args) => trust::run(&global, &args),
        Verb::Flow(args) => flow::run(&global, &args.verb),
        Verb::Govern(args) => govern::run(&global, &args.verb),
        Verb::Hooks(args) => hooks::run(&global, args.what),
        Verb::Install(args) => install::run(&global, &args),
        Verb::Uninstall(args) => uninstall::run(&global, &args),
        Verb::Gc(args) => gc::run(&global, &args),
        Verb::Doctor(args) => doctor::run(&global, &args),
        Verb::Demo(args) => demo::run(&global, &args),
    }
}

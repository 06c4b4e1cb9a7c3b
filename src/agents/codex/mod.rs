//! `codex`: `exec --json` if no tool waits for a person, or else `app-server`, as `exec` never asks.
//!
//! The program does not remember the sandbox, and `resume` takes no `-s`, so `-s` stands before that word. If
//! the program is confined already, it makes no sandbox of its own. It does not read the branch's `.codex/`
//! until the project is trusted; but as trust is remembered by the path of the main repository, for good, a
//! tree that has that folder is refused (`shut_out`). Keys and tokens are kept from the commands that the
//! model runs. A thread id that differs from the one that was asked for means a new thread. Implements N9,
//! N9a.

mod exec;
mod mcp;
mod server;

pub use exec::Exec;
pub use server::Server;
pub(super) use server::wanted;

use super::call::{Call, Resume, SERVER_TIME, TOOL_TIME, Turn, args, temporary};
use super::ending::of_status;
use super::said::{Cause, Wait};
use std::ffi::OsString;

/// Returns the arguments that keep the program from looking up names that no turn needs, and keys from the
/// commands that the model runs.
fn quiet() -> Vec<OsString> {
    args([
        "-c",
        "shell_environment_policy.exclude=[\"*KEY*\",\"*TOKEN*\"]",
        "-c",
        "analytics.enabled=false",
        "-c",
        "features.plugins=false",
        "-c",
        "features.apps=false",
    ])
}

/// Returns a text as a value of the program's configuration: a string of JSON, which is a string of TOML too.
fn toml(text: &str) -> String {
    // Of what JSON writes without an escape, TOML forbids only DEL.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn tools(turn: &Turn) -> Vec<OsString> {
    let Some(tools) = turn.tools else { return Vec::new() };
    let list: Vec<String> = tools.args.iter().map(|arg| toml(arg)).collect();
    let key = format!("mcp_servers.{}", tools.name);
    args([
        "-c",
        &format!("{key}.command={}", toml(tools.program)),
        "-c",
        &format!("{key}.args=[{}]", list.join(",")),
        // The flow's tools have gates of their own; without this setting `exec` refuses each call.
        "-c",
        &format!("{key}.default_tools_approval_mode=\"approve\""),
        "-c",
        &format!("{key}.tool_timeout_sec={}", TOOL_TIME.as_secs()),
        "-c",
        &format!("{key}.startup_timeout_sec={}", SERVER_TIME.as_secs()),
    ])
}

/// Returns the program's own sandbox. Inside another sandbox it can't make one, and would start no command;
/// the outer sandbox holds all the same.
fn sandbox(turn: &Turn) -> &'static str {
    if turn.confined { "danger-full-access" } else { "workspace-write" }
}

/// Returns the call for a turn.
pub fn turn(turn: &Turn) -> Call {
    let env = vec![temporary(turn)];
    // Codex finds a session by its name, from any folder.
    let thread = match turn.resume {
        Resume::New => None,
        Resume::Id(id) => Some(id.to_owned()),
        Resume::File(file) => file.file_stem().map(|name| name.to_string_lossy().into_owned()),
    };
    if turn.gated {
        let mut words = args(["app-server"]);
        words.extend(quiet());
        words.extend(tools(turn));
        words.extend(turn.extra.iter().map(Into::into));
        let cwd = turn.cwd.to_string_lossy();
        let talk = Server::new(turn.prompt, &cwd, turn.model, thread.as_deref()).within(sandbox(turn));
        return Call { args: words, env, talk: Box::new(talk) };
    }
    let mut words = args(["exec", "--json", "-s", sandbox(turn)]);
    if let Some(model) = turn.model {
        words.extend(args(["-m", model]));
    }
    words.extend(quiet());
    words.extend(tools(turn));
    words.extend(turn.extra.iter().map(Into::into));
    if let Some(thread) = &thread {
        words.extend(args(["resume", thread]));
    }
    words.extend(args(["-"]));
    Call { args: words, env, talk: Box::new(Exec::new(turn.prompt)) }
}

/// Returns why a turn failed, by the words of the program.
fn cause(words: &str) -> Cause {
    let says = |part: &str| words.contains(part);
    let status = ["unexpected status ", "last status: "].iter().find_map(|before| {
        let rest = words.split(before).nth(1)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    });
    if says("usage limit") || says("Quota exceeded") {
        Cause::Quota(Wait::Unknown)
    } else if says("Missing environment variable") || says("not logged in") || says("Not logged in") {
        Cause::Login
    } else if says("high demand") {
        Cause::Overload(Wait::Unknown)
    } else if says("invalid_request_error") || says("context window") {
        Cause::Request
    } else if says("stream disconnected") || says("waiting for network") {
        Cause::Unreachable
    } else if says("no rollout found") {
        Cause::SessionLost
    } else {
        of_status(status, words, Wait::Unknown)
    }
}

/// Returns why the program ended without a verdict on its standard output.
fn cause_of_stderr(stderr: &str, code: i32) -> Cause {
    let set_up =
        ["Not inside a trusted directory", "codex home", "failed to initialize", "No prompt provided"];
    if code == 2 || set_up.iter().any(|words| stderr.contains(words)) { Cause::Setup } else { cause(stderr) }
}

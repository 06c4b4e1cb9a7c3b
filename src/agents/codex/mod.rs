//! `codex`: `exec --json` where no tool waits for a person, `app-server` where the node is gated, as `exec` never asks.
//!
//! The sandbox is not remembered, and `resume` takes no `-s`: it stands before that word. Within ours it makes none. The branch's `.codex/` is not
//! read until the project is trusted; as trust is kept by the main repository's path for good, a tree that has one is
//! refused instead (`shut_out`). Keys and tokens are kept from the commands that the model runs. A thread id that differs
//! from the one that was asked for is a new thread. Implements N9, N9a.

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

/// What keeps it from looking up names that no turn needs, and keys from what the model runs.
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

/// A text as a value of its configuration: a string of TOML, which a string of JSON is too.
fn toml(text: &str) -> String {
    // TOML has no escape for what JSON writes bare, but 'DEL'.
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
        // Our own tools have gates of their own; without this 'exec' refuses each.
        "-c",
        &format!("{key}.default_tools_approval_mode=\"approve\""),
        "-c",
        &format!("{key}.tool_timeout_sec={}", TOOL_TIME.as_secs()),
        "-c",
        &format!("{key}.startup_timeout_sec={}", SERVER_TIME.as_secs()),
    ])
}

/// The sandbox of its own. Within another it can't make one, and would start nothing; that one holds all the same.
fn sandbox(turn: &Turn) -> &'static str {
    if turn.confined { "danger-full-access" } else { "workspace-write" }
}

/// The call for a turn.
pub fn turn(turn: &Turn) -> Call {
    let env = vec![temporary(turn)];
    // A session is found by its name, from anywhere.
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

/// Why a turn failed, by what it says of it.
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

/// Why it ended without a word on its standard output.
fn cause_of_stderr(stderr: &str, code: i32) -> Cause {
    let set_up =
        ["Not inside a trusted directory", "codex home", "failed to initialize", "No prompt provided"];
    if code == 2 || set_up.iter().any(|words| stderr.contains(words)) { Cause::Setup } else { cause(stderr) }
}

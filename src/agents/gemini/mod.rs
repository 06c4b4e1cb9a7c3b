//! `gemini`: stream-json lines if no tool waits for a person, or else `--acp`.
//!
//! `--skip-trust` keeps the branch's servers and hooks out, `GEMINI_CLI_TRUST_WORKSPACE` lets them in. With
//! either, the program reads a branch's `.env` and `.gemini/.env`, so a tree that has one is refused
//! (`shut_out`). The program starts itself a second time and then ignores signals, unless
//! `GEMINI_CLI_NO_RELAUNCH` forbids it. Implements N9, N9a.

mod acp;
mod settings;
mod stream;

pub use acp::Acp;
pub use settings::settings;
pub use stream::Stream;

use super::call::{Call, Resume, Turn, args, temporary};
use super::ending::of_status;
use super::said::{Cause, Wait};

/// Returns the call for a turn. A session that is resumed from a file gets a new name.
pub fn turn(turn: &Turn) -> Call {
    let mut words = if turn.gated { args(["--acp"]) } else { args(["-o", "stream-json"]) };
    let mut env = vec![("GEMINI_CLI_NO_RELAUNCH", Some("true".into())), temporary(turn)];
    if let Some(home) = turn.tools.and_then(|tools| tools.home) {
        env.push(("GEMINI_CLI_HOME", Some(home.into())));
    }
    if turn.project_settings {
        env.push(("GEMINI_CLI_TRUST_WORKSPACE", Some("true".into())));
    } else {
        words.extend(args(["--skip-trust"]));
        env.push(("GEMINI_CLI_TRUST_WORKSPACE", None));
    }
    if !turn.gated {
        words.extend(args(["--yolo"]));
    }
    if let Some(model) = turn.model {
        words.extend(args(["-m", model]));
    }
    match turn.resume {
        Resume::New => {}
        // With `--acp` the conversation asks for the session by its name.
        Resume::Id(_) if turn.gated => {}
        Resume::Id(id) => words.extend(args(["--resume", id])),
        Resume::File(file) => words.extend(["--session-file".into(), file.into()]),
    }
    words.extend(turn.extra.iter().map(Into::into));
    let session = match turn.resume {
        Resume::Id(id) => Some(id),
        Resume::New | Resume::File(_) => None,
    };
    Call {
        args: words,
        env,
        talk: match turn.gated {
            true => Box::new(Acp::new(turn.prompt, &turn.cwd.to_string_lossy(), session)),
            false => Box::new(Stream::new(turn.prompt)),
        },
    }
}

/// Returns why a turn failed, by its message, which may contain the service's own answer.
fn cause(words: &str) -> Cause {
    let status = words.split("\"code\":").nth(1).and_then(|rest| {
        rest.trim_start().split(|c: char| !c.is_ascii_digit()).next().and_then(|code| code.parse().ok())
    });
    let wait = words.split("retry after ").nth(1).and_then(|rest| {
        rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|seconds| seconds.parse().ok())
    });
    let wait = wait.map_or(Wait::Unknown, Wait::Seconds);
    if words.contains("daily quota") {
        Cause::Quota(wait)
    } else if words.contains("Too many requests") {
        Cause::Overload(wait)
    } else if words.contains("terminated") || words.contains("fetch failed") {
        Cause::Unreachable
    } else {
        of_status(status, words, wait)
    }
}

/// Returns why the program ended without a last line, by its exit status; for an error of the service that is
/// the HTTP status modulo 256.
fn cause_of_exit(stderr: &str, code: i32) -> Cause {
    match code {
        41 => Cause::Login,
        42 if stderr.contains("Error resuming session") => Cause::SessionLost,
        42 | 55 => Cause::Setup,
        53 => Cause::Limit,
        144..=255 => of_status(u64::try_from(code + 256).ok(), stderr, Wait::Unknown),
        _ => Cause::Unknown,
    }
}

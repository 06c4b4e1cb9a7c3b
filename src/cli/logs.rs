//! `logs`: what the latest run's command printed.
//!
//! Bytes go out as they are, except to a terminal, where control characters are escaped. Implements
//! git-aynig-logs(1), K36.

use super::args::Logs;
use super::exit;
use super::fail::Failure;
use super::hints::{self, Addressed};
use super::output::{self, StreamEscaper};
use super::session::Global;
use crate::app::logs::{self, LogsError, Request, Which};
use crate::protocol::text::{escape, shell_word};
use crate::supervisor::interrupt::Interrupt;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;

/// Runs `git aynig logs`.
pub fn run(global: &Global, args: &Logs) -> Result<i32, Failure> {
    let session = global.open()?;
    let settings = logs::settings(&session, args.remote.clone())?;
    let interrupt = if args.follow { Interrupt::by_signals()? } else { Interrupt::never()? };
    let which = match (args.stderr, args.events) {
        (_, true) => Which::Events,
        (true, false) => Which::Stderr,
        (false, false) => Which::Stdout,
    };
    let request = Request { what: args.what.as_deref(), follow: args.follow, which };
    let wanted = request.open(&session, &settings, &interrupt)?;
    let Some(path) = wanted.find()? else { return Ok(exit::of_signal(interrupt.signal())) };
    if args.path {
        output::offer_raw(&[path.as_os_str().as_bytes(), b"\n"].concat());
        return Ok(0);
    }
    let mut escaper = std::io::stdout().is_terminal().then(StreamEscaper::default);
    let mut is_empty = true;
    let show = |bytes: &[u8]| {
        is_empty &= bytes.is_empty();
        match &mut escaper {
            Some(escaper) => output::offer_raw(escaper.take(bytes).as_bytes()),
            None => output::offer_raw(bytes),
        }
    };
    let ended = wanted.read(&path, show, output::reader_gone)?;
    if let Some(mut escaper) = escaper {
        output::offer_raw(escaper.end().as_bytes());
    }
    // A user who looks for why a run failed would take an empty output for all there is: a note names
    // `--stderr`.
    let complained = || -> Result<bool, Failure> {
        let other = Request { follow: false, which: Which::Stderr, ..request };
        let path = other.open(&session, &settings, &interrupt)?.find().unwrap_or(None);
        Ok(path.and_then(|path| path.symlink_metadata().ok()).is_some_and(|file| file.len() > 0))
    };
    if is_empty && which == Which::Stdout && !global.quiet && complained()? {
        // A name that begins with '-' would be an option.
        let end = |what: &OsStr| if what.as_bytes().starts_with(b"-") { " --" } else { "" };
        let what = args.what.as_deref().map(|what| format!("{} {}", end(what), shell_word(what.as_bytes())));
        output::note(&format!(
            "its command printed nothing, and complained\nhint: git aynig logs --stderr{}{}",
            hints::remote_option(args.remote.as_deref()),
            what.unwrap_or_default()
        ));
    }
    Ok(exit::code(ended))
}

/// Returns the command that mends the error, or where to look.
pub fn mended(error: &LogsError) -> Option<String> {
    match error {
        LogsError::NoRun { branch, remote } => Some(Addressed::new(branch, remote.as_deref()).call("status")),
        LogsError::NoSuch { unasked: Some(remote), .. } => Some(hints::same_with_remote(remote)),
        LogsError::NoSuch { unasked: None, remote, .. } => {
            Some(format!("git aynig status{}", hints::remote_option(remote.as_deref())))
        }
        LogsError::NoLog { elsewhere: Some(id), .. } => {
            // A runner's id is '<host>-<random>', and logs stay on the host where their command ran.
            let host = escape(id.rsplit_once('-').map_or(&**id, |(host, _)| host).as_bytes());
            Some(format!("it ran on '{host}' (as '{}'): look there", escape(id.as_bytes())))
        }
        LogsError::NoLog { elsewhere: None, folder, .. } => Some(format!(
            "logs are in '{}', for 30 days unless 'aynig.logExpire' says otherwise",
            folder.display()
        )),
        LogsError::NotOpened(_) | LogsError::Unreadable { .. } => None,
    }
}

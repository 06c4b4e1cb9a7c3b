//! Starts the command: its own session, clean signals, three descriptors and no other.
//!
//! Order matters: everything that the command should not inherit is close-on-exec before the start;
//! afterwards the guardian leaves the working directory, so that it holds no folder. Unlike a shell, it does
//! not run a file without `#!` through `sh`. Implements K17, K59.

use super::super::confine::Confinement;
use super::super::ending::Ending;
use super::super::exec::exec;
use super::options::{Options, Place};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{Pid, chdir};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The running command and the read ends of its stdout and stderr, non-blocking.
pub(super) struct Spawned {
    pub command: Pid,
    pub stdout: PipeReader,
    pub stderr: PipeReader,
}

/// Starts the command with the guardian's own environment.
pub(super) fn spawn(options: &Options) -> Result<Spawned, Ending> {
    let failed = |what: String| move |errno: Errno| not_started(errno, what);
    let cwd = options.cwd.path();
    chdir(cwd).map_err(failed(format!("folder '{}'", cwd.display())))?;
    let pipe = || io::pipe().map_err(|e| not_started(errno_of(&e), "pipe".into()));
    let ((stdout, stdout_end), (stderr, stderr_end)) = (pipe()?, pipe()?);
    for pipe in [&stdout, &stderr] {
        fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(failed("pipe".into()))?;
    }
    let mut sandbox = None;
    let stdin = options.stdin.as_ref().map_or(Path::new("/dev/null"), Place::path);
    let started = File::open(stdin).map_err(|error| errno_of(&error)).and_then(|stdin| {
        let descriptors = [stdin.as_fd(), stdout_end.as_fd(), stderr_end.as_fd()];
        let start = || exec(&options.argv, std::env::vars_os(), descriptors, true);
        match &options.confine {
            None => start(),
            Some(confinement) => confined(confinement, start, &mut sandbox),
        }
    });
    let command = started.map_err(|errno| {
        not_started(errno, sandbox.take().unwrap_or_else(|| describe(&options.argv[0], errno)))
    })?;
    // Never fails, and if it did, a busy folder would be no reason to end a run.
    let _ = chdir("/");
    Ok(Spawned { command, stdout, stderr })
}

/// Starts the command from a thread that confines itself first: the command is confined, and the guardian is
/// not. If the thread can't be confined, nothing is started, and `why` says the reason.
fn confined(
    confinement: &Confinement,
    start: impl FnOnce() -> nix::Result<Pid> + Send,
    why: &mut Option<String>,
) -> nix::Result<Pid> {
    std::thread::scope(|scope| {
        let confine = || confinement.enforce().map_err(|(errno, text)| (errno, Some(text)));
        let all = move || confine().and_then(|()| start().map_err(|errno| (errno, None)));
        let thread = std::thread::Builder::new().spawn_scoped(scope, all);
        let ended = thread.map_err(|error| (errno_of(&error), Some("thread of the sandbox".to_owned())));
        let started = ended.and_then(|thread| {
            thread.join().unwrap_or(Err((Errno::EPERM, Some("thread of the sandbox".to_owned()))))
        });
        started.map_err(|(errno, text)| {
            *why = text;
            errno
        })
    })
}

/// Returns the errno of an I/O error; 0 if it has none.
pub(super) fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

/// Returns the ending of a command that never ran.
pub(super) fn not_started(errno: Errno, what: String) -> Ending {
    Ending::NotStarted { errno: errno as i32, what }
}

/// Says what was missing or refused when the command failed to start.
fn describe(program: &OsStr, errno: Errno) -> String {
    let name = program.to_string_lossy();
    match errno {
        // The system says "no such file" of the interpreter as it does of the file itself.
        Errno::ENOENT if program.as_bytes().contains(&b'/') => match interpreter(Path::new(program)) {
            Some(interpreter) => format!("interpreter '{interpreter}' of '{name}'"),
            None => format!("'{name}'"),
        },
        Errno::E2BIG => format!("arguments and environment of '{name}'"),
        _ => format!("'{name}'"),
    }
}

/// Returns the interpreter that the first line of an existing script names.
fn interpreter(path: &Path) -> Option<String> {
    let mut line = Vec::new();
    let file = File::open(path).ok()?;
    BufReader::new(file.take(256)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8_lossy(line.strip_prefix(b"#!")?).into_owned();
    // As the kernel reads it: a carriage return at the end is a part of the name.
    let name = line.trim_start_matches([' ', '\t']).split([' ', '\t', '\n']).next()?;
    Some(name.escape_debug().to_string())
}

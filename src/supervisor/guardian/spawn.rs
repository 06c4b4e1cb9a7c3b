//! Starts the command: its own session, clean signals, three descriptors and no other.
//!
//! Order: everything that the command should not inherit is close-on-exec before; afterwards the guardian
//! steps out of the working directory, so that it holds no folder. Refuses a shell's leniency: a file
//! without `#!` is not run by `sh`. Implements K17.

use super::super::ending::Ending;
use super::options::Options;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::SigSet;
use nix::sys::stat::Mode;
use nix::unistd::{Pid, chdir};
use std::ffi::{CString, OsStr, OsString};
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

/// The running command and the read ends of its stdout and stderr, non-blocking.
pub(super) struct Spawned {
    pub command: Pid,
    pub stdout: PipeReader,
    pub stderr: PipeReader,
}

/// Starts the command with the guardian's own environment.
pub(super) fn spawn(options: &Options) -> Result<Spawned, Ending> {
    let failed = |what: String| move |errno: Errno| not_started(errno, what);
    chdir(&options.cwd).map_err(failed(format!("folder '{}'", options.cwd.display())))?;
    let pipe = || io::pipe().map_err(|e| not_started(errno_of(&e), "pipe".into()));
    let ((stdout, stdout_end), (stderr, stderr_end)) = (pipe()?, pipe()?);
    for pipe in [&stdout, &stderr] {
        fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(failed("pipe".into()))?;
    }
    let stdin = options.stdin.as_deref().unwrap_or(Path::new("/dev/null"));
    let command = exec(&options.argv, stdin, stdout_end.as_raw_fd(), stderr_end.as_raw_fd())
        .map_err(|errno| not_started(errno, describe(&options.argv[0], errno)))?;
    // Never fails; and if it did, a busy folder is no reason to end a run.
    let _ = chdir("/");
    Ok(Spawned { command, stdout, stderr })
}

/// The errno of an I/O error; 0 where it has none.
pub(super) fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

/// The ending of a command that never ran.
pub(super) fn not_started(errno: Errno, what: String) -> Ending {
    Ending::NotStarted { errno: errno as i32, what }
}

fn exec(argv: &[OsString], stdin: &Path, stdout: i32, stderr: i32) -> nix::Result<Pid> {
    let text = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| Errno::EINVAL);
    let args = argv.iter().map(|a| text(a.clone().into_vec())).collect::<Result<Vec<_>, _>>()?;
    let env = std::env::vars_os()
        .map(|(key, value)| text([key.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<Vec<_>, _>>()?;

    let mut actions = PosixSpawnFileActions::init()?;
    actions.add_open(0, stdin, OFlag::O_RDONLY, Mode::empty())?;
    actions.add_dup2(stdout, 1)?;
    actions.add_dup2(stderr, 2)?;
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK
            | PosixSpawnFlags::from_bits_retain(SETSID.into()),
    )?;
    attributes.set_sigdefault(&SigSet::all())?;
    attributes.set_sigmask(&SigSet::empty())?;

    // A command file that was just written can still be open for writing in a process that another thread
    // of its writer forked and that has not reached its exec yet. That passes within milliseconds.
    for _ in 0..20 {
        match posix_spawnp(&args[0], &actions, &attributes, &args, &env) {
            Err(Errno::ETXTBSY) => std::thread::sleep(Duration::from_millis(5)),
            other => return other,
        }
    }
    posix_spawnp(&args[0], &actions, &attributes, &args, &env)
}

#[cfg(not(target_vendor = "apple"))]
const SETSID: libc::c_short = libc::POSIX_SPAWN_SETSID as libc::c_short;
// Missing in the libc crate; `spawn.h` of macOS 10.15 and later has it.
#[cfg(target_vendor = "apple")]
const SETSID: libc::c_short = 0x0400;

/// What could not be had when the command failed to start.
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

/// The interpreter that the first line of an existing script names.
fn interpreter(path: &Path) -> Option<String> {
    let mut line = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    BufReader::new(file.take(256)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8_lossy(line.strip_prefix(b"#!")?).into_owned();
    // As the system takes it: a carriage return at the end is a part of the name.
    let name = line.trim_start_matches([' ', '\t']).split([' ', '\t', '\n']).next()?;
    Some(name.escape_debug().to_string())
}

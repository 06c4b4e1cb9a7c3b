//! The `git-aynig` binary.

use aynig::supervisor::guardian;
use std::process::ExitCode;

/// Whatever the umask, nothing that is made here may be written to by everybody: folders of ours hold what is
/// executed.
fn nothing_for_everybody() {
    use nix::sys::stat::{Mode, umask};
    let before = umask(Mode::S_IWOTH);
    umask(before | Mode::S_IWOTH);
}

fn main() -> ExitCode {
    nothing_for_everybody();
    let mut args = std::env::args_os().skip(1);
    // Before anything else: a guardian must cost no more than a process start.
    if args.next().is_some_and(|first| first == guardian::ROLE) {
        return guardian::main(args);
    }
    aynig::cli::main(std::env::args_os().collect())
}

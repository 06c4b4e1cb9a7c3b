//! An error at every mutating system call of a whole tick: a full disk, a broken one, no descriptors left, a
//! signal in between. No failure is silent, and no verdict is wrong (V9); the next tick works (V11, V13).
//!
//! Descriptors and disks also fail where a file is only read: those calls of the runner are in it too.

use super::points::{self, Plan};
use super::row::Sweep;
use super::scene::{LOCAL, REMOTE};
use super::trace::{Fault, Point};
use nix::errno::Errno;

/// What the system may really answer to each call.
fn errors(point: &Point, object: &str) -> Vec<Fault> {
    let all: &[Errno] = match point.call.as_str() {
        // A pipe has no disk below it: it breaks where a process dies, which is another sweep.
        "write" if object.starts_with("pipe:") => &[],
        // A lock that a living git could not take away is no killed child's: nothing tells it from one that
        // another process holds, so it stays, and doctor names it (K43).
        "unlink" if point.role.starts_with("git") && object.ends_with(".lock") => &[],
        "open" | "write" | "copy" => &[Errno::ENOSPC, Errno::EIO, Errno::EINTR],
        "rename" | "link" | "mkdir" | "truncate" => &[Errno::ENOSPC, Errno::EIO],
        "sync" | "unlink" | "rmdir" | "chmod" | "utime" => &[Errno::EIO],
        "flock" => &[Errno::EINTR, Errno::ENOLCK],
        "pipe" => &[Errno::EMFILE],
        "clone" => &[Errno::EAGAIN],
        "exec" => &[Errno::EIO],
        "read" if point.role == "runner" || point.role == "guardian" => &[Errno::EMFILE],
        _ => &[],
    };
    let opens = (point.call == "open").then_some(Errno::EMFILE);
    all.iter().copied().chain(opens).map(Fault::Error).collect()
}

#[test]
fn local() {
    let what = "ENOSPC, EIO, EMFILE, EINTR at each mutating call of a local tick";
    let sweep = Sweep::begin("errors-local", what, ">= 300 points, 0 silent, 0 wrong verdicts");
    points::go_through(sweep, [10, 300], &[Plan { scenes: LOCAL, sample: 4, whole: 60, faults: errors }]);
}

#[test]
fn remote() {
    let what = "ENOSPC, EIO, EMFILE, EINTR at each mutating call of a remote tick";
    let sweep = Sweep::begin("errors-remote", what, ">= 300 points, 0 silent, 0 wrong verdicts");
    points::go_through(sweep, [5, 300], &[Plan { scenes: REMOTE, sample: 3, whole: 90, faults: errors }]);
}

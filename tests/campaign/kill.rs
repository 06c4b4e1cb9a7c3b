//! SIGKILL before every mutating system call of a whole tick, of every process but the user's own command.
//!
//! The runner, its guardian, its git children; on a remote also what receives there. After each point another
//! tick comes by, later, and [`judge`](super::judge) looks at everything (V1-V8, V11, V13, V16; K17, K42-K45).

use super::points::{self, Plan};
use super::row::Sweep;
use super::scene::{LOCAL, REMOTE};
use super::trace::{Fault, Point};

fn kill(point: &Point, _: &str) -> Vec<Fault> {
    // Opening for reading changes nothing.
    if point.call == "read" { Vec::new() } else { vec![Fault::Kill] }
}

fn fell(point: &Point, _: &str) -> Vec<Fault> {
    if point.call == "read" { Vec::new() } else { vec![Fault::KillTree] }
}

#[test]
fn local() {
    let what = "SIGKILL before each mutating call of a local tick: runner, guardian, git children";
    let sweep = Sweep::begin("kill-local", what, ">= 500 points, 0 violations");
    points::go_through(sweep, [10, 500], &[Plan { scenes: LOCAL, sample: 5, whole: 100, faults: kill }]);
}

#[test]
fn remote() {
    let what = "SIGKILL before each mutating call of a remote tick, those on the remote included";
    let sweep = Sweep::begin("kill-remote", what, ">= 500 points, 0 violations");
    points::go_through(sweep, [10, 500], &[Plan { scenes: REMOTE, sample: 5, whole: 150, faults: kill }]);
}

#[test]
fn tree() {
    let what = "the whole tree killed at once before a mutating call, as a container's stop does it";
    let sweep = Sweep::begin("kill-tree", what, ">= 200 points, 0 violations");
    let plan = |scenes| Plan { scenes, sample: 2, whole: 25, faults: fell };
    points::go_through(sweep, [10, 200], &[plan(LOCAL), plan(REMOTE)]);
}

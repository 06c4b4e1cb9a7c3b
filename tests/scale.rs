//! Many branches and many machines: what each of them costs, counted and not timed.
//!
//! `AYNIG_MANY=full` takes more of both.

mod support;

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::life::Life;
use support::net::{Machine, Net};

const DONE: &str = "echo 'SET_STATE {\"state\":\"done\"}'";

fn full() -> bool {
    std::env::var("AYNIG_MANY").is_ok_and(|v| v == "full")
}

/// Branches with these messages on top of `main`, all in one step; returns their names.
fn branches(life: &Life, dir: &Path, folder: &str, messages: impl Iterator<Item = String>) -> Vec<String> {
    let (mut input, mut names) = (String::new(), Vec::new());
    for (n, message) in messages.enumerate() {
        names.push(format!("{folder}{n:05}"));
        let _ = write!(
            input,
            "commit refs/heads/{folder}{n:05}\ncommitter c <c@example.com> {} +0000\ndata {}\n{message}\n\
             from refs/heads/main^0\n\n",
            support::life::now(),
            message.len()
        );
    }
    let path = life.shared().join("import");
    std::fs::write(&path, input).unwrap();
    let mut import = life.repo.command("git");
    import.current_dir(dir).args(["fast-import", "--quiet"]).stdin(std::fs::File::open(&path).unwrap());
    assert!(import.status().unwrap().success());
    names
}

/// Has a machine's pushes counted in `$T/<name>`.
fn count_pushes(machine: &Machine<'_>, name: &str) {
    let script = machine.net.life.shared().join(format!("{name}-receives"));
    let count = machine.net.life.shared().join(name);
    let text = format!("#!/bin/sh\necho x >>'{}'\nexec git-receive-pack \"$@\"\n", count.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    machine.git(&["config", "remote.origin.receivepack", &format!("'{}'", script.display())]);
}

fn lines(net: &Net, name: &str) -> usize {
    net.life.said(name).lines().count()
}

fn all_done(net: &Net) -> bool {
    let format = "--format=%(trailers:key=dwp-state,valueonly,separator=)";
    net.git(&["for-each-ref", format, "refs/heads/w*"]).lines().all(|state| state == "done")
}

/// K32: heads that others moved since the fetch cost one push that is lost, and none for each.
#[test]
fn what_others_answered_meanwhile_is_passed_over() {
    let waits = "echo x >>\"$T/runs\"; if mkdir \"$T/first\" 2>/dev/null; then echo up >\"$T/up\"; \
                 read x <\"$T/gate\"; fi; echo 'SET_STATE {\"state\":\"done\"}'";
    for verb in ["tick", "run"] {
        let net = Net::new(&[("build", waits)]);
        let names =
            branches(&net.life, &net.origin(), "w", (0..20).map(|n| format!("{n}\n\ndwp-state: build\n")));
        let (a, b) = (net.machine("a"), net.machine("b"));
        count_pushes(&a, "pushes");
        let mut gate = net.life.gate("gate");
        let first = support::life::Running::of(a.aynig(&[verb, "--remote", "origin", "--jobs", "1"]));
        net.life.hear("up");
        b.tick(&["--jobs", "1"]).expect(0);
        assert_eq!(lines(&net, "runs"), names.len());
        gate.open();
        first.done().expect(0);
        assert_eq!(lines(&net, "pushes"), 3, "{verb}: a lease, its outcome, and the race that was lost");
        assert_eq!(lines(&net, "runs"), names.len());
        assert!(all_done(&net));
    }
}

/// K32: every round visits all branches, wherever the machine begins; a race that was lost is looked at again.
#[test]
fn machines_share_what_there_is_and_leave_nothing() {
    let (machines, count) = if full() { (64, 640) } else { (4, 24) };
    let net = Net::new(&[("build", &format!("echo \"$AYNIG_BRANCH\" >>\"$T/runs\"; {DONE}"))]);
    let all: Vec<_> = (0..machines).map(|n| net.machine(&format!("m{n}"))).collect();
    all.iter().for_each(|machine| count_pushes(machine, "pushes"));
    let mut before = 0;
    for (round, verb) in ["tick", "run"].into_iter().enumerate() {
        let folder = format!("w{round}");
        let events = (0..count).map(|n| format!("{n}\n\ndwp-state: build\n"));
        let mut names = branches(&net.life, &net.origin(), &folder, events);
        let start = |m: &Machine<'_>| {
            support::life::Running::of(m.aynig(&[verb, "--remote", "origin", "--jobs", "2", "-q"]))
        };
        let running: Vec<_> = all.iter().map(start).collect();
        running.into_iter().for_each(|r| drop(r.done().expect(0)));
        assert!(all_done(&net), "{verb}");
        let runs = net.life.said("runs");
        let mut ran: Vec<&str> = runs.lines().filter(|name| name.starts_with(&folder)).collect();
        ran.sort_unstable();
        names.sort_unstable();
        assert_eq!(ran, names, "each trigger has one run");
        let pushes = lines(&net, "pushes") - before;
        before += pushes;
        // In the same order each branch would cost every other machine a push.
        assert!(pushes < 2 * count + count * machines / 2, "{verb}: {pushes}");
    }
}

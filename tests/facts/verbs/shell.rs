//! `shell`: where it opens, what becomes of what is changed there, and that nothing else changes.

use crate::support::life::{Done, Life, done, eventually};
use std::io::Write;
use std::process::Stdio;

const MADE: &str = "echo made >made; echo 'SET_STATE {\"state\":\"review\"}'";

/// The verb, with these lines typed into the shell that it opens.
fn typed(life: &Life, args: &[&str], lines: &str) -> Done {
    let mut call = life.aynig(&[&["shell"], args].concat());
    call.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = call.spawn().unwrap();
    // Where it is refused no reader is left.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    done(child.wait_with_output().unwrap())
}

/// K55: the files are those of the outcome, or of what was kept of a run that failed; the shell's end is the verb's.
#[test]
fn a_shell_opens_where_a_runs_work_is() {
    let life = Life::new(&[("build", MADE), ("fail", "echo half >made; exit 3")]);
    for state in ["build", "fail"] {
        life.event(state, state, "");
        life.tick(&[state]);
    }
    let heads = ["build", "fail"].map(|branch| life.rev(branch));
    let run = life.trailer("build", "dwp-run-id").unwrap();
    for (what, holds) in [("build", "made"), (&run[..8], "made"), ("fail", "half")] {
        let said = typed(&life, &[what], "cat made; git rev-parse --show-toplevel; exit 7\n").expect(7);
        let lines: Vec<&str> = said.stdout.lines().collect();
        assert_eq!(lines[0], holds, "{said:?}");
        assert!(
            lines[1].contains("/.cache/aynig/") && said.stderr.contains("nothing was changed"),
            "{said:?}"
        );
    }
    assert_eq!(heads, ["build", "fail"].map(|branch| life.rev(branch)));
    assert_eq!(life.attempts().len(), 1);
    life.repo.assert_sound();
}

/// K55: what was changed is kept, committed or not, and can be handed over.
#[test]
fn what_is_changed_in_a_shell_is_kept() {
    let life = Life::new(&[("build", MADE)]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    let head = life.rev("work");
    let said =
        typed(&life, &["work"], "echo better >made; git commit -qam mine; echo more >also\n").expect(0);
    let [kept] = &life.attempts()[..] else { panic!("{said:?}") };
    assert_eq!((life.show(kept, "made"), life.show(kept, "also")), ("better".into(), "more".into()));
    assert!(life.git(&["log", "--format=%s", kept]).contains("mine"));
    assert!(said.stderr.contains(&format!("git aynig send work --attach {kept}")), "{said:?}");
    assert_eq!(life.rev("work"), head);
    life.run(&["send", "work", "--attach", kept]).expect(0);
    // The slot is as good as before for the next run.
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(
        (life.show("work", "made"), life.files("work").contains(&"also".to_owned())),
        ("made".into(), false)
    );
    life.repo.assert_sound();
}

/// K34, K55: where nothing may run no slot is filled; a run that goes on has its own.
#[test]
fn a_shell_is_refused_where_nothing_may_run() {
    let life = Life::new(&[("build", &format!("read x <\"$T/gate\"; {MADE}"))]);
    let mut gate = life.gate("gate");
    life.event("work", "build", "");
    let tick = life.start_tick(&["work"]);
    eventually("it runs", || (life.state("work") == "working").then_some(()));
    let said = typed(&life, &["work"], "").expect(3);
    assert!(said.stderr.contains("has not ended"), "{said:?}");
    gate.open();
    tick.done();
    life.config("aynig.commandsFrom", "none");
    let said = typed(&life, &["work"], "touch made\n").expect(2);
    assert!(said.stderr.contains("not trusted") && life.attempts().is_empty(), "{said:?}");
}

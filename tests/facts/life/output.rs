//! Output of every size: kept, bounded in memory, and no process waits for a reader that went away.
//!
//! `AYNIG_TEST_GIB=1` prints a whole GiB instead of 256 MiB.

use crate::support::life::{Life, Running, eventually, lives};
use nix::sys::signal::Signal;
use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

const NEXT: &str = "echo 'SET_STATE {\"state\":\"next\"}'";

/// The most memory that a process ever held, in KiB; `None` once it is gone.
fn peak(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn parent(pid: &str) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("PPid:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// K16, K19: what a command prints costs its runner and its guardian no memory.
#[test]
fn memory_stays_bounded_whatever_a_command_prints() {
    let mib = if std::env::var_os("AYNIG_TEST_GIB").is_some() { 1024 } else { 256 };
    // A line that begins as a declaration and does not end, half of it; then short ones.
    let script = format!(
        "echo $$ >\"$T/pid\"; printf 'SET_STATE '\n head -c {half}M /dev/zero | tr '\\0' x\n echo\n yes | head -c {half}M\n\
         yes 'SET_STATE {{\"no\":1}}' | head -c 2M; echo; {NEXT}\n echo up >\"$T/up\"; read x <\"$T/gate\"",
        half = mib / 2
    );
    let life = Life::new(&[("build", &script)]);
    let trigger = life.event("work", "build", "");
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["--json", "work"]);
    let guardian = parent(&life.hear("pid"));
    life.hear("up");
    let log = life.path(&format!(".aynig/logs/{trigger}.stdout.log"));
    let (runner, guarding) = (peak(tick.pid()).unwrap(), peak(guardian).unwrap());
    gate.open();
    let report = tick.done().expect(0).json();
    assert_eq!(life.state("work"), "next");
    assert!(runner < 40 * 1024 && guarding < 40 * 1024, "runner {runner} KiB, guardian {guarding} KiB");
    assert!(fs::metadata(log).unwrap().len() <= (64 << 20) + 4096);
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.len() < 40 && notes[0].as_str().unwrap().contains("more than 16 MiB"), "{notes:?}");
}

/// K16
#[test]
fn a_log_above_its_limit_keeps_head_and_tail() {
    let script = format!("echo first; seq 1 2000000; echo last; {NEXT}; seq 1 2000000 >&2");
    let life = Life::new(&[("build", &script)]);
    life.config("aynig.logMaxBytes", "64k");
    let trigger = life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    for (name, first, last) in [
        ("stdout", "first\n1\n2\n", "last\nSET_STATE {\"state\":\"next\"}\n"),
        ("stderr", "1\n2\n", "\n2000000\n"),
    ] {
        let log = life.read(&format!(".aynig/logs/{trigger}.{name}.log"));
        assert!(log.starts_with(first) && log.ends_with(last), "{name}");
        assert!(log.len() <= (64 << 10) + 1024, "{name}: {}", log.len());
        assert!(
            log.contains("left out") || log.contains("omitted") || log.contains("dropped"),
            "{name}: no notice"
        );
    }
}

/// K16: a command that closes its output, or reopens it, is still heard out.
#[test]
fn output_that_is_closed_early_or_reopened_harms_nothing() {
    let life = Life::new(&[
        ("closes", &format!("echo a; {NEXT}; exec >&- 2>&-; echo w >>file; exit 0")),
        (
            "reopens",
            &format!("echo a; echo b >/dev/stdout; {NEXT}; : >/dev/stdout; echo c >>/proc/self/fd/1"),
        ),
    ]);
    let trigger = life.event("closes", "closes", "");
    life.tick(&["closes"]).expect(0);
    assert_eq!((life.state("closes"), life.show("closes", "file")), ("next".into(), "one\nw".into()));
    assert!(life.read(&format!(".aynig/logs/{trigger}.stdout.log")).starts_with("a\nSET_STATE "));
    let trigger = life.event("reopens", "reopens", "");
    life.tick(&["reopens"]).expect(0);
    let log = life.read(&format!(".aynig/logs/{trigger}.stdout.log"));
    assert_eq!((life.state("reopens"), &*log), ("next".into(), "a\nb\nSET_STATE {\"state\":\"next\"}\nc\n"));
}

/// Section 13: the reader of `--tee` may go away; the run goes on.
#[test]
fn a_reader_that_goes_away_does_not_end_the_run() {
    let life = Life::new(&[("build", &format!("seq 1 200000; seq 1 200000 >&2; {NEXT}"))]);
    life.event("work", "build", "");
    let mut command = life.aynig(&["tick", "--tee", "work"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    out.read_exact(&mut [0; 10]).unwrap();
    drop((out, err));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(life.state("work"), "next");
}

/// `--tee`
#[test]
fn tee_shows_what_is_printed_as_it_is() {
    let life = Life::new(&[("build", &format!("printf 'a\\nb'; printf 'e\\n' >&2; echo; {NEXT}"))]);
    life.event("work", "build", "");
    let done = life.tick(&["--tee", "work"]).expect(0);
    assert!(done.stdout.starts_with("a\nb\nSET_STATE "), "{done:?}");
    assert!(done.stderr.starts_with("e\n"), "{done:?}");
}

/// K16: a reader of `--tee` that reads nothing may slow the command; it does not fill the memory, and the
/// runner can still be asked to stop.
#[test]
fn a_reader_that_does_not_read_fills_no_memory() {
    let life = Life::new(&[(
        "build",
        "echo $$ >\"$T/pid\"; yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | head -c 64M; echo up >\"$T/up\"",
    )]);
    life.event("work", "build", "");
    let tick: Running = life.start_tick(&["--tee", "work"]);
    let pid = life.hear("pid");
    let guardian = parent(&pid);
    // The pipe to us is full, and the guardian's to its runner: nothing moves any more.
    let log = || {
        fs::read_dir(life.path(".aynig/logs"))
            .map_or(0, |d| d.flatten().map(|e| e.metadata().unwrap().len()).sum::<u64>())
    };
    let mut before = 0;
    eventually("a standstill", || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let now = log();
        (std::mem::replace(&mut before, now) == now && now > 0).then_some(())
    });
    for process in [tick.pid(), guardian] {
        assert!(peak(process).unwrap() < 40 * 1024, "{process}: {:?} KiB", peak(process));
    }
    tick.signal(Signal::SIGKILL);
    eventually("the command's end", || (!lives(&pid)).then_some(()));
}

/// K17: a command has no terminal and no input.
#[test]
fn a_command_has_an_empty_input_and_no_terminal() {
    let script = format!(
        "cat >\"$T/input\"; (: </dev/tty) 2>/dev/null && echo tty >\"$T/tty\"; ps -o sid= -p $$ >\"$T/sid\"; echo $$ >\"$T/pid\"; {NEXT}"
    );
    let life = Life::new(&[("build", &script)]);
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!((life.said("input"), life.said("tty")), (String::new(), String::new()));
    assert_eq!(life.said("sid").trim(), life.said("pid").trim());
}

/// K32, K50, K51: a pass that finds what the pass before found says nothing, and says it again once it is another.
#[test]
fn what_every_pass_finds_is_said_once() {
    let life = Life::new(&[("build", "echo 'SET_STATE {\"state\":\"done\"}'"), ("bad", "exit 1")]);
    for branch in ["held", "other"] {
        life.event(branch, "build", "");
    }
    life.event("late", "build", "dwp-not-before: 2099-01-01T00:00:00Z\n");
    life.event("odd", "../x", "");
    life.event("fails", "bad", "");
    life.run(&["pause", "held"]).expect(0);
    let lines = |text: &str, of: &str| text.lines().filter(|line| line.starts_with(of)).count();
    let assert_told = |text: &str, told: &[(&str, usize)]| {
        told.iter().for_each(|(line, times)| assert_eq!(lines(text, line), *times, "{line}: {text}"));
    };
    // Two passes: the first runs what can run.
    let said = life.run(&["run"]).expect(1);
    for branch in ["held: 'build' is not", "late: 'build' is not", "odd: state '../x'", "fails: bad stalled"]
    {
        assert_eq!(lines(&said.stdout, branch), 1, "{branch}: {said:?}");
    }
    assert_eq!(
        (lines(&said.stdout, "other"), lines(&said.stderr, "hint: git aynig resume")),
        (1, 1),
        "{said:?}"
    );
    // A pass each second. The same of another head is something that happened again.
    let every = life.start(&["run", "--every", "1s"]);
    let ticked = |branch: &str| {
        life.event(branch, "build", "");
        eventually(branch, || (life.state(branch) == "done").then_some(()));
    };
    ticked("new");
    for state in ["../y", "../y"] {
        life.event("odd", state, "");
        ticked("newer");
    }
    ticked("newest");
    every.signal(Signal::SIGTERM);
    let said = every.done();
    assert_told(
        &said.stdout,
        &[
            ("held: ", 1),
            ("late: ", 1),
            ("odd: state '../x'", 1),
            ("odd: state '../y'", 2),
            ("newer: ", 2),
            ("newest: ", 1),
        ],
    );
    // By name too, also of a lease, whose end draws nearer with each pass.
    life.event("leased", "foo", "");
    life.run(&["set-working", "-b", "leased"]).expect(0);
    life.event("idle", "foo", "");
    let every = life.start(&["run", "--every", "1s", "leased", "idle", "ran"]);
    ticked("ran");
    life.event("idle", "zulu", "");
    ticked("ran");
    ticked("ran");
    every.signal(Signal::SIGTERM);
    let said = every.done();
    assert_told(
        &said.stdout,
        &[
            ("leased: leased by run", 1),
            ("idle: nothing to do: state 'foo'", 1),
            ("idle: nothing to do: state 'zulu'", 1),
            ("ran: build -> done", 3),
        ],
    );
    // For programs each pass is told in full.
    life.event("last", "build", "");
    let said = life.run(&["run", "--json"]).expect(0).stdout;
    let of_held = said.lines().filter(|line| line.contains("\"branch\":\"held\"")).count();
    assert_eq!(of_held, 2, "{said}");
}

/// K36: what one failure that concerns several branches is told of each once, and of one that is left in full.
#[test]
fn a_failure_of_several_branches_is_told_of_the_one_that_is_left() {
    let life = Life::new(&[("build", "true")]);
    for branch in ["a", "b"] {
        life.event(branch, "build", "");
    }
    life.config("aynig.exec", "/no/such/wrapper");
    let said = life.shared().join("said");
    let every = Running::saying(life.aynig(&["run", "--every", "1s"]), &said);
    let heard = |branch: &str| {
        let line = format!("error: {branch}: ");
        eventually(branch, || fs::read_to_string(&said).unwrap().contains(&line).then_some(()));
    };
    heard("a");
    life.event("a", "done", "");
    heard("b");
    every.signal(Signal::SIGTERM);
    every.done();
}

/// K36: what one look tells of many branches is written together, each hint after its branch's line where both
/// streams are one file, and whole where they are two.
#[test]
fn what_a_look_tells_of_many_branches_keeps_its_order() {
    let life = Life::new(&[]);
    let commit = life.event("unusable/0000", "../x", "");
    let mut refs = life.repo.command("git");
    let mut git = refs.args(["update-ref", "--stdin"]).stdin(Stdio::piped()).spawn().unwrap();
    let creates: String = (1..600).map(|n| format!("create refs/heads/unusable/{n:04} {commit}\n")).collect();
    git.stdin.take().unwrap().write_all(creates.as_bytes()).unwrap();
    assert!(git.wait().unwrap().success());
    let (lines, hints): (Vec<_>, Vec<_>) = (0..600)
        .map(|n| {
            let line = format!("unusable/{n:04}: state '../x' is not usable: ");
            (line, format!("hint: git aynig set-state <state> -b unusable/{n:04}"))
        })
        .unzip();

    let one = life.shared().join("one");
    let file = fs::File::create(&one).unwrap();
    let mut tick = life.aynig(&["tick"]);
    assert!(tick.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap().success());
    let told = fs::read_to_string(one).unwrap();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(told.len(), 1200);
    for (n, two) in told.chunks(2).enumerate() {
        assert!(two[0].starts_with(&lines[n]) && two[1] == hints[n], "{n}: {two:?}");
    }

    let tick = life.tick(&[]).expect(0);
    assert!(tick.stdout.len() > 32 << 10, "more than is written at once");
    let told: Vec<&str> = tick.stdout.lines().collect();
    assert!(told.len() == 600 && told.iter().zip(&lines).all(|(told, line)| told.starts_with(line)));
    assert_eq!(tick.stderr.lines().collect::<Vec<_>>(), hints);
}

/// K16: logs that a run is writing stay where it reads them until it is over, whatever rules a branch brings
#[test]
fn logs_are_brought_away_once_their_run_is_over() {
    let life =
        Life::new(&[("build", &format!("echo begun; echo up >\"$T/up\"; read x <\"$T/gate\"; {NEXT}"))]);
    let trigger = life.event("work", "build", "");
    let mut gate = life.gate("gate");
    let tick = life.start_tick(&["work"]);
    life.hear("up");
    life.write(".aynig/logs/.gitignore", "!*\n");
    life.run(&["status"]).expect(0);
    let log = life.path(&format!(".aynig/logs/{trigger}.stdout.log"));
    assert!(log.exists());
    gate.open();
    tick.done().expect(0);
    assert_eq!(life.state("work"), "next");
    life.run(&["status"]).expect(0);
    assert!(!log.exists());
    assert!(life.run(&["logs", "work"]).expect(0).stdout.starts_with("begun\n"));
}

/// K16: a process was killed between both names of a log that it moved
#[test]
fn a_log_that_has_both_names_loses_the_older() {
    let life = Life::new(&[("build", &format!("echo said; {NEXT}"))]);
    let trigger = life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    life.write(".aynig/logs/hook.log", "hook\n");
    fs::create_dir_all(life.path(".git/aynig/logs")).unwrap();
    let names = ["hook.log".to_owned(), format!("{trigger}.stdout.log")];
    let [here, there] =
        [".aynig/logs", ".git/aynig/logs"].map(|folder| names.clone().map(|n| life.path(folder).join(n)));
    here.iter().zip(&there).for_each(|(here, there)| fs::hard_link(here, there).unwrap());
    life.write(".aynig/logs/.gitignore", "*\t\n");
    life.write(".aynig/logs/notes.stdout.log", "mine\n");
    life.run(&["status"]).expect(0);
    assert!(here.iter().all(|here| !here.exists()) && life.path(".aynig/logs/notes.stdout.log").exists());
    assert_eq!(
        there.map(|there| fs::read_to_string(there).unwrap()).concat(),
        "hook\nsaid\nSET_STATE {\"state\":\"next\"}\n"
    );
    // What hooks wrote to both is kept.
    life.write(".aynig/logs/hook.log", "later\n");
    life.run(&["status"]).expect(0);
    assert_eq!(life.read(".git/aynig/logs/hook.log"), "hook\nlater\n");
}

//! `status --watch` on a terminal of its own, and what `status` shows of what runs and waits.

use crate::support::life::eventually;
use crate::verbs::diff::on_a_terminal;
use crate::verbs::rig::Rig;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::{Pid, ttyname};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::Instant;

/// A terminal with `git aynig status --watch` on it.
struct Seen {
    master: File,
    slave: OwnedFd,
    child: Child,
    bytes: Vec<u8>,
}

impl Seen {
    fn begin(rig: &Rig, args: &[&str]) -> Self {
        let size = Winsize { ws_row: 12, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(Some(&size), None).unwrap();
        let mut command = rig.world.command("setsid", &rig.dir);
        command.args(["--ctty", rig.world.root().join("bin/git-aynig").to_str().unwrap()]);
        let end = || terminal.slave.try_clone().unwrap();
        command.args(["status", "--watch"]).args(args).env("TERM", "xterm");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Self { master: terminal.master.into(), slave: terminal.slave, child, bytes: Vec::new() }
    }

    /// The lines of the frame that is shown, once that is as wanted.
    #[track_caller]
    fn until(&mut self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let deadline = Instant::now() + crate::support::life::LONG;
        loop {
            let text = String::from_utf8_lossy(&self.bytes).into_owned();
            // The terminal itself adds a carriage return to each line feed.
            let text = text.replace("\r\r\n", "\r\n");
            let frames = text.rsplit("\x1b[H");
            let whole =
                frames.map(|frame| frame.split_once("\x1b[J")).find_map(|frame| Some(frame?.0.to_owned()));
            let lines: Vec<String> = whole
                .iter()
                .flat_map(|frame| frame.split("\r\n"))
                .map(|line| line.strip_suffix("\x1b[K").expect("each line is cleared to its end").to_owned())
                .collect();
            if !lines.is_empty() && is_so(&lines) {
                return lines;
            }
            assert!(Instant::now() < deadline, "{what}: {lines:#?}");
            self.read();
        }
    }

    fn read(&mut self) {
        let mut fds = [PollFd::new(self.master.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::from(100_u16)).unwrap() > 0 {
            let mut bytes = [0; 4096];
            let n = self.master.read(&mut bytes).unwrap_or(0);
            self.bytes.extend_from_slice(&bytes[..n]);
        }
    }

    /// How it ended; the terminal is as it was.
    fn end(mut self) -> Option<i32> {
        while self.child.try_wait().unwrap().is_none() {
            self.read();
        }
        self.read();
        let code = self.child.wait().unwrap().code();
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        assert!(text.contains("\x1b[?1049h") && text.ends_with("\x1b[?7h\x1b[?25h\x1b[?1049l"), "{text:?}");
        let flags = tcgetattr(&self.slave).unwrap().local_flags;
        assert!(flags.contains(LocalFlags::ICANON | LocalFlags::ECHO));
        code
    }
}

/// K55
#[test]
fn a_terminal_shows_what_changes_and_is_given_back() {
    let rig = Rig::new();
    rig.set("waiting", "review");
    let mut seen = Seen::begin(&rig, &[]);
    let lines = seen.until("first", |lines| lines[0].starts_with("1 waiting"));
    // Before anything was read.
    assert!(String::from_utf8_lossy(&seen.bytes).contains("\x1b[Hlooking at all branches   (q quits)"));
    assert!(
        lines[2].starts_with("waiting  waiting  review  ") && lines[2].contains("waits for a person"),
        "{lines:?}"
    );
    assert!(
        lines[2].ends_with("git aynig set-state '<state>' -b waiting") || lines[2].len() == 100,
        "{lines:?}"
    );
    let mut tick = rig.hold("work");
    seen.until("running", |lines| {
        lines[0].starts_with("1 running, 1 waiting")
            && lines[2].starts_with("running  work ")
            && lines[2].ends_with(": one")
    });
    rig.go();
    tick.wait().unwrap();
    seen.until("done", |lines| {
        lines[0].starts_with("1 waiting, 1 done") && lines[3].contains("no command: an end")
    });
    rig.git(&["update-ref", "-d", "refs/heads/waiting"]);
    seen.until("gone", |lines| lines[0].starts_with("1 done") && lines.len() == 3);
    seen.master.write_all(b"q").unwrap();
    assert_eq!(seen.end(), Some(0));
}

/// K55
#[test]
fn another_size_is_drawn_at_once_and_ctrl_c_gives_the_terminal_back() {
    let rig = Rig::new();
    for nth in 0..30 {
        rig.git(&["update-ref", &format!("refs/heads/b{nth:02}"), "main"]);
    }
    rig.git(&["checkout", "-q", "-b", "long"]);
    rig.git(&["commit", "-q", "--allow-empty", "-m", &format!("x\n\ndwp-state: {}", "s".repeat(150))]);
    let branches: Vec<String> = (0..30).map(|nth| format!("b{nth:02}")).collect();
    let mut args: Vec<&str> = branches.iter().map(|name| &**name).collect();
    args.push("long");
    let mut seen = Seen::begin(&rig, &args);
    let lines = seen.until("first", |lines| lines.len() == 12);
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{lines:?}");
    let resize = |rows: &str, cols: &str| {
        let tty = ttyname(&seen.slave).unwrap();
        rig.world.run("stty", &rig.dir, &["-F", tty.to_str().unwrap(), "rows", rows, "cols", cols]).expect(0);
    };
    resize("7", "40");
    // The two are set one after the other.
    let lines = seen
        .until("smaller", |lines| lines.len() == 7 && lines.iter().all(|line| line.chars().count() <= 40));
    let resize = |rows: &str, cols: &str| {
        let tty = ttyname(&seen.slave).unwrap();
        rig.world.run("stty", &rig.dir, &["-F", tty.to_str().unwrap(), "rows", rows, "cols", cols]).expect(0);
    };
    resize("20", "80");
    seen.until("larger", |lines| lines.len() == 20);
    let first = lines[2].clone();
    seen.master.write_all(b"jjj").unwrap();
    seen.master.write_all(b"\x1b[B").unwrap();
    seen.until("scrolled", |lines| !lines[2].starts_with(&first[..12]));
    seen.master.write_all(b"\x03").unwrap();
    assert_eq!(seen.end(), Some(130));
    let seen = Seen::begin(&rig, &["long"]);
    let mut seen = seen;
    seen.until("first", |lines| lines.len() == 3);
    kill(Pid::from_raw(seen.child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(seen.end(), Some(143));
}

/// K55
#[test]
fn programs_hear_each_object_that_changed() {
    let rig = Rig::new();
    rig.set("a", "review");
    rig.set("b", "ok");
    let mut child = rig.spawn(&["status", "--watch", "--json"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<serde_json::Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&next()["branch"], &next()["branch"]), (&"a".into(), &"b".into()));
    rig.aynig(&["tick", "b"]).expect(0);
    let ended = std::iter::repeat_with(&mut next).find(|object| object["state"] == "done").unwrap();
    assert_eq!((&ended["branch"], &ended["group"]), (&"b".into(), &"done".into()));
    rig.git(&["update-ref", "-d", "refs/heads/a"]);
    let gone = next();
    assert_eq!((&gone["branch"], &gone["standing"]), (&"a".into(), &"gone".into()));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let said = rig.aynig(&["status", "--watch"]).expect(129);
    assert!(said.err.contains("'--watch' draws on a terminal"), "{}", said.err);
}

/// K49b, K55: what is asked while the picture stays is in it, for people and for programs.
#[test]
fn what_is_asked_is_shown_as_it_is_asked_and_answered() {
    let rig = Rig::new();
    let asks =
        "#!/bin/sh\ngit aynig ask Now? --choice yes --wait >&2\necho 'SET_STATE {\"state\":\"done\"}'\n";
    rig.world.commit_files(&rig.dir, "main", &[(".aynig/command/asks", asks)], "asks");
    rig.set("work", "asks");
    let mut seen = Seen::begin(&rig, &["--waiting"]);
    seen.until("nothing", |lines| lines[0].starts_with("no branch is as asked for"));
    let mut child = rig.spawn(&["status", "--watch", "--json", "--waiting"]);
    let mut objects = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut tick = rig.spawn(&["tick", "work"]);
    let lines = seen.until("asked", |lines| lines[0].starts_with("1 running"));
    assert!(lines[2].contains("; it asks 'Now?': git aynig a"), "{lines:?}");
    let object: serde_json::Value = serde_json::from_str(&objects.next().unwrap().unwrap()).unwrap();
    assert_eq!((&object["questions"][0]["text"], &object["branch"]), (&"Now?".into(), &"work".into()));
    rig.aynig(&["answer", "work", "yes"]).expect(0);
    tick.wait().unwrap();
    seen.until("answered", |lines| lines[0].starts_with("no branch is as asked for"));
    seen.master.write_all(b"q").unwrap();
    assert_eq!(seen.end(), Some(0));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
}

/// K49b
#[test]
fn who_waits_for_a_person_is_told_oldest_first_with_what_answers() {
    let rig = Rig::new();
    for (branch, state, date) in [("new", "review", "2024-03-01"), ("old", "fial", "2024-01-01")] {
        rig.git(&["checkout", "-q", "-b", branch, "main"]);
        let dated = format!("GIT_COMMITTER_DATE={date}T00:00:00Z");
        let args =
            [&*dated, "git", "commit", "-q", "--allow-empty", "-m", &format!("x\n\ndwp-state: {state}")];
        rig.world.run("env", &rig.dir, &args).expect(0);
    }
    rig.set("done", "done");
    rig.set("ready", "ok");
    rig.set("stalls", "fail");
    rig.aynig(&["tick", "stalls"]).expect(1);
    let said = rig.aynig(&["status", "--waiting"]).expect(0).out;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].starts_with("old ") && lines[0].ends_with("git aynig set-state fail -b old"), "{said}");
    assert!(
        lines[1].starts_with("new ") && lines[1].contains("git aynig set-state <state> -b new"),
        "{said}"
    );
    assert!(lines[2].contains("waits for git aynig retry stalls"), "{said}");
    let objects = rig.json(&["status", "--waiting", "--json"], 0, "aynig.status/1");
    let groups: Vec<_> = objects.iter().map(|object| object["group"].as_str().unwrap()).collect();
    assert_eq!(groups, ["waiting", "waiting", "stalled"]);
    let since = rig.json(&["status", "--since", "1h", "--json"], 0, "aynig.status/1");
    assert_eq!(since.len(), 3);
    let said = rig.aynig(&["status", "--running"]).expect(0);
    assert!(said.out.is_empty() && said.err.contains("no branch is as asked for"), "{said:?}");
}

/// K55
#[test]
fn a_run_is_shown_with_the_last_line_that_it_printed() {
    let rig = Rig::new();
    rig.set("other", "ok");
    let mut tick = rig.hold("work");
    // What it prints is in its log a moment later.
    let said = eventually("its line", || {
        Some(rig.aynig(&["status", "--running"]).expect(0).out).filter(|said| said.ends_with(": one\n"))
    });
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("work  working  wait in run "), "{said}");
    let object = &rig.json(&["status", "--json", "work"], 0, "aynig.status/1")[0];
    assert_eq!((&object["last_line"], &object["group"]), (&"one".into(), &"running".into()));
    rig.go();
    tick.wait().unwrap();
}

/// K55: a terminal that shows text and nothing else gets text and nothing else
#[test]
fn nothing_is_drawn_on_a_dumb_terminal() {
    let rig = Rig::new();
    for (kind, draws) in [("xterm", true), ("dumb", false)] {
        rig.set("work", "ok");
        let shown = on_a_terminal(&rig, kind, &["tick", "work"]);
        assert!(shown.contains("work: ok -> ") && shown.contains('\x1b') == draws, "{kind}: {shown:?}");
    }
    let shown = on_a_terminal(&rig, "dumb", &["status", "--watch"]);
    assert!(shown.contains("draws on a terminal") && !shown.contains('\x1b'), "{shown:?}");
}

//! Starts and ends (W1, W3, W4).

use crate::support::{PATIENCE, SERVE, Server, World, aynig, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::Command;

/// W1: the verb becomes the program, which lies beside it; where it is not there that is told.
#[test]
fn w1_the_verb_starts_the_program() {
    let world = World::new();
    let command = world.call(aynig(), &["serve", "--json", "--port", "0"]);
    let server = crate::support::Server::start(&mut { command });
    assert_eq!(server.get("/api/version").status, 200);

    let alone = world.home.path().join("git-aynig");
    // By another process: a child that another test forks meanwhile would hold the copy open for writing, and such a
    // file can't be started.
    assert!(std::process::Command::new("cp").args([aynig(), alone.clone()]).status().unwrap().success());
    let output = world.call(alone, &["serve"]).env("PATH", "/usr/bin:/bin").output().unwrap();
    assert_eq!(output.status.code(), Some(128));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("'git-aynig-serve' is not beside this program, and not on PATH\nhint: cargo"),
        "{said}"
    );
}

/// W4: both definitions of the arguments are one.
#[test]
fn w4_the_program_takes_what_the_verb_takes() {
    let flags = |command: &mut Command| -> BTreeSet<String> {
        let text = String::from_utf8(command.arg("-h").output().unwrap().stdout).unwrap();
        let words = text.split_whitespace().filter(|word| word.starts_with("--"));
        words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-').to_owned()).collect()
    };
    let own = flags(&mut Command::new(SERVE));
    let verb = flags(Command::new(aynig()).arg("serve"));
    let beyond: Vec<_> = own.difference(&verb).filter(|flag| !matches!(&***flag, "--version")).collect();
    assert!(own.len() > 8 && beyond.is_empty(), "{beyond:?}");
    // What every verb takes, and is settled before this one becomes the program.
    let not_ours = ["--git-dir", "--quiet", "--verbose"];
    let lacking: Vec<_> = verb.difference(&own).filter(|flag| !not_ours.contains(&&***flag)).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}

/// W4: asked to end, it ends though others look on, and does not wait for them: they are still there.
#[test]
fn w4_it_ends_while_others_look_on() {
    let world = World::new();
    let mut server = world.serve(&[]);
    let mut sockets = [server.socket(), server.socket()];
    let _idle = server.connect();
    kill(Pid::from_raw(server.child.id().cast_signed()), Signal::SIGTERM).unwrap();
    let status = until("it ends", || server.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    let mut rest = Vec::new();
    assert!(sockets.iter_mut().all(|socket| { socket.read_to_end(&mut rest).is_ok() }));
}

/// W4: one line, with the address and its code.
#[test]
fn w4_one_line_says_where_it_is() {
    use std::io::{BufRead, BufReader};
    let world = World::new();
    let mut command = world.call(SERVE, &["--port", "0"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let (address, code) = line.trim_end().split_once("/#").unwrap();
    assert!(address.starts_with("http://127.0.0.1:") && code.len() == 32, "{line}");
}

/// W3: a second server says where the first is; it may stand beside it and change nothing. What was killed left no lock.
#[test]
fn w3_one_server_serves_a_repository() {
    let world = World::new();
    let first = world.serve(&[]);
    let output = world.call(SERVE, &["--port", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("is served already at http://{}/", first.address)), "{said}");
    let second = world.serve(&["--read-only"]);
    assert_eq!(second.get("/api/version").json()["read_only"], true);
    second.post("/api/branches/main/set-state", "{\"state\":\"build\"}").failed(403, "refused");
    // What another writes there is not believed.
    std::fs::write(world.repo().join(".git/aynig/serve"), "http://x/\x1b[31m").unwrap();
    let output = world.call(SERVE, &["--port", "0"]).output().unwrap();
    assert!(!output.stderr.contains(&0x1b), "{output:?}");
    drop(first);
    let third = world.serve(&[]);
    assert_eq!(third.get("/api/version").json()["read_only"], false);
}

/// W3: commands that run go on when the server is killed.
#[test]
fn w3_a_killed_server_ends_nothing() {
    let world = World::new();
    world.aynig(&["hooks", "install"]);
    world.command("slow", "sleep 1; echo 'SET_STATE {\"state\":\"review\"}'");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "slow"]);
    let server = world.serve(&[]);
    let asked = server.post("/api/branches/job/set-state", "{\"state\":\"slow\",\"create\":true}");
    assert_eq!(asked.status, 200, "{}", asked.text());
    crate::support::until("it runs", || {
        (server.get("/api/branches/job").json()["state"] == "working").then_some(())
    });
    drop(server);
    crate::support::until("it ends", || {
        world.aynig(&["status", "--json", "job"]).contains("\"state\":\"review\"").then_some(())
    });
}

/// W4: no command of a run serves a page.
#[test]
fn w4_no_run_serves() {
    let world = World::new();
    let output = world.call(SERVE, &["--port", "0"]).env("AYNIG_RUN_ID", "x").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

/// W4: it serves on the socket that a supervisor holds, and says when it is ready and when it ends.
#[test]
fn w4_a_supervisor_hands_it_a_socket_and_is_told() {
    let world = World::new();
    let told = world.home.path().join("told");
    let notices = std::os::unix::net::UnixDatagram::bind(&told).unwrap();
    notices.set_read_timeout(Some(PATIENCE)).unwrap();
    let hear = || {
        let mut word = [0; 64];
        let size = notices.recv(&mut word).unwrap();
        String::from_utf8_lossy(&word[..size]).into_owned()
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // A request that comes before the start waits for it.
    let mut early = std::net::TcpStream::connect(address).unwrap();
    early.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(early, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" --json --port 1";
    let mut command = world.call("sh", &["-c", script, SERVE]);
    command.env("NOTIFY_SOCKET", &told).stdin(std::os::fd::OwnedFd::from(listener));
    let server = Server::start(&mut command);
    assert_eq!(server.address, address.to_string());
    assert_eq!(hear(), "READY=1");
    let mut page = String::new();
    early.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("git-aynig"), "{page}");
    let pid = server.said["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    assert_eq!(hear(), "STOPPING=1");
}

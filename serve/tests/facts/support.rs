//! Repositories, servers and requests.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The server's program.
pub const SERVE: &str = env!("CARGO_BIN_EXE_git-aynig-serve");

/// A repository with a branch that is `main`, in a home of its own.
pub struct World {
    pub home: TempDir,
}

impl World {
    /// One whose user trusts its branches.
    pub fn new() -> Self {
        Self::trusting("branch")
    }

    pub fn trusting(commands_from: &str) -> Self {
        let world = Self { home: tempfile::tempdir().unwrap() };
        let config = format!(
            "[user]\nname = A\nemail = a@example.com\n[init]\ndefaultBranch = main\n[aynig]\ncommandsFrom = \
             {commands_from}\nworktreeDir = {}\n",
            world.home.path().join("slots").display()
        );
        std::fs::write(world.home.path().join(".gitconfig"), config).unwrap();
        std::fs::create_dir(world.repo()).unwrap();
        world.git(&["init", "-q"]);
        world.command("build", "echo one; echo two; echo built > built; echo '<script>x</script>'; git aynig-no-such 2>/dev/null; echo 'SET_STATE {\"state\":\"review\"}'");
        world.command("fail", "echo broken >&2; exit 1");
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "first"]);
        world
    }

    pub fn repo(&self) -> PathBuf {
        self.home.path().join("repo")
    }

    pub fn command(&self, state: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.repo().join(".aynig/command").join(state);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// This program in the repository, with nothing of ours in its environment.
    pub fn call(&self, program: impl AsRef<Path>, args: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(args).current_dir(self.repo()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.home.path());
        command
    }

    pub fn git(&self, args: &[&str]) -> String {
        told(self.call("git", args).output().unwrap())
    }

    pub fn aynig(&self, args: &[&str]) -> String {
        told(self.call(aynig(), args).output().unwrap())
    }

    /// What runs all that is ready; commands call the program too.
    pub fn runner(&self) -> Command {
        let path = std::env::var_os("PATH").unwrap();
        let folders = aynig().parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
        let mut command = self.call(aynig(), &["run"]);
        command.env("PATH", std::env::join_paths(folders).unwrap());
        command
    }

    /// Runs what is ready, until nothing is; what stalls is no failure here.
    pub fn run(&self) -> String {
        let ran = self.runner().output().unwrap();
        String::from_utf8_lossy(&ran.stderr).into_owned()
    }

    pub fn serve(&self, args: &[&str]) -> Server {
        let mut command = self.call(SERVE, &["--json", "--port", "0"]);
        Server::start(command.args(args))
    }
}

/// The program that the server asks.
pub fn aynig() -> PathBuf {
    let beside = Path::new(SERVE).with_file_name("git-aynig");
    assert!(beside.is_file(), "there is no git-aynig beside the server: cargo build");
    beside
}

fn told(output: Output) -> String {
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A server that runs; killed with the value.
pub struct Server {
    pub child: Child,
    pub said: Value,
    pub address: String,
}

impl Server {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it said {line:?}"));
        let url = said["url"].as_str().unwrap();
        let (_, address) = url.split_once("://").unwrap();
        let address = address.trim_end_matches('/').to_owned();
        Self { child, said, address }
    }

    pub fn token(&self) -> &str {
        self.said["token"].as_str().unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends these bytes and reads all that comes.
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early may not read it all.
        let _ = stream.write_all(bytes);
        Answer::read(&mut stream)
    }

    /// A request with these lines of headers, and the host as it should be.
    pub fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let host = format!("Host: {}", self.address);
        self.ask_as(method, path, &[&[host.as_str()], headers].concat(), body)
    }

    /// A request with these lines of headers, and nothing else that is right.
    pub fn ask_as(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|line| text += &format!("{line}\r\n"));
        self.raw(format!("{text}\r\n{body}").as_bytes())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[&self.bearer()], "")
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.ask("POST", path, &[&self.bearer(), "Content-Type: application/json"], body)
    }

    pub fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token())
    }

    pub fn origin(&self) -> String {
        format!("Origin: http://{}", self.address)
    }

    /// Opens a socket as a page does.
    pub fn socket(&self) -> TcpStream {
        let mut stream = self.connect();
        let request = format!(
            "GET /api/socket HTTP/1.1\r\nHost: {}\r\n{}\r\n{UPGRADE}Sec-WebSocket-Protocol: aynig, token.{}\r\n\r\n",
            self.address,
            self.origin(),
            self.token()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let head = head(&mut stream);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.to_lowercase().contains("sec-websocket-protocol: aynig\r\n"), "{head}");
        stream
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The headers that make a request one for a socket.
pub const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: \
                           13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Reads to the end of the headers.
pub fn head(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut one = [0];
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut one).is_ok_and(|n| n == 1) {
        bytes.push(one[0]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads a frame of a server: its first byte, and what it carries.
fn any_frame(stream: &mut impl Read) -> Option<(u8, Vec<u8>)> {
    let mut start = [0; 2];
    stream.read_exact(&mut start).ok()?;
    let len = match start[1] {
        126 => {
            let mut more = [0; 2];
            stream.read_exact(&mut more).ok()?;
            u64::from(u16::from_be_bytes(more))
        }
        127 => {
            let mut more = [0; 8];
            stream.read_exact(&mut more).ok()?;
            u64::from_be_bytes(more)
        }
        short => u64::from(short),
    };
    let mut bytes = vec![0; usize::try_from(len).unwrap()];
    stream.read_exact(&mut bytes).ok()?;
    Some((start[0], bytes))
}

/// The text that the next frame is; `None` for another frame, and for the end.
pub fn frame(stream: &mut impl Read) -> Option<String> {
    any_frame(stream).filter(|(kind, _)| *kind == 0x81).map(|(_, bytes)| String::from_utf8(bytes).unwrap())
}

/// The next text, whatever other frames come before it; `None` at the end.
pub fn text(stream: &mut impl Read) -> Option<String> {
    loop {
        let (kind, bytes) = any_frame(stream)?;
        if kind == 0x81 {
            return Some(String::from_utf8(bytes).unwrap());
        }
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn read(stream: &mut impl Read) -> Self {
        let head = head(stream);
        let mut body = Vec::new();
        let _ = stream.read_to_end(&mut body);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let headers: BTreeMap<String, String> =
            lines.map(|(key, value)| (key.to_lowercase(), value.to_owned())).collect();
        let body = match headers.get("transfer-encoding").map(String::as_str) {
            Some("chunked") => panic!("no answer of ours is chunked"),
            Some(_) | None => body,
        };
        Self { status, headers, body }
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// It is a failure of this kind, in the one shape.
    #[track_caller]
    pub fn failed(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{self:?} {}", self.text());
        assert_eq!(self.json()["code"], code, "{}", self.text());
        assert!(self.json()["error"].as_str().is_some_and(|error| !error.is_empty()), "{}", self.text());
    }
}

/// Nothing here takes so long, on the slowest machine: a test that waits for this has failed.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// It was read until the other side closed it, and not until patience was over.
pub fn is_closed(read: std::io::Result<usize>) -> bool {
    read.map_or_else(|error| error.kind() == std::io::ErrorKind::ConnectionReset, |_| true)
}

/// Waits for something for as long as it gets on: an `Err` is how far it is, and of that the next is another before long.
#[track_caller]
pub fn while_it_goes_on<T, P: PartialEq + std::fmt::Debug>(
    what: &str,
    mut look: impl FnMut() -> Result<T, P>,
) -> T {
    let (mut last, mut since) = (None, Instant::now());
    loop {
        match look() {
            Ok(found) => return found,
            Err(now) if last.as_ref() == Some(&now) => {}
            Err(now) => (last, since) = (Some(now), Instant::now()),
        }
        assert!(since.elapsed() < PATIENCE, "{what}: {last:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for something that another process brings about.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

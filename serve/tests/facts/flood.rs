//! What makes no sense, again and again (W14, section 5 of the design): 2,000 requests and frames, or as many as `AYNIG_FLOOD` says.

use crate::support::{PATIENCE, SERVE, Server, UPGRADE, World, head};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How often, where nothing is said.
const USUAL: usize = 2000;
/// How much more memory the server may have at the end than after the first of them, in KiB.
const GROWTH_MAX: u64 = 16 << 10;

fn how_often() -> usize {
    std::env::var("AYNIG_FLOOD").ok().and_then(|many| many.parse().ok()).unwrap_or(USUAL)
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.roll(256)).unwrap()
    }

    /// Some bytes of it are others, more, fewer, or once more.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.roll(5) {
            if bytes.is_empty() {
                return;
            }
            let at = self.roll(bytes.len());
            match self.roll(5) {
                0 => bytes[at] = self.byte(),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, self.byte()),
                3 => bytes.truncate(at),
                _ => {
                    let again = bytes[at..].iter().take(40).copied().collect::<Vec<_>>();
                    bytes.splice(at..at, again);
                }
            }
        }
    }
}

/// The most that a process has had so far is of no interest: what it has now.
fn memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Ports of connections that are over rest for a while.
fn connected(server: &Server) -> TcpStream {
    loop {
        match TcpStream::connect(&server.address) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                return stream;
            }
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
                std::thread::sleep(Duration::from_millis(200))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Requests that are right, but for what they are about.
fn requests(server: &Server) -> Vec<Vec<u8>> {
    let run = "00000000-0000-4000-8000-00000000000f";
    let node = "00000000-0000-4000-8000-00000000000a";
    let asks = [
        ("GET", "/".to_owned(), ""),
        ("GET", "/api/version".to_owned(), ""),
        ("GET", "/api/branches?repo=0".to_owned(), ""),
        ("GET", "/api/branches/main/logs?offset=-5&limit=3&stream=stderr".to_owned(), ""),
        (
            "POST",
            "/api/branches/main/set-state?repo=0".to_owned(),
            "{\"state\":\"x y\",\"message\":\"hello\"}",
        ),
        ("POST", "/api/branches/none/answer".to_owned(), "{\"choice\":\"yes\",\"seen\":\"00\"}"),
        ("POST", "/api/enter".to_owned(), "{\"code\":\"0123456789abcdef0123456789abcdef\"}"),
        (
            "POST",
            "/api/runs".to_owned(),
            "{\"mode\":\"FAST\",\"globalMode\":\"PLANNING\",\"cwd\":\"/nowhere\"}",
        ),
        ("GET", format!("/api/runs/{run}/events?limit=200&before=17"), ""),
        (
            "PATCH",
            format!("/api/runs/{run}"),
            "{\"patch\":{\"mode\":\"AUTO\",\"layout\":{\"positions\":{},\"viewport\":{\"x\":0,\"y\":0,\"zoom\":1},\"updatedAt\":\"2026-01-01T00:00:00Z\"}}}",
        ),
        (
            "POST",
            format!("/api/runs/{run}/nodes"),
            "{\"node\":{\"label\":\"a\",\"roleTemplate\":\"b\",\"provider\":\"custom\",\"capabilities\":{\"edgeManagement\":\"all\"}}}",
        ),
        (
            "PATCH",
            format!("/api/runs/{run}/nodes/{node}"),
            "{\"patch\":{\"alias\":\"x\"},\"config\":{\"session\":{\"resume\":true}}}",
        ),
        (
            "POST",
            format!("/api/runs/{run}/edges"),
            "{\"edge\":{\"from\":\"00000000-0000-4000-8000-00000000000a\",\"to\":\"x\",\"label\":\"\"}}",
        ),
        (
            "POST",
            format!("/api/runs/{run}/chat"),
            "{\"nodeId\":\"00000000-0000-4000-8000-00000000000a\",\"content\":\"hi\",\"interrupt\":true}",
        ),
        (
            "POST",
            format!("/api/approvals/{node}/resolve"),
            "{\"resolution\":{\"status\":\"modified\",\"modifiedArgs\":{\"a\":[1,2.5e3,null]}}}",
        ),
        ("PUT", "/api/templates/none".to_owned(), "{\"content\":\"x\"}"),
        ("GET", "/api/fs/list?path=%2Fetc".to_owned(), ""),
        ("GET", format!("/ws?runId={run}&since=12"), ""),
    ];
    let (address, token) = (&server.address, server.token());
    let request = |(method, path, body): &(&str, String, &str)| {
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: \
             application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    asks.iter().map(request).collect()
}

fn malformed_request(server: &Server, dice: &mut Dice, whole: &[Vec<u8>]) {
    let mut bytes = whole[dice.roll(whole.len())].clone();
    dice.spoil(&mut bytes);
    let mut stream = connected(server);
    let _ = stream.write_all(&bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let status =
        head(&mut stream).split(' ').nth(1).and_then(|status| status.parse::<u16>().ok()).unwrap_or(0);
    assert!(status < 500 && status != 422, "{status}: {}", String::from_utf8_lossy(&bytes));
    let _ = stream.read_to_end(&mut Vec::new());
}

/// A frame as a browser sends it, masked by nothing.
fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | kind, 0x80 | u8::try_from(content.len()).unwrap()];
    bytes.extend([0; 4]);
    bytes.extend(content);
    bytes
}

/// Opens a socket, and sends frames of which most are none; gives how many.
fn malformed_frames(server: &Server, dice: &mut Dice, most: usize) -> usize {
    let path = ["/ws", "/api/socket"][dice.roll(2)];
    let mut stream = connected(server);
    let (address, bearer) = (&server.address, server.bearer());
    let asked = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{bearer}\r\n{UPGRADE}\r\n");
    stream.write_all(asked.as_bytes()).unwrap();
    let answered = head(&mut stream);
    assert!(answered.starts_with("HTTP/1.1 101 "), "{answered}");
    let many = 1 + dice.roll(60).min(most - 1);
    for _ in 0..many {
        let kind = [1, 2, 8, 9, 10, 0, 3, 15][dice.roll(8)];
        let content: Vec<u8> = (0..dice.roll(100)).map(|_| dice.byte()).collect();
        let mut bytes = frame(kind, &content);
        if dice.roll(3) > 0 {
            dice.spoil(&mut bytes);
        }
        if stream.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
    many
}

/// W14: nothing falls over, no answer blames the server, and it has no more memory than before.
#[test]
fn w14_what_makes_no_sense_leaves_no_trace() {
    let world = World::new();
    let log = world.home.path().join("said");
    let mut command = world.call(SERVE, &["--json", "--port", "0"]);
    let mut server = Server::start(command.stderr(std::fs::File::create(&log).unwrap()));
    let (mut dice, whole, often) = (Dice(0x2545_f491_4f6c_dd1d), requests(&server), how_often());
    let (mut asked, mut framed, mut before) = (0, 0, 0);
    while asked + framed < often {
        for _ in 0..25 {
            malformed_request(&server, &mut dice, &whole);
            asked += 1;
        }
        framed += malformed_frames(&server, &mut dice, 50);
        // What a process has after the first of them, it has by right.
        if before == 0 && asked + framed >= often.min(USUAL) / 2 {
            before = memory(&server);
        }
    }
    let after = memory(&server);
    eprintln!("{asked} requests, {framed} frames: {before} KiB, then {after} KiB");
    assert!(after < before + GROWTH_MAX, "{before} KiB, then {after} KiB");
    assert_eq!(server.get("/api/version").status, 200);
    assert!(server.child.try_wait().unwrap().is_none());
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(world.git(&["for-each-ref"]).lines().count(), 1, "and nothing was written");
}

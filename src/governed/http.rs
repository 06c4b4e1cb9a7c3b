//! One POST with one deadline: plain HTTP natively, `https` through the `curl` program.
//!
//! Whatever the other side does (refuse, hang, trickle, talk nonsense), the call is over at its deadline:
//! looking the name up, connecting, writing and reading all count. No redirect is followed, nothing is kept
//! open. TLS is not built in: an `https` address needs `curl` on PATH, which gets address and headers on its
//! stdin, where no process list shows them. Implements G5.

use super::root::Root;
use crate::supervisor::bounded::{Bounded, Input, Output, Verdict};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum Failure {
    TimedOut,
    Failed(String),
}

fn failed(why: impl Into<String>) -> Failure {
    Failure::Failed(why.into())
}

/// Posts JSON; reads at most `most` bytes of the answer's body.
pub(super) fn post(
    root: &Root,
    url: &str,
    headers: &[(String, String)],
    body: &[u8],
    timeout: Duration,
    most: usize,
) -> Result<Answer, Failure> {
    if headers.iter().any(|(name, value)| [name, value].iter().any(|text| text.contains(['\r', '\n', '\0'])))
    {
        return Err(failed("a header has more than one line"));
    }
    let deadline = Instant::now() + timeout;
    match url.strip_prefix("http://") {
        Some(rest) => plain(rest, headers, body, deadline, most),
        None => curl(root, url, headers, body, deadline, most),
    }
}

fn left(deadline: Instant) -> Result<Duration, Failure> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::TimedOut) } else { Ok(left) }
}

fn of_io(error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Failure::TimedOut,
        _ => failed(error.to_string()),
    }
}

fn plain(
    rest: &str,
    headers: &[(String, String)],
    body: &[u8],
    deadline: Instant,
    most: usize,
) -> Result<Answer, Failure> {
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.is_empty() || path.contains(char::is_whitespace) || host.contains(char::is_whitespace) {
        return Err(failed("the address is none"));
    }
    let mut stream = connect(host, deadline)?;
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n");
    let given = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if !given("content-type") {
        head.push_str("Content-Type: application/json\r\n");
    }
    for (name, value) in headers.iter().filter(|(name, _)| {
        !["connection", "content-length", "host", "transfer-encoding"]
            .contains(&name.to_ascii_lowercase().as_str())
    }) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n\r\n", body.len()));
    write(&mut stream, head.as_bytes(), deadline)?;
    write(&mut stream, body, deadline)?;
    read(&mut stream, deadline, most)
}

/// Connects to the first address that answers.
fn connect(host: &str, deadline: Instant) -> Result<TcpStream, Failure> {
    let mut last = failed(format!("cannot find '{host}'"));
    for address in addresses(host, deadline)? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = of_io(error),
        }
    }
    Err(last)
}

fn addresses(host: &str, deadline: Instant) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, 80)]);
    }
    let full = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    // The system's look-up knows no deadline; whoever asked does not wait for it.
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let found = full.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        let _ = tell.send(found);
    });
    match told.recv_timeout(left(deadline)?) {
        Ok(found) => found.map_err(|error| failed(format!("cannot find '{host}': {error}"))),
        Err(_) => Err(Failure::TimedOut),
    }
}

fn write(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> Result<(), Failure> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?)).map_err(of_io)?;
        match stream.write(bytes) {
            Ok(0) => return Err(failed("the connection was closed")),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(of_io(error)),
        }
    }
    Ok(())
}

/// Most bytes of an answer's head.
const HEAD_MAX: usize = 64 << 10;

fn read(stream: &mut TcpStream, deadline: Instant, most: usize) -> Result<Answer, Failure> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    let mut head: Option<Head> = None;
    loop {
        if head.is_none() {
            head = Head::parse(&bytes)?;
        }
        if let Some(head) = &head
            && let Some(body) = head.body(&bytes, most)
        {
            return Ok(Answer { status: head.status, body });
        }
        if head.is_none() && bytes.len() > HEAD_MAX {
            return Err(failed("the answer is no HTTP"));
        }
        stream.set_read_timeout(Some(left(deadline)?)).map_err(of_io)?;
        match stream.read(&mut piece) {
            Ok(0) => {
                let head = head.ok_or_else(|| failed("the connection was closed without an answer"))?;
                let body = head.partial(&bytes, most);
                return Ok(Answer { status: head.status, body });
            }
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(of_io(error)),
        }
    }
}

/// The head of an answer.
struct Head {
    status: u16,
    /// Where the body begins.
    at: usize,
    length: Option<usize>,
    chunked: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> Result<Option<Self>, Failure> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes[..end]);
        let mut lines = text.lines();
        let mut first = lines.next().unwrap_or_default().split_whitespace();
        let version = first.next().unwrap_or_default();
        let status = first.next().and_then(|code| code.parse().ok());
        let Some(status) = status.filter(|_| version.starts_with("HTTP/1.")) else {
            return Err(failed("the answer is no HTTP"));
        };
        let mut head = Self { status, at: end + 4, length: None, chunked: false };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "content-length" => head.length = value.trim().parse().ok(),
                "transfer-encoding" => head.chunked = value.to_ascii_lowercase().contains("chunked"),
                _ => {}
            }
        }
        if status == 204 || status == 304 {
            head.length = Some(0);
        }
        Ok(Some(head))
    }

    /// The body, once it is whole.
    fn body(&self, bytes: &[u8], most: usize) -> Option<Vec<u8>> {
        let body = &bytes[self.at..];
        if self.chunked {
            let (body, is_whole) = unchunked(body);
            return (is_whole || body.len() >= most).then(|| body.into_iter().take(most).collect());
        }
        let length = self.length.map_or(most, |length| length.min(most));
        (body.len() >= length).then(|| body[..length].to_vec())
    }

    /// What there is of it when the other side has closed.
    fn partial(&self, bytes: &[u8], most: usize) -> Vec<u8> {
        let body = &bytes[self.at..];
        let body = if self.chunked { unchunked(body).0 } else { body.to_vec() };
        body.into_iter().take(most).collect()
    }
}

/// The content of chunks, and whether the last one is there.
fn unchunked(mut body: &[u8]) -> (Vec<u8>, bool) {
    let mut whole = Vec::new();
    loop {
        let Some(end) = body.windows(2).position(|two| two == b"\r\n") else { return (whole, false) };
        let size = String::from_utf8_lossy(&body[..end]);
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size, 16) else { return (whole, true) };
        if size == 0 {
            return (whole, true);
        }
        let start = end + 2;
        let stop = start.saturating_add(size);
        if body.len() < stop {
            whole.extend_from_slice(body.get(start..).unwrap_or_default());
            return (whole, false);
        }
        whole.extend_from_slice(&body[start..stop]);
        body = body.get(stop + 2..).unwrap_or_default();
    }
}

fn curl(
    root: &Root,
    url: &str,
    headers: &[(String, String)],
    body: &[u8],
    deadline: Instant,
    most: usize,
) -> Result<Answer, Failure> {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let Ok(body) = std::str::from_utf8(body) else { return Err(failed("the body is no text")) };
    let mut config = format!("url = {}\nrequest = POST\ndata-raw = {}\n", quoted(url), quoted(body));
    config.push_str("header = \"Content-Type: application/json\"\n");
    for (name, value) in headers {
        config.push_str(&format!("header = {}\n", quoted(&format!("{name}: {value}"))));
    }
    let mut command = Command::new("curl");
    if let Some(environment) = root.environment() {
        command.env_clear().envs(environment.iter().map(|(key, value)| (key, value)));
    }
    let seconds = format!("{:.3}", left(deadline)?.as_secs_f64());
    command.args(["-q", "--silent", "--show-error", "--proto", "=https", "--max-time", &seconds]);
    command.args(["--write-out", "\n%{http_code}", "--config", "-"]);
    let mut child = Bounded::new(command);
    child.input = Input::Bytes(config.into_bytes());
    child.stdout = Output::Capture(most + 16);
    child.stderr = Output::Capture(512);
    child.own_group = true;
    child.term_grace = Duration::ZERO;
    child.deadline = Some(deadline);
    let ended = child.run().map_err(|_| failed("an https address needs the program 'curl'"))?;
    if ended.verdict != Verdict::Ended || ended.status.code() == Some(28) {
        return Err(Failure::TimedOut);
    }
    if !ended.status.success() {
        return Err(failed(String::from_utf8_lossy(&ended.stderr.bytes).trim().to_owned()));
    }
    let all = ended.stdout.bytes;
    let at = all.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let status = String::from_utf8_lossy(all.get(at + 1..).unwrap_or_default()).trim().parse();
    let Ok(status) = status else { return Err(failed("the answer is too long")) };
    Ok(Answer { status, body: all[..at].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_in_the_forms_that_servers_write() {
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n";
        let head = Head::parse(chunked).unwrap().unwrap();
        assert_eq!(head.body(chunked, 100).unwrap(), b"abcde");
        assert!(head.body(&chunked[..chunked.len() - 8], 100).is_none());
        let sized = b"HTTP/1.0 404 Not Found\r\ncontent-length: 2\r\n\r\nokmore";
        let head = Head::parse(sized).unwrap().unwrap();
        assert_eq!((head.status, head.body(sized, 100).unwrap()), (404, b"ok".to_vec()));
        assert!(Head::parse(b"SSH-2.0-x\r\n\r\n").is_err());
        assert!(Head::parse(b"HTTP/1.1 200").unwrap().is_none());
    }
}

//! The turn's end of the socket through which the server of tools reaches it.
//!
//! Any process of the user may connect, including the agent's own commands: so what comes in is an agent's
//! request, and is judged as such. Lines, connections, and what a turn takes in altogether are bounded. A
//! client that does not read holds up only its own thread. Call `Door::open`, then `knocks` whenever `fd` is
//! readable. Implements N7.

use crate::contract::door::{Answer, Call, Knock, LINE_MAX};
use crate::contract::event::{ToolError, ToolResult};
use crate::contract::offered::Offered;
use crate::supervisor::socket::listen;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::DirBuilder;
use std::io::{BufRead, BufReader, ErrorKind, Read, Result, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Most lines that a turn takes in, of all connections.
const KNOCKS_MAX: usize = 2000;
/// Most connections of a turn.
const CONNECTIONS_MAX: usize = 1000;
/// Most connections at once.
const AT_ONCE_MAX: usize = 32;
/// Most lines, of all connections, that wait to be looked at.
const WAITING_MAX: usize = 64;

/// The socket on which the turn listens.
pub struct Door {
    path: PathBuf,
    came: Receiver<Came>,
    /// Readable when something came.
    bell: UnixStream,
    /// When this end is closed, the accepting thread knows that the turn does not listen any more.
    _stop: UnixStream,
}

/// A request that came in.
pub struct Came {
    /// The call; `None` where the client asks for the list of tools.
    pub call: Option<Call>,
    /// Where its answer goes.
    pub reply: Reply,
}

/// Where an answer goes.
pub struct Reply {
    id: u64,
    to: Sender<Vec<u8>>,
    lives: Arc<AtomicBool>,
}

impl Reply {
    /// Answers with the list of tools.
    pub fn tools(&self, tools: Vec<Offered>) {
        self.say(&Answer { id: self.id, tools: Some(tools), ..Answer::default() });
    }

    /// Answers with what came of a call; false where the client is gone.
    pub fn result(&self, result: &ToolResult, error: Option<&ToolError>) -> bool {
        let answer = Answer { id: self.id, tools: None, result: Some(result.clone()), error: error.cloned() };
        self.say(&answer)
    }

    /// Answers that a call is not made.
    pub fn refuse(&self, why: &str) {
        let error = ToolError { message: why.to_owned() };
        self.result(&ToolResult { ok: false, output: None }, Some(&error));
    }

    fn say(&self, answer: &Answer) -> bool {
        let Ok(mut line) = serde_json::to_vec(answer) else { return false };
        line.push(b'\n');
        self.lives.load(Ordering::SeqCst) && self.to.send(line).is_ok()
    }
}

impl Door {
    /// Listens on a socket in a new folder below this one.
    pub fn open(folder: &Path) -> Result<Self> {
        let folder = folder.join("tools");
        DirBuilder::new().mode(0o700).create(&folder)?;
        let path = folder.join("socket");
        let listener = listen(&path)?;
        listener.set_nonblocking(true)?;
        let (bell, rings) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        let (_stop, stopped) = UnixStream::pair()?;
        let (to, came) = sync_channel(WAITING_MAX);
        let hall = Hall { to, rings, knocks: AtomicUsize::new(0), at_once: AtomicUsize::new(0) };
        thread::Builder::new().spawn(move || accept(&listener, &stopped, &Arc::new(hall)))?;
        Ok(Self { path, came, bell, _stop })
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a descriptor that is readable when something came.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Returns what came since the last call.
    pub fn knocks(&self) -> Vec<Came> {
        let mut rung = [0; 256];
        while (&self.bell).read(&mut rung).is_ok_and(|bytes| bytes == rung.len()) {}
        self.came.try_iter().collect()
    }
}

/// What all connections share.
struct Hall {
    to: SyncSender<Came>,
    rings: UnixStream,
    knocks: AtomicUsize,
    at_once: AtomicUsize,
}

fn accept(listener: &UnixListener, stopped: &UnixStream, hall: &Arc<Hall>) {
    let mut connections = 0;
    loop {
        let mut fds = [
            PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            PollFd::new(stopped.as_fd(), PollFlags::POLLIN),
        ];
        let polled = poll(&mut fds, PollTimeout::NONE);
        let is_over = fds[1].revents().is_some_and(|came| !came.is_empty());
        if is_over || polled.is_err_and(|errno| errno != nix::errno::Errno::EINTR) {
            return;
        }
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => continue,
            // The client went away, or no descriptor is left: after a pause, the next client may fare better.
            Err(_) => {
                thread::sleep(std::time::Duration::from_millis(100));
                continue;
            }
        };
        connections += 1;
        if connections > CONNECTIONS_MAX {
            return;
        }
        if hall.at_once.fetch_add(1, Ordering::SeqCst) >= AT_ONCE_MAX {
            hall.at_once.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let inside = Arc::clone(hall);
        let served = move || {
            serve(&stream, &inside);
            inside.at_once.fetch_sub(1, Ordering::SeqCst);
        };
        // If no thread can be had for a client, its connection is closed, and takes up no place.
        if thread::Builder::new().spawn(served).is_err() {
            hall.at_once.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Reads a connection to its end, while a thread of its own writes its answers.
fn serve(stream: &UnixStream, hall: &Hall) {
    let Ok(mut writes) = stream.set_nonblocking(false).and_then(|()| stream.try_clone()) else { return };
    let lives = Arc::new(AtomicBool::new(true));
    let (to, answers) = channel::<Vec<u8>>();
    let alive = Arc::clone(&lives);
    let write = move || {
        for line in answers {
            if writes.write_all(&line).is_err() {
                break;
            }
        }
        alive.store(false, Ordering::SeqCst);
    };
    if thread::Builder::new().spawn(write).is_err() {
        return;
    }
    let mut lines = BufReader::new(stream);
    while let Some(knock) = read(&mut lines) {
        if hall.knocks.fetch_add(1, Ordering::SeqCst) >= KNOCKS_MAX {
            break;
        }
        let reply = Reply { id: knock.id, to: to.clone(), lives: Arc::clone(&lives) };
        if hall.to.send(Came { call: knock.call, reply }).is_err() {
            break;
        }
        // If the write fails because the bell is full, it has rung already.
        let _ = (&hall.rings).write(b"!");
    }
    lives.store(false, Ordering::SeqCst);
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Reads the next line of a connection; `None` where the connection is at its end, or is to be closed because
/// the line is no request.
fn read(lines: &mut BufReader<&UnixStream>) -> Option<Knock> {
    let mut line = Vec::new();
    let length = lines.by_ref().take(LINE_MAX as u64 + 1).read_until(b'\n', &mut line).ok()?;
    if length == 0 || length > LINE_MAX {
        return None;
    }
    serde_json::from_slice(&line).ok()
}

//! A terminal that is drawn on: its alternate screen, its keys, its size.
//!
//! [`Terminal::take`] takes the terminal. [`Terminal::draw`] shows a frame in one write (from the top left,
//! each line cleared to its end, so that nothing flickers). [`Terminal::wait`] returns what comes first: a
//! key, another size, a signal, or the timeout. Dropping the value gives the terminal back as it was, and
//! prints what was held back meanwhile. Ctrl-C stays a signal; Ctrl-Z does nothing. Implements K55
//! (`--watch`).

use super::output;
use crate::app::AppError;
use crate::supervisor::SupervisorError;
use crate::supervisor::interrupt::Interrupt;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Enters the alternate screen, without a cursor and without wrapping; [`LEAVE`] goes back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";

/// True for a terminal that shows text and nothing else: `TERM=dumb`, as Git reads it.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// A terminal that is ours until it is dropped.
pub struct Terminal {
    before: Termios,
    resized: UnixStream,
    /// The frame that was drawn last; empty where the next one is drawn in any case.
    shown: Vec<u8>,
}

/// What [`Terminal::wait`] waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// A key was pressed.
    Key(Key),
    /// The terminal has another size.
    Size,
    /// A signal came that ends the verb, or the terminal is gone.
    End,
    /// Nothing came in the given time.
    Nothing,
}

/// Keys that mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// `q`.
    Quit,
    /// Scroll so many lines further down, or up where negative.
    Scroll(isize),
    /// Scroll to the top.
    Top,
    /// Any other key.
    Other,
}

impl Terminal {
    /// True where standard input and standard output are a terminal that can be drawn on.
    pub fn is_there() -> bool {
        io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb()
    }

    /// Takes the terminal: its alternate screen, and its keys one by one, without an echo.
    pub fn take() -> Result<Self, AppError> {
        let failed = |what| move |source: io::Error| AppError::from(SupervisorError::system(what)(source));
        let before =
            tcgetattr(io::stdin()).map_err(|errno| failed("read the terminal's settings")(errno.into()))?;
        let (resized, writer) = UnixStream::pair().map_err(failed("make pipe"))?;
        resized.set_nonblocking(true).map_err(failed("set pipe non-blocking"))?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGWINCH, writer)
            .map_err(failed("catch signals"))?;
        let mut raw = before.clone();
        raw.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        // Ctrl-Z is off: a person who suspended the program would be left with the alternate screen, and
        // without an echo.
        raw.control_chars[SpecialCharacterIndices::VSUSP as usize] = nix::libc::_POSIX_VDISABLE;
        raw.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        raw.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw)
            .map_err(|errno| failed("change the terminal's settings")(errno.into()))?;
        let terminal = Self { before, resized, shown: Vec::new() };
        output::say_later();
        put(ENTER);
        Ok(terminal)
    }

    /// Returns the number of columns and of lines; 80 and 24 where the system does not know.
    pub fn size(&self) -> (usize, usize) {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map_or((80, 24), |(width, height)| (usize::from(width.0).max(1), usize::from(height.0).max(1)))
    }

    /// Shows these lines, cut to the width, unless they are shown already. False where they could not be
    /// written, since the terminal is gone.
    pub fn draw(&mut self, lines: &[String]) -> bool {
        let (width, height) = self.size();
        let mut frame = b"\x1b[H".to_vec();
        for (nth, line) in lines.iter().take(height).enumerate() {
            if nth > 0 {
                frame.extend_from_slice(b"\r\n");
            }
            frame.extend(line.chars().take(width).collect::<String>().into_bytes());
            frame.extend_from_slice(b"\x1b[K");
        }
        frame.extend_from_slice(b"\x1b[J");
        if frame == self.shown {
            return true;
        }
        self.shown = frame;
        put(&self.shown)
    }

    /// Has the next frame drawn even where it is the one that is shown.
    pub fn forget(&mut self) {
        self.shown.clear();
    }

    /// Waits for the first of a signal, another size and a key, for at most `how_long` (and never longer than
    /// 65 seconds).
    pub fn wait(&mut self, interrupt: &Interrupt, how_long: Duration) -> Came {
        let millis = u16::try_from(how_long.as_millis()).unwrap_or(u16::MAX);
        let stdin = io::stdin();
        let came = |fd: &PollFd<'_>| fd.revents().is_some_and(|revents| !revents.is_empty());
        let mut fds = [
            PollFd::new(interrupt.fd(), PollFlags::POLLIN),
            PollFd::new(self.resized.as_fd(), PollFlags::POLLIN),
            PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
        ];
        let polled = poll(&mut fds, PollTimeout::from(millis));
        let [is_signal, is_resized, is_key] =
            [0, 1, 2].map(|nth| polled.is_ok_and(|n| n > 0) && came(&fds[nth]));
        if is_signal || interrupt.signal().is_some() {
            return Came::End;
        }
        if is_resized {
            while self.resized.read(&mut [0; 64]).is_ok_and(|n| n > 0) {}
            self.forget();
            return Came::Size;
        }
        if !is_key {
            return Came::Nothing;
        }
        let mut bytes = [0; 64];
        match nix::unistd::read(stdin.as_fd(), &mut bytes) {
            Ok(0) | Err(_) => Came::End,
            Ok(n) => Came::Key(keys(&bytes[..n])),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        put(LEAVE);
        let _ = tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &self.before);
        output::say_now();
    }
}

fn put(bytes: &[u8]) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).is_ok()
}

/// Returns what these bytes say together: several keys may have been pressed since the last look.
fn keys(mut bytes: &[u8]) -> Key {
    let mut all = Key::Other;
    while !bytes.is_empty() {
        let length = length(bytes);
        all = match (all, key(&bytes[..length])) {
            (_, Key::Quit) => return Key::Quit,
            (Key::Scroll(before), Key::Scroll(by)) => Key::Scroll(before + by),
            (before, Key::Other) => before,
            (_, last) => last,
        };
        bytes = &bytes[length..];
    }
    all
}

/// Returns how many of these bytes are the first key. An escape sequence ends with its first letter or '~'.
fn length(bytes: &[u8]) -> usize {
    match bytes {
        [0x1b, b'[' | b'O', rest @ ..] => {
            let end = rest.iter().position(|b| b.is_ascii_alphabetic() || *b == b'~');
            end.map_or(bytes.len(), |end| end + 3)
        }
        _ => 1,
    }
}

fn key(bytes: &[u8]) -> Key {
    match bytes {
        b"q" | b"Q" => Key::Quit,
        b"j" | b"\x1b[B" | b"\x1bOB" => Key::Scroll(1),
        b"k" | b"\x1b[A" | b"\x1bOA" => Key::Scroll(-1),
        b" " | b"\x1b[6~" => Key::Scroll(10),
        b"b" | b"\x1b[5~" => Key::Scroll(-10),
        b"g" | b"\x1b[H" => Key::Top,
        _ => Key::Other,
    }
}

//! Writing to the two standard streams; a reader that went away is no failure.

use std::io::Write;

/// One line of result.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// Text for standard error, as it is.
pub fn error(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// One line for standard error.
pub fn note(text: &str) {
    error(&format!("{text}\n"));
}

/// Bytes as they are, to either stream.
pub fn raw(to_stderr: bool, bytes: &[u8]) {
    if to_stderr {
        let _ = std::io::stderr().lock().write_all(bytes);
    } else {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }
}

//! A log that keeps every byte up to a limit, and above it the head and the tail.
//!
//! Up to the limit the file is exactly what was printed, at any moment. Above it the newest bytes go to two
//! segments in turn (unlinked files beside the log, so that nothing is left behind whatever happens), and
//! `finish` joins head, notice and tail. The log never takes more than twice the limit on disk, and no
//! memory. The first write that fails is reported and ends the log: a full disk must not end the run.
//! Implements K16.

use crate::supervisor::beneath::{Refusal, apart};
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Returns the line that stands for bytes that were left out.
pub(super) fn notice(left_out: u64) -> String {
    format!("\n[{left_out} bytes left out]\n")
}

/// One log.
pub(super) struct CappedLog {
    path: PathBuf,
    file: File,
    /// The length of the file when it was opened: the log's own bytes come after it.
    base: u64,
    cap: u64,
    /// How many bytes the log was given so far.
    taken: u64,
    tail: Option<Tail>,
    failed: bool,
}

/// The bytes above the limit: at least the newest `tail_len` of them, or all if there are fewer.
struct Tail {
    newest: File,
    newest_len: u64,
    older: Option<File>,
}

/// The name by which a caller says that it keeps no log.
const NO_LOG: &str = "/dev/null";

impl CappedLog {
    /// Opens or creates the file (mode 0600, regular, never through a symlink) and appends to it. `/dev/null`
    /// by that very name is opened as the device that it is.
    pub fn open(path: &Path, cap: u64) -> io::Result<Self> {
        if path == Path::new(NO_LOG) {
            return Self::of(path, OpenOptions::new().read(true).append(true).open(path)?, cap);
        }
        let opened = apart(path).and_then(|(folder, name)| folder.append_and_read(name, 0o600));
        // The reason of a refusal can only be passed on as an errno.
        let file = opened.map_err(|error| match error.refusal() {
            Some(Refusal::Link) => Errno::ELOOP.into(),
            Some(_) => Errno::EINVAL.into(),
            None => io::Error::from(error),
        })?;
        Self::of(path, file, cap)
    }

    fn of(path: &Path, file: File, cap: u64) -> io::Result<Self> {
        let base = file.metadata()?.len();
        Ok(Self { path: path.into(), file, base, cap: cap.max(2), taken: 0, tail: None, failed: false })
    }

    fn head_len(&self) -> u64 {
        self.cap / 2
    }

    fn tail_len(&self) -> u64 {
        self.cap - self.head_len()
    }

    /// Adds the next bytes. Fails at most once: after a failed write the log takes nothing more.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        let result = self.try_write(bytes);
        self.failed = result.is_err();
        result
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = self.cap.saturating_sub(self.taken).min(bytes.len() as u64) as usize;
        let (below, above) = bytes.split_at(room);
        self.file.write_all(below)?;
        self.taken += below.len() as u64;
        if above.is_empty() {
            return Ok(());
        }
        self.taken += above.len() as u64;
        let tail_len = self.tail_len();
        let mut tail = match self.tail.take() {
            Some(tail) => tail,
            None => Tail { newest: self.segment()?, newest_len: 0, older: None },
        };
        let mut above = above;
        while !above.is_empty() {
            if tail.newest_len == tail_len {
                let empty = match tail.older.take() {
                    Some(mut older) => {
                        older.set_len(0)?;
                        older.rewind()?;
                        older
                    }
                    None => self.segment()?,
                };
                tail.older = Some(std::mem::replace(&mut tail.newest, empty));
                tail.newest_len = 0;
            }
            let room = (tail_len - tail.newest_len).min(above.len() as u64) as usize;
            tail.newest.write_all(&above[..room])?;
            tail.newest_len += room as u64;
            above = &above[room..];
        }
        self.tail = Some(tail);
        Ok(())
    }

    /// Makes a new file beside the log, whose name is removed at once.
    fn segment(&self) -> io::Result<File> {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".tail-{}", uuid::Uuid::new_v4().simple()));
        let (folder, name) = apart(Path::new(&path))?;
        let file = folder.create_new(name, 0o600)?;
        folder.remove(name)?;
        Ok(file)
    }

    /// Completes the file. Fails at most once, and not after a write that failed.
    pub fn finish(&mut self) -> io::Result<()> {
        match self.tail.take() {
            Some(tail) if !self.failed => {
                let result = self.join(tail);
                self.failed = result.is_err();
                result
            }
            Some(_) | None => Ok(()),
        }
    }

    fn join(&mut self, mut tail: Tail) -> io::Result<()> {
        let tail_len = self.tail_len();
        // How much of the tail lies before the newest segment: in the older one, or still in the log itself.
        let before = tail_len - tail.newest_len;
        let mut earlier = match tail.older.take() {
            Some(older) => older,
            None => {
                let mut copy = self.segment()?;
                self.file.seek(SeekFrom::Start(self.base + self.cap - before))?;
                io::copy(&mut (&self.file).take(before), &mut copy)?;
                copy
            }
        };
        self.file.set_len(self.base + self.head_len())?;
        let left_out = self.taken - self.cap;
        self.file.write_all(notice(left_out).as_bytes())?;
        earlier.seek(SeekFrom::End(-(before as i64)))?;
        append(&earlier, &self.file)?;
        tail.newest.rewind()?;
        append(&tail.newest, &self.file)
    }
}

/// Appends the rest of a file. A loop of reads and writes, as the kernel's file-to-file copy refuses append
/// mode.
fn append(mut from: &File, mut to: &File) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            n => to.write_all(&buffer[..n])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn text(len: usize) -> Vec<u8> {
        (0..len).map(|i| b'a' + (i % 23) as u8).collect()
    }

    fn logged(len: usize, cap: u64, piece: usize) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = CappedLog::open(&path, cap).unwrap();
        for chunk in text(len).chunks(piece) {
            log.write(chunk).unwrap();
        }
        log.finish().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "segments are left behind");
        fs::read(path).unwrap()
    }

    #[test]
    fn a_log_up_to_its_limit_is_whole() {
        for len in [0, 1, 99, 100] {
            assert_eq!(logged(len, 100, 7), text(len));
        }
    }

    #[test]
    fn a_log_above_its_limit_is_head_notice_and_tail() {
        for cap in [2_u64, 3, 64, 101] {
            for len in cap as usize + 1..cap as usize * 5 + 2 {
                for piece in [1, 13, 1000] {
                    let all = text(len);
                    let head = cap as usize / 2;
                    let tail = cap as usize - head;
                    let middle = notice(len as u64 - cap);
                    let want = [&all[..head], middle.as_bytes(), &all[len - tail..]].concat();
                    assert_eq!(logged(len, cap, piece), want, "cap {cap} len {len} piece {piece}");
                }
            }
        }
    }

    #[test]
    fn a_symlink_is_refused_and_modes_are_private() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (link, plain) = (dir.path().join("link"), dir.path().join("plain"));
        symlink(&plain, &link).unwrap();
        assert!(CappedLog::open(&link, 10).is_err());
        CappedLog::open(&plain, 10).unwrap();
        // Opening a fifo may block, and a device is no log.
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for other in [&fifo, Path::new("/dev/zero"), dir.path()] {
            assert!(CappedLog::open(other, 10).is_err(), "{other:?}");
        }
        assert_eq!(fs::metadata(plain).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_full_disk_is_reported_once() {
        let full = Path::new("/dev/full");
        let file = fs::OpenOptions::new().read(true).append(true).open(full).unwrap();
        let mut log = CappedLog::of(full, file, 100).unwrap();
        assert_eq!(log.write(b"x").unwrap_err().raw_os_error(), Some(nix::libc::ENOSPC));
        assert!(log.write(b"y").is_ok());
        assert!(log.finish().is_ok());
    }
}

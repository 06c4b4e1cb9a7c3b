//! One server per repository: a lock that ends with its process, and the server's address in the locked file.
//!
//! The file has no secret in it. Implements W3.

use crate::Stopped;
use aynig::served::Place;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;

/// The claim to a repository that this process serves.
pub struct Claim {
    _lock: Flock<File>,
}

impl Claim {
    /// Takes the lock, or says which server has it.
    pub fn take(place: &Place, url: &str) -> Result<Self, Stopped> {
        let path = place.own().join("serve");
        let shown = path.display();
        let failed = |error: &dyn std::fmt::Display| {
            let stopped = Stopped::new(128, format!("cannot write '{shown}': {error}"));
            stopped.hint("git aynig serve --read-only")
        };
        std::fs::create_dir_all(place.own()).map_err(|error| failed(&error))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o644);
        let file = options.custom_flags(OFlag::O_NOFOLLOW.bits()).open(&path);
        let file = file.map_err(|error| failed(&error))?;
        let mut lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((file, Errno::EWOULDBLOCK)) => return Err(elsewhere(place, file)),
            Err((_, error)) => return Err(failed(&error)),
        };
        let written = lock.set_len(0).and_then(|()| lock.write_all(url.as_bytes()));
        written.map_err(|error| failed(&error))?;
        Ok(Self { _lock: lock })
    }
}

fn elsewhere(place: &Place, file: File) -> Stopped {
    let mut bytes = Vec::new();
    let _ = file.take(256).read_to_end(&mut bytes);
    // Others may write into the repository, so only what can be such an address is shown.
    let url = String::from_utf8(bytes).ok().filter(|url| {
        (url.starts_with("http://") || url.starts_with("https://"))
            && url.bytes().all(|b| b.is_ascii_alphanumeric() || b":/.[]-".contains(&b))
    });
    let at = url.map_or_else(String::new, |url| format!(" at {url}"));
    let folder = place.folder.display();
    Stopped::new(3, format!("'{folder}' is served already{at}")).hint("git aynig serve --read-only --port 0")
}

//! Unix sockets by their paths: how two processes of one run talk.
//!
//! `listen` makes a socket, `connect` connects to it. A path may be longer than a socket's name can be; such
//! a socket is reached through its opened folder, on systems that have names for open folders
//! (`/proc/self/fd`). Implements N7.

use std::fs::File;
use std::io::Result;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The longest name that every system takes.
const NAME_MAX: usize = 100;

/// Returns a name for the path that is short enough, and the folder that must stay open while the name is
/// used.
fn short(path: &Path) -> Result<(PathBuf, Option<File>)> {
    if path.as_os_str().len() <= NAME_MAX {
        return Ok((path.to_owned(), None));
    }
    let (folder, name) = path.parent().zip(path.file_name()).ok_or(std::io::ErrorKind::InvalidInput)?;
    let folder = File::open(folder)?;
    Ok((Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name), Some(folder)))
}

/// Listens at this path.
///
/// # Errors
/// Where the path is taken, too long, or can't be written.
pub fn listen(path: &Path) -> Result<UnixListener> {
    let (name, _folder) = short(path)?;
    UnixListener::bind(name)
}

/// Connects to the socket at this path.
///
/// # Errors
/// Where no process listens.
pub fn connect(path: &Path) -> Result<UnixStream> {
    let (name, _folder) = short(path)?;
    UnixStream::connect(name)
}

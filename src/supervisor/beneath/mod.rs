//! Files below a folder in which other processes write: no name in the folder is trusted.
//!
//! A command or a push may put a link, a fifo, a device or an endless file in any place that this program
//! reads or writes by name. So each component of a path is opened from the folder before it: no link below
//! the root is followed, however often names are swapped meanwhile. A file that is not regular is opened only
//! in a way that never waits for it. What is read or listed is bounded. An absolute path and `..` are
//! refused. The caller judges who owns the files, by the metadata of what was opened, and vouches for the
//! root itself: links on the way to it are followed. Calling sequence: [`Root::open`], then any of its
//! methods, each with a path below the root; [`Root::below`] makes a folder there a root. [`found`] tells a
//! file that does not exist from one that can't be read. Implements K16, K19.

mod tree;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// Why something below a root was not done. Its message names the whole path, the root included.
#[derive(Debug, thiserror::Error)]
pub enum BeneathError {
    /// The name is, or leads through, something that may not be opened.
    #[error("cannot {what} '{}': {why}", path.display())]
    Refused {
        /// What was to be done.
        what: &'static str,
        /// The path, the root included.
        path: PathBuf,
        /// Why the path was refused.
        why: Refusal,
    },
    /// A system call failed.
    #[error("cannot {what} '{}'", path.display())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// The path, the root included.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Why a name is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The path is absolute, empty, or contains `..`.
    #[error("it is no path below that folder")]
    Outside,
    /// The path is, or leads through, a symbolic link.
    #[error("it is a symbolic link")]
    Link,
    /// A fifo, a device, a socket, or a folder where a file was asked for.
    #[error("it is no plain file")]
    NotPlain,
    /// Something that is no folder, where a folder was asked for.
    #[error("it is no folder")]
    NotFolder,
    /// The file is longer than the caller's limit, in bytes.
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
    /// The folder has more entries than the caller's limit.
    #[error("it has more than {0} entries")]
    TooMany(usize),
}

impl BeneathError {
    /// True if nothing of that name exists.
    pub fn is_missing(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::NotFound)
    }

    /// True if something of that name exists already.
    pub fn is_there(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::AlreadyExists)
    }

    /// Returns the kind of the system's error; `None` if the name was refused without one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::Refused { .. } => None,
        }
    }

    /// Returns why the name was refused; `None` if it was the system that failed.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused { why, .. } => Some(*why),
            Self::Io { .. } => None,
        }
    }
}

impl From<BeneathError> for io::Error {
    fn from(error: BeneathError) -> Self {
        match error {
            BeneathError::Refused { why, .. } => Self::new(io::ErrorKind::InvalidData, why),
            BeneathError::Io { source, .. } => source,
        }
    }
}

/// Makes `None` of the error that something does not exist; every other error stays an error.
pub fn found<T>(result: Result<T, BeneathError>) -> Result<Option<T>, BeneathError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a name stands for; a link stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A fifo, a device, a socket.
    Other,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// What it is.
    pub kind: Kind,
}

/// A folder below which names are opened. It stays the same folder, even if its own name comes to mean
/// another one.
#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    path: PathBuf,
}

/// Folders are opened only to go on from, which needs no right to list them.
#[cfg(target_os = "linux")]
const STEP: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
const STEP: OFlag = OFlag::O_RDONLY;

/// The folder in which a name is looked up: the root itself, or one that was opened below it.
#[derive(Debug)]
enum At<'r> {
    Root(BorrowedFd<'r>),
    Below(OwnedFd),
}

impl AsFd for At<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(folder) => *folder,
            Self::Below(folder) => folder.as_fd(),
        }
    }
}

const SAFE: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);

impl Root {
    /// Opens this folder as a root. The caller vouches for the path: links on the way to it are followed.
    pub fn open(path: &Path) -> Result<Self, BeneathError> {
        let flags = STEP | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = nix::fcntl::open(path, flags, Mode::empty()).map_err(|errno| BeneathError::Io {
            what: "open",
            path: path.to_owned(),
            source: errno.into(),
        })?;
        Ok(Self { folder, path: path.to_owned() })
    }

    /// Opens a folder below as a root of its own.
    pub fn below(&self, path: &Path) -> Result<Self, BeneathError> {
        let folder = match self.walk("open", path, &self.names("open", path)?)? {
            At::Root(folder) => {
                folder.try_clone_to_owned().map_err(|source| self.failed("open", path, source))?
            }
            At::Below(folder) => folder,
        };
        Ok(Self { folder, path: self.path.join(path) })
    }

    /// Returns what the path stands for; `None` if nothing exists there. A link is [`Kind::Link`], and not
    /// followed.
    pub fn kind(&self, path: &Path) -> Result<Option<Kind>, BeneathError> {
        Ok(self.look(path)?.map(|(kind, _)| kind))
    }

    /// Returns what [`Root::kind`] does, and the metadata: for a link its own, not those of its target.
    pub fn look(&self, path: &Path) -> Result<Option<(Kind, FileStat)>, BeneathError> {
        let look = || {
            let (folder, name) = self.place("look at", path)?;
            let stat = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW);
            stat.map_err(|errno| self.io("look at", path, errno))
        };
        Ok(found(look())?.map(|stat| (kind_of(&stat), stat)))
    }

    /// Returns the target of a link as the link has it; whether anything exists there is not looked at.
    pub fn link(&self, path: &Path) -> Result<OsString, BeneathError> {
        let (folder, name) = self.place("read", path)?;
        readlinkat(&folder, name).map_err(|errno| self.io("read", path, errno))
    }

    /// Opens a regular file for reading.
    pub fn file(&self, path: &Path) -> Result<File, BeneathError> {
        self.opened("read", path, OFlag::O_RDONLY, Mode::empty())
    }

    /// Reads the whole content of a regular file of at most `limit` bytes; a longer one is an error.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, BeneathError> {
        let content = self.read_from(path, 0, limit.saturating_add(1))?;
        match content.len() as u64 > limit {
            true => Err(self.refused("read", path, Refusal::TooLong(limit))),
            false => Ok(content),
        }
    }

    /// Reads at most `limit` bytes of a regular file, from this offset on.
    pub fn read_from(&self, path: &Path, offset: u64, limit: u64) -> Result<Vec<u8>, BeneathError> {
        let (mut file, length) = self.open_file("read", path, OFlag::O_RDONLY, Mode::empty())?;
        let start = match offset {
            0 => Ok(0),
            _ => file.seek(SeekFrom::Start(offset)),
        };
        let read = start.and_then(|_| take(&mut file, length.saturating_sub(offset), limit));
        read.map_err(|source| self.failed("read", path, source))
    }

    /// Reads the last `limit` bytes of a regular file, or all that it has.
    pub fn read_tail(&self, path: &Path, limit: u64) -> Result<Vec<u8>, BeneathError> {
        let length = self.file(path)?.metadata().map_err(|source| self.failed("read", path, source))?.len();
        self.read_from(path, length.saturating_sub(limit), limit)
    }

    /// Creates a new file of this mode (less the umask) for writing; an error if anything of that name
    /// exists.
    pub fn create_new(&self, path: &Path, mode: u32) -> Result<File, BeneathError> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL;
        self.opened("create", path, flags, mode_of(mode))
    }

    /// Opens a regular file for appending; creates it with this mode (less the umask) if it does not exist.
    pub fn append(&self, path: &Path, mode: u32) -> Result<File, BeneathError> {
        let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT;
        self.opened("write", path, flags, mode_of(mode))
    }

    /// Opens a file as [`Root::append`] does, for reading too.
    pub fn append_and_read(&self, path: &Path, mode: u32) -> Result<File, BeneathError> {
        let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT;
        self.opened("write", path, flags, mode_of(mode))
    }

    /// Opens a regular file for reading and writing, as a lock file is; creates it with this mode if it does
    /// not exist.
    pub fn lock_file(&self, path: &Path, mode: u32) -> Result<File, BeneathError> {
        self.opened("open", path, OFlag::O_RDWR | OFlag::O_CREAT, mode_of(mode))
    }

    /// Puts a whole file in place at once: writes it under an unused name beside it and renames it. What
    /// stood there is replaced; of a link that is the link itself, not its target. A folder is not replaced.
    pub fn replace(&self, path: &Path, content: &[u8], mode: u32) -> Result<(), BeneathError> {
        let (folder, name) = self.place("write", path)?;
        let mut aside = OsString::from(".");
        aside.push(name);
        aside.push(format!(".{}", uuid::Uuid::new_v4().simple()));
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | SAFE;
        let file = openat(&folder, aside.as_os_str(), flags, mode_of(mode));
        let mut file = File::from(file.map_err(|errno| self.io("write", path, errno))?);
        let written = file
            .write_all(content)
            .and_then(|()| renameat(&folder, aside.as_os_str(), &folder, name).map_err(io::Error::from));
        written.map_err(|source| {
            let _ = unlinkat(&folder, aside.as_os_str(), UnlinkatFlags::NoRemoveDir);
            self.failed("write", path, source)
        })
    }

    /// Makes every folder of this path that does not exist, with this mode (less the umask).
    pub fn create_dirs(&self, path: &Path, mode: u32) -> Result<(), BeneathError> {
        let mut at = At::Root(self.folder.as_fd());
        for name in self.names("create", path)? {
            match mkdirat(&at, name, mode_of(mode)) {
                Ok(()) | Err(Errno::EEXIST) => at = At::Below(self.step("create", path, &at, name)?),
                Err(errno) => return Err(self.io("create", path, errno)),
            }
        }
        Ok(())
    }

    /// Syncs a folder (`""` for the root itself), after which the names in it are on disk.
    pub fn sync(&self, path: &Path) -> Result<(), BeneathError> {
        let folder = self.folder("sync", path)?;
        // The folder is opened anew because the descriptor at hand may be one that can't be synced
        // (`O_PATH`).
        let opened = openat(&folder, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | SAFE, Mode::empty());
        let opened = File::from(opened.map_err(|errno| self.io("sync", path, errno))?);
        opened.sync_all().map_err(|source| self.failed("sync", path, source))
    }

    /// Moves a name to another place below the root; replaces what is there as `rename` of the system does.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), BeneathError> {
        let ((folder, name), (onto, new)) = (self.place("move", from)?, self.place("move", to)?);
        renameat(&folder, name, &onto, new).map_err(|errno| self.io("move", from, errno))
    }

    /// Removes a file, or a link itself.
    pub fn remove(&self, path: &Path) -> Result<(), BeneathError> {
        let (folder, name) = self.place("remove", path)?;
        let gone = unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir);
        gone.map_err(|errno| self.io("remove", path, errno))
    }

    /// Removes an empty folder.
    pub fn remove_dir(&self, path: &Path) -> Result<(), BeneathError> {
        let (folder, name) = self.place("remove", path)?;
        let gone = unlinkat(&folder, name, UnlinkatFlags::RemoveDir);
        gone.map_err(|errno| self.io("remove", path, errno))
    }

    /// Returns the entries of a folder (`""` for the root itself), sorted by name; an error if there are more
    /// than `limit`.
    pub fn list(&self, path: &Path, limit: usize) -> Result<Vec<Entry>, BeneathError> {
        match tree::entries(self.folder("list", path)?.as_fd(), limit) {
            Ok(Some(mut entries)) => {
                entries.sort_by(|a, b| a.name.cmp(&b.name));
                Ok(entries)
            }
            Ok(None) => Err(self.refused("list", path, Refusal::TooMany(limit))),
            Err(errno) => Err(self.io("list", path, errno)),
        }
    }

    fn opened(
        &self,
        what: &'static str,
        path: &Path,
        flags: OFlag,
        mode: Mode,
    ) -> Result<File, BeneathError> {
        self.open_file(what, path, flags, mode).map(|(file, _)| file)
    }

    /// Opens a regular file; returns it with its length when it was opened.
    fn open_file(
        &self,
        what: &'static str,
        path: &Path,
        flags: OFlag,
        mode: Mode,
    ) -> Result<(File, u64), BeneathError> {
        let (folder, name) = self.place(what, path)?;
        open_in(&folder, name, flags, mode).map_err(|denial| match denial {
            Denial::Refused(why) => self.refused(what, path, why),
            Denial::Io(source) => self.failed(what, path, source),
        })
    }

    /// Returns the folder that holds a path's last name, and that name.
    fn place<'p>(&self, what: &'static str, path: &'p Path) -> Result<(At<'_>, &'p OsStr), BeneathError> {
        let mut names = self.names(what, path)?;
        let name = names.pop().ok_or_else(|| self.refused(what, path, Refusal::Outside))?;
        Ok((self.walk(what, path, &names)?, name))
    }

    fn folder(&self, what: &'static str, path: &Path) -> Result<At<'_>, BeneathError> {
        self.walk(what, path, &self.names(what, path)?)
    }

    fn walk(&self, what: &'static str, path: &Path, names: &[&OsStr]) -> Result<At<'_>, BeneathError> {
        let mut at = At::Root(self.folder.as_fd());
        for name in names {
            at = At::Below(self.step(what, path, &at, name)?);
        }
        Ok(at)
    }

    fn step(
        &self,
        what: &'static str,
        path: &Path,
        at: &At<'_>,
        name: &OsStr,
    ) -> Result<OwnedFd, BeneathError> {
        let flags = STEP | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat(at, name, flags, Mode::empty()).map_err(|errno| {
            match fstatat(at, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(|stat| kind_of(&stat)) {
                Ok(Kind::Link) => self.refused(what, path, Refusal::Link),
                Ok(Kind::File | Kind::Other) => self.refused(what, path, Refusal::NotFolder),
                Ok(Kind::Folder) | Err(_) => self.io(what, path, errno),
            }
        })
    }

    fn names<'p>(&self, what: &'static str, path: &'p Path) -> Result<Vec<&'p OsStr>, BeneathError> {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(self.refused(what, path, Refusal::Outside));
                }
            }
        }
        Ok(names)
    }

    fn refused(&self, what: &'static str, path: &Path, why: Refusal) -> BeneathError {
        // `join` with an absolute path would drop the root, and the message is to say that the path is not
        // below the root.
        let mut whole = self.path.clone().into_os_string();
        whole.push("/");
        whole.push(path);
        BeneathError::Refused { what, path: whole.into(), why }
    }

    fn io(&self, what: &'static str, path: &Path, errno: Errno) -> BeneathError {
        self.failed(what, path, errno.into())
    }

    fn failed(&self, what: &'static str, path: &Path, source: io::Error) -> BeneathError {
        BeneathError::Io { what, path: self.path.join(path), source }
    }
}

/// Reads a regular file of at most `limit` bytes at a path whose folder the caller vouches for; a longer one
/// is an error.
pub fn read_plain(path: &Path, limit: u64) -> Result<Vec<u8>, BeneathError> {
    let (folder, name) = parted(path)?;
    // The path is joined again: with a slash at its end, the system would follow a link of that name.
    let path = folder.join(name);
    let refused = |why| BeneathError::Refused { what: "read", path: path.clone(), why };
    let failed = |source| BeneathError::Io { what: "read", path: path.clone(), source };
    let opened = open_in(AT_FDCWD, path.as_os_str(), OFlag::O_RDONLY, Mode::empty());
    let (mut file, length) = opened.map_err(|denial| match denial {
        Denial::Refused(why) => refused(why),
        Denial::Io(source) => failed(source),
    })?;
    let content = take(&mut file, length, limit.saturating_add(1)).map_err(failed)?;
    if content.len() as u64 > limit { Err(refused(Refusal::TooLong(limit))) } else { Ok(content) }
}

/// Why a name was not opened.
enum Denial {
    Refused(Refusal),
    Io(io::Error),
}

/// Opens a name in a folder if it is a regular file, and returns its length too.
fn open_in(folder: impl AsFd, name: &OsStr, flags: OFlag, mode: Mode) -> Result<(File, u64), Denial> {
    let file = match openat(&folder, name, flags | SAFE, mode) {
        Ok(fd) => File::from(fd),
        // A missing name, or one that exists with `O_EXCL`. A link would give another error, wherever it
        // leads.
        Err(errno @ (Errno::EEXIST | Errno::ENOENT)) => return Err(Denial::Io(errno.into())),
        Err(errno) => {
            let kind = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(|s| kind_of(&s));
            return Err(match kind {
                Ok(Kind::Link) => Denial::Refused(Refusal::Link),
                Ok(Kind::Folder | Kind::Other) => Denial::Refused(Refusal::NotPlain),
                Ok(Kind::File) | Err(_) => Denial::Io(errno.into()),
            });
        }
    };
    match file.metadata() {
        Ok(meta) if meta.is_file() => Ok((file, meta.len())),
        Ok(_) => Err(Denial::Refused(Refusal::NotPlain)),
        Err(source) => Err(Denial::Io(source)),
    }
}

/// Reads at most `limit` bytes of a file that should have `length` more: with one call if it has.
fn take(file: &mut File, length: u64, limit: u64) -> io::Result<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    // One byte more than there should be is asked for: if fewer arrive than were asked for, that was the
    // whole file.
    let asked = length.saturating_add(1).min(limit).min(MOST) as usize;
    let mut content = vec![0; asked];
    let read = loop {
        match file.read(&mut content) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    content.truncate(read);
    let all = length > 0 && read as u64 >= length && read < asked;
    if !all && read > 0 {
        file.take(limit - read as u64).read_to_end(&mut content)?;
    }
    Ok(content)
}

/// Opens a path's folder as a root; returns it with the path's last name.
pub fn apart(path: &Path) -> Result<(Root, &Path), BeneathError> {
    let (folder, name) = parted(path)?;
    Ok((Root::open(folder)?, name))
}

fn parted(path: &Path) -> Result<(&Path, &Path), BeneathError> {
    let outside = || BeneathError::Refused { what: "open", path: path.to_owned(), why: Refusal::Outside };
    let name = path.file_name().ok_or_else(outside)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")), Path::new(name)))
}

fn mode_of(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode as nix::libc::mode_t)
}

fn kind_of(stat: &FileStat) -> Kind {
    match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => Kind::File,
        SFlag::S_IFDIR => Kind::Folder,
        SFlag::S_IFLNK => Kind::Link,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests;

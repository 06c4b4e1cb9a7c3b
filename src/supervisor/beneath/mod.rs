//! Files below a folder in which other processes write: no name in them is trusted.
//!
//! A command or a push may put a link, a fifo, a device or a file without end in any place that we
//! read or write by name. Here each component of a path is opened from the folder before it, so that no link
//! below the root leads anywhere, however often names are swapped meanwhile; what is not a regular file is
//! not opened for long enough to wait for it; what is read or listed is bounded. An absolute path and `..` are
//! refused. Whose the files are is the caller's to judge, by the metadata of what was opened, and so is the
//! root itself: links on the way to it are followed. Calling sequence: [`Root::open`], then any of its methods,
//! each with a path below the root; [`Root::below`] makes a folder there a root. [`found`] tells what is not
//! there from what can't be had. Implements K16, K19.

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

/// Why something below a root was not done. Its words name the path from the root on.
#[derive(Debug, thiserror::Error)]
pub enum BeneathError {
    /// It is not what may be opened there.
    #[error("cannot {what} '{}': {why}", path.display())]
    Refused {
        /// What was to be done.
        what: &'static str,
        /// With what, the root included.
        path: PathBuf,
        /// What it is.
        why: Refusal,
    },
    /// The system said no.
    #[error("cannot {what} '{}'", path.display())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With what, the root included.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// What is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Absolute, empty, or with `..`.
    #[error("it is no path below that folder")]
    Outside,
    /// A symbolic link, at its end or on the way.
    #[error("it is a symbolic link")]
    Link,
    /// A fifo, a device, a socket, or a folder where a file was asked for.
    #[error("it is no plain file")]
    NotPlain,
    /// Something else where a folder was asked for.
    #[error("it is no folder")]
    NotFolder,
    /// A file of more bytes than asked for, at most.
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
    /// A folder of more entries than asked for, at most.
    #[error("it has more than {0} entries")]
    TooMany(usize),
}

impl BeneathError {
    /// True where there is nothing of that name.
    pub fn is_missing(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::NotFound)
    }

    /// True where there is something of that name already.
    pub fn is_there(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::AlreadyExists)
    }

    /// What kind of error the system's was, where it was the system's.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::Refused { .. } => None,
        }
    }

    /// Why it was refused, where it was refused here.
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

/// `None` for what is not there; every other error stays one.
pub fn found<T>(result: Result<T, BeneathError>) -> Result<Option<T>, BeneathError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a name stands for, the link itself where it is one.
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

/// A folder below which names are opened; it stays that folder, whatever its own name comes to mean.
#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    path: PathBuf,
}

/// Folders are opened to go on from, which takes no right to list them.
#[cfg(target_os = "linux")]
const STEP: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
const STEP: OFlag = OFlag::O_RDONLY;

/// The folder that a name is looked for in: the root itself, or one that was opened below it.
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
    /// This folder. The caller vouches for the path: links on the way to it are followed.
    pub fn open(path: &Path) -> Result<Self, BeneathError> {
        let flags = STEP | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = nix::fcntl::open(path, flags, Mode::empty()).map_err(|errno| BeneathError::Io {
            what: "open",
            path: path.to_owned(),
            source: errno.into(),
        })?;
        Ok(Self { folder, path: path.to_owned() })
    }

    /// A folder below as a root of its own.
    pub fn below(&self, path: &Path) -> Result<Self, BeneathError> {
        let folder = match self.walk("open", path, &self.names("open", path)?)? {
            At::Root(folder) => {
                folder.try_clone_to_owned().map_err(|source| self.failed("open", path, source))?
            }
            At::Below(folder) => folder,
        };
        Ok(Self { folder, path: self.path.join(path) })
    }

    /// What stands there; `None` where nothing does. A link is [`Kind::Link`], and not followed.
    pub fn kind(&self, path: &Path) -> Result<Option<Kind>, BeneathError> {
        Ok(self.look(path)?.map(|(kind, _)| kind))
    }

    /// [`Root::kind`], and what the system knows of it: of a link itself, not of what it names.
    pub fn look(&self, path: &Path) -> Result<Option<(Kind, FileStat)>, BeneathError> {
        let look = || {
            let (folder, name) = self.place("look at", path)?;
            let stat = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW);
            stat.map_err(|errno| self.io("look at", path, errno))
        };
        Ok(found(look())?.map(|stat| (kind_of(&stat), stat)))
    }

    /// Where a link leads, as it says itself: nothing is looked for there.
    pub fn link(&self, path: &Path) -> Result<OsString, BeneathError> {
        let (folder, name) = self.place("read", path)?;
        readlinkat(&folder, name).map_err(|errno| self.io("read", path, errno))
    }

    /// A regular file, to be read.
    pub fn file(&self, path: &Path) -> Result<File, BeneathError> {
        self.opened("read", path, OFlag::O_RDONLY, Mode::empty())
    }

    /// The whole content of a regular file of at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, BeneathError> {
        let content = self.read_from(path, 0, limit.saturating_add(1))?;
        match content.len() as u64 > limit {
            true => Err(self.refused("read", path, Refusal::TooLong(limit))),
            false => Ok(content),
        }
    }

    /// At most `limit` bytes of a regular file, from this offset on.
    pub fn read_from(&self, path: &Path, offset: u64, limit: u64) -> Result<Vec<u8>, BeneathError> {
        let (mut file, length) = self.open_file("read", path, OFlag::O_RDONLY, Mode::empty())?;
        let start = match offset {
            0 => Ok(0),
            _ => file.seek(SeekFrom::Start(offset)),
        };
        let read = start.and_then(|_| take(&mut file, length.saturating_sub(offset), limit));
        read.map_err(|source| self.failed("read", path, source))
    }

    /// The last `limit` bytes of a regular file, or all that it has.
    pub fn read_tail(&self, path: &Path, limit: u64) -> Result<Vec<u8>, BeneathError> {
        let length = self.file(path)?.metadata().map_err(|source| self.failed("read", path, source))?.len();
        self.read_from(path, length.saturating_sub(limit), limit)
    }

    /// A new file of this mode (less the umask), to be written and read; an error where the name stands for anything.
    pub fn create_new(&self, path: &Path, mode: u32) -> Result<File, BeneathError> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL;
        self.opened("create", path, flags, mode_of(mode))
    }

    /// A regular file to be appended to, made with this mode where there is none.
    pub fn append(&self, path: &Path, mode: u32) -> Result<File, BeneathError> {
        let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT;
        self.opened("write", path, flags, mode_of(mode))
    }

    /// [`Root::append`] for a file that is read too.
    pub fn append_and_read(&self, path: &Path, mode: u32) -> Result<File, BeneathError> {
        let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT;
        self.opened("write", path, flags, mode_of(mode))
    }

    /// A regular file that is read and written, as a lock is; made with this mode where there is none.
    pub fn lock_file(&self, path: &Path, mode: u32) -> Result<File, BeneathError> {
        self.opened("open", path, OFlag::O_RDWR | OFlag::O_CREAT, mode_of(mode))
    }

    /// Puts a file there at once, whole: written aside under an unused name, renamed in. What stood
    /// there is replaced, a link itself too and not what it names; a folder is not.
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

    /// Makes every folder of this path that is not there, with this mode (less the umask).
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

    /// Syncs a folder (`""` for the root itself): the names in it are on disk then.
    pub fn sync(&self, path: &Path) -> Result<(), BeneathError> {
        let folder = self.folder("sync", path)?;
        // Opened anew: the descriptor at hand may be one that can't be synced.
        let opened = openat(&folder, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | SAFE, Mode::empty());
        let opened = File::from(opened.map_err(|errno| self.io("sync", path, errno))?);
        opened.sync_all().map_err(|source| self.failed("sync", path, source))
    }

    /// Moves a name to another place below, where it replaces what is there as the system does it.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), BeneathError> {
        let ((folder, name), (onto, new)) = (self.place("move", from)?, self.place("move", to)?);
        renameat(&folder, name, &onto, new).map_err(|errno| self.io("move", from, errno))
    }

    /// Removes a name: a file, or a link itself.
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

    /// What is in a folder (`""` for the root itself), sorted by name; an error where that is more than `limit`.
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

    /// A regular file, and its length when it was opened.
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

    /// The folder that a path's last name is in, and that name.
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
        // Joining an absolute path would lose the root, and that is what the reader is told is not left.
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

/// The content of a regular file at a path whose folder the caller vouches for, at most `limit` bytes.
pub fn read_plain(path: &Path, limit: u64) -> Result<Vec<u8>, BeneathError> {
    let (folder, name) = parted(path)?;
    // Joined again: a slash at the end would have the system follow a link of that name.
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

/// Opens a name in a folder if it is a regular file, and says how long that is.
fn open_in(folder: impl AsFd, name: &OsStr, flags: OFlag, mode: Mode) -> Result<(File, u64), Denial> {
    let file = match openat(&folder, name, flags | SAFE, mode) {
        Ok(fd) => File::from(fd),
        // Nothing stands there: a link would be another error, wherever it leads.
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

/// At most `limit` bytes of a file that should have `length` more: with one call where it does.
fn take(file: &mut File, length: u64, limit: u64) -> io::Result<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    // One byte more than there should be: less than was asked for says that this was all.
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

/// A path's folder as a root, and its last name.
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

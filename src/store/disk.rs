//! Small file operations that the store shares: the modes of new files, whose a path is, where it leads, writing aside,
//! syncing, removing what may be read-only, and reading a file in whose place a command may have put a fifo, a device or a
//! link.

use crate::protocol::text::hex;
use crate::store::{StoreError, beneath, io_error};
use nix::NixPath;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::libc::mode_t;
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, fchmodat, fstatat};
use nix::unistd::geteuid;
use sha2::{Digest, Sha256};
use std::ffi::CString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// `core.sharedRepository`: which mode bits files of the repository get beyond the umask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shared {
    /// The umask alone.
    Umask,
    /// These bits are added to those that the umask leaves.
    Add(u32),
    /// Exactly these bits, whatever the umask is.
    Exactly(u32),
}

impl Shared {
    /// Returns the meaning of the setting's value.
    pub(crate) fn from_config(value: Option<&[u8]>) -> Self {
        match value.map(<[u8]>::to_ascii_lowercase).as_deref() {
            None | Some(b"umask" | b"false" | b"no" | b"off" | b"0" | b"") => Self::Umask,
            Some(b"group" | b"true" | b"yes" | b"on" | b"1") => Self::Add(0o660),
            Some(b"all" | b"world" | b"everybody" | b"2") => Self::Add(0o664),
            Some(octal) => {
                let mode = std::str::from_utf8(octal).ok().and_then(|o| u32::from_str_radix(o, 8).ok());
                mode.map_or(Self::Umask, |mode| Self::Exactly(mode & 0o666))
            }
        }
    }

    /// Returns the setting of a repository's configuration.
    pub(crate) fn of(repo: &gix::Repository) -> Self {
        let config = repo.config_snapshot();
        let value = config.string("core.sharedRepository").map(|v| v.to_vec());
        // A key without `=` has no string value, and means true.
        let value =
            value.or_else(|| config.boolean("core.sharedRepository").map(|on| on.to_string().into_bytes()));
        Self::from_config(value.as_deref())
    }

    /// Gives one of our files or folders the mode of the setting, where that can be done: another account's has
    /// it from that account's runner.
    pub(crate) fn give(self, path: &Path) {
        let _ = self.try_give(path);
    }

    /// Gives a new file or folder the mode of the setting.
    pub(super) fn adjust(self, path: &Path) -> Result<(), StoreError> {
        self.try_give(path).map_err(io_error("change the mode of", path))
    }

    fn try_give(self, path: &Path) -> std::io::Result<()> {
        if self == Self::Umask {
            return Ok(());
        }
        let meta = path.symlink_metadata()?;
        // What a link leads to is not ours.
        if !meta.is_dir() && !meta.is_file() {
            return Ok(());
        }
        let mode = meta.permissions().mode() & 0o7777;
        let wanted = self.mode(mode, meta.is_dir());
        if wanted == mode {
            Ok(())
        } else {
            std::fs::set_permissions(path, PermissionsExt::from_mode(wanted))
        }
    }

    /// Creates the missing folders of a path, each with the mode of the setting.
    pub(super) fn make(self, folder: &Path) -> Result<(), StoreError> {
        self.make_each(folder, &|_| Ok(()))
    }

    /// Creates folders as [`Shared::make`] does, and calls `made` with each folder that was missing.
    pub(super) fn make_each(
        self,
        folder: &Path,
        made: &dyn Fn(&Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if folder.is_dir() {
            return Ok(());
        }
        if let Some(parent) = folder.parent() {
            self.make_each(parent, made)?;
        }
        match std::fs::create_dir(folder) {
            Ok(()) => match self.try_give(folder) {
                Ok(()) => made(folder),
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
                Err(e) => {
                    // The next call would take the folder as it is.
                    let _ = std::fs::remove_dir(folder);
                    Err(io_error("change the mode of", folder)(e))
                }
            },
            // Another process has created the folder meanwhile, or removed it as empty: the caller's next
            // step finds out which.
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) if e.kind() == ErrorKind::AlreadyExists && is_dir_or_gone(folder) => Ok(()),
            Err(e) => Err(io_error("create", folder)(e)),
        }
    }

    /// Returns the mode that Git would give a file or folder that has `mode` now.
    pub(super) fn mode(self, mode: u32, is_dir: bool) -> u32 {
        let fit = |mut bits: u32| {
            if mode & 0o200 == 0 {
                bits &= !0o222;
            }
            if mode & 0o100 != 0 {
                bits |= (bits & 0o444) >> 2;
            }
            bits
        };
        let shared = match self {
            Self::Umask => return mode,
            Self::Add(bits) => mode | fit(bits),
            Self::Exactly(bits) => mode & !0o777 | fit(bits),
        };
        // New files in the folder keep its group.
        if is_dir && shared & 0o060 != 0 { shared | 0o2000 } else { shared }
    }
}

/// Copies an index with its modification time, by which Git knows which files it must compare by content. A
/// file that was changed in the second in which the index was written, and that kept its size, looks
/// unchanged by its stat data. In a copy with a later time Git would believe the stat data.
pub(super) fn copy_index(mut from: &File, to: &Path) -> std::io::Result<()> {
    let copy = copy_file(&mut from, to)?;
    copy.set_modified(from.metadata()?.modified()?)
}

/// Copies a file, up to its present length, to a new file, which takes the place of whatever has that name.
pub(super) fn copy_file(from: &mut &File, to: &Path) -> std::io::Result<File> {
    let meta = from.metadata()?;
    match std::fs::remove_file(to) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut copy = File::options().write(true).create_new(true).open(to)?;
    std::io::copy(&mut from.take(meta.len()), &mut copy)?;
    copy.set_permissions(meta.permissions())?;
    Ok(copy)
}

/// Writes a file beside its place and renames it in with the mode of `shared`, so that no reader sees half of it.
pub(crate) fn write_aside(path: &Path, content: &[u8], shared: Shared) -> Result<(), StoreError> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}", std::process::id()));
    write_beside(path, Path::new(&aside), content, 0o666, |aside| {
        shared.give(aside);
        Ok(())
    })
}

/// Writes a new file at `aside`, with this mode less the umask, and renames it to `path`. `finish` may change what else
/// there is to it before anybody sees it.
pub(super) fn write_beside(
    path: &Path,
    aside: &Path,
    content: &[u8],
    mode: u32,
    finish: impl FnOnce(&Path) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let open = || File::options().write(true).create_new(true).mode(mode).open(aside);
    // As a rule nothing is there. Whatever is was left by a crash, or put there by a process that knows the name, and is
    // never written through.
    let opened = match open() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let _ = std::fs::remove_file(aside);
            open()
        }
        opened => opened,
    };
    let written = opened
        .and_then(|mut file| std::io::Write::write_all(&mut file, content))
        .map_err(io_error("write", path));
    let written = written.and_then(|()| finish(aside));
    let written = written.and_then(|()| std::fs::rename(aside, path).map_err(io_error("write", path)));
    written.inspect_err(|_| drop(std::fs::remove_file(aside)))
}

/// Reads a plain file of at most `limit` bytes, below a folder that the caller vouches for. A command may
/// have put anything in its place: no link is followed, no fifo waited for, no device read. Those are
/// errors, and so is a longer file.
pub(crate) fn read_plain(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    Ok(beneath::read_plain(path, limit)?)
}

/// True for what belongs to another account than this process's, and is that one's to write. To root nothing is.
pub(crate) fn is_of_another_account(path: &Path) -> bool {
    !geteuid().is_root() && is_made_by_another(path)
}

/// True for what belongs to another account than this process's, also where that is root.
pub(crate) fn is_made_by_another(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.uid() != geteuid().as_raw())
}

/// True for a plain file, which may be read without waiting.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_file())
}

/// Fails where a folder is not there, as one on a disk that was taken away meanwhile: what is made below it would be hidden
/// once it is back.
pub(crate) fn is_there(folder: &Path) -> Result<(), StoreError> {
    folder.metadata().map(drop).map_err(io_error("find", folder))
}

/// Syncs a file, or a folder: what was renamed into it survives power loss.
pub(crate) fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|f| f.sync_all()).map_err(io_error("sync", path))
}

/// Syncs everything on the file system that a path is on.
pub(crate) fn sync_file_system(path: &Path) -> Result<(), StoreError> {
    let file = File::open(path).map_err(io_error("open", path))?;
    #[cfg(target_os = "linux")]
    {
        nix::unistd::syncfs(&file).map_err(|errno| io_error("sync", path)(errno.into()))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        nix::unistd::sync();
        Ok(())
    }
}

/// Room below which a failure that names no reason is taken for a full disk, in bytes.
const LOW: u64 = 1 << 20;

/// True where a file system says that no program may be started from this place. False where the file system
/// can't be asked, and where the system does not tell (macOS).
pub(crate) fn forbids_programs(place: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::statvfs::{FsFlags, statvfs};
        statvfs(place).is_ok_and(|stat| stat.flags().contains(FsFlags::ST_NOEXEC))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = place;
        false
    }
}

/// Turns a failure that a program or a library reported as text into the error of a full disk, where the
/// place has no room left or the text has the system's own words for that; else `None`. Only the report and
/// its exit code depend on this, no verdict.
pub(crate) fn full(what: &'static str, place: &Path, message: &str) -> Option<StoreError> {
    #[allow(clippy::useless_conversion, reason = "these are 32 bits wide on macOS")]
    let low = nix::sys::statvfs::statvfs(place).is_ok_and(|disk| {
        let size = u64::from(disk.fragment_size());
        let room = u64::from(disk.blocks_available()).saturating_mul(size);
        room < LOW || (disk.files() > 0 && disk.files_available() == 0)
    });
    let said =
        ["No space left on device", "Disk quota exceeded", "StorageFull"].iter().any(|w| message.contains(w));
    (low || said).then(|| {
        // A library's text may be a dump of the system's error for programmers: the words alone are shown.
        let words = match message.contains("Disk quota exceeded") {
            true => "Disk quota exceeded",
            false => "No space left on device",
        };
        let why = if said { String::new() } else { format!(" ({message})") };
        let source = std::io::Error::new(ErrorKind::StorageFull, format!("{words}{why}"));
        StoreError::Io { what, path: place.to_owned(), source }
    })
}

/// Removes a file or a folder with everything in it, folders without write permission included.
pub(crate) fn remove_tree(path: &Path) -> std::io::Result<()> {
    let Ok(meta) = path.symlink_metadata() else { return Ok(()) };
    if !meta.is_dir() {
        return std::fs::remove_file(path);
    }
    if std::fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    // To remove what is in a folder takes rights on that folder alone.
    open_up(AT_FDCWD, path, 0, DEEP);
    std::fs::remove_dir_all(path)
}

/// Gives the owner access to `path` and to every folder and plain file below it, as far as possible.
pub(crate) fn make_readable(path: &Path) {
    open_up(AT_FDCWD, path, 0o600, DEEP);
}

/// How many levels of folders [`open_up`] goes down: a command can nest them deeper than the stack and the descriptors
/// allow.
const DEEP: usize = 500;

/// Gives the owner the rights that a folder has to have on each folder from this one down, and these rights on each plain
/// file. A link is never followed, as whoever may write here could put one in the place of anything meanwhile.
fn open_up<N: NixPath + ?Sized>(at: impl AsFd, name: &N, of_files: mode_t, levels: usize) {
    let Ok(stat) = fstatat(&at, name, AtFlags::AT_SYMLINK_NOFOLLOW) else { return };
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    let rights = match kind {
        SFlag::S_IFDIR => 0o700,
        SFlag::S_IFREG => of_files,
        _ => return,
    };
    let mode = stat.st_mode & 0o7777;
    // A mode that gives these rights is not set again, so that the times of a file tell that it was not changed.
    if mode & rights != rights {
        let mode = Mode::from_bits_truncate(mode | rights);
        // A C library before glibc 2.32 can't do that: there the look above has to be enough.
        let set = fchmodat(&at, name, mode, FchmodatFlags::NoFollowSymlink);
        if set == Err(Errno::EOPNOTSUPP) {
            let _ = fchmodat(&at, name, mode, FchmodatFlags::FollowSymlink);
        }
    }
    if kind != SFlag::S_IFDIR || levels == 0 {
        return;
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let Ok(mut folder) = Dir::openat(&at, name, flags, Mode::empty()) else { return };
    let names: Vec<CString> = folder.iter().flatten().map(|entry| entry.file_name().to_owned()).collect();
    for name in names.iter().filter(|name| !matches!(name.to_bytes(), b"." | b"..")) {
        open_up(&folder, &**name, of_files, levels - 1);
    }
}

/// How many bytes are put into a file's name as they are: a name has at most 255
/// bytes, and each byte takes two.
const NAMED_MAX: usize = 100;

/// Returns the name of a file that stands for these bytes and for no others, however many there are: an
/// attacker may choose them.
pub(crate) fn name_for(bytes: &[u8]) -> String {
    let (begin, rest) = bytes.split_at(bytes.len().min(NAMED_MAX));
    match rest.is_empty() {
        true => hex(begin),
        false => format!("{}-{}", hex(begin), hex(&Sha256::digest(rest)[..16])),
    }
}

/// Syncs the tables of a reftable repository and their folder. Git syncs each table before it has written the
/// end of it, so that a power loss would leave tables that Git can't read.
pub(crate) fn sync_tables(common_dir: &Path) -> Result<(), StoreError> {
    let folder = common_dir.join("reftable");
    for entry in std::fs::read_dir(&folder).map_err(io_error("list", &folder))?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "ref") {
            match sync(&path) {
                // Another process has merged the table into another one.
                Err(_) if !path.exists() => {}
                synced => synced?,
            }
        }
    }
    sync(&folder)
}

/// Returns the place that a path leads to, or will once its missing folders are made. `None` where it leads nowhere:
/// through a link to what does not exist, or back with `..` from what does not.
pub(super) fn place_of(path: &Path) -> Option<PathBuf> {
    let (above, place) = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)))?;
    let missing = path.strip_prefix(above).ok()?;
    let mut parts = missing.components();
    let is_link = parts.clone().next().is_some_and(|first| above.join(first).symlink_metadata().is_ok());
    let leads_on = !is_link && parts.all(|part| matches!(part, Component::Normal(_)));
    leads_on.then(|| place.join(missing))
}

fn is_dir_or_gone(path: &Path) -> bool {
    path.is_dir() || path.symlink_metadata().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_those_git_would_give() {
        assert_eq!(Shared::from_config(Some(b"group")).mode(0o644, false), 0o664);
        assert_eq!(Shared::from_config(Some(b"group")).mode(0o444, false), 0o444);
        assert_eq!(Shared::from_config(Some(b"group")).mode(0o700, true), 0o2770);
        assert_eq!(Shared::from_config(Some(b"all")).mode(0o640, false), 0o664);
        assert_eq!(Shared::from_config(Some(b"0600")).mode(0o644, false), 0o600);
        assert_eq!(Shared::from_config(Some(b"0640")).mode(0o755, true), 0o2750);
        assert_eq!(Shared::from_config(None).mode(0o644, false), 0o644);
    }
}

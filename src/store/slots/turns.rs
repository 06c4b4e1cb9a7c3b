//! Whose turn it is where all slots are taken: that of the process that has waited longest.
//!
//! A process that waits has a ticket: a file that says since when and for how many slots it waits, locked
//! while its process lives, and touched each time it looks for a slot. No process takes a slot that an older
//! ticket waits for, so no process is overtaken for ever. A ticket that was not touched for a while belongs
//! to a stopped process, and does not count. Implements K14.

use super::Pool;
use crate::store::{StoreError, io_error};
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// A process that has not touched its ticket for this long does not count as waiting.
const STOPPED: Duration = Duration::from_secs(5);
/// Least time between two touches of a ticket.
const TOUCH: Duration = Duration::from_secs(1);

/// A place in the line for a slot; the place is given up when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    path: PathBuf,
    file: Flock<File>,
    touched: std::cell::Cell<SystemTime>,
}

impl Ticket {
    /// Notes that the ticket's holder still waits.
    pub(crate) fn touch(&self) {
        let now = SystemTime::now();
        if now.duration_since(self.touched.get()).map_or(true, |since| since >= TOUCH) {
            let _ = self.file.set_modified(now);
            self.touched.set(now);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Pool<'_> {
    fn tickets(&self) -> PathBuf {
        self.repo.aynig_dir().join("turns")
    }

    /// Gets in line: makes a ticket that counts from now.
    pub(crate) fn wait_in_line(&self) -> Result<Ticket, StoreError> {
        static NTH: AtomicU32 = AtomicU32::new(0);
        let folder = self.tickets();
        self.repo.make(&folder)?;
        let now = SystemTime::now();
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let unique = format!("{}-{}", nix::unistd::getpid(), NTH.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(format!("{since:024}.{}.{unique}", self.size));
        // The ticket gets its name only once it is locked, as an unlocked ticket counts as a dead process's.
        let aside = folder.join(format!(".{unique}"));
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
        let file = options.open(&aside).map_err(io_error("open", &aside))?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, errno)| io_error("lock", &aside)(errno.into()))?;
        self.repo.share(&aside);
        std::fs::rename(&aside, &path).map_err(io_error("write", &path))?;
        Ok(Ticket { path, file, touched: now.into() })
    }

    /// Returns the number of the first slot that the holder of `own` may take, or a process without a ticket:
    /// processes that have waited longer wait for the slots below it.
    pub(crate) fn first_of_turn(&self, own: Option<&Ticket>) -> usize {
        let Ok(entries) = std::fs::read_dir(self.tickets()) else { return 0 };
        let own = own.and_then(|ticket| ticket.path.file_name()).map(OsStr::to_owned);
        let mut first = 0;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(size) = name.to_str().and_then(|n| n.split('.').nth(1)?.parse::<usize>().ok()) else {
                continue;
            };
            let older = own.as_ref().is_none_or(|own| name < *own);
            if size > first && older && self.waits(&entry) {
                first = size;
            }
        }
        first
    }

    /// True while a ticket's process lives and still looks for a slot. The ticket of a dead process is
    /// removed.
    fn waits(&self, entry: &std::fs::DirEntry) -> bool {
        let touched = entry.metadata().and_then(|m| m.modified());
        if touched.is_ok_and(|at| at.elapsed().is_ok_and(|since| since > STOPPED)) {
            return false;
        }
        let path = entry.path();
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let Ok(file) = File::options().write(true).custom_flags(flags).open(&path) else { return false };
        let lives = Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err();
        if !lives {
            let _ = std::fs::remove_file(&path);
        }
        lives
    }
}

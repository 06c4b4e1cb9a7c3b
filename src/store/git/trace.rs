//! What a `git` child did, by its event trace (`trace2`), where its exit status does not tell, and its words can't be
//! trusted: they name files, which may be called anything, and filters write among them.

use serde::Deserialize;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A place for the event trace of one child. It is in memory: a full disk would take no trace, and what a filter
/// leaves running may write to it for longer than it is read.
pub(super) struct EventTrace {
    /// Begins the session ids of the child; what the child starts itself has longer ones.
    session: String,
    /// `None` where the system shows no memory as a file: then it is a file among the temporary ones.
    memory: Option<OwnedFd>,
    path: PathBuf,
}

/// A line of the trace.
#[derive(Deserialize)]
struct Event {
    sid: String,
    /// The format of an error, without what is filled in.
    fmt: Option<String>,
}

impl EventTrace {
    pub(super) fn new() -> Self {
        let session = uuid::Uuid::new_v4().to_string();
        let shown = |memory: OwnedFd| {
            let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd()));
            path.exists().then_some((memory, path))
        };
        match memory().and_then(shown) {
            Some((memory, path)) => Self { session, memory: Some(memory), path },
            None => {
                let path = std::env::temp_dir().join(format!("aynig-trace-{session}"));
                Self { session, memory: None, path }
            }
        }
    }

    /// Returns the variables that have a child write this trace.
    pub(super) fn variables(&self) -> [(&'static str, &Path); 2] {
        [("GIT_TRACE2_EVENT", &self.path), ("GIT_TRACE2_PARENT_SID", Path::new(&self.session))]
    }

    /// True where the child itself reported an error whose format starts with one of these.
    pub(super) fn has_error(&self, starts: &[&str]) -> bool {
        let written = std::fs::read(&self.path).unwrap_or_default();
        let mut lines = written.split(|b| *b == b'\n').map(String::from_utf8_lossy);
        lines.any(|line| {
            let Ok(Event { sid, fmt: Some(fmt) }) = serde_json::from_str(&line) else { return false };
            let own = sid.strip_prefix(&self.session).and_then(|rest| rest.strip_prefix('/'));
            own.is_some_and(|own| !own.contains('/')) && starts.iter().any(|start| fmt.starts_with(start))
        })
    }
}

impl Drop for EventTrace {
    fn drop(&mut self) {
        if self.memory.is_none() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(target_os = "linux")]
fn memory() -> Option<OwnedFd> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    memfd_create("aynig-trace", MFdFlags::MFD_CLOEXEC).ok()
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<OwnedFd> {
    None
}

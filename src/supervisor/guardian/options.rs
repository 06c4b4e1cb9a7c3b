//! The guardian's command line: written by the caller, read by the guardian, in one place.
//!
//! It is one argument of JSON, then the command and its arguments as they are, so that only an argument that
//! is too long by itself is too long for the system. Paths need not be valid UTF-8.
//! `Options::from_args(Options::to_args(x)) == x`. Implements K17.

use super::super::confine::Confinement;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first argument that makes the binary a guardian.
pub const ROLE: &str = "guardian";

/// What a guardian is told about its run, as [`crate::supervisor::Spec`] has it. The command's environment is
/// the guardian's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Options {
    #[serde(skip)]
    pub argv: Vec<OsString>,
    pub cwd: Place,
    pub stdin: Option<Place>,
    pub stdout_log: Place,
    pub stderr_log: Place,
    pub log_max: u64,
    pub timeout: Option<Duration>,
    pub kill_grace: Duration,
    pub watch: Vec<u8>,
    pub line_max: usize,
    pub tee: bool,
    /// True if the guardian's stderr is the run's hold.
    pub hold: bool,
    /// What the command is confined to; `None`: it is not confined.
    pub confine: Option<Confinement>,
}

/// A path in JSON, as text if it is valid UTF-8, so that `ps` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Place {
    Text(PathBuf),
    Bytes(Vec<u8>),
}

impl Place {
    pub fn path(&self) -> &Path {
        match self {
            Self::Text(path) => path,
            Self::Bytes(bytes) => Path::new(OsStr::from_bytes(bytes)),
        }
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        match path.to_str() {
            Some(_) => Self::Text(path),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }
}

impl Options {
    /// Returns the arguments after [`ROLE`].
    pub fn to_args(&self) -> Vec<OsString> {
        let options = serde_json::to_string(self).unwrap_or_default();
        [&[options.into()], &*self.argv].concat()
    }

    /// Reads what [`Options::to_args`] wrote; the error is the argument that could not be read.
    pub fn from_args(mut args: impl Iterator<Item = OsString>) -> Result<Self, OsString> {
        let first = args.next().unwrap_or_default();
        let options = serde_json::from_slice(first.as_bytes());
        let Ok(options) = options else { return Err(first) };
        let argv: Vec<OsString> = args.collect();
        if argv.is_empty() { Err(OsString::new()) } else { Ok(Self { argv, ..options }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn options_survive_the_command_line() {
        let odd = OsString::from_vec(vec![b'/', 0xff, b' ']);
        let full = Options {
            argv: vec!["--tee".into(), "--".into(), odd.clone()],
            cwd: PathBuf::from("/a \"b\n").into(),
            stdin: Some(PathBuf::from("/i").into()),
            stdout_log: PathBuf::from(odd).into(),
            stderr_log: PathBuf::from("/e").into(),
            log_max: u64::MAX,
            timeout: Some(Duration::from_millis(1)),
            kill_grace: Duration::from_secs(10),
            watch: b"SET_STATE \xff".to_vec(),
            line_max: 16 << 20,
            tee: true,
            hold: true,
            confine: Some(Confinement::write(vec!["/a".into()]).strict(vec!["/b".into()], vec![80])),
        };
        let plain = Options {
            argv: vec!["x".into()],
            stdin: None,
            timeout: None,
            hold: false,
            tee: false,
            confine: None,
            ..full.clone()
        };
        for options in [full, plain] {
            assert_eq!(Options::from_args(options.to_args().into_iter()), Ok(options));
        }
    }

    #[test]
    fn unreadable_arguments_are_named() {
        let parse = |args: &[&str]| Options::from_args(args.iter().map(OsString::from));
        assert_eq!(parse(&["--nope", "x"]), Err("--nope".into()));
        assert_eq!(parse(&["{}", "x"]), Err("{}".into()));
        assert_eq!(parse(&[]), Err("".into()));
        let options = Options { argv: vec!["x".into()], ..any() };
        let [first, _] = &options.to_args()[..] else { panic!("one option, one argument") };
        assert_eq!(parse(&[first.to_str().unwrap()]), Err("".into()));
    }

    fn any() -> Options {
        let place = || Place::from(PathBuf::from("/"));
        Options {
            argv: Vec::new(),
            cwd: place(),
            stdin: None,
            stdout_log: place(),
            stderr_log: place(),
            log_max: 1,
            timeout: None,
            kill_grace: Duration::ZERO,
            watch: Vec::new(),
            line_max: 1,
            tee: false,
            hold: false,
            confine: None,
        }
    }
}

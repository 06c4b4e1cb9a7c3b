//! The guardian's command line: written by the caller, read by the guardian, in one place.
//!
//! Plain flags, each with one value, then `--` and the command. Values are bytes (paths and patterns need
//! not be text). Hand-made, because a guardian must cost no more than a process start.
//! `Options::from_args(Options::to_args(x)) == x`. Implements K17.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// The first argument that makes the binary a guardian.
pub const ROLE: &str = "guardian";

/// What a guardian is told about its run. The command's environment is the guardian's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Options {
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    pub stdin: Option<PathBuf>,
    pub stdout_log: PathBuf,
    pub stderr_log: PathBuf,
    pub log_max: u64,
    pub timeout: Option<Duration>,
    pub kill_grace: Duration,
    pub watch: Vec<u8>,
    pub line_max: usize,
    pub tee: bool,
    /// Its stderr is the run's hold.
    pub hold: bool,
}

impl Options {
    /// The arguments after [`ROLE`].
    pub fn to_args(&self) -> Vec<OsString> {
        let number = |n: u128| OsString::from(n.to_string());
        let mut args: Vec<OsString> = Vec::with_capacity(22 + self.argv.len());
        let mut flag = |name: &str, value: OsString| args.extend([name.into(), value]);
        flag("--cwd", self.cwd.clone().into());
        flag("--stdout-log", self.stdout_log.clone().into());
        flag("--stderr-log", self.stderr_log.clone().into());
        flag("--log-max", number(self.log_max.into()));
        flag("--kill-grace-ms", number(self.kill_grace.as_millis()));
        flag("--watch", OsString::from_vec(self.watch.clone()));
        flag("--line-max", number(self.line_max as u128));
        if let Some(timeout) = self.timeout {
            flag("--timeout-ms", number(timeout.as_millis()));
        }
        if let Some(stdin) = &self.stdin {
            flag("--stdin", stdin.clone().into());
        }
        let set = [("--hold", self.hold), ("--tee", self.tee)].into_iter().filter(|(_, set)| *set);
        args.extend(set.map(|(name, _)| name.into()));
        args.push("--".into());
        args.extend(self.argv.iter().cloned());
        args
    }

    /// Reads what [`Options::to_args`] wrote; otherwise the argument that it could not read.
    pub fn from_args(mut args: impl Iterator<Item = OsString>) -> Result<Self, OsString> {
        let mut options = Self::default();
        loop {
            let flag = args.next().ok_or_else(|| OsString::from("--"))?;
            match flag.as_bytes() {
                b"--" => break,
                b"--hold" => options.hold = true,
                b"--tee" => options.tee = true,
                _ => {
                    let value = args.next().ok_or_else(|| flag.clone())?;
                    options.set(&flag, value).ok_or(flag)?;
                }
            }
        }
        options.argv = args.collect();
        if options.argv.is_empty() { Err("--".into()) } else { Ok(options) }
    }

    fn set(&mut self, flag: &OsStr, value: OsString) -> Option<()> {
        let number = |value: &OsStr| value.to_str()?.parse::<u64>().ok();
        match flag.as_bytes() {
            b"--cwd" => self.cwd = value.into(),
            b"--stdin" => self.stdin = Some(value.into()),
            b"--stdout-log" => self.stdout_log = value.into(),
            b"--stderr-log" => self.stderr_log = value.into(),
            b"--log-max" => self.log_max = number(&value)?,
            b"--kill-grace-ms" => self.kill_grace = Duration::from_millis(number(&value)?),
            b"--watch" => self.watch = value.into_vec(),
            b"--line-max" => self.line_max = number(&value)?.try_into().ok()?,
            b"--timeout-ms" => self.timeout = Some(Duration::from_millis(number(&value)?)),
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_the_command_line() {
        let full = Options {
            argv: vec!["--tee".into(), "--".into(), OsString::from_vec(vec![0xff, b' '])],
            cwd: "/a b".into(),
            stdin: Some("/i".into()),
            stdout_log: "/o".into(),
            stderr_log: "/e".into(),
            log_max: u64::MAX,
            timeout: Some(Duration::from_millis(1)),
            kill_grace: Duration::from_secs(10),
            watch: b"SET_STATE ".to_vec(),
            line_max: 16 << 20,
            tee: true,
            hold: true,
        };
        let plain = Options {
            argv: vec!["x".into()],
            stdin: None,
            timeout: None,
            hold: false,
            tee: false,
            ..full.clone()
        };
        for options in [full, plain] {
            assert_eq!(Options::from_args(options.to_args().into_iter()), Ok(options));
        }
    }

    #[test]
    fn unreadable_arguments_are_named() {
        let parse = |args: &[&str]| Options::from_args(args.iter().map(OsString::from));
        assert_eq!(parse(&["--nope", "1", "--", "x"]), Err("--nope".into()));
        assert_eq!(parse(&["--log-max", "many", "--", "x"]), Err("--log-max".into()));
        assert_eq!(parse(&["--tee"]), Err("--".into()));
        assert_eq!(parse(&["--tee", "--"]), Err("--".into()));
    }
}

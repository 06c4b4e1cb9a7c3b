//! Tells whether a signature can be judged: whether this machine has the program that verifies
//! it, and the file of signers.
//!
//! Git says the same of a bad signature and of one that it has no means to look at. A commit that can't be
//! judged yet is not refused but held. Implements K49a (what is held).

use super::calls::RepoGit;
use super::confined::of_signatures;
use crate::protocol::id::ObjectId;
use crate::protocol::text::escape;
use crate::store::StoreError;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The kinds of signatures that Git knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    OpenPgp,
    X509,
    Ssh,
}

impl Format {
    /// Returns the kind of a commit's signature by its first line, as Git does; `None`
    /// where Git knows no such kind.
    fn of(commit: &[u8], header: &str) -> Option<Self> {
        let headers = commit.split(|b| *b == b'\n').take_while(|line| !line.is_empty());
        let signature = headers.filter_map(|line| line.strip_prefix(header.as_bytes())).next()?;
        Some(match signature.strip_prefix(b" ")? {
            b"-----BEGIN PGP SIGNATURE-----" | b"-----BEGIN PGP MESSAGE-----" => Format::OpenPgp,
            b"-----BEGIN SIGNED MESSAGE-----" => Format::X509,
            b"-----BEGIN SSH SIGNATURE-----" => Format::Ssh,
            _ => return None,
        })
    }

    /// Returns the keys that name its program, the one that counts first, and the program that
    /// is meant where none is set.
    fn program(self) -> (&'static [&'static str], &'static str) {
        match self {
            Format::OpenPgp => (&["gpg.openpgp.program", "gpg.program"], "gpg"),
            Format::X509 => (&["gpg.x509.program"], "gpgsm"),
            Format::Ssh => (&["gpg.ssh.program"], "ssh-keygen"),
        }
    }
}

impl RepoGit {
    /// Returns what this machine lacks to judge a commit's signature. `None` where it lacks nothing, and for
    /// a commit without a signature that Git knows, which can be judged.
    pub(crate) fn missing_judge(&self, id: ObjectId) -> Result<Option<String>, StoreError> {
        let id = id.to_string();
        let header = if id.len() == 40 { "gpgsig" } else { "gpgsig-sha256" };
        let commit = self.here().verb("cat-file").args(["commit", &id]).ok()?;
        let Some(format) = Format::of(&commit, header) else { return Ok(None) };
        let (keys, usual) = format.program();
        let named = keys.iter().map(|key| self.said_of_signatures(key)).collect::<Result<Vec<_>, _>>()?;
        let program = named.into_iter().flatten().next().unwrap_or_else(|| usual.into());
        if which::which_in(&program, self.git().path(), "/").is_err() {
            return Ok(Some(format!("'{}' is not here", escape(program.as_bytes()))));
        }
        if format != Format::Ssh {
            return Ok(None);
        }
        let key = "gpg.ssh.allowedSignersFile";
        Ok(match self.said_of_signatures(key)? {
            None => Some(format!("'{key}' is not set")),
            Some(file) => {
                let unread = File::open(&file).err();
                unread.map(|error| format!("'{}' cannot be read: {error}", escape(file.as_bytes())))
            }
        })
    }

    /// Returns the value of a key that Git goes by when it judges signatures; `None`
    /// where the key is not set.
    fn said_of_signatures(&self, key: &str) -> Result<Option<OsString>, StoreError> {
        let command = self.here().settings(of_signatures(&self.git, &self.common_dir)?);
        let output = command.verb("config").args(["--type=path", "-z", "--get", key]).output()?;
        // Exit status 1: the key is not set.
        match output.status.code() {
            Some(0) => {
                let value = output.stdout.strip_suffix(b"\0").unwrap_or(&output.stdout);
                Ok((!value.is_empty()).then(|| OsString::from_vec(value.to_vec())))
            }
            Some(1) => Ok(None),
            Some(_) | None => Err(StoreError::Git { verb: "config".into(), message: output.message }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K49a: only one of the headers counts, and only with a first line that Git knows.
    #[test]
    fn the_kind_of_a_signature_is_its_first_line() {
        let of = |commit: &[u8]| Format::of(commit, "gpgsig");
        let ssh = b"tree x\ngpgsig -----BEGIN SSH SIGNATURE-----\n x\n\ntext\n";
        assert_eq!(of(ssh), Some(Format::Ssh));
        assert_eq!(of(b"tree x\ngpgsig -----BEGIN PGP SIGNATURE-----\n\n"), Some(Format::OpenPgp));
        assert_eq!(of(b"tree x\ngpgsig-sha256 -----BEGIN SSH SIGNATURE-----\n\n"), None);
        assert_eq!(of(b"tree x\n\ngpgsig -----BEGIN SSH SIGNATURE-----\n"), None);
        assert_eq!(of(b"tree x\ngpgsig nonsense\n\n"), None);
    }
}

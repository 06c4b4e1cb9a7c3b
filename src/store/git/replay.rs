//! Copies commits on top of another one, which makes a linear history without a working tree.
//!
//! Each copy is a merge of the commit's own change, as `git cherry-pick` does it. Author, date and message
//! stay byte for byte; the committer is the one who copies. Implements K60 (linear).

use super::calls::RepoGit;
use super::confined::of_signatures;
use crate::protocol::id::ObjectId;
use crate::store::commit::person;
use crate::store::{Signature, StoreError};
use std::collections::HashMap;

impl RepoGit {
    /// Returns the commits that `head` has and `base` has not, each with its parents.
    pub(crate) fn commits_beyond(
        &self,
        base: ObjectId,
        head: ObjectId,
    ) -> Result<HashMap<ObjectId, Vec<ObjectId>>, StoreError> {
        let range = [head.to_string(), format!("^{base}")];
        let listed = self.here().verb("rev-list").args(["--parents"]).args(range).ok()?;
        let broken = || StoreError::Git { verb: "rev-list".into(), message: "it printed no ids".into() };
        let mut commits = HashMap::new();
        for line in listed.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            let mut ids = line.split(|b| *b == b' ').map(|id| ObjectId::from_hex(id).map_err(|_| broken()));
            let commit = ids.next().ok_or_else(broken)??;
            commits.insert(commit, ids.collect::<Result<_, _>>()?);
        }
        Ok(commits)
    }

    /// Writes a copy of a commit with this tree and parent, signed where that is wanted, and with `message`
    /// in place of its own where one is given.
    pub(crate) fn copy_commit(
        &self,
        commit: ObjectId,
        (tree, parent): (ObjectId, ObjectId),
        message: Option<Vec<u8>>,
        by: &Signature,
        signed: bool,
    ) -> Result<ObjectId, StoreError> {
        let original = self.original(commit)?;
        // A given message is UTF-8; the header is about the commit's own message.
        let encoding = original.header(b"encoding ").filter(|_| message.is_none());
        let message = message.unwrap_or_else(|| original.message().to_vec());
        match signed {
            true => self.write_signed(&original, (tree, parent), message, encoding, by),
            false => self.write_copy(&original, (tree, parent), &message, encoding, by),
        }
    }

    fn write_copy(
        &self,
        original: &Original,
        (tree, parent): (ObjectId, ObjectId),
        message: &[u8],
        encoding: Option<Vec<u8>>,
        by: &Signature,
    ) -> Result<ObjectId, StoreError> {
        let author =
            original.header(b"author ").unwrap_or_else(|| format!("author {}", person(by)).into_bytes());
        let mut copy = format!("tree {tree}\nparent {parent}\n").into_bytes();
        let lines = [Some(author), Some(format!("committer {}", person(by)).into_bytes()), encoding];
        copy.extend(lines.into_iter().flatten().flat_map(|line| [&line[..], b"\n"].concat()));
        copy.push(b'\n');
        copy.extend(message);
        let command = self.here().durable(self.durable).verb("hash-object");
        command.args(["-t", "commit", "-w", "--stdin"]).stdin(copy).id()
    }

    /// Writes a copy that has the committer's signature. Only Git signs, so that Git writes the copy, and
    /// cleans the author's name in its own way.
    fn write_signed(
        &self,
        original: &Original,
        (tree, parent): (ObjectId, ObjectId),
        message: Vec<u8>,
        encoding: Option<Vec<u8>>,
        by: &Signature,
    ) -> Result<ObjectId, StoreError> {
        let command = self.here().settings(of_signatures(&self.git, &self.common_dir)?);
        let mut command = command.durable(self.durable).identity(by);
        if let Some((name, mail, date)) = original.author() {
            command = command.author(name, mail, date);
        }
        if let Some(encoding) = encoding {
            let name = String::from_utf8_lossy(&encoding[b"encoding ".len()..]).into_owned();
            command = command.config(&format!("i18n.commitEncoding={name}"));
        }
        let args = ["-S", &tree.to_string(), "-p", &parent.to_string(), "-F", "-"].map(str::to_owned);
        command.verb("commit-tree").args(args).stdin(message).id()
    }

    /// True where two commits have the same author and author date. Characters that Git may clean from
    /// a name are not looked at.
    pub(crate) fn have_one_author(&self, one: ObjectId, other: ObjectId) -> Result<bool, StoreError> {
        let author = |commit| -> Result<Vec<u8>, StoreError> {
            let line = self.original(commit)?.header(b"author ").unwrap_or_default();
            Ok(line.into_iter().filter(|b| b.is_ascii_alphanumeric() || *b >= 0x80).collect())
        };
        Ok(author(one)? == author(other)?)
    }

    fn original(&self, commit: ObjectId) -> Result<Original, StoreError> {
        let raw = self.here().verb("cat-file").args(["commit", &commit.to_string()]).ok()?;
        let end = raw.windows(2).position(|two| two == b"\n\n").unwrap_or(raw.len());
        Ok(Original { raw, end })
    }
}

/// A commit as it is stored.
struct Original {
    raw: Vec<u8>,
    /// The offset at which its headers end.
    end: usize,
}

impl Original {
    fn header(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut lines = self.raw[..self.end].split(|b| *b == b'\n').filter(|line| line.starts_with(key));
        lines.next().map(<[u8]>::to_vec)
    }

    fn message(&self) -> &[u8] {
        self.raw.get(self.end + 2..).unwrap_or_default()
    }

    /// Returns the author's name and address, and the date in a form that Git reads.
    fn author(&self) -> Option<(Vec<u8>, Vec<u8>, Vec<u8>)> {
        let line = self.header(b"author ")?;
        let line = line.strip_prefix(b"author ")?;
        let (open, close) = (line.iter().position(|b| *b == b'<')?, line.iter().rposition(|b| *b == b'>')?);
        let (name, mail) = (line[..open].trim_ascii(), line.get(open + 1..close)?);
        Some((name.to_vec(), mail.to_vec(), [b"@", line[close + 1..].trim_ascii()].concat()))
    }
}

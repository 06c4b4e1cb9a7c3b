//! The oracle: many messages into one bare repository, and what `git log` shows of them.
//!
//! Every git runs with a cleared environment and the pinned configuration. The commits are one chain
//! whose committer dates are their numbers, so one `git log` shows them all and says which is which.

use std::fmt;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A git executable and its version.
pub struct Git {
    path: PathBuf,
    version: String,
}

impl fmt::Display for Git {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git {} ({})", self.version, self.path.display())
    }
}

/// What `git log` shows of one message.
pub struct Shown {
    /// `%s`
    pub subject: Vec<u8>,
    /// `%(trailers:only,unfold)`
    pub trailers: Vec<u8>,
    /// `%b`
    pub body: Vec<u8>,
    /// `%(trailers)`: the raw block
    pub block: Vec<u8>,
}

impl Shown {
    pub fn of(subject: &[u8], trailers: &[u8], body: &[u8]) -> Shown {
        Shown { subject: subject.into(), trailers: trailers.into(), body: body.into(), block: vec![] }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "subject \"{}\" trailers \"{}\" body \"{}\" block \"{}\"",
            self.subject.escape_ascii(),
            self.trailers.escape_ascii(),
            self.body.escape_ascii(),
            self.block.escape_ascii()
        )
    }
}

/// The distinct gits of this machine, newest first.
pub fn gits() -> Vec<Git> {
    let mut gits: Vec<Git> = Vec::new();
    for path in ["git", "/usr/bin/git"].iter().filter_map(|name| which::which(name).ok()) {
        let out = Command::new(&path).arg("version").output().expect("git runs");
        let version = String::from_utf8_lossy(&out.stdout).trim().replace("git version ", "");
        if gits.iter().all(|git| git.version != version) {
            gits.push(Git { path, version });
        }
    }
    assert!(!gits.is_empty(), "no git on PATH");
    let number = |git: &Git| -> Vec<u32> {
        git.version.split([' ', '.', '-']).map_while(|n| n.parse().ok()).collect()
    };
    gits.sort_by_key(|git| std::cmp::Reverse(number(git)));
    gits
}

impl Git {
    fn command(&self, home: &Path) -> Command {
        let mut git = Command::new(&self.path);
        git.env_clear().env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_DIR", home.join("m.git"));
        git.env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(home);
        git.args(["-c", "trailer.separators=:", "-c", "core.commentChar=#", "-c", "i18n.logOutputEncoding="]);
        git
    }

    /// What this git shows of each message, a batch at a time, with the number of its first one.
    pub fn show<'a>(
        &'a self,
        messages: &'a [Vec<u8>],
        batch: usize,
    ) -> impl Iterator<Item = (usize, Vec<Shown>)> + 'a {
        let numbered = messages.chunks(batch).enumerate();
        numbered.map(move |(n, messages)| (n * batch, self.show_batch(messages)))
    }

    fn show_batch(&self, messages: &[Vec<u8>]) -> Vec<Shown> {
        let home = tempfile::tempdir().expect("a temporary folder");
        let init = self.command(home.path()).args(["init", "-q", "--bare"]).status().expect("git init");
        assert!(init.success());
        self.import(home.path(), messages);
        let format = "--format=tformat:%ct%x00%s%x00%(trailers:only,unfold)%x00%b%x00%(trailers)%x00";
        let log =
            self.command(home.path()).args(["log", "-z", format, "refs/heads/m"]).output().expect("git log");
        assert!(log.status.success(), "{}", String::from_utf8_lossy(&log.stderr));
        let mut fields = log.stdout.split(|b| *b == 0);
        let mut shown: Vec<Shown> = Vec::with_capacity(messages.len());
        for at in (0..messages.len()).rev() {
            let mut field = || fields.next().expect("six fields a commit").to_vec();
            assert_eq!(String::from_utf8(field()).unwrap(), (at + 1).to_string(), "the chain is in order");
            let (subject, trailers, body, block) = (field(), field(), field(), field());
            assert!(field().is_empty(), "tformat with -z ends each commit with one more NUL");
            shown.push(Shown { subject, trailers, body, block });
        }
        shown.reverse();
        shown
    }

    fn import(&self, home: &Path, messages: &[Vec<u8>]) {
        let mut import = self
            .command(home)
            .args(["fast-import", "--quiet", "--date-format=raw"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("git fast-import");
        let mut stdin = BufWriter::new(import.stdin.take().expect("stdin is piped"));
        for (at, message) in messages.iter().enumerate() {
            let head =
                format!("commit refs/heads/m\ncommitter A <a@b> {} +0000\ndata {}\n", at + 1, message.len());
            stdin.write_all(head.as_bytes()).expect("fast-import reads");
            stdin.write_all(message).expect("fast-import reads");
            stdin.write_all(b"\n").expect("fast-import reads");
        }
        drop(stdin);
        assert!(import.wait().expect("fast-import ends").success());
    }
}

fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/messages")
}

/// The messages that were once read otherwise than Git reads them.
pub fn corpus() -> Vec<Vec<u8>> {
    let mut files: Vec<_> = std::fs::read_dir(corpus_folder())
        .expect("tests/corpus/messages exists")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a readable file")).collect()
}

/// Saves a message for a later look; a fixed one belongs in the corpus.
pub fn save(raw: &[u8]) -> PathBuf {
    let sum =
        raw.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("message-{sum:016x}"));
    std::fs::write(&file, raw).expect("the target folder is writable");
    file
}

/// The message without the lines that are not needed for `differs`.
pub fn shrink(raw: &[u8], differs: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = raw.split_inclusive(|b| *b == b'\n').collect();
    let mut at = 0;
    while at < lines.len() && lines.len() < 200 {
        let mut fewer = lines.clone();
        fewer.remove(at);
        if differs(&fewer.concat()) {
            lines = fewer;
        } else {
            at += 1;
        }
    }
    lines.concat()
}

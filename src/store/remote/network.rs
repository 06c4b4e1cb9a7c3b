//! The network calls of remote mode, by the `git` binary: credentials, SSH and proxies are the user's own.
//!
//! Heads are fetched into a folder of our own refs, apart from those that the user's own fetches move, and
//! nothing else is written. A push names the old value; its porcelain line and its exit status are the answer
//! of one attempt. A failure without such an answer is named after its text, which a remote may choose: the
//! name is for people, and no decision depends on it, except that a remote which can't move several refs as
//! one is not tried again. Implements K12, K30.

use super::porcelain::{Word, word};
use super::shared;
use super::single_flight::{Flight, SingleFlight};
use crate::protocol::id::ObjectId;
use crate::store::git::calls::RepoGit;
use crate::store::git::children::{self, MayLock};
use crate::store::git::command::{GitCommand, GitOutput};
use crate::store::{Expected, RefChange, RefName, RemoteFailure, StoreError};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest time for a fetch: the first one of a large repository may need it.
const FETCH_MAX: Duration = Duration::from_secs(1800);

/// Pauses between the tries of a fetch that collided with another one.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400)];

/// Pause between later tries, while a lock exists that will soon be old enough to be removed.
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// How long in all a fetch is tried again.
const LONGEST: Duration = Duration::from_secs(15);

/// One remote of one repository.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub(crate) git: RepoGit,
    pub(crate) name: String,
    /// The folder to which relative addresses are relative.
    pub(crate) home: PathBuf,
    /// The remote's path, where its address is one. The process that receives a push then runs on this
    /// machine, started by the push itself. We must not end it, just as we can't end a server's: a signal
    /// after it has created its lock, and before it has noted that it did, leaves that lock behind.
    pub(crate) path: Option<PathBuf>,
}

/// What a fetch brings, and forgets where it is gone from the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heads {
    /// Every branch, and the pauses and flows that hold branches.
    All,
    /// Every branch, and every ref that all machines share.
    Everything,
    /// Some branches, and the pauses and flows that hold branches.
    Some,
    /// Some of the refs that all machines share.
    Shared,
}

/// The answer of a push about its refs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The remote said that all of them moved.
    Done,
    /// Git or the remote saw another value than the expected one.
    Stale,
    /// The remote received the push and refused it, for this reason. A lock, a full disk and a hook sound
    /// alike.
    Refused(String),
    /// The push failed, and gave none of these answers.
    Failed(RemoteFailure, String),
}

/// Returns the folder of refs that record what a remote's branches held when they were last fetched.
pub(crate) fn tracking(remote: &str) -> String {
    format!("refs/aynig/remote/{remote}/")
}

impl Remote {
    /// Returns the [`tracking`] folder of this remote.
    pub(crate) fn tracking(&self) -> String {
        tracking(&self.name)
    }

    /// Returns a `git` command for a network call, which syncs what it writes where durable. A power loss may
    /// undo a fetch, but must not leave half of it: a ref or an object that is empty would fail every later
    /// fetch.
    pub(crate) fn command(&self) -> GitCommand {
        self.git.here().durable(self.git.durable).foreground().in_dir(&self.home)
    }

    pub(crate) fn failed(&self, what: &'static str, output: &GitOutput) -> StoreError {
        let failure = if output.late { RemoteFailure::TooLate } else { colour(&output.said) };
        let message = match output.message.is_empty() {
            true => output.status.to_string(),
            false => output.message.clone(),
        };
        StoreError::Remote { remote: self.name.clone(), what, failure, message }
    }

    fn fetch(
        &self,
        refspecs: &[OsString],
        heads: Option<Heads>,
        forget: bool,
        patience: Option<Duration>,
    ) -> Result<(), StoreError> {
        let mut command = self.command().verb("fetch").args([
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            "--no-show-forced-updates",
            // Without this Git would move the user's own tracking refs too.
            "--refmap=",
        ]);
        if forget {
            // This prunes only below the refspecs. A branch that is named in full and is gone still fails the
            // fetch.
            command = command.args(["--prune"]);
        }
        // No work on these branches has begun that a stop could leave half done: the first signal ends the
        // fetch.
        command = command.only_asks(heads.is_some());
        let ours = MayLock::refs(&self.git.common_dir, [self.git.common_dir.join("refs/aynig")]);
        command = command.may_lock(ours);
        let command = command.args([OsStr::new("--end-of-options"), OsStr::new(&self.name)]);
        let output = command.args(refspecs).within(patience.unwrap_or(FETCH_MAX)).output()?;
        if !output.status.success() {
            let mut error = self.failed("fetch from", &output);
            if let StoreError::Remote { failure, .. } = &mut error
                && !output.late
            {
                // A failure of the connection or at the remote is fatal to Git (128). A failure to move our
                // own refs once everything has arrived is not (1).
                *failure = match output.status.code() {
                    Some(1) => RemoteFailure::Busy,
                    _ => *failure,
                };
            }
            return Err(error);
        }
        self.sync_tables()
    }

    fn sync_tables(&self) -> Result<(), StoreError> {
        let reftable = self.git.common_dir.join("reftable").is_dir();
        if self.git.durable && reftable { crate::store::sync_tables(&self.git.common_dir) } else { Ok(()) }
    }

    /// Fetches all branches, and forgets those that are gone. Of many processes that ask at once only a few
    /// fetch: a fetch that began after a process asked answers that process too.
    pub(crate) fn fetch_all(&self) -> Result<(), StoreError> {
        let specs: Vec<OsString> = std::iter::once(self.heads()).chain(self.holding()).collect();
        self.fetch_heads(&specs, Heads::All, true, None)
    }

    /// Fetches all branches and all shared refs, and forgets those that are gone.
    pub(crate) fn fetch_everything(&self) -> Result<(), StoreError> {
        let shared = shared::ALL.iter().map(|prefix| shared::refspec(self, prefix));
        let specs: Vec<OsString> = std::iter::once(self.heads()).chain(shared).collect();
        self.fetch_heads(&specs, Heads::Everything, true, None)
    }

    /// Returns the refspec that fetches all branches.
    fn heads(&self) -> OsString {
        format!("+refs/heads/*:{}*", self.tracking()).into()
    }

    /// Fetches the shared refs whose names begin with one of `prefixes`. With `forget`, those that are gone
    /// from the remote are forgotten; for that Git reads every local ref, which takes longer than all the
    /// rest where there are many.
    pub(crate) fn fetch_shared(
        &self,
        prefixes: &[&[u8]],
        forget: bool,
        patience: Option<Duration>,
    ) -> Result<(), StoreError> {
        let specs: Vec<OsString> = prefixes.iter().map(|prefix| shared::refspec(self, prefix)).collect();
        self.fetch_heads(&specs, Heads::Shared, forget, patience)
    }

    /// Fetches these branches, and the pauses and flows that hold branches; `forget` concerns the latter, as
    /// in [`Remote::fetch_shared`]. Fails where one of the branches is gone.
    pub(crate) fn fetch_some(&self, names: &[RefName], forget: bool) -> Result<(), StoreError> {
        let tracking = self.tracking();
        let spec = |name: &RefName| {
            OsString::from_vec([b"+", name.as_bytes(), b":", tracking.as_bytes(), name.short()].concat())
        };
        let specs: Vec<OsString> = names.iter().map(spec).chain(self.holding()).collect();
        self.fetch_heads(&specs, Heads::Some, forget, None)
    }

    /// Returns the refspecs that fetch what holds branches, as every fetch of branches does.
    fn holding(&self) -> impl Iterator<Item = OsString> + '_ {
        shared::HOLDING.iter().map(|prefix| shared::refspec(self, prefix))
    }

    fn fetch_heads(
        &self,
        specs: &[OsString],
        heads: Heads,
        forget: bool,
        patience: Option<Duration>,
    ) -> Result<(), StoreError> {
        let asked = SingleFlight::join(&self.git.common_dir, &self.name, self.git.git.shared);
        let (begun, mut pauses) = (Instant::now(), PAUSES.into_iter());
        loop {
            let fetch = || self.fetch(specs, Some(heads), forget, patience);
            let turn = || asked.wait(&|| self.git.git.stopped());
            let fetched = match heads {
                // Another process's fetch of branches is no answer: it brings other refs.
                Heads::Shared => fetch(),
                Heads::All | Heads::Everything => match turn() {
                    // The other process's fetch need not have brought more than the branches.
                    Flight::Answered if heads == Heads::Everything => fetch(),
                    Flight::Answered => return Ok(()),
                    Flight::Leads(mut lead) => {
                        lead.begin();
                        fetch().inspect(|()| lead.done())
                    }
                    Flight::Alone => fetch(),
                },
                Heads::Some => match turn() {
                    Flight::Answered => return Ok(()),
                    Flight::Leads(_lead) => fetch(),
                    Flight::Alone => fetch(),
                },
            };
            if !matches!(fetched, Err(StoreError::Remote { failure: RemoteFailure::Busy, .. })) {
                return fetched;
            }
            // Either a process without the lock fetches too, and Git fails one of the two, or a killed child
            // of ours left a lock, which can soon be removed.
            let swept = children::sweep(&self.git.common_dir, &Vec::new);
            match pauses.next() {
                Some(pause) => std::thread::sleep(pause),
                None if begun.elapsed() > LONGEST => return fetched,
                None if !swept.removed.is_empty() => {}
                None if !swept.young.is_empty() => std::thread::sleep(LAST_PAUSE),
                None => return fetched,
            }
        }
    }

    /// Fetches one ref's objects without writing a ref; within `patience` where a lease depends on it.
    pub(crate) fn fetch_objects(&self, name: &RefName, patience: Option<Duration>) -> Result<(), StoreError> {
        self.fetch(&[OsStr::from_bytes(name.as_bytes()).to_owned()], None, false, patience)
    }

    /// Fetches one ref into the local ref of the same name.
    pub(crate) fn fetch_same(&self, name: &RefName) -> Result<(), StoreError> {
        let spec = [b"+", name.as_bytes(), b":", name.as_bytes()].concat();
        self.fetch(&[OsString::from_vec(spec)], None, false, None)
    }

    /// Asks the remote what all branches hold now, before any work on one of them: the first signal ends the
    /// call.
    pub(crate) fn hear_all(&self) -> Result<HashMap<RefName, ObjectId>, StoreError> {
        self.list(self.command().only_asks(true).within(FETCH_MAX))
    }

    /// Asks the remote what all branches hold now.
    pub(crate) fn ask_all(&self, patience: Duration) -> Result<HashMap<RefName, ObjectId>, StoreError> {
        self.list(self.command().within(patience))
    }

    fn list(&self, command: GitCommand) -> Result<HashMap<RefName, ObjectId>, StoreError> {
        let args = ["--heads", "--end-of-options", &self.name];
        let output = command.verb("ls-remote").args(args).output()?;
        if !output.status.success() {
            return Err(self.failed("ask", &output));
        }
        let lines = output.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        let heads = lines.map(|line| {
            let tab = line.iter().position(|b| *b == b'\t')?;
            Some((RefName::new(&line[tab + 1..]), ObjectId::from_hex(&line[..tab]).ok()?))
        });
        heads.collect::<Option<_>>().ok_or_else(|| self.nonsense())
    }

    fn nonsense(&self) -> StoreError {
        StoreError::Remote {
            remote: self.name.clone(),
            what: "ask",
            failure: RemoteFailure::Other,
            message: "its answer is no object id".to_owned(),
        }
    }

    /// Asks the remote what a ref holds now; `None` where it does not exist there.
    pub(crate) fn ask(&self, name: &RefName, patience: Duration) -> Result<Option<ObjectId>, StoreError> {
        let args =
            [OsStr::new("--end-of-options"), OsStr::new(&self.name), OsStr::from_bytes(name.as_bytes())];
        let output = self.command().verb("ls-remote").args(args).within(patience).output()?;
        if !output.status.success() {
            return Err(self.failed("ask", &output));
        }
        // Git takes the name for a pattern, which matches the end of longer names too.
        let line = output.stdout.split(|b| *b == b'\n').find_map(|line| {
            let tab = line.iter().position(|b| *b == b'\t')?;
            (&line[tab + 1..] == name.as_bytes()).then_some(&line[..tab])
        });
        line.map(ObjectId::from_hex).transpose().map_err(|_| self.nonsense())
    }

    /// Makes one attempt to move refs of the remote, all or none. Returns its answer, and the lines that the
    /// remote's hooks say to who pushes; with `apart`, the answer's own words are without these.
    pub(crate) fn push(
        &self,
        changes: &[RefChange],
        patience: Duration,
        apart: bool,
    ) -> Result<(Pushed, Vec<String>), StoreError> {
        self.may_push()?;
        let (mut options, mut specs) = (Vec::new(), Vec::new());
        if changes.len() > 1 {
            options.push("--atomic".into());
        }
        for RefChange { name, expected, new } in changes {
            let full = name.as_bytes();
            let old = match expected {
                Expected::At(id) => id.to_string(),
                // An empty value says that the ref must not exist.
                Expected::Missing => String::new(),
            };
            let lease = [b"--force-with-lease=", full, b":", old.as_bytes()].concat();
            options.push(OsString::from_vec(lease));
            let new = match new {
                Some(new) => {
                    super::lfs::send(self, *new, patience)?;
                    new.to_string()
                }
                None => String::new(),
            };
            specs.push(OsString::from_vec([new.as_bytes(), b":", full].concat()));
        }
        let output = self.push_command(&options, &specs, patience).output()?;
        let output = if apart { output.without_hooks_words() } else { output };
        let answer = (answer(&output, changes), hooks_said(&output.said));
        // The push moved a local tracking ref too. A failure to sync that is ignored, as it changes nothing
        // about what has arrived at the remote.
        let _ = self.sync_tables();
        Ok(answer)
    }

    /// Sets one of the runner's own refs on the remote, whatever it holds there.
    pub(crate) fn put(&self, name: &RefName, new: ObjectId, patience: Duration) -> Result<(), StoreError> {
        self.may_push()?;
        super::lfs::send(self, new, patience)?;
        let spec = OsString::from_vec([b"+", new.to_string().as_bytes(), b":", name.as_bytes()].concat());
        let output = self.push_command(&[], &[spec], patience).output()?;
        if output.status.success() { Ok(()) } else { Err(self.failed("push to", &output)) }
    }

    fn may_push(&self) -> Result<(), StoreError> {
        if self.path.is_some() { self.git.may_push_to_paths() } else { Ok(()) }
    }

    fn push_command(&self, options: &[OsString], specs: &[OsString], patience: Duration) -> GitCommand {
        // Git moves the user's tracking ref as well, and takes its lock for that.
        let common = &self.git.common_dir;
        let tracking = common.join("refs/remotes").join(&self.name);
        self.command()
            .may_lock(MayLock::refs(common, [tracking]))
            .config("push.followTags=false")
            .config_of(&format!("remote.{}.mirror", self.name), "false")
            .verb("push")
            .args(["--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"])
            .args(options)
            .args([OsStr::new("--end-of-options"), OsStr::new(&self.name)])
            .args(specs)
            .alone(self.path.is_some())
            .within(patience)
    }
}

/// Judges the output of a push: all refs have moved only where the line of each one says so.
fn answer(output: &GitOutput, changes: &[RefChange]) -> Pushed {
    let mut all = Pushed::Done;
    for change in changes {
        let word = word(&output.stdout, output.status.success(), change.name.as_bytes());
        match (word, change.new) {
            (Word::Moved, Some(_)) | (Word::Gone, None) => {}
            // Git compares no lease where the ref already holds the new value. A branch is then read again
            // (K11); any other ref is as it was meant to be.
            (Word::Same, Some(_)) if shared::is_shared(change.name.as_bytes()) => {}
            // A ref that held another value than expected is the reason why the others were not sent.
            (Word::Rejected, _) => return Pushed::Stale,
            (Word::Refused(summary), _) => {
                let reason =
                    String::from_utf8_lossy(summary).chars().map(plain).take(300).collect::<String>();
                let reason = match output.message.is_empty() {
                    true => reason,
                    false => format!("{reason}: {}", output.message),
                };
                all = Pushed::Refused(reason);
            }
            (Word::Moved, None) | (Word::Gone, Some(_)) | (Word::Same | Word::Nothing, _)
                if all == Pushed::Done =>
            {
                let failure = if output.late { RemoteFailure::TooLate } else { colour(&output.said) };
                all = Pushed::Failed(failure, output.message.clone());
            }
            (Word::Moved, None) | (Word::Gone, Some(_)) | (Word::Same | Word::Nothing, _) => {}
        }
    }
    all
}

/// Returns the lines of a push's error output that came from the remote. Git fills them up with blanks.
fn hooks_said(said: &[u8]) -> Vec<String> {
    let lines = said.split(|b| matches!(b, b'\n' | b'\r'));
    let theirs = lines.filter_map(|line| line.strip_prefix(b"remote: ")).map(<[u8]>::trim_ascii_end);
    theirs.filter(|line| !line.is_empty()).map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

fn plain(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

fn has(text: &[u8], words: &[&str]) -> bool {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// True where a push failed because the remote can't move several refs as one.
pub(crate) fn refuses_atomic(output: &GitOutput) -> bool {
    colour(&output.said) == RemoteFailure::NotAtomic
}

/// Names a failure without a verdict after its text, as Git has one exit status for all of them.
fn colour(said: &[u8]) -> RemoteFailure {
    let denied = [
        "authentication failed",
        // What ssh says; the system's own words, of a file that can't be opened, end with these.
        "permission denied (",
        "permission denied, please try again",
        "could not read username",
        "could not read password",
        "terminal prompts disabled",
        "error: 401",
        "error: 403",
        "host key verification failed",
        "access denied",
    ];
    let gone = [
        "could not resolve",
        "connection refused",
        "connection timed out",
        "connection reset",
        "connection closed",
        "no route to host",
        "network is unreachable",
        "unable to access",
        "could not read from remote repository",
        "does not appear to be a git repository",
        "the remote end hung up",
        "early eof",
        "unexpected disconnect",
        "unable to connect",
        "unable to look up",
        "broken pipe",
    ];
    if has(said, &["does not support --atomic"]) {
        return RemoteFailure::NotAtomic;
    }
    // A refused key is reported with words of both lists, and being denied is the reason.
    if has(said, &denied) {
        RemoteFailure::Denied
    } else if has(said, &gone) {
        RemoteFailure::Unreachable
    } else {
        RemoteFailure::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn said(code: i32, stdout: &str, stderr: &str) -> GitOutput {
        GitOutput {
            status: std::process::ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            message: String::new(),
            said: stderr.into(),
            late: false,
        }
    }

    /// K12
    #[test]
    fn a_push_is_done_only_where_both_answers_say_so() {
        let of =
            |name: &str, new| RefChange { name: RefName::branch(name), expected: Expected::Missing, new };
        let new = ObjectId::from_hex(&[b'1'; 40]).ok();
        let read = |code, stdout: &str| answer(&said(code, stdout, ""), &[of("x", new)]);
        assert_eq!(read(0, "To /r\n \t1a:refs/heads/x\t1a..2b\nDone\n"), Pushed::Done);
        assert_eq!(read(0, "To /r\n*\t1a:refs/heads/x\t[new branch]\nDone\n"), Pushed::Done);
        assert!(matches!(read(1, "To /r\n \t1a:refs/heads/x\t1a..2b\n"), Pushed::Failed(..)));
        assert!(matches!(read(0, "To /r\n \t1a:refs/heads/xy\t1a..2b\nDone\n"), Pushed::Failed(..)));
        assert!(matches!(read(0, "To /r\n=\t1a:refs/heads/x\t[up to date]\nDone\n"), Pushed::Failed(..)));
        assert_eq!(read(1, "To /r\n!\t1a:refs/heads/x\t[rejected] (stale info)\n"), Pushed::Stale);
        // Whatever the reason in parentheses says, and in whatever language.
        for why in ["pre-receive hook declined", "failed to update ref", "gesperrt", ""] {
            let refused = read(1, &format!("!\t1a:refs/heads/x\t[remote rejected] ({why})\n"));
            assert!(matches!(refused, Pushed::Refused(_)), "{refused:?}");
        }
        let unknown = read(1, "!\t1a:refs/heads/x\t[remote failure] (remote failed to report status)\n");
        assert!(matches!(unknown, Pushed::Failed(..)), "{unknown:?}");
    }

    /// K12
    #[test]
    fn of_several_all_moved_or_none_did() {
        let of =
            |name: &str, new| RefChange { name: RefName::branch(name), expected: Expected::Missing, new };
        let all = [of("x", ObjectId::from_hex(&[b'1'; 40]).ok()), of("y", None)];
        let read = |code, stdout: &str| answer(&said(code, stdout, ""), &all);
        let (moved, gone) = ("*\t1a:refs/heads/x\t[new branch]\n", "-\t:refs/heads/y\t[deleted]\n");
        assert_eq!(read(0, &[moved, gone].concat()), Pushed::Done);
        assert_eq!(read(0, &[gone, moved].concat()), Pushed::Done);
        for part in [moved, gone, ""] {
            assert!(matches!(read(0, part), Pushed::Failed(..)), "{part}");
        }
        assert!(matches!(read(1, &[moved, gone].concat()), Pushed::Failed(..)));
        let other_way = "-\t:refs/heads/x\t[deleted]\n*\t1a:refs/heads/y\t[new branch]\n";
        assert!(matches!(read(0, other_way), Pushed::Failed(..)));
        let stale = "!\t1a:refs/heads/x\t[rejected] (atomic push failed)\n!\t:refs/heads/y\t[rejected] (stale info)\n";
        assert_eq!(read(1, stale), Pushed::Stale);
        let refused = "!\t1a:refs/heads/x\t[remote rejected] (atomic push failure)\n";
        assert!(matches!(read(1, refused), Pushed::Refused(_)));
    }

    #[test]
    fn failures_have_names() {
        let cases = [
            ("fatal: Authentication failed for 'https://x/'", RemoteFailure::Denied),
            (
                "me@x: Permission denied (publickey).\nfatal: Could not read from remote repository.",
                RemoteFailure::Denied,
            ),
            ("error: unable to open ./objects/7b: Permission denied", RemoteFailure::Other),
            ("fatal: unable to access 'http://x/': Could not resolve host: x", RemoteFailure::Unreachable),
            ("fatal: '/gone' does not appear to be a git repository", RemoteFailure::Unreachable),
            ("fatal: the remote end hung up unexpectedly", RemoteFailure::Unreachable),
            ("fatal: the receiving end does not support --atomic push", RemoteFailure::NotAtomic),
            ("error: something else", RemoteFailure::Other),
        ];
        for (text, kind) in cases {
            assert_eq!(colour(text.as_bytes()), kind, "{text}");
        }
    }
}

//! The store served by the `git` binary alone, for what gix can't do: reftable, partial clones.
//!
//! Objects come from one long-lived `git cat-file --batch`, which is started at first use and again after it
//! died; in a partial clone only commits do. Refs in tables are read by `for-each-ref` and moved by `update-ref`, whose exit status is the answer of an
//! attempt. A failed attempt on a ref that still holds the old value is repeated for about a second, because reftable
//! has one lock for all refs, and for longer while that lock passes from process to process. Refs in files are read
//! and moved by `refs::files`, whose locks are recognized as this tool's after a kill. Symbolic refs are refused.
//! Durable means `core.fsync=committed`, and that this store syncs the folders, which Git does not do.
//!
//! Implements K37, K42 (second backend), K11 (the attempt).

use super::batch::{ASK_AHEAD, Batch};
use crate::protocol::id::ObjectId;
use crate::store::git::children::{self, MayLock};
use crate::store::git::command::Git;
use crate::store::refs::files::{FilesRefs, Policy};
use crate::store::{
    Commit, Expected, Heads, NewCommit, Part, RefChange, RefName, Scan, Signature, Store, StoreError, Unread,
    commit, in_name_order, io_error, locks, sync, sync_tables,
};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause between the first two attempts; a swap doubles it each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest time that a swap waits for a lock which other processes pass on to one another, and that a
/// read waits for a ref which Git says exists but does not list.
const LONGEST: Duration = Duration::from_secs(30);

/// Returns the inode and modification time of a file, which differ once the file was replaced;
/// `None` where there is no file.
fn state_of(path: &Path) -> Option<(u64, i64, i64)> {
    std::fs::metadata(path).ok().map(|m| (m.ino(), m.mtime(), m.mtime_nsec()))
}

/// A repository that is read and written by the `git` binary.
pub struct GitStore {
    git: Git,
    common_dir: PathBuf,
    hex_len: usize,
    reftable: bool,
    durable: bool,
    retry_for: Duration,
    /// Reads and moves the refs where they are kept in files; `None` where `git` does.
    files: Option<FilesRefs>,
    /// True where Git may fetch an object when it is asked for: then each tree and blob has a child of its own, which a
    /// signal ends, and whose words say why there is none.
    is_lazy: bool,
    batch: RefCell<Option<Batch>>,
}

impl GitStore {
    /// Opens the repository of this Git directory, be it the main one, a bare repository, or
    /// that of a linked worktree.
    pub fn open(git: Git, git_dir: &Path, durable: bool) -> Result<Self, StoreError> {
        let ask = |args: &[&str]| -> Result<Vec<u8>, StoreError> {
            let mut answer = git.command(git_dir).verb("rev-parse").args(args).ok()?;
            answer.pop_if(|b| *b == b'\n');
            Ok(answer)
        };
        let common = ask(&["--path-format=absolute", "--git-common-dir"])?;
        let hex_len = if ask(&["--show-object-format"])? == b"sha256" { 64 } else { 40 };
        Ok(Self::of(git, PathBuf::from(std::ffi::OsString::from_vec(common)), hex_len, durable))
    }

    /// Returns the store of a repository whose common Git directory and length of ids are known.
    pub(crate) fn of(git: Git, common_dir: PathBuf, hex_len: usize, durable: bool) -> Self {
        let reftable = common_dir.join("reftable").is_dir();
        let retry_for = Duration::from_secs(1);
        Self {
            git,
            common_dir,
            hex_len,
            reftable,
            durable,
            retry_for,
            files: None,
            is_lazy: false,
            batch: RefCell::new(None),
        }
    }

    /// Says that objects may be missing, which Git fetches when they are asked for.
    pub(crate) fn lazy(self) -> Self {
        Self { is_lazy: true, ..self }
    }

    /// Has `refs::files` read and move the refs, in place of `git`, where the repository keeps its refs in files.
    pub(crate) fn with_files(self, policy: Policy) -> Self {
        let refs = || FilesRefs::new(&self.common_dir, self.hex_len, policy, self.git.clone());
        Self { files: (!self.reftable).then(refs), ..self }
    }

    /// Returns what the ref of exactly this name holds. One child is enough to find a value; that there is
    /// none takes more than one.
    fn read(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        let (begun, mut refused) = (Instant::now(), 0);
        loop {
            if let Some(id) = self.read_listed(name)? {
                return Ok(Some(id));
            }
            if !self.reftable {
                return Ok(None);
            }
            // Where Git can't read a table at that moment, `for-each-ref` lists nothing and succeeds.
            // `show-ref --exists` tells an unreadable table from a missing ref.
            let args = [OsStr::new("--exists"), OsStr::from_bytes(name.as_bytes())];
            let output = self.git.command(&self.common_dir).verb("show-ref").args(args).output()?;
            let (cause, patience) = match output.status.code() {
                Some(2) => return Ok(None),
                // The ref was created between the two children, each of which may
                // take long on a busy machine.
                Some(0) => ("git says that it is there, and does not list it".to_owned(), LONGEST),
                _ => {
                    refused += 1;
                    (output.message, self.retry_for)
                }
            };
            if begun.elapsed() > patience && refused != 1 {
                let cause = Unread::Tables(cause);
                return Err(StoreError::UnreadableRef { name: name.clone(), cause });
            }
            std::thread::sleep(FIRST_PAUSE);
        }
    }

    fn read_listed(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        if !name.is_valid() {
            return Err(StoreError::RefusedName { name: name.clone(), cause: "Git accepts no such name" });
        }
        let scan = self.list(OsStr::from_bytes(name.as_bytes()))?;
        for (found, id, symbolic) in scan.lines {
            if found != *name {
                continue;
            }
            return match symbolic {
                Some(target) => Err(StoreError::SymbolicRef { name: found, target }),
                None => Ok(Some(id)),
            };
        }
        // Git leaves a broken ref out of the list with a warning, which is not the same as a missing ref.
        if !scan.said.is_empty() {
            return Err(StoreError::UnreadableRef { name: name.clone(), cause: Unread::Content(scan.said) });
        }
        self.refuse_dangling_symbolic(name)?;
        Ok(None)
    }

    /// Refuses a symbolic ref whose target is missing, which `for-each-ref` leaves out without a warning.
    fn refuse_dangling_symbolic(&self, name: &RefName) -> Result<(), StoreError> {
        let args = [OsStr::new("-q"), OsStr::from_bytes(name.as_bytes())];
        let output = self.git.command(&self.common_dir).verb("symbolic-ref").args(args).output()?;
        if !output.status.success() {
            return Ok(());
        }
        let target = RefName::new(output.stdout.trim_ascii());
        Err(StoreError::SymbolicRef { name: name.clone(), target })
    }

    fn list(&self, pattern: &OsStr) -> Result<Listing, StoreError> {
        let format = "--format=%(objectname) %(refname) %(symref)";
        let output = self
            .git
            .command(&self.common_dir)
            .verb("for-each-ref")
            .args([OsStr::new(format), pattern])
            .output()?;
        if !output.status.success() {
            return Err(StoreError::Git { verb: "for-each-ref".to_owned(), message: output.message });
        }
        let mut lines = Vec::new();
        for line in output.stdout.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            // No part can hold a space: Git allows none in ref names.
            let mut parts = line.splitn(3, |b| *b == b' ');
            let id = parts.next().and_then(|hex| ObjectId::from_hex(hex).ok());
            let (Some(id), Some(name)) = (id, parts.next()) else {
                let message = format!("unexpected line '{}'", line.escape_ascii());
                return Err(StoreError::Git { verb: "for-each-ref".to_owned(), message });
            };
            let symbolic = parts.next().filter(|t| !t.is_empty()).map(RefName::new);
            lines.push((RefName::new(name), id, symbolic));
        }
        Ok(Listing { lines, said: output.message })
    }

    /// Makes one attempt: a single `update-ref` transaction that moves branches first.
    fn attempt(&self, changes: &[&RefChange], by: &Signature, log: &str) -> Result<(), StoreError> {
        let null = "0".repeat(self.hex_len);
        let mut lines = b"start\0".to_vec();
        let mut changes = changes.to_vec();
        changes.sort_by_key(|change| {
            change.new.is_none() || !change.name.as_bytes().starts_with(b"refs/heads/")
        });
        for RefChange { name, expected, new } in &changes {
            let old = match expected {
                Expected::At(id) => id.to_string(),
                Expected::Missing => null.clone(),
            };
            let new = new.map_or(null.clone(), |id| id.to_string());
            lines.extend([b"option no-deref\0update ", name.as_bytes(), b"\0"].concat());
            lines.extend(format!("{new}\0{old}\0").into_bytes());
        }
        lines.extend(b"prepare\0commit\0");
        let log: String = log.split_whitespace().collect::<Vec<_>>().join(" ").replace('\0', " ");
        let names = changes.iter().map(|change| change.name.as_bytes());
        let mut command = self
            .git
            .command(&self.common_dir)
            .durable(self.durable)
            .may_lock(MayLock::these_refs(&self.common_dir, names))
            .identity(by)
            .verb("update-ref");
        if !log.is_empty() {
            command = command.args(["-m", &log]);
        }
        command.args(["-z", "--stdin"]).stdin(lines).ok().map(drop)
    }

    /// Refuses a new ref whose name is a folder of another ref's name, or the other way round.
    fn refuse_conflicts(&self, changes: &[&RefChange]) -> Result<(), StoreError> {
        let created = changes.iter().filter(|c| c.expected == Expected::Missing && c.new.is_some());
        let created: Vec<&RefName> = created.map(|change| &change.name).collect();
        if created.is_empty() {
            return Ok(());
        }
        for (other, _, _) in self.list(OsStr::new("refs/"))?.lines {
            if let Some(name) = created.iter().find(|name| name.conflicts_with(&other)) {
                return Err(StoreError::NameConflict { name: (*name).clone(), other });
            }
        }
        Ok(())
    }

    fn sync_refs(&self, changes: &[&RefChange]) -> Result<(), StoreError> {
        match (self.durable, self.reftable) {
            (false, _) => Ok(()),
            (true, true) => sync_tables(&self.common_dir),
            (true, false) => changes.iter().try_for_each(|change| self.sync_ref(&change.name)),
        }
    }

    fn sync_ref(&self, name: &RefName) -> Result<(), StoreError> {
        let path = self.common_dir.join(OsStr::from_bytes(name.as_bytes()));
        // A nested name may have created folders, each of which is an entry of the folder above it.
        for folder in path.ancestors().skip(1).take_while(|f| f.starts_with(self.common_dir.join("refs"))) {
            if folder.is_dir() {
                sync(folder)?;
            }
        }
        Ok(())
    }

    /// Reads objects of one kind and returns them in the order of `ids`, asking for many before the first answer is read.
    fn read_raw(&self, ids: &[ObjectId], kind: &str) -> Vec<Result<Vec<u8>, StoreError>> {
        let failed = |id, cause: String| StoreError::Object { id, cause };
        let mut read = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(ASK_AHEAD) {
            let mut left = chunk;
            // A child that died is replaced once. Each object that is still
            // unanswered after that is an error.
            for _ in 0..2 {
                let got = self.with_batch(|batch| batch.ask(left, kind)).unwrap_or_default();
                left = &left[got.len()..];
                read.extend(got.into_iter().map(|(id, raw)| raw.map_err(|cause| failed(id, cause))));
            }
            read.extend(left.iter().map(|id| Err(failed(*id, "git cat-file ended early".to_owned()))));
        }
        read
    }

    fn cat_file(&self, kind: &str, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        self.git.command(&self.common_dir).verb("cat-file").args([kind, &id.to_string()]).ok()
    }

    fn read_one(&self, id: ObjectId, kind: &str) -> Result<Vec<u8>, StoreError> {
        if self.is_lazy && kind != "commit" {
            return self.cat_file(kind, id);
        }
        self.read_raw(&[id], kind).pop().unwrap_or_else(|| {
            Err(StoreError::Object { id, cause: "git cat-file did not answer".to_owned() })
        })
    }

    /// Reads commits and returns them in the order of `ids`.
    fn read_many(&self, ids: &[ObjectId]) -> Vec<Result<Commit, StoreError>> {
        let raw = self.read_raw(ids, "commit").into_iter().zip(ids);
        raw.map(|(raw, id)| parsed(*id, &raw?)).collect()
    }

    fn with_batch<T>(&self, f: impl FnOnce(&mut Batch) -> (T, bool)) -> Result<T, StoreError> {
        let mut slot = self.batch.borrow_mut();
        if slot.is_none() {
            *slot = Some(Batch::start(&self.git, &self.common_dir)?);
        }
        let Some(batch) = slot.as_mut() else {
            return Err(StoreError::Git { verb: "cat-file".to_owned(), message: "no child".to_owned() });
        };
        let (value, still_good) = f(batch);
        if !still_good {
            *slot = None;
        }
        Ok(value)
    }
}

struct Listing {
    lines: Vec<(RefName, ObjectId, Option<RefName>)>,
    said: String,
}

fn parsed(id: ObjectId, raw: &[u8]) -> Result<Commit, StoreError> {
    commit::parse(id, raw).map_err(|cause| StoreError::Object { id, cause: cause.to_owned() })
}

impl Store for GitStore {
    fn tip(&self, name: &RefName) -> Result<Option<ObjectId>, StoreError> {
        self.files.as_ref().map_or_else(|| self.read(name), |files| files.tip(name))
    }

    fn scan_all(&self, prefix: &str) -> Result<Scan, StoreError> {
        if let Some(files) = &self.files {
            return files.scan(prefix);
        }
        let listing = self.list(OsStr::new(prefix))?;
        let (mut refs, mut symbolic) = (Vec::new(), Vec::new());
        for (name, id, target) in listing.lines {
            match target {
                None => refs.push((name, id)),
                Some(target) if name.is_below_ours() => symbolic.push((name, Unread::Symbolic(target))),
                Some(_) => {}
            }
        }
        // Git names broken refs only in its warnings.
        let broken =
            listing.said.split("ignoring broken ref ").skip(1).filter_map(|rest| rest.split(' ').next()).map(
                |name| (RefName::new(name.as_bytes()), Unread::Content("git calls it broken".to_owned())),
            );
        Ok(Scan { refs, unreadable: broken.chain(symbolic).collect() })
    }

    fn read_heads(&self, prefix: &str) -> Result<Heads, StoreError> {
        let scan = self.scan_all(prefix)?;
        let mut heads = Heads::from_unreadable(scan.unreadable);
        let ids: Vec<ObjectId> = scan.refs.iter().map(|(_, id)| *id).collect();
        for ((name, _), read) in scan.refs.into_iter().zip(self.read_many(&ids)) {
            heads.push(name, read);
        }
        Ok(heads)
    }

    fn history_ends_at(&self, id: ObjectId) -> Result<bool, StoreError> {
        let path = self.common_dir.join("shallow");
        match std::fs::read_to_string(&path) {
            Ok(list) => Ok(list.lines().any(|line| line == id.to_string())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(io_error("read", &path)(e)),
        }
    }

    fn try_swaps(&self, changes: &[RefChange], by: &Signature, log: &str) -> Result<(), StoreError> {
        let sorted = in_name_order(changes)?;
        // Git refuses a branch that would point at a missing object. That is checked first, so that such
        // an attempt is not retried.
        for new in changes.iter().filter_map(|change| change.new) {
            self.read_commit(new)?;
        }
        if let Some(refs) = &self.files {
            return refs.try_swaps(changes, by, log);
        }
        let Some(first_name) = changes.first().map(|change| &change.name) else { return Ok(()) };
        let tables = self.common_dir.join("reftable/tables.list");
        let (begun, first) = (Instant::now(), state_of(&tables));
        let (mut started, mut seen) = (begun, first);
        let mut pause = FIRST_PAUSE;
        loop {
            // Reading the ref also refuses a symbolic ref, which `update-ref` would follow or overwrite.
            for RefChange { name, expected, new: _ } in &sorted {
                let found = self.read(name)?;
                let wanted = match expected {
                    Expected::At(id) => Some(*id),
                    Expected::Missing => None,
                };
                if found != wanted {
                    return Err(StoreError::Moved { name: name.clone(), expected: *expected, found });
                }
            }
            let error = match self.attempt(&sorted, by, log) {
                Ok(()) => return self.sync_refs(&sorted),
                Err(error) => error,
            };
            self.refuse_conflicts(&sorted)?;
            let passed_on = state_of(&tables);
            if passed_on != seen && begun.elapsed() < LONGEST {
                // While other processes move their refs, this swap can still get its turn.
                (seen, started, pause) = (passed_on, Instant::now(), FIRST_PAUSE);
            }
            if started.elapsed() > self.retry_for {
                // The lock may be one that a `git` child of this tool left when it was killed,
                // after this process began.
                let swept = children::sweep(&self.common_dir, &Vec::new);
                if !swept.removed.is_empty() || !swept.young.is_empty() && begun.elapsed() < LONGEST {
                    (started, pause) = (Instant::now(), FIRST_PAUSE);
                    continue;
                }
                let path = tables.with_extension("list.lock");
                // A machine may be so busy that one child holds the lock for seconds.
                let patient = self.reftable && path.exists() && begun.elapsed() < LONGEST;
                if patient && children::at_work(&self.common_dir, &path) {
                    (started, pause) = (Instant::now(), FIRST_PAUSE);
                    continue;
                }
                let contended = self.reftable && (seen != first || path.exists());
                let name = first_name.clone();
                let held = || StoreError::LockHeld { name, age: locks::age_of(&path), path };
                return Err(if contended { held() } else { error });
            }
            std::thread::sleep(locks::jittered(pause));
            pause *= 2;
        }
    }

    fn read_commit(&self, id: ObjectId) -> Result<Commit, StoreError> {
        parsed(id, &self.read_one(id, "commit")?)
    }

    fn read_tree(&self, id: ObjectId) -> Result<Vec<crate::store::TreeEntry>, StoreError> {
        super::parse_tree(id, &self.read_one(id, "tree")?)
    }

    fn read_blob(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        self.read_one(id, "blob")
    }

    fn blob_size(&self, id: ObjectId) -> Result<u64, StoreError> {
        let said = self.cat_file("-s", id)?;
        let size = std::str::from_utf8(&said).ok().and_then(|text| text.trim().parse().ok());
        size.ok_or_else(|| StoreError::Object { id, cause: "git does not say how large it is".to_owned() })
    }

    fn write_part(&self, part: Part, content: &[u8]) -> Result<ObjectId, StoreError> {
        let kind = match part {
            Part::Blob => "blob",
            Part::Tree => "tree",
        };
        let command = self.git.command(&self.common_dir).durable(self.durable).verb("hash-object");
        command.args(["-t", kind, "-w", "--stdin"]).stdin(content.to_vec()).id()
    }

    fn write_commit(&self, new: &NewCommit) -> Result<ObjectId, StoreError> {
        if is_empty_tree(new.tree) {
            // Git knows the empty tree without its object, and yet `git fsck` reports the object as missing.
            let command = self.git.command(&self.common_dir).durable(self.durable).verb("hash-object");
            command.args(["-t", "tree", "-w", "--stdin"]).stdin(Vec::new()).id()?;
        }
        let command = self.git.command(&self.common_dir).durable(self.durable).verb("hash-object");
        let command = command.args(["-t", "commit", "-w", "--stdin"]);
        let id = command.stdin(commit::encode(new)?).id()?;
        if self.durable {
            let hex = id.to_string();
            let objects = self.common_dir.join("objects");
            sync(&objects.join(&hex[..2]))?;
            sync(&objects)?;
        }
        Ok(id)
    }
}

fn is_empty_tree(tree: ObjectId) -> bool {
    let kinds = [gix::hash::Kind::Sha1, gix::hash::Kind::Sha256];
    kinds.into_iter().any(|kind| gix::ObjectId::empty_tree(kind).as_bytes() == tree.as_bytes())
}

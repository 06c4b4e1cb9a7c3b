//! Removes what is no longer needed: slots, logs, run folders, attempts, refs, copies, leftovers.
//!
//! Never removes work: a slot whose run ended without its runner is salvaged to an attempt first, and
//! nothing of a run that may live is touched. Whether a run lives is asked of its locks and of the heads,
//! never of ages alone. `dry` changes nothing. Implements K14, K16, K26, K43, K44 (the ends of them).

use super::attempt::run_of;
use super::report::{Note, Report};
use super::settings::CommandsFrom;
use super::slot::run_ref;
use super::{Runner, RunnerError, Tip, io, logs};
use crate::protocol::event::Event;
use crate::protocol::flow::{FLOWS, TURNS};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{ASKED, HEARD_REFS};
use crate::store::beneath::{BeneathError, Root};
use crate::store::slots::{SET_ASIDE, modules};
use crate::store::{Commit, RefName, Swap, children, command_tree, locks, remove_tree, swap};
use nix::fcntl::{Flock, FlockArg};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Something that may be of a process that is at work right now is left alone this long.
const LEFTOVER_AFTER: Duration = Duration::from_secs(3600);

/// The file by which a turn says whose it was, and most bytes of it that are read.
const RECORD: &[u8] = b"turn.json";
const RECORD_MAX: u64 = 1 << 20;

/// What is kept how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry {
    /// Logs, run folders, copies of commands, notes of what was seen.
    pub logs: Duration,
    /// Attempts.
    pub attempts: Duration,
}

/// What kind of thing was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Slot,
    Log,
    RunFolder,
    Attempt,
    Heard,
    /// A question that is gone.
    Asked,
    /// What a turn left whose flow is gone.
    Turn,
    Submodules,
    RunRef,
    Commands,
    Lock,
    Leftover,
}

impl Kind {
    /// Its name, as shown and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Slot => "slot",
            Kind::Log => "log",
            Kind::RunFolder => "run-folder",
            Kind::Attempt => "attempt",
            Kind::Heard => "heard",
            Kind::Asked => "asked",
            Kind::Turn => "turn",
            Kind::Submodules => "submodules",
            Kind::RunRef => "run-ref",
            Kind::Commands => "commands",
            Kind::Lock => "lock",
            Kind::Leftover => "leftover",
        }
    }
}

/// One thing that was removed, or would be.
#[derive(Debug)]
pub struct Removal {
    /// What it is.
    pub kind: Kind,
    /// Its path or ref.
    pub name: PathBuf,
    /// The attempt that its work was moved to.
    pub kept: Option<RefName>,
    /// What the files took on disk that were kept in it for its branch.
    pub bytes: Option<u64>,
}

/// Everything that a collection did.
#[derive(Debug, Default)]
pub struct Collected {
    /// What was removed, or would be.
    pub removed: Vec<Removal>,
    /// What could not be.
    pub failed: Vec<RunnerError>,
}

impl Collected {
    pub(super) fn removed(&mut self, kind: Kind, name: impl Into<PathBuf>) {
        self.removed.push(Removal { kind, name: name.into(), kept: None, bytes: None });
    }
}

/// Runs that a head says are under way.
#[derive(Default)]
struct Leased {
    runs: HashSet<String>,
    triggers: HashSet<String>,
}

/// One collection.
pub(crate) struct Collector<'a> {
    runner: &'a Runner<'a>,
    expiry: Expiry,
    dry: bool,
    now: SystemTime,
    out: Collected,
}

impl<'a> Collector<'a> {
    /// A collection that has not begun.
    pub(crate) fn new(runner: &'a Runner<'a>, expiry: Expiry, dry: bool) -> Self {
        let now =
            SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(runner.clock.now()).unwrap_or(0));
        Self { runner, expiry, dry, now, out: Collected::default() }
    }

    /// Removes what is dead. What fails is set aside and the rest goes on.
    pub(crate) fn collect(mut self) -> Collected {
        let steps = [
            Self::slots,
            Self::runs,
            Self::attempts,
            Self::heard,
            Self::asked,
            Self::turns,
            Self::submodules,
            Self::commands,
            Self::locks,
            Self::leftovers,
        ];
        for step in steps {
            if let Err(error) = step(&mut self) {
                self.out.failed.push(error);
            }
        }
        self.out
    }

    fn is_older(&self, path: &Path, than: Duration) -> bool {
        let changed = path.symlink_metadata().and_then(|m| m.modified());
        changed.is_ok_and(|t| self.now.duration_since(t).unwrap_or_default() >= than)
    }

    /// Removes a file or folder, unless this is dry.
    fn remove(&mut self, kind: Kind, path: PathBuf) {
        if !self.dry
            && let Err(error) = remove_tree(&path)
        {
            self.out.failed.push(io("remove", &path)(error));
            return;
        }
        self.out.removed(kind, path);
    }

    /// Slots that no run uses: what is in them was kept, or belongs to no run.
    fn slots(&mut self) -> Result<(), RunnerError> {
        let runner = self.runner;
        if !runner.repo.aynig_dir().exists() && !runner.repo.common_dir.join("worktrees").exists() {
            return Ok(());
        }
        let pool = runner.pool()?;
        for number in pool.registered() {
            let Some(mut slot) = pool.lock(number)? else { continue };
            if !slot.exists() {
                continue;
            }
            let dir = slot.dir().to_owned();
            let bytes = slot.kept(&runner.settings.keeping.keep).map(|(_, _, bytes)| bytes);
            if self.dry {
                if runner.is_taken(&slot).is_ok_and(|taken| !taken) {
                    self.out.removed.push(Removal { kind: Kind::Slot, name: dir, kept: None, bytes });
                }
                continue;
            }
            let mut report = Report::new(&RefName::branch("slot"));
            match runner.settle(&mut slot, &mut report) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    self.out.failed.push(error);
                    continue;
                }
            }
            let kept = report
                .notes
                .into_iter()
                .find_map(|note| if let Note::FoundAttempt(name, _) = note { Some(name) } else { None });
            if let Err(error) = slot.remove(runner.repo) {
                self.out.failed.push(error.into());
                continue;
            }
            self.out.removed.push(Removal { kind: Kind::Slot, name: dir, kept, bytes });
        }
        if !self.dry {
            // Only where it is empty.
            let _ = std::fs::remove_dir(&runner.settings.worktree_dir);
        }
        Ok(())
    }

    fn leased(&self) -> Result<Leased, RunnerError> {
        let mut leased = Leased::default();
        for (_, commit) in self.runner.store.read_heads("refs/heads/")?.heads {
            let Some(event) = Tip::from(commit).event.filter(|e| e.is_working()) else { continue };
            leased.runs.extend(event.run_id().map(str::to_owned));
            leased.triggers.extend(event.trigger().map(|id| id.to_string()));
        }
        // Runs on a remote's branches are on no head here.
        let pool = self.runner.pool()?;
        leased.runs.extend(pool.known().into_iter().filter_map(|n| pool.peek(n).run).map(|run| run.run_id));
        Ok(leased)
    }

    /// Refs, folders and logs of runs that are over.
    fn runs(&mut self) -> Result<(), RunnerError> {
        // Before the heads: a run that begins between is not among these.
        let refs = self.runner.store.scan("refs/aynig/run/")?;
        let folders = entries(&self.runner.repo.aynig_dir().join("runs"));
        let files: Vec<PathBuf> = logs::folders(self.runner.repo).iter().flat_map(|f| entries(f)).collect();
        let leased = self.leased()?;
        for (name, at) in refs {
            let id = name.as_bytes().strip_prefix(b"refs/aynig/run/").unwrap_or_default();
            // What is no text is the id of no run of ours.
            let Ok(id) = std::str::from_utf8(id) else { continue };
            let over = !leased.runs.contains(id) && self.runner.is_dead(id) && run_ref(id).is_some();
            if over && !self.is_fresh(id, at) {
                self.delete_ref(Kind::RunRef, &name, at)?;
            }
        }
        for path in folders {
            let Some(id) = path.file_name().and_then(OsStr::to_str) else { continue };
            let old = self.is_older(&path, self.expiry.logs) && newest_is_older(self, &path);
            if old && !leased.runs.contains(id) && self.runner.is_dead(id) {
                self.remove(Kind::RunFolder, path);
            }
        }
        for path in files {
            let over = match path.file_name().and_then(OsStr::to_str).map(log_of) {
                Some(LogOf::Run(trigger)) => !leased.triggers.contains(trigger),
                Some(LogOf::Hooks) => true,
                // A folder of the user's may hold more.
                Some(LogOf::Nobody) | None => false,
            };
            if over && self.is_older(&path, self.expiry.logs) {
                self.remove(Kind::Log, path);
            }
        }
        Ok(())
    }

    /// True where a run's ref is at its lease, and that may not have ended: between a claim on a remote and the slot
    /// that is noted for it, nothing else of this repository knows of the run.
    fn is_fresh(&self, id: &str, at: ObjectId) -> bool {
        let Ok(tip) = self.runner.store.read_commit(at).map(Tip::from) else { return false };
        let lease = tip.event.as_ref().filter(|e| e.is_working() && e.run_id() == Some(id));
        let seconds = lease.and_then(Event::lease_seconds).and_then(|seconds| i64::try_from(seconds).ok());
        let end = tip.commit.committed.zip(seconds).map(|(at, seconds)| at.saturating_add(seconds));
        end.is_some_and(|end| self.runner.clock.now() <= end)
    }

    fn delete_ref(&mut self, kind: Kind, name: &RefName, at: ObjectId) -> Result<(), RunnerError> {
        let store = &*self.runner.store;
        let gone = self.dry || swap::delete_ref(store, name, at, &self.runner.signature())? == Swap::Won;
        if gone {
            self.out.removed(kind, OsStr::from_bytes(name.as_bytes()));
        }
        Ok(())
    }

    /// Attempts by their age, none of a run that a head says is under way.
    fn attempts(&mut self) -> Result<(), RunnerError> {
        // Before the heads: an attempt of a run that begins between is not among these.
        let found = self.runner.store.read_heads("refs/aynig/attempts/")?.heads;
        let leased = self.leased()?;
        let limit = i64::try_from(self.expiry.attempts.as_secs()).unwrap_or(i64::MAX);
        for (name, commit) in found {
            if !name.is_own() || leased.runs.contains(&run_of(&name)) {
                continue;
            }
            let id = commit.id;
            let since = match self.runner.kept_since(&name, commit) {
                Ok(since) => since,
                Err(error) => {
                    self.out.failed.push(error.into());
                    continue;
                }
            };
            if since.is_some_and(|at| self.runner.clock.now().saturating_sub(at) >= limit) {
                self.delete_ref(Kind::Attempt, &name, id)?;
            }
        }
        Ok(())
    }

    /// Messages that were delivered, by their age; none whose work no branch has (K46a).
    fn heard(&mut self) -> Result<(), RunnerError> {
        let limit = i64::try_from(self.expiry.attempts.as_secs()).unwrap_or(i64::MAX);
        for (name, commit) in self.runner.store.read_heads(&String::from_utf8_lossy(HEARD_REFS))?.heads {
            let old = commit.committed.is_some_and(|at| self.runner.clock.now().saturating_sub(at) >= limit);
            if !name.is_own() || !old {
                continue;
            }
            let has = |work: &ObjectId| self.runner.repo.git.is_on_a_branch(*work);
            if commit.parents.first().map_or(Ok(true), has)? {
                self.delete_ref(Kind::Heard, &name, commit.id)?;
            }
        }
        Ok(())
    }

    /// What turns left whose flow is not here any more, by its age. Of a flow that is here all of it stays: it is what people and
    /// sessions that are gone on with read (N4).
    fn turns(&mut self) -> Result<(), RunnerError> {
        let limit = i64::try_from(self.expiry.attempts.as_secs()).unwrap_or(i64::MAX);
        for (name, commit) in self.runner.store.read_heads(&String::from_utf8_lossy(TURNS))?.heads {
            let old = commit.committed.is_some_and(|at| self.runner.clock.now().saturating_sub(at) >= limit);
            if name.is_own() && old && !self.has_flow(&commit)? {
                self.delete_ref(Kind::Turn, &name, commit.id)?;
            }
        }
        Ok(())
    }

    /// Whether the flow is here that a turn's record names, or it can't be read which that is.
    fn has_flow(&self, left: &Commit) -> Result<bool, RunnerError> {
        let store = &*self.runner.store;
        let tree = store.read_tree(left.tree)?;
        let Some(record) = tree.iter().find(|entry| entry.name == RECORD) else { return Ok(true) };
        if store.blob_size(record.id)? > RECORD_MAX {
            return Ok(true);
        }
        let record = serde_json::from_slice::<serde_json::Value>(&store.read_blob(record.id)?);
        let flow = record.ok().and_then(|record| record["runId"].as_str().map(str::to_owned));
        let Some(flow) = flow.filter(|flow| uuid::Uuid::parse_str(flow).is_ok()) else { return Ok(true) };
        Ok(store.tip(&RefName::new([FLOWS, flow.to_lowercase().as_bytes()].concat()))?.is_some())
    }

    /// Questions that no run and no head waits with any more, by their age (K49).
    fn asked(&mut self) -> Result<(), RunnerError> {
        let limit = i64::try_from(self.expiry.attempts.as_secs()).unwrap_or(i64::MAX);
        for (name, commit) in self.runner.store.read_heads(&String::from_utf8_lossy(ASKED))?.heads {
            let old = commit.committed.is_some_and(|at| self.runner.clock.now().saturating_sub(at) >= limit);
            if name.is_own() && old && !self.runner.is_waited_for(&name, commit.id)? {
                self.delete_ref(Kind::Asked, &name, commit.id)?;
            }
        }
        Ok(())
    }

    /// What was kept of submodules, and what was set aside, by its age.
    fn submodules(&mut self) -> Result<(), RunnerError> {
        let aside = entries(&self.runner.settings.worktree_dir).into_iter();
        let name =
            |path: &PathBuf| path.file_name().is_some_and(|n| n.as_bytes().starts_with(SET_ASIDE.as_bytes()));
        for path in entries(&modules::kept(self.runner.repo)).into_iter().chain(aside.filter(name)) {
            if self.is_older(&path, self.expiry.attempts) {
                self.remove(Kind::Submodules, path);
            }
        }
        Ok(())
    }

    /// Copies of commands that were not used for long; none while any command runs from one.
    fn commands(&mut self) -> Result<(), RunnerError> {
        let copies = entries(&self.runner.repo.aynig_dir().join("commands"));
        if copies.is_empty() || self.runner.any_run_lives()? {
            return Ok(());
        }
        let store = &*self.runner.store;
        let current = match &self.runner.settings.commands_from {
            CommandsFrom::Nowhere | CommandsFrom::Branch => None,
            CommandsFrom::Ref(name) => match store.tip(name)? {
                Some(id) => command_tree::find(store, store.read_commit(id)?.tree)?,
                None => None,
            },
        };
        let current = current.map(|id| id.to_string());
        for path in copies {
            let name = path.file_name().unwrap_or_default();
            let copy = !name.as_bytes().starts_with(b".") && current.as_deref().is_none_or(|now| name != now);
            if copy && self.is_older(&path, self.expiry.logs) {
                self.remove(Kind::Commands, path);
            }
        }
        Ok(())
    }

    fn locks(&mut self) -> Result<(), RunnerError> {
        let common = &self.runner.repo.common_dir;
        let stale = match self.dry {
            false => {
                let mut gone = locks::sweep_stale_locks(common)?;
                gone.extend(children::sweep(common).removed);
                gone
            }
            true => locks::list_locks(common)?.into_iter().filter(|l| l.stale).map(|l| l.path).collect(),
        };
        stale.into_iter().for_each(|path| self.out.removed(Kind::Lock, path));
        Ok(())
    }

    /// What a process that was killed left half done, and notes that no process asks for any more.
    fn leftovers(&mut self) -> Result<(), RunnerError> {
        let aynig = self.runner.repo.aynig_dir();
        let folders = ["", "slots", "commands", "checkouts", "seen", "notices"].map(|name| aynig.join(name));
        let slots = self.runner.settings.worktree_dir.clone();
        for (folder, shared) in folders.map(|folder| (folder, false)).into_iter().chain([(slots, true)]) {
            for path in entries(&folder) {
                let ours =
                    path.file_name().and_then(OsStr::to_str).is_some_and(|name| is_leftover(name, shared));
                if ours && self.is_older(&path, LEFTOVER_AFTER) {
                    self.remove(Kind::Leftover, path);
                }
            }
        }
        for path in entries(&aynig.join("seen")) {
            if self.is_older(&path, self.expiry.logs) {
                self.remove(Kind::Leftover, path);
            }
        }
        Ok(())
    }
}

/// Whose log a file of the folder of logs is.
enum LogOf<'a> {
    /// The runs of a trigger.
    Run(&'a str),
    Hooks,
    Nobody,
}

fn log_of(name: &str) -> LogOf<'_> {
    let stem = [".stdout.log", ".stderr.log", logs::EVENTS].iter().find_map(|end| name.strip_suffix(end));
    let trigger = stem.map(|stem| stem.split_once('.').map_or(stem, |(trigger, _)| trigger));
    match trigger.filter(|trigger| ObjectId::from_hex(trigger.as_bytes()).is_ok()) {
        Some(trigger) => LogOf::Run(trigger),
        None if name == "hook.log" => LogOf::Hooks,
        None => LogOf::Nobody,
    }
}

/// True for a name that only what is made aside has. In a folder that is `shared` with the user that is less.
fn is_leftover(name: &str, shared: bool) -> bool {
    // A lock of a copy that only one process ever used is as dead as the copy.
    let whole = name.strip_suffix(".lock").unwrap_or(name);
    let of_a_process =
        |stem: &str| whole.split_once(stem).filter(|(_, rest)| is_number(rest)).map(|(of, _)| of);
    let begun = [".new-config-", ".new-pack-", ".new-", ".old-", ".retired-", ".runner-", "merge-"];
    let id = begun.iter().find_map(|begun| whole.strip_prefix(begun));
    let id = id.map(|id| id.strip_suffix(".index").unwrap_or(id));
    id.is_some_and(|id| uuid::Uuid::try_parse(id).is_ok())
        || of_a_process(".staging-").is_some_and(is_number)
        || !shared && of_a_process(".json.").is_some()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    paths
}

fn newest_is_older(collector: &Collector<'_>, folder: &Path) -> bool {
    entries(folder).iter().all(|path| collector.is_older(path, collector.expiry.logs))
}

impl Runner<'_> {
    /// True where no process of this machine holds the run: its folder's lock can be taken, or is not there.
    pub fn is_dead(&self, run_id: &str) -> bool {
        // What is no plain file there is not what its runner holds.
        let lock = Path::new("runs").join(run_id).join("lock");
        match Root::open(&self.repo.aynig_dir()).and_then(|root| root.file(&lock)) {
            Ok(file) => Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok(),
            Err(BeneathError::Refused { .. }) => true,
            // What can't be asked may live.
            Err(BeneathError::Io { source, .. }) => source.kind() == ErrorKind::NotFound,
        }
    }

    /// True while any slot is locked, inhabited, or kept for a lease that lives on.
    pub(super) fn any_run_lives(&self) -> Result<bool, RunnerError> {
        let pool = self.pool()?;
        for number in pool.known() {
            match pool.lock(number)? {
                None => return Ok(true),
                // What can't be judged may live.
                Some(slot) if self.is_taken(&slot).unwrap_or(true) => return Ok(true),
                Some(_) => {}
            }
        }
        Ok(false)
    }
}

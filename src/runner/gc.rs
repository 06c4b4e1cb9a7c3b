//! Removes what is no longer needed: slots, logs, run folders, attempts, refs, copies, leftovers.
//!
//! Never removes work: a slot whose run ended without its runner is salvaged to an attempt first, and nothing
//! of a run that may live is touched. Locks and the heads of branches say whether a run lives, never age
//! alone. With `dry` nothing is changed. Implements K14, K16, K26, K43, K44 (how these end).

use super::attempt::run_of;
use super::named::run_ref;
use super::report::{Note, Report};
use super::settings::CommandsFrom;
use super::slot::unreadable_note;
use super::{Runner, RunnerError, Tip, io, logs};
use crate::protocol::event::Event;
use crate::protocol::flow::{FLOWS, TURNS};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::{ASKED, HEARD_REFS};
use crate::store::disk::is_of_another_account;
use crate::store::slots::{Locked, SET_ASIDE, modules};
use crate::store::{
    Commit, RefName, StoreError, Swap, TreeEntry, children, command_tree, locks, remove_tree, swap,
};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long files are left alone that may belong to a process at work right now.
const LEFTOVER_AFTER: Duration = Duration::from_secs(3600);

/// The file in which a turn records its flow, and the most bytes of it that are read.
const RECORD: &[u8] = b"turn.json";
const RECORD_MAX: u64 = 1 << 20;

/// How long things are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry {
    /// Logs, run folders, copies of commands, and notes of heads that were seen.
    pub logs: Duration,
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
    /// A question that nothing waits for any more.
    Asked,
    /// What a turn left whose flow no longer exists.
    Turn,
    Submodules,
    RunRef,
    Commands,
    Lock,
    Leftover,
}

impl Kind {
    /// Returns the kind's name, as shown and in JSON.
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
    /// What kind of thing it is.
    pub kind: Kind,
    /// The thing's path or ref.
    pub name: PathBuf,
    /// The attempt that its work was moved to.
    pub kept: Option<RefName>,
    /// Where what it held was moved as it was.
    pub aside: Option<PathBuf>,
    /// For a slot that kept files for its branch: how many bytes they took on disk.
    pub bytes: Option<u64>,
}

/// Everything that a collection did, or would have done.
#[derive(Debug, Default)]
pub struct Collected {
    /// What was removed, or would be.
    pub removed: Vec<Removal>,
    /// Why other things could not be.
    pub failed: Vec<RunnerError>,
}

impl Collected {
    pub(super) fn removed(&mut self, kind: Kind, name: impl Into<PathBuf>) {
        self.removed.push(Removal { kind, name: name.into(), kept: None, aside: None, bytes: None });
    }
}

/// The runs that a head or a slot's record says are under way, and triggers of such runs.
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
    /// Creates a collection that has not begun.
    pub(crate) fn new(runner: &'a Runner<'a>, expiry: Expiry, dry: bool) -> Self {
        let now =
            SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(runner.clock.now()).unwrap_or(0));
        Self { runner, expiry, dry, now, out: Collected::default() }
    }

    /// Removes what is no longer needed. A failure is recorded, and the rest goes on.
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

    /// Removes a file or folder, unless this is a dry run of the collection. In a repository that accounts share, the
    /// folder of another account is left to that account's own collection.
    fn remove(&mut self, kind: Kind, path: PathBuf) {
        let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if is_folder && is_of_another_account(&path) {
            return;
        }
        if !self.dry
            && let Err(error) = remove_tree(&path)
        {
            self.out.failed.push(io("remove", &path)(error));
            return;
        }
        self.out.removed(kind, path);
    }

    /// Removes the slots that no run uses, once the work in them is kept; not another account's.
    fn slots(&mut self) -> Result<(), RunnerError> {
        let runner = self.runner;
        if !runner.repo.aynig_dir().exists() && !runner.repo.common_dir.join("worktrees").exists() {
            return Ok(());
        }
        let pool = if self.dry { runner.known_pool() } else { runner.pool()? };
        for number in pool.registered() {
            // Nothing is made to look at a slot that no process has ever locked here.
            let locked = match self.dry && !pool.was_used(number) {
                true => Ok(Locked::Taken(Box::new(pool.borrow(number)))),
                false => pool.lock(number),
            };
            let mut slot = match locked {
                Ok(Locked::Taken(slot)) => slot,
                Ok(Locked::InUse | Locked::Denied(_)) => continue,
                Err(error) => {
                    self.out.failed.push(error.into());
                    continue;
                }
            };
            if !slot.exists() || is_of_another_account(slot.dir()) {
                continue;
            }
            let dir = slot.dir().to_owned();
            let bytes = slot.kept(&runner.settings.keeping.keep).map(|(_, _, bytes)| bytes);
            if self.dry {
                // What keeps a collection from the slot is said here too.
                let look = || slot.is_there().map_err(RunnerError::from).and_then(|_| runner.is_taken(&slot));
                let taken = unreadable_note(&slot).map_or_else(look, Err);
                let taken = taken.unwrap_or_else(|error| {
                    self.out.failed.push(error);
                    true
                });
                if !taken {
                    let kept = None;
                    self.out.removed.push(Removal { kind: Kind::Slot, name: dir, kept, aside: None, bytes });
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
            let (mut kept, mut aside) = (None, None);
            for note in report.notes {
                match note {
                    Note::FoundAttempt(name, _) => kept = Some(name),
                    Note::SetAside(dir, _) => aside = Some(dir),
                    _ => {}
                }
            }
            if let Err(error) = slot.remove(runner.repo) {
                self.out.failed.push(error.into());
                continue;
            }
            self.out.removed.push(Removal { kind: Kind::Slot, name: dir, kept, aside, bytes });
        }
        if !self.dry {
            // This succeeds only where the folder is empty.
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
        // A run on a remote's branch is on no local head, only in a slot's record.
        let pool = self.runner.known_pool();
        leased.runs.extend(pool.known().into_iter().filter_map(|n| pool.peek(n).run).map(|run| run.run_id));
        Ok(leased)
    }

    /// Removes refs, folders and logs of runs that are over.
    fn runs(&mut self) -> Result<(), RunnerError> {
        // These are listed before the heads are read, so a run that begins in between is not among them.
        let refs = self.runner.store.scan("refs/aynig/run/")?;
        let folders = entries(&self.runner.repo.aynig_dir().join("runs"));
        let files = logs::own_files(self.runner.repo);
        let leased = self.leased()?;
        for (name, at) in refs {
            let id = name.as_bytes().strip_prefix(b"refs/aynig/run/").unwrap_or_default();
            // An id that is no UTF-8 text belongs to no run of git-aynig.
            let Ok(id) = std::str::from_utf8(id) else { continue };
            let over = !leased.runs.contains(id) && self.runner.is_dead(id) && run_ref(id).is_some();
            if over && !self.is_fresh(id, at) {
                self.delete_ref(Kind::RunRef, &name, at);
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
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let over = match logs::trigger_of(name) {
                Some(trigger) => !leased.triggers.contains(trigger),
                None => name == logs::HOOK_LOG,
            };
            let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
            if over && !is_folder && self.is_older(&path, self.expiry.logs) {
                self.remove(Kind::Log, path);
            }
        }
        Ok(())
    }

    /// True where a run's ref points to its lease, and that may not have ended: between a claim on a remote
    /// and the note of the run in a slot, nothing else in this repository knows of the run.
    fn is_fresh(&self, id: &str, at: ObjectId) -> bool {
        let lease = self.runner.store.read_commit(at).map(Tip::from);
        let is_its = |lease: &Tip| lease.event.as_ref().and_then(Event::run_id) == Some(id);
        lease.is_ok_and(|lease| is_its(&lease) && self.runner.is_in_time(&lease))
    }

    fn delete_ref(&mut self, kind: Kind, name: &RefName, at: ObjectId) {
        let deleted = || {
            let (store, by) = (&*self.runner.store, self.runner.signature());
            Ok::<_, StoreError>(self.dry || swap::delete_ref(store, name, at, &by)? == Swap::Won)
        };
        match deleted() {
            Ok(true) => self.out.removed(kind, OsStr::from_bytes(name.as_bytes())),
            Ok(false) => {}
            Err(error) => self.out.failed.push(error.into()),
        }
    }

    /// Deletes a ref that is over; what keeps that from being known keeps this ref alone.
    fn delete_ref_if<E: Into<RunnerError>>(
        &mut self,
        is_over: Result<bool, E>,
        kind: Kind,
        name: &RefName,
        at: ObjectId,
    ) {
        match is_over {
            Ok(true) => self.delete_ref(kind, name, at),
            Ok(false) => {}
            Err(error) => self.out.failed.push(error.into()),
        }
    }

    /// Removes attempts that are old enough, but none of a run that is under way.
    fn attempts(&mut self) -> Result<(), RunnerError> {
        // These are listed before the heads are read, so an attempt of a run that begins in between is not
        // among them.
        let found = self.runner.store.read_heads("refs/aynig/attempts/")?.heads;
        let leased = self.leased()?;
        let limit = i64::try_from(self.expiry.attempts.as_secs()).unwrap_or(i64::MAX);
        for (name, commit) in found {
            if !name.is_own() || leased.runs.contains(&run_of(&name)) {
                continue;
            }
            let id = commit.id;
            let is_old = |at| self.runner.clock.now().saturating_sub(at) >= limit;
            let is_over = self.runner.kept_since(&name, commit).map(|since| since.is_some_and(is_old));
            self.delete_ref_if(is_over, Kind::Attempt, &name, id);
        }
        Ok(())
    }

    /// Removes delivered messages that are old enough, except those that bring work which is on no branch
    /// (K46a).
    fn heard(&mut self) -> Result<(), RunnerError> {
        let limit = i64::try_from(self.expiry.attempts.as_secs()).unwrap_or(i64::MAX);
        for (name, commit) in self.runner.store.read_heads(&String::from_utf8_lossy(HEARD_REFS))?.heads {
            let old = commit.committed.is_some_and(|at| self.runner.clock.now().saturating_sub(at) >= limit);
            if !name.is_own() || !old {
                continue;
            }
            let has = |work: &ObjectId| self.runner.repo.git.is_on_a_branch(*work);
            let is_over = commit.parents.first().map_or(Ok(true), has);
            self.delete_ref_if(is_over, Kind::Heard, &name, commit.id);
        }
        Ok(())
    }

    /// Removes what turns left, if it is old enough and their flow is no longer in this repository. What
    /// turns of an existing flow left all stays, because users and sessions that are continued read it (N4).
    fn turns(&mut self) -> Result<(), RunnerError> {
        let limit = i64::try_from(self.expiry.attempts.as_secs()).unwrap_or(i64::MAX);
        for (name, commit) in self.runner.store.read_heads(&String::from_utf8_lossy(TURNS))?.heads {
            let old = commit.committed.is_some_and(|at| self.runner.clock.now().saturating_sub(at) >= limit);
            if name.is_own() && old {
                let is_over = self.has_flow(&commit).map(|has| !has);
                self.delete_ref_if(is_over, Kind::Turn, &name, commit.id);
            }
        }
        Ok(())
    }

    /// True where the flow that a turn's record names is in this repository, or the record does not say which
    /// flow that is.
    fn has_flow(&self, left: &Commit) -> Result<bool, RunnerError> {
        let store = &*self.runner.store;
        let tree = store.read_tree(left.tree)?;
        let is_record = |entry: &&TreeEntry| entry.name == RECORD && entry.is_file();
        let Some(record) = tree.iter().find(is_record) else { return Ok(true) };
        let Some(record) = store.read_bounded(record.id, RECORD_MAX)? else { return Ok(true) };
        let record = serde_json::from_slice::<serde_json::Value>(&record);
        let flow = record.ok().and_then(|record| record["runId"].as_str().map(str::to_owned));
        let Some(flow) = flow.filter(|flow| uuid::Uuid::parse_str(flow).is_ok()) else { return Ok(true) };
        Ok(store.tip(&RefName::new([FLOWS, flow.to_lowercase().as_bytes()].concat()))?.is_some())
    }

    /// Removes questions that are old enough and that no run and no head waits for any more (K49).
    fn asked(&mut self) -> Result<(), RunnerError> {
        let limit = i64::try_from(self.expiry.attempts.as_secs()).unwrap_or(i64::MAX);
        for (name, commit) in self.runner.store.read_heads(&String::from_utf8_lossy(ASKED))?.heads {
            let old = commit.committed.is_some_and(|at| self.runner.clock.now().saturating_sub(at) >= limit);
            if name.is_own() && old {
                let is_over = self.runner.is_waited_for(&name, commit.id).map(|waits| !waits);
                self.delete_ref_if(is_over, Kind::Asked, &name, commit.id);
            }
        }
        Ok(())
    }

    /// Removes repositories that were kept of submodules, and what was set aside beside the slots, if old
    /// enough.
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

    /// Removes copies of commands that were not used for long; none while any run lives, whose command may
    /// run from one.
    fn commands(&mut self) -> Result<(), RunnerError> {
        let copies = entries(&self.runner.repo.aynig_dir().join("commands"));
        if copies.is_empty() || self.runner.any_run_lives()? {
            return Ok(());
        }
        let store = &*self.runner.store;
        let current = match &self.runner.settings.commands_from {
            CommandsFrom::Nowhere | CommandsFrom::Branch => None,
            CommandsFrom::Ref(name) => match self.runner.commands_tip(name)? {
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
                gone.extend(children::sweep(common, &Vec::new).removed);
                gone
            }
            true => locks::list_locks(common)?.into_iter().filter(|l| l.stale).map(|l| l.path).collect(),
        };
        stale.into_iter().for_each(|path| self.out.removed(Kind::Lock, path));
        Ok(())
    }

    /// Removes what killed processes left half done, and old notes of seen heads.
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

/// True for a name that only temporary files of git-aynig have. In a folder that is `shared` with the user
/// fewer names count.
fn is_leftover(name: &str, shared: bool) -> bool {
    // The lock of a file that only one process ever used is as dead as the file.
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
    /// True while any slot is locked, inhabited, or kept for a lease that lives on.
    pub(super) fn any_run_lives(&self) -> Result<bool, RunnerError> {
        let pool = self.known_pool();
        for number in pool.known() {
            match pool.lock(number) {
                Ok(Locked::Taken(slot)) if !self.is_taken(&slot).unwrap_or(true) => {}
                // If a slot can't be judged, its run may live.
                Ok(Locked::Taken(_) | Locked::InUse | Locked::Denied(_)) | Err(_) => return Ok(true),
            }
        }
        Ok(false)
    }
}

//! Where a run's output is kept.
//!
//! Logs are in `.aynig/logs/` of the main working tree, a folder that ignores itself; in a bare repository,
//! and where the working tree has no place for it that this account may write to, in `aynig/logs/` of the Git
//! directory. They are in the latter too where a branch brings a `.gitignore` of its own into the former, which
//! would put logs into commits: logs that are there already are then moved by the verb or the hook that comes
//! next. Files are made new, never through a symbolic link. Implements K16, K48a (where its file is).

use super::named::{is_dead, run_ref};
use super::settings::Sandbox;
use super::{Runner, RunnerError, io};
use crate::protocol::id::ObjectId;
use crate::store::beneath::{BeneathError, Root, apart};
use crate::store::repository::Repository;
use crate::store::{read_plain, sparse};
use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The folder of logs, relative to the main working tree.
const LOGS: &str = ".aynig/logs";
/// The name of the log of what runs in the background.
pub(super) const HOOK_LOG: &str = "hook.log";
/// The end of the name of a run's file of events.
pub(super) const EVENTS: &str = ".events.jsonl";

/// The two logs of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Logs {
    /// What its command wrote to standard output.
    pub stdout: PathBuf,
    /// What its command wrote to standard error.
    pub stderr: PathBuf,
}

impl Logs {
    /// Returns the path of the run's events, where its command may say how far it is. Unless the command is
    /// confined, there is no such file before something is written to it.
    pub(crate) fn events(&self) -> PathBuf {
        let name = self.stdout.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".stdout.log").unwrap_or(&name);
        self.stdout.with_file_name(format!("{stem}{EVENTS}"))
    }
}

/// Returns the folder for logs, and true where that is not the usual folder because a link, or a file, is in
/// the way, or because Git would not ignore what is there.
pub(crate) fn folder(repo: &Repository) -> (PathBuf, bool) {
    let inside = repo.aynig_dir().join("logs");
    if repo.main_dir.is_none() {
        return (inside, false);
    }
    match in_tree(repo) {
        Some(logs) if is_closed(&logs) => (inside, false),
        Some(logs) if !is_ignored(&logs) => (inside, true),
        Some(_) if sparse::leaves_out(repo, LOGS) => (inside, false),
        Some(logs) => (logs, false),
        None => (inside, true),
    }
}

/// Returns the folder of logs in the main working tree; `None` where there is no such tree, or a link or a file is
/// in the way.
fn in_tree(repo: &Repository) -> Option<PathBuf> {
    let aynig = repo.main_dir.as_ref()?.join(".aynig");
    let logs = aynig.join("logs");
    let plain = |path: &Path| path.symlink_metadata().map_or(true, |m| m.is_dir());
    (plain(&aynig) && plain(&logs)).then_some(logs)
}

/// True for a folder that this account may not write to, or not make: another account, such as root, was the
/// first to tick here.
fn is_closed(logs: &Path) -> bool {
    use nix::errno::Errno;
    use nix::unistd::{AccessFlags, access};
    let may = |path: &Path| access(path, AccessFlags::W_OK | AccessFlags::X_OK);
    match may(logs) {
        // A working tree that is itself closed is another matter: Git could not write there either.
        Err(Errno::ENOENT) => logs.parent().is_some_and(|aynig| may(aynig) == Err(Errno::EACCES)),
        found => found == Err(Errno::EACCES),
    }
}

/// Returns every folder in which a log may be found: those of [`folders`], and the one in the working tree where
/// rules of a branch show it to Git, for as long as a run writes there.
fn readable(repo: &Repository) -> Vec<PathBuf> {
    let mut all = folders(repo);
    all.extend(in_tree(repo));
    all
}

/// Returns every folder that may hold logs, the one that [`folder`] returns first. There are two, because a
/// sparse checkout may come and go.
pub(crate) fn folders(repo: &Repository) -> Vec<PathBuf> {
    let (now, in_the_way) = folder(repo);
    let tree = repo.main_dir.as_ref().filter(|_| !in_the_way).map(|main| main.join(LOGS));
    let more: Vec<PathBuf> = [Some(repo.aynig_dir().join("logs")), tree]
        .into_iter()
        .flatten()
        .filter(|path| *path != now)
        .collect();
    [vec![now], more].concat()
}

/// True where no file in this folder can get into a commit unnoticed: no rule outranks those of the folder's
/// own `.gitignore`. A `.gitignore` that is missing, or has nothing in it yet, will be the runner's own.
fn is_ignored(logs: &Path) -> bool {
    let path = logs.join(".gitignore");
    if path.symlink_metadata().is_err() {
        return true;
    }
    let rules = crate::store::read_plain(&path, 4096);
    rules.is_ok_and(|rules| rules.is_empty() || ignores_all(&rules))
}

/// True for rules that ignore everything but the `.gitignore` itself. Of the end of a line Git drops one carriage
/// return, then blanks; a rule that ends with another character matches no log.
fn ignores_all(rules: &[u8]) -> bool {
    let rule = |line| {
        let mut line: &[u8] = line;
        line = line.strip_suffix(b"\r").unwrap_or(line);
        while let Some(shorter) = line.strip_suffix(b" ") {
            line = shorter;
        }
        line
    };
    let mut lines = rules.split(|b| *b == b'\n').map(rule);
    let harmless = |line: &[u8]| !line.starts_with(b"!") || matches!(line, b"!.gitignore" | b"!/.gitignore");
    lines.clone().all(harmless) && lines.any(|line| line == b"*")
}

/// Returns the name of the log of standard output that a run's folder notes.
fn noted(repo: &Repository, run_id: &str) -> Option<String> {
    let note = Path::new("runs").join(run_id).join("log");
    // The note is in a folder that the command can write to, so it is only believed to name some log in the
    // folder of logs.
    let note = Root::open(&repo.aynig_dir()).and_then(|root| root.read(&note, 4096)).ok()?;
    String::from_utf8(note).ok()
}

/// Takes the name of a run's log apart: what the logs of one run share, and of that the id of the trigger. `None`
/// for names that no such log has.
fn parts(name: &str) -> Option<(&str, &str)> {
    let stem = [".stdout.log", ".stderr.log", EVENTS].iter().find_map(|end| name.strip_suffix(end))?;
    let (trigger, number) = stem.split_once('.').map_or((stem, None), |(id, number)| (id, Some(number)));
    let is_number = number.is_none_or(|number| number.parse::<u32>().is_ok());
    (is_number && ObjectId::from_hex(trigger.as_bytes()).is_ok()).then_some((stem, trigger))
}

/// Returns the name of a run's log without its ending.
fn stem(name: &str) -> Option<&str> {
    parts(name).map(|(stem, _)| stem)
}

/// Returns the id of the trigger, in hexadecimal digits, whose run a file of this name is a log of; `None` for
/// names that no run's log has.
pub(super) fn trigger_of(name: &str) -> Option<&str> {
    parts(name).map(|(_, trigger)| trigger)
}

/// Returns the runner's own files in the folders of logs: logs, and the `.gitignore` that it made. What a branch has
/// committed there, and any other file, is the user's.
pub(super) fn own_files(repo: &Repository) -> Vec<PathBuf> {
    let in_tree = repo.main_dir.as_ref().map(|main| main.join(LOGS));
    let mut all = Vec::new();
    // What another account keeps to itself is that one's to collect.
    for folder in folders(repo).into_iter().filter(|folder| !is_closed(folder)) {
        let is_in_tree = in_tree.as_ref() == Some(&folder);
        let is_own = |name: &str| {
            let made = || {
                name == ".gitignore" && read_plain(&folder.join(name), 16).is_ok_and(|text| text == b"*\n")
            };
            name == HOOK_LOG || stem(name).is_some() || is_in_tree && made()
        };
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_own(name)).collect();
        if is_in_tree && !names.is_empty() {
            match committed(repo) {
                Some(committed) => {
                    names.retain(|name| !committed.contains(format!("{LOGS}/{name}").as_bytes()))
                }
                None => names.clear(),
            }
        }
        names.sort();
        all.extend(names.into_iter().map(|name| folder.join(name)));
    }
    all
}

/// Returns the paths in the folder of logs that the main working tree's index has; `None` where that can't be read.
fn committed(repo: &Repository) -> Option<HashSet<Vec<u8>>> {
    repo.git.tracked(&repo.common_dir, repo.main_dir.as_ref()?, LOGS).ok()
}

/// Removes from these names those of logs that runs are writing, which read them by their paths. A run that has
/// noted none yet may be writing any.
fn retain_unused(repo: &Repository, names: &mut Vec<String>) {
    let runs = std::fs::read_dir(repo.aynig_dir().join("runs")).into_iter().flatten().flatten();
    for id in runs.filter_map(|entry| entry.file_name().into_string().ok()) {
        let log = noted(repo, &id);
        let own = log.as_deref().and_then(stem);
        let is_own = |name: &str| own.is_none() && stem(name).is_some() || own.is_some() && stem(name) == own;
        // Only a run that may have one of them is looked at: a look takes its lock for a moment.
        if names.iter().any(|name| is_own(name)) && !is_dead(repo, &id) {
            names.retain(|name| !is_own(name));
        }
    }
}

/// Moves the runner's logs out of a folder that Git does not ignore. Logs that are committed there stay, and so
/// do those of runs that are under way, until these are over.
fn bring_away(repo: &Repository, from: &Path, to: &Path) {
    let ours = |name: &str| name == HOOK_LOG || stem(name).is_some();
    let Ok(entries) = std::fs::read_dir(from) else { return };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| ours(name)).collect();
    retain_unused(repo, &mut names);
    if names.is_empty() {
        return;
    }
    let Some(committed) = committed(repo) else { return };
    for name in names.iter().filter(|name| !committed.contains(format!("{LOGS}/{name}").as_bytes())) {
        let (here, there) = (from.join(name), to.join(name));
        if !here.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        let moved = match std::fs::hard_link(&here, &there) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => joined(&here, &there, name == HOOK_LOG),
            linked => linked,
        };
        if moved.is_ok() {
            let _ = std::fs::remove_file(here);
        }
    }
}

/// Adds what one log holds to another, where that `may` be done and both are not one file: a process may have been
/// killed before it removed the older name. Never through a link.
fn joined(from: &Path, to: &Path, may: bool) -> std::io::Result<()> {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let mut options = File::options();
    let from = options.read(true).custom_flags(flags.bits()).open(from)?;
    let to = options.read(false).append(true).open(to)?;
    let (has, into) = (from.metadata()?, to.metadata()?);
    if (has.dev(), has.ino()) == (into.dev(), into.ino()) {
        return Ok(());
    }
    if !may || !has.is_file() || !into.is_file() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    // What is written meanwhile is not waited for.
    let copied = std::io::copy(&mut from.take(has.len()), &mut &to);
    if copied.is_err() {
        to.set_len(into.len())?;
    }
    copied.map(drop)
}

/// Moves logs out of the working tree where a branch has brought rules since that let them into commits.
pub(crate) fn keep_out_of_commits(repo: &Repository) {
    let logs = repo.main_dir.as_ref().map(|main| main.join(LOGS));
    let is_open =
        |logs: PathBuf| logs.symlink_metadata().is_ok_and(|meta| meta.is_dir()) && !is_ignored(&logs);
    if logs.is_some_and(is_open) {
        // What can't be moved now is moved before the next log is made, or that fails.
        let _ = create_folder(repo);
    }
}

/// Creates the folder for logs, and returns what [`folder`] does. In a working tree the folder ignores
/// itself.
pub(super) fn create_folder(repo: &Repository) -> Result<(PathBuf, bool), RunnerError> {
    let (folder, elsewhere) = folder(repo);
    repo.make(&folder)?;
    repo.share(&folder);
    if let Some(main) = &repo.main_dir
        && elsewhere
        && Root::open(main).and_then(|main| main.below(Path::new(LOGS))).is_ok()
    {
        bring_away(repo, &main.join(LOGS), &folder);
    }
    if folder != repo.aynig_dir().join("logs") {
        let ignore = folder.join(".gitignore");
        match ignore.symlink_metadata() {
            Ok(meta) => {
                complete(&ignore, &meta);
                return Ok((folder, elsewhere));
            }
            Err(_) if place(repo, &ignore).is_ok() => return Ok((folder, elsewhere)),
            Err(_) => {}
        }
        // The file is created new or not at all, so nothing is written through a link, dangling or not.
        match File::options().write(true).create_new(true).open(&ignore) {
            Ok(mut file) => {
                repo.share(&ignore);
                std::io::Write::write_all(&mut file, b"*\n").map_err(io("write", &ignore))?;
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io("create", &ignore)(e)),
        }
    }
    Ok((folder, elsewhere))
}

/// Puts the whole `.gitignore` in place at once. Fails where the working tree is not on the Git directory's
/// file system.
fn place(repo: &Repository, ignore: &Path) -> std::io::Result<()> {
    let aside = repo.aynig_dir().join(format!(".new-{}", uuid::Uuid::new_v4()));
    let written = std::fs::write(&aside, "*\n").inspect(|()| repo.share(&aside));
    let placed = written.and_then(|()| std::fs::hard_link(&aside, ignore));
    let _ = std::fs::remove_file(&aside);
    placed
}

/// Fills an empty `.gitignore`: the process that created it may have been killed, or may not have written
/// yet.
fn complete(ignore: &Path, found: &Metadata) {
    if found.is_file() && found.len() == 0 {
        let flags = nix::fcntl::OFlag::O_NOFOLLOW.bits();
        let file = File::options().write(true).custom_flags(flags).open(ignore);
        let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, b"*\n"));
    }
}

/// Opens the log of what runs in the background, to append to it; never through a link.
pub(crate) fn open_hook_log(repo: &Repository) -> Result<File, RunnerError> {
    let path = create_folder(repo)?.0.join(HOOK_LOG);
    let mut options = File::options();
    // A fifo there would keep a commit waiting for a reader.
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    options.create(true).append(true).mode(0o600).custom_flags(flags.bits());
    let file = options.open(&path).map_err(io("open", &path))?;
    match file.metadata() {
        Ok(meta) if meta.is_file() => {
            // This log is no run's: in a shared repository each account appends to it.
            repo.share(&path);
            Ok(file)
        }
        Ok(_) => Err(io("open", &path)(ErrorKind::InvalidInput.into())),
        Err(error) => Err(io("open", &path)(error)),
    }
}

/// Returns the paths of the logs of a trigger's `n`th run, counted from 1.
pub(crate) fn paths(folder: &Path, trigger: ObjectId, n: u32) -> Logs {
    let stem = if n == 1 { trigger.to_string() } else { format!("{trigger}.{n}") };
    Logs {
        stdout: folder.join(format!("{stem}.stdout.log")),
        stderr: folder.join(format!("{stem}.stderr.log")),
    }
}

/// Returns the logs of a trigger's latest run; `None` where it has none.
pub(crate) fn latest(repo: &Repository, trigger: ObjectId) -> Option<Logs> {
    let folders = readable(repo);
    // One run's logs may be in one folder, and the next one's in another.
    let nth = |n| folders.iter().map(|folder| paths(folder, trigger, n)).find(|logs| is_there(&logs.stdout));
    (1..).map_while(nth).last()
}

/// True where a log was created under this name, whatever a command put in its place since.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Opens a log to read it, if it is a plain file: its command may have put a link, or a FIFO, in its place.
pub(crate) fn open(path: &Path) -> Result<File, BeneathError> {
    let (folder, name) = apart(path)?;
    folder.file(name)
}

/// Notes in a run's folder which logs are its own: two branches may have the same trigger.
pub(super) fn note(run_dir: &Root, logs: &Logs) -> Result<(), BeneathError> {
    let name = logs.stdout.file_name().unwrap_or_default();
    run_dir.replace(Path::new("log"), name.as_encoded_bytes(), 0o644)
}

/// Returns the logs of this very run; `None` where they, or the note of which they are, are gone.
pub(crate) fn of_run(repo: &Repository, run_id: &str, trigger: ObjectId) -> Option<Logs> {
    // An id from a commit may be anything; one that is valid in a ref's name is a safe name for a folder.
    run_ref(run_id)?;
    let name = noted(repo, run_id)?;
    let stem = name.strip_suffix(".stdout.log").filter(|stem| !stem.contains('/'))?;
    // A log of another trigger is another run's.
    stem.split('.').next().filter(|id| *id == trigger.to_string())?;
    readable(repo).into_iter().find_map(|folder| {
        let stdout = folder.join(&name);
        let stderr = folder.join(format!("{stem}.stderr.log"));
        is_there(&stdout).then_some(Logs { stdout, stderr })
    })
}

impl Runner<'_> {
    /// Creates the two empty logs of a run, and its file of events if the command is confined and may not be
    /// able to create that. The second value is that of [`folder`].
    pub(super) fn create_logs(&self, trigger: ObjectId) -> Result<(Logs, bool), RunnerError> {
        let (folder, elsewhere) = create_folder(self.repo)?;
        let confined = !self.settings.exec.is_empty() || self.settings.sandbox != Sandbox::Off;
        let make = |path: &Path| {
            let mut options = File::options();
            options.write(true).create_new(true).mode(0o600);
            options.custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits());
            options.open(path)
        };
        // Logs of another run of this trigger may be in another folder: where they can't stay, or where this
        // account may not write.
        let others = readable(self.repo);
        for n in 1.. {
            if others.iter().any(|folder| is_there(&paths(folder, trigger, n).stdout)) {
                continue;
            }
            let logs = paths(&folder, trigger, n);
            match make(&logs.stdout) {
                Ok(_) => match make(&logs.stderr) {
                    Ok(_) => {
                        let events = logs.events();
                        // A file of that name belongs to a run whose logs are gone, or to none.
                        let _ = std::fs::remove_file(&events);
                        if confined {
                            make(&events).map_err(io("create", &events))?;
                        }
                        return Ok((logs, elsewhere));
                    }
                    // Something is in the way of this pair: the next number has room for both.
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                        std::fs::remove_file(&logs.stdout).map_err(io("remove", &logs.stdout))?;
                    }
                    Err(e) => return Err(io("create", &logs.stderr)(e)),
                },
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io("create", &logs.stdout)(e)),
            }
        }
        unreachable!("the numbers do not end")
    }
}

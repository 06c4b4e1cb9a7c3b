//! `logs`: what the latest run's command printed.
//!
//! A branch, or any commit of a run: trigger, lease, outcome or stall. Bytes go out as they are, except
//! to a terminal, where control characters are escaped. Implements section 13 (`logs`), K16, K36.

use super::args::Logs;
use super::exit;
use super::fail::Failure;
use super::hints::{self, Addressed};
use super::output::{self, StreamEscaper};
use super::session::{Global, Session};
use crate::app::config::Flags;
use crate::app::mend;
use crate::protocol::event::{RUN_ID, RUNNER_ID, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::protocol::text::with_causes;
use crate::protocol::text::{escape, shell_word};
use crate::runner::{Runner, Tip, logs};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often `-f` looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The run whose log is wanted.
struct Wanted {
    trigger: ObjectId,
    /// A commit of the run, or the trigger itself.
    at: ObjectId,
    /// The run itself, if that is said.
    run_id: Option<String>,
    /// The branch that a run of it may hold now.
    branch: Option<RefName>,
    /// Who ran it, if that is said.
    runner_id: Option<String>,
}

/// `git aynig logs`.
pub fn run(global: &Global, args: &Logs) -> Result<i32, Failure> {
    let session = global.open()?;
    let settings = session.settings(&Flags { remote: args.remote.clone(), ..Flags::default() })?;
    mend::all(&session);
    let interrupt = if args.follow { Interrupt::by_signals()? } else { Interrupt::never()? };
    let runner = session.reader(&settings, &interrupt)?;
    let wanted = wanted(&session, &runner, args.what.as_deref(), args.follow)?;
    let Some(path) = find(&session, &runner, &wanted, args)? else {
        return Ok(exit::of_signal(interrupt.signal()));
    };
    if args.path {
        output::offer_raw(&[path.as_os_str().as_bytes(), b"\n"].concat());
        return Ok(0);
    }
    print(&runner, &wanted, &path, args.follow)
}

fn wanted(
    session: &Session,
    runner: &Runner<'_>,
    what: Option<&OsStr>,
    follow: bool,
) -> Result<Wanted, Failure> {
    if let Some(what) = what {
        let branch = session.branch(what).ok();
        if let Some(branch) = branch
            && let Some(head) = runner.store.tip(&branch)?
        {
            return of_branch(session, runner, branch, head);
        }
        return of_commit(session, runner, what, follow);
    }
    let branch = session.branch_or_current(None, "logs <branch>")?;
    match runner.store.tip(&branch)? {
        Some(head) => of_branch(session, runner, branch, head),
        None => Err(session.no_branch(runner.settings, &branch).into()),
    }
}

fn of_tip(tip: &Tip) -> Wanted {
    let event = tip.event.as_ref();
    let trigger = event.and_then(|e| e.trigger()).unwrap_or(tip.id());
    let runner_id = event.and_then(|e| e.text(RUNNER_ID)).map(str::to_owned);
    let run_id = event.and_then(|e| e.text(RUN_ID).or_else(|| e.text(STALLED_RUN))).map(str::to_owned);
    Wanted { trigger, at: tip.id(), run_id, branch: None, runner_id }
}

/// The head where it was run itself, or the newest state event below that names what it answers.
fn of_branch(
    session: &Session,
    runner: &Runner<'_>,
    branch: RefName,
    head: ObjectId,
) -> Result<Wanted, Failure> {
    let mut found = None;
    runner.walk(head, &HashSet::new(), &mut |tip| {
        let names = tip.event.as_ref().is_some_and(|e| e.trigger().is_some());
        if names || (tip.id() == head && logs::latest(&session.repo, head).is_some()) {
            found = Some(of_tip(&tip));
        }
        found.is_none()
    })?;
    let at = Addressed::new(&branch, runner.settings.remote.as_deref());
    match found {
        Some(found) => Ok(Wanted { branch: Some(branch), ..found }),
        None => Err(Failure::fatal(format!("no command ran on '{}' yet", at.shown)).hint(at.call("status"))),
    }
}

fn of_commit(session: &Session, runner: &Runner<'_>, what: &OsStr, follow: bool) -> Result<Wanted, Failure> {
    let shown = escape(what.as_bytes());
    let id = what
        .to_str()
        .and_then(|name| {
            session.repo.git.rev_parse(&session.repo.git_dir, &format!("{name}^{{commit}}")).ok()
        })
        .ok_or_else(|| {
            let failure = Failure::fatal(format!("'{shown}' is neither a branch nor a commit"));
            failure.hint(match (session.unasked(runner.settings), runner.settings.remote.as_deref()) {
                (Some(remote), _) => hints::same_with_remote(remote),
                (None, Some(remote)) => {
                    format!("git aynig status --remote {}", shell_word(remote.as_bytes()))
                }
                (None, None) => "git aynig status".to_owned(),
            })
        })?;
    let wanted = of_tip(&Tip::from(runner.store.read_commit(id)?));
    if !follow {
        return Ok(wanted);
    }
    let heads = runner.store.read_heads("refs/heads/")?.heads;
    let holds =
        |tip: &Tip| tip.event.as_ref().is_some_and(|e| e.is_working() && e.trigger() == Some(wanted.trigger));
    let branch = heads.into_iter().find(|(_, commit)| holds(&Tip::from(commit.clone())));
    Ok(Wanted { branch: branch.map(|(name, _)| name), ..wanted })
}

impl Wanted {
    /// Who ran it: what a lease says, and an outcome leaves to the lease below it.
    fn whose(&self, runner: &Runner<'_>) -> Result<Option<String>, Failure> {
        let mut found = self.runner_id.clone();
        if found.is_none() {
            runner.walk(self.at, &HashSet::new(), &mut |tip| {
                let event = tip.event.as_ref().filter(|event| event.trigger() == Some(self.trigger));
                found = event.and_then(|event| event.text(RUNNER_ID)).map(str::to_owned);
                // From the outcome down to the first lease, and no further.
                found.is_none() && event.is_some()
            })?;
        }
        Ok(found)
    }

    /// True while the run holds its branch.
    fn is_running(&self, runner: &Runner<'_>) -> Result<bool, Failure> {
        match &self.branch {
            Some(branch) => Ok(runner.is_leased_for(branch, self.trigger)?),
            None => Ok(false),
        }
    }
}

/// The log's path; `None` where a signal came while waiting for it.
fn find(
    session: &Session,
    runner: &Runner<'_>,
    wanted: &Wanted,
    args: &Logs,
) -> Result<Option<PathBuf>, Failure> {
    loop {
        // In this order: a log that the run made before it ended is seen.
        let running = args.follow && wanted.is_running(runner)?;
        let own = wanted.run_id.as_deref().and_then(|id| logs::of_run(&session.repo, id, wanted.trigger));
        let other = || logs::latest(&session.repo, wanted.trigger);
        // While the very run is under way its own log is waited for, not an earlier one shown.
        let found = if running && wanted.run_id.is_some() { own } else { own.or_else(other) };
        if let Some(found) = found {
            return Ok(Some(if args.stderr { found.stderr } else { found.stdout }));
        }
        if !running {
            break;
        }
        runner.interrupt.wait(LOOK_EVERY);
        if runner.interrupt.signal().is_some() {
            return Ok(None);
        }
    }
    let folder = logs::folder(&session.repo).0;
    let failure = Failure::fatal(format!("no log of {} here", wanted.trigger));
    let shown =
        format!("logs are in '{}', for 30 days unless 'aynig.logExpire' says otherwise", folder.display());
    Err(match wanted.whose(runner)? {
        Some(id) if id != runner.runner_id => {
            // '<host>-<random>': logs stay where their command ran.
            let host = escape(id.rsplit_once('-').map_or(&*id, |(host, _)| host).as_bytes());
            failure.hint(format!("it ran on '{host}' (as '{}'): look there", escape(id.as_bytes())))
        }
        Some(_) | None => failure.hint(shown),
    })
}

fn print(runner: &Runner<'_>, wanted: &Wanted, path: &Path, follow: bool) -> Result<i32, Failure> {
    let failed = |e: std::io::Error| Failure::fatal(format!("cannot read '{}': {e}", path.display()));
    let mut file = logs::open(path).map_err(|error| Failure::fatal(with_causes(&error)))?;
    let mut shown = Shown { terminal: std::io::stdout().is_terminal(), tame: StreamEscaper::default() };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // Asked first: what was written before the run ended is read after.
        let running = follow && wanted.is_running(runner)?;
        loop {
            let n = file.read(&mut buffer).map_err(failed)?;
            if n == 0 {
                break;
            }
            if !shown.write(&buffer[..n]) {
                return Ok(0);
            }
        }
        if !running {
            shown.end();
            return Ok(0);
        }
        runner.interrupt.wait(LOOK_EVERY);
        if runner.interrupt.signal().is_some() || output::reader_gone() {
            return Ok(exit::of_signal(runner.interrupt.signal()));
        }
    }
}

/// Where bytes go: as they are, or escaped for a terminal.
struct Shown {
    terminal: bool,
    tame: StreamEscaper,
}

impl Shown {
    /// False once the reader went away.
    fn write(&mut self, bytes: &[u8]) -> bool {
        match self.terminal {
            true => output::offer_raw(self.tame.take(bytes).as_bytes()),
            false => output::offer_raw(bytes),
        }
    }

    fn end(&mut self) {
        output::offer_raw(self.tame.end().as_bytes());
    }
}

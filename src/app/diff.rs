//! `diff`: finds the two commits that show what a run changed, and replaces this process with Git's own
//! `diff` of them.
//!
//! [`find`] finds the run. A branch stands for its latest run; otherwise a run is named by its id or the
//! beginning of that, by a commit of it, or by the commit that it answered. `shell` finds runs in the same
//! way. In a repository that is not trusted, no program that its configuration names is started (K34).
//! Implements K55 (`diff`).

use super::config::Flags;
use super::session::Session;
use super::{AppError, mend};
use crate::protocol::event::{Event, STALLED_RUN};
use crate::protocol::id::ObjectId;
use crate::protocol::inbox::MessageId;
use crate::protocol::text::escape;
use crate::runner::attempt::run_of;
use crate::runner::past::{Meant, Past, Work};
use crate::runner::{Runner, Tip};
use crate::store::RefName;
use crate::supervisor::interrupt::Interrupt;
use std::collections::HashSet;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The shortest beginning of a run's id that is looked for, in characters.
const ID_MIN: usize = 4;

/// Why there is no run to show.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// No command ran on the branch.
    #[error("no command ran on '{}' yet", escape(branch.short()))]
    NoRun {
        branch: RefName,
        /// The remote whose branch it is.
        remote: Option<String>,
    },
    /// What was named is no branch, run or commit of a run that is known in this repository.
    #[error("'{}' is neither a branch nor a run, nor a commit of one", escape(what.as_bytes()))]
    NoSuch {
        /// What was named.
        what: OsString,
        /// The remote whose branches are meant.
        remote: Option<String>,
        /// The remote's name, where it was not asked (K34).
        unasked: Option<String>,
    },
    /// The run has not ended.
    #[error("{} has not ended", run(run_id.as_deref(), branch))]
    Running {
        /// The branch that the run holds.
        branch: RefName,
        /// The run's id, where it is known.
        run_id: Option<String>,
        /// The remote whose branch it is.
        remote: Option<String>,
    },
    /// `--submodule` was given in a repository that is not trusted.
    #[error("'{}' is refused here: not trusted, and it would read configuration of submodules", escape(.0.as_bytes()))]
    Submodules(OsString),
}

fn run(run_id: Option<&str>, branch: &RefName) -> String {
    let branch = escape(branch.short());
    match run_id {
        Some(run) => {
            format!("run {} on '{branch}'", escape(run.as_bytes()).chars().take(8).collect::<String>())
        }
        None => format!("the run on '{branch}'"),
    }
}

/// A run that was found, and the branch that it ran on.
pub struct Found {
    /// The branch that the run ran on.
    pub branch: RefName,
    /// The run's id, where it is known.
    pub run_id: Option<String>,
    /// The commit that the run answered.
    pub trigger: ObjectId,
    /// The commit that holds the run's work; `None` where it left none.
    pub work: Option<ObjectId>,
    /// The ref that keeps the work, where the work is not on the branch.
    pub kept: Option<RefName>,
    /// The ref that keeps what an outcome left out.
    pub left_out: Option<RefName>,
    /// True where the work has the same files as the trigger.
    pub is_same: bool,
}

/// Finds the work that a question is about, where `what` is the id of a question that stands.
fn asked(runner: &Runner<'_>, what: Option<&OsStr>) -> Option<Found> {
    let id = MessageId::parse(what?.to_str()?).ok()?;
    let asked = runner.question(id).ok()?;
    let snapshot = runner.store.read_commit(asked.snapshot?).ok()?;
    // The snapshot is the run's lease, or one commit on top of it.
    let lease = match Tip::from(snapshot.clone()) {
        Tip { event: Some(event), .. } => event,
        Tip { event: None, .. } => {
            Tip::from(runner.store.read_commit(*snapshot.parents.first()?).ok()?).event?
        }
    };
    let trigger = lease.trigger()?;
    let is_same = runner.store.read_commit(trigger).ok()?.tree == snapshot.tree;
    Some(Found {
        branch: asked.branch(),
        run_id: asked.question.run_id,
        trigger,
        work: Some(snapshot.id),
        kept: None,
        left_out: None,
        is_same,
    })
}

/// Finds the run that `what` names and that is over, or the work that a question is about.
pub fn find(session: &Session, what: Option<&OsStr>, remote: Option<String>) -> Result<Found, AppError> {
    let settings = session.settings(&Flags { remote, ..Flags::default() })?;
    mend::all(session);
    let interrupt = Interrupt::never()?;
    let runner = session.reader(&settings, &interrupt)?;
    if let Some(found) = asked(&runner, what) {
        return Ok(found);
    }
    let (branch, past) = meant(session, &runner, what)?;
    let (work, kept) = match past.work {
        Work::Running => {
            let (run_id, remote) = (past.run_id, settings.remote.clone());
            return Err(PastError::Running { branch, run_id, remote }.into());
        }
        Work::Outcome(commit) => (Some(commit), None),
        Work::Attempt(name, commit) => (Some(commit), Some(name)),
        Work::Nothing => (None, None),
    };
    let tree = |id| runner.store.read_commit(id).map(|commit| commit.tree);
    let is_same = match work {
        Some(work) => tree(work)? == tree(past.trigger)?,
        None => true,
    };
    Ok(Found {
        branch,
        run_id: past.run_id,
        trigger: past.trigger,
        work,
        kept,
        left_out: past.left_out,
        is_same,
    })
}

fn meant(session: &Session, runner: &Runner<'_>, what: Option<&OsStr>) -> Result<(RefName, Past), AppError> {
    let remote = || runner.settings.remote.clone();
    let named = match what {
        Some(what) => session.branch(what).ok(),
        None => Some(session.branch_or_current(None, "diff <branch>")?),
    };
    let head = named.as_ref().map(|branch| runner.store.tip(branch)).transpose()?.flatten();
    match (named, head, what) {
        (Some(branch), Some(head), _) => match runner.past(head, &Meant::Latest, &mut HashSet::new())? {
            Some(past) => Ok((branch, past)),
            None => Err(PastError::NoRun { branch, remote: remote() }.into()),
        },
        (Some(branch), None, None) => Err(session.no_branch(runner.settings, &branch)),
        (_, _, what) => {
            let what = what.unwrap_or_default();
            let found = by_run(session, runner, what)?;
            let unasked = session.unasked(runner.settings).map(str::to_owned);
            let none = || PastError::NoSuch { what: what.to_owned(), remote: remote(), unasked };
            found.ok_or_else(|| none().into())
        }
    }
}

/// Finds the run that has this id, or that wrote or answered this commit, on whichever branch.
fn by_run(session: &Session, runner: &Runner<'_>, what: &OsStr) -> Result<Option<(RefName, Past)>, AppError> {
    let Some(what) = what.to_str() else { return Ok(None) };
    let repo = &session.repo;
    // The ref of an attempt is named after its run.
    let attempt = what.starts_with("refs/aynig/attempts/").then(|| Meant::Id(run_of(&RefName::new(what))));
    let commit = || {
        let id = repo.git.rev_parse(&repo.git_dir, &format!("{what}^{{commit}}")).ok()?;
        Some(written_by(runner, id).map_or(Meant::Commit(id), Meant::Id))
    };
    let is_id = what.len() >= ID_MIN && what.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let ways = [attempt.or_else(commit), is_id.then(|| Meant::Id(what.to_owned()))];
    let heads = runner.store.scan("refs/heads/")?;
    for meant in ways.into_iter().flatten() {
        let mut known = HashSet::new();
        for (branch, head) in &heads {
            // A branch that can't be read is no reason not to show a run of another branch.
            if let Ok(Some(past)) = runner.past(*head, &meant, &mut known) {
                return Ok(Some((branch.clone(), past)));
            }
        }
    }
    Ok(None)
}

/// Returns the id of the run that wrote a commit, or on whose lease an attempt stands.
fn written_by(runner: &Runner<'_>, id: ObjectId) -> Option<String> {
    let tip = Tip::from(runner.store.read_commit(id).ok()?);
    let of = |event: &Event| event.run_id().or_else(|| event.text(STALLED_RUN)).map(str::to_owned);
    match &tip.event {
        Some(event) => of(event),
        None => {
            let below = Tip::from(runner.store.read_commit(*tip.commit.parents.first()?).ok()?);
            below.event.as_ref().filter(|event| event.is_working()).and_then(of)
        }
    }
}

/// Replaces this process with `git diff` of a run, with the user's own pager and configuration. Returns only
/// where that fails.
pub fn show(
    session: &Session,
    git_dir: Option<&std::path::Path>,
    found: &Found,
    args: &[OsString],
) -> Result<Infallible, AppError> {
    let git = session.repo.git.git();
    let kept_from = git.kept_from(&session.repo.git_dir)?;
    let options = args.iter().take_while(|arg| *arg != "--");
    // Git takes the beginning of an option for the whole.
    let submodules = options.clone().find(|arg| arg.as_bytes().starts_with(b"--sub"));
    if let (Some(_), Some(option)) = (&kept_from, submodules) {
        return Err(PastError::Submodules(option.clone()).into());
    }
    let work = found.work.unwrap_or(found.trigger);
    let mut all: Vec<OsString> = vec![found.trigger.to_string().into(), work.to_string().into()];
    all.extend_from_slice(args);
    Err(git.become_diff(git_dir, kept_from.as_deref(), &all).into())
}
